//! Where the parts of a cluster run: on this machine, or in a box of namespaces that ends with one process.
//!
//! The box has a network of its own without a way out: no packet for a private address can leave the machine, and the
//! machine reaches the inside by relays only (see [`super::node::relay`]).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::tied;

/// Where a command runs.
#[derive(Debug, Clone)]
pub(super) enum Ground {
    /// On this machine.
    Machine,
    /// In the namespaces made by the `unshare` with this process id.
    Box(u32),
}

impl Ground {
    /// A command that ends with this process (see [`tied`]).
    pub(super) fn command(&self, program: impl AsRef<Path>) -> Command {
        let Self::Box(owner) = self else {
            return tied(program.as_ref());
        };
        let mut command = tied("nsenter");
        // The owner is outside its own process namespace; its children are inside.
        let children = namespace(*owner, "pid_for_children");
        command.arg(format!("--target={owner}")).args(["--mount", "--net", "--uts", "--ipc"]);
        command.arg(format!("--pid={}", children.display()));
        // nsenter stays outside and waits: what it started must not outlive it.
        // Debian keeps `nft`, `runc` and `ip` where not every root looks.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
        command.args(["--", "setpriv", "--pdeathsig", "KILL", "--"]).arg(program.as_ref());
        command
    }
}

/// The file of a process's namespace.
pub(super) fn namespace(pid: u32, kind: &str) -> PathBuf {
    format!("/proc/{pid}/ns/{kind}").into()
}
