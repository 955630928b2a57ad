//! `RESULTS.md`: made of the raw rows and of nothing else, so that nobody has to copy a figure.

mod runtime;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::rows::{Row, rounded};

/// What is stated about the way of measuring.
const HOW: &str = include_str!("../how.md");

/// What the figures leave open, and why.
const REMAINS: &str = include_str!("../remains.md");

/// One line of the verdict.
struct Line {
    id: &'static str,
    what: String,
    /// The aim and the further aim; none for what is only reported.
    aims: Option<(f64, f64)>,
    unit: &'static str,
    values: Vec<f64>,
}

/// The whole report.
#[must_use]
pub fn markdown(rows: &[Row]) -> String {
    let mut text =
        String::from("# Results of the load test\n\nMade by `sites-loadtest report` from `results/*.jsonl`.\n");
    let _ = write!(text, "\n{HOW}\n## Verdict\n\n");
    text.push_str("| Id | What | Aim | Further | Median | Min | Max | n | |\n|---|---|---|---|---|---|---|---|---|\n");
    for line in lines(rows) {
        text.push_str(&told(&line));
    }
    let _ = write!(text, "\n{REMAINS}");
    text.push_str(&counts(rows));
    text.push_str(&sessions(rows));
    text
}

fn told(line: &Line) -> String {
    if line.values.is_empty() {
        return String::new();
    }
    let mut sorted = line.values.clone();
    sorted.sort_by(f64::total_cmp);
    let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
    let unit = if line.unit.is_empty() { String::new() } else { format!(" {}", line.unit) };
    let show = |number: f64| format!("{:.2}{unit}", rounded(number));
    let (aim, further, verdict) = match line.aims {
        None => (String::new(), String::new(), "reported"),
        Some((aim, further)) => {
            let verdict = if median <= further {
                "further aim met"
            } else if median <= aim {
                "met"
            } else {
                "**missed**"
            };
            (format!("≤ {}{unit}", rounded(aim)), format!("≤ {}{unit}", rounded(further)), verdict)
        }
    };
    format!(
        "| {} | {} | {aim} | {further} | {} | {} | {} | {} | {verdict} |\n",
        line.id,
        line.what,
        show(median),
        show(first),
        show(last),
        sorted.len(),
    )
}

/// The operator's processor time as a share of the server's, run by run.
fn share(rows: &[Row]) -> Vec<f64> {
    let ours = rows.iter().filter(|row| (&*row.metric, &*row.server, &*row.variant) == ("M1", "alone", "operator-32"));
    let share = |row: &Row| Some(row.number("operator_cpu_ms_per_site")? / row.number("server_cpu_ms_per_site")?);
    ours.filter_map(share).collect()
}

