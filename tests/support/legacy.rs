//! What the replaced platform leaves in a namespace: a Site and its objects, written by hand under
//! `tests/fixtures/legacy/` and never made by our renderer.

use serde_json::{Value, json};

use super::api::{condition, documents, kind_of, merge_into, name_of};
use super::wait::{SOON, eventually};
use super::world::World;

/// The id of the fixture's Site.
pub const ID: &str = "docs-fdb";
/// The name that its route has.
pub const ROUTE: &str = "ingress-docs-fdb-legacy";
/// Images of the replaced platform.
pub const IMAGES: &str = "registry\\.example\\.org/ecmwf-sites/.*";

/// The fixture, to be changed before it is left somewhere.
pub struct Legacy {
    site: Value,
    objects: Vec<Value>,
}

impl Legacy {
    pub fn read() -> Self {
        let read = |name: &str| {
            let path = format!("{}/tests/fixtures/legacy/{name}", env!("CARGO_MANIFEST_DIR"));
            documents(&std::fs::read_to_string(path).unwrap())
        };
        Self { site: read("site.yaml").remove(0), objects: read("objects.yaml") }
    }

    /// Merge-patches the Site.
    pub fn site(mut self, patch: &Value) -> Self {
        merge_into(&mut self.site, patch);
        self
    }

    /// Merge-patches the objects of a kind.
    pub fn object(mut self, kind: &str, patch: &Value) -> Self {
        for object in self.objects.iter_mut().filter(|object| kind_of(object) == kind) {
            merge_into(object, patch);
        }
        self
    }

    /// Leaves a kind out.
    pub fn without(mut self, kind: &str) -> Self {
        self.objects.retain(|object| kind_of(object) != kind);
        self
    }

    /// The Site alone.
    pub fn site_of(&self, world: &World) -> Value {
        let mut site = self.site.clone();
        site["metadata"]["namespace"] = world.namespace.clone().into();
        site
    }

    /// Creates the Site with its status, then its objects.
    pub async fn leave(&self, world: &World) {
        world.api.create(&world.namespace, &self.site_of(world)).await.expect("the Site");
        let status = json!({"status": self.site["status"]});
        world.api.merge("Site", &world.namespace, ID, "status", &status).await.expect("its status");
        self.leave_objects(world).await;
    }

    /// Creates the objects of the Site, which exists; waits until the pods run and the volume is bound, and labels
    /// that as the old platform did.
    pub async fn leave_objects(&self, world: &World) {
        let site = world.must("Site", ID).await;
        let owner = json!({
            "apiVersion": site["apiVersion"], "kind": "Site", "name": ID, "uid": site["metadata"]["uid"],
            "controller": true, "blockOwnerDeletion": true,
        });
        for object in &self.objects {
            let mut object = object.clone();
            object["metadata"]["ownerReferences"] = json!([owner]);
            world.api.create(&world.namespace, &object).await.unwrap_or_else(|error| panic!("{object}: {error}"));
        }
        let set = self.objects.iter().find(|object| kind_of(object) == "StatefulSet");
        let replicas = set.map_or(0, |set| set["spec"]["replicas"].as_u64().unwrap());
        let volume = eventually("the old pods run on their volume", SOON, || async {
            let ready = |pod: &Value| condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True");
            let running = world.pods(ID).await.iter().filter(|pod| ready(pod)).count() as u64;
            let volume = world.volume(ID).await.ok_or("no volume")?;
            if running == replicas { Ok(volume) } else { Err(format!("{running} pods run")) }
        })
        .await;
        let labels = json!({"metadata": {"labels": self.objects[0]["metadata"]["labels"]}});
        world.api.merge("PersistentVolume", "", name_of(&volume), "", &labels).await.expect("a volume to label");
    }
}

/// What must not change at a take-over: everything but labels, owner, and the server's own bookkeeping.
pub fn content(object: &Value) -> Value {
    let mut content = object.clone();
    content.as_object_mut().unwrap().remove("status");
    for field in ["labels", "ownerReferences", "resourceVersion", "managedFields"] {
        content["metadata"].as_object_mut().unwrap().remove(field);
    }
    content
}
