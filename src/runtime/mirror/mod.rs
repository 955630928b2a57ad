//! `sites runtime mirror`: copies another platform's site into this one, again and again, while a migration is on.
//!
//! Owns the cycle. It only reads the source, and here it only touches what it wrote itself: a file that somebody
//! changed or added on this side stays. It deletes nothing unless the source was listed completely, and never more
//! than a set share of what it wrote.
//!
//! | module | owns |
//! |---|---|
//! | `source` | the source's Site API: listing, downloads with retry and resume |
//! | `plan` | what to do about each file. Pure |
//! | `record` | what was written, in the site's state |

mod plan;
mod record;
mod source;

use std::sync::Arc;

use anyhow::Context;
use rand::RngExt;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};

use self::plan::{Local, Step, allowed_deletions, deletions, step};
use self::record::{Record, Written};
use self::source::{Downloaded, Source, Wanted};
use super::config::{MirrorConfig, SiteConfig};
use super::content::{Condition, Content, ContentError, EntryType, SitePath, StateFile, WriteOptions};
use crate::telemetry::logging;

/// Files after which the record is saved, so that a restart begins about where it stopped.
const SAVE_EVERY: usize = 100;

/// What a cycle did.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    listed: usize,
    copied: usize,
    linked: usize,
    deleted: usize,
    /// Changed on this side: left alone.
    kept: usize,
    failed: usize,
}

/// Mirrors until it is told to stop.
pub async fn run() -> anyhow::Result<()> {
    let environment = |name: &str| std::env::var(name).ok();
    let config = SiteConfig::load(&environment)?;
    let mirror = MirrorConfig::load(&environment)?;
    logging::init(&config.log)?;
    let content = Arc::new(Content::open(&config.content_dir, config.quota)?);
    let source = Source::new(&mirror.source, config.master_token.clone())?;
    let file = content.state_file::<Record>("mirror.json")?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    info!(source = %mirror.source, dry_run = mirror.dry_run, "sites runtime mirror starts");
    let mirroring = async {
        loop {
            match cycle(&source, &content, &file, &mirror).await {
                Ok(counts) => info!(
                    listed = counts.listed,
                    copied = counts.copied,
                    linked = counts.linked,
                    deleted = counts.deleted,
                    kept = counts.kept,
                    failed = counts.failed,
                    "a cycle ended"
                ),
                Err(error) => error!(error = format!("{error:#}"), "a cycle failed; the next one begins anew"),
            }
            if mirror.once {
                return;
            }
            // Thousands of sites must not ask one old platform at the same moment.
            tokio::time::sleep(mirror.interval.mul_f64(rand::rng().random_range(0.8..1.2))).await;
        }
    };
    tokio::select! {
        () = mirroring => {}
        _ = terminate.recv() => info!("sites runtime mirror stops"),
        _ = interrupt.recv() => info!("sites runtime mirror stops"),
    }
    Ok(())
}

async fn cycle(
    source: &Source,
    content: &Arc<Content>,
    file: &StateFile<Record>,
    config: &MirrorConfig,
) -> anyhow::Result<Counts> {
    let mut record = Record::clone(&*file.read()?);
    let tree = source.tree().await;
    let mut counts = Counts { listed: tree.entries.len(), ..Counts::default() };
    if let Some(reason) = &tree.incomplete {
        warn!(reason, "the source could not be listed completely: nothing will be deleted");
    }
    let mut unsaved = 0;
    // Links last: what they lead to must be there.
    let (links, files): (Vec<_>, Vec<_>) = tree.entries.iter().partition(|(_, found)| found.target.is_some());
    for (path, found) in files.into_iter().chain(links) {
        let path = SitePath::from_text(path)?;
        let known = record.files.get(&path.to_string());
        let todo = step(found, known, local(content, &path)?.as_ref());
        if config.dry_run {
            info!(%path, step = ?todo, "would be done");
            continue;
        }
        match carry_out(source, content, &path, &todo, known.cloned()).await {
            Ok(written) => {
                match todo {
                    Step::Copy { .. } => counts.copied += usize::from(written.as_ref() != known),
                    Step::Link { .. } => counts.linked += 1,
                    Step::Keep => counts.kept += 1,
                    Step::Nothing | Step::Adopt { .. } | Step::MakeFolder => {}
                }
                if let Some(written) = written {
                    unsaved += usize::from(record.files.insert(path.to_string(), written.clone()) != Some(written));
                }
            }
            Err(error) => {
                counts.failed += 1;
                warn!(%path, error = format!("{error:#}"), "not mirrored this time");
            }
        }
        if unsaved >= SAVE_EVERY {
            save(file, &record)?;
            unsaved = 0;
        }
    }
    if tree.incomplete.is_none() && !config.dry_run {
        counts.deleted = delete(content, &mut record, &tree.entries, config)?;
    }
    if !config.dry_run {
        save(file, &record)?;
    }
    Ok(counts)
}

