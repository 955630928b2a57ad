//! The applications of a Site's pod: the built-in ones, which of them a Site has, and which image each runs.
//!
//! Owns names, ports and the choice of the image. Must not know how a container is rendered.

use std::collections::BTreeMap;

use regex::Regex;

use super::site::{Application, Site};

/// An application of the platform. The order is the order of the containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Builtin {
    /// Init container: prepares the volume.
    Initializer,
    /// The identity service: oauth2-proxy, asked on loopback.
    Oauth2,
    /// The front door: nginx.
    Proxy,
    /// The Site API.
    Api,
    /// The file browser.
    Admin,
    /// `WebDAV`.
    Webdav,
    /// S3.
    S3,
    /// The owner's own application.
    Custom,
    /// The content mirror of a migration; listens nowhere.
    Mirror,
}

impl Builtin {
    /// All, in container order.
    pub const ALL: [Self; 9] = [
        Self::Initializer,
        Self::Oauth2,
        Self::Proxy,
        Self::Api,
        Self::Admin,
        Self::Webdav,
        Self::S3,
        Self::Custom,
        Self::Mirror,
    ];

    /// Name of the application and of its container.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initializer => "site-initializer",
            Self::Oauth2 => "site-oauth2",
            Self::Proxy => "site-proxy",
            Self::Api => "site-api",
            Self::Admin => "site-admin",
            Self::Webdav => "site-webdav",
            Self::S3 => "site-s3",
            Self::Custom => "site-custom",
            Self::Mirror => "site-mirror",
        }
    }

    /// The built-in application of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|builtin| builtin.name() == name)
    }

    /// Whether every Site has it, named or not.
    #[must_use]
    pub const fn essential(self) -> bool {
        matches!(self, Self::Initializer | Self::Oauth2 | Self::Proxy | Self::Api)
    }

    /// Port that it listens on; `None` for those that listen nowhere.
    #[must_use]
    pub const fn port(self) -> Option<u16> {
        match self {
            Self::Initializer | Self::Mirror => None,
            Self::Oauth2 => Some(4181),
            Self::Proxy => Some(4180),
            Self::Api => Some(10_000),
            Self::Admin => Some(9000),
            Self::Webdav => Some(7000),
            Self::S3 => Some(6000),
            Self::Custom => Some(8000),
        }
    }

    /// Whether it runs before the others and ends.
    #[must_use]
    pub const fn init(self) -> bool {
        matches!(self, Self::Initializer)
    }
}

/// Port of the front door's second server, for probes only.
pub const PROBE_PORT: u16 = 8081;

/// An application that a Site really has.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// Which.
    pub builtin: Builtin,
    /// As the spec has it, or only its name when the spec does not list it.
    pub application: Application,
}

/// The applications of a Site's pod, in container order: the essential ones, those that the spec lists, and the
/// mirror while a migration is on. Names that are not built in run nothing: [`unknown`] lists them.
#[must_use]
pub fn effective(site: &Site, migration_enabled: bool) -> Vec<Effective> {
    let listed = |builtin: Builtin| {
        site.spec.configuration.applications.iter().find(|application| application.name == builtin.name())
    };
    Builtin::ALL
        .into_iter()
        .filter_map(|builtin| {
            let always = builtin.essential() || (builtin == Builtin::Mirror && migration_enabled);
            let application = match listed(builtin) {
                Some(application) => application.clone(),
                None if always => Application { name: builtin.name().to_owned(), ..Application::default() },
                None => return None,
            };
            Some(Effective { builtin, application })
        })
        .collect()
}

/// Names in the spec that are not built in; kept there, run by nothing.
#[must_use]
pub fn unknown(site: &Site) -> Vec<&str> {
    let names = site.spec.configuration.applications.iter().map(|application| application.name.as_str());
    names.filter(|name| Builtin::from_name(name).is_none()).collect()
}

/// Whose image a container runs, which decides its command too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// The platform's own: our command goes with it.
    Platform(String),
    /// The owner's: it runs as it is.
    Custom(String),
}

impl Image {
    /// The reference to pull.
    #[must_use]
    pub fn reference(&self) -> &str {
        match self {
            Self::Platform(image) | Self::Custom(image) => image,
        }
    }
}

/// The image that each built-in application has on this platform, and which images were the replaced platform's.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    configured: BTreeMap<Builtin, String>,
    legacy: Vec<Regex>,
}

impl Catalog {
    /// A catalog of full image references. `site-custom` has no configured image: its owner gives one.
    ///
    /// # Errors
    /// A pattern that is not a regular expression. Patterns match the whole image text.
    pub fn new(
        configured: impl IntoIterator<Item = (Builtin, String)>,
        legacy_patterns: &[String],
    ) -> Result<Self, regex::Error> {
        let legacy = legacy_patterns.iter().map(|pattern| Regex::new(&format!("^(?:{pattern})$")));
        Ok(Self { configured: configured.into_iter().collect(), legacy: legacy.collect::<Result<_, _>>()? })
    }

    /// The platform's image of an application.
    #[must_use]
    pub fn configured(&self, builtin: Builtin) -> Option<&str> {
        self.configured.get(&builtin).map(String::as_str)
    }

