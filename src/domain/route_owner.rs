//! Who a public path belongs to.
//!
//! Owns the index path -> claimants. A path belongs to the Site that owns its route object, else to the oldest
//! claimant (creation time, then uid). Must not read or write routes: the actor that keeps the index does.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// A Site that wants a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimant {
    /// `metadata.uid`: the claimant's identity.
    pub uid: String,
    /// `spec.id`, for messages.
    pub id: String,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// Whether a route object of this path is this Site's own.
    pub owns_route: bool,
}

impl Claimant {
    /// Smallest first is the owner.
    fn rank(&self) -> (bool, Timestamp, &str) {
        (!self.owns_route, self.created, &self.uid)
    }
}

/// All claims. A Site may claim two paths for a while: the one it moves to and the one whose route it still owns.
#[derive(Clone, Debug, Default)]
pub struct RouteIndex {
    /// Path (`/<space>/<name>`) to claimants. Nearly always one: a list of one is a tenth of a map of one.
    paths: BTreeMap<String, Vec<Claimant>>,
    /// The way back, uid to paths: nobody looks through all paths for one Site's.
    claimed: BTreeMap<String, Vec<String>>,
}

impl RouteIndex {
    /// Adds or renews a claim and says whether the claimant is the path's owner now.
    pub fn claim(&mut self, path: &str, claimant: Claimant) -> bool {
        let uid = claimant.uid.clone();
        let claimants = self.paths.entry(path.to_owned()).or_default();
        claimants.retain(|other| other.uid != uid);
        claimants.reserve_exact(1);
        claimants.push(claimant);
        let paths = self.claimed.entry(uid.clone()).or_default();
        if !paths.iter().any(|claimed| claimed == path) {
            paths.reserve_exact(1);
            paths.push(path.to_owned());
        }
        self.owner(path).is_some_and(|owner| owner.uid == uid)
    }

    /// The path's owner; `None` for a path nobody claims.
    #[must_use]
    pub fn owner(&self, path: &str) -> Option<&Claimant> {
        self.paths.get(path)?.iter().min_by(|a, b| a.rank().cmp(&b.rank()))
    }

    /// The claimants of a path that do not own it, next owner first.
    #[must_use]
    pub fn waiters(&self, path: &str) -> Vec<&Claimant> {
        let mut claimants: Vec<&Claimant> = self.paths.get(path).into_iter().flatten().collect();
        claimants.sort_by(|a, b| a.rank().cmp(&b.rank()));
        claimants.into_iter().skip(1).collect()
    }

    /// Ends a Site's claim of one path. Returns the new owner to wake, when that freed the path.
    pub fn release_path(&mut self, path: &str, uid: &str) -> Option<Claimant> {
        let owned = self.owner(path).is_some_and(|owner| owner.uid == uid);
        let claimants = self.paths.get_mut(path)?;
        claimants.retain(|other| other.uid != uid);
        if claimants.is_empty() {
            self.paths.remove(path);
        }
        if let Some(paths) = self.claimed.get_mut(uid) {
            paths.retain(|claimed| claimed != path);
            if paths.is_empty() {
                self.claimed.remove(uid);
            }
        }
        if owned { self.owner(path).cloned() } else { None }
    }

    /// Ends all claims of a Site (deleted, or without a path). Returns the new owners to wake.
    pub fn release(&mut self, uid: &str) -> Vec<Claimant> {
        self.claims(uid).iter().filter_map(|path| self.release_path(path, uid)).collect()
    }

    /// Ends all claims of a Site but that of `path`: for a Site whose path has changed, once its old route is
    /// gone. Returns the new owners to wake.
    pub fn release_others(&mut self, uid: &str, path: &str) -> Vec<Claimant> {
        let others: Vec<String> = self.claims(uid).into_iter().filter(|claimed| claimed != path).collect();
        others.iter().filter_map(|other| self.release_path(other, uid)).collect()
    }

    /// The paths that a Site claims, sorted.
    #[must_use]
    pub fn claims(&self, uid: &str) -> Vec<String> {
        let mut paths = self.claimed.get(uid).cloned().unwrap_or_default();
        paths.sort();
        paths
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claimant(uid: &str, created: i64, owns_route: bool) -> Claimant {
        let created = Timestamp::from_second(created).unwrap();
        Claimant { uid: uid.to_owned(), id: format!("site-{uid}"), created, owns_route }
    }

    #[test]
    fn the_owner_of_the_route_comes_first_then_the_oldest_then_the_uid() {
        for (claims, expected) in [
            (vec![claimant("b", 1, false), claimant("a", 2, false)], "b"),
            (vec![claimant("b", 1, false), claimant("a", 1, false)], "a"),
            (vec![claimant("b", 1, false), claimant("a", 9, true)], "a"),
            (vec![claimant("b", 5, true), claimant("a", 9, true), claimant("c", 1, false)], "b"),
        ] {
            let mut index = RouteIndex::default();
            for claim in claims.clone() {
                index.claim("/docs/fdb", claim);
            }
            assert_eq!(index.owner("/docs/fdb").unwrap().uid, expected);
            assert_eq!(index.waiters("/docs/fdb").len(), claims.len() - 1);
        }
    }

    #[test]
    fn a_freed_path_wakes_the_next_owner() {
        let mut index = RouteIndex::default();
        assert!(index.claim("/a/b", claimant("1", 1, true)));
        assert!(!index.claim("/a/b", claimant("2", 2, false)));
        assert!(!index.claim("/a/b", claimant("3", 3, false)));
        assert_eq!(index.release("3"), []);
        assert_eq!(index.release("1").iter().map(|next| next.uid.as_str()).collect::<Vec<_>>(), ["2"]);
        assert_eq!(index.release("2"), []);
        assert!(index.owner("/a/b").is_none() && index.release("2").is_empty());
    }

    #[test]
    fn a_site_that_moves_keeps_its_old_path_until_it_lets_go() {
        let mut index = RouteIndex::default();
        index.claim("/a/old", claimant("1", 1, true));
        index.claim("/a/old", claimant("2", 2, false));
        index.claim("/a/new", claimant("1", 1, false));
        assert_eq!(index.owner("/a/old").unwrap().uid, "1");
        assert_eq!(index.release_others("1", "/a/new").len(), 1);
        assert_eq!(index.owner("/a/old").unwrap().uid, "2");
        assert_eq!(index.claims("1"), ["/a/new"]);
    }

    proptest! {
        #[test]
        fn the_order_of_claims_has_no_meaning(
            mut claims in proptest::collection::vec((0..6_u8, 0..3_i64, any::<bool>()), 1..8),
        ) {
            claims.sort_by_key(|claim| claim.0);
            claims.dedup_by_key(|claim| claim.0);
            let claim = |index: &mut RouteIndex, (uid, created, owns): &(u8, i64, bool)| {
                index.claim("/a/b", claimant(&uid.to_string(), *created, *owns));
            };
            let (mut forward, mut backward) = (RouteIndex::default(), RouteIndex::default());
            for one in &claims { claim(&mut forward, one); }
            for one in claims.iter().rev() { claim(&mut backward, one); }
            prop_assert_eq!(forward.owner("/a/b"), backward.owner("/a/b"));

            // Every claimant but the last leads to exactly one to wake, whoever owns the path at its release.
            let mut woken = 0;
            while let Some(owner) = forward.owner("/a/b").cloned() {
                woken += forward.release(&owner.uid).len();
            }
            prop_assert_eq!(woken, claims.len() - 1);
        }
    }
}