// One table, a line each.
#[allow(clippy::too_many_lines)]
fn lines(rows: &[Row]) -> Vec<Line> {
    let line = |id, what: &str, aims, unit, values| Line { id, what: what.to_owned(), aims, unit, values };
    let seconds = |server: &str, ours: &str| ratios(rows, "M1", server, ours, "bare-", "seconds");
    let figure = |metric: &str, server: &str, variant: &str, name: &str| -> Vec<f64> {
        let of = |row: &&Row| row.metric == metric && row.server == server && row.variant == variant;
        rows.iter().filter(of).filter_map(|row| row.number(name)).collect()
    };
    let mut all = vec![
        line(
            "M1",
            "time to make the Sites, 32 workers / best bare loop",
            Some((1.30, 1.15)),
            "",
            seconds("alone", "operator-32"),
        ),
        line("M1", "the same with 5 workers, the default", None, "", seconds("alone", "operator-5")),
        line("M1", "with controllers and kwok, until all run", None, "", seconds("whole", "operator-32")),
        line(
            "M1b",
            "operator's processor time per new Site",
            Some((2.0, 1.0)),
            "ms",
            figure("M1", "alone", "operator-32", "operator_cpu_ms_per_site"),
        ),
        line("M1b", "the same / the server's own in the same run", None, "", share(rows)),
        line(
            "M1b",
            "the same with controllers and kwok",
            None,
            "ms",
            figure("M1", "whole", "operator-32", "operator_cpu_ms_per_site"),
        ),
        line(
            "M3",
            "memory per idle Site, after a restart",
            Some((12.0, 8.0)),
            "KiB",
            figure("M3", "alone", "after a restart", "kib_per_site"),
        ),
        line(
            "M3",
            "memory per Site, after creating them all",
            None,
            "KiB",
            figure("M3", "alone", "after creating", "kib_per_site"),
        ),
        line(
            "M3b",
            "peak of the first lists / steady",
            Some((2.0, 1.3)),
            "",
            figure("M3", "alone", "after a restart", "peak_over_steady"),
        ),
    ];
    let pages: BTreeSet<&str> = rows.iter().filter(|row| row.metric == "M7").map(|row| row.variant.as_str()).collect();
    for page in pages {
        // Static over list: the aims, 0.3 and 0.6 of the static rate, turned round so that less is better.
        let slower = figure("M7", "alone", page, "ratio").into_iter().map(|ratio| 1.0 / ratio).collect();
        all.push(line(
            "M7",
            &format!("static rate / the Hub's list, {page}"),
            Some((1.0 / 0.3, 1.0 / 0.6)),
            "",
            slower,
        ));
        all.push(line(
            "M7",
            &format!("the Hub's processor time a page, {page}"),
            None,
            "µs",
            figure("M7", "alone", page, "cpu_us"),
        ));
    }
    let changes: BTreeSet<&str> =
        rows.iter().filter(|row| row.metric == "M4").filter_map(|row| row.variant.strip_prefix("operator-")).collect();
    for rate in changes {
        let (ours, theirs) = (format!("operator-{rate}"), format!("echo-{rate}"));
        for (quantile, aims) in [("p50", (1.5, 1.2)), ("p99", (2.0, 1.5))] {
            let values = ratios(rows, "M4", "alone", &ours, &theirs, &format!("{quantile}_ms"));
            let what = format!("pod change to status, {quantile} at {rate} / echo loop");
            all.push(Line { id: "M4", what, aims: Some(aims), unit: "", values });
        }
    }
    let during = |metric, server, quantile| ratios(rows, metric, server, "during an upgrade", "idle", quantile);
    all.extend([
        line(
            "M4b",
            "all pods flip at once / best bare patches",
            Some((1.5, 1.2)),
            "",
            ratios(rows, "M4b", "alone", "operator", "bare-", "seconds"),
        ),
        line(
            "M5",
            "exec to ready / bare list",
            Some((1.5, 1.2)),
            "",
            ratios(rows, "M5", "alone", "operator", "bare-list", "ready_ms"),
        ),
        line(
            "M7b",
            "Site change to the Hub's list, p99",
            Some((50.0, 10.0)),
            "ms",
            figure("M7b", "alone", "change to list", "p99_ms"),
        ),
        line("M9", "new Site during an upgrade / idle, p99", Some((3.0, 1.5)), "", during("M9", "alone", "p99_ms")),
        line("M9", "new Site during an upgrade / idle, p50", None, "", during("M9", "alone", "p50_ms")),
        line(
            "M9b",
            "edit to Running, during an upgrade / idle, p50",
            Some((1.5, 1.2)),
            "",
            during("M9b", "whole", "p50_ms"),
        ),
        line("M9b", "edit to Running, during an upgrade / idle, p99", None, "", during("M9b", "whole", "p99_ms")),
    ]);
    all.extend(runtime::lines(rows));
    all
}

/// Ours over the best of theirs, in each round of each session.
fn ratios(rows: &[Row], metric: &str, server: &str, ours: &str, theirs: &str, figure: &str) -> Vec<f64> {
    let of = |row: &&Row| row.metric == metric && row.server == server;
    let rounds: BTreeSet<(&str, usize)> = rows.iter().filter(of).map(|row| (row.session.as_str(), row.round)).collect();
    rounds
        .into_iter()
        .filter_map(|(session, round)| {
            let here = || rows.iter().filter(of).filter(move |row| row.session == session && row.round == round);
            let own = here().find(|row| row.variant == ours)?.number(figure)?;
            let best = here()
                .filter(|row| row.variant.starts_with(theirs))
                .filter_map(|row| row.number(figure))
                .min_by(f64::total_cmp)?;
            Some(own / best)
        })
        .collect()
}

