//! The raw rows: one JSON object per run, appended to a file as soon as the run ends and never removed.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::machine::{Ticks, load_average};

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The session it belongs to: its start.
    pub session: String,
    /// When it ended.
    pub at: String,
    /// What was measured, such as `M1`.
    pub metric: String,
    /// Who did it, such as `operator-32` or `bare-16`.
    pub variant: String,
    /// Number of the round in its session.
    pub round: usize,
    /// `alone`: etcd and API server; `whole`: with controllers and kwok.
    pub server: String,
    /// Sites of the run.
    pub sites: usize,
    /// The figures, by name with their unit.
    pub figures: Map<String, Value>,
    /// Load average when it began and when it ended.
    pub load: (f64, f64),
    /// Percent of all cores' time that was used meanwhile.
    pub busy: f64,
    /// Percent of all cores' time that the host took away meanwhile.
    pub steal: f64,
}

impl Row {
    /// A figure as a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        self.figures.get(name)?.as_f64()
    }
}

/// What a run is, before it has figures.
#[derive(Debug, Clone)]
pub struct Run {
    /// What is measured.
    pub metric: &'static str,
    /// Who does it.
    pub variant: String,
    /// Number of the round.
    pub round: usize,
    /// Which parts run.
    pub server: &'static str,
    /// Sites.
    pub sites: usize,
}

/// The machine's state at the start of a run.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    load: f64,
    ticks: Ticks,
}

impl Weather {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        Self { load: load_average(), ticks: Ticks::now() }
    }
}

/// The file of one session.
#[derive(Debug)]
pub struct Rows {
    session: String,
    path: PathBuf,
    file: File,
}

impl Rows {
    /// Opens the file of a session that begins now.
    pub fn begin(dir: &Path, label: &str) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let session = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let path = dir.join(format!("{session}-{label}.jsonl"));
        let file = OpenOptions::new().append(true).create(true).open(&path)?;
        Ok(Self { session, path, file })
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a row and says it.
    pub fn write(&mut self, run: &Run, since: Weather, figures: Value) -> Result<()> {
        let (busy, steal) = Ticks::now().busy_and_stolen_since(&since.ticks);
        let figures = match figures {
            Value::Object(map) => map,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        let row = Row {
            session: self.session.clone(),
            at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            metric: run.metric.to_owned(),
            variant: run.variant.clone(),
            round: run.round,
            server: run.server.to_owned(),
            sites: run.sites,
            figures,
            load: (rounded(since.load), rounded(load_average())),
            busy: rounded(busy),
            steal: rounded(steal),
        };
        let line = serde_json::to_string(&row)?;
        writeln!(self.file, "{line}")?;
        println!("{}", told(&row));
        Ok(())
    }
}

/// A row as a line for people, samples left out.
fn told(row: &Row) -> String {
    let figures: Vec<String> = row
        .figures
        .iter()
        .filter(|(_, value)| !value.is_array())
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!(
        "{:<5} {:<14} {:<6} round {} n={} {} (busy {} %, steal {} %)",
        row.metric,
        row.variant,
        row.server,
        row.round,
        row.sites,
        figures.join(" "),
        row.busy,
        row.steal
    )
}

/// Two decimals.
#[must_use]
pub fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// All rows of a folder, in order of session and time.
pub fn read_all(dir: &Path) -> Result<Vec<Row>> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .with_context(|| format!("no results in {}", dir.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        rows.extend(read_file(&file)?);
    }
    Ok(rows)
}

/// The rows of one file.
pub fn read_file(file: &Path) -> Result<Vec<Row>> {
    let text = fs::read_to_string(file)?;
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).with_context(|| format!("a row of {}", file.display()))).collect()
}
