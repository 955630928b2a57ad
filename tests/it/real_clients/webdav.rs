//! `WebDAV` over the edge: the scenarios of [`crate::runtime_webdav`], and two programs that people mount it with.

use std::path::Path;

use super::{curl, on_private, run};
use crate::runtime_webdav::{basic_with_a_token, stock_requests};
use crate::runtime_webdav_litmus::passes_what_apache_passes;
use crate::support::{MASTER, SiteClient};

#[test]
fn real_client_23_basic_with_a_token() {
    on_private("real_client_23", async |site| basic_with_a_token(site, site).await);
}

#[test]
fn real_client_23_what_a_stock_client_does() {
    on_private("real_client_23", async |site| stock_requests(site, site).await);
}

#[test]
fn real_client_23_litmus_passes_what_apache_passes() {
    on_private("real_client_23", async |site| {
        passes_what_apache_passes(site).await;
        // What litmus does not ask over https: a big body waits until it is wanted.
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("body").display().to_string();
        std::fs::write(&file, vec![b'x'; 1 << 20]).unwrap();
        let expect = "Expect: 100-continue";
        for (password, told, status) in [(MASTER, "HTTP/1.1 100 Continue", "201"), ("wrong", "", "401")] {
            let (user, url) = (format!("team:{password}"), site.page_url("s/dav/body"));
            let (format, null) = ("%{http_code}", "/dev/null");
            let arguments = ["--http1.1", "-v", "-u", &user, "-H", expect, "-T", &file, "-w", format, "-o", null, &url];
            let said = curl(site, &arguments).await;
            assert!(said.text() == status && said.err.contains(told), "{} {}", said.text(), said.err);
        }
    });
}

/// Runs rclone with the site as `site:`.
async fn rclone(site: &SiteClient, home: &Path, password: &str, arguments: &[&str]) -> super::Said {
    let obscured = run(site.program("rclone").args(["obscure", password]), "").await.well();
    let mut command = site.program("rclone");
    command.env("HOME", home).env("RCLONE_CONFIG", "/dev/null").env("RCLONE_CONFIG_SITE_TYPE", "webdav");
    command.env("RCLONE_CONFIG_SITE_URL", site.page_url("s/dav/")).env("RCLONE_CONFIG_SITE_VENDOR", "other");
    command.env("RCLONE_CONFIG_SITE_USER", "team").env("RCLONE_CONFIG_SITE_PASS", obscured.trim());
    run(command.args(["--retries=1", "--low-level-retries=1"]).args(arguments), "").await
}

#[test]
fn real_client_23_rclone() {
    on_private("real_client_23", async |site| {
        let here = tempfile::tempdir().unwrap();
        let tree = here.path().join("tree");
        std::fs::create_dir_all(tree.join("deep er/ü")).unwrap();
        for (name, text) in [("a b#%.txt", "one"), ("deep er/ü/c+d.txt", "two"), ("empty", "")] {
            std::fs::write(tree.join(name), text).unwrap();
        }
        let local = tree.display().to_string();
        let ask = async |arguments: &[&str]| rclone(site, here.path(), MASTER, arguments).await;
        ask(&["mkdir", "site:new/folder"]).await.well();
        ask(&["copy", &local, "site:new/tree"]).await.well();
        // It reads everything back and compares.
        ask(&["check", "--download", &local, "site:new/tree"]).await.well();
        let listed = ask(&["lsf", "--recursive", "--files-only", "site:new"]).await.well();
        let mut listed: Vec<&str> = listed.lines().collect();
        listed.sort_unstable();
        assert_eq!(listed, ["tree/a b#%.txt", "tree/deep er/ü/c+d.txt", "tree/empty"]);
        // Overwritten, moved, and a whole folder moved.
        ask(&["copyto", &tree.join("empty").display().to_string(), "site:new/tree/a b#%.txt", "--ignore-times"])
            .await
            .well();
        ask(&["moveto", "site:new/tree/deep er/ü/c+d.txt", "site:new/folder/moved.txt"]).await.well();
        ask(&["move", "site:new/folder", "site:elsewhere"]).await.well();
        assert_eq!(site.read("elsewhere/moved.txt").await.text(), "two");
        for moved in ["new/tree/deep%20er/%C3%BC/c+d.txt", "new/folder/moved.txt"] {
            assert_eq!(site.get(&format!("files/{moved}")).await.status, 404, "{moved} is there no more");
        }
        assert_eq!(site.read("new/tree/a%20b%23%25.txt").await.body, b"");
        ask(&["deletefile", "site:elsewhere/moved.txt"]).await.well();
        ask(&["purge", "site:new"]).await.well();
        assert_eq!(site.names("files/?recursive=true&type=f").await, [""; 0]);
        let refused = rclone(site, here.path(), "wrong", &["lsf", "site:"]).await;
        assert!(refused.code != 0 && refused.err.contains("401"), "{}", refused.err);
    });
}

#[test]
fn real_client_23_cadaver() {
    on_private("real_client_23", async |site| {
        let here = tempfile::tempdir().unwrap();
        let login = format!("machine {} login team password {MASTER}\n", site.host());
        std::fs::write(here.path().join(".netrc"), login).unwrap();
        std::fs::write(here.path().join("local.txt"), "text").unwrap();
        let ask = async |commands: &str| {
            let mut command = site.program_in(here.path(), "cadaver");
            command.arg(site.page_url("s/dav/")).env("HOME", here.path());
            let said = run(&mut command, &format!("{commands}\nquit\n")).await;
            // It goes on after a failure and says so in words alone.
            assert!(!said.text().contains("failed") && said.code == 0, "{}\n{}", said.text(), said.err);
            said.text()
        };
        ask("mkcol new\nput local.txt new/x.txt\nmkcol new/folder\nmove new/x.txt new/folder/y.txt").await;
        assert_eq!(site.read("new/folder/y.txt").await.text(), "text");
        assert_eq!(site.names("files/new").await, ["folder"], "what was moved is there no more");
        let listed = ask("ls new\nls new/folder").await;
        assert!(listed.contains("folder") && listed.contains("y.txt") && listed.contains('4'), "{listed}");
        ask("copy new/folder/y.txt new/z.txt\nget new/z.txt back.txt\nlock new/z.txt\nunlock new/z.txt").await;
        assert_eq!(std::fs::read_to_string(here.path().join("back.txt")).unwrap(), "text");
        ask("delete new/z.txt\nrmcol new").await;
        assert_eq!(site.names("files/").await, [""; 0]);
    });
}
