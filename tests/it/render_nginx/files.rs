//! Static content of a public Site.

use std::os::unix::fs::symlink;

use sites::domain::site::ErrorHandling;

use super::world::World;

#[tokio::test]
async fn files_ranges_and_types() {
    let world = World::start("data", |_| {}).await;
    let site = "/repository/Climate_Pulse.v2";
    world.write("a b+c#%ü.csv", b"x,y\n");
    world.write("big.grib", &(0..=255).collect::<Vec<u8>>());

    let answer = world.get(&format!("{site}/big.grib")).await;
    assert_eq!((answer.status, answer.body.len()), (200, 256));
    assert_eq!(answer.header("accept-ranges"), "bytes");
    assert_eq!(answer.header("content-type"), "application/octet-stream");
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    assert_eq!(answer.header("cache-control"), "", "a public site's files may be cached");

    let head = world.request("HEAD", &format!("{site}/big.grib"), &[]).await;
    assert_eq!((head.status, head.header("content-length").as_str()), (200, "256"));

    let part = world.request("GET", &format!("{site}/big.grib"), &["Range: bytes=10-19"]).await;
    assert_eq!((part.status, part.body), (206, (10..=19).collect::<Vec<u8>>()));
    let parts = world.request("GET", &format!("{site}/big.grib"), &["Range: bytes=0-9,50-59,60-69"]).await;
    assert_eq!(parts.status, 206);
    assert!(parts.header("content-type").starts_with("multipart/byteranges"));
    let beyond = world.request("GET", &format!("{site}/big.grib"), &["Range: bytes=256-"]).await;
    assert_eq!(beyond.status, 416);
    assert!(beyond.all("access-control-allow-origin").len() < 2);

    let listing = world.get(&format!("{site}/")).await;
    assert_eq!(listing.status, 200);
    assert!(listing.text().contains(r#"href="a%20b%2Bc%23%25%C3%BC.csv""#), "{}", listing.text());
    let odd = world.get(&format!("{site}/a%20b+c%23%25%C3%BC.csv")).await;
    assert_eq!((odd.status, odd.header("content-type").as_str()), (200, "text/csv; charset=utf-8"));
    assert_eq!(world.request("POST", &format!("{site}/big.grib"), &[]).await.status, 405);
}

/// B15: judged by the bytes, not by the directives.
#[tokio::test]
async fn b15_hostile_values_are_served_literally() {
    for custom in [false, true] {
        let value = "a\"b'c;d{e}f$request_uri ${document_root} #g \\ \\\" ü";
        let long = format!("{}$", "ü\\\"".repeat(1_365));
        let world = World::start("data", |site| {
            site.spec.configuration.headers = [
                ("X-Hostile".to_owned(), value.to_owned()),
                ("X-Long".to_owned(), long.clone()),
                ("x_under".to_owned(), "$".to_owned()),
                ("$odd'|#".to_owned(), "odd".to_owned()),
            ]
            .into();
            if custom {
                let application = sites::domain::site::Application {
                    name: "site-custom".to_owned(),
                    image: Some("x".to_owned()),
                    ..Default::default()
                };
                site.spec.configuration.applications.push(application);
            }
        })
        .await;
        world.write("index.html", b"hello");
        let answer = world.get("/repository/Climate_Pulse.v2/").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-hostile"), value);
        assert_eq!(answer.header("x-long"), long);
        assert_eq!(answer.header("x_under"), "$");
        assert_eq!(answer.header("$odd'|#"), "odd");
    }
}

/// As many and as long as the rules of a Site allow.
#[tokio::test]
async fn b15_the_largest_headers_start_and_are_served() {
    for custom in [false, true] {
        let value = "ü".repeat(4096);
        let world = World::start(if custom { "dashboard" } else { "data" }, |site| {
            let name = |number: usize| match number % 2 {
                0 => format!("X-{number:0>98}"),
                _ => format!("${number:0>99}"),
            };
            site.spec.configuration.headers = (0..32).map(|number| (name(number), value.clone())).collect();
        })
        .await;
        world.write("index.html", b"hello");
        let path = if custom { "/user1/board/" } else { "/repository/Climate_Pulse.v2/" };
        let answer = world.request("GET", path, &["Cookie: viewer=1"]).await;
        assert_eq!(answer.status, 200);
        let served = answer.headers.iter().filter(|(_, served)| served == value.as_bytes()).count();
        assert_eq!(served, 32);
    }
}

#[tokio::test]
async fn folders_listings_and_missing_pages() {
    let listed = World::start("docs", |site| {
        site.spec.configuration.settings.error_handling = None;
    })
    .await;
    listed.write("dir/index.html", b"<p>index");
    listed.write("plain/a.txt", b"a");
    symlink("dir", listed.content("latest")).unwrap();
    for (target, link) in [("/etc/passwd", "outside"), ("/etc", "out")] {
        symlink(target, listed.content(link)).unwrap();
        // As in a pod, where whoever writes content does not own the system's files.
        let _ = std::os::unix::fs::lchown(listed.content(link), Some(1000), Some(1000));
    }

    let redirect = listed.get("/docs/fdb/dir?x=1").await;
    assert_eq!((redirect.status, redirect.header("location").as_str()), (301, "/docs/fdb/dir/?x=1"));
    let through_link = listed.get("/docs/fdb/latest").await;
    assert_eq!((through_link.status, through_link.header("location").as_str()), (301, "/docs/fdb/latest/"));
    assert_eq!(listed.get("/docs/fdb/latest/").await.text(), "<p>index");
    let top = listed.get("/docs/fdb?a=b").await;
    assert_eq!((top.status, top.header("location").as_str()), (301, "/docs/fdb/?a=b"));
    assert!(listed.get("/docs/fdb/plain/").await.text().contains("a.txt"));
    for link in ["/docs/fdb/outside", "/docs/fdb/out/passwd"] {
        assert_eq!(listed.get(link).await.status, 403, "{link}");
    }
    let missing = listed.get("/docs/fdb/none").await;
    assert_eq!(missing.status, 404);
    assert!(missing.text().contains("Page not found"));
    assert_eq!(missing.header("cache-control"), "no-store");
    for elsewhere in ["/", "/docs", "/docs/", "/docs/other/", "/docs/fdb2", "/_errors/404.html", "/_auth/private"] {
        assert_eq!(listed.get(elsewhere).await.status, 404, "{elsewhere}");
    }

    let quiet = World::start("docs", |_| {}).await;
    quiet.write("plain/a.txt", b"a");
    quiet.write("dir/index.html", b"<p>index");
    let folder = quiet.get("/docs/fdb/plain/").await;
    assert_eq!(folder.status, 404);
    assert!(folder.text().contains("Page not found"), "without a page of its own, the platform's: {}", folder.text());
    quiet.write("404.html", b"<p>own page");
    for path in ["/docs/fdb/plain/", "/docs/fdb/none", "/docs/fdb/none/deeper/"] {
        let answer = quiet.get(path).await;
        assert_eq!((answer.status, answer.text().as_str()), (404, "<p>own page"), "{path}");
    }
    assert_eq!(quiet.get("/docs/fdb/dir/").await.text(), "<p>index");
    assert_eq!(quiet.get("/docs/fdb/plain").await.status, 301);
    assert_eq!(quiet.get("/_no_listing").await.status, 404);
    assert!(!quiet.get("/elsewhere").await.text().contains("own page"));
}

#[tokio::test]
async fn a_page_of_an_odd_name_is_served() {
    let world = World::start("docs", |site| {
        site.spec.configuration.settings.error_handling =
            Some(ErrorHandling { not_found_page: Some("/a $uri \"b\".html".to_owned()), ..Default::default() });
    })
    .await;
    world.write("a $uri \"b\".html", b"odd");
    let answer = world.get("/docs/fdb/none").await;
    assert_eq!((answer.status, answer.text().as_str()), (404, "odd"));
}

#[tokio::test]
async fn dot_segments_are_refused_and_the_state_is_hidden() {
    let world = World::start("docs", |_| {}).await;
    world.write(".sites/tokens", b"secret");
    world.write("a/.sites/tokens", b"secret");
    world.write(".sitesx", b"fine");
    for path in [
        "/docs/fdb/../x",
        "/docs/fdb/./x",
        "/docs/fdb/%2e%2e/x",
        "/docs/fdb/a%2f..%2fx",
        "/docs/fdb/..",
        "/docs/fdb/%2E./x",
        "/docs/fdb/a%5c..%5cx",
        "/docs/fdb/s/api/..%2f..%2fx",
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, 400, "{path}");
        assert_eq!(answer.json()["status"], "error", "{path}");
    }
    assert_eq!(world.get("/..").await.status, 400);
    assert_eq!(world.get("/docs/fdb/a..b?x=/../y").await.status, 404, "dots elsewhere are fine");
    for path in [
        "/docs/fdb/.sites/tokens",
        "/docs/fdb/.sites",
        "/docs/fdb//.sites/tokens",
        "/docs/fdb/%2esites/tokens",
        "/docs/fdb/.sites%2ftokens",
        "/docs/fdb/a/.sites/tokens",
        "/docs//fdb/.s%69tes/tokens",
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(!answer.text().contains("secret"));
    }
    assert_eq!(world.get("/docs/fdb/.sitesx").await.text(), "fine");
}

#[tokio::test]
async fn a_site_without_a_path_is_served_at_the_root() {
    let world = World::start("minimal", |site| site.spec.site_type = sites::domain::site::SiteType::Public).await;
    world.write("index.html", b"root");
    world.write("dir/x.txt", b"x");
    assert_eq!(world.get("/").await.text(), "root");
    assert_eq!(world.get("/dir").await.header("location"), "/dir/");
    assert_eq!(world.get("/s/api/v2/x").await.json()["server"], "api");
    assert_eq!(world.get("/oauth2/start").await.header("location"), "/oauth2/start?rd=/");
    assert_eq!(world.get("/s/dav/").await.status, 404);
}
