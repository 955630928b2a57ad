//! nginx: its configuration and its error pages, from the templates beside this file.
//!
//! Owns how a text of a Site gets into the configuration: quoted by [`quoted`], never pasted.
//! `nginx.conf` is the site's whole access path; its comments say why each rule is there.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};

use super::applications::{ADMIN, CUSTOM, S3, WEBDAV};
use super::context::Context;
use super::error::RenderError;
use super::headers::{self, Header};
use super::layout;
use crate::domain::site::SiteType;

/// Number of cookies of the login that are taken out of a request to the custom application: one session and five
/// logins in flight, and two to spare. A request with more loses all its cookies.
const COOKIES_REMOVED: usize = 8;

const MIME_TYPES: &str = include_str!("mime.types");
const TEMPLATES: [(&str, &str); 4] = [
    ("nginx.conf", include_str!("nginx.conf")),
    ("403.html", include_str!("403.html")),
    ("404.html", include_str!("404.html")),
    ("50x.html", include_str!("50x.html")),
];
const LAYOUT: (&str, &str) = ("page.html", include_str!("page.html"));

static ENVIRONMENT: LazyLock<Result<Environment<'static>, minijinja::Error>> = LazyLock::new(environment);

fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
        .set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build()?);
    environment.set_auto_escape_callback(|name| {
        let page = std::path::Path::new(name).extension().is_some_and(|extension| extension == "html");
        if page { AutoEscape::Html } else { AutoEscape::None }
    });
    environment.add_filter("quoted", |text: &str| quoted(text));
    for (name, source) in TEMPLATES.into_iter().chain([LAYOUT]) {
        environment.add_template(name, source)?;
    }
    Ok(environment)
}

/// The files of the pod that nginx reads, by name.
pub fn files(context: &Context<'_>) -> Result<BTreeMap<String, String>, RenderError> {
    let environment = ENVIRONMENT.as_ref().map_err(|error| template_error(error.name().unwrap_or_default(), error))?;
    let values = values(context)?;
    let mut files = BTreeMap::from([("mime.types".to_owned(), MIME_TYPES.to_owned())]);
    for (name, _) in TEMPLATES {
        let text = environment
            .get_template(name)
            .and_then(|template| template.render(&values))
            .map_err(|error| template_error(name, &error))?;
        files.insert(name.to_owned(), text);
    }
    Ok(files)
}

fn template_error(template: &str, error: &minijinja::Error) -> RenderError {
    RenderError::Template { template: template.to_owned(), message: error.to_string() }
}

fn values(site: &Context<'_>) -> Result<minijinja::Value, RenderError> {
    let private = site.site.spec.site_type == SiteType::Private;
    let error_handling = site.site.spec.configuration.settings.error_handling.as_ref();
    let not_found = error_handling.and_then(|handling| handling.not_found_page.as_deref());
    let applications: Vec<_> =
        [(ADMIN, "admin", layout::ADMIN_PORT), (WEBDAV, "dav", layout::WEBDAV_PORT), (S3, "s3", layout::S3_PORT)]
            .into_iter()
            .filter(|(name, ..)| site.applications.has(name))
            .map(|(name, path, port)| {
                context! { name, path, port, probe => super::pod::containers::probe_path(name) }
            })
            .collect();
    Ok(context! {
        id => site.id,
        prefix => site.prefix.as_str(),
        private,
        cookie => site.cookie_name(),
        cookies_removed => COOKIES_REMOVED,
        custom => site.applications.has(CUSTOM),
        applications,
        headers => headers(site, private)?.into_iter().enumerate().map(|(number, header)| {
            let upstream = header.name.to_ascii_lowercase().replace('-', "_");
            context! { number, name => header.name, value => header.value, upstream }
        }).collect::<Vec<_>>(),
        directory_listing => error_handling.and_then(|handling| handling.directory_listing).unwrap_or(true),
        not_found_page => not_found.filter(|page| !page.is_empty()).map(content_path).transpose()?,
        brand => site.settings.site.brand.as_str(),
        front_port => layout::FRONT_PORT,
        probe_port => layout::PROBE_PORT,
        identity_port => layout::IDENTITY_PORT,
        api_port => layout::API_PORT,
        custom_port => layout::CUSTOM_PORT,
        content => layout::CONTENT_DIR,
        config => layout::CONFIG_DIR,
        tmp => layout::NGINX_TMP,
    })
}

/// The Site's headers. Private content must not stay in a shared cache, unless the Site says how.
fn headers(site: &Context<'_>, private: bool) -> Result<Vec<Header>, RenderError> {
    let mut headers = headers::checked(&site.site.spec.configuration.headers)?;
    if private && !headers.iter().any(|header| header.name.eq_ignore_ascii_case("cache-control")) {
        headers.push(Header { name: "Cache-Control".to_owned(), value: "private".to_owned() });
    }
    Ok(headers)
}

/// A path inside the content, with one slash in front.
fn content_path(page: &str) -> Result<String, RenderError> {
    let path = page.trim_start_matches('/');
    let hidden = path.split('/').any(|segment| matches!(segment, "." | ".." | ".sites" | ""));
    if hidden || path.chars().any(char::is_control) || path.len() > 1024 {
        return Err(RenderError::field(
            "spec.configuration.settings.error_handling.not_found_page",
            "give the path of a file of the content, such as /404.html, without '.' and '..' segments",
        ));
    }
    Ok(format!("/{path}"))
}

/// A text as one word of an nginx configuration, served as it is.
///
/// nginx has no escape for `$`: a variable that holds one stands for it. Control characters are refused
/// before (`headers`, [`content_path`]); here they would only be dropped.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars().filter(|character| !character.is_control()) {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            '$' => quoted.push_str("${sites_dollar}"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
