//! Creating and editing a Site.
//!
//! Owns the form, its defaults, who may set which field, and what an edit writes. Pure: ids, tokens and days come in.
//! The form is the Site as people know it, without the resource's nesting; fields of other platform versions are
//! neither shown nor lost.

use std::collections::BTreeMap;

use jiff::ToSpan;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::FieldError;
use super::bind::value_into;
use crate::domain::application::{Builtin, Catalog, Image};
use crate::domain::people::Person;
use crate::domain::rules;
use crate::domain::site::{Application, ErrorHandling, ResourceLimits, Secret, Share, Site, SiteSpec, SiteType};

/// Days that a new Site has before its retention date.
const RETENTION_DAYS: i64 = 365;

/// The fields of a Site that people set.
#[derive(Serialize, Deserialize, ToSchema, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"description": "Forecasts", "quota": 2, "share": {"view_groups": ["weather"]}}))]
pub struct SiteForm {
    /// First segment of the public path.
    pub space: Option<String>,
    /// Second segment of the public path.
    pub name: Option<String>,
    /// The person who owns the Site.
    pub owner: Option<String>,
    /// Who may read it.
    #[serde(rename = "type")]
    #[schema(value_type = Option<String>, example = "private")]
    pub site_type: Option<SiteType>,
    /// Free text.
    pub description: Option<String>,
    /// Size of the volume, in Gi.
    pub quota: Option<u32>,
    /// `YYYY-MM-DD`.
    pub retention_date: Option<String>,
    /// `false` archives.
    pub enabled: Option<bool>,
    /// Containers that the Site chose.
    #[schema(value_type = Option<Vec<Object>>)]
    pub applications: Vec<Application>,
    /// Response headers.
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub headers: BTreeMap<String, String>,
    /// People and groups.
    #[schema(value_type = Option<Object>)]
    pub share: Share,
    /// Technical settings.
    #[schema(value_type = Option<SettingsForm>)]
    pub settings: SettingsForm,
}

/// `settings` of the form.
#[derive(Serialize, Deserialize, ToSchema, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct SettingsForm {
    /// Limits of the custom application.
    #[schema(value_type = Option<Object>)]
    pub resource_limits: Option<ResourceLimits>,
    /// Error pages.
    #[schema(value_type = Option<Object>)]
    pub error_handling: Option<ErrorHandling>,
    /// Watched by the platform team.
    pub monitored: Option<bool>,
}

impl SiteForm {
    /// The form as it is filled in now.
    #[must_use]
    pub fn of(site: &Site) -> Self {
        let spec = &site.spec;
        let configuration = &spec.configuration;
        let settings = &configuration.settings;
        Self {
            space: configuration.space.clone(),
            name: spec.name.clone(),
            owner: Some(spec.owner.clone()),
            site_type: Some(spec.site_type),
            description: configuration.description.clone(),
            quota: configuration.quota,
            retention_date: configuration.retention_date.clone(),
            enabled: configuration.enabled,
            applications: configuration.applications.clone(),
            headers: configuration.headers.clone(),
            share: configuration.share.clone(),
            settings: SettingsForm {
                resource_limits: settings.resource_limits.clone(),
                error_handling: settings.error_handling.clone(),
                monitored: settings.monitored,
            },
        }
    }

    fn fill(self, spec: &mut SiteSpec) {
        let configuration = &mut spec.configuration;
        spec.name = text(self.name);
        spec.owner = self.owner.unwrap_or_default();
        spec.site_type = self.site_type.unwrap_or_default();
        configuration.space = text(self.space);
        configuration.description = text(self.description);
        configuration.quota = self.quota;
        configuration.retention_date = text(self.retention_date);
        configuration.enabled = self.enabled;
        configuration.applications = self.applications;
        configuration.headers = self.headers;
        configuration.share = self.share;
        configuration.settings.resource_limits = self.settings.resource_limits;
        configuration.settings.error_handling = self.settings.error_handling;
        configuration.settings.monitored = self.settings.monitored;
    }
}

/// Who fills in a form.
#[derive(Clone, Copy, Debug)]
pub struct Author<'a> {
    /// The person.
    pub person: &'a Person,
    /// Whether every field is theirs to set.
    pub platform_administrator: bool,
}

