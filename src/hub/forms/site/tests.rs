//! What the forms of a Site make of bodies.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn ana() -> Person {
    Person { user: "ana".to_owned(), email: "ana@example.org".to_owned(), ..Person::default() }
}

fn author(person: &Person, platform_administrator: bool) -> Author<'_> {
    Author { person, platform_administrator }
}

fn fresh() -> Fresh {
    Fresh { id: "site-1".to_owned(), token: "hunter2".to_owned(), today: jiff::civil::date(2026, 2, 27), quota: 2 }
}

fn catalog() -> Catalog {
    Catalog::new([(Builtin::Api, "sites:1".to_owned()), (Builtin::Webdav, "sites:1".to_owned())], &[]).unwrap()
}

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn site() -> Site {
    let body = json!({"space": "docs", "name": "fdb", "description": "x"});
    create(body, None, author(&ana(), false), &fresh()).unwrap()
}

fn edited(site: &Site, body: Value, method: Method, administrator: bool) -> Result<Edit, Vec<FieldError>> {
    let (catalog, groups) = (catalog(), ["staff".to_owned()]);
    let rules = Rules { catalog: &catalog, default_view: (&[], &groups), today: jiff::civil::date(2026, 3, 1) };
    edit(site, body, method, author(&ana(), administrator), rules)
}

#[test]
fn a_new_site_has_the_defaults() {
    let site = site();
    let configuration = &site.spec.configuration;
    assert_eq!((site.spec.id.as_str(), site.spec.owner.as_str()), ("site-1", "ana"));
    assert_eq!(site.spec.site_type, SiteType::Private);
    assert_eq!(configuration.registered_by.as_deref(), Some("ana"));
    assert_eq!(configuration.registered_date.as_deref(), Some("2026-02-27"));
    assert_eq!(configuration.retention_date.as_deref(), Some("2027-02-27"));
    assert_eq!(configuration.quota, Some(2));
    assert_eq!(configuration.tokens.master.as_ref().unwrap().expose(), "hunter2");
}

#[test]
fn a_template_lies_under_the_body() {
    let template =
        json!({"quota": 7, "description": "t", "headers": {"X-A": "a"}, "share": {"view_groups": ["staff"]}});
    let body = json!({"space": "docs", "name": "fdb", "description": "b", "headers": {"X-B": "b"}});
    let site = create(body, Some(template), author(&ana(), false), &fresh()).unwrap();
    let form = SiteForm::of(&site);
    assert_eq!((form.quota, form.description.as_deref(), form.headers.len()), (Some(7), Some("b"), 2));
    assert_eq!(form.share.view_groups, ["staff"]);
}

#[test]
fn a_body_is_refused_with_every_field_at_fault() {
    let body = json!({"space": "hub", "owner": "ben", "type": "public", "quota": 0,
        "settings": {"monitored": true, "resource_limits": {"cpu": "8"}}});
    let errors = create(body.clone(), None, author(&ana(), false), &fresh()).unwrap_err();
    let texts = texts(&errors);
    for field in [
        "[name] is required",
        "[owner] is set by",
        "[type] must be private",
        "[settings.monitored] is set by",
        "[settings.resource_limits] is set by",
        "[space] ",
        "[quota] ",
    ] {
        assert!(texts.iter().any(|text| text.starts_with(field)), "{field} in {texts:#?}");
    }
    let allowed = json!({"space": "docs", "name": "fdb", "owner": "ben", "type": "public",
        "settings": {"monitored": true, "resource_limits": {"cpu": "8", "memory": "1Gi"}}});
    assert!(create(allowed, None, author(&ana(), true), &fresh()).is_ok());
    for (body, expected) in [
        (json!({"nmae": "x"}), "[nmae] unknown field"),
        (json!({"registered_by": "x"}), "[registered_by] unknown field"),
        (json!({"quota": "ten"}), "[quota] invalid type"),
        (json!({"share": {"view_users": "ana"}}), "[share.view_users] invalid type"),
    ] {
        let error = create(body, None, author(&ana(), true), &fresh()).unwrap_err();
        assert!(error[0].to_string().starts_with(expected), "{error:?}");
    }
}

#[test]
fn an_edit_writes_only_what_changed() {
    let mut site = site();
    site.spec.other.insert("edition".to_owned(), json!(3));
    site.spec.configuration.other.insert("twofa".to_owned(), json!({"on": true}));
    let edit = edited(&site, json!({"description": "new", "headers": {"X-A": "a"}}), Method::Patch, false).unwrap();
    assert_eq!(
        edit.patch,
        json!({"spec": {"configuration": {"description": "new", "headers": {"X-A": "a"}, "updated_by": "ana",
            "updated_date": "2026-03-01"}}})
    );
    assert!(edit.audit.is_empty() && !edit.reverted);
    let same = edited(&site, json!({"description": "x"}), Method::Patch, false).unwrap();
    assert_eq!(same.patch, Value::Null);
    let gone = edited(&site, json!({"description": null}), Method::Patch, false).unwrap();
    assert_eq!(gone.patch["spec"]["configuration"]["description"], Value::Null);
    assert!(gone.patch["spec"]["configuration"].as_object().unwrap().contains_key("description"));
}

#[test]
fn a_put_keeps_who_and_where_and_when() {
    let site = site();
    let edit = edited(&site, json!({"quota": 4}), Method::Put, false).unwrap();
    let form = SiteForm::of(&edit.site);
    assert_eq!(
        (form.space.as_deref(), form.name.as_deref(), form.owner.as_deref()),
        (Some("docs"), Some("fdb"), Some("ana"))
    );
    assert_eq!((form.quota, form.description, form.retention_date), (Some(4), None, None));
    let configuration = &edit.site.spec.configuration;
    assert_eq!(configuration.registered_date.as_deref(), Some("2026-02-27"));
    assert_eq!(configuration.tokens, site.spec.configuration.tokens);
}

