//! Whether a real node can run on this machine, and what it takes.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

/// Programs of the box, and the Debian packages that have them.
pub const PROGRAMS: &[(&str, &str)] = &[
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("setpriv", "util-linux"),
    ("mount", "mount"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("runc", "runc"),
];

/// Why no real node can run here, in one line; none if one can.
#[must_use]
pub fn obstacle() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("a real node needs Linux".into());
    }
    if !rustix::process::geteuid().is_root() {
        return Some("a real node needs root".into());
    }
    let missing: Vec<_> =
        PROGRAMS.iter().filter(|(program, _)| !on_path(program)).map(|(program, _)| *program).collect();
    if !missing.is_empty() {
        return Some(format!("a real node needs {} (`cargo xtask setup` installs them)", missing.join(", ")));
    }
    let namespaces = ["--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "true"];
    let made = Command::new("unshare").args(namespaces).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !made.is_ok_and(|status| status.success()) {
        return Some("a real node needs namespaces, which this machine does not let us make".into());
    }
    super::node::groups_obstacle()
}

/// Whether a program is on the path, or where Debian puts those for root.
#[must_use]
pub fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let roots = ["/usr/sbin", "/sbin"].map(|dir| Path::new(dir).to_owned());
    env::split_paths(&path).chain(roots).any(|dir| dir.join(program).is_file())
}
