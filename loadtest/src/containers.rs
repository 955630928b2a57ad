//! Memory of the containers of a pod, as their control groups account it. Reads either version of them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// Memory of one container, in KiB.
#[derive(Debug, Clone)]
pub struct Usage {
    /// The container.
    pub name: String,
    /// Anonymous memory that is resident: heap and stacks. Program text and files are not in it.
    pub resident: f64,
    /// What the kubelet counts against the limit: all but files that are easily dropped.
    pub working_set: f64,
}

/// Every running container of a pod, and the sandbox that holds them.
pub fn usage(groups: &[PathBuf], pod: &Value) -> Result<Vec<Usage>> {
    let uid = pod["metadata"]["uid"].as_str().context("a pod has a uid")?;
    let home = find(groups, &|name| name.contains(uid) || name.contains(&uid.replace('-', "_")))
        .with_context(|| format!("the pod {uid} has no control group"))?;
    let mut found = Vec::new();
    let mut known = Vec::new();
    for status in pod["status"]["containerStatuses"].as_array().context("the pod has containers")? {
        let id =
            status["containerID"].as_str().and_then(|id| id.rsplit('/').next()).context("a container has an id")?;
        let name = status["name"].as_str().unwrap_or_default();
        let group = find(std::slice::from_ref(&home), &|folder| folder.contains(id))
            .with_context(|| format!("{name} has no control group"))?;
        found.push(read(name, &group)?);
        known.push(group);
    }
    // What is left is the sandbox's.
    for entry in fs::read_dir(&home)?.filter_map(Result::ok).filter(|entry| entry.path().is_dir()) {
        if !known.contains(&entry.path()) && !processes(&entry.path()).is_empty() {
            found.push(read("sandbox", &entry.path())?);
        }
    }
    Ok(found)
}

/// The first folder below that has memory accounting and a name that is wanted.
fn find(roots: &[PathBuf], wanted: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    let mut waiting: Vec<PathBuf> = roots.to_vec();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok) {
            let path = entry.path();
            if !path.is_dir() {
                continue;
            }
            if wanted(&entry.file_name().to_string_lossy()) && path.join("memory.stat").is_file() {
                return Some(path);
            }
            waiting.push(path);
        }
    }
    None
}

fn processes(group: &Path) -> String {
    fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default().trim().to_owned()
}

fn read(name: &str, group: &Path) -> Result<Usage> {
    let stat = fs::read_to_string(group.join("memory.stat"))?;
    let used = ["memory.current", "memory.usage_in_bytes"].map(|file| fs::read_to_string(group.join(file)).ok());
    let used: f64 = used.into_iter().flatten().next().context("no memory accounting")?.trim().parse()?;
    // In version 1 only the totals count what is below.
    let field = |names: [&str; 2]| {
        let value = |name: &str| stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        names.into_iter().find_map(value).with_context(|| format!("memory.stat has none of {names:?}"))
    };
    let anonymous: f64 = field(["total_rss", "anon"])?;
    let inactive: f64 = field(["total_inactive_file", "inactive_file"])?;
    Ok(Usage { name: name.to_owned(), resident: anonymous / 1024.0, working_set: (used - inactive) / 1024.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_control_groups_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
        write("memory.stat", "anon 4096\nfile 8192\ninactive_file 2048\n");
        write("memory.current", "14336\n");
        let usage = read("x", folder.path()).unwrap();
        assert_eq!((usage.resident, usage.working_set), (4.0, 12.0));
        fs::remove_file(folder.path().join("memory.current")).unwrap();
        write("memory.stat", "rss 1\ninactive_file 1\ntotal_rss 8192\ntotal_inactive_file 1024\n");
        write("memory.usage_in_bytes", "11264\n");
        let usage = read("x", folder.path()).unwrap();
        assert_eq!((usage.resident, usage.working_set), (8.0, 10.0));
    }
}