/// Does one step. The result is what to remember of the file.
async fn carry_out(
    source: &Source,
    content: &Arc<Content>,
    path: &SitePath,
    todo: &Step,
    known: Option<Written>,
) -> anyhow::Result<Option<Written>> {
    match todo {
        Step::Nothing => Ok(known),
        Step::Keep => {
            warn!(%path, "changed on this side: left alone");
            Ok(None)
        }
        Step::MakeFolder => {
            content.make_folders(path)?;
            Ok(None)
        }
        Step::Adopt { version, etag } => Ok(Some(Written { source: version.clone(), etag: etag.clone() })),
        Step::Link { target } => {
            content.link(path, &SitePath::from_text(target)?, true)?;
            Ok(Some(Written { source: None, etag: format!("link:{target}") }))
        }
        Step::Copy { condition } => {
            // Asked by the version that is here, unless nothing is here any more.
            let here = known.as_ref().filter(|_| *condition != Condition::Absent);
            let wanted = Wanted { path, known: here.and_then(|known| known.source.as_deref()) };
            match source.download(&wanted, content).await? {
                Downloaded::Same => Ok(known),
                Downloaded::File { upload, version } => {
                    let options = WriteOptions { condition: condition.clone(), ..WriteOptions::default() };
                    let written = tokio::task::block_in_place(|| upload.finish(&options)).context("write")?;
                    Ok(Some(Written { source: version, etag: written.etag }))
                }
            }
        }
    }
}

fn delete(
    content: &Content,
    record: &mut Record,
    entries: &source::Entries,
    config: &MirrorConfig,
) -> anyhow::Result<usize> {
    let gone = deletions(record, entries);
    let allowed = allowed_deletions(record.files.len(), config.max_delete_percent);
    if gone.len() > allowed {
        error!(
            gone = gone.len(),
            allowed,
            "more files vanished from the source than SITE_MIRROR_MAX_DELETE_PERCENT allows: nothing is deleted"
        );
        return Ok(0);
    }
    let mut deleted = 0;
    for name in gone {
        let path = SitePath::from_text(&name)?;
        let written = record.files.remove(&name);
        match (written, local(content, &path)?) {
            (Some(written), Some(local)) if written.etag == local.etag => {
                content.remove(&path)?;
                deleted += 1;
            }
            (_, Some(_)) => warn!(%path, "gone at the source, but changed on this side: left alone"),
            (_, None) => {}
        }
    }
    Ok(deleted)
}

/// What is at a path on this side.
fn local(content: &Content, path: &SitePath) -> Result<Option<Local>, ContentError> {
    match content.link_target(path) {
        Ok(target) => {
            let etag = target.map_or_else(|| "link:".to_owned(), |target| format!("link:{target}"));
            return Ok(Some(Local { etag, ..Local::default() }));
        }
        Err(ContentError::NotFound(_) | ContentError::NotAFolder(_)) => {}
        Err(error) => return Err(error),
    }
    match content.entry(path) {
        Ok(entry) => Ok(Some(Local {
            folder: entry.entry_type == EntryType::Directory,
            size: entry.size,
            modified: entry.modified.parse().ok(),
            etag: entry.etag.unwrap_or_default(),
        })),
        Err(ContentError::NotFound(_) | ContentError::NotAFolder(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn save(file: &StateFile<Record>, record: &Record) -> anyhow::Result<()> {
    file.update(|stored| {
        *stored = record.clone();
        anyhow::Ok(())
    })
}
