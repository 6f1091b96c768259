//! Documents one by one, without database, queue and store: `docmill process`, `transcribe` and
//! `eval`.
//!
//! The same pipeline as in a worker, over a ledger and a store in memory that are dropped with the
//! document. Documents found in it are read after it, where that is asked for. Nothing is stored and each
//! run starts anew. Spending elsewhere is not visible: the budgets of the day apply to replays alone,
//! which have a database. Where artefacts are kept, a later run finds them as a worker finds those of
//! an earlier attempt.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rust_decimal::Decimal;
use serde::Serialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;

use docmill_core::config::{CostConfig, PacketsConfig};
use docmill_core::fault::{self, Error};
use docmill_core::model::{
    ArtefactRef, ClaimedIngestion, DocumentId, IngestionId, IngestionStage, IngestionStatus,
    ModelUsage, OutcomeReason, PageDefect, PageRange, PageSource, RuleReport, Transcript, digest,
};
use docmill_documents::DocumentFormat;
use docmill_gate::kinds::KindSet;
use docmill_ledger::db::reviews::replays::ReplayableDocument;
use docmill_ledger::memory::MemoryLedger;
use docmill_ledger::{
    AttemptLedger, ClaimOutcome, ClaimTerms, IngestionResult, Ledger as _, NewChild,
};
use docmill_pipeline::{
    self, ClaimHandle, CostTracker, PipelineContext, PipelineOutput, PipelineServices,
    StageFailure, StageTimings, StepError, verdict,
};
use docmill_storage::memory::MemoryStore;
use docmill_storage::{GetOptions, GetResult, ObjectStore, keys};

/// The document's key in its temporary store.
const KEY: &str = "document";
/// Bytes of a stored transcript, or of replies, that a replay reads.
const MAX_TRANSCRIPT_BYTES: u64 = 256 << 20;

/// The pipeline on this machine alone.
pub struct LocalPipeline {
    services: Arc<PipelineServices>,
    /// Keeps what is made of documents, if it is to be kept.
    artefacts: Option<Arc<dyn ObjectStore>>,
    /// Whether documents found in a document are read too.
    takes_children: bool,
    /// Where the spending of replays counts in the day.
    day: Option<Arc<dyn AttemptLedger>>,
}

/// The answer of `docmill process FILE --json`; the shape is the design's.
#[derive(Debug, Clone, Serialize)]
pub struct ProcessReport {
    /// The path as it was given; the name of a document found in another.
    pub file: String,
    /// Which pages of the file it consists of; `None`: it is a file of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageRange>,
    /// SHA-256 of the bytes, in hex.
    pub sha256: String,
    /// The media type of the bytes, e.g. `pdf`; null if it is not supported.
    pub format: Option<String>,
    /// How it ended: `completed` or `failed`.
    pub status: IngestionStatus,
    /// Why it was not completed; null if it was.
    pub reason: Option<OutcomeReason>,
    /// For people: counts and limits.
    pub detail: String,
    /// Name of the document's kind, if it is known.
    pub kind: Option<String>,
    /// Name of the reader that produced the data.
    pub reader: Option<String>,
    /// The data, by the kind's field names.
    pub data: Option<Map<String, Value>>,
    /// Why a person should review it.
    pub review_reasons: Vec<String>,
    /// 0..1: how likely the data is right, as the gate sees it; null without a verdict.
    pub score: Option<f32>,
    /// 0..1: the least certainty of a field of the data, its absence included; null where the
    /// reader does not weigh that.
    pub certainty: Option<f32>,
    /// Where on the pages the data's values were found.
    pub grounded: Vec<docmill_gate::GroundedField>,
    /// Official rules that the e-invoice breaks; null if it was checked by none.
    pub einvoice_rules: Option<RuleReport>,
    /// The pages and their texts; null if no page was read.
    pub transcription: Option<TranscriptionView>,
    /// Milliseconds that each step took.
    pub timings_ms: TimingsView,
    /// The documents found in it, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ProcessedChild>,
    /// The transcript itself, for callers in this process.
    #[serde(skip)]
    pub transcript: Option<Arc<Transcript>>,
    /// Tokens that models were given and gave back, likewise.
    #[serde(skip)]
    pub usage: ModelUsage,
}

