//! Processes that stay when a command ends, and how the next command finds and ends them. Knows not what they do.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use xtask::process::{Signal, last_lines, signal};

/// A background process known by a file that holds its id and the time it was started, so that the number of a dead
/// process given to a stranger is never taken for ours.
pub struct Background {
    name: &'static str,
    dir: PathBuf,
}

impl Background {
    /// The process `name` of the state folder `dir`.
    pub fn new(name: &'static str, dir: &Path) -> Self {
        Self { name, dir: dir.into() }
    }

    fn file(&self) -> PathBuf {
        self.dir.join(format!("{}.pid", self.name))
    }

    /// The file with its output.
    pub fn log(&self) -> PathBuf {
        self.dir.join(format!("{}.log", self.name))
    }

    /// Its process id, if it runs.
    pub fn alive(&self) -> Option<u32> {
        let text = fs::read_to_string(self.file()).ok()?;
        let (pid, begun) = text.trim().split_once(' ')?;
        let pid = pid.parse().ok()?;
        (started_at(pid)? == begun).then_some(pid)
    }

    /// Starts it in a session of its own.
    pub fn start(&self, program: &Path, arguments: &[&str], environment: &[(&str, &Path)]) -> Result<Child> {
        fs::create_dir_all(&self.dir)?;
        let log = File::create(self.log())?;
        let mut command = Command::new("setsid");
        command.arg(program).args(arguments).envs(environment.iter().copied());
        command.stdin(Stdio::null()).stderr(log.try_clone()?).stdout(log);
        let child = command.spawn().with_context(|| format!("starting {} with setsid", program.display()))?;
        let begun = started_at(child.id()).context("it ended at once")?;
        fs::write(self.file(), format!("{} {begun}\n", child.id()))?;
        Ok(child)
    }

    /// Waits until `ready` says so; fails with its last lines if it ends before.
    pub fn wait(&self, child: &mut Child, patience: Duration, mut ready: impl FnMut() -> bool) -> Result<()> {
        let end = Instant::now() + patience;
        while !ready() {
            if let Some(status) = child.try_wait()? {
                bail!("{} ended ({status}):\n{}", self.name, last_lines(&self.log(), 20));
            }
            if Instant::now() > end {
                bail!("{} is not ready after {patience:?}:\n{}", self.name, last_lines(&self.log(), 20));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Ends it if it runs: asks first, kills after `grace`. Says whether it ran.
    pub fn stop(&self, grace: Duration) -> Result<bool> {
        let Some(pid) = self.alive() else {
            return Ok(false);
        };
        signal(pid, Signal::TERM)?;
        let end = Instant::now() + grace;
        while self.alive().is_some() {
            if Instant::now() > end {
                signal(pid, Signal::KILL)?;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        fs::remove_file(self.file())?;
        Ok(true)
    }
}

/// The start time of a process in clock ticks since boot; none if it is gone or dead and not yet collected.
fn started_at(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold spaces; state is the first field after it, the start time the 20th.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18).map(str::to_owned)
}
