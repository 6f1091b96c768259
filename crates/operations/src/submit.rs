//! Handing documents in: files, folders, patterns and buckets into store, database and queue.
//!
//! In this order: upload, rows committed, message sent. A crash between them leaves an unreferenced
//! object, or a row whose message the janitor sends; never a message without a row. The same bytes
//! of the same tenant are one document with one ingestion, under any number of names. Ids derive
//! from the content, so two runs at once agree, and a crashed run is simply repeated. Objects
//! already in the store are referenced and not copied; an object of a bucket is identified by name
//! and version, as in its own event. A mailbox may name a file as well. Not promised: deleting the upload of a row that could not be
//! written; finding an object's content among that of files.

mod batch;
mod content;
mod files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use serde::Serialize;
use tokio::sync::mpsc;

use batch::{CandidateContent, SubmitCandidate};
use docmill_core::config::{KindsConfig, QueueDestination};
use docmill_core::fault::Result;
use docmill_core::model::{DocumentId, IngestionId, IngestionStatus, Priority};
use docmill_gate::kinds::KindSet;
use docmill_ledger::db::Db;
use docmill_queue::MessageQueue;
use docmill_storage::{ObjectStore, keys};

pub use docmill_ledger::db::operators::idempotency::{IdempotentAnswer, find_answer, keep_answer};
pub use files::{SearchResult, SearchStep, SkippedPath, SubmitSearch, SubmitSource, find_paths};

/// Rows of one transaction and messages of one call.
const MAX_BATCH_FILES: usize = 200;
/// How long a batch waits for more files, so that a slow list is handed in as it comes.
const BATCH_LINGER: Duration = Duration::from_millis(50);
/// Files inspected, and objects asked for, at the same time.
const AT_ONCE: usize = 8;

/// The backends that documents are handed in to.
#[derive(Clone, Copy)]
pub struct SubmitContext<'a> {
    /// The database that gets the rows.
    pub db: &'a Db,
    /// The store that gets the bytes.
    pub store: &'a dyn ObjectStore,
    /// The queue that gets the messages.
    pub queue: &'a dyn MessageQueue,
    /// Larger files are refused.
    pub largest: u64,
    /// The queue as traces name it.
    pub destination: &'a QueueDestination,
}

/// A warning about a kind that is unknown here; the workers may know it.
pub fn describe_unknown_kind(config: &KindsConfig, kind: &str) -> Option<String> {
    let kinds = KindSet::load(config).ok().filter(|kinds| kinds.get(kind).is_none())?;
    let names: Vec<&str> = kinds.iter().map(|known| known.name.as_str()).collect();
    let names = names.join(", ");
    Some(format!(
        "`{kind}` is no kind known here ({names}): a worker that does not know it fails the documents"
    ))
}

/// Properties of the documents besides their content.
#[derive(Debug, Clone, Default)]
pub struct SubmitOptions {
    /// Make a new ingestion even if the content was handed in before.
    pub again: bool,
    /// Name of the documents' kind; `None` for the configured default.
    pub kind: Option<String>,
    /// The tenant that the documents belong to.
    pub tenant: Option<String>,
    /// The priority of their ingestions.
    pub priority: Priority,
    /// Labels; a label without value has an empty one.
    pub tags: BTreeMap<String, String>,
    /// A name of the one file at its source that never changes, for sources that write the same file in
    /// other bytes: what was handed in under it is known. `None`: the content decides alone.
    pub identity: Option<String>,
}

/// The result of handing one file in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SubmitStatus {
    /// The file is in store, database and queue.
    Submitted,
    /// The same content was handed in before.
    Known,
    /// In store and database, but the message could not be sent; the janitor will.
    NotSent,
    /// It was refused; `problem` says why.
    Refused,
}

/// One line of the report.
#[derive(Debug, Clone, Serialize)]
pub struct Submission {
    /// The path as it was found.
    pub file: PathBuf,
    /// The result of handing the file in.
    pub fate: SubmitStatus,
    /// The id of its document, if it has one.
    pub document_id: Option<DocumentId>,
    /// The id of its ingestion, if it has one.
    pub ingestion_id: Option<IngestionId>,
    /// The status of the ingestion.
    pub status: Option<IngestionStatus>,
    /// Why it was not handed in, for people.
    pub problem: Option<String>,
}

impl Submission {
    fn refused(file: &Path, problem: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            fate: SubmitStatus::Refused,
            document_id: None,
            ingestion_id: None,
            status: None,
            problem: Some(problem.into()),
        }
    }

    fn from_rows(
        file: &Path,
        fate: SubmitStatus,
        document: DocumentId,
        ingestion: IngestionId,
        status: IngestionStatus,
    ) -> Self {
        Self {
            file: file.to_owned(),
            fate,
            document_id: Some(document),
            ingestion_id: Some(ingestion),
            status: Some(status),
            problem: None,
        }
    }

    /// The same with its message sent or not; without an answer no message was due.
    fn with_send_result(mut self, answer: Option<Result<()>>) -> Self {
        if let Some(Err(error)) = answer {
            self.fate = SubmitStatus::NotSent;
            self.problem = Some(error.to_string());
        }
        self
    }
}