/// A document found in another one, as `docmill process` prints it.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum ProcessedChild {
    /// It was taken through every step.
    Processed(Box<ProcessReport>),
    /// It was not, and is not to blame.
    Stopped(FaultReport),
}

/// The fault that kept a document from its end: of a model, a reader of pages or a setting.
#[derive(Debug, Clone, Serialize)]
pub struct FaultReport {
    /// As in [`ProcessReport`].
    pub file: String,
    /// The fault.
    pub error: FaultView,
}

/// A fault as `docmill process` prints it.
#[derive(Debug, Clone, Serialize)]
pub struct FaultView {
    /// The name of its kind.
    pub fault: &'static str,
    /// For people.
    pub message: String,
}

impl FaultReport {
    /// Of the document of this name.
    pub fn new(file: String, error: &Error) -> Self {
        Self { file, error: FaultView { fault: error.fault.code(), message: error.to_string() } }
    }
}

/// The transcript as `docmill process` prints it.
#[derive(Debug, Clone, Serialize)]
pub struct TranscriptionView {
    /// The quality of the whole transcript, 0 to 1.
    pub quality: f32,
    /// The pages in their order.
    pub pages: Vec<PageView>,
}

/// One page as `docmill process` prints it.
#[derive(Debug, Clone, Serialize)]
pub struct PageView {
    number: u32,
    source: PageSource,
    quality: f32,
    defects: Vec<PageDefect>,
    repaired: bool,
    text: String,
}

/// Milliseconds per step; zero for a step that was not reached.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct TimingsView {
    /// From the bytes to the transcript.
    pub transcribe: u64,
    /// From the transcript to the data.
    pub extract: u64,
    /// The gate's judgement of the data.
    pub gate: u64,
}

impl LocalPipeline {
    /// Over these services without their daily budget; of a file only the document itself is read.
    pub fn new(mut services: PipelineServices) -> Self {
        // No worker would process the documents that a file is cut into: it is flagged instead.
        Arc::make_mut(&mut services.config).packets = PacketsConfig::default();
        Self { takes_children: false, ..Self::with_children(services) }
    }

    /// The same; documents found in a file are read as the worker does it, one after the other.
    pub fn with_children(mut services: PipelineServices) -> Self {
        let cost = services.config.cost.clone();
        let unbounded = CostConfig { daily_budget: Decimal::ZERO, ..cost };
        services.costs = Arc::new(CostTracker::new(unbounded));
        Self { services: Arc::new(services), artefacts: None, takes_children: true, day: None }
    }

    /// The same; what its replays spend counts in the day of `ledger`, and ends them once the budget of
    /// `costs` is spent there.
    #[must_use]
    pub fn spending_in(self, costs: Arc<CostTracker>, ledger: Arc<dyn AttemptLedger>) -> Self {
        let services = PipelineServices { costs, ..self.services.for_replays() };
        Self { services: Arc::new(services), day: Some(ledger), ..self }
    }

    /// The same pipeline with these kinds.
    #[must_use]
    pub fn with_kinds(&self, kinds: KindSet) -> Self {
        let kinds = Arc::new(kinds);
        let services = PipelineServices { kinds, ..self.services.for_replays() };
        Self {
            services: Arc::new(services),
            artefacts: self.artefacts.clone(),
            takes_children: self.takes_children,
            day: self.day.clone(),
        }
    }

    /// With transcripts and replies of models kept in `store`, below the hash of their document and
    /// how they were made: what is there already is not made again.
    #[must_use]
    pub fn keeping_artefacts(mut self, store: Arc<dyn ObjectStore>) -> Self {
        self.artefacts = Some(store);
        self
    }

    /// The services that the pipeline works with.
    pub fn services(&self) -> &PipelineServices {
        &self.services
    }

    /// Takes one document through every step, and then those found in it. `file` is what the answer
    /// calls it.
    ///
    /// # Errors
    /// A fault of OCR or model: the document itself is not to blame. A rejected document is no
    /// error but a failed [`ProcessReport`].
    pub async fn process_file(&self, file: &Path, bytes: Bytes) -> fault::Result<ProcessReport> {
        let mut alone = LocalAttempt::begin(self, &bytes).await?;
        alone.claimed.document.original_name =
            file.file_name().map(|name| name.to_string_lossy().into_owned());
        alone.process(file, &bytes).await
    }