#[test]
fn an_owner_and_an_address_cannot_be_taken_away() {
    let site = site();
    for method in [Method::Patch, Method::Put] {
        for field in ["owner", "space", "name"] {
            for nothing in [Value::Null, json!(""), json!(" ")] {
                let errors = edited(&site, json!({ field: nothing }), method, true).unwrap_err();
                assert_eq!(texts(&errors)[0], format!("[{field}] cannot be taken away"));
            }
        }
    }
    // One that never had an address may stay without.
    let mut older = site.clone();
    (older.spec.name, older.spec.configuration.space) = (None, None);
    assert!(edited(&older, json!({"quota": 3}), Method::Patch, true).is_ok());
    let body = json!({"space": "docs", "name": "fdb", "owner": " "});
    let made = create(body, None, author(&ana(), true), &fresh()).unwrap();
    assert_eq!(made.spec.owner, "ana", "nobody is whoever asks");
}

#[test]
fn a_lost_body_empties_no_form() {
    let site = site();
    for method in [Method::Patch, Method::Put] {
        let errors = edited(&site, Value::Null, method, true).unwrap_err();
        assert_eq!(texts(&errors), ["the body must be an object of fields"]);
    }
}

#[test]
fn protected_fields_are_for_platform_administrators() {
    let site = site();
    for body in [
        json!({"owner": "ben"}),
        json!({"type": "public"}),
        json!({"settings": {"monitored": true}}),
        json!({"settings": {"resource_limits": {"cpu": "1"}}}),
    ] {
        let errors = edited(&site, body.clone(), Method::Patch, false).unwrap_err();
        assert!(errors[0].message.contains("platform administrators only"), "{errors:?}");
        assert!(edited(&site, body, Method::Patch, true).is_ok());
    }
    assert!(edited(&site, json!({"settings": {"monitored": false}}), Method::Patch, false).is_ok(), "absent is false");
    let edit = edited(&site, json!({"owner": "ben", "name": "fdb2", "type": "public"}), Method::Patch, true).unwrap();
    let expected = [("url", "/docs/fdb", "/docs/fdb2"), ("owner", "ana", "ben"), ("type", "private", "public")];
    let expected = expected.map(|(field, old, new)| (field, old.to_owned(), new.to_owned()));
    assert_eq!(edit.audit, expected);
}

#[test]
fn administrators_close_a_site_and_do_not_publish_it() {
    let mut public = site();
    public.spec.site_type = SiteType::Public;
    let body = json!({"type": "private", "share": {"view_groups": ["staff"]}});
    let edit = edited(&public, body, Method::Patch, false).unwrap();
    assert_eq!(edit.site.spec.site_type, SiteType::Private);
    assert_eq!(edit.site.spec.configuration.share.view_groups, ["staff"]);
    assert_eq!(edit.audit, [("type", "public".to_owned(), "private".to_owned())]);
    assert!(edited(&edit.site, json!({"type": "public"}), Method::Patch, false).is_err());
}

#[test]
fn a_public_site_with_a_custom_application_becomes_private() {
    let mut public = site();
    public.spec.site_type = SiteType::Public;
    let custom = json!({"applications": [{"name": "site-custom", "image": "mine:1"}]});
    let edit = edited(&public, custom.clone(), Method::Patch, false).unwrap();
    assert!(edit.reverted);
    assert_eq!(edit.site.spec.site_type, SiteType::Private);
    assert_eq!(edit.site.spec.configuration.share.view_groups, ["staff"]);
    public.spec.configuration.share.view_users = vec!["cleo".to_owned()];
    let edit = edited(&public, custom, Method::Patch, false).unwrap();
    assert!(edit.reverted && edit.site.spec.configuration.share.view_groups.is_empty(), "its own lists stay");
    let ours = json!({"applications": [{"name": "site-webdav"}]});
    assert!(!edited(&public, ours, Method::Patch, false).unwrap().reverted);
}

#[test]
fn an_older_site_that_breaks_a_rule_can_be_edited_elsewhere() {
    let mut old = site();
    old.spec.configuration.headers.insert("Set-Cookie".to_owned(), "x".to_owned());
    assert!(edited(&old, json!({"description": "y"}), Method::Patch, false).is_ok());
    let errors = edited(&old, json!({"quota": 0}), Method::Patch, false).unwrap_err();
    assert!(errors.iter().all(|error| error.field == "quota"), "{errors:?}");
}

proptest! {
    /// The patch of an edit makes of the old Site exactly the new one.
    #[test]
    fn a_patch_gives_the_edited_site(
        description in prop::option::of("[a-z]{0,3}"),
        quota in prop::option::of(1..9_u32),
        users in prop::collection::vec("[a-z]{1,3}", 0..3),
        enabled in prop::option::of(any::<bool>()),
        put in any::<bool>(),
    ) {
        let mut site = site();
        site.spec.configuration.share.view_users = vec!["zoe".to_owned()];
        let body = json!({"description": description, "quota": quota, "enabled": enabled, "share": {"view_users": users}});
        let method = if put { Method::Put } else { Method::Patch };
        let edit = edited(&site, body, method, false).unwrap();
        let mut value = serde_json::to_value(&site).unwrap();
        if !edit.patch.is_null() {
            merge(&mut value, edit.patch.clone());
        }
        let patched: Site = serde_json::from_value(value).unwrap();
        prop_assert_eq!(patched.spec, edit.site.spec);
    }
}
