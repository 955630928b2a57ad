//! What programs meet on the way: plain http, sites that are not there, files they may not read, pages of others.

use super::{curl, on_private, on_public, run};
use crate::support::{MASTER, SiteClient};

/// A download that follows redirects: status, bytes, redirects, and where it came from in the end.
async fn followed(site: &SiteClient, url: &str, file: &str) -> String {
    let format = "%{http_code} %{size_download} %{num_redirects} %{url_effective}";
    curl(site, &["--location", "--output", file, "--write-out", format, url]).await.well()
}

#[test]
fn real_client_30_http_leads_to_https_and_to_every_byte() {
    on_public("real_client_30", async |site| {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("data").display().to_string();
        for length in [41, 822_360] {
            let content: Vec<u8> = (0..=250).cycle().take(length).collect();
            site.must_put("test%20data/a+b.grib", &content).await;
            let https = site.page_url("test%20data/a+b.grib?v=1&w=a%2Fb");
            let http = https.replace("https://", "http://");
            assert_eq!(followed(site, &http, &file).await, format!("200 {length} 1 {https}"));
            assert!(std::fs::read(&file).unwrap() == content, "every byte");
            // By itself it is no answer, and certainly no page.
            let alone = curl(site, &["--dump-header", "-", "--output", "/dev/null", &http]).await.well();
            assert!(alone.starts_with("HTTP/1.1 301 "), "{alone}");
            assert!(alone.to_lowercase().contains(&format!("location: {}\r\n", https.to_lowercase())), "{alone}");
        }
        let missing = site.page_url("test%20data/none.grib");
        let told = followed(site, &missing.replace("https://", "http://"), &file).await;
        assert!(told.starts_with("404 ") && told.ends_with(&format!(" 1 {missing}")), "{told}");
        // Nothing is done for whom sends a token over a line that anybody reads.
        let upload = site.url("files/x").replace("https://", "http://");
        let bearer = format!("Authorization: Bearer {MASTER}");
        let arguments = ["-X", "PUT", "-d", "x", "-H", &bearer, "-o", "/dev/null", "-w", "%{http_code}", &upload];
        assert_eq!(curl(site, &arguments).await.well(), "301");
        assert_eq!(site.get("files/x").await.status, 404);
    });
}

#[test]
fn real_client_31_what_is_missing_or_closed_is_no_page() {
    let page = |text: &str| text.to_lowercase().contains("<!doctype html");
    on_private("real_client_31", async |site| {
        site.must_put("model.bin", b"private bytes").await;
        let origin = site.page_url("").replace(&format!("{}/", site.prefix), "");
        for (url, status) in [
            (site.page_url("model.bin"), 401),
            (site.page_url("none.bin"), 401),
            (format!("{origin}/team/does/not/exist"), 404),
            (format!("{origin}/repository/does/not/exist"), 404),
            (format!("{origin}/team"), 404),
            (format!("{origin}/"), 404),
        ] {
            let said = curl(site, &["--write-out", "\n%{http_code} %{num_redirects}", &url]).await.well();
            assert!(said.ends_with(&format!("\n{status} 0")), "{url}: {said}");
            assert!(!page(&said) && !said.contains("private bytes"), "{url}: {said}");
        }
        let here = tempfile::tempdir().unwrap();
        let mut wget = site.program("wget");
        wget.args(["--tries=1", "--directory-prefix"]).arg(here.path()).arg(site.page_url("model.bin"));
        let said = run(&mut wget, "").await;
        assert_eq!(said.code, 6, "wget says that it may not: {}", said.err);
        assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0, "no page is taken for the file");
    });
    on_public("real_client_31", async |site| {
        site.must_put("index.html", b"<!doctype html>").await;
        let said = curl(site, &["--fail", "--write-out", "%{http_code}", &site.page_url("none.bin")]).await;
        assert_eq!((said.code, said.text().as_str()), (22, "404"), "a page for people, and no success");
    });
}

#[test]
fn real_client_37_pages_of_other_origins_read_data() {
    on_public("real_client_37", async |site| {
        site.must_put("status/now.json", b"{\"t\": 1}").await;
        site.must_put("plots/a.png", b"\x89PNG").await;
        let other = "Origin: https://climate.example.org";
        for (path, range, status) in
            [("status/now.json", "", 200), ("status/now.json", "Range: bytes=0-1", 206), ("plots/a.png", "", 200)]
        {
            let mut call = site.raw("GET", &format!("{}/{path}", site.prefix)).header(other);
            if !range.is_empty() {
                call = call.header(range);
            }
            let answer = call.header("Sec-Fetch-Site: cross-site").send().await;
            assert_eq!(answer.status, status, "{path}");
            // `header` fails if it came twice, which browsers take for none.
            assert_eq!(answer.header("access-control-allow-origin"), "*", "{path}");
            assert_eq!(answer.header("cross-origin-resource-policy"), "cross-origin", "{path}");
        }
    });
    on_private("real_client_37", async |site| {
        site.must_put("status/now.json", b"{\"t\": 1}").await;
        let call = site.raw("GET", &format!("{}/status/now.json", site.prefix)).token(MASTER);
        let answer = call.header("Origin: https://climate.example.org").send().await;
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!((answer.status, allowed.as_str()), (200, ""), "only where the Site says so");
    });
}
