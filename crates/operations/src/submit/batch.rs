//! One batch: what is known already, then bytes, then rows in one transaction, then messages.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use futures::{StreamExt as _, TryStreamExt as _};

use super::content::{self, FileContent};
use super::files::SubmitSource;
use super::{Submission, SubmitContext, SubmitOptions, SubmitStatus};
use crate::sending;
use docmill_client::telemetry::spans;
use docmill_core::fault::{Error, Result};
use docmill_core::model::message::plain_etag;
use docmill_core::model::{DocumentId, IngestionId, IngestionStatus};
use docmill_ledger::db::claims::registration::{
    self, KnownDocument, NewDocument, NewIngestion, NewestIngestion,
};
use docmill_storage::{ObjectMeta, keys};

/// Files uploaded at the same time; each is in memory as a whole.
const UPLOADS: usize = 4;

/// A file or object that was inspected and may be handed in.
#[derive(Debug, Clone)]
pub(super) struct SubmitCandidate {
    pub(super) source: SubmitSource,
    pub(super) what: CandidateContent,
}

/// Facts about a candidate.
#[derive(Debug, Clone)]
pub(super) enum CandidateContent {
    /// A local file; `lies_at`: its key if it is in the store already.
    Content { content: FileContent, lies_at: Option<String> },
    /// An object in a bucket.
    Object(ObjectMeta),
}

/// The action for a candidate.
enum SubmitPlan {
    /// Its content was handed in before. An object's rows may lack what an event could not know.
    Known(DocumentId, IngestionId, IngestionStatus, Option<Box<NewRows>>),
    /// It is new: a row is written, and its bytes are uploaded where they must be.
    New(Box<NewRows>),
    /// The same content as a candidate before it in this batch.
    Same(DocumentId, IngestionId),
    /// It cannot be handed in, for this reason.
    Refused(String),
}

/// Rows to be written.
struct NewRows {
    document: NewDocument,
    ingestion: NewIngestion,
    /// The content of the file to be uploaded first.
    upload: Option<FileContent>,
}

/// Hands a batch in; one answer per candidate, in order.
///
/// # Errors
/// Store or database do not answer.
pub(super) async fn submit_batch(
    context: SubmitContext<'_>,
    candidates: Vec<SubmitCandidate>,
    terms: &SubmitOptions,
) -> Result<Vec<Submission>> {
    let known = KnownRows::load(context, &candidates, terms).await?;
    let mut leaders = HashSet::new();
    let plans: Vec<SubmitPlan> =
        candidates.iter().map(|one| plan_candidate(one, &known, terms, &mut leaders)).collect();
    let uploads: Vec<_> = candidates
        .iter()
        .zip(plans)
        .map(|(candidate, plan)| upload_bytes(context, candidate, plan))
        .collect();
    let plans: Vec<SubmitPlan> =
        futures::stream::iter(uploads).buffered(UPLOADS).try_collect().await?;
    let fresh = registration::register_documents(context.db, &new_rows(&plans)).await?;
    let mut answers = send_messages(context, &plans).await;
    let submissions = candidates.iter().zip(plans).map(|(candidate, plan)| {
        let file = candidate.source.name();
        match plan {
            SubmitPlan::Refused(problem) => Submission::refused(&file, problem),
            SubmitPlan::Same(document, ingestion) => Submission::from_rows(
                &file,
                SubmitStatus::Known,
                document,
                ingestion,
                IngestionStatus::InProgress,
            ),
            SubmitPlan::Known(document, ingestion, status, _) => {
                Submission::from_rows(&file, SubmitStatus::Known, document, ingestion, status)
                    .with_send_result(answers.remove(&ingestion))
            }
            SubmitPlan::New(new) => {
                let id = new.ingestion.id;
                let fate =
                    if fresh.contains(&id) { SubmitStatus::Submitted } else { SubmitStatus::Known };
                Submission::from_rows(&file, fate, new.document.id, id, IngestionStatus::InProgress)
                    .with_send_result(answers.remove(&id))
            }
        }
    });
    Ok(submissions.collect())
}

/// The database's facts about a batch.
#[derive(Default)]
struct KnownRows {
    by_sha256: HashMap<String, KnownDocument>,
    by_document: HashMap<DocumentId, KnownDocument>,
}

impl KnownRows {
    async fn load(
        context: SubmitContext<'_>,
        candidates: &[SubmitCandidate],
        terms: &SubmitOptions,
    ) -> Result<Self> {
        let mut hashes = Vec::new();
        let mut documents = Vec::new();
        for candidate in candidates {
            match (&candidate.what, &candidate.source) {
                (CandidateContent::Content { content, .. }, _) => {
                    hashes.push(content.sha256.clone());
                    documents.extend(named_document(terms));
                }
                (CandidateContent::Object(_), SubmitSource::Object(name)) => {
                    documents.extend(object_id(name))
                }
                (CandidateContent::Object(_), SubmitSource::File(_)) => {}
            }
        }
        let tenant = terms.tenant.as_deref();
        Ok(Self {
            by_sha256: registration::find_by_sha256(context.db, &hashes, tenant).await?,
            by_document: registration::find_by_document(context.db, &documents).await?,
        })
    }
}

