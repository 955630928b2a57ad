//! A served OpenAPI document against its server, by schemathesis: requests that the document allows and requests that
//! it forbids, each answer held against what the document promises. The seed is fixed, so a run can be repeated.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// What every answer is held against.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_schema_conformance,response_headers_conformance,forbidden_data_is_refused,ignored_auth";

/// What may be answered to requests that the document forbids.
const REFUSALS: &str = "\n[checks.negative_data_rejection]\n\
    expected-statuses = [400, 401, 403, 404, 405, 409, 410, 413, 415, 429]\n";

/// One run.
pub struct Schema<'a> {
    /// Where the document is.
    pub document: String,
    /// What its paths are below.
    pub base: String,
    /// The bearer token.
    pub token: &'a str,
    /// Generated requests per operation and kind.
    pub examples: u32,
    /// The rest of the configuration, as TOML: values that lead somewhere.
    pub config: &'a str,
    /// More arguments, such as `--exclude-path`.
    pub arguments: &'a [&'a str],
    /// The edge that names below `localhost` lead to, and who signed its certificate; HTTPS has its usual port.
    pub edge: Option<(SocketAddr, PathBuf)>,
}

/// What was seen.
#[derive(Debug)]
pub struct Seen {
    /// Whether every answer was as promised.
    pub good: bool,
    /// What it says itself, the failures with a command that repeats each.
    pub text: String,
    /// Answers by operation and status.
    pub answers: BTreeMap<String, BTreeMap<u64, u64>>,
}

impl Schema<'_> {
    /// Runs to the end.
    pub async fn run(&self) -> Seen {
        let python = tokio::task::spawn_blocking(xtask::clients::python).await.unwrap().expect("schemathesis is there");
        let dir = tempfile::tempdir().unwrap();
        let (config, report) = (dir.path().join("schemathesis.toml"), dir.path().join("report.ndjson"));
        std::fs::write(&config, format!("{}{REFUSALS}", self.config)).unwrap();
        let mut command = tokio::process::Command::from(xtask::process::tied("python3"));
        command
            .args(["-m", "schemathesis.cli", "--config-file"])
            .arg(&config)
            .args(["run", &self.document, "--url", &self.base, "--header"])
            .arg(format!("Authorization: Bearer {}", self.token))
            .args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--seed", "20260101"])
            .args(["--max-examples", &self.examples.to_string(), "--continue-on-failure"])
            .args(["--no-shrink", "--no-color", "--generation-database", "none", "--request-timeout", "30"])
            .args(["--report", "ndjson", "--report-ndjson-path"])
            .arg(&report)
            .args(self.arguments)
            .current_dir(dir.path())
            .env("PYTHONPATH", python)
            .env("SCHEMATHESIS_HOOKS", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/hooks.py"))
            .env("HOME", dir.path())
            .kill_on_drop(true);
        if let Some((address, ca)) = &self.edge {
            command.env("EDGE_ADDRESS", address.ip().to_string()).arg("--tls-verify").arg(ca);
        }
        let out = command.output().await.expect("python3");
        let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
        let _ = write!(text, "{}", String::from_utf8_lossy(&out.stderr));
        Seen { good: out.status.success(), answers: answers(&report), text }
    }
}

impl Seen {
    /// Counts another run's answers too.
    pub fn join(&mut self, other: Self) {
        for (name, answers) in other.answers {
            for (status, count) in answers {
                *self.answers.entry(name.clone()).or_default().entry(status).or_default() += count;
            }
        }
    }

    /// Operations that never went well.
    pub fn never(&self) -> Vec<&str> {
        let well = |answers: &BTreeMap<u64, u64>| answers.keys().any(|status| (200..400).contains(status));
        self.answers.iter().filter(|(_, answers)| !well(answers)).map(|(name, _)| name.as_str()).collect()
    }
}

/// The statuses in the report, by operation.
fn answers(report: &Path) -> BTreeMap<String, BTreeMap<u64, u64>> {
    let mut seen: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
    let text = std::fs::read_to_string(report).unwrap_or_default();
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).expect("a report of JSON lines");
        let recorder = &event["ScenarioFinished"]["recorder"];
        let Some(name) = recorder["label"].as_str() else { continue };
        let counted = seen.entry(name.to_owned()).or_default();
        for exchange in recorder["interactions"].as_object().into_iter().flat_map(serde_json::Map::values) {
            let status = exchange["response"]["status_code"].as_u64().unwrap_or_default();
            *counted.entry(status).or_default() += 1;
        }
    }
    seen
}
