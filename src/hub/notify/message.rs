//! What is told: texts from templates, strict, and the key by which a tracker knows a duplicate.

use std::fmt::Write as _;
use std::path::Path;

use md5::{Digest, Md5};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use serde::Serialize;

use super::NotifyError;

/// Longest summary, in characters.
const SUMMARY: usize = 200;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To read a Site.
    Access,
    /// To make a Site public.
    Publish,
    /// More room.
    Storage,
}

impl Kind {
    /// Name of its templates.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Access => "access",
            Self::Publish => "publish",
            Self::Storage => "storage",
        }
    }
}

/// A request: what templates may name.
#[derive(Serialize, Clone, Debug)]
pub struct Request {
    /// What is asked for.
    #[serde(skip)]
    pub kind: Kind,
    /// `/<space>/<site>`.
    pub path: String,
    /// Public address, or empty.
    pub url: String,
    /// Who decides.
    pub assignee: String,
    /// Who asks.
    pub reporter: String,
    /// Their mail address, or empty.
    pub email: String,
    /// What they say, or empty.
    pub comment: String,
    /// In GB, of a request for storage.
    pub quota: u32,
}

/// What is handed over.
#[derive(Clone, Debug)]
pub struct Message {
    /// One line.
    pub summary: String,
    /// Plain text.
    pub body: String,
    /// `/<space>/<site>`.
    pub path: String,
    /// Who decides.
    pub assignee: String,
    /// Who asks.
    pub reporter: String,
    /// Mail address of who asks, or empty.
    pub email: String,
    /// md5 over summary, path, assignee and reporter: the same request twice has the same key.
    pub duplicate_key: String,
}

/// The templates.
#[derive(Debug)]
pub struct Texts(Environment<'static>);

impl Texts {
    /// The built-in ones, each replaced by a file of the same name in `folder`. All must parse.
    pub fn new(folder: Option<&Path>) -> Result<Self, NotifyError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // Plain text: what people write is data, and is shown as it is.
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        macro_rules! built_in {
            ($($name:literal),*) => { [$(($name, include_str!(concat!("templates/", $name)))),*] };
        }
        for (name, text) in built_in!(
            "access.subject.txt",
            "access.body.txt",
            "publish.subject.txt",
            "publish.body.txt",
            "storage.subject.txt",
            "storage.body.txt"
        ) {
            let own = folder.map(|folder| folder.join(name)).filter(|path| path.exists());
            let text = match own {
                Some(path) => std::fs::read_to_string(path)
                    .map_err(|error| NotifyError::Settings(format!("notifications.templates_path: {name}: {error}")))?,
                None => text.to_owned(),
            };
            environment
                .add_template_owned(name, text)
                .map_err(|error| NotifyError::Settings(format!("notifications.templates_path: {error}")))?;
        }
        Ok(Self(environment))
    }

    /// Fills the templates in.
    pub fn render(&self, request: &Request) -> Result<Message, NotifyError> {
        let fields = context! {
            path => &request.path, url => &request.url, assignee => &request.assignee, reporter => &request.reporter,
            email => &request.email, comment => &request.comment, quota => request.quota,
        };
        let text = |part: &str| {
            let name = format!("{}.{part}.txt", request.kind.name());
            let filled = self.0.get_template(&name).and_then(|template| template.render(fields.clone()));
            filled.map_err(|_| NotifyError::Template(name))
        };
        // A line break in it would begin another header of a mail.
        let summary: String = text("subject")?.trim().chars().filter(|one| !one.is_control()).take(SUMMARY).collect();
        let Request { path, assignee, reporter, email, .. } = request.clone();
        let digest = Md5::digest([&*summary, &path, &assignee, &reporter].join("\n"));
        let duplicate_key = digest.iter().fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        Ok(Message { summary, body: text("body")?, path, assignee, reporter, email, duplicate_key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            kind: Kind::Storage,
            path: "/docs/fdb".to_owned(),
            url: String::new(),
            assignee: "desk".to_owned(),
            reporter: "alice".to_owned(),
            email: String::new(),
            comment: "{{ 7 * 7 }}\r\nBcc: <b>".to_owned(),
            quota: 600,
        }
    }

    #[test]
    fn what_people_write_is_data_and_no_header() {
        let texts = Texts::new(None).unwrap();
        let message = texts.render(&request()).unwrap();
        assert_eq!(message.summary, "Storage of /docs/fdb: 600 GB");
        assert!(message.body.contains("{{ 7 * 7 }}\r\nBcc: <b>"), "{}", message.body);
        let hostile = Request { path: "/docs/a\r\nBcc: x@y".to_owned(), ..request() };
        assert!(!texts.render(&hostile).unwrap().summary.contains(['\r', '\n']));
    }

    #[test]
    fn the_same_request_has_the_same_key() {
        let texts = Texts::new(None).unwrap();
        let key = |request: &Request| texts.render(request).unwrap().duplicate_key;
        assert_eq!(key(&request()), key(&Request { comment: "again".to_owned(), ..request() }));
        assert_eq!(key(&request()), "292f50d43e4e7846b8dc2bcf355a501b", "as `md5sum` says");
        assert_ne!(key(&request()), key(&Request { reporter: "bob".to_owned(), ..request() }));
        assert_ne!(key(&request()), key(&Request { assignee: "bob".to_owned(), ..request() }));
    }

    #[test]
    fn a_template_of_ones_own_wins_and_is_strict() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("storage.subject.txt"), "{{ nothing }}").unwrap();
        let texts = Texts::new(Some(folder.path())).unwrap();
        assert!(matches!(texts.render(&request()), Err(NotifyError::Template(_))));
        std::fs::write(folder.path().join("storage.subject.txt"), "{{ open").unwrap();
        assert!(matches!(Texts::new(Some(folder.path())), Err(NotifyError::Settings(_))));
    }
}
