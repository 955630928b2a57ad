//! The content over `WebDAV`: who may, what clients see, and that litmus has nothing to say.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::support::http::Answer;
use crate::support::site::Role;
use crate::support::{MASTER, RunningSite};

const DAV: &str = "/team/plans/s/dav";

struct World {
    site: RunningSite,
    dav: Role,
}

impl World {
    async fn start() -> Self {
        let site = RunningSite::private().await;
        let dav = site.role("webdav").await;
        Self { site, dav }
    }

    /// A request with the space's name and the master token.
    async fn ask(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Answer {
        let mut call = self.site.at(&self.dav, method, &format!("{DAV}{path}")).header(&basic("team", MASTER));
        for header in headers {
            call = call.header(header);
        }
        call.body(body).send().await
    }
}

fn basic(user: &str, password: &str) -> String {
    format!("Authorization: Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

#[tokio::test]
async fn client_23_basic_with_a_token() {
    let world = World::start().await;
    let site = &world.site;
    site.must_put("a/report.txt", b"report").await;
    let (_, reader) = site.token("read", None).await;
    let (_, writer) = site.token("read-write", None).await;
    // Read, write.
    for (credential, expected) in [
        (basic("team", MASTER), [200, 201]),
        (basic("anybody", MASTER), [200, 201]),
        (basic("", &writer), [200, 201]),
        (basic("team", &reader), [200, 403]),
        (basic("team", "wrong"), [401, 401]),
        (basic(MASTER, ""), [401, 401]),
        (format!("Authorization: Bearer {writer}"), [200, 201]),
        ("Cookie: __Secure-sites-plans=ana".to_owned(), [200, 201]),
        ("Cookie: __Secure-sites-plans=cleo".to_owned(), [200, 403]),
        ("Accept: */*".to_owned(), [401, 401]),
    ] {
        let get = site.at(&world.dav, "GET", &format!("{DAV}/a/report.txt")).header(&credential).send().await;
        let put = site.at(&world.dav, "PUT", &format!("{DAV}/new.txt")).header(&credential).body(b"new").send().await;
        assert_eq!([get.status, put.status], expected, "{credential}");
        for answer in [get, put] {
            let challenge = answer.header("www-authenticate");
            assert_eq!(challenge == "Basic realm=\"sites\", charset=\"UTF-8\"", answer.status == 401, "{challenge}");
        }
        site.delete("files/new.txt").await;
    }
    let foreign = site.at(&world.dav, "PUT", &format!("{DAV}/x")).header(&basic("team", MASTER));
    let foreign = foreign.header("Origin: https://evil.example.org").body(b"x").send().await;
    assert_eq!(foreign.status, 403, "a remembered password is the browser's, not the page's");
    assert!(!world.dav.log.lock().unwrap().contains(MASTER));
}

#[tokio::test]
async fn client_23_what_a_stock_client_does() {
    let world = World::start().await;
    world.site.must_put("a/b%20c.txt", b"text").await;
    let listing = world.ask("PROPFIND", "/a/", &["Depth: 1"], b"").await;
    assert_eq!(listing.status, 207, "{}", listing.text());
    for href in ["/team/plans/s/dav/a/<", "/team/plans/s/dav/a/b%20c.txt<"] {
        assert!(listing.text().contains(href), "{href}: {}", listing.text());
    }
    let one = world.ask("PROPFIND", "/a", &["Depth: 0"], b"").await;
    assert!(!one.text().contains("b%20c"), "{}", one.text());
    let spelled = world.site.at(&world.dav, "PROPFIND", "//team/%70lans/s/dav//a").header("Depth: 1");
    let spelled = spelled.header(&basic("", MASTER)).send().await;
    assert!(spelled.text().contains("/team/plans/s/dav/a/b%20c.txt<"), "{}", spelled.text());

    assert_eq!(world.ask("MKCOL", "/new", &[], b"").await.status, 201);
    assert_eq!(world.ask("MKCOL", "/new", &[], b"").await.status, 405);
    assert_eq!(world.ask("MKCOL", "/no/parent", &[], b"").await.status, 409);
    assert_eq!(world.ask("PUT", "/no/parent.txt", &[], b"x").await.status, 409);
    assert_eq!(world.ask("PUT", "/new/x.txt", &[], b"one").await.status, 201);
    assert_eq!(world.ask("PUT", "/new/x.txt", &[], b"two").await.status, 204);
    let part = world.ask("PUT", "/new/x.txt", &["Content-Range: bytes 0-0/3"], b"X").await;
    assert!(part.status >= 400, "a part is refused: {}", part.status);
    assert_eq!(world.ask("GET", "/new/x.txt", &[], b"").await.text(), "two");
    let to = |path: &str| format!("Destination: https://sites.example.org{DAV}{path}");
    assert_eq!(world.ask("MOVE", "/new/x.txt", &[&to("/new/y.txt")], b"").await.status, 201);
    assert_eq!(world.ask("COPY", "/new", &[&to("/copy")], b"").await.status, 201);
    assert_eq!(world.ask("GET", "/copy/y.txt", &["Range: bytes=1-"], b"").await.text(), "wo");
    assert_eq!(world.ask("DELETE", "/new", &[], b"").await.status, 204);
    assert_eq!(world.site.names("files/?recursive=true&type=f").await, ["a/b c.txt", "copy/y.txt"]);
    assert_eq!(world.site.get("usage").await.json()["used"], 4 + 3, "counted with the others'");
    assert_eq!(world.ask("DELETE", "/", &[], b"").await.status, 403);
}

#[tokio::test]
async fn webdav_stays_inside() {
    let world = World::start().await;
    world.site.must_put("a/in.txt", b"in").await;
    std::fs::write(world.site.content("").parent().unwrap().join("beside.txt"), "outside").unwrap();
    std::os::unix::fs::symlink("../beside.txt", world.site.content("out")).unwrap();
    for path in ["/%2e%2e/beside.txt", "/a/..%2f..%2fbeside.txt", "/.sites/usage", "/a/../../beside.txt", "/out"] {
        for method in ["GET", "PROPFIND", "DELETE"] {
            let answer = world.ask(method, path, &["Depth: 1"], b"").await;
            let unlinked = path == "/out" && method == "DELETE";
            assert!((400..500).contains(&answer.status) || unlinked, "{method} {path}: {}", answer.status);
            assert!(!answer.text().contains("outside"), "{method} {path}");
        }
    }
    for to in ["/%2e%2e/x", "/.sites/x", "/a/%2e%2e%2f%2e%2e/x"] {
        let destination = format!("Destination: {DAV}{to}");
        for method in ["MOVE", "COPY"] {
            let answer = world.ask(method, "/a/in.txt", &[&destination], b"").await;
            assert!((400..600).contains(&answer.status), "{method} {to}: {}", answer.status);
        }
    }
    assert_eq!(world.site.names("files/?recursive=true").await, ["a", "a/in.txt", "out"]);
    let root = world.ask("PROPFIND", "/", &["Depth: 1"], b"").await;
    assert!(!root.text().contains(".sites"), "{}", root.text());
    let outside = world.site.content("").parent().unwrap().join("beside.txt");
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "outside");
}

#[tokio::test]
async fn litmus_has_nothing_to_say() {
    let world = World::start().await;
    let url = format!("http://127.0.0.1:{}{DAV}/", world.dav.port);
    let folder = tempfile::tempdir().unwrap();
    let run = tokio::process::Command::new("litmus")
        .args(["-k", &url, "team", MASTER])
        .current_dir(folder.path())
        .output()
        .await
        .expect("litmus: apt-get install litmus");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    let failed: Vec<&str> = said.lines().filter(|line| line.contains("FAIL")).collect();
    assert!(run.status.success() && failed.is_empty(), "{}\n{said}", failed.join("\n"));
}