/// M2, M5b and M5c.
fn counts(rows: &[Row]) -> String {
    let mut text = String::from(
        "\n## Requests, counted by the server\n\n| Id | Event | Sites | Expected | Counted | Exact |\n|---|---|---|---|---|---|\n",
    );
    for row in rows.iter().filter(|row| matches!(row.metric.as_str(), "M2" | "M5b" | "M5c")) {
        let calls = row.figures.get("calls").and_then(|calls| calls.as_object()).cloned().unwrap_or_default();
        let list: Vec<String> = calls.iter().map(|(name, count)| format!("{count} {name}")).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            row.metric,
            row.variant,
            row.sites,
            row.number("expected").unwrap_or_default(),
            if list.is_empty() { "none".to_owned() } else { list.join(", ") },
            if row.figures.get("exact").and_then(serde_json::Value::as_bool) == Some(true) { "yes" } else { "**no**" },
        );
    }
    text
}

/// Every run of every session.
fn sessions(rows: &[Row]) -> String {
    let mut text = String::new();
    let names: BTreeSet<&str> = rows.iter().map(|row| row.session.as_str()).collect();
    for session in names {
        let _ = write!(text, "\n## Session {session}\n\n");
        let here = || rows.iter().filter(move |row| row.session == session);
        for row in here().filter(|row| row.metric == "about") {
            let facts: Vec<String> = row.figures.iter().map(|(name, value)| format!("{name} {value}")).collect();
            let _ = write!(text, "{}\n\n", facts.join(", ").replace('"', ""));
        }
        let contents: BTreeSet<String> = here()
            .filter(|row| row.metric == "M1")
            .filter_map(|row| Some(row.figures.get("content")?.to_string()))
            .collect();
        let _ = match contents.len() {
            0 => Ok(()),
            1 => write!(text, "All M1 runs left the same objects on their servers.\n\n"),
            several => write!(text, "**The M1 runs left {several} different sets of objects.**\n\n"),
        };
        text.push_str("| Id | Who | Server | Round | Sites | Figures | Load before, after | Busy % | Steal % |\n|---|---|---|---|---|---|---|---|---|\n");
        for row in here().filter(|row| !matches!(row.metric.as_str(), "about" | "M2" | "M5b" | "M5c")) {
            let figures: Vec<String> = row
                .figures
                .iter()
                .filter(|(name, value)| !value.is_array() && name.as_str() != "content")
                .map(|(name, value)| format!("{name} {value}"))
                .collect();
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {}, {} | {} | {} |",
                row.metric,
                row.variant,
                row.server,
                row.round,
                row.sites,
                figures.join(", "),
                row.load.0,
                row.load.1,
                row.busy,
                row.steal,
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(round: usize, variant: &str, seconds: f64) -> Row {
        serde_json::from_value(json!({
            "session": "s", "at": "", "metric": "M1", "variant": variant, "round": round, "server": "alone",
            "sites": 1, "figures": {"seconds": seconds}, "load": [0.0, 0.0], "busy": 0.0, "steal": 0.0,
        }))
        .unwrap()
    }

    #[test]
    fn a_ratio_is_made_within_one_round_against_the_best() {
        let rows = [
            row(0, "operator-32", 12.0),
            row(0, "bare-1", 20.0),
            row(0, "bare-16", 10.0),
            row(1, "bare-16", 1.0),
            row(1, "operator-32", 2.0),
            row(2, "operator-32", 9.0),
        ];
        assert_eq!(ratios(&rows, "M1", "alone", "operator-32", "bare-", "seconds"), [1.2, 2.0]);
    }

    #[test]
    fn a_missed_aim_is_said() {
        let line = |values| Line { id: "M1", what: String::new(), aims: Some((1.3, 1.15)), unit: "", values };
        assert!(told(&line(vec![1.0, 1.2, 1.9])).contains("| 1.20 | 1.00 | 1.90 | 3 | met |"));
        assert!(told(&line(vec![1.4])).ends_with("**missed** |\n"));
        assert!(told(&line(vec![1.1])).ends_with("further aim met |\n"));
    }
}