    /// Stops after reading, and ignores any XML that the document carries.
    ///
    /// # Errors
    /// Rejected with the reader's reasons; faults of OCR.
    pub async fn transcribe_file(&self, bytes: Bytes) -> Result<Arc<Transcript>, StepError> {
        let (read, _copy) = self.transcribe_with_copy(bytes).await?;
        Ok(read)
    }

    /// As [`LocalPipeline::transcribe_file`], with the searchable copy of the document. There is
    /// none if `ocr.searchable_pdf` is off, if no page was read from its picture, or if it would be
    /// too large.
    ///
    /// # Errors
    /// As there.
    pub async fn transcribe_with_copy(
        &self,
        bytes: Bytes,
    ) -> Result<(Arc<Transcript>, Option<Bytes>), StepError> {
        let alone = LocalAttempt::begin(self, &bytes).await?;
        let LocalAttempt { context, claimed, claim, .. } = &alone;
        let read = Box::pin(docmill_pipeline::transcribe_document(context, claimed, claim)).await;
        let read = read.map_err(|failed| failed.error)?;
        let what = GetOptions { at_most: u64::MAX, if_match: None };
        let copy = match context.artefacts.get(&keys::searchable_key(claim.id), what).await? {
            GetResult::Found(object) => Some(object.bytes),
            GetResult::Missing | GetResult::Changed | GetResult::TooLarge { .. } => None,
        };
        Ok((read, copy))
    }
}

/// Result of the replay of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayedExtraction {
    /// The data.
    pub data: Option<Value>,
    /// Whether a person would be asked.
    pub flagged: bool,
    /// Whether it would fail.
    pub failed: bool,
    /// Spent on calls to models, in billionths of the currency.
    pub cost_nanos: u64,
}

impl LocalPipeline {
    /// Takes the stored transcript of a document through the steps behind the reading; `None` if it is
    /// gone. Stored replies of models count as long as they are asked the same.
    ///
    /// # Errors
    /// A fault of the store or a model.
    pub async fn replay_document(
        &self,
        store: &Arc<dyn ObjectStore>,
        document: &ReplayableDocument,
    ) -> fault::Result<Option<ReplayedExtraction>> {
        let what = GetOptions { at_most: MAX_TRANSCRIPT_BYTES, if_match: None };
        let GetResult::Found(transcript) =
            store.get(&document.transcription_file_path, what.clone()).await?
        else {
            return Ok(None);
        };
        let id = IngestionId(document.ingestion_id);
        let artefacts = Arc::new(MemoryStore::default());
        if let Some(path) = &document.extraction_output_file_path
            && let GetResult::Found(replies) = store.get(path, what).await?
        {
            artefacts.put(&keys::extraction_key(id), replies.bytes, &BTreeMap::new()).await?;
        }
        let ledger = MemoryLedger::new(document.ended_at);
        let ledger = match &self.day {
            Some(day) => ledger.spending_in(Arc::clone(day)),
            None => ledger,
        };
        let ledger = Arc::new(ledger);
        let owner = DocumentId(document.document_id);
        ledger.insert_ingestion(id, owner, &document.file_path);
        let mut claimed = claim_alone(&ledger, id).await?;
        claimed.kind = Some(document.kind.clone());
        claimed.tenant = document.tenant.clone();
        claimed.extraction = document.extraction_output_file_path.as_ref().map(|_| ArtefactRef {
            path: keys::extraction_key(id),
            identity: document.extraction_identity.clone().unwrap_or_default(),
        });
        let claim = ClaimHandle::unlimited(claimed.id, claimed.token);
        let context = PipelineContext {
            documents: Arc::clone(store),
            artefacts,
            ledger: Arc::clone(&ledger) as _,
            services: Arc::clone(&self.services),
        };
        let stored = transcript.bytes;
        let replaying = docmill_pipeline::replay_transcript(&context, &claimed, &claim, stored);
        let record = match Box::pin(replaying).await {
            Ok(PipelineOutput { record, .. }) => record,
            Err(StageFailure { error: StepError::Rejected { reason, detail }, .. }) => {
                verdict::early_result(reason, IngestionStage::Record, detail)
            }
            Err(StageFailure { error: StepError::Fault(fault), .. }) => return Err(fault),
        };
        Ok(Some(ReplayedExtraction {
            data: record.structured_data.map(Value::Object),
            flagged: record.needs_human_review,
            failed: record.reason.is_some(),
            cost_nanos: ledger.spent_on(id).await?.cost_nanos,
        }))
    }
}

