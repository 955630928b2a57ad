//! The Sites in every order that a caller may ask for.
//!
//! Owns the orders and the answers that were already found. Changes are cheap (a few tree operations), answers are
//! found by walking one order and remembered until the next change.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::query::{Query, SortBy, Viewer, searched};
use crate::domain::site::Site;
use crate::hub::sites::view::SiteLine;

/// Answers that are remembered; with more, all are forgotten.
const REMEMBERED: usize = 256;

/// One Site of the list.
#[derive(Debug)]
pub struct Entry {
    /// The Site, without its secrets.
    pub site: Site,
    /// What a search looks into.
    text: String,
    /// Its line in the answer of the API, as JSON.
    line: Vec<u8>,
}

impl Entry {
    /// Its line in the answer of the API, as JSON.
    #[must_use]
    pub fn line(&self) -> &[u8] {
        &self.line
    }
}

/// A place in an order: the key, then the id.
pub type Place = (String, String);

/// What fits a query, in its order.
pub type Found = Arc<[Arc<Entry>]>;

/// All Sites of the platform's namespace.
#[derive(Debug, Default)]
pub struct Index {
    sites: HashMap<String, Arc<Entry>>,
    orders: BTreeMap<SortBy, BTreeMap<Place, Arc<Entry>>>,
    found: Mutex<HashMap<(Viewer, Query), Found>>,
    /// Public host of the sites, for their addresses.
    host: Option<String>,
}

impl Index {
    /// An empty one, for sites on this host.
    #[must_use]
    pub fn on_host(host: Option<&str>) -> Self {
        Self { host: host.map(str::to_owned), ..Self::default() }
    }

    /// A Site is as it is now. Its master token is not kept. A copy that is older than the known one, of a watch that
    /// is behind our own write, is dropped.
    pub fn put(&mut self, mut site: Site) {
        if self.sites.get(&site.spec.id).is_some_and(|known| older(&site, &known.site)) {
            return;
        }
        site.spec.configuration.tokens = crate::domain::site::Tokens::default();
        self.remove(&site.spec.id.clone());
        let line = serde_json::to_vec(&SiteLine::of(&site, self.host.as_deref())).unwrap_or_default();
        let entry = Arc::new(Entry { text: searched(&site), line, site });
        for order in SortBy::ALL {
            self.orders.entry(order).or_default().insert(place(order, &entry.site), entry.clone());
        }
        self.sites.insert(entry.site.spec.id.clone(), entry);
    }

    /// A Site is gone.
    pub fn remove(&mut self, id: &str) {
        self.found.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        let Some(entry) = self.sites.remove(id) else { return };
        for (order, places) in &mut self.orders {
            places.remove(&place(*order, &entry.site));
        }
    }

    /// After a complete list: only these ids are there.
    pub fn retain(&mut self, kept: impl Fn(&str) -> bool) {
        let gone: Vec<String> = self.sites.keys().filter(|id| !kept(id)).cloned().collect();
        for id in gone {
            self.remove(&id);
        }
    }

    /// One Site by its id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Arc<Entry>> {
        self.sites.get(id).cloned()
    }

    /// Number of Sites.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// The Sites that claim a public path, oldest first.
    #[must_use]
    pub fn at(&self, space: &str, name: &str) -> Vec<Arc<Entry>> {
        let path = format!("{}/{}", space.to_lowercase(), name.to_lowercase());
        let Some(order) = self.orders.get(&SortBy::Name) else { return Vec::new() };
        let same = order.range((path.clone(), String::new())..).take_while(|((key, _), _)| *key == path);
        let exact = same.filter(|(_, entry)| entry.site.public_path() == Some((space, name)));
        let mut claimants: Vec<_> = exact.map(|(_, entry)| entry.clone()).collect();
        claimants.sort_by_key(|entry| {
            let meta = &entry.site.metadata;
            (meta.creation_timestamp.as_ref().map(|time| time.0), meta.uid.clone())
        });
        claimants
    }

    /// What fits, in order. A repeated question costs nothing until a Site changes.
    #[must_use]
    pub fn find(&self, viewer: &Viewer, query: &Query) -> Found {
        let key = (viewer.clone(), query.clone());
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = found.get(&key) {
            return known.clone();
        }
        let places = self.orders.get(&query.sort_by);
        let fits = |entry: &&Arc<Entry>| query.fits(&entry.site, &entry.text) && viewer.sees(&entry.site);
        let in_order = places.into_iter().flat_map(BTreeMap::values).filter(fits).cloned();
        let mut answer: Vec<_> = in_order.collect();
        if query.descending {
            answer.reverse();
        }
        let answer: Found = answer.into();
        if found.len() >= REMEMBERED {
            found.clear();
        }
        found.insert(key, answer.clone());
        answer
    }
}

