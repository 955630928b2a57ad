//! What follows from the settings: image references and public addresses.
//!
//! Owns the default images. Must not know a Site.

use super::Settings;

/// Images that are not ours, at the versions that the pod contract was tested with.
const FOREIGN_IMAGES: [(&str, &str); 2] =
    [("site-proxy", "docker.io/library/nginx:1.28"), ("site-oauth2", "quay.io/oauth2-proxy/oauth2-proxy:v7.15.6")];

/// Repository of the one image of all our roles.
const OWN_REPOSITORY: &str = "sites";

impl Settings {
    /// Image of a built-in application: the one of `site.images`, else the default.
    ///
    /// One without a tag or digest gets `site.version`. Our own roles share the image `sites`. Not for
    /// `site-custom`, whose owner names the image.
    #[must_use]
    pub fn image(&self, application: &str) -> String {
        if let Some(configured) = self.site.images.get(application) {
            return with_tag(configured, &self.site.version);
        }
        let foreign = FOREIGN_IMAGES.iter().find(|(name, _)| *name == application);
        foreign.map_or_else(|| with_tag(OWN_REPOSITORY, &self.site.version), |(_, image)| (*image).to_owned())
    }

    /// `https://<host>/hub` without a slash at the end; `None` while no public host is set.
    #[must_use]
    pub fn hub_url(&self) -> Option<String> {
        let host = self.routing.hub_host.as_deref().filter(|host| !host.is_empty()).or_else(|| self.host())?;
        Some(format!("https://{host}/hub"))
    }

    /// Whether pages of sites have the Hub's origin: their scripts can then use a browser's session at the Hub.
    #[must_use]
    pub fn shares_host(&self) -> bool {
        let hub = self.routing.hub_host.as_deref().filter(|host| !host.is_empty());
        self.host().is_some_and(|host| hub.is_none_or(|hub| hub == host))
    }

    /// Public host of the sites; `None` while it is not set (an empty text counts as not set).
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.routing.host.as_deref().filter(|host| !host.is_empty())
    }
}

fn with_tag(image: &str, version: &str) -> String {
    let last = image.rsplit('/').next().unwrap_or(image);
    if last.contains([':', '@']) { image.to_owned() } else { format!("{image}:{version}") }
}

#[cfg(test)]
mod tests {
    use crate::settings::load::tests::minimal;

    #[test]
    fn images() {
        let mut settings = minimal();
        settings.site.version = "2.0".to_owned();
        for (name, image) in
            [("site-api", "reg:5000/team/sites"), ("site-s3", "sites-s3:7"), ("site-admin", "a/b@sha256:00")]
        {
            settings.site.images.insert(name.to_owned(), image.to_owned());
        }
        for (name, expected) in [
            ("site-api", "reg:5000/team/sites:2.0"),
            ("site-s3", "sites-s3:7"),
            ("site-admin", "a/b@sha256:00"),
            ("site-webdav", "sites:2.0"),
            ("site-proxy", "docker.io/library/nginx:1.28"),
            ("site-oauth2", "quay.io/oauth2-proxy/oauth2-proxy:v7.15.6"),
        ] {
            assert_eq!(settings.image(name), expected);
        }
    }

    #[test]
    fn addresses() {
        let mut settings = minimal();
        assert_eq!((settings.host(), settings.hub_url()), (None, None));
        settings.routing.host = Some("sites.example.org".to_owned());
        assert_eq!(settings.hub_url().as_deref(), Some("https://sites.example.org/hub"));
        assert!(settings.shares_host());
        settings.routing.hub_host = Some("hub.example.org".to_owned());
        assert!(!settings.shares_host());
        assert_eq!(settings.hub_url().as_deref(), Some("https://hub.example.org/hub"));
    }
}
