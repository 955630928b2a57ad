//! nginx: its configuration and its error pages, from the templates beside this file.
//!
//! Owns how a text of a Site gets into the configuration: in quotes ([`quoted`]) as the default of a `geo` variable,
//! the one place where nginx takes a text literally. nginx has no escape for `$` elsewhere.
//! `nginx.conf` is the site's whole access path; its comments say why each rule is there.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};

use super::context::Context;
use super::error::RenderError;
use super::headers::{self, Header};
use super::layout::{self, port};
use crate::domain::application::{Builtin, PROBE_PORT};
use crate::domain::forms;
use crate::domain::site::SiteType;

/// Number of cookies of the login that are taken out of a request to the custom application: one session and five
/// logins in flight, and two to spare. A request with more loses all its cookies.
const COOKIES_REMOVED: usize = 8;

/// Characters of a text in one word of the configuration: 3,600 bytes at most.
const PIECE_LENGTH: usize = 900;

/// The same for every Site.
const CONSTANT: [(&str, &str); 2] =
    [("mime.types", include_str!("mime.types")), ("strip-identity.conf", include_str!("strip-identity.conf"))];
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
    let mut files = BTreeMap::from(CONSTANT.map(|(name, text)| (name.to_owned(), text.to_owned())));
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
    let not_found_page = error_handling
        .and_then(|handling| handling.not_found_page.as_deref())
        .filter(|page| !page.is_empty())
        .map(content_path)
        .transpose()?
        .flatten();
    let applications: Vec<_> = [(Builtin::Admin, "admin"), (Builtin::Webdav, "dav"), (Builtin::S3, "s3")]
        .into_iter()
        .filter(|(builtin, _)| site.applications.has(*builtin))
        .map(|(builtin, path)| {
            context! { path, port => port(builtin), probe => super::pod::probes::path(builtin) }
        })
        .collect();
    Ok(context! {
        id => site.id,
        prefix => site.prefix.as_str(),
        private,
        cookie => site.cookie_name(),
        cookies_removed => COOKIES_REMOVED,
        custom => site.applications.has(Builtin::Custom),
        applications,
        headers => headers(site, private)?.into_iter().enumerate().map(|(number, header)| {
            let (variable, pieces) = (header.variable(), pieces(&header.value));
            context! { number, name => header.name, variable, pieces }
        }).collect::<Vec<_>>(),
        directory_listing => error_handling.and_then(|handling| handling.directory_listing).unwrap_or(true),
        not_found_page => not_found_page.as_deref().map(pieces),
        brand => site.settings.site.brand.as_str(),
        front_port => port(Builtin::Proxy),
        probe_port => PROBE_PORT,
        identity_port => port(Builtin::Oauth2),
        api_port => port(Builtin::Api),
        custom_port => port(Builtin::Custom),
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

/// Path of the Site's own 404 page. The state of the site is never one, whatever the Site says.
fn content_path(page: &str) -> Result<Option<String>, RenderError> {
    if !forms::content_path(page) {
        return Err(RenderError::field(
            "spec.configuration.settings.error_handling.not_found_page",
            "must be a path of the Site's content such as /404.html, without '.' and '..' segments, '?' and '#'",
        ));
    }
    Ok((!page.split('/').any(|segment| segment == ".sites")).then(|| page.to_owned()))
}

/// A text in pieces, each well below the 4,096 bytes that nginx allows one word of its configuration.
fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(PIECE_LENGTH).map(|piece| piece.iter().collect()).collect()
}

/// A text as one word of an nginx configuration. It may still hold `$`: only where nginx expands no variable.
///
/// Control characters are refused before; here they would only be dropped.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars().filter(|character| !character.is_control()) {
        if matches!(character, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    quoted
}