fn plan_candidate(
    candidate: &SubmitCandidate,
    before: &KnownRows,
    terms: &SubmitOptions,
    leaders: &mut HashSet<DocumentId>,
) -> SubmitPlan {
    let (document, known, first, upload) = match (&candidate.what, &candidate.source) {
        (CandidateContent::Content { content, lies_at }, source) => {
            let document =
                document_from_content(&source.file_name(), content, lies_at.as_deref(), terms);
            let known = before.by_sha256.get(&content.sha256);
            let known = known.or_else(|| before.by_document.get(&named_document(terms)?));
            let upload = (known.is_none() && lies_at.is_none()).then(|| content.clone());
            let first =
                IngestionId::first_for_document(known.map_or(document.id, |known| known.document));
            (document, known, first, upload)
        }
        (CandidateContent::Object(meta), SubmitSource::Object(name)) => {
            let Some((id, first)) = object_id(name).zip(object_ingestion(name, meta)) else {
                return SubmitPlan::Refused("an address is s3://bucket/key".to_owned());
            };
            (document_from_object(id, name, meta, terms), before.by_document.get(&id), first, None)
        }
        (CandidateContent::Object(_), SubmitSource::File(_)) => {
            return SubmitPlan::Refused("a file is no object".to_owned());
        }
    };
    let foreign = known.and_then(|known| known.tenant.as_ref());
    if foreign.is_some() && terms.tenant.is_some() && foreign != terms.tenant.as_ref() {
        return SubmitPlan::Refused("it is registered for another tenant".to_owned());
    }
    let newest = known.and_then(|known| known.newest.as_ref());
    let same = newest.filter(|newest| candidate.is_about(newest));
    let id = known.map_or(document.id, |known| known.document);
    let document = NewDocument { id, ..document };
    let is_misread = same.is_some_and(|newest| candidate.is_object() && terms.contradicts(newest));
    let anew = newest.is_some() && (terms.again || is_misread);
    if !terms.again && !anew {
        if let Some(newest) = same {
            let (ingestion, status) = (newest.ingestion, newest.status);
            let rows = NewRows {
                document,
                ingestion: new_ingestion(candidate, terms, ingestion, false),
                upload: None,
            };
            let lacking = candidate.is_object().then(|| Box::new(rows));
            return SubmitPlan::Known(id, ingestion, status, lacking);
        }
        if !leaders.insert(id) {
            return SubmitPlan::Same(id, first);
        }
    }
    let first = if anew { IngestionId::random() } else { first };
    let ingestion = new_ingestion(candidate, terms, first, anew);
    SubmitPlan::New(Box::new(NewRows { document, ingestion, upload }))
}

fn new_ingestion(
    candidate: &SubmitCandidate,
    terms: &SubmitOptions,
    id: IngestionId,
    anew: bool,
) -> NewIngestion {
    let object_etag = match &candidate.what {
        CandidateContent::Content { .. } => None,
        CandidateContent::Object(meta) => Some(plain_etag(&meta.etag.0).to_owned()),
    };
    NewIngestion { id, kind: terms.kind.clone(), priority: terms.priority, object_etag, anew }
}

impl SubmitCandidate {
    fn is_object(&self) -> bool {
        matches!(self.what, CandidateContent::Object(_))
    }

    /// Whether an ingestion is about the candidate as it is now: a newer version of an object is
    /// something else than what was read of it before.
    fn is_about(&self, newest: &NewestIngestion) -> bool {
        match &self.what {
            CandidateContent::Content { .. } => true,
            CandidateContent::Object(meta) => {
                newest.object_etag.as_deref().map(plain_etag) == Some(plain_etag(&meta.etag.0))
            }
        }
    }
}

impl SubmitOptions {
    /// Whether the ingestion was read already, as another kind than the one given now.
    fn contradicts(&self, newest: &NewestIngestion) -> bool {
        newest.begun && self.kind.is_some() && newest.kind != self.kind
    }
}

/// Bytes first: a row never refers to what is not there.
async fn upload_bytes(
    context: SubmitContext<'_>,
    candidate: &SubmitCandidate,
    plan: SubmitPlan,
) -> Result<SubmitPlan> {
    let SubmitPlan::New(new) = &plan else { return Ok(plan) };
    let (Some(content), SubmitSource::File(path)) = (&new.upload, &candidate.source) else {
        return Ok(plan);
    };
    let document = &new.document;
    let bytes = match content::read_unchanged(path, content).await {
        Ok(bytes) => bytes,
        Err(problem) => return Ok(SubmitPlan::Refused(problem)),
    };
    let metadata = BTreeMap::from([
        ("original-name".to_owned(), document.original_name.clone().unwrap_or_default()),
        ("tags".to_owned(), serde_json::to_string(&document_labels(document)).unwrap_or_default()),
        ("size".to_owned(), bytes.len().to_string()),
        (keys::SUBMITTED_AS.to_owned(), document.id.to_string()),
    ]);
    context.store.put(&document.file_path, bytes, &metadata).await?;
    Ok(plan)
}

