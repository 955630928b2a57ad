//! What a request is: its verb, its object, and whether it is a write, a Lease or a watch.
//!
//! Pure: read from the [`Call`] that `calls` attaches, and for the requests that kube builds (watches, Events)
//! from method and path.

use http::{Method, Request};
use kube::client::Body;

use super::error::Call;

/// What a request is, read from its extension, else from its path.
pub(super) struct Traits {
    pub(super) call: Call,
    /// A write that needs leadership.
    pub(super) gated: bool,
    pub(super) lease: bool,
    /// Key of the watch, if it is one.
    pub(super) watch: Option<String>,
}

impl Traits {
    pub(super) fn of(request: &Request<Body>, kind_of: impl Fn(&str) -> String) -> Self {
        let path = Path::parse(request.uri().path());
        let query = request.uri().query().unwrap_or_default();
        let watches = query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1");
        let read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let lease = path.group == "coordination.k8s.io" && path.plural == "leases";
        let asks = matches!(path.group, "authorization.k8s.io" | "authentication.k8s.io");
        let call = request.extensions().get::<Call>().cloned().unwrap_or_else(|| {
            let verb = match (request.method(), watches, path.name) {
                (_, true, _) => "watch",
                (&Method::GET, _, Some(_)) => "get",
                (&Method::GET, ..) => "list",
                (&Method::POST, ..) => "create",
                (&Method::PUT, ..) => "update",
                (&Method::PATCH, ..) => "patch",
                (&Method::DELETE, ..) => "delete",
                _ => "other",
            };
            Call::new(verb, &kind_of(path.plural), path.namespace, path.name)
        });
        // One watch keeps its key over its resource versions.
        let watch = watches.then(|| {
            let stable = query
                .split('&')
                .filter(|pair| !pair.starts_with("resourceVersion") && !pair.starts_with("sendInitialEvents"));
            stable.fold(request.uri().path().to_owned(), |key, pair| key + "&" + pair)
        });
        Self { call, gated: !read && !lease && !asks, lease, watch }
    }
}

/// The parts of `/api/v1/…` and `/apis/<group>/<version>/…`; empty where a path is neither.
#[derive(Debug, Default, PartialEq)]
struct Path<'a> {
    group: &'a str,
    namespace: Option<&'a str>,
    plural: &'a str,
    name: Option<&'a str>,
}

impl<'a> Path<'a> {
    fn parse(path: &'a str) -> Self {
        let mut parts = path.trim_matches('/').split('/');
        let group = match parts.next() {
            Some("api") => "",
            Some("apis") => parts.next().unwrap_or_default(),
            other => return Self { plural: other.unwrap_or_default(), ..Self::default() },
        };
        parts.next();
        let rest: Vec<&str> = parts.collect();
        match rest.as_slice() {
            ["namespaces", namespace, plural, tail @ ..] => {
                Self { group, namespace: Some(namespace), plural, name: tail.first().copied() }
            }
            [plural, tail @ ..] => Self { group, namespace: None, plural, name: tail.first().copied() },
            [] => Self { group, ..Self::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traits(method: Method, uri: &str) -> Traits {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        *request.uri_mut() = uri.parse().unwrap();
        Traits::of(&request, str::to_owned)
    }

    #[test]
    fn requests_are_told_apart() {
        let watch = traits(Method::GET, "/api/v1/namespaces/a/pods?watch=true&labelSelector=x&resourceVersion=7");
        assert_eq!(watch.call, Call::new("watch", "pods", Some("a"), None));
        assert!(!watch.gated);
        let resumed = traits(Method::GET, "/api/v1/namespaces/a/pods?watch=true&labelSelector=x&resourceVersion=8");
        assert_eq!(watch.watch, resumed.watch);
        let create = traits(Method::POST, "/apis/apps/v1/namespaces/a/statefulsets?");
        assert_eq!(create.call, Call::new("create", "statefulsets", Some("a"), None));
        assert!(create.gated && !create.lease);
        let status = traits(Method::PATCH, "/apis/example.com/v1/namespaces/a/things/b/status");
        assert_eq!(status.call, Call::new("patch", "things", Some("a"), Some("b")));
        let lease = traits(Method::PUT, "/apis/coordination.k8s.io/v1/namespaces/a/leases/l");
        assert!(lease.lease && !lease.gated);
        assert!(!traits(Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").gated);
        let volume = traits(Method::DELETE, "/api/v1/persistentvolumes/v");
        assert_eq!(volume.call, Call::new("delete", "persistentvolumes", None, Some("v")));
        assert_eq!(traits(Method::GET, "/version").call.kind(), "version");
    }
}
