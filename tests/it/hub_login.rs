//! Who is who at a real Hub with a real provider: sessions of browsers, tokens of programs.

use http::Method;
use serde_json::{Value, json};

use crate::support::hub::ask;
use crate::support::openid::{ADMINISTRATORS, Key, encoded};
use crate::support::visitor::Visitor;
use crate::support::{HUB, HubProcess, OpenId, Redis, SOON, Start, World, eventually};

const WHOAMI: &str = "/hub/api/v2/whoami/";

async fn world() -> (World, &'static OpenId) {
    (World::new("hub-login").await, OpenId::get().await)
}

/// Who a browser is at the Hub.
async fn whoami(browser: &Visitor) -> Value {
    let answer = browser.request(&Method::GET, &format!("{HUB}{WHOAMI}"), &[], "").await.unwrap();
    assert_eq!(answer.status(), 200);
    serde_json::from_slice(answer.body()).unwrap()
}

/// A browser in which somebody has logged in.
async fn logged_in(hub: &HubProcess, openid: &OpenId, user: &str) -> Visitor {
    let browser = hub.browser(openid);
    let seen = browser.log_in(&format!("{HUB}/hub/login/"), user).await.unwrap();
    assert_eq!((seen.status, seen.address.as_str()), (200, "https://sites.example.test/hub/"), "{}", seen.text);
    browser
}

