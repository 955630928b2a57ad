//! The pages as text: names are escaped by the template engine, addresses are encoded here.

use minijinja::{Environment, UndefinedBehavior, Value, context};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::runtime::access::{AccessToken, Privilege, TokenState};
use crate::runtime::config::SiteConfig;
use crate::runtime::content::{Entry, EntryType, Listing, SitePath, Usage};

const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The templates, and what all pages share.
pub(super) struct Pages {
    templates: Environment<'static>,
    prefix: String,
    name: String,
}

impl Pages {
    pub(super) fn new(config: &SiteConfig) -> Result<Self, minijinja::Error> {
        let mut templates = Environment::new();
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        templates.add_template("base.html", include_str!("base.html"))?;
        templates.add_template("folder.html", include_str!("folder.html"))?;
        templates.add_template("tokens.html", include_str!("tokens.html"))?;
        let name = if config.prefix.is_empty() { &config.id } else { config.prefix.trim_start_matches('/') };
        Ok(Self { templates, prefix: config.prefix.clone(), name: name.to_owned() })
    }

    pub(super) fn folder_address(&self, path: &SitePath) -> String {
        let below = path.segments().iter().map(|name| encoded(name) + "/").collect::<String>();
        format!("{}/s/admin/files/{below}", self.prefix)
    }

    pub(super) fn folder(
        &self,
        path: &SitePath,
        listing: &Listing,
        usage: Usage,
        caller: &str,
    ) -> Result<String, minijinja::Error> {
        let here = path.segments().iter().map(|name| encoded(name) + "/").collect::<String>();
        let mut crumbs =
            vec![context! { name => self.name.as_str(), address => self.folder_address(&SitePath::root()) }];
        for depth in 1..=path.segments().len() {
            let above = path.segments()[..depth].iter().map(|name| encoded(name) + "/").collect::<String>();
            let name = path.segments()[depth - 1].clone();
            crumbs.push(context! { name, address => format!("{}/s/admin/files/{above}", self.prefix) });
        }
        let mut entries: Vec<&Entry> = listing.entries.iter().collect();
        entries.sort_by_key(|entry| entry.entry_type != EntryType::Directory);
        let rows: Vec<Value> = entries.into_iter().map(|entry| self.row(&here, entry)).collect();
        self.templates.get_template("folder.html")?.render(context! {
            prefix => self.prefix.as_str(),
            site => self.name.as_str(),
            caller,
            here,
            here_text => path.to_string(),
            crumbs,
            rows,
            truncated => listing.truncated,
            used => usage.used,
            limit => usage.limit,
            used_text => bytes(usage.used),
            limit_text => bytes(usage.limit),
        })
    }

    pub(super) fn tokens(&self, tokens: &[AccessToken], caller: &str) -> Result<String, minijinja::Error> {
        let rows: Vec<Value> = tokens
            .iter()
            .map(|token| {
                context! {
                    id => token.id.as_str(),
                    label => token.label.as_str(),
                    privilege => if token.privilege == Privilege::Read { "read" } else { "read and write" },
                    active => token.state == TokenState::Active,
                    state => match token.state {
                        TokenState::Active => "active",
                        TokenState::Expired => "expired",
                        TokenState::Revoked => "revoked",
                    },
                    created_at => minute(&token.created_at),
                    created_by => token.created_by.as_str(),
                    expires_at => token.expires_at.as_deref().map(minute),
                }
            })
            .collect();
        self.templates.get_template("tokens.html")?.render(context! {
            prefix => self.prefix.as_str(),
            site => self.name.as_str(),
            caller,
            tokens => rows,
        })
    }

    /// One line: where a click leads, and the path for the Site API.
    fn row(&self, here: &str, entry: &Entry) -> Value {
        let path = format!("{here}{}", encoded(&entry.path));
        let folder = entry.entry_type == EntryType::Directory;
        let address =
            if folder { format!("{}/s/admin/files/{path}/", self.prefix) } else { format!("{}/{path}", self.prefix) };
        context! {
            name => entry.path.as_str(),
            folder,
            broken => entry.entry_type == EntryType::Broken,
            size => if folder { String::new() } else { bytes(entry.size) },
            modified => entry.modified.replace('T', " ").trim_end_matches('Z'),
            target => entry.target.as_deref(),
            address,
            path,
        }
    }
}

fn encoded(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// A moment of RFC 3339 in UTC, to the minute: `2026-01-31 09:30`.
fn minute(moment: &str) -> String {
    moment.get(..16).unwrap_or(moment).replace('T', " ")
}

/// Such as `12 B` or `3.4 MiB`.
fn bytes(count: u64) -> String {
    let mut rest = count;
    let mut tenths = 0;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if rest < 1024 || unit == "GiB" {
            return if unit == "B" { format!("{rest} B") } else { format!("{rest}.{tenths} {unit}") };
        }
        tenths = rest % 1024 * 10 / 1024;
        rest /= 1024;
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (moment, text) in [
            ("2026-11-30T08:43:42.177581236Z", "2026-11-30 08:43"),
            ("2026-11-30T08:43:42Z", "2026-11-30 08:43"),
            ("soon", "soon"),
        ] {
            assert_eq!(minute(moment), text);
        }
    }

    #[test]
    fn sizes() {
        for (count, text) in
            [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5000 << 30, "5000.0 GiB")]
        {
            assert_eq!(bytes(count), text);
        }
    }
}
