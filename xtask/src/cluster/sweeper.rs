//! Removes what a cluster leaves behind once its owner has ended or let go, however that happens: a small shell waits
//! for the end of its input, which the kernel closes.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Result, anyhow};

/// Arguments: the folder, then control group folders. Those are empty as soon as the kernel has ended their processes;
/// the pause lets killed processes finish their last write.
const SCRIPT: &str = r#"
cat > /dev/null
dir=$1; shift
tries=0
while [ $tries -lt 200 ]; do
  left=
  for group; do
    [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2> /dev/null
    [ ! -d "$group" ] || left=1
  done
  [ -n "$left" ] || break
  tries=$((tries + 1)); sleep 0.05
done
sleep 0.2
rm -rf --one-file-system -- "$dir"
"#;

/// The waiting shell. Dropping it lets it work and waits for its end.
#[derive(Debug)]
pub(super) struct Sweeper {
    shell: Child,
}

impl Sweeper {
    /// Will remove `dir` and the control group folders `groups`.
    pub(super) fn start(dir: &Path, groups: &[PathBuf]) -> Result<Self> {
        let shell = Command::new("sh")
            .args(["-c", SCRIPT, "sweeper"])
            .arg(dir)
            .args(groups)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Its own group: Ctrl-C on the terminal must not end it before its work.
            .process_group(0)
            .spawn()
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => anyhow!("`sh` is missing"),
                _ => error.into(),
            })?;
        Ok(Self { shell })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