/// The value of a cookie in a `Cookie` header.
fn sent(browser: &Visitor) -> String {
    browser.cookies_at(&format!("{HUB}/hub/"))
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_login_by_a_browser_and_out_again() {
    let (mut world, openid) = world().await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let hub = world.start_hub_process(openid).await;
    let other = world.start_hub_process(openid).await;
    let browser = hub.browser(openid);
    assert_eq!(whoami(&browser).await["roles"], json!(["anonymous"]));

    // The provider is asked for a code that only this browser can redeem.
    let begun = browser.request(&Method::GET, &format!("{HUB}/hub/login/"), &[], "").await.unwrap();
    let location = begun.headers()["location"].to_str().unwrap().to_owned();
    assert!(location.starts_with(&format!("{}/auth?", openid.issuer())), "{location}");
    for part in ["response_type=code", "code_challenge_method=S256", "code_challenge=", "state=", "nonce="] {
        assert!(location.contains(part), "{part}: {location}");
    }

    let browser = logged_in(&hub, openid, "alice").await;
    let me = whoami(&browser).await;
    assert_eq!(
        (&me["user"], &me["groups"], &me["roles"], &me["credential"]),
        (&json!("alice"), &json!(["docs"]), &json!(["user"]), &json!("session")),
    );
    assert_eq!(me["email"], "alice@example.test");
    let cookies = browser.set_cookies();
    let session = cookies.iter().find(|line| line.starts_with("__Secure-sites-hub=")).unwrap();
    for attribute in ["HttpOnly", "Secure", "SameSite=Lax", "Path=/hub"] {
        assert!(session.split("; ").any(|part| part == attribute), "{attribute}: {session}");
    }
    for line in &cookies {
        assert!(!line.contains("alice"), "a cookie can be read: {line}");
    }
    assert!(!sent(&browser).contains("sites-login"), "a login that is over leaves nothing: {}", sent(&browser));

    // Any replica knows the session; after signing out a copy of it is nobody, at any.
    let copy = sent(&browser);
    let as_copy = [("cookie", copy.as_str())];
    assert_eq!(other.ask("GET", WHOAMI, &as_copy, "").await.json()["user"], "alice");
    let form = format!("csrf_token={}", me["csrf_token"].as_str().unwrap());
    let out = browser.request(&Method::POST, &format!("{HUB}/hub/logout/"), &[], &form).await.unwrap();
    assert_eq!(out.status(), 303);
    let location = out.headers()["location"].to_str().unwrap();
    assert!(location.starts_with(&format!("{}/session/end?client_id=sites&", openid.issuer())), "{location}");
    assert_eq!(whoami(&browser).await["user"], Value::Null);
    for hub in [&hub, &other] {
        assert_eq!(hub.ask("GET", WHOAMI, &as_copy, "").await.json()["user"], Value::Null, "a stolen copy lives on");
    }
    // The provider knows the person still until they confirm at its page; then it asks for the password.
    let end = browser.open(location).await.unwrap();
    assert_eq!(end.status, 200, "{}", end.text);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_login_in_several_tabs_at_once() {
    let (world, openid) = world().await;
    let hub = world.start_hub_process(openid).await;
    let browser = hub.browser(openid);
    let first = browser.open(&format!("{HUB}/hub/login/?next=/hub/?tab=1")).await.unwrap();
    let second = browser.open(&format!("{HUB}/hub/login/?next=/hub/?tab=2")).await.unwrap();
    for (tab, page) in [(1, first), (2, second)] {
        let seen = browser.fill_in(&page, "bob").await.unwrap();
        assert_eq!((seen.status, seen.address), (200, format!("{HUB}/hub/?tab={tab}")), "{}", seen.text);
    }
    // Begun again and again: the browser does not drown in cookies.
    for _ in 0..8 {
        browser.request(&Method::GET, &format!("{HUB}/hub/login/"), &[], "").await.unwrap();
    }
    assert_eq!(sent(&browser).matches("__Secure-sites-login-").count(), 5);

    // Somebody else's answer, a used one, and none.
    let begun = browser.request(&Method::GET, &format!("{HUB}/hub/login/"), &[], "").await.unwrap();
    let location = begun.headers()["location"].to_str().unwrap().to_owned();
    let back = browser.request(&Method::GET, &location, &[], "").await.unwrap();
    let mut back = back.headers()["location"].to_str().unwrap().to_owned();
    if !back.starts_with(HUB) {
        // The provider resumes a login that it knows by one more step.
        let at = if back.starts_with('/') { format!("{}{back}", openid.issuer()) } else { back };
        let resumed = browser.request(&Method::GET, &at, &[], "").await.unwrap();
        back = resumed.headers()["location"].to_str().unwrap().to_owned();
    }
    let stranger = hub.browser(openid);
    assert_eq!(stranger.open(&back).await.unwrap().status, 400, "a code of another browser");
    assert_eq!(whoami(&stranger).await["user"], Value::Null);
    assert_eq!(browser.open(&back).await.unwrap().status, 200);
    let again = browser.open(&back).await.unwrap();
    assert_eq!(again.status, 400);
    assert!(again.text.contains("begin again at /hub/login/"), "{}", again.text);
    assert_eq!(browser.open(&format!("{HUB}/hub/callback/")).await.unwrap().status, 400);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_login_a_session_ends_and_cannot_be_made() {
    let (world, openid) = world().await;
    let hub = world.start_hub_process(openid).await;
    let browser = logged_in(&hub, openid, "alice").await;
    let cookies = sent(&browser);
    let who = async |hub: &HubProcess, cookies: &str| {
        let told = hub.ask("GET", WHOAMI, &[("cookie", cookies)], "").await;
        told.json()["user"].clone()
    };
    assert_eq!(who(&hub, &cookies).await, "alice");
    // One bit of it, then another key.
    let value = cookies.find("sites-hub=").unwrap() + 30;
    let other = if &cookies[value..=value] == "A" { "B" } else { "A" };
    let tampered = [&cookies[..value], other, &cookies[value + 1..]].concat();
    assert_eq!(who(&hub, &tampered).await, Value::Null);
    let settings = json!({"session": {"secret_key": "another-key-0123456789"}});
    let rekeyed = world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await;
    assert_eq!(who(&rekeyed, &cookies).await, Value::Null);

    // A lifetime of one second ends while we look.
    let settings = json!({"hub": {"session_lifetime": "1s"}});
    let short = world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await;
    let browser = short.browser(openid);
    browser.log_in(&format!("{HUB}/hub/login/"), "alice").await.unwrap();
    eventually("the session ends", SOON, || async { whoami(&browser).await["user"].is_null() }).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_login_many_groups_fit_and_names_are_exact() {
    let (world, openid) = world().await;
    let settings = json!({"hub": {"platform_administrators": {"users": ["bo"], "groups": [ADMINISTRATORS, "doc"]}}});
    let hub = world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await;
    let browser = logged_in(&hub, openid, "many").await;
    assert_eq!(whoami(&browser).await["groups"].as_array().unwrap().len(), 300);
    let session = browser.set_cookies().into_iter().filter(|line| line.starts_with("__Secure-sites-hub")).count();
    assert!(session > 1, "300 groups are more than a cookie takes");
    // The same browser, somebody with less: what is left of the others is gone.
    browser.post(&format!("{HUB}/hub/logout/"), &format!("csrf_token={}", csrf(&browser).await)).await.unwrap();
    assert_eq!(sent(&browser), "");

    for (user, roles) in [
        ("carol-admin", json!(["user", "platform-administrator"])),
        ("alice", json!(["user"])),
        ("bob", json!(["user"])),
    ] {
        let told = hub.get(WHOAMI, &openid.token(user)).await.json();
        assert_eq!((&told["user"], &told["roles"], &told["credential"]), (&json!(user), &roles, &json!("bearer")));
        assert_eq!(told.get("csrf_token"), None);
    }
    // By another claim, as one text; and by none.
    let settings = json!({"oidc": {"groups_claim": "role"}});
    let by_role = world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await;
    let token = openid.token_with("alice", &json!({"role": ADMINISTRATORS}));
    let told = by_role.get(WHOAMI, &token).await.json();
    assert_eq!((&told["groups"], told["roles"].as_array().unwrap().len()), (&json!([ADMINISTRATORS]), 2));
    assert_eq!(by_role.get(WHOAMI, &openid.token("carol-admin")).await.json()["groups"], json!([]));
    world.end().await;
}

async fn csrf(browser: &Visitor) -> String {
    whoami(browser).await["csrf_token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_login_a_forged_form_changes_nothing() {
    let (world, openid) = world().await;
    let hub = world.start_hub_process(openid).await;
    let browser = logged_in(&hub, openid, "alice").await;
    let token = csrf(&browser).await;
    let logout = format!("{HUB}/hub/logout/");
    let (json, form) = ("application/json", "application/x-www-form-urlencoded");
    for (headers, body, status) in [
        (&[("content-type", form)][..], "", 403),
        (&[("content-type", form)], "csrf_token=x", 403),
        (&[("content-type", json)], "{}", 403),
        (&[("content-type", json), ("x-csrf-token", &token), ("origin", "https://evil.test")], "{}", 403),
        (&[("content-type", json), ("x-csrf-token", &token), ("sec-fetch-site", "cross-site")], "{}", 403),
        (&[("content-type", "text/plain"), ("x-csrf-token", &token)], "{}", 415),
        (&[("content-type", json), ("x-csrf-token", &token), ("origin", HUB)], "{}", 303),
    ] {
        let answer = browser.request(&Method::POST, &logout, headers, body).await.unwrap();
        assert_eq!(answer.status(), status, "{headers:?}");
        assert_eq!(whoami(&browser).await["user"].is_null(), status == 303, "{headers:?}");
    }
    // A program has no page that could be forged.
    let told = hub.json("POST", "/hub/logout/", &openid.token("alice"), &json!({})).await;
    assert_eq!(told.status, 400, "{}", told.text());
    assert!(told.json()["message"].as_str().unwrap().contains("a token has no session"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_login_tokens_of_others_are_refused() {
    let (world, openid) = world().await;
    let hub = world.start_hub_process(openid).await;
    let now = jiff::Timestamp::now().as_second();
    let (claims, key) = (openid.claims("alice"), openid.key());
    let stranger = Key::new(&key.kid).await;
    let header = |algorithm: &str| json!({"alg": algorithm, "kid": key.kid, "typ": "JWT"});
    let unsigned = format!("{}.{}.", encoded(&header("none")), encoded(&claims));
    for (what, token) in [
        ("another audience", openid.token_with("alice", &json!({"aud": "grafana"}))),
        ("another issuer", openid.token_with("alice", &json!({"iss": "https://id.evil.test"}))),
        ("expired", openid.token_with("alice", &json!({"exp": now - 61}))),
        ("no end", openid.token_with("alice", &json!({"exp": null}))),
        ("from the future", openid.token_with("alice", &json!({"iat": now + 600}))),
        ("not yet", openid.token_with("alice", &json!({"nbf": now + 600}))),
        ("nobody", openid.token_with("alice", &json!({"sub": ""}))),
        ("bound to a key", openid.token_with("alice", &json!({"cnf": {"jkt": "x"}}))),
        ("not signed", unsigned),
        ("a shared secret", key.sign_with(&header("HS256"), &claims)),
        ("another algorithm", key.sign_with(&header("PS256"), &claims)),
        ("a logout", key.sign_with(&json!({"alg": "RS256", "kid": key.kid, "typ": "logout+jwt"}), &claims)),
        ("another key by the same name", stranger.sign(&claims)),
        ("a changed claim", {
            let mut parts: Vec<String> = openid.token("alice").split('.').map(str::to_owned).collect();
            parts[1] = encoded(&openid.claims("carol-admin"));
            parts.join(".")
        }),
        ("garbage", "a.b.c".to_owned()),
        ("an unknown opaque one", "nobody-knows-this".to_owned()),
    ] {
        let told = hub.get(WHOAMI, &token).await;
        assert_eq!(told.status, 401, "{what}: {}", told.text());
        let challenge = told.header("www-authenticate");
        assert!(
            challenge.starts_with("Bearer ") && challenge.contains("error=\"invalid_token\""),
            "{what}: {challenge}"
        );
        assert!(!told.text().contains(&token), "{what}: the answer repeats the token");
    }
    for given in ["Basic YTpi", "Bearer", "Bearer "] {
        let told = hub.ask("GET", WHOAMI, &[("authorization", given)], "").await;
        assert_eq!(told.status, 401, "{given}");
    }
    // What is right: within the skew, an ID token's audience list, the provider's own, an opaque one.
    for token in [
        openid.token_with("alice", &json!({"exp": now - 5, "iat": now + 5, "nbf": now + 5})),
        openid.token_with("alice", &json!({"aud": ["grafana", "sites"]})),
        openid.client_token().await,
        openid.opaque_token().await,
    ] {
        let told = hub.get(WHOAMI, &token).await;
        assert_eq!(told.status, 200, "{}", told.text());
        assert!(told.json()["user"].is_string());
    }
    // Nobody's token is in a log line.
    let log = hub.process.log_text();
    let signature = openid.token("alice").rsplit_once('.').unwrap().1.to_owned();
    assert!(log.contains("answered") && !log.contains(&signature[..40]));
    // An audience of its own.
    let settings = json!({"hub": {"audience": "urn:hub"}});
    let own = world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await;
    assert_eq!(own.get(WHOAMI, &openid.token("alice")).await.status, 401);
    assert_eq!(own.get(WHOAMI, &openid.token_with("alice", &json!({"aud": "urn:hub"}))).await.status, 200);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_login_a_fresh_one_asks_for_the_password() {
    let (world, openid) = world().await;
    let hub = world.start_hub_process(openid).await;
    let warned = hub.process.logs_with("sites share the Hub's host");
    assert_eq!(warned.len(), 1, "a shared host is said at the start");
    // The same, but there a login is old after a second.
    let settings = json!({"hub": {"fresh_login": "1s"}});
    let strict = world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await;
    let browser = logged_in(&hub, openid, "alice").await;
    world.site("mine", json!({"owner": "alice", "configuration": {"tokens": {"master": "marker-4711"}}})).await;
    let token_path = "/hub/api/v2/sites/-/mine/master-token/";
    let at_strict = async || {
        let cookies = sent(&browser);
        strict.ask("GET", token_path, &[("cookie", cookies.as_str())], "").await
    };
    let gave_password =
        async || whoami(&browser).await["logged_in"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();

    // Who has just given the password is not asked for it once more.
    let first = gave_password().await;
    let shown = browser.request(&Method::GET, &format!("{HUB}{token_path}"), &[], "").await.unwrap();
    assert_eq!(shown.status(), 200, "{:?}", shown.body());
    let told = eventually("the login grows old", SOON, || async {
        let told = at_strict().await;
        if told.status == 403 { Ok(told) } else { Err(told.text()) }
    })
    .await;
    assert!(told.text().contains("/hub/login/?fresh=1&next=") && !told.text().contains("marker"), "{}", told.text());
    let delete = async |hub: &HubProcess| {
        let (cookies, token) = (sent(&browser), csrf(&browser).await);
        let headers = [("cookie", cookies.as_str()), ("x-csrf-token", token.as_str())];
        let told = hub.ask("DELETE", "/hub/api/v2/sites/-/mine/", &headers, "").await;
        (told.status, told.text())
    };
    let (status, text) = delete(&strict).await;
    assert!(status == 403 && text.contains("/hub/login/?fresh=1&next="), "{status} {text}");
    assert!(world.get("Site", "mine").await.is_some());

    // The provider knows her: a login goes through without the password, and is as old as that.
    assert_eq!(
        browser.open(&format!("{HUB}/hub/login/?next=/hub/%3Fa")).await.unwrap().address,
        format!("{HUB}/hub/?a")
    );
    assert_eq!((gave_password().await, at_strict().await.status), (first, 403));
    // Nor does it help to take the question out of a fresh one.
    let begun = browser.request(&Method::GET, &format!("{HUB}/hub/login/?fresh=1"), &[], "").await.unwrap();
    let location = begun.headers()["location"].to_str().unwrap().to_owned();
    assert!(location.contains("&prompt=login") && location.contains("&max_age=0"), "{location}");
    let silent = location.replace("&prompt=login", "").replace("&max_age=0", "");
    let seen = browser.open(&silent).await.unwrap();
    assert!(seen.status == 403 && seen.text.contains("did not ask for the password"), "{seen:?}");

    // A fresh one asks.
    let page = browser.open(&format!("{HUB}/hub/login/?fresh=1&next=/hub/%3Fb")).await.unwrap();
    assert!(page.address.contains("/interaction/"), "{page:?}");
    let seen = browser.fill_in(&page, "alice").await.unwrap();
    assert_eq!(seen.address, format!("{HUB}/hub/?b"), "{}", seen.text);
    assert!(gave_password().await > first);
    let (status, text) = delete(&hub).await;
    assert_eq!(status, 202, "{text}");
    let settings = json!({"routing": {"hub_host": "hub.example.test"}});
    let apart = world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await;
    assert!(apart.process.logs_with("sites share the Hub's host").is_empty());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_login_goes_on_without_redis_and_says_when_the_provider_is_gone() {
    let (mut world, _) = world().await;
    let openid = OpenId::start().await;
    let mut redis = Redis::start().await;
    world.with_redis(&redis);
    let hub = world.start_hub_process(&openid).await;
    let browser = logged_in(&hub, &openid, "alice").await;
    redis.kill();
    assert_eq!(whoami(&browser).await["user"], "alice", "a lost Redis logs nobody out");
    let copy = sent(&browser);
    let form = format!("csrf_token={}", csrf(&browser).await);
    browser.request(&Method::POST, &format!("{HUB}/hub/logout/"), &[], &form).await.unwrap();
    let told = hub.ask("GET", WHOAMI, &[("cookie", copy.as_str())], "").await;
    assert_eq!(told.json()["user"], Value::Null, "this replica still knows who has left");

    let token = openid.token("bob");
    let fresh = world.start_hub_process(&openid).await;
    openid.stop();
    let told = fresh.get(WHOAMI, &token).await;
    assert_eq!(told.status, 503, "{}", told.text());
    assert!(told.json()["message"].as_str().unwrap().contains("the identity provider does not answer"));
    assert_eq!(fresh.get(WHOAMI, "").await.status, 200, "who needs no provider is served");
    let state = hub.ask("GET", "/hub/callback/?code=x&state=x", &[("accept", "text/html")], "").await;
    assert_eq!((state.status, state.header("content-type").as_str()), (400, "text/html; charset=utf-8"));
    world.end().await;
}

/// The lines of `docs/hub.md` for a command line.
#[tokio::test(flavor = "multi_thread")]
async fn hub_login_by_a_device() {
    let (world, openid) = world().await;
    let hub = world.start_hub_process(openid).await;
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let asked = "client_id=sites-cli&scope=openid%20email%20groups";
    let device = ask(openid.address(), "POST", "/device/auth", &form, asked).await.unwrap();
    assert_eq!(device.status, 200, "{}", device.text());
    let device = device.json();
    let code = device["device_code"].as_str().unwrap();
    let redeem =
        format!("client_id=sites-cli&grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code={code}");
    let early = ask(openid.address(), "POST", "/token", &form, redeem.clone()).await.unwrap();
    assert_eq!(early.json()["error"], "authorization_pending");

    // A person at any browser: the code is confirmed, then they log in.
    let browser = hub.browser(openid);
    let mut page = browser.open(device["verification_uri_complete"].as_str().unwrap()).await.unwrap();
    // Each page is one form with hidden fields.
    for _ in 0..3 {
        if page.address.contains("/interaction/") {
            page = browser.fill_in(&page, "alice").await.unwrap();
            continue;
        }
        let fields: Vec<String> = page
            .text
            .split("<input ")
            .skip(1)
            .filter_map(|input| {
                let attribute =
                    |name: &str| Some(input.split_once(&format!("{name}=\""))?.1.split('"').next()?.to_owned());
                Some(format!("{}={}", attribute("name")?, attribute("value")?))
            })
            .collect();
        if fields.is_empty() {
            break;
        }
        let confirmed = format!("{}&confirm=yes", fields.join("&"));
        page = browser.post(&format!("{}/device", openid.issuer()), &confirmed).await.unwrap();
    }
    let given = ask(openid.address(), "POST", "/token", &form, redeem).await.unwrap();
    assert_eq!(given.status, 200, "{} after {page:?}", given.text());
    let token = given.json()["access_token"].as_str().unwrap().to_owned();
    let me = hub.get(WHOAMI, &token).await.json();
    assert_eq!((&me["user"], &me["groups"]), (&json!("alice"), &json!(["docs"])));
    world.end().await;
}

/// The address with another value of one parameter.
fn altered(address: &str, name: &str, value: &str) -> String {
    let mut url = reqwest::Url::parse(address).unwrap();
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    assert!(pairs.iter().any(|(key, _)| key == name), "{name}: {address}");
    let pairs = pairs.into_iter().map(|(key, old)| if key == name { (key, value.to_owned()) } else { (key, old) });
    url.query_pairs_mut().clear().extend_pairs(pairs.collect::<Vec<_>>());
    url.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_login_what_comes_back_belongs_to_what_was_begun() {
    let (world, openid) = world().await;
    let hub = world.start_hub_process(openid).await;
    let another = "an-0ther-value-of-at-least-43-characters-000000";
    for (name, status, said) in [
        ("nonce", 401, "it answers another login"),
        ("state", 400, "was not begun here"),
        // The provider keeps the code from who cannot show what this was made of.
        ("code_challenge", 400, "did not confirm the login"),
    ] {
        let browser = hub.browser(openid);
        let begun = browser.request(&Method::GET, &format!("{HUB}/hub/login/"), &[], "").await.unwrap();
        let location = begun.headers()["location"].to_str().unwrap().to_owned();
        let seen = browser.log_in(&altered(&location, name, another), "alice").await.unwrap();
        assert!(seen.status == status && seen.text.contains(said), "{name}: {seen:?}");
        assert_eq!(whoami(&browser).await["user"], Value::Null, "{name}");
    }
    world.end().await;
}