/// What a new Site needs beside the form.
#[derive(Clone, Debug)]
pub struct Fresh {
    /// An id that no Site has.
    pub id: String,
    /// Its master token.
    pub token: String,
    /// Today, UTC.
    pub today: Date,
    /// Size of the volume unless the form says, in Gi.
    pub quota: u32,
}

/// A new Site from a body, and a template under it whose fields it overrides.
pub fn create(
    body: Value,
    template: Option<Value>,
    author: Author<'_>,
    fresh: &Fresh,
) -> Result<Site, Vec<FieldError>> {
    let mut value = template.unwrap_or_else(|| Value::Object(Map::new()));
    merge(&mut value, body);
    let mut form: SiteForm = value_into(value).map_err(|error| vec![error])?;
    let mut errors = Vec::new();
    for (field, given) in [("space", &form.space), ("name", &form.name)] {
        if given.as_deref().unwrap_or_default().is_empty() {
            errors.push(FieldError::new(field, "is required: space and name are the address of the site"));
        }
    }
    form.owner = text(form.owner);
    let owner = form.owner.get_or_insert_with(|| author.person.user.clone()).clone();
    if !author.platform_administrator {
        if !author.person.names().any(|name| name == owner) {
            errors.push(protected("owner"));
        }
        if form.site_type == Some(SiteType::Public) {
            errors.push(FieldError::new("type", "must be private: ask for publication once the site is there"));
        }
        if form.settings.monitored.is_some_and(|monitored| monitored) {
            errors.push(protected("settings.monitored"));
        }
        if form.settings.resource_limits.is_some() {
            errors.push(protected("settings.resource_limits"));
        }
    }
    form.quota.get_or_insert(fresh.quota);
    let day = fresh.today.checked_add(RETENTION_DAYS.days()).unwrap_or(fresh.today);
    form.retention_date.get_or_insert_with(|| day.to_string());
    let mut spec = SiteSpec { id: fresh.id.clone(), ..SiteSpec::default() };
    form.fill(&mut spec);
    spec.configuration.registered_by = Some(author.person.user.clone());
    spec.configuration.registered_date = Some(fresh.today.to_string());
    spec.configuration.tokens.master = Some(Secret::new(fresh.token.clone()));
    let site = Site::new(&fresh.id, spec);
    errors.extend(broken(rules::violations_of_new(&site)));
    if errors.is_empty() { Ok(site) } else { Err(errors) }
}

/// How a body changes a Site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Only the fields sent.
    Patch,
    /// All fields; those left out get their defaults, but for the address, the owner and the type.
    Put,
}

/// What an edit does.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The Site as it will be.
    pub site: Site,
    /// The JSON merge patch, without the resource version; `null` when nothing changes.
    pub patch: Value,
    /// For the audit log: field, before, after.
    pub audit: Vec<(&'static str, String, String)>,
    /// The Site was public with a custom application, and is private now.
    pub reverted: bool,
}

/// What else an edit needs.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Which images are the platform's.
    pub catalog: &'a Catalog,
    /// Lists of a Site that is made private and has none: users, groups.
    pub default_view: (&'a [String], &'a [String]),
    /// Today, UTC.
    pub today: Date,
}

