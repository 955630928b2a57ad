//! Folders as people link to them: with and without the slash, through links, and as a list of names.

use super::{curl, on_public, run};

#[test]
fn real_client_34_a_folder_without_its_slash() {
    on_public("real_client_34", async |site| {
        for path in ["atlas", "pull requests/PR-7", "develop", "100%25 #1"] {
            let path = path.replace(' ', "%20").replace('#', "%23");
            site.must_put(&format!("{path}/index.html"), format!("<link href=style.css> {path}").as_bytes()).await;
            site.must_put(&format!("{path}/style.css"), path.as_bytes()).await;
        }
        assert_eq!(site.link("latest", "develop").await.status, 200);
        site.must_put("index.html", b"root").await;
        for (path, page) in [
            ("", "root"),
            ("atlas", "<link href=style.css> atlas"),
            ("atlas?x=1&y=a%2Fb", "<link href=style.css> atlas"),
            ("pull%20requests/PR-7", "<link href=style.css> pull%20requests/PR-7"),
            ("100%25%20%231", "<link href=style.css> 100%25%20%231"),
            ("latest?from=mail", "<link href=style.css> develop"),
        ] {
            let (folder, query) = path.split_once('?').unwrap_or((path, ""));
            let query = if query.is_empty() { String::new() } else { format!("?{query}") };
            let url = site.page_url(path);
            let url = url.strip_suffix('/').unwrap_or(&url);
            let slash = if folder.is_empty() { String::new() } else { format!("{folder}/{query}") };
            let slash = site.page_url(&slash);
            // One step, to the public address: the name of a link stays.
            let told = curl(site, &["--output", "/dev/null", "--write-out", "%{http_code} %{redirect_url}", url]).await;
            assert_eq!(told.well(), format!("301 {slash}"), "{url}");
            let format = "\n%{http_code} %{num_redirects} %{url_effective}";
            let seen = curl(site, &["--location", "--write-out", format, url]).await.well();
            assert_eq!(seen, format!("{page}\n200 1 {slash}"), "{url}");
        }
        // What a page there refers to is found beside it.
        let style = curl(site, &[&site.page_url("latest/style.css")]).await.well();
        assert_eq!(style, "develop");
    });
}

#[test]
fn real_client_35_a_listing_links_every_name() {
    on_public("real_client_35", async |site| {
        let names = ["a b.csv", "a+b.csv", "a#b.csv", "100%.csv", "ü é 漢.csv", "a&b=c;d.csv", "q?x.csv", "c:d.csv"];
        let encode = |name: &str| -> String {
            form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
        };
        for name in names {
            site.must_put(&format!("aerosol data/{}", encode(name)).replace(' ', "%20"), name.as_bytes()).await;
        }
        // Another program reads the list and fetches what it links to.
        let here = tempfile::tempdir().unwrap();
        let mut wget = site.program("wget");
        wget.args(["--recursive", "--level=1", "--no-parent", "--no-verbose", "--accept=*.csv", "--no-directories"]);
        wget.args(["--execute", "robots=off", "--directory-prefix"]).arg(here.path());
        run(wget.arg(site.page_url("aerosol%20data/")), "").await.well();
        let mut fetched: Vec<String> = std::fs::read_dir(here.path())
            .unwrap()
            .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
            .collect();
        let mut expected = names.map(str::to_owned).to_vec();
        fetched.sort();
        expected.sort();
        assert_eq!(fetched, expected, "each file has its own name as its content");
        let listing = curl(site, &["--include", &site.page_url("aerosol%20data/")]).await.well();
        assert!(listing.to_lowercase().contains("content-type: text/html"), "{listing}");
        assert!(!listing.contains(".sites"), "{listing}");
    });
}
