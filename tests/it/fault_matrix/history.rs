//! Every version that the Sites and their pods' sets had, as watches tell them; and whether the templates followed
//! the Sites: each change of a Site rolls its pods at most once, and nothing is ever rolled back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use sites::domain::change;
use sites::domain::labels::{RESTARTED_AT, STAMPED_FOR};
use sites::domain::site::Site;

use crate::support::World;

/// A template as it was at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Template {
    set: String,
    stamp: String,
    restarted_at: String,
}

/// What watches told so far.
#[derive(Debug, Default)]
pub struct Seen {
    /// Per uid of a Site: what it asked for, each time that changed.
    asked: BTreeMap<String, Vec<String>>,
    /// Per uid of a Site: the templates, each time one changed.
    templates: BTreeMap<String, Vec<Template>>,
    /// Uid of a StatefulSet to uid of its Site, the last that it named: a hand may take the reference away.
    owners: BTreeMap<String, String>,
    names: BTreeMap<String, String>,
}

/// Dropping it ends the watches.
pub struct History {
    seen: Arc<Mutex<Seen>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl History {
    pub fn start(world: &World) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let sites =
            watcher(Api::<Site>::namespaced(world.client.clone(), &world.namespace), watcher::Config::default());
        let sets = Api::<StatefulSet>::namespaced(world.client.clone(), &world.namespace);
        let sets = watcher(sets, watcher::Config::default());
        let (for_sites, for_sets) = (Arc::clone(&seen), Arc::clone(&seen));
        let tasks = vec![
            tokio::spawn(sites.for_each(move |event| {
                if let Ok(Event::Apply(site) | Event::InitApply(site)) = event {
                    for_sites.lock().unwrap().site(&site);
                }
                std::future::ready(())
            })),
            tokio::spawn(sets.for_each(move |event| {
                if let Ok(Event::Apply(set) | Event::InitApply(set)) = event {
                    for_sets.lock().unwrap().set(&set);
                }
                std::future::ready(())
            })),
        ];
        Self { seen, tasks }
    }

    /// How many rolls there were, or what was wrong with them.
    pub fn judge(&self) -> Result<usize, String> {
        self.seen.lock().unwrap().judge()
    }
}

impl Drop for History {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Seen {
    /// See [`History::judge`].
    pub fn judge(&self) -> Result<usize, String> {
        let mut rolls = 0;
        for (site, templates) in &self.templates {
            let name = self.names.get(site).map_or("?", String::as_str);
            let asked = self.asked.get(site).map_or(&[][..], Vec::as_slice);
            let told = || format!("Site {name} asked for {asked:#?}\nand its templates were {templates:#?}");
            let mut asking = asked.iter();
            let mut last: Option<&Template> = None;
            for template in templates {
                if last.is_some_and(|last| last.stamp == template.stamp) {
                    let same_set = last.is_some_and(|last| last.set == template.set);
                    if same_set {
                        return Err(format!("its pods were restarted twice for one change: {}", told()));
                    }
                } else if asking.any(|asked| *asked == template.stamp) {
                    rolls += usize::from(last.is_some());
                } else {
                    return Err(format!("a template that nobody asked for at that time: {}", told()));
                }
                last = Some(template);
            }
        }
        Ok(rolls)
    }

    pub fn site(&mut self, site: &Site) {
        let uid = site.uid().unwrap_or_default();
        self.names.insert(uid.clone(), site.name_any());
        let stamp = change::stamp(&change::trigger(site));
        let asked = self.asked.entry(uid).or_default();
        if asked.last() != Some(&stamp) {
            asked.push(stamp);
        }
    }

    pub fn set(&mut self, set: &StatefulSet) {
        let uid = set.uid().unwrap_or_default();
        // A Site that was made again may take over the set of its predecessor.
        if let Some(owner) = set.owner_references().iter().find(|owner| owner.kind == "Site") {
            self.owners.insert(uid.clone(), owner.uid.clone());
        }
        let Some(site) = self.owners.get(&uid).cloned() else { return };
        let template = set.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
        let annotations = template.and_then(|meta| meta.annotations.clone()).unwrap_or_default();
        let annotation = |name: &str| annotations.get(name).cloned().unwrap_or_default();
        let template =
            Template { set: uid.clone(), stamp: annotation(STAMPED_FOR), restarted_at: annotation(RESTARTED_AT) };
        let templates = self.templates.entry(site).or_default();
        if templates.last() != Some(&template) {
            templates.push(template);
        }
    }
}
