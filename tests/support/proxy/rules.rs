//! What a fault proxy is told: which requests, what to do to them, how often. Pure.

use std::time::Duration;

use http::{Method, Request};

/// What is asked of the API server, read from method and path as the server reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    pub verb: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
}

impl Asked {
    pub fn read<B>(request: &Request<B>) -> Self {
        let mut asked = Self::default();
        let mut parts = request.uri().path().trim_matches('/').split('/').collect::<Vec<_>>().into_iter();
        match parts.next() {
            Some("api") => drop(parts.next()),
            Some("apis") => drop((parts.next(), parts.next())),
            // Not about objects: /version, /readyz.
            _ => return asked,
        }
        let mut text = || parts.next().unwrap_or_default().to_owned();
        asked.resource = text();
        asked.name = text();
        if asked.resource == "namespaces" {
            let next = text();
            if matches!(next.as_str(), "" | "status" | "finalize") {
                asked.subresource = next;
            } else {
                asked.namespace = std::mem::replace(&mut asked.name, text());
                asked.resource = next;
            }
        }
        if asked.subresource.is_empty() {
            asked.subresource = text();
        }
        let one = !asked.name.is_empty();
        let watch = request
            .uri()
            .query()
            .is_some_and(|query| query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1")));
        asked.verb = match *request.method() {
            Method::GET if watch => "watch",
            Method::GET if one => "get",
            Method::GET => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if one => "delete",
            Method::DELETE => "deletecollection",
            _ => "other",
        }
        .into();
        asked
    }
}

/// Which requests a rule is about. Built from [`Match::on`] or [`Match::all`] and narrowed.
#[derive(Debug, Clone, Default)]
pub struct Match {
    verbs: Vec<String>,
    resource: Option<String>,
    subresource: Option<String>,
    name: Option<String>,
}

impl Match {
    /// Every request.
    pub fn all() -> Self {
        Self::default()
    }

    /// Requests of a verb (`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`; several with `|`; `*`) for a
    /// resource in plural (`ingresses`; `*`), its subresources excepted unless named.
    pub fn on(verbs: &str, resource: &str) -> Self {
        let verbs = if verbs == "*" { Vec::new() } else { verbs.split('|').map(str::to_owned).collect() };
        let any = resource == "*";
        Self { verbs, resource: (!any).then(|| resource.to_owned()), subresource: (!any).then(String::new), name: None }
    }

    /// Only for the object of this name. (A create names its object in the body: it has no name here.)
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Only for this subresource.
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    pub fn covers(&self, asked: &Asked) -> bool {
        let fits = |wanted: &Option<String>, is: &String| wanted.as_ref().is_none_or(|wanted| wanted == is);
        (self.verbs.is_empty() || self.verbs.contains(&asked.verb))
            && fits(&self.resource, &asked.resource)
            && fits(&self.subresource, &asked.subresource)
            && fits(&self.name, &asked.name)
    }
}

/// What happens to a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// The server never sees it; the client gets a Kubernetes Status.
    Status { code: u16, reason: String, message: String, retry_after: Option<u32> },
    /// It reaches the server later.
    Delay(Duration),
    /// The server never sees it; the connection ends without an answer.
    Reset,
    /// The server does it; the connection ends without an answer.
    LoseAnswer,
    /// The server's answer begins (for a watch: is accepted) and then nothing comes any more, nor an end.
    Silence,
    /// The server's answer ends, without warning, after this time: a watch that breaks.
    CutAfter(Duration),
}

impl Act {
    /// The status that a server gives with this code, such as 409 Conflict.
    pub fn status(code: u16) -> Self {
        let reason = match code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            410 => "Expired",
            422 => "Invalid",
            429 => "TooManyRequests",
            500 => "InternalError",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "Unknown",
        };
        Self::Status {
            code,
            reason: reason.into(),
            message: format!("the fault proxy says {code} {reason}"),
            retry_after: None,
        }
    }

    /// With the header `Retry-After`, in seconds.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        if let Self::Status { retry_after, .. } = &mut self {
            *retry_after = Some(seconds);
        }
        self
    }

    /// With another reason, such as `AlreadyExists` for a 409.
    pub fn reason(mut self, text: &str) -> Self {
        if let Self::Status { reason, .. } = &mut self {
            *reason = text.into();
        }
        self
    }
}

/// How often a rule acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    Count(usize),
    Always,
}