fn document_labels(document: &NewDocument) -> Vec<String> {
    let labels = document.tags.iter().map(|(name, value)| {
        if value.is_empty() { name.clone() } else { format!("{name}={value}") }
    });
    labels.collect()
}

fn new_rows(plans: &[SubmitPlan]) -> Vec<(NewDocument, NewIngestion)> {
    let rows = plans.iter().filter_map(|plan| match plan {
        SubmitPlan::New(new) => Some((new.document.clone(), new.ingestion.clone())),
        SubmitPlan::Known(.., Some(rows)) => Some((rows.document.clone(), rows.ingestion.clone())),
        SubmitPlan::Known(..) | SubmitPlan::Same(..) | SubmitPlan::Refused(_) => None,
    });
    rows.collect()
}

/// Messages of what is new, and once more of what was registered and has not ended: the run that
/// registered it may have died before it sent one.
async fn send_messages(
    context: SubmitContext<'_>,
    plans: &[SubmitPlan],
) -> HashMap<IngestionId, Result<()>> {
    let due: Vec<IngestionId> = plans
        .iter()
        .filter_map(|plan| match plan {
            SubmitPlan::New(new) => Some(new.ingestion.id),
            SubmitPlan::Known(_, ingestion, status, _) if !status.is_terminal() => Some(*ingestion),
            SubmitPlan::Known(..) | SubmitPlan::Same(..) | SubmitPlan::Refused(_) => None,
        })
        .collect::<HashSet<_>>()
        .into_iter()
        .collect();
    // A trace of its own for each: later work continues it, on any machine.
    let spans: HashMap<IngestionId, _> =
        due.iter().map(|id| (*id, spans::send_span(context.destination))).collect();
    let trace = |id| spans.get(&id).and_then(|span| span.in_scope(spans::current_traceparent));
    let mut answers = match sending::send_traced(context.db, context.queue, &due, trace).await {
        Ok(answers) => answers.into_iter(),
        // The rows are written: the janitor sends what this could not.
        Err(error) => return due.into_iter().map(|id| (id, Err(not_sent(&error)))).collect(),
    };
    let mut results = HashMap::new();
    for id in due {
        let answer = answers.next().unwrap_or_else(|| {
            Err(Error::internal("the queue did not answer whether it took the message"))
        });
        results.insert(id, answer);
    }
    results
}

fn not_sent(error: &Error) -> Error {
    Error::new(error.fault, error.context.clone())
}

fn document_from_content(
    name: &str,
    content: &FileContent,
    lies_at: Option<&str>,
    terms: &SubmitOptions,
) -> NewDocument {
    let tenant = terms.tenant.as_deref().unwrap_or_default();
    let id =
        named_document(terms).unwrap_or_else(|| DocumentId::from_content(&content.sha256, tenant));
    NewDocument {
        id,
        file_path: lies_at.map_or_else(|| keys::document_key(id, name), ToOwned::to_owned),
        original_name: Some(name.to_owned()),
        sha256: Some(content.sha256.clone()),
        size: Some(content.size),
        tenant: terms.tenant.clone(),
        tags: terms.tags.clone(),
    }
}

/// The document of the file's name at its source.
fn named_document(terms: &SubmitOptions) -> Option<DocumentId> {
    let tenant = terms.tenant.as_deref().unwrap_or_default();
    terms.identity.as_deref().map(|name| DocumentId::from_identity(name, tenant))
}

fn document_from_object(
    id: DocumentId,
    name: &str,
    meta: &ObjectMeta,
    terms: &SubmitOptions,
) -> NewDocument {
    let named = meta.metadata.get("original-name").cloned();
    NewDocument {
        id,
        file_path: name.to_owned(),
        original_name: named.or_else(|| Some(file_name(Path::new(name)))),
        sha256: None,
        size: Some(meta.size),
        tenant: terms.tenant.clone(),
        tags: terms.tags.clone(),
    }
}

fn object_id(name: &str) -> Option<DocumentId> {
    let (bucket, key) = name.strip_prefix("s3://")?.split_once('/')?;
    Some(DocumentId::from_object(bucket, key))
}

fn object_ingestion(name: &str, meta: &ObjectMeta) -> Option<IngestionId> {
    let (bucket, key) = name.strip_prefix("s3://")?.split_once('/')?;
    Some(IngestionId::from_object_version(bucket, key, plain_etag(&meta.etag.0), ""))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl SubmitSource {
    /// The path by which the report names it.
    pub(super) fn name(&self) -> std::path::PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Object(name) => name.into(),
        }
    }

    fn file_name(&self) -> String {
        file_name(&self.name())
    }
}
