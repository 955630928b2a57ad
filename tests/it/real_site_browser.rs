//! A Site as people use it with a browser, on a real node: headless Chromium, the provider's login page, the file
//! manager with scripts and without, and the Hub's switches for who may see a Site.

use serde_json::{Value, json};
use tokio::sync::MutexGuard;
use xtask::cluster::node::{OPENID_HOST, SITES_HOST};

use crate::support::browser::Browser;
use crate::support::{LONG, Lab, World, eventually};

/// A name that would run if it became markup.
const HOSTILE: &str = "<img src=x onerror=\"window.owned=1\">";
const GONE: &str = "This site is archived";

/// A page of a visitor's own: what it shows depends on a script, which a site may have.
const PLAN: &str = "<!doctype html><title>Plan</title><link rel=icon href=data:,><h1>The plan</h1><script>document.body.append(' works')</script>";

/// The Site, its Hub and somebody's browsers.
struct Stage {
    world: World,
    browser: Browser,
    /// Address of the Site, with a slash at its end.
    site: String,
    _hub: MutexGuard<'static, ()>,
}

impl Stage {
    async fn set(lab: &'static Lab) -> Self {
        let mut world = World::on_node(lab, "browser").await;
        world.settings["hub"] = json!({"platform_administrators": {"groups": ["sites-admins"]}});
        let hub = world.start_hub().await;
        let configuration = json!({
            "space": world.namespace, "applications": [{"name": "site-admin"}],
            "headers": {"X-Team": "docs", "Content-Security-Policy": "img-src 'self' data:"},
        });
        world.site("page", json!({"owner": "alice", "type": "public", "configuration": configuration})).await;
        let site = format!("https://{SITES_HOST}/{}/page/", world.namespace);
        let browser = Browser::start(&lab.edge()).await;
        Self { world, browser, site, _hub: hub }
    }

    /// Opens a page until it is as wanted: routes and pods follow an edit after a while.
    async fn shows(&mut self, who: &str, path: &str, status: u64, text: &str) -> Value {
        let url = format!("{}{path}", self.site);
        // The browser is one, and a closure that is polled cannot lend it.
        let browser = tokio::sync::Mutex::new(&mut self.browser);
        eventually(&format!("{url} shows {who} {text:?}"), LONG, || async {
            let mut browser = browser.lock().await;
            let seen = browser.attempt(who, "open", json!({"url": url})).await?;
            let body = browser.attempt(who, "see", json!({"at": "body"})).await?;
            let found = seen["status"] == status && body.as_str().unwrap_or_default().contains(text);
            if found { Ok(seen) } else { Err(format!("{seen}: {body}")) }
        })
        .await
    }

    /// Changes the Site over the Hub's API with the session of `who`, whose page is on the same host.
    async fn hub(&mut self, who: &str, method: &str, below: &str, body: &Value) -> Value {
        let path = format!("/hub/api/v2/sites/{}/page/{below}", self.world.namespace);
        let script = format!(
            "(async () => {{
                const me = await (await fetch('/hub/api/v2/whoami/')).json();
                const headers = {{'Content-Type': 'application/json', 'X-CSRF-Token': me.csrf_token ?? ''}};
                const answer = await fetch('{path}', {{method: '{method}', headers, body: JSON.stringify({body})}});
                return {{status: answer.status, told: await answer.json(), me}};
            }})()"
        );
        self.browser.run(who, &script).await
    }

    /// Logs in at the Hub and goes to a page of the Site.
    async fn log_in_at_hub(&mut self, who: &str, path: &str) {
        let hub = format!("https://{SITES_HOST}/hub/");
        let seen = self.browser.open(who, &format!("{hub}login/?next=/hub/")).await;
        // Who is logged in at the provider is not asked again.
        if seen["url"].as_str().unwrap().starts_with(&format!("https://{OPENID_HOST}/")) {
            self.browser.log_in(who, who).await;
        }
        self.browser.see(who, "main", who).await;
        self.browser.open(who, &format!("{}{path}", self.site)).await;
    }

    async fn no_trouble(&mut self, who: &str, where_: &str) {
        let trouble = self.browser.trouble(who).await;
        assert!(trouble.is_empty(), "{where_}: {trouble:#?}");
    }
}

/// The row of a file.
fn row(name: &str) -> String {
    format!("tr[data-name='{name}']")
}

