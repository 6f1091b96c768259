//! One document through the steps without database, queue or store: `docmill process`, `eval`.
//!
//! The same reader, extraction and gate as in [`super::run`]; only what needs the ledger (claims,
//! duplicates, stored artefacts) is left out.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::cpu::Pool;
use crate::extract::{self, Journal, Replies};
use crate::fault;
use crate::gate::{self, Lookups, Verdict};
use crate::kinds::{Classified, Kind, Kinds};
use crate::ledger::Record;
use crate::llm::chain::{Chain, Rung};
use crate::model::{Extraction, Reason, Stage, Status, Transcript, digest};
use crate::pages;
use crate::pipeline::einvoice::{self, Look};
use crate::pipeline::escalate::{self, Climbed, Climber};
use crate::pipeline::extract::{Extracted, by_rules, extracted};
use crate::pipeline::{Reader, StepError, StepsConfig, choice, kind, verdict};

/// What a document needs when there is no ledger.
pub struct Offline {
    /// Bytes to transcript.
    pub reader: Arc<Reader>,
    /// CPU work.
    pub pool: Arc<Pool>,
    /// The models; none: the rules reader.
    pub models: Chain,
    /// Kinds of documents.
    pub kinds: Arc<Kinds>,
    /// Settings of the steps.
    pub config: StepsConfig,
}

/// The answer of `docmill process FILE --json`; the shape is the design's.
#[derive(Debug, Clone, Serialize)]
pub struct Processed {
    /// The path as it was given.
    pub file: String,
    /// SHA-256 of the bytes, in hex.
    pub sha256: String,
    /// What the bytes are, e.g. `pdf`; null if none of ours.
    pub format: Option<String>,
    /// `completed` or `failed`.
    pub status: Status,
    /// Why not completed.
    pub reason: Option<Reason>,
    /// For people: counts and limits.
    pub detail: String,
    /// Kind of document.
    pub kind: Option<String>,
    /// Which reader produced the data.
    pub reader: Option<String>,
    /// The kind's fields.
    pub data: Option<Map<String, Value>>,
    /// Why a person should look.
    pub review_reasons: Vec<String>,
    /// 0..1: how likely the data is right, as the gate sees it; null without a verdict.
    pub score: Option<f32>,
    /// Where on the pages the data's values were found.
    pub grounded: Vec<gate::Grounded>,
    /// What was read.
    pub transcription: Option<TranscriptionView>,
    /// Milliseconds per step.
    pub timings_ms: Timings,
    /// The transcript itself, for callers in this process.
    #[serde(skip)]
    pub transcript: Option<Arc<Transcript>>,
}

/// The transcript as `docmill process` prints it.
#[derive(Debug, Clone, Serialize)]
pub struct TranscriptionView {
    /// 0..1.
    pub quality: f32,
    /// The pages.
    pub pages: Vec<PageView>,
}

/// One page as `docmill process` prints it.
#[derive(Debug, Clone, Serialize)]
pub struct PageView {
    number: u32,
    source: crate::model::Source,
    quality: f32,
    defects: Vec<crate::model::Defect>,
    repaired: bool,
    text: String,
}

/// Milliseconds per step; zero for a step that was not reached.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Timings {
    /// Bytes to transcript.
    pub transcribe: u64,
    /// Transcript to data.
    pub extract: u64,
    /// The verdict.
    pub gate: u64,
}

impl Processed {
    /// Notes what was read, and how long that took.
    fn read(&mut self, transcript: &Arc<Transcript>, since: Instant) {
        self.timings_ms.transcribe = milliseconds(since);
        self.transcription = Some(view(transcript));
        self.transcript = Some(Arc::clone(transcript));
    }
}

