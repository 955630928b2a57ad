//! Child processes that never outlive this one, however it ends. Knows nothing of what they are.
//!
//! The kernel ties a child to the *thread* that started it, so all of them are started by one thread that lives as
//! long as the process; `setpriv` sets the death signal, which safe Rust cannot do between fork and exec.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use rustix::process::Signal;

type Order = (Command, Sender<io::Result<Child>>);

static STARTER: LazyLock<Mutex<Sender<Order>>> = LazyLock::new(|| {
    let (orders, inbox) = mpsc::channel::<Order>();
    // If the thread cannot be made the channel is closed, and `start` says so.
    let _ = std::thread::Builder::new().name("child-starter".into()).spawn(move || {
        for (mut command, answer) in inbox {
            let _ = answer.send(command.spawn());
        }
    });
    Mutex::new(orders)
});

/// A command whose process is killed when this process ends. Start it with [`start`].
#[must_use]
pub fn tied(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program).stdin(Stdio::null());
    command
}

/// A port of 127.0.0.1 for a server that cannot choose one itself.
///
/// Below the range from which the kernel serves outgoing connections and port 0 (32768 and above): out of that range
/// anybody's connection may take the port before the server listens. This process gets a port only once, and another
/// process begins elsewhere.
pub fn free_port() -> io::Result<u16> {
    const FIRST: u16 = 10_000;
    const COUNT: u16 = 20_000;
    static ASKED: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % u32::from(COUNT) * 7_919 % u32::from(COUNT)).unwrap_or_default();
    (0..COUNT)
        .map(|_| FIRST + (start + ASKED.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .ok_or_else(|| io::Error::other("no port of 127.0.0.1 from 10000 to 29999 is free"))
}

/// Starts a command on the thread that lives as long as this process.
pub fn start(command: Command) -> io::Result<Child> {
    let gone = || io::Error::other("the thread that starts processes is gone");
    let (answer, result) = mpsc::channel();
    let program = command.get_program().to_owned();
    STARTER.lock().unwrap_or_else(PoisonError::into_inner).send((command, answer)).map_err(|_| gone())?;
    result.recv().map_err(|_| gone())?.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if program == "setpriv" => {
            io::Error::new(error.kind(), "`setpriv` is missing: install util-linux (Linux only)")
        }
        _ => error,
    })
}

/// Sends a signal to a process; a process that is gone is no error.
pub fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let Some(pid) = pid else {
        return Err(io::Error::other("not a process id"));
    };
    match rustix::process::kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A background process with its output in a file. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    child: Child,
}

impl Process {
    /// Starts `command` (made by [`tied`]) with stdout and stderr in `log`.
    pub fn start(name: &str, mut command: Command, log: &Path) -> io::Result<Self> {
        let out = File::create(log)?;
        command.stderr(out.try_clone()?).stdout(out);
        Ok(Self { name: name.into(), log: log.into(), child: start(command)? })
    }

    /// The name it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// The last lines of its output.
    #[must_use]
    pub fn last_lines(&self, count: usize) -> String {
        last_lines(&self.log, count)
    }

    /// Asks it to stop and waits; kills it after `grace`.
    pub fn stop(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        signal(self.child.id(), Signal::TERM)?;
        let end = Instant::now() + grace;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.child.kill()?;
        self.child.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last lines of a text file; empty if it cannot be read.
#[must_use]
pub fn last_lines(file: &Path, count: usize) -> String {
    last_of(&String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()), count)
}

/// The last lines of a text.
#[must_use]
pub fn last_of(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
