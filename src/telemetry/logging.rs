//! Log lines: their form and who may speak at which level.
//!
//! Owns the filter. Libraries speak at `operator.dependency_log_level`; those below HTTP stay at WARN unless
//! that is DEBUG; kube's client and watcher are silenced where they would print whole answers.

use thiserror::Error;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// The crates whose lines are ours.
const OURS: [&str; 1] = ["sites"];
/// What speaks HTTP or runs below it.
const HTTP_CLIENTS: [&str; 9] =
    ["hyper", "hyper_util", "hyper_rustls", "rustls", "tower", "tower_http", "kube", "kube_client", "kube_runtime"];
/// Libraries whose lines at INFO are about every object.
const NOISY: [&str; 3] = ["ractor", "opentelemetry", "opentelemetry_sdk"];
/// These print a server's whole answer, secrets included, when it does not decode, or a client's whole request. Their
/// callers say what happened without it.
const NEVER: [&str; 2] = ["kube_client::client", "s3s"];

/// How lines look and who speaks.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// One JSON object a line, else text for a person.
    pub json: bool,
    /// Level of our own lines: `ERROR`, `WARN`, `INFO`, `DEBUG`, `TRACE`, in any case.
    pub level: String,
    /// Level of the lines of libraries.
    pub dependency_level: String,
}

/// Why logging could not begin.
#[derive(Debug, Error)]
pub enum LoggingError {
    /// A level that is none.
    #[error("{0:?} is no log level: ERROR, WARN, INFO, DEBUG or TRACE is")]
    Level(String),
    /// Something else logs already.
    #[error("logging was set up before: {0}")]
    Again(#[source] tracing_subscriber::util::TryInitError),
    /// The filter is malformed.
    #[error("log filter: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
}

/// Begins to log, to standard output. `RUST_LOG`, where set, is added to the filter.
pub fn init(options: &LogOptions) -> Result<(), LoggingError> {
    let filter = filter(options, std::env::var("RUST_LOG").ok().as_deref())?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::NONE)
        .with_writer(std::io::stdout)
        .with_target(true);
    if options.json {
        let json = builder.json().flatten_event(true).with_current_span(true).with_span_list(false);
        json.finish().try_init().map_err(LoggingError::Again)
    } else {
        builder.finish().try_init().map_err(LoggingError::Again)
    }
}

/// Says why the process ends: in the log, or on standard error if logging has not begun.
pub fn last_word(error: &impl std::fmt::Display) {
    if tracing::dispatcher::has_been_set() {
        tracing::error!("the process ends: {error:#}");
    } else {
        eprintln!("sites: {error:#}");
    }
}

fn filter(options: &LogOptions, more: Option<&str>) -> Result<EnvFilter, LoggingError> {
    let ours = level(&options.level)?;
    let theirs = level(&options.dependency_level)?;
    let debugging = theirs >= LevelFilter::DEBUG;
    let quiet = if debugging { theirs } else { theirs.min(LevelFilter::WARN) };
    let mut filter = EnvFilter::default().add_directive(theirs.into());
    let mut add = |target: &str, level: LevelFilter| -> Result<(), LoggingError> {
        filter = std::mem::take(&mut filter).add_directive(format!("{target}={level}").parse()?);
        Ok(())
    };
    for target in HTTP_CLIENTS.into_iter().chain(NOISY) {
        add(target, quiet)?;
    }
    for target in OURS {
        add(target, ours)?;
    }
    for part in more.into_iter().flat_map(|text| text.split(',')).filter(|part| !part.is_empty()) {
        filter = std::mem::take(&mut filter).add_directive(part.parse()?);
    }
    // What these watch and call is reported by our own lines, once and without the content.
    for target in NEVER {
        filter = std::mem::take(&mut filter).add_directive(format!("{target}=off").parse()?);
    }
    if !debugging {
        filter = std::mem::take(&mut filter).add_directive("kube_runtime::watcher=error".parse()?);
    }
    Ok(filter)
}

fn level(text: &str) -> Result<LevelFilter, LoggingError> {
    match text.to_ascii_uppercase().as_str() {
        "ERROR" => Ok(LevelFilter::ERROR),
        "WARN" | "WARNING" => Ok(LevelFilter::WARN),
        "INFO" => Ok(LevelFilter::INFO),
        "DEBUG" => Ok(LevelFilter::DEBUG),
        "TRACE" => Ok(LevelFilter::TRACE),
        _ => Err(LoggingError::Level(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(ours: &str, theirs: &str) -> String {
        let options = LogOptions { json: true, level: ours.to_owned(), dependency_level: theirs.to_owned() };
        filter(&options, None).unwrap().to_string()
    }

    #[test]
    fn http_clients_stay_at_warn_unless_debugging() {
        let normal = text("debug", "INFO");
        for part in [
            "sites=debug",
            "hyper=warn",
            "kube_client=warn",
            "ractor=warn",
            "kube_runtime::watcher=error",
            "kube_client::client=off",
        ] {
            assert!(normal.split(',').any(|found| found == part), "{part} in {normal}");
        }
        assert!(normal.split(',').any(|found| found == "info"), "{normal}");
        let debugging = text("INFO", "debug");
        for part in ["sites=info", "hyper=debug", "ractor=debug", "kube_client::client=off"] {
            assert!(debugging.split(',').any(|found| found == part), "{part} in {debugging}");
        }
        assert!(text("INFO", "ERROR").contains("hyper=error"));
    }

    #[test]
    fn a_wrong_level_is_an_error() {
        let options = LogOptions { json: true, level: "loud".to_owned(), dependency_level: "INFO".to_owned() };
        assert!(matches!(filter(&options, None), Err(LoggingError::Level(_))));
    }
}
