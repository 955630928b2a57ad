//! Reports: asked for, made one at a time in the order they were asked for, kept for seven days.
//!
//! | module | owns |
//! |---|---|
//! | [`rows`] | what each kind of report says of a Site. Pure |
//! | [`csv`] | rows as CSV that no spreadsheet runs. Pure |
//! | `actor` | that the next report is made, by one replica |

mod actor;
pub mod csv;
pub mod rows;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use ractor::{ActorRef, SpawnErr};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use self::actor::Reporter;
pub use self::actor::{ReportMessage, Sources};
use self::rows::Table;
use super::actor::Ended;
use super::error::ApiError;
use crate::cache::Cache;
use crate::telemetry::Metrics;

/// How long a report is kept.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// Reports of a list.
const LISTED: usize = 100;

/// What a report is about.
#[derive(Serialize, Deserialize, ToSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ReportKind {
    /// Every Site.
    Inventory,
    /// Bytes used, as far as the Sites answer.
    Usage,
    /// Days of retention, the nearest first.
    Retention,
    /// The monitored and enabled Sites.
    Health,
}

/// How a report stands.
#[derive(Serialize, Deserialize, ToSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ReportState {
    /// Its turn has not come.
    Queued,
    /// It is being made.
    Working,
    /// It can be read.
    Done,
    /// It could not be made: ask again.
    Failed,
}

/// What was asked, and how it stands.
#[derive(Serialize, Deserialize, ToSchema, Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The report, to ask for with `/reports/{id}/`.
    #[schema(value_type = String)]
    pub id: Uuid,
    /// What it is about.
    pub kind: ReportKind,
    /// Who asked.
    pub by: String,
    /// When it was asked for.
    #[schema(value_type = String, format = DateTime)]
    pub asked_at: Timestamp,
    /// When it was made: the Sites are those of this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    /// How it stands.
    pub state: ReportState,
    /// Number of its rows.
    #[serde(default)]
    pub count: usize,
}

/// The reports; cheap to clone.
#[derive(Clone, Debug)]
pub struct Reports {
    namespace: Arc<str>,
    cache: Cache,
    actor: ActorRef<ReportMessage>,
}

impl Reports {
    /// Starts the actor.
    pub async fn start(sources: Sources, metrics: &Metrics) -> Result<(Self, Ended), SpawnErr> {
        let (namespace, cache) = (sources.namespace.clone(), sources.cache.clone());
        let (actor, ended) = Reporter::start(sources, metrics).await?;
        Ok((Self { namespace, cache, actor }, ended))
    }

    /// Asks for a report.
    pub async fn ask(&self, kind: ReportKind, by: &str) -> Result<Report, ApiError> {
        let report = Report {
            id: Uuid::new_v4(),
            kind,
            by: by.to_owned(),
            asked_at: Timestamp::now(),
            ended_at: None,
            state: ReportState::Queued,
            count: 0,
        };
        let at = report.asked_at.as_millisecond();
        self.cache.ask_report(&self.namespace, &report.id.to_string(), &report, at, RETENTION).await?;
        // Without the actor the process ends, and another makes it.
        let _ = self.actor.cast(ReportMessage::Look);
        Ok(report)
    }

    /// The reports that are remembered, newest first.
    pub async fn list(&self) -> Result<Vec<Report>, ApiError> {
        let mut reports = Vec::new();
        for id in self.cache.reports(&self.namespace, LISTED).await? {
            reports.extend(self.cache.report::<Report>(&self.namespace, &id).await?);
        }
        Ok(reports)
    }

    /// One report, and what it found once it is made.
    pub async fn get(&self, id: &str) -> Result<(Report, Option<Table>), ApiError> {
        let missing = || ApiError::NotFound("the report");
        let id = id.parse::<Uuid>().map_err(|_| missing())?.to_string();
        let report = self.cache.report::<Report>(&self.namespace, &id).await?.ok_or_else(missing)?;
        let table = self.cache.report_rows::<Table>(&self.namespace, &id).await?;
        Ok((report, table))
    }
}