/// Hands one file in.
///
/// # Errors
/// Store or database do not answer: the next file would fail as well. A fault of the file itself is
/// in the report.
pub async fn submit_file(
    context: SubmitContext<'_>,
    file: &Path,
    terms: &SubmitOptions,
) -> Result<Submission> {
    match inspect_source(context, SubmitSource::File(file.to_owned())).await? {
        Ok(candidate) => {
            let mut done = batch::submit_batch(context, vec![candidate], terms).await?;
            Ok(done.pop().unwrap_or_else(|| Submission::refused(file, "nothing was done")))
        }
        Err(refused) => Ok(refused),
    }
}

/// Hands in an object that stays where it is, as its own event would. `address` is
/// `s3://bucket/key`, `name` the store's name for it.
///
/// # Errors
/// Store or database do not answer. A fault of the object itself is in the answer.
pub async fn submit_object(
    context: SubmitContext<'_>,
    address: &str,
    name: &str,
    terms: &SubmitOptions,
) -> Result<Submission> {
    let path = Path::new(address);
    let meta = match context.store.head(name).await? {
        Some(meta) if meta.size > context.largest => {
            return Ok(Submission::refused(path, too_large(meta.size, context.largest)));
        }
        Some(meta) => meta,
        None => return Ok(Submission::refused(path, "no such object")),
    };
    let source = SubmitSource::Object(address.to_owned());
    let candidate = SubmitCandidate { source, what: CandidateContent::Object(meta) };
    let mut done = batch::submit_batch(context, vec![candidate], terms).await?;
    Ok(done.pop().unwrap_or_else(|| Submission::refused(path, "nothing was done")))
}

fn too_large(size: u64, largest: u64) -> String {
    format!("{size} bytes, limits.document_bytes is {largest}")
}

/// Submits the findings of a search in batches while it runs. `report` gets a line for everything;
/// within a batch what was refused at first sight comes before what was handed in. Memory is
/// bounded, however much is found.
///
/// # Errors
/// Store or database do not answer; what was reported before is done.
pub async fn submit_all(
    context: SubmitContext<'_>,
    found: mpsc::Receiver<SearchStep>,
    terms: &SubmitOptions,
    mut report: impl FnMut(SubmitLine),
) -> Result<()> {
    let steps = futures::stream::unfold(found, |mut found| async {
        found.recv().await.map(|step| (step, found))
    });
    let looked_at = steps.map(|step| inspect_step(context, step)).buffered(AT_ONCE);
    tokio::pin!(looked_at);
    while let Some(batch) = next_batch(looked_at.as_mut()).await {
        let mut candidates = Vec::new();
        for looked in batch {
            match looked? {
                InspectedStep::At(candidate) => candidates.push(candidate),
                InspectedStep::Ended(line) => report(line),
            }
        }
        let done = batch::submit_batch(context, candidates, terms).await?;
        done.into_iter().map(SubmitLine::Done).for_each(&mut report);
    }
    Ok(())
}

/// One line about what was found.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum SubmitLine {
    /// The result for a file or object that was inspected.
    Done(Submission),
    /// A path that is no document.
    Skipped(SkippedPath),
}

enum InspectedStep {
    At(SubmitCandidate),
    Ended(SubmitLine),
}

async fn inspect_step(context: SubmitContext<'_>, step: SearchStep) -> Result<InspectedStep> {
    Ok(match step {
        SearchStep::Skipped(skipped) => InspectedStep::Ended(SubmitLine::Skipped(skipped)),
        SearchStep::Found(source) => match inspect_source(context, source).await? {
            Ok(candidate) => InspectedStep::At(candidate),
            Err(refused) => InspectedStep::Ended(SubmitLine::Done(refused)),
        },
    })
}

/// Waits for one and takes what follows it soon; `None` at the end.
async fn next_batch<T>(mut items: Pin<&mut impl Stream<Item = T>>) -> Option<Vec<T>> {
    let mut batch = vec![items.next().await?];
    let until = tokio::time::Instant::now() + BATCH_LINGER;
    while batch.len() < MAX_BATCH_FILES
        && let Ok(Some(item)) = tokio::time::timeout_at(until, items.next()).await
    {
        batch.push(item);
    }
    Some(batch)
}

/// Learns what a batch needs to know; the inner error is a line of the report.
async fn inspect_source(
    context: SubmitContext<'_>,
    source: SubmitSource,
) -> Result<std::result::Result<SubmitCandidate, Submission>> {
    let what = match &source {
        SubmitSource::File(path) => match content::inspect_file(path, context.largest).await {
            Ok(mut content) => {
                let lies_at = stored_key(context, path).await;
                if lies_at.is_some() {
                    // Nothing will be uploaded.
                    content.whole = None;
                }
                if lies_at.as_deref().is_some_and(keys::is_own_artefact) {
                    let problem = "lies among what docmill itself writes into the store";
                    return Ok(Err(Submission::refused(path, problem)));
                }
                CandidateContent::Content { content, lies_at }
            }
            Err(problem) => return Ok(Err(Submission::refused(path, problem))),
        },
        SubmitSource::Object(name) => match context.store.head(name).await? {
            Some(meta) if meta.size > context.largest => {
                let problem = too_large(meta.size, context.largest);
                return Ok(Err(Submission::refused(Path::new(name), problem)));
            }
            Some(meta) => CandidateContent::Object(meta),
            None => return Ok(Err(Submission::refused(Path::new(name), "no such object"))),
        },
    };
    Ok(Ok(SubmitCandidate { source, what }))
}

/// The key of a file that is in the store already.
async fn stored_key(context: SubmitContext<'_>, path: &Path) -> Option<String> {
    context.store.key_of_file(&tokio::fs::canonicalize(path).await.ok()?)
}