/// Claims an ingestion in a ledger that no other process has.
async fn claim_alone(ledger: &MemoryLedger, id: IngestionId) -> fault::Result<ClaimedIngestion> {
    let terms = ClaimTerms {
        worker: "local".to_owned(),
        lease: Duration::from_secs(86_400),
        crash_limit: 1,
    };
    match ledger.claim(&[id], &terms).await?.pop() {
        Some(ClaimOutcome::Claimed(claimed)) => Ok(*claimed),
        _ => Err(Error::internal("a fresh document could not be claimed")),
    }
}

/// An attempt at a document of this process alone, with backends of its own.
struct LocalAttempt {
    context: PipelineContext,
    ledger: Arc<MemoryLedger>,
    claimed: ClaimedIngestion,
    claim: ClaimHandle,
}

impl LocalAttempt {
    async fn begin(pipeline: &LocalPipeline, bytes: &Bytes) -> fault::Result<Self> {
        let store = Arc::new(MemoryStore::default());
        store.put(KEY, bytes.clone(), &BTreeMap::new()).await?;
        let ledger = MemoryLedger::new(OffsetDateTime::now_utc());
        let ledger = if pipeline.takes_children { ledger.taking_children() } else { ledger };
        let ledger = Arc::new(ledger);
        // The same at each run, so that what was kept is found.
        let document = DocumentId::from_content(&digest::sha256_hex(bytes), "");
        let id = IngestionId::first_for_document(document);
        ledger.insert_ingestion(id, document, KEY);
        let context = PipelineContext {
            documents: Arc::clone(&store) as _,
            artefacts: pipeline.artefacts.clone().unwrap_or(store),
            ledger: Arc::clone(&ledger) as _,
            services: Arc::clone(&pipeline.services),
        };
        Self::claim(context, ledger, id).await
    }

    async fn claim(
        context: PipelineContext,
        ledger: Arc<MemoryLedger>,
        id: IngestionId,
    ) -> fault::Result<Self> {
        let claimed = claim_alone(&ledger, id).await?;
        let claim = ClaimHandle::unlimited(claimed.id, claimed.token);
        Ok(Self { context, ledger, claimed, claim })
    }

    /// Takes the document through every step and records its end, as a worker does; then those found in
    /// it.
    async fn process(&self, file: &Path, bytes: &Bytes) -> fault::Result<ProcessReport> {
        let Self { context, ledger, claimed, claim } = self;
        let (mut processed, record) = run_claimed(context, claimed, claim, file, bytes).await?;
        ledger.record_result(claimed.id, claimed.token, &record).await?;
        let children = record.children.clone();
        processed.finish(record, bytes);
        // Doubles of others of the family are found at the record.
        if let Some(row) = ledger.row(claimed.id) {
            processed.review_reasons = row.review_reasons;
        }
        for child in &children {
            processed.children.push(self.process_child(child).await?);
        }
        Ok(processed)
    }

    async fn process_child(&self, child: &NewChild) -> fault::Result<ProcessedChild> {
        let name = child.name.clone().unwrap_or_else(|| format!("[{}]", child.position));
        let (context, ledger) = (self.context.clone(), Arc::clone(&self.ledger));
        let own = Self::claim(context, ledger, child.ingestion).await?;
        let what = GetOptions { at_most: u64::MAX, if_match: None };
        let GetResult::Found(content) = self.context.documents.get(&child.file_path, what).await?
        else {
            return Err(Error::internal("a document found in another is not in the store"));
        };
        let file = Path::new(&name);
        Ok(match Box::pin(own.process(file, &content.bytes)).await {
            Ok(done) => {
                let done = ProcessReport { pages: child.pages, ..done };
                ProcessedChild::Processed(Box::new(done))
            }
            Err(error) => ProcessedChild::Stopped(FaultReport::new(name, &error)),
        })
    }
}

