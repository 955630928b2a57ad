//! What the machine and its processes say of themselves, read from `/proc`. Judges nothing.

use std::fs;

use anyhow::{Context, Result};

/// Ticks of the processor time in `/proc/PID/stat`: 100 a second on every Linux that this runs on.
const MILLIS_PER_TICK: f64 = 10.0;

/// What the results were measured on.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Name of the processor.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory in MiB.
    pub memory: u64,
    /// Release of the kernel.
    pub kernel: String,
}

impl Machine {
    /// Reads it.
    #[must_use]
    pub fn here() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |file: &str, name: &str| {
            let line = file.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_once(':').map_or(String::new(), |(_, value)| value.trim().to_owned())
        };
        let memory = field(&text("/proc/meminfo"), "MemTotal");
        Self {
            processor: field(&text("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory: memory.split(' ').next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() / 1024,
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

/// Load average of the last minute.
#[must_use]
pub fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default()
}

/// Ticks of the whole machine since its start: all, idle, and stolen by the host.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ticks {
    all: f64,
    idle: f64,
    stolen: f64,
}

impl Ticks {
    /// Reads them.
    #[must_use]
    pub fn now() -> Self {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let first = text.lines().next().unwrap_or_default();
        // user nice system idle iowait irq softirq steal
        let ticks: Vec<f64> = first.split_whitespace().skip(1).filter_map(|tick| tick.parse().ok()).take(8).collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or_default();
        Self { all: ticks.iter().sum(), idle: at(3) + at(4), stolen: at(7) }
    }

    /// Percent of the time since `before` that the cores were busy, and that the host took away.
    #[must_use]
    pub fn busy_and_stolen_since(&self, before: &Self) -> (f64, f64) {
        let all = (self.all - before.all).max(1.0);
        let idle = self.idle - before.idle;
        (100.0 * (all - idle) / all, 100.0 * (self.stolen - before.stolen) / all)
    }
}

/// Milliseconds of processor time that a process has used, its threads included.
pub fn processor_millis(pid: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("process {pid} has ended"))?;
    // The name in parentheses may hold spaces; what follows it does not. User and system time are fields 14 and 15.
    let after = text.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks = after.split_whitespace().skip(11).take(2).filter_map(|tick| tick.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() * MILLIS_PER_TICK)
}

/// Memory of a process in KiB.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Resident now.
    pub resident: f64,
    /// Most that was resident.
    pub peak: f64,
}

impl Memory {
    /// Reads it.
    pub fn of(pid: u32) -> Result<Self> {
        let text =
            fs::read_to_string(format!("/proc/{pid}/status")).with_context(|| format!("process {pid} has ended"))?;
        let field = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or_default()
        };
        Ok(Self { resident: field("VmRSS:"), peak: field("VmHWM:") })
    }
}
