//! Facts about the cluster that rendering needs. Whoever observes fills them in; rendering asks nobody.

/// What the operator has seen and decided before it renders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Namespace of the Site and of all its objects.
    pub namespace: String,
    /// Name of the route that this Site owns already for its current path. It is kept, because a route of an
    /// older platform has another name; absent means the name that the path gives.
    pub route_name: Option<String>,
    /// The restart stamp of the pod template.
    pub restart: Restart,
    /// A retained volume that the new claim is pinned to.
    pub volume: Option<Reattach>,
}

/// The restart stamp: written into the pod template exactly as given, so a retry restarts nothing twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restart {
    /// RFC 3339, UTC, whole seconds.
    pub restarted_at: String,
    /// `<digest>/<upgrade_request>` that the time stands for.
    pub stamped_for: String,
}

/// A retained volume, to be claimed again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reattach {
    /// Name of the volume.
    pub volume_name: String,
    /// Its class; absent for a volume without one.
    pub storage_class: Option<String>,
    /// Its access modes; a claim that asks for others would never bind.
    pub access_modes: Vec<String>,
    /// Its volume mode.
    pub volume_mode: Option<String>,
    /// Its size, a Kubernetes quantity. The claim asks for no more than that.
    pub capacity: String,
}
