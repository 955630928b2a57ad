//! How much one caller may ask.
//!
//! Owns the counters: a person has one wherever they are, everybody else shares that of their address. A request that
//! shows a bad credential counts for its address.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::extract::{ConnectInfo, Request};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::error::ApiError;
use crate::settings::types;

/// Checks between two looks for counters that nobody needs any more.
const SWEEP: u32 = 10_000;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    User(String),
    Peer(IpAddr),
}

/// The counters; cheap to clone.
#[derive(Clone, Debug)]
pub struct Limits(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limiter: DefaultKeyedRateLimiter<Key>,
    checks: AtomicU32,
    proxies: usize,
}

impl Limits {
    /// By the settings.
    #[must_use]
    pub fn new(hub: &types::Hub) -> Self {
        let rate = NonZeroU32::new(hub.requests_per_second).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(rate).allow_burst(rate.saturating_mul(NonZeroU32::MIN.saturating_add(1)));
        let limiter = RateLimiter::keyed(quota);
        Self(Arc::new(Inner { limiter, checks: AtomicU32::new(0), proxies: hub.trusted_proxies }))
    }

    /// Counts a request of a person.
    pub fn check_user(&self, user: &str) -> Result<(), ApiError> {
        self.check(&Key::User(user.to_owned()))
    }

    /// Counts a request of an address; the addresses of one IPv6 network are one.
    pub fn check_peer(&self, peer: IpAddr) -> Result<(), ApiError> {
        let network = match peer.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
            address @ IpAddr::V4(_) => address,
        };
        self.check(&Key::Peer(network))
    }

    fn check(&self, key: &Key) -> Result<(), ApiError> {
        let inner = &*self.0;
        if inner.checks.fetch_add(1, Ordering::Relaxed) % SWEEP == SWEEP - 1 {
            inner.limiter.retain_recent();
        }
        let waits = inner.limiter.check_key(key);
        waits.map_err(|until| ApiError::TooMany(until.wait_time_from(DefaultClock::default().now())))
    }

    /// The address that a request comes from: behind so many proxies of ours, what the outermost of them saw.
    #[must_use]
    pub fn peer(&self, request: &Request) -> IpAddr {
        let seen = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let direct = seen.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |ConnectInfo(address)| address.ip());
        let all = request.headers().get_all("x-forwarded-for");
        let hops: Vec<&str> =
            all.iter().filter_map(|value| value.to_str().ok()).flat_map(|all| all.split(',')).collect();
        let from_right = |hops: &[&str]| hops.len().checked_sub(self.0.proxies).and_then(|at| address(hops.get(at)?));
        from_right(&hops).unwrap_or(direct)
    }
}

/// An address with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    text.parse().ok().or_else(|| text.parse().ok().map(|address: SocketAddr| address.ip()))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn limits(proxies: usize) -> Limits {
        Limits::new(&types::Hub { requests_per_second: 1, trusted_proxies: proxies, ..types::Hub::default() })
    }

    #[test]
    fn the_header_is_believed_as_far_as_our_proxies_write_it() {
        for (proxies, header, peer) in [
            (0, &["6.6.6.6"][..], "1.1.1.1"),
            (1, &["6.6.6.6, 2.2.2.2"], "2.2.2.2"),
            (1, &["6.6.6.6", "2.2.2.2:99"], "2.2.2.2"),
            (2, &["6.6.6.6, 3.3.3.3,2.2.2.2"], "3.3.3.3"),
            (2, &["2.2.2.2"], "1.1.1.1"),
            (1, &["evil"], "1.1.1.1"),
            (1, &[], "1.1.1.1"),
            (1, &["[2001:db8::1]:7"], "2001:db8::1"),
        ] {
            let mut request = Request::get("/").extension(ConnectInfo(SocketAddr::from(([1, 1, 1, 1], 5))));
            for value in header {
                request = request.header("x-forwarded-for", *value);
            }
            let request = request.body(Body::empty()).unwrap();
            assert_eq!(limits(proxies).peer(&request), peer.parse::<IpAddr>().unwrap(), "{proxies} {header:?}");
        }
    }

    #[test]
    fn each_caller_has_a_counter_and_a_network_shares_one() {
        let limits = limits(0);
        let peer = |text: &str| limits.check_peer(text.parse().unwrap());
        for _ in 0..2 {
            assert!(limits.check_user("ana").is_ok() && peer("1.1.1.1").is_ok() && peer("2001:db8::1").is_ok());
        }
        assert!(matches!(limits.check_user("ana"), Err(ApiError::TooMany(wait)) if !wait.is_zero()));
        assert!(peer("1.1.1.1").is_err() && peer("::ffff:1.1.1.1").is_err() && peer("2001:db8::2").is_err());
        assert!(limits.check_user("ben").is_ok() && peer("1.1.1.2").is_ok() && peer("2001:db8:0:1::1").is_ok());
    }
}
