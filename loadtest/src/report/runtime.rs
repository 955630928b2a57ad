//! The lines of the verdict about a site's pod.

use std::collections::BTreeSet;

use super::Line;
use crate::rows::Row;

/// R1 to R4: a site's pod on a real node.
pub(super) fn lines(rows: &[Row]) -> Vec<Line> {
    let of = |metric: &'static str| rows.iter().filter(move |row| row.metric == metric);
    let variants = |metric| of(metric).map(|row| row.variant.as_str()).collect::<BTreeSet<_>>();
    let mut all = Vec::new();
    for who in variants("R1") {
        for (figure, what) in [("working_set_kib", "working set"), ("rss_kib", "anonymous memory")] {
            let values = of("R1").filter(|row| row.variant == who).filter_map(|row| row.number(figure));
            let values = values.map(|kib| kib / 1024.0).collect();
            all.push(Line { id: "R1", what: format!("{who}, {what}"), aims: None, unit: "MiB", values });
        }
    }
    // Bare over ours: the aims, 0.8 and 0.9 of the bare rate, turned round so that less is better.
    let slower = |metric, ours: &str, other, bare: &str, figure| -> Vec<f64> {
        paired(rows, (metric, ours), (other, bare), figure).into_iter().map(|ratio| 1.0 / ratio).collect()
    };
    for ours in variants("R2").into_iter().filter_map(|variant| variant.strip_prefix("site-proxy ")) {
        let values = slower("R2", &format!("site-proxy {ours}"), "R2", &format!("bare {ours}"), "per_second");
        let what = format!("bare nginx / site-proxy, requests a second, {ours}");
        all.push(Line { id: "R2", what, aims: Some((1.0 / 0.8, 1.0 / 0.9)), unit: "", values });
    }
    for by in variants("R3") {
        let values = slower("R3", by, "R2", "bare 1 KiB", "per_second");
        let what = format!("bare nginx / a private file by {by}, 1 KiB");
        all.push(Line { id: "R3", what, aims: None, unit: "", values });
    }
    let values = slower("R4", "Site API", "R4", "bare", "mib_per_second");
    all.push(Line {
        id: "R4",
        what: "nginx's own PUT / Site API, upload speed".to_owned(),
        aims: Some((1.0 / 0.8, 1.0 / 0.9)),
        unit: "",
        values,
    });
    all
}

/// The first metric's variant over the second's, in each round of each session.
fn paired(rows: &[Row], ours: (&str, &str), theirs: (&str, &str), figure: &str) -> Vec<f64> {
    let is = |row: &&Row, of: (&str, &str)| row.metric == of.0 && row.variant == of.1;
    let same = |row: &Row| {
        let other = rows.iter().find(|one| is(one, theirs) && one.session == row.session && one.round == row.round)?;
        Some(row.number(figure)? / other.number(figure)?)
    };
    rows.iter().filter(|row| is(row, ours)).filter_map(same).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_runtime_is_compared_within_one_round() {
        let rows = [
            ("R2", "bare 1 KiB", 0, 50.0),
            ("R2", "site-proxy 1 KiB", 0, 100.0),
            ("R2", "site-proxy 1 KiB", 1, 50.0),
            ("R2", "bare 1 KiB", 1, 100.0),
            ("R3", "session", 1, 25.0),
        ];
        let rows = rows.map(|(metric, variant, round, rate)| {
            let row = json!({
                "session": "s", "at": "", "metric": metric, "variant": variant, "round": round, "server": "node",
                "sites": 1, "figures": {"per_second": rate}, "load": [0.0, 0.0], "busy": 0.0, "steal": 0.0,
            });
            serde_json::from_value::<Row>(row).unwrap()
        });
        let lines = lines(&rows);
        let values = |id: &str| lines.iter().find(|line| line.id == id).unwrap().values.clone();
        assert_eq!((values("R2"), values("R3"), values("R4")), (vec![0.5, 2.0], vec![4.0], vec![]));
    }
}
