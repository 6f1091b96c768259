//! Kinds of documents as people see and change them: what came of their rules, drafts of their files,
//! and replays of those over decided documents.
//!
//! A draft goes nowhere by itself: it is downloaded and deployed. Its replay is run by a worker,
//! one at a time in all, with one document in hand. It ends once the budget of the day is spent,
//! its own part included. A draft that passed its gate may continue as a shadow run: workers
//! compare its readings with later decisions of people.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

pub use docmill_ledger::db::operators::kind_replays::{
    KindReplayFilter, KindReplayRow, find_files,
};
pub use docmill_ledger::db::reports::quality::{
    KindCount, ReasonYield, count_kind, count_kind_reasons,
};

use crate::process::LocalPipeline;
use crate::replay::{self, DecidedReplay, ReplayFilter, ReplayTerms};
use docmill_core::fault::{Error, Result};
use docmill_gate::kinds::KindSet;
use docmill_ledger::db::Db;
use docmill_ledger::db::operators::AuditNote;
use docmill_ledger::db::operators::kind_replays::{
    self, MAX_OPEN, NewKindReplay, ReplayLease, ShadowTurn,
};
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::ObjectStore;

/// Bytes of the files of a draft together.
pub const MAX_DRAFT_BYTES: usize = 512 << 10;
/// Documents of one replay.
pub const MAX_DOCUMENTS: u32 = 10_000;
/// How often workers look for a replay that waits.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// For how long a replay is its worker's alone.
const LEASE: Duration = Duration::from_secs(120);
/// How often that is renewed.
const RENEW_INTERVAL: Duration = Duration::from_secs(20);
/// For how long one replay runs.
const RUN_TIMEOUT: Duration = Duration::from_secs(3_600);
/// Interval between batches of a shadow run.
const SHADOW_INTERVAL: Duration = Duration::from_secs(600);
/// Timeout of one batch, so that no two overlap.
const SHADOW_TIMEOUT: Duration = Duration::from_secs(300);
/// Decisions in one batch.
const MAX_TURN_DECISIONS: u32 = 200;

/// A draft of a kind, and the documents and gate of its replay.
#[derive(Debug, Clone)]
pub struct KindDraft {
    /// Whose draft and documents; `None`: all tenants.
    pub tenant: Option<String>,
    /// The kind, which exists.
    pub kind: String,
    /// The files that differ, by their paths within its folder; the others are those in force.
    pub files: BTreeMap<String, String>,
    /// At most so many documents, the newest decisions first.
    pub max_documents: u32,
    /// The gate: at most this share of documents gets worse, with a certainty of 95 %.
    pub max_worse: f64,
    /// No further document is begun once so much is spent, in billionths of the currency.
    pub max_cost_nanos: u64,
}

/// Why no replay was asked for.
#[derive(Debug, thiserror::Error)]
pub enum DraftRefusal {
    /// There is no such kind.
    #[error("there is no such kind")]
    UnknownKind,
    /// Problems of the draft, by file and line.
    #[error("{}", .0.join("\n"))]
    Unsound(Vec<String>),
    /// As many replays as may be open.
    #[error("{MAX_OPEN} replays of this tenant have not ended: wait for one")]
    TooMany,
    /// Postgres does not answer.
    #[error(transparent)]
    Fault(#[from] Error),
}

/// A draft's replay, and its result if it is done.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct KindReplay {
    /// State and terms.
    #[serde(flatten)]
    pub run: KindReplayRow,
    /// As `docmill replay --json` prints it; null until it is done.
    pub report: Option<DecidedReplay>,
    /// The same over the share of later decisions; null without one.
    pub shadow: Option<DecidedReplay>,
}

/// Up to `limit` replays, the newest first.
///
/// # Errors
/// No answer from Postgres; a result that this program cannot read.
pub async fn list_replays(
    db: &Db,
    wanted: &KindReplayFilter,
    limit: u32,
) -> Result<Vec<KindReplay>> {
    let rows = kind_replays::list_replays(db, wanted, limit).await?;
    rows.into_iter().map(read_report).collect()
}

fn read_report(mut run: KindReplayRow) -> Result<KindReplay> {
    let [report, shadow] = [run.report.take(), run.shadow_report.take()].map(parse_report);
    Ok(KindReplay { report: report?, shadow: shadow?, run })
}

fn parse_report(stored: Option<Value>) -> Result<Option<DecidedReplay>> {
    let report = stored.map(serde_json::from_value).transpose();
    report.map_err(|error| Error::internal(format!("a stored replay: {error}")))
}

/// Starts a shadow run over this share of the documents that people decide from now on, above 0 up
/// to 1; `None` ends it. `false`: the replay is gone or did not pass its gate.
///
/// # Errors
/// No answer from Postgres, or a share that it refuses.
pub async fn set_shadow(db: &Db, id: Uuid, share: Option<f64>, by: &AuditNote) -> Result<bool> {
    kind_replays::set_shadow(db, id, share, by).await
}

