//! The control group folder of one box, in every hierarchy of the machine. Everything below it is the box's, nothing
//! else is touched; the sweeper removes it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The folders of one box.
#[derive(Debug)]
pub(super) struct Cgroups {
    /// The name below each hierarchy's root.
    pub(super) name: String,
    /// To be removed in the end.
    pub(super) folders: Vec<PathBuf>,
    /// Whether controllers are in hierarchies of their own.
    pub(super) version_1: bool,
}

/// One mounted hierarchy.
struct Hierarchy {
    dir: PathBuf,
    version_1: bool,
    options: String,
}

fn hierarchies() -> Result<Vec<Hierarchy>> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("reading /proc/self/mounts")?;
    let line = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        let (dir, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        let version_1 = match kind {
            "cgroup" => true,
            "cgroup2" => false,
            _ => return None,
        };
        Some(Hierarchy { dir: dir.into(), version_1, options: options.to_owned() })
    };
    Ok(mounts.lines().filter_map(line).collect())
}

impl Cgroups {
    /// What [`Self::make`] will make, so that the sweeper can be told before.
    pub(super) fn plan(name: &str) -> Result<Self> {
        let hierarchies = hierarchies()?;
        if hierarchies.is_empty() {
            bail!("no control groups are mounted below /sys/fs/cgroup");
        }
        let version_1 = hierarchies.iter().any(|hierarchy| hierarchy.version_1);
        let folders = hierarchies.iter().map(|hierarchy| hierarchy.dir.join(name)).collect();
        Ok(Self { name: name.to_owned(), folders, version_1 })
    }

    /// Makes the folders.
    pub(super) fn make(&self) -> Result<()> {
        for hierarchy in hierarchies()? {
            // Beside hierarchies of version 1 the one of version 2 has no controllers, and the kubelet ignores it.
            if hierarchy.version_1 != self.version_1 {
                continue;
            }
            let folder = hierarchy.dir.join(&self.name);
            if !self.version_1 {
                hand_down_controllers(&hierarchy.dir)?;
            }
            fs::create_dir(&folder).with_context(|| format!("creating the control group {}", folder.display()))?;
            if hierarchy.options.split(',').any(|option| option == "cpuset") {
                // A new folder has neither processors nor memory, and no process may enter it.
                for file in ["cpuset.cpus", "cpuset.mems"] {
                    fs::write(folder.join(file), fs::read(hierarchy.dir.join(file))?)?;
                }
            }
        }
        Ok(())
    }
}

/// Version 2: children of the root get the controllers that pods need.
fn hand_down_controllers(root: &Path) -> Result<()> {
    let control = root.join("cgroup.subtree_control");
    for controller in ["cpuset", "cpu", "memory", "pids", "io"] {
        // One that the machine lacks or has handed down already is no error; what matters is read below.
        fs::write(&control, format!("+{controller}")).ok();
    }
    let given = fs::read_to_string(&control).with_context(|| format!("reading {}", control.display()))?;
    for needed in ["cpu", "memory", "pids"] {
        if !given.split_whitespace().any(|controller| controller == needed) {
            bail!("the control groups of this machine do not hand down `{needed}`: pods cannot run here");
        }
    }
    Ok(())
}
