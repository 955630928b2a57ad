//! What each kind of report says of a Site.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::health::HealthReport;
use crate::domain::site::{Site, SiteType};

/// Columns and rows; a cell is a text, a number, a truth or null for what is not known.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// As many cells in each row as there are columns.
    pub rows: Vec<Vec<Value>>,
}

/// How much of its volume a Site uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Bytes.
    pub used: u64,
    /// Bytes that it may use, if there is a limit.
    pub limit: Option<u64>,
}

impl Table {
    fn new(columns: &[&str], rows: impl Iterator<Item = Vec<Value>>) -> Self {
        Self { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows: rows.collect() }
    }

    /// The rows as objects.
    #[must_use]
    pub fn objects(&self) -> Vec<Map<String, Value>> {
        let object = |row: &Vec<Value>| self.columns.iter().cloned().zip(row.iter().cloned()).collect();
        self.rows.iter().map(object).collect()
    }
}

/// Every Site.
pub fn inventory<'a>(sites: impl Iterator<Item = &'a Site>) -> Table {
    let columns = [
        "id",
        "space",
        "name",
        "owner",
        "type",
        "enabled",
        "phase",
        "quota_gi",
        "monitored",
        "registered_date",
        "retention_date",
        "updated_date",
        "applications",
        "description",
    ];
    Table::new(
        &columns,
        sites.map(|site| {
            let configuration = &site.spec.configuration;
            let applications: Vec<&str> =
                configuration.applications.iter().map(|application| application.name.as_str()).collect();
            let kind = if site.spec.site_type == SiteType::Public { "public" } else { "private" };
            vec![
                json!(site.spec.id),
                json!(configuration.space),
                json!(site.spec.name),
                json!(site.spec.owner),
                json!(kind),
                json!(site.enabled()),
                json!(site.status.as_ref().and_then(|status| status.phase)),
                json!(configuration.quota),
                json!(site.monitored()),
                json!(configuration.registered_date),
                json!(configuration.retention_date),
                json!(configuration.updated_date),
                json!(applications.join(" ")),
                json!(configuration.description),
            ]
        }),
    )
}

/// How much each Site uses; null where its pods did not answer.
pub fn usage<'a>(sites: impl Iterator<Item = (&'a Site, Option<Usage>)>) -> Table {
    Table::new(
        &["id", "space", "name", "owner", "quota_gi", "used_bytes", "limit_bytes", "used_percent"],
        sites.map(|(site, usage)| {
            let percent = usage.and_then(|usage| {
                let limit = usage.limit.filter(|limit| *limit > 0)?;
                u64::try_from(u128::from(usage.used) * 100 / u128::from(limit)).ok()
            });
            vec![
                json!(site.spec.id),
                json!(site.spec.configuration.space),
                json!(site.spec.name),
                json!(site.spec.owner),
                json!(site.spec.configuration.quota),
                json!(usage.map(|usage| usage.used)),
                json!(usage.and_then(|usage| usage.limit)),
                json!(percent),
            ]
        }),
    )
}

/// The Sites with a day of retention, the nearest first.
pub fn retention<'a>(sites: impl Iterator<Item = &'a Site>, today: Date) -> Table {
    let mut dated: Vec<(Date, &Site)> = sites
        .filter_map(|site| Some((site.spec.configuration.retention_date.as_deref()?.parse().ok()?, site)))
        .collect();
    dated.sort_by(|a, b| (a.0, &a.1.spec.id).cmp(&(b.0, &b.1.spec.id)));
    Table::new(
        &["id", "space", "name", "owner", "enabled", "retention_date", "days_left", "outdated"],
        dated.into_iter().map(|(day, site)| {
            let left = (day - today).get_days();
            vec![
                json!(site.spec.id),
                json!(site.spec.configuration.space),
                json!(site.spec.name),
                json!(site.spec.owner),
                json!(site.enabled()),
                json!(day.to_string()),
                json!(left),
                // The day itself still counts.
                json!(left < 0),
            ]
        }),
    )
}

/// The health report as it stands.
#[must_use]
pub fn health(report: &HealthReport) -> Table {
    Table::new(
        &["id", "space", "name", "owner", "healthy", "phase", "problems", "probed_at", "probe"],
        report.sites.iter().map(|site| {
            vec![
                json!(site.id),
                json!(site.space),
                json!(site.name),
                json!(site.owner),
                json!(site.healthy),
                json!(site.phase),
                json!(site.problems.join("; ")),
                json!(site.probe.as_ref().map(|probe| probe.at)),
                json!(site.probe.as_ref().map(|probe| &probe.outcome)),
            ]
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::catalog::index::tests::site;
    use super::*;

    #[test]
    fn the_nearest_day_comes_first_and_the_day_itself_counts() {
        let [mut a, mut b, mut c, d] = ["a", "b", "c", "d"].map(|id| site(id, "s", id, "o", "public"));
        a.spec.configuration.retention_date = Some("2026-03-01".to_owned());
        b.spec.configuration.retention_date = Some("2026-02-27".to_owned());
        c.spec.configuration.retention_date = Some("2026-02-28".to_owned());
        let table = retention([&a, &b, &c, &d].into_iter(), "2026-02-28".parse().unwrap());
        let told: Vec<String> = table.rows.iter().map(|row| format!("{} {} {}", row[0], row[6], row[7])).collect();
        assert_eq!(told, ["\"b\" -1 true", "\"c\" 0 false", "\"a\" 1 false"]);
    }

    #[test]
    fn what_is_not_known_is_null_and_no_secret_is_told() {
        let sites = [site("a", "s", "a", "o", "public"), site("b", "s", "b", "o", "private")];
        let usage = usage(sites.iter().zip([None, Some(Usage { used: 5, limit: Some(10) })]));
        assert_eq!((&usage.rows[0][5], &usage.rows[0][7]), (&Value::Null, &Value::Null));
        assert_eq!(usage.rows[1][7], json!(50));
        let inventory = inventory(sites.iter());
        assert!(inventory.rows.iter().all(|row| row.len() == inventory.columns.len()));
        assert!(!serde_json::to_string(&inventory).unwrap().contains("hunter2"));
        assert_eq!(inventory.objects()[1]["type"], json!("private"));
    }
}