/// Checks a draft as the loader of files does, keeps it, and asks for its replay; returns the id.
///
/// # Errors
/// [`DraftRefusal`].
pub async fn ask_replay(
    db: &Db,
    kinds: &KindSet,
    draft: KindDraft,
    by: &AuditNote,
) -> std::result::Result<Uuid, DraftRefusal> {
    let mut files = kinds.files_of(&draft.kind).ok_or(DraftRefusal::UnknownKind)?.clone();
    let unknown = draft.files.keys().filter(|name| !files.contains_key(*name));
    let unknown: Vec<String> =
        unknown.map(|name| format!("{name}: is no file of this kind")).collect();
    if !unknown.is_empty() {
        return Err(DraftRefusal::Unsound(unknown));
    }
    files.extend(draft.files);
    let bytes: usize = files.values().map(String::len).sum();
    if bytes > MAX_DRAFT_BYTES {
        let text = format!("the files have {bytes} bytes, the limit is {MAX_DRAFT_BYTES}");
        return Err(DraftRefusal::Unsound(vec![text]));
    }
    let changed = build_draft(kinds.clone(), draft.kind.clone(), files.clone()).await?;
    let changed = changed.map_err(DraftRefusal::Unsound)?;
    let version = changed.get(&draft.kind).map(|kind| kind.version.clone()).unwrap_or_default();
    let new = NewKindReplay {
        id: Uuid::new_v4(),
        tenant: draft.tenant.unwrap_or_default(),
        kind: draft.kind,
        version,
        files,
        max_documents: draft.max_documents,
        max_worse: draft.max_worse,
        max_cost_nanos: draft.max_cost_nanos,
    };
    match kind_replays::add_replay(db, &new, by).await? {
        true => Ok(new.id),
        false => Err(DraftRefusal::TooMany),
    }
}

/// The kinds with this draft, or its problems by file and line; away from the threads that serve.
async fn build_draft(
    kinds: KindSet,
    kind: String,
    files: BTreeMap<String, String>,
) -> Result<std::result::Result<KindSet, Vec<String>>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "one in a worker, and in the console each has a place"
    )]
    let built = tokio::task::spawn_blocking(move || kinds.with_draft(&kind, files)).await;
    let built = built.map_err(|error| Error::internal(format!("building a draft: {error}")))?;
    Ok(built.map_err(|error| error.0.iter().map(ToString::to_string).collect()))
}

/// Runs the replays that are asked for, and the drafts in the shadow.
pub struct KindReplayRunner {
    /// The database in which they are asked for.
    pub db: Db,
    /// Transcripts and replies of models.
    pub store: Arc<dyn ObjectStore>,
    /// The pipeline, with the kinds in force.
    pub pipeline: LocalPipeline,
    /// Name of the worker.
    pub worker: String,
}

