//! B15: a text that would break out of shared configuration is refused, and when it slipped through it reaches no
//! object. What the rules allow is quoted: `render_nginx` and the tests of `render` show that half.

use serde_json::{Value, json};

use crate::support::api::{condition, kind_of};
use crate::support::older::{lab, refusal, write_before_the_rules};
use crate::support::{OpenId, World};

const MARKER: &str = "breakout";

/// Each is refused; the marker is in the hostile text.
fn hostile(world: &World) -> Vec<Value> {
    let configuration = |patch: Value| json!({"configuration": patch});
    let specs = vec![
        configuration(json!({"headers": {"X-A": format!("a\r\nSet-Cookie: {MARKER}=1")}})),
        configuration(json!({"headers": {"X-A": format!("a\n{MARKER}")}})),
        configuration(json!({"headers": {"X-A": format!("a\0{MARKER}")}})),
        configuration(json!({"headers": {"X-A": format!("a%0D%0aSet-Cookie: {MARKER}=1")}})),
        configuration(json!({"headers": {"X-A": format!("a%C2%85{MARKER}")}})),
        configuration(json!({"headers": {format!("X-A\r\n{MARKER}"): "a"}})),
        configuration(json!({"headers": {format!("X {MARKER}"): "a"}})),
        configuration(json!({"headers": {format!("X;{MARKER}"): "a"}})),
        configuration(json!({"headers": {format!("X{{{MARKER}}}"): "a"}})),
        configuration(json!({"headers": {format!("X\"{MARKER}"): "a"}})),
        configuration(json!({"headers": {format!("X-Accel-{MARKER}"): "/internal"}})),
        json!({"name": format!("a\n{MARKER}")}),
        json!({"name": format!("a%0a{MARKER}")}),
        json!({"name": format!("{MARKER};}}")}),
        json!({"name": format!("$ {MARKER}")}),
        json!({"name": format!("../{MARKER}")}),
        configuration(json!({"space": format!("{MARKER}'\"")})),
        configuration(json!({"space": format!("#{MARKER}")})),
        configuration(json!({"space": format!("{MARKER}/..")})),
        configuration(json!({"settings": {"error_handling": {"not_found_page": format!("/{MARKER}\n")}}})),
        configuration(json!({"settings": {"error_handling": {"not_found_page": format!("/%2e%2e/{MARKER}")}}})),
        configuration(json!({"settings": {"error_handling": {"not_found_page": format!("/{MARKER}?a")}}})),
        configuration(json!({"applications": [{"name": "site-custom", "image": format!("a\n{MARKER}")}]})),
        configuration(json!({"applications": [{"name": format!("{MARKER}\n")}]})),
        configuration(json!({"share": {"view_groups": [format!("a\r\n{MARKER}")]}})),
        json!({"id": format!("{MARKER}\nid")}),
    ];
    specs.iter().enumerate().map(|(number, spec)| world.site_object(&format!("hostile-{number}"), spec)).collect()
}

#[tokio::test]
async fn b15_hostile_texts_are_refused_and_reach_no_object() {
    let Some(lab) = lab("b15_hostile_texts_are_refused_and_reach_no_object").await else { return };
    let world = World::on(&lab, "b15").await;
    let sites = hostile(&world);
    for site in &sites {
        let told = refusal(&world, site).await.unwrap_or_else(|| panic!("not refused: {site}"));
        assert!(told.contains("spec."), "{told}");
    }
    write_before_the_rules(&world, &sites).await;
    let _operator = world.start_operator().await;
    world.site("benign", json!({"configuration": {"headers": {"X-A": "\"; } ${x} # '"}}})).await;
    world.wait_phase("benign", "Running").await;
    for site in &sites {
        let name = site["metadata"]["name"].as_str().unwrap();
        let site = world.wait_condition(name, "Ready", "False").await;
        assert_eq!(condition(&site, "Ready").unwrap()["reason"], "Invalid", "{}", site["status"]);
        assert!(world.objects_of(name).await.is_empty());
    }
    for kind in
        ["Secret", "ConfigMap", "PersistentVolumeClaim", "StatefulSet", "Service", "Ingress", "HTTPRoute", "Pod"]
    {
        for object in world.api.list(kind, &world.namespace, "").await {
            assert!(!object.to_string().contains(MARKER), "{} {}", kind_of(&object), object["metadata"]["name"]);
        }
    }
    world.end().await;
}

/// The same texts as fields of the Hub's form.
fn as_form(site: &Value, number: usize) -> Value {
    let mut form = json!({"space": "docs", "name": format!("hostile-{number}")});
    let spec = site["spec"].as_object().unwrap();
    for field in ["name", "id"].iter().filter(|field| site["spec"][**field].to_string().contains(MARKER)) {
        form[*field] = spec[*field].clone();
    }
    for (field, value) in spec["configuration"].as_object().unwrap() {
        if value.to_string().contains(MARKER) {
            form[field.as_str()] = value.clone();
        }
    }
    assert!(form.to_string().contains(MARKER), "{site}");
    form
}

#[tokio::test(flavor = "multi_thread")]
async fn b15_the_hub_refuses_hostile_texts_and_names_the_field() {
    let world = World::new("b15-hub").await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let carol = openid.token("carol-admin");
    let benign = json!({"space": "docs", "name": "benign", "headers": {"X-A": "\"; } ${x} # '"}});
    let told = hub.json("POST", "/hub/api/v2/sites/", &carol, &benign).await;
    assert_eq!(told.status, 201, "{}", told.text());
    let id = told.json()["id"].as_str().unwrap().to_owned();
    let before = world.must("Site", &id).await["spec"].clone();
    for (number, site) in hostile(&world).iter().enumerate() {
        let form = as_form(site, number);
        let created = hub.json("POST", "/hub/api/v2/sites/", &carol, &form).await;
        let edited = hub.json("PATCH", "/hub/api/v2/sites/docs/benign/", &carol, &form).await;
        for told in [created, edited] {
            assert_eq!(told.status, 400, "{form}: {}", told.text());
            assert!(told.json()["errors"][0].as_str().unwrap().starts_with('['), "{form}: {}", told.text());
        }
    }
    let bearer = format!("Bearer {carol}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/x-www-form-urlencoded")];
    for pair in [format!("headers.X-A=a%0D%0ASet-Cookie%3A+{MARKER}"), format!("headers.X-A%0A{MARKER}=a")] {
        let told = hub.ask("PATCH", "/hub/api/v2/sites/docs/benign/", &headers, pair.clone()).await;
        assert_eq!(told.status, 400, "{pair}: {}", told.text());
    }
    for path in ["docs/a%0a", "docs/a%3b", "%7bdocs/a", "docs/..%2fa", "-/a%0ab"] {
        let told = hub.get(&format!("/hub/api/v2/sites/{path}/"), &carol).await;
        assert_eq!(told.status, 400, "{path}: {}", told.text());
    }
    assert_eq!(world.must("Site", &id).await["spec"], before);
    assert_eq!(world.api.list("Site", &world.namespace, "").await.len(), 1);
    world.end().await;
}