/// What a body makes of a Site.
pub fn edit(
    site: &Site,
    body: Value,
    method: Method,
    author: Author<'_>,
    rules: Rules<'_>,
) -> Result<Edit, Vec<FieldError>> {
    let before = SiteForm::of(site);
    let kept = match method {
        Method::Patch => before.clone(),
        Method::Put => SiteForm {
            space: before.space.clone(),
            name: before.name.clone(),
            owner: before.owner.clone(),
            site_type: before.site_type,
            ..SiteForm::default()
        },
    };
    let mut value = serde_json::to_value(kept).unwrap_or_default();
    merge(&mut value, body);
    let mut form: SiteForm = value_into(value).map_err(|error| vec![error])?;
    let mut errors = taken_away(&before, &form);
    if !author.platform_administrator {
        let changed = [
            ("owner", form.owner != before.owner),
            // Publication is the platform's; to close a site is its administrators'.
            ("type", form.site_type != before.site_type && form.site_type == Some(SiteType::Public)),
            (
                "settings.monitored",
                form.settings.monitored.unwrap_or(false) != before.settings.monitored.unwrap_or(false),
            ),
            ("settings.resource_limits", form.settings.resource_limits != before.settings.resource_limits),
        ];
        errors.extend(changed.into_iter().filter(|(_, changed)| *changed).map(|(field, _)| protected(field)));
    }
    let reverted = form.site_type == Some(SiteType::Public) && has_custom(&form.applications, rules.catalog);
    if reverted {
        form.site_type = Some(SiteType::Private);
        let share = &mut form.share;
        if share.view_users.is_empty() && share.view_groups.is_empty() {
            (share.view_users, share.view_groups) = (rules.default_view.0.to_vec(), rules.default_view.1.to_vec());
        }
    }
    let mut after = site.clone();
    form.fill(&mut after.spec);
    // An older Site that breaks a rule may still be edited elsewhere: only what this edit breaks is an error.
    let old = rules::violations(site);
    errors.extend(broken(rules::violations(&after).into_iter().filter(|new| !old.contains(new)).collect()));
    if !errors.is_empty() {
        return Err(errors);
    }
    if after.spec != site.spec {
        after.spec.configuration.updated_by = Some(author.person.user.clone());
        after.spec.configuration.updated_date = Some(rules.today.to_string());
    }
    let json = |site: &Site| serde_json::to_value(&site.spec).unwrap_or_default();
    let spec = difference(&json(site), &json(&after));
    let patch = spec.map_or(Value::Null, |spec| serde_json::json!({ "spec": spec }));
    Ok(Edit { audit: audit(site, &after), patch, reverted, site: after })
}

fn audit(before: &Site, after: &Site) -> Vec<(&'static str, String, String)> {
    let address = |site: &Site| site.public_path().map(|(space, name)| format!("/{space}/{name}")).unwrap_or_default();
    let kind = |site: &Site| format!("{:?}", site.spec.site_type).to_lowercase();
    [
        ("url", address(before), address(after)),
        ("owner", before.spec.owner.clone(), after.spec.owner.clone()),
        ("type", kind(before), kind(after)),
    ]
    .into_iter()
    .filter(|(_, before, after)| before != after)
    .collect()
}

/// Whether a container runs an image that is not the platform's.
fn has_custom(applications: &[Application], catalog: &Catalog) -> bool {
    applications.iter().any(|application| {
        let builtin = Builtin::from_name(&application.name);
        let image = builtin.and_then(|builtin| catalog.image(builtin, application.image.as_deref()));
        matches!(image, Some(Image::Custom(_)))
    })
}

/// What a Site that has it cannot be without: an owner, and an address.
fn taken_away(before: &SiteForm, after: &SiteForm) -> Vec<FieldError> {
    let given = |value: &Option<String>| text(value.clone()).is_some();
    [
        ("owner", &before.owner, &after.owner),
        ("space", &before.space, &after.space),
        ("name", &before.name, &after.name),
    ]
    .into_iter()
    .filter(|(_, before, after)| given(before) && !given(after))
    .map(|(field, ..)| FieldError::new(field, "cannot be taken away"))
    .collect()
}

fn protected(field: &str) -> FieldError {
    FieldError::new(field, "is set by platform administrators only")
}

/// Rules of the resource in the words of the form.
fn broken(violations: Vec<rules::Violation>) -> Vec<FieldError> {
    let plain = |text: &str| text.replace("spec.configuration.", "").replace("spec.", "");
    violations
        .into_iter()
        .map(|violation| FieldError::new(plain(&violation.field), plain(&violation.message)))
        .collect()
}

fn text(given: Option<String>) -> Option<String> {
    given.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// RFC 7396: objects are merged, `null` takes away, anything else replaces.
fn merge(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (name, value) in patch {
                if value.is_null() {
                    into.remove(&name);
                } else {
                    merge(into.entry(name).or_insert(Value::Null), value);
                }
            }
        }
        (into, patch) => *into = patch,
    }
}

/// The merge patch from one value to another; `None` when they are equal.
fn difference(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        _ if old == new => None,
        (Value::Object(old), Value::Object(new)) => {
            let mut patch = Map::new();
            for name in old.keys().filter(|name| !new.contains_key(*name)) {
                patch.insert(name.clone(), Value::Null);
            }
            for (name, value) in new {
                if let Some(change) = difference(old.get(name).unwrap_or(&Value::Null), value) {
                    patch.insert(name.clone(), change);
                }
            }
            Some(Value::Object(patch))
        }
        (_, new) => Some(new.clone()),
    }
}

#[cfg(test)]
mod tests;
