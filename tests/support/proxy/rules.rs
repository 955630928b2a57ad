//! What a fault proxy is told: which requests, what to do to them, how often. Pure.

use std::time::Duration;

use http::{Method, Request, Uri, header};

/// What is asked of the API server, read from method and path as the server reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    pub verb: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub query: String,
    pub user_agent: String,
    /// The token that it came with.
    pub bearer: String,
}

impl Asked {
    pub fn read<B>(request: &Request<B>) -> Self {
        let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut asked = Self {
            query: request.uri().query().unwrap_or_default().to_owned(),
            user_agent: text(header::USER_AGENT).to_owned(),
            bearer: text(header::AUTHORIZATION).trim_start_matches("Bearer ").to_owned(),
            ..Self::default()
        };
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
        let watch = asked.query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"));
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

    fn begins_a_list(&self) -> bool {
        let asks = |part: &str| self.query.split('&').any(|pair| pair.starts_with(part));
        if self.verb == "watch" { asks("sendInitialEvents=true") } else { !asks("continue=") }
    }
}

/// The same request with another page size.
pub(super) fn with_limit(uri: &Uri, limit: u32) -> Uri {
    let pairs = uri.query().unwrap_or_default().split('&');
    let kept = pairs.filter(|pair| !pair.is_empty() && !pair.starts_with("limit="));
    let query = kept.fold(format!("limit={limit}"), |query, pair| format!("{query}&{pair}"));
    format!("{}?{query}", uri.path()).parse().expect("an address")
}

/// Which requests a rule is about. Built from [`Match::on`] or [`Match::all`] and narrowed.
#[derive(Debug, Clone, Default)]
pub struct Match {
    verbs: Vec<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    query: Option<String>,
    not_query: Option<String>,
    agent: Option<String>,
    bearer: Option<String>,
    first_list: bool,
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
        Self {
            verbs,
            resource: (!any).then(|| resource.to_owned()),
            subresource: (!any).then(String::new),
            ..Self::default()
        }
    }

    /// The complete lists of a resource, in either form: a list (its first page), or a watch that begins with one.
    pub fn first_list(resource: &str) -> Self {
        Self { first_list: true, ..Self::on("list|watch", resource) }
    }

    /// Only in this namespace.
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only with this in the query: `continue=` for the second and later pages of a list.
    pub fn asking(mut self, part: &str) -> Self {
        self.query = Some(part.into());
        self
    }

    /// Only without this in the query: `sendInitialEvents` for the watches that go on where one ended.
    pub fn not_asking(mut self, part: &str) -> Self {
        self.not_query = Some(part.into());
        self
    }

    /// Only from user agents that contain this.
    pub fn from(mut self, agent: &str) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Only with this token.
    pub fn bearing(mut self, token: &str) -> Self {
        self.bearer = Some(token.into());
        self
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
        let within = |wanted: &Option<String>, is: &String| wanted.as_ref().is_none_or(|wanted| is.contains(wanted));
        (self.verbs.is_empty() || self.verbs.contains(&asked.verb))
            && fits(&self.resource, &asked.resource)
            && fits(&self.subresource, &asked.subresource)
            && fits(&self.namespace, &asked.namespace)
            && fits(&self.name, &asked.name)
            && fits(&self.bearer, &asked.bearer)
            && within(&self.query, &asked.query)
            && self.not_query.as_ref().is_none_or(|part| !asked.query.contains(part))
            && within(&self.agent, &asked.user_agent)
            && (!self.first_list || asked.begins_a_list())
    }
}

/// What happens to a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// The server never sees it; the client gets a Kubernetes Status.
    Status { code: u16, reason: String, message: String, retry_after: Option<u32> },
    /// The server never sees it; the client gets a watch whose only event is an ERROR with this code.
    WatchError(u16),
    /// It reaches the server later.
    Delay(Duration),
    /// It reaches the server when the rule is lifted.
    Hold,
    /// The server never sees it; the connection is reset (TCP RST).
    Reset,
    /// The server does it; the connection ends without an answer.
    LoseAnswer,
    /// The server's answer begins (for a watch: is accepted) and then nothing comes any more, nor an end.
    Silence,
    /// The server's answer ends, without warning, after this time: a watch that breaks.
    CutAfter(Duration),
    /// The connection is reset (TCP RST) after so many bytes of the server's answer.
    ResetAt(usize),
    /// Every part of the server's answer comes so much later than the one before: a slow list.
    Slow(Duration),
    /// A list comes in pages of this size, whatever the client asked for.
    Pages(u32),
    /// The first answer under this rule is given to every later request for the same: a stale list.
    Stale,
}

/// What happens to an answer that is already under way: a watch that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upset {
    /// Nothing comes any more, nor an end.
    Silence,
    /// It breaks off.
    Break,
    /// An ERROR event with code 410, then the end.
    Expire,
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