impl Offline {
    /// Takes one document through every step.
    ///
    /// # Errors
    /// A fault of OCR or model: the document itself is not to blame. A rejected document is no
    /// error but a failed [`Processed`].
    pub async fn process(&self, file: &Path, bytes: Bytes) -> fault::Result<Processed> {
        let mut processed = start(file, &bytes);
        let name = &self.config.default_kind;
        let kind = self.kinds.get(name).ok_or_else(|| {
            fault::Error::internal(format!("kinds.default names `{name}`, which does not exist"))
        })?;
        match self.steps(kind, bytes, &mut processed).await {
            Ok(record) => finish(&mut processed, record),
            Err(StepError::Rejected { reason, detail }) => {
                finish(&mut processed, verdict::ended(reason, Stage::Record, detail));
            }
            Err(StepError::Fault(fault)) => return Err(fault),
            Err(StepError::ClaimLost) => {
                return Err(fault::Error::internal("a claim was lost where there is none"));
            }
        }
        Ok(processed)
    }

    /// Stops after reading.
    ///
    /// # Errors
    /// Rejected with the reader's reasons; faults of OCR.
    pub async fn transcribe(&self, bytes: Bytes) -> Result<Transcript, StepError> {
        self.check_size(&bytes)?;
        let sha256 = digest::sha256(&bytes);
        self.reader.read(bytes, &sha256, false).await
    }

    fn check_size(&self, bytes: &Bytes) -> Result<(), StepError> {
        let limit = self.config.limits.document_bytes.0;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > limit {
            let detail = format!("{size} bytes, limits.document_bytes is {limit}");
            return Err(StepError::rejected(Reason::TooLarge, detail));
        }
        Ok(())
    }

    async fn steps(
        &self,
        kind: &Arc<Kind>,
        bytes: Bytes,
        processed: &mut Processed,
    ) -> Result<Record, StepError> {
        let started = Instant::now();
        self.check_size(&bytes)?;
        let document = self.reader.open(bytes, false).await?;
        let look = match self.config.ignore_xml {
            true => Look::NONE,
            false => {
                let cores = (self.reader.as_ref(), self.pool.as_ref());
                einvoice::look(cores, &document, &processed.sha256, kind).await?
            }
        };
        let (mut reader, read) = match look.told {
            Some(told) => {
                let (kind, extraction) = told.extraction(&self.kinds, (None, kind));
                let transcript = Arc::new(told.transcript);
                processed.read(&transcript, started);
                let told = Classified::certain(kind);
                (Reading::new(self, told, (look.note, transcript)), Some(extraction))
            }
            None => {
                let read = self.reader.read_whole(document, &processed.sha256).await;
                processed.timings_ms.transcribe = milliseconds(started);
                let transcript = Arc::new(read?);
                processed.read(&transcript, started);
                let told = kind::told(&self.kinds, kind, self.config.classify, &transcript);
                let told = self.settle(told, &transcript).await?;
                (Reading::new(self, told, (look.note, transcript)), None)
            }
        };
        let climbed = match read {
            Some(extraction) => {
                let verdict = reader.judge(&extraction).await?;
                Climbed::Judged(extraction, verdict)
            }
            None => reader.climb().await?,
        };
        (processed.timings_ms.extract, processed.timings_ms.gate) = reader.timings();
        let (extraction, judged) = match climbed {
            Climbed::Judged(extraction, verdict) => (extraction, verdict),
            Climbed::Unfinished(unfinished) => return Ok(verdict::unfinished(unfinished)),
        };
        let record = verdict::record(extraction, &judged, None);
        (processed.score, processed.grounded) = (Some(judged.score), judged.grounded);
        Ok(record)
    }
}

impl Offline {
    /// Has a model choose where several kinds tie.
    async fn settle(&self, told: Classified, read: &Transcript) -> Result<Classified, StepError> {
        let asked = choice::open(&self.models, &told).filter(|_| self.config.ask_on_ties);
        let Some((kinds, rung)) = asked else { return Ok(told) };
        let llm = rung.llm.as_ref();
        let identity = extract::choice_identity(&read.sha256, llm, &kinds);
        let chosen = extract::choose(llm, &kinds, read, &identity, &mut Unstored).await?;
        Ok(choice::settled(&self.kinds, told, (&kinds, &chosen.0)))
    }
}