/// Upload, edit, rename and delete, as the owner does it.
async fn files_are_managed(stage: &mut Stage) {
    let who = "alice";
    let files = format!("{}s/admin/files/", stage.site);
    stage.shows(who, "s/admin/", 200, "Log in").await;
    stage.browser.at(who, &format!("https://{OPENID_HOST}/")).await;
    stage.browser.shot(who, "login").await;
    stage.browser.log_in(who, who).await;
    stage.browser.at(who, &files).await;
    stage.browser.see(who, ".caller", "alice").await;
    stage.browser.see(who, ".tools", "Upload files").await;
    stage.browser.trouble(who).await;

    // By the chooser, with progress; by drag and drop.
    let browser = &mut stage.browser;
    let big = "line of a large file\n".repeat(200_000);
    browser.choose(who, "#upload", "large.txt", &big).await;
    browser.see(who, &row("large.txt"), "4.0 MiB").await;
    let progress = browser.run(who, "JSON.parse(sessionStorage.getItem('progress'))").await;
    let progress = progress.as_array().expect("the bar was shown");
    assert!(progress.iter().any(|value| value.as_f64() == Some(1.0)), "{progress:?}");
    assert!(browser.drop_file(who, "plan.html", PLAN).await, "the page shows where files may be dropped");
    browser.see(who, &row("plan.html"), "plan.html").await;

    // A new folder, a text file in it, edited, renamed.
    browser.click(who, "#new-folder", Some("notes")).await;
    browser.see(who, &row("notes"), "notes/").await;
    browser.click(who, &format!("{} a", row("notes")), None).await;
    browser.at(who, &format!("{files}notes/")).await;
    browser.click(who, "#new-file", Some("todo.txt")).await;
    browser.fill(who, "#editor-text", "first\n").await;
    browser.click(who, "#editor-save", None).await;
    browser.see(who, &row("todo.txt"), "6 B").await;
    browser.click(who, &format!("{} [data-act=edit]", row("todo.txt")), None).await;
    browser.see(who, "#editor", "todo.txt").await;
    assert_eq!(browser.value(who, "#editor-text").await, "first\n");
    browser.shot(who, "editor").await;
    browser.fill(who, "#editor-text", "second, and more\n").await;
    browser.click(who, "#editor-save", None).await;
    browser.see(who, &row("todo.txt"), "17 B").await;
    browser.click(who, &format!("{} [data-act=move]", row("todo.txt")), Some("notes/done.txt")).await;
    browser.see(who, &row("done.txt"), "17 B").await;
    browser.gone(who, &row("todo.txt"), "").await;
    let text = browser.open(who, &format!("{}notes/done.txt", stage.site)).await;
    assert_eq!(text["status"], 200, "{text}");
    stage.browser.see(who, "body", "second, and more").await;

    // A dialog that is dismissed changes nothing; one that is accepted deletes.
    let browser = &mut stage.browser;
    browser.open(who, &files).await;
    let delete = format!("{} [data-act=delete]", row("large.txt"));
    browser.click(who, &delete, None).await;
    browser.open(who, &files).await;
    browser.click(who, &delete, Some("")).await;
    browser.gone(who, &row("large.txt"), "").await;
    browser.see(who, &row("plan.html"), "plan.html").await;
    browser.shot(who, "file-manager").await;
    stage.no_trouble(who, "the file manager").await;
}

/// Names are text wherever they are shown: in the file manager, its title, and a listing.
async fn no_name_runs(stage: &mut Stage) {
    let who = "alice";
    let files = format!("{}s/admin/files/", stage.site);
    let owned = "typeof window.owned";
    stage.browser.open(who, &files).await;
    stage.browser.click(who, "#new-folder", Some(HOSTILE)).await;
    stage.browser.see(who, "tbody", HOSTILE).await;
    assert_eq!(stage.browser.run(who, owned).await, "undefined");
    let folder: String = form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect::<String>().replace('+', "%20");
    let opened = stage.browser.open(who, &format!("{files}{folder}/")).await;
    assert!(opened["title"].as_str().unwrap().contains(HOSTILE), "{opened}");
    assert_eq!(stage.browser.run(who, owned).await, "undefined");
    // The folder has no page of its own: its listing is the server's.
    stage.browser.drop_file(who, HOSTILE, "x").await;
    stage.browser.see(who, "tbody", HOSTILE).await;
    let listing = stage.browser.open(who, &format!("{}{folder}/", stage.site)).await;
    assert_eq!(listing["status"], 200, "{listing}");
    stage.browser.see(who, "body", "onerror").await;
    assert_eq!(stage.browser.run(who, owned).await, "undefined");
    stage.no_trouble(who, "hostile names").await;
}