/// Takes a claimed document, whose bytes are given besides, through every step, and reports the
/// result as `docmill process` does.
///
/// # Errors
/// A fault of a backend, a lost claim: the document itself is not to blame. A rejected document is
/// no error but a failed [`ProcessReport`].
pub async fn process_claimed(
    context: &PipelineContext,
    claimed: &ClaimedIngestion,
    claim: &ClaimHandle,
    file: &Path,
    bytes: &Bytes,
) -> fault::Result<ProcessReport> {
    let (mut processed, record) = run_claimed(context, claimed, claim, file, bytes).await?;
    processed.finish(record, bytes);
    Ok(processed)
}

/// The same, up to the record.
async fn run_claimed(
    context: &PipelineContext,
    claimed: &ClaimedIngestion,
    claim: &ClaimHandle,
    file: &Path,
    bytes: &Bytes,
) -> fault::Result<(ProcessReport, IngestionResult)> {
    let mut processed = ProcessReport::started(file, bytes);
    let started = Instant::now();
    let record = match Box::pin(docmill_pipeline::run_pipeline(context, claimed, claim)).await {
        Ok(PipelineOutput { record, transcript, timings }) => {
            processed.timings_ms = timings.into();
            processed.transcription = Some(transcription_view(&transcript));
            processed.transcript = Some(transcript);
            record
        }
        Err(StageFailure { stage, error: StepError::Rejected { reason, detail } }) => {
            if stage == IngestionStage::Transcribe {
                processed.timings_ms.transcribe = whole_milliseconds(started.elapsed());
            }
            verdict::early_result(reason, IngestionStage::Record, detail)
        }
        Err(StageFailure { error: StepError::Fault(fault), .. }) => return Err(fault),
    };
    Ok((processed, record))
}

impl ProcessReport {
    /// Whether it completed, and everything found in it.
    pub fn is_completed(&self) -> bool {
        self.status == IngestionStatus::Completed
            && self.children.iter().all(|child: &ProcessedChild| match child {
                ProcessedChild::Processed(child) => child.is_completed(),
                ProcessedChild::Stopped(_) => false,
            })
    }

    fn started(file: &Path, bytes: &Bytes) -> Self {
        Self {
            file: file.display().to_string(),
            pages: None,
            sha256: String::new(),
            format: DocumentFormat::sniff(bytes).map(|format| format.code().to_owned()),
            status: IngestionStatus::Failed,
            reason: None,
            detail: String::new(),
            kind: None,
            reader: None,
            data: None,
            review_reasons: Vec::new(),
            score: None,
            certainty: None,
            grounded: Vec::new(),
            einvoice_rules: None,
            transcription: None,
            timings_ms: TimingsView::default(),
            children: Vec::new(),
            transcript: None,
            usage: ModelUsage::default(),
        }
    }

    fn finish(&mut self, record: IngestionResult, bytes: &Bytes) {
        self.sha256 = record.sha256.unwrap_or_else(|| digest::sha256_hex(bytes));
        self.status = record.reason.map_or(IngestionStatus::Completed, OutcomeReason::status);
        self.reason = record.reason;
        self.detail = record.detail;
        self.kind = record.kind;
        self.reader = record.reader;
        self.usage = record.usage;
        self.data = record.structured_data;
        self.review_reasons = record.review_reasons;
        self.einvoice_rules = record.einvoice_rules.map(Arc::unwrap_or_clone);
        if let Some(judged) = record.judged {
            (self.score, self.grounded) = (Some(judged.score), judged.grounded);
            self.certainty = judged.certainty;
        }
    }
}

impl From<StageTimings> for TimingsView {
    fn from(timings: StageTimings) -> Self {
        Self {
            transcribe: whole_milliseconds(timings.of(IngestionStage::Transcribe)),
            extract: whole_milliseconds(timings.of(IngestionStage::Extract)),
            gate: whole_milliseconds(timings.of(IngestionStage::Gate)),
        }
    }
}

fn whole_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn transcription_view(transcript: &Transcript) -> TranscriptionView {
    let pages = transcript.pages.iter().map(|page| PageView {
        number: page.number,
        source: page.source,
        quality: page.quality,
        defects: page.defects.clone(),
        repaired: page.repaired,
        text: page.text(),
    });
    TranscriptionView { quality: transcript.quality, pages: pages.collect() }
}