/// One document being read and judged, without a ledger.
struct Reading<'a> {
    offline: &'a Offline,
    told: Classified,
    note: gate::Einvoice,
    transcript: Arc<Transcript>,
    read: Duration,
    judged: Duration,
}

impl<'a> Reading<'a> {
    fn new(
        offline: &'a Offline,
        told: Classified,
        (note, transcript): (gate::Einvoice, Arc<Transcript>),
    ) -> Self {
        let (read, judged) = (Duration::ZERO, Duration::ZERO);
        Self { offline, told, note, transcript, read, judged }
    }

    /// By as many models as it takes, or by labels and layout.
    async fn climb(&mut self) -> Result<Climbed, StepError> {
        let rungs = self.offline.models.for_kind(&self.told.kind.name);
        if !rungs.is_empty() {
            return escalate::climb(&rungs, self).await;
        }
        let started = Instant::now();
        let read = by_rules(&self.offline.pool, &self.told.kind, &self.transcript).await;
        self.read += started.elapsed();
        let extraction = read?;
        let verdict = self.judge(&extraction).await?;
        Ok(Climbed::Judged(extraction, verdict))
    }

    /// Milliseconds of reading and of judging.
    fn timings(&self) -> (u64, u64) {
        let whole = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        (whole(self.read), whole(self.judged))
    }
}

#[async_trait]
impl Climber for Reading<'_> {
    async fn read(&mut self, _: usize, rung: &Rung) -> Result<Extracted, StepError> {
        let started = Instant::now();
        let (llm, kind, transcript) = (rung.llm.as_ref(), &self.told.kind, &self.transcript);
        let identity = extract::identity(&transcript.sha256, llm, kind);
        let terms = self.offline.config.terms(identity, rung.max_output_tokens);
        let asked = extract::ask(llm, kind, transcript, &terms, &mut Unstored).await;
        self.read += started.elapsed();
        extracted(asked)
    }

    async fn judge(&mut self, extraction: &Extraction) -> Result<Verdict, StepError> {
        let started = Instant::now();
        let lookups = Lookups {
            duplicate_of: None,
            today: OffsetDateTime::now_utc().date(),
            quality_threshold: self.offline.config.quality_threshold,
            einvoice: self.note,
        };
        let mut verdict = gate::judge(extraction, &self.transcript, &self.told.kind, &lookups);
        kind::note(self.told.doubt, &mut verdict);
        self.judged += started.elapsed();
        Ok(verdict)
    }
}

fn start(file: &Path, bytes: &Bytes) -> Processed {
    Processed {
        file: file.display().to_string(),
        sha256: digest::sha256(bytes),
        format: pages::Format::sniff(bytes).map(|format| format.code().to_owned()),
        status: Status::Failed,
        reason: None,
        detail: String::new(),
        kind: None,
        reader: None,
        data: None,
        review_reasons: Vec::new(),
        score: None,
        grounded: Vec::new(),
        transcription: None,
        timings_ms: Timings::default(),
        transcript: None,
    }
}

fn finish(processed: &mut Processed, record: Record) {
    processed.status = record.reason.map_or(Status::Completed, Reason::status);
    processed.reason = record.reason;
    processed.detail = record.detail;
    processed.kind = record.kind;
    processed.reader = record.reader;
    processed.data = record.structured_data;
    processed.review_reasons = record.review_reasons;
}

fn view(transcript: &Transcript) -> TranscriptionView {
    let page = |page: &crate::model::PageText| PageView {
        number: page.number,
        source: page.source,
        quality: page.quality,
        defects: page.defects.clone(),
        repaired: page.repaired,
        text: page.text(),
    };
    TranscriptionView {
        quality: transcript.quality,
        pages: transcript.pages.iter().map(page).collect(),
    }
}

fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Nothing is stored: each run asks anew.
struct Unstored;

#[async_trait]
impl Journal for Unstored {
    async fn load(&mut self) -> fault::Result<Option<Replies>> {
        Ok(None)
    }

    async fn save(&mut self, _: &Replies) -> fault::Result<()> {
        Ok(())
    }
}