/// Without scripts everything can be looked at, and nothing pretends to work.
async fn scripts_are_not_needed_to_look(stage: &mut Stage) {
    let (who, files) = ("alice-plain", format!("{}s/admin/files/", stage.site));
    stage.browser.person(who, false).await;
    stage.browser.open(who, &files).await;
    stage.browser.log_in(who, "alice").await;
    stage.browser.at(who, &files).await;
    let shown = stage.browser.see(who, "main", "").await;
    for text in ["plan.html", "notes/", "Scripts are off"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    stage.browser.gone(who, ".tools", "").await;
    stage.browser.click(who, "text=notes/", None).await;
    stage.browser.see(who, "main", "done.txt").await;
    stage.browser.click(who, "nav >> text=Access tokens", None).await;
    stage.browser.see(who, "main", "There are none.").await;
}

/// Who may see the Site, by the Hub's switches: private, shared with a group, archived, back.
async fn the_site_is_closed_and_opened(stage: &mut Stage) {
    // Public: everybody sees the page as it is, with the Site's own headers.
    stage.browser.person("stranger", true).await;
    let seen = stage.shows("stranger", "plan.html", 200, "works").await;
    assert_eq!((&seen["title"], &seen["headers"]["x-team"]), (&json!("Plan"), &json!("docs")), "{seen}");
    assert_eq!(seen["headers"]["content-security-policy"], "img-src 'self' data:", "{seen}");
    stage.no_trouble("stranger", "a public page").await;

    // Only the platform's administrators change who may see a Site at all.
    stage.browser.person("carol-admin", true).await;
    stage.log_in_at_hub("carol-admin", "plan.html").await;
    let told = stage.hub("carol-admin", "PATCH", "", &json!({"type": "private"})).await;
    assert_eq!((&told["status"], &told["told"]["type"]), (&json!(200), &json!("private")), "{told}");
    stage.shows("stranger", "plan.html", 200, "Log in").await;
    stage.browser.at("stranger", &format!("https://{OPENID_HOST}/")).await;
    stage.shows("alice", "plan.html", 200, "works").await;

    // Bob is told that it is not for him, until it is shared with his group.
    stage.browser.person("bob", true).await;
    stage.browser.open("bob", &format!("{}plan.html", stage.site)).await;
    stage.browser.log_in("bob", "bob").await;
    stage.shows("bob", "plan.html", 403, "You may not see this page").await;
    stage.browser.shot("bob", "forbidden").await;
    stage.log_in_at_hub("alice", "plan.html").await;
    let told = stage.hub("alice", "PATCH", "", &json!({"share": {"view_groups": ["weather"]}})).await;
    assert_eq!(told["status"], 200, "{told}");
    stage.shows("bob", "plan.html", 200, "works").await;

    // Archived: its address says so to everybody. Back again, everything is there.
    let told = stage.hub("alice", "POST", "toggle/", &json!({"enabled": false})).await;
    assert_eq!((&told["status"], &told["told"]["enabled"]), (&json!(200), &json!(false)), "{told}");
    let gone = stage.shows("bob", "plan.html", 410, GONE).await;
    assert_eq!(gone["url"], format!("https://{SITES_HOST}/hub/error/page/410/"));
    stage.browser.shot("bob", "archived").await;
    // No page of the Site is left to call from, and the Hub's own lets no script reach out.
    stage.world.edit_site("page", json!({"spec": {"configuration": {"enabled": true}}})).await;
    stage.shows("bob", "plan.html", 200, "works").await;
    stage.shows("bob", "notes/done.txt", 200, "second, and more").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn real_site_browser_owner_and_visitors() {
    let Some(lab) = Lab::node("real_site_browser").await else { return };
    let mut stage = Stage::set(lab).await;
    let _operator = stage.world.start_operator().await;
    stage.world.pod_is_ready("page").await;
    stage.browser.person("alice", true).await;
    files_are_managed(&mut stage).await;
    no_name_runs(&mut stage).await;
    scripts_are_not_needed_to_look(&mut stage).await;
    the_site_is_closed_and_opened(&mut stage).await;
    stage.world.end().await;
}