/// Whether a copy is of the same Site and was made before another one.
fn older(copy: &Site, known: &Site) -> bool {
    let version = |site: &Site| site.metadata.resource_version.as_deref().and_then(|text| text.parse::<u64>().ok());
    copy.metadata.uid == known.metadata.uid
        && version(copy).zip(version(known)).is_some_and(|(copy, known)| copy < known)
}

/// Where a Site stands in an order.
#[must_use]
pub fn place(order: SortBy, site: &Site) -> Place {
    (order.key(site), site.spec.id.clone())
}

#[cfg(test)]
pub(in crate::hub) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::domain::people::Person;

    pub(in crate::hub) fn site(id: &str, space: &str, name: &str, owner: &str, kind: &str) -> Site {
        serde_json::from_value(json!({"apiVersion": "sites.ecmwf.int/v1", "kind": "Site",
            "metadata": {"name": id, "uid": format!("uid-{id}")},
            "spec": {"id": id, "owner": owner, "type": kind, "name": name,
                "configuration": {"space": space, "tokens": {"master": "hunter2"}}}}))
        .unwrap()
    }

    fn ids(found: &Found) -> Vec<&str> {
        found.iter().map(|entry| entry.site.spec.id.as_str()).collect()
    }

    #[test]
    fn a_caller_finds_what_they_may_see_in_order() {
        let mut index = Index::default();
        index.put(site("c", "docs", "Zeta", "ana", "public"));
        index.put(site("a", "docs", "alpha", "ben", "private"));
        index.put(site("b", "data", "beta", "ana", "private"));
        let all = Query::default();
        assert_eq!(ids(&index.find(&Viewer::Everything, &all)), ["b", "a", "c"]);
        assert_eq!(ids(&index.find(&Viewer::Anonymous, &all)), ["c"]);
        let ana = Viewer::Person(Person { user: "ana".to_owned(), ..Person::default() });
        assert_eq!(ids(&index.find(&ana, &all)), ["b", "c"]);
        let query = Query { text: Some("ETA".to_owned()), descending: true, ..Query::default() };
        assert_eq!(ids(&index.find(&ana, &query)), ["c", "b"]);
        assert!(index.find(&ana, &all)[0].site.spec.configuration.tokens.master.is_none());
        index.put(site("b", "data", "beta", "ben", "private"));
        assert_eq!(ids(&index.find(&ana, &all)), ["c"], "an answer is forgotten when a Site changes");
        assert_eq!(index.at("docs", "Zeta").len(), 1);
        assert!(index.at("docs", "zeta").is_empty(), "a path is exact");
    }

    proptest! {
        /// Whatever happened before, an order holds each Site once, sorted as a sort would.
        #[test]
        fn orders_are_what_a_sort_would_give(steps in prop::collection::vec((0..6_u8, 0..4_u8, any::<bool>()), 0..40)) {
            let mut index = Index::default();
            let mut expected: BTreeMap<String, Site> = BTreeMap::new();
            for (number, shape, gone) in steps {
                let id = format!("s{number}");
                if gone {
                    index.remove(&id);
                    expected.remove(&id);
                } else {
                    let kind = if shape % 2 == 0 { "public" } else { "private" };
                    let site = site(&id, &format!("p{}", shape / 2), &format!("n{}", 9 - number), &format!("o{shape}"), kind);
                    index.put(site.clone());
                    expected.insert(id, site);
                }
            }
            for sort_by in SortBy::ALL {
                let mut sorted: Vec<&Site> = expected.values().collect();
                sorted.sort_by_key(|site| place(sort_by, site));
                let sorted: Vec<&str> = sorted.iter().map(|site| site.spec.id.as_str()).collect();
                let found = index.find(&Viewer::Everything, &Query { sort_by, ..Query::default() });
                prop_assert_eq!(ids(&found), sorted);
            }
        }
    }
}