impl KindReplayRunner {
    /// Runs one after the other until the stop.
    pub async fn run(self, stop: Shutdown) {
        loop {
            tokio::select! {
                () = stop.wait_until_requested() => return,
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
            let ran = match self.run_next(&stop).await {
                Ok(false) => self.run_shadow(&stop, SHADOW_INTERVAL).await,
                ran => ran,
            };
            if let Err(error) = ran {
                tracing::warn!(%error, "a replay of a kind was not run: {error}");
            }
        }
    }

    /// Runs one batch of the shadow run that is due after `interval`; `false`: none is due.
    /// Decisions of an interrupted batch are skipped.
    ///
    /// # Errors
    /// No answer from Postgres, the store or a model; the batch timed out.
    pub async fn run_shadow(&self, stop: &Shutdown, interval: Duration) -> Result<bool> {
        let turn = kind_replays::claim_shadow(&self.db, interval, MAX_TURN_DECISIONS).await?;
        let Some(turn) = turn else { return Ok(false) };
        if turn.up_to > turn.after {
            // A panic in a draft must not end the worker.
            let reading = AssertUnwindSafe(self.read_shadow(turn)).catch_unwind();
            let reading = tokio::time::timeout(SHADOW_TIMEOUT, reading);
            tokio::select! {
                ended = Box::pin(reading) => match ended {
                    Ok(Ok(read)) => read?,
                    Ok(Err(_)) => return Err(Error::internal("a draft in the shadow failed")),
                    Err(_) => return Err(Error::internal("a draft in the shadow took too long")),
                },
                () = stop.wait_until_requested() => {}
            }
        }
        Ok(true)
    }

    /// Adds the readings of a batch to the earlier ones. The shadow run ends once its budget is
    /// spent, or if the draft can no longer be built.
    async fn read_shadow(&self, turn: ShadowTurn) -> Result<()> {
        let wanted = KindReplayFilter { id: Some(turn.id), ..KindReplayFilter::default() };
        let Some(found) = list_replays(&self.db, &wanted, 1).await?.pop() else { return Ok(()) };
        let mut sum = found.shadow.unwrap_or_default();
        match self.build_run(&found.run).await? {
            Ok(pipeline) => {
                let mut terms = terms_of(found.run);
                terms.filter.after = turn.after;
                terms.filter.up_to = turn.up_to;
                terms.filter.share = turn.share;
                terms.max_cost_nanos =
                    terms.max_cost_nanos.map(|most| most.saturating_sub(sum.cost_nanos));
                let read = replay::replay_decided(&self.db, &self.store, &pipeline, &terms);
                sum.join(Box::pin(read).await?);
            }
            Err(_changed) => sum.cut_short = true,
        }
        let is_last = sum.cut_short;
        let report = serde_json::to_value(sum);
        let report = report.map_err(|error| Error::internal(format!("a replay: {error}")))?;
        kind_replays::save_shadow(&self.db, turn.id, report, is_last).await
    }

    /// Runs the one that waits longest; `false`: none waits.
    ///
    /// # Errors
    /// No answer from Postgres.
    pub async fn run_next(&self, stop: &Shutdown) -> Result<bool> {
        let Some(id) = kind_replays::claim_replay(&self.db, &self.worker, LEASE).await? else {
            return Ok(false);
        };
        let lease = ReplayLease { id, worker: &self.worker, length: LEASE };
        // A panic in a draft must not end the worker.
        let replaying = AssertUnwindSafe(self.replay_draft(id)).catch_unwind();
        let mut replaying = Box::pin(replaying);
        let until = Instant::now() + RUN_TIMEOUT;
        let result = loop {
            tokio::select! {
                ended = &mut replaying => break match ended {
                    Ok(Ok(result)) => result,
                    Ok(Err(error)) => Err(error.to_string()),
                    Err(_) => Err("The program failed on this draft; see the log.".to_owned()),
                },
                () = stop.wait_until_requested() => {
                    break Err("The worker was stopped. Ask for it again.".to_owned());
                }
                () = tokio::time::sleep_until(until) => {
                    break Err("It took longer than an hour: ask for fewer documents.".to_owned());
                }
                () = tokio::time::sleep(RENEW_INTERVAL) => {
                    if !kind_replays::save_replay(&self.db, &lease, None).await? {
                        return Ok(true);
                    }
                }
            }
        };
        kind_replays::save_replay(&self.db, &lease, Some(result)).await?;
        Ok(true)
    }

    /// The result as JSON, or why there is none.
    async fn replay_draft(&self, id: Uuid) -> Result<std::result::Result<Value, String>> {
        let wanted = KindReplayFilter { id: Some(id), ..KindReplayFilter::default() };
        let Some(run) = kind_replays::list_replays(&self.db, &wanted, 1).await?.pop() else {
            return Ok(Err("It was deleted.".to_owned()));
        };
        let pipeline = match self.build_run(&run).await? {
            Ok(pipeline) => pipeline,
            Err(problem) => return Ok(Err(problem)),
        };
        let terms = terms_of(run);
        let replaying = replay::replay_decided(&self.db, &self.store, &pipeline, &terms);
        let report = Box::pin(replaying).await?;
        let report = serde_json::to_value(report);
        Ok(report.map_err(|error| format!("the result cannot be written: {error}")))
    }

    /// The pipeline with the draft of a replay in the place of the kind in force, or why there is none.
    async fn build_run(
        &self,
        run: &KindReplayRow,
    ) -> Result<std::result::Result<LocalPipeline, String>> {
        let Some(files) = find_files(&self.db, run.id).await? else {
            return Ok(Err("It was deleted.".to_owned()));
        };
        let kinds = KindSet::clone(&self.pipeline.services().kinds);
        let kinds = match build_draft(kinds, run.kind.clone(), files).await? {
            Ok(kinds) => kinds,
            Err(problems) => return Ok(Err(problems.join("\n"))),
        };
        if kinds.get(&run.kind).is_none_or(|kind| kind.version != run.version) {
            let text = "The kinds that this one includes are others in the worker than in the \
                        console: deploy both, and ask for it again.";
            return Ok(Err(text.to_owned()));
        }
        Ok(Ok(self.pipeline.with_kinds(kinds)))
    }
}

/// The documents and the gate of a replay, one document at a time.
fn terms_of(run: KindReplayRow) -> ReplayTerms {
    ReplayTerms {
        filter: ReplayFilter {
            tenant: Some(run.tenant).filter(|tenant| !tenant.is_empty()),
            kind: Some(run.kind),
            ..ReplayFilter::default()
        },
        limit: u32::try_from(run.max_documents).unwrap_or_default(),
        at_once: 1,
        max_cost_nanos: u64::try_from(run.max_cost_nanos).ok(),
        max_worse: run.max_worse,
    }
}
