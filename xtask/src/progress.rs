//! Progress of long steps: one moving line on a terminal, a plain line now and then elsewhere (CI). Decides nothing.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How often a step speaks when nobody watches.
const PLAIN_INTERVAL: Duration = Duration::from_secs(15);

/// One long step. Prints what it does on stderr until [`Step::done`] or drop.
#[derive(Debug)]
pub struct Step {
    name: String,
    begun: Instant,
    spoke: Instant,
    bar: Option<ProgressBar>,
}

impl Step {
    /// Begins a step and says so.
    #[must_use]
    pub fn begin(name: &str, what: &str) -> Self {
        let now = Instant::now();
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix:<12} {elapsed:>4} {wide_msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(name.to_owned());
            bar.set_message(what.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        if bar.is_none() {
            eprintln!("{name}: {what}");
        }
        Self { name: name.into(), begun: now, spoke: now, bar }
    }

    /// Says how far it is.
    pub fn tell(&mut self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        } else if self.spoke.elapsed() >= PLAIN_INTERVAL {
            self.spoke = Instant::now();
            eprintln!("{}: {what} ({} s)", self.name, self.begun.elapsed().as_secs());
        }
    }

    /// Ends the step with a last line.
    pub fn done(self, what: &str) {
        let line = format!("{}: {what} ({:.1} s)", self.name, self.begun.elapsed().as_secs_f64());
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        eprintln!("{line}");
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
