//! The content over `WebDAV`: who may, and what clients see. litmus has a file of its own.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::support::http::Answer;
use crate::support::site::Role;
use crate::support::{MASTER, RunningSite, SiteClient};

/// Path of the content below a site's.
const DAV: &str = "/s/dav";

struct World {
    site: RunningSite,
    role: Role,
    dav: SiteClient,
}

impl World {
    async fn start() -> Self {
        let site = RunningSite::private().await;
        let role = site.role("webdav").await;
        let dav = site.client_of(&role);
        Self { site, role, dav }
    }
}

/// A request with the space's name and the master token.
async fn ask(dav: &SiteClient, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Answer {
    let mut call = dav.raw(method, &format!("{}{DAV}{path}", dav.prefix)).header(&basic("team", MASTER));
    for header in headers {
        call = call.header(header);
    }
    call.body(body).send().await
}

fn basic(user: &str, password: &str) -> String {
    format!("Authorization: Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

#[tokio::test]
async fn client_23_basic_with_a_token() {
    let world = World::start().await;
    basic_with_a_token(&world.site, &world.dav).await;
    for (session, expected) in [("ana", [200, 201]), ("cleo", [200, 403])] {
        let cookie = format!("Cookie: __Secure-sites-plans={session}");
        assert_eq!(read_and_write(&world.dav, &cookie).await, expected, "{session}");
        world.site.delete("files/new.txt").await;
    }
    assert!(!world.role.log.lock().unwrap().contains(MASTER));
}

/// What a credential may: read, write.
async fn read_and_write(dav: &SiteClient, credential: &str) -> [u16; 2] {
    let address = |path: &str| format!("{}{DAV}/{path}", dav.prefix);
    let get = dav.raw("GET", &address("a/report.txt")).header(credential).send().await;
    let put = dav.raw("PUT", &address("new.txt")).header(credential).body(b"new").send().await;
    let statuses = [get.status, put.status];
    for answer in [get, put] {
        let challenge = answer.header("www-authenticate");
        assert_eq!(challenge == "Basic realm=\"sites\", charset=\"UTF-8\"", answer.status == 401, "{challenge}");
    }
    statuses
}

/// Basic with a token as the password and any user.
pub async fn basic_with_a_token(site: &SiteClient, dav: &SiteClient) {
    site.must_put("a/report.txt", b"report").await;
    let (_, reader) = site.token("read", None).await;
    let (_, writer) = site.token("read-write", None).await;
    for (credential, expected) in [
        (basic("team", MASTER), [200, 201]),
        (basic("anybody", MASTER), [200, 201]),
        (basic("", &writer), [200, 201]),
        (basic("team", &reader), [200, 403]),
        (basic("team", "wrong"), [401, 401]),
        (basic(MASTER, ""), [401, 401]),
        (format!("Authorization: Bearer {writer}"), [200, 201]),
        ("Accept: */*".to_owned(), [401, 401]),
    ] {
        assert_eq!(read_and_write(dav, &credential).await, expected, "{credential}");
        site.delete("files/new.txt").await;
    }
    let foreign = dav.raw("PUT", &format!("{}{DAV}/x", dav.prefix)).header(&basic("team", MASTER));
    let foreign = foreign.header("Origin: https://evil.example.org").body(b"x").send().await;
    assert_eq!(foreign.status, 403, "a remembered password is the browser's, not the page's");
}

#[tokio::test]
async fn client_23_what_a_stock_client_does() {
    let world = World::start().await;
    stock_requests(&world.site, &world.dav).await;
}

/// The requests of stock clients, one by one.
pub async fn stock_requests(site: &SiteClient, dav: &SiteClient) {
    site.must_put("a/b%20c.txt", b"text").await;
    let ask =
        async |method: &str, path: &str, headers: &[&str], body: &[u8]| ask(dav, method, path, headers, body).await;
    let listing = ask("PROPFIND", "/a/", &["Depth: 1"], b"").await;
    assert_eq!(listing.status, 207, "{}", listing.text());
    for href in ["/a/<", "/a/b%20c.txt<"] {
        assert!(listing.text().contains(&format!("{}{DAV}{href}", dav.prefix)), "{href}: {}", listing.text());
    }
    let one = ask("PROPFIND", "/a", &["Depth: 0"], b"").await;
    assert!(!one.text().contains("b%20c"), "{}", one.text());
    let spelled = dav.raw("PROPFIND", "//team/%70lans/s/dav//a").header("Depth: 1");
    let spelled = spelled.header(&basic("", MASTER)).send().await;
    assert!(spelled.text().contains("/team/plans/s/dav/a/b%20c.txt<"), "{} {}", spelled.status, spelled.text());

    assert_eq!(ask("MKCOL", "/new", &[], b"").await.status, 201);
    assert_eq!(ask("MKCOL", "/new", &[], b"").await.status, 405);
    assert_eq!(ask("MKCOL", "/no/parent", &[], b"").await.status, 409);
    assert_eq!(ask("PUT", "/no/parent.txt", &[], b"x").await.status, 409);
    assert_eq!(ask("PUT", "/new/x.txt", &[], b"one").await.status, 201);
    assert_eq!(ask("PUT", "/new/x.txt", &[], b"two").await.status, 204);
    let part = ask("PUT", "/new/x.txt", &["Content-Range: bytes 0-0/3"], b"X").await;
    assert!(part.status >= 400, "a part is refused: {}", part.status);
    assert_eq!(ask("GET", "/new/x.txt", &[], b"").await.text(), "two");
    let to = |path: &str| format!("Destination: https://{}{}{DAV}{path}", dav.host(), dav.prefix);
    assert_eq!(ask("MOVE", "/new/x.txt", &[&to("/new/y.txt")], b"").await.status, 201);
    assert_eq!(ask("COPY", "/new", &[&to("/copy")], b"").await.status, 201);
    assert_eq!(ask("GET", "/copy/y.txt", &["Range: bytes=1-"], b"").await.text(), "wo");
    assert_eq!(ask("DELETE", "/new", &[], b"").await.status, 204);
    assert_eq!(site.names("files/?recursive=true&type=f").await, ["a/b c.txt", "copy/y.txt"]);
    assert_eq!(site.get("usage").await.json()["used"], 4 + 3, "counted with the others'");
    assert_eq!(ask("DELETE", "/", &[], b"").await.status, 403);
}

#[tokio::test]
async fn webdav_stays_inside() {
    let world = World::start().await;
    world.site.must_put("a/in.txt", b"in").await;
    std::fs::write(world.site.content("").parent().unwrap().join("beside.txt"), "outside").unwrap();
    std::os::unix::fs::symlink("../beside.txt", world.site.content("out")).unwrap();
    for path in ["/%2e%2e/beside.txt", "/a/..%2f..%2fbeside.txt", "/.sites/usage", "/a/../../beside.txt", "/out"] {
        for method in ["GET", "PROPFIND", "DELETE"] {
            let answer = ask(&world.dav, method, path, &["Depth: 1"], b"").await;
            let unlinked = path == "/out" && method == "DELETE";
            assert!((400..500).contains(&answer.status) || unlinked, "{method} {path}: {}", answer.status);
            assert!(!answer.text().contains("outside"), "{method} {path}");
        }
    }
    for to in ["/%2e%2e/x", "/.sites/x", "/a/%2e%2e%2f%2e%2e/x"] {
        let destination = format!("Destination: {}{DAV}{to}", world.dav.prefix);
        for method in ["MOVE", "COPY"] {
            let answer = ask(&world.dav, method, "/a/in.txt", &[&destination], b"").await;
            assert!((400..600).contains(&answer.status), "{method} {to}: {}", answer.status);
        }
    }
    assert_eq!(world.site.names("files/?recursive=true").await, ["a", "a/in.txt", "out"]);
    let root = ask(&world.dav, "PROPFIND", "/", &["Depth: 1"], b"").await;
    assert!(!root.text().contains(".sites"), "{}", root.text());
    let outside = world.site.content("").parent().unwrap().join("beside.txt");
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "outside");
}