    /// The image to run. `None`: the spec gives none and neither does the platform (`site-custom`).
    ///
    /// Without an image in the spec the platform's; an image of the platform's repository as the spec has it; an
    /// image of the replaced platform never, but the platform's; anything else is custom and kept.
    #[must_use]
    pub fn image(&self, builtin: Builtin, in_spec: Option<&str>) -> Option<Image> {
        let configured = self.configured(builtin);
        let Some(image) = in_spec.filter(|image| !image.is_empty()) else {
            return configured.map(|image| Image::Platform(image.to_owned()));
        };
        let Some(platform) = configured else { return Some(Image::Custom(image.to_owned())) };
        Some(if same_repository(image, platform) {
            Image::Platform(image.to_owned())
        } else if self.legacy(image) {
            Image::Platform(platform.to_owned())
        } else {
            Image::Custom(image.to_owned())
        })
    }

    /// Whether an image is the replaced platform's.
    #[must_use]
    pub fn legacy(&self, image: &str) -> bool {
        self.legacy.iter().any(|pattern| pattern.is_match(image))
    }
}

/// Whether two image references name one repository, whatever tag or digest.
#[must_use]
pub fn same_repository(a: &str, b: &str) -> bool {
    normal(repository(a)) == normal(repository(b))
}

/// An image reference without its tag and digest.
#[must_use]
pub fn repository(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

/// The registry and folder that a short name stands for: `nginx` is `docker.io/library/nginx`.
fn normal(repository: &str) -> String {
    match repository.split_once('/') {
        None => format!("docker.io/library/{repository}"),
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => repository.to_owned(),
        Some(_) => format!("docker.io/{repository}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalog() -> Catalog {
        let configured =
            [(Builtin::Api, "reg.example.org:5000/sites:1.0"), (Builtin::Proxy, "docker.io/library/nginx:1.28")];
        let configured = configured.map(|(builtin, image)| (builtin, image.to_owned()));
        Catalog::new(configured, &["old\\.example\\.org/(site|nginx)-.*".to_owned()]).unwrap()
    }

    fn site(applications: &serde_json::Value) -> Site {
        serde_json::from_value(json!({"apiVersion": "sites.ecmwf.int/v1", "kind": "Site", "metadata": {"name": "a"},
            "spec": {"id": "a", "owner": "o", "type": "public", "configuration": {"applications": applications}}}))
        .unwrap()
    }

    #[test]
    fn images() {
        let platform = |image: &str| Some(Image::Platform(image.to_owned()));
        let custom = |image: &str| Some(Image::Custom(image.to_owned()));
        let latest = "reg.example.org:5000/sites:1.0";
        for (builtin, in_spec, expected) in [
            (Builtin::Api, None, platform(latest)),
            (Builtin::Api, Some(""), platform(latest)),
            (Builtin::Api, Some("reg.example.org:5000/sites:0.9"), platform("reg.example.org:5000/sites:0.9")),
            (
                Builtin::Api,
                Some("reg.example.org:5000/sites@sha256:ab"),
                platform("reg.example.org:5000/sites@sha256:ab"),
            ),
            (Builtin::Api, Some("old.example.org/site-api:3"), platform(latest)),
            (Builtin::Api, Some("x.old.example.org/site-api:3"), custom("x.old.example.org/site-api:3")),
            (Builtin::Api, Some("reg.example.org:5000/sites-fork:1"), custom("reg.example.org:5000/sites-fork:1")),
            (Builtin::Proxy, Some("nginx:1.27"), platform("nginx:1.27")),
            (Builtin::Custom, Some("old.example.org/site-x:3"), custom("old.example.org/site-x:3")),
            (Builtin::Custom, None, None),
        ] {
            assert_eq!(catalog().image(builtin, in_spec), expected, "{builtin:?} {in_spec:?}");
        }
    }

    #[test]
    fn repositories() {
        for (image, expected) in
            [("a:5000/b", "a:5000/b"), ("a:5000/b:1", "a:5000/b"), ("b:1@sha256:00", "b"), ("b", "b")]
        {
            assert_eq!(repository(image), expected);
        }
        assert!(same_repository("user/app:1", "docker.io/user/app"));
        assert!(!same_repository("localhost/app:1", "docker.io/localhost/app"));
    }

    #[test]
    fn effective_applications_are_in_container_order() {
        let names = |site: &Site, migration| -> Vec<&str> {
            effective(site, migration).into_iter().map(|effective| effective.builtin.name()).collect()
        };
        let essential = ["site-initializer", "site-oauth2", "site-proxy", "site-api"];
        assert_eq!(names(&site(&json!([])), false), essential);
        let listed = site(
            &json!([{"name": "site-s3"}, {"name": "other"}, {"name": "site-api", "image": "x"}, {"name": "site-admin"}]),
        );
        assert_eq!(names(&listed, true), [&essential[..], &["site-admin", "site-s3", "site-mirror"]].concat());
        assert_eq!(effective(&listed, false)[3].application.image.as_deref(), Some("x"));
        assert_eq!(unknown(&listed), ["other"]);
    }
}
