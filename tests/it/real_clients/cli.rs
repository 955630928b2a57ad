//! The contract of the command line, by a stand-in for it (`tests/clients/sites_cli.py`): what it asks of the Hub and of
//! a site, as people use it.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::{Value, json};
use xtask::cluster::node::{OPENID_HOST, SITES_HOST};

use super::{Said, run};
use crate::support::{LONG, MASTER, SiteClient, eventually, with_pods};

/// Runs it as somebody with this home folder, in it.
async fn cli(site: &SiteClient, home: &Path, arguments: &[impl AsRef<OsStr>]) -> Said {
    let libraries = tokio::task::spawn_blocking(xtask::clients::python).await.unwrap().expect("the libraries (pip)");
    let mut command = site.program_in(home, "python3");
    command.args(["-B", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/sites_cli.py")]).args(arguments);
    command.env("PYTHONPATH", libraries).env("HOME", home);
    command.env("SITES_HUB", format!("https://{SITES_HOST}")).env("SITES_ISSUER", format!("https://{OPENID_HOST}"));
    run(&mut command, "").await
}

/// What a subcommand of `site` takes before it.
fn site_words(token: &[&str], words: &[&str]) -> Vec<String> {
    let words = ["site", "--space", "team", "--name", "reports"].iter().chain(token).chain(words);
    words.map(|word| (*word).to_owned()).collect()
}

#[test]
fn real_client_25_content_by_the_command_line() {
    with_pods("real_client_25", async |pods| {
        let (_hub, site) = (pods.world.start_hub().await, pods.reports().await);
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        std::fs::create_dir_all(home.join("tree/lang/de")).unwrap();
        for (name, text) in [("report.h5", "first"), ("tree/index.html", "<p>"), ("tree/lang/de/a b.txt", "ä")] {
            std::fs::write(home.join(name), text).unwrap();
        }
        std::os::unix::fs::symlink("index.html", home.join("tree/link")).unwrap();
        let ask = async |words: &[&str]| cli(&site, home, &site_words(&["--token", MASTER, "--v2"], words)).await;

        let one = ["content", "upload", "-s", "report.h5", "--yes"];
        assert_eq!(ask(&one).await.well(), "report.h5\n", "to the root by default");
        std::fs::write(home.join("report.h5"), "second").unwrap();
        ask(&one).await.well();
        ask(&["content", "upload", "-s", "tree", "--recursive", "--force"]).await.well();
        ask(&["content", "upload", "--source", "tree", "--recursive", "--destination", "lang/", "--yes"]).await.well();
        let listed = ask(&["content", "list", "--match", "*", "--recursive"]).await.well();
        let files = ["index.html", "lang/de/a b.txt", "lang/index.html", "lang/lang/de/a b.txt", "report.h5"];
        let mut listed: Vec<&str> = listed.lines().filter(|line| line.contains('.')).collect();
        listed.sort_unstable();
        assert_eq!(listed, files, "no backups, no links");
        let some = ask(&["content", "list", "--path", "lang", "--match", "*.txt", "--recursive"]).await.well();
        assert_eq!(some, "de/a b.txt\nlang/de/a b.txt\n");

        assert_eq!(
            ask(&["content", "download", "--path", "report.h5", "--yes"]).await.well(),
            "team/reports/report.h5\n"
        );
        assert_eq!(std::fs::read_to_string(home.join("team/reports/report.h5")).unwrap(), "second");
        // SHA-256 of `second`.
        let sum = "16367aacb67a4a017c8da8ab95682ccb390863780f7114dda0a0e0c55644c7c4";
        for version in ["--v1", "--v2"] {
            let words = site_words(&["--token", MASTER, version], &["content", "checksum", "--path", "report.h5"]);
            assert_eq!(cli(&site, home, &words).await.well().trim(), sum, "{version}");
        }
        ask(&["content", "delete", "--path", "lang", "--yes"]).await.well();
        let gone = ask(&["content", "download", "--path", "lang/index.html", "--yes"]).await;
        assert!(gone.code == 1 && gone.err.contains("404") && gone.err.contains("not found"), "{}", gone.err);
        let read_only = site.token("read", None).await.1;
        let refused = cli(&site, home, &site_words(&["--token", &read_only], &one)).await;
        assert!(refused.code == 1 && refused.err.starts_with("403: "), "it says so, and fails: {}", refused.err);
    });
}

#[test]
fn real_client_25_the_command_line_makes_a_site_private() {
    with_pods("real_client_25", async |pods| {
        let (_hub, site) = (pods.world.start_hub().await, pods.reports().await);
        site.must_put("plan.txt", b"the plan").await;
        let homes = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [nobody, alice, bob] = [0, 1, 2].map(|at| homes[at].path());
        let me = cli(&site, nobody, &["auth", "whoami", "-o", "json"]).await.well();
        assert!(me.contains("anonymous"), "{me}");
        for (home, name) in [(alice, "alice"), (bob, "bob")] {
            cli(&site, home, &["auth", "login", "--username", name]).await.well();
            let me: Value =
                serde_json::from_str(&cli(&site, home, &["-o", "json", "auth", "whoami"]).await.well()).unwrap();
            assert_eq!((&me["user"], &me["roles"]), (&json!(name), &json!(["user"])));
        }
        let read = async || site.raw("GET", &format!("{}/plan.txt", site.prefix)).send().await;
        assert_eq!(read().await.text(), "the plan", "anybody reads it");

        // Who is no administrator of the site may not, nor make it public again who is one.
        let words = site_words(&[], &["update", "set:share:accessgroups", "weather"]);
        let refused = cli(&site, bob, &words).await;
        assert!(refused.code == 1 && refused.err.starts_with("403"), "{}", refused.err);
        assert_eq!(cli(&site, alice, &words).await.well(), "private\n");
        eventually("it is private", LONG, async || {
            let answer = read().await;
            if answer.status == 401 { Ok(()) } else { Err(format!("{}", answer.status)) }
        })
        .await;
        let listed = cli(&site, alice, &["list"]).await.well();
        assert!(listed.lines().any(|line| line == "team/reports"), "{listed}");
        // Bob is of that group; nobody knows the other one.
        for version in ["--v1", "--v2"] {
            let words = site_words(&[version], &["content", "list"]);
            assert_eq!(cli(&site, bob, &words).await.well(), "plan.txt\n", "{version}");
            let refused = cli(&site, nobody, &words).await;
            assert!(refused.code == 1 && refused.err.starts_with("401"), "{}", refused.err);
        }
        std::fs::write(bob.join("x.txt"), "x").unwrap();
        let upload = site_words(&[], &["content", "upload", "-s", "x.txt", "--yes"]);
        let refused = cli(&site, bob, &upload).await;
        assert!(refused.code == 1 && refused.err.starts_with("403"), "{}", refused.err);

        let token = ["--token", MASTER];
        let create = ["signed-urls", "create", "--url", "plan.txt", "--duration", "600"];
        let signed = cli(&site, nobody, &site_words(&token, &create)).await.well();
        let opened = site.raw("GET", &site.local(signed.trim())).send().await;
        assert_eq!((opened.status, opened.text().as_str()), (200, "the plan"));
        for (url, told) in
            [(signed.trim().to_owned(), "valid\n"), (signed.trim().replace("plan", "plot"), "not valid\n")]
        {
            let verify = ["signed-urls", "verify", "--signed", &url];
            assert_eq!(cli(&site, nobody, &site_words(&token, &verify)).await.well(), told);
        }
    });
}
