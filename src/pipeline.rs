//! The way of a document: the one place where the order of the steps is written.
//!
//! `claimed → fetched → transcribed → extracted → verdict → record`. A document that carries an
//! e-invoice is neither transcribed beyond its text layer nor shown to a model. Each step is a plain function
//! that takes what the one before handed over. Nothing here touches the queue; what happens to the
//! message follows from what [`run`] returns.

pub mod artefact;
mod byte_budget;
mod choice;
pub mod cost;
mod einvoice;
pub mod elsewhere;
mod escalate;
mod extract;
pub mod failure;
pub mod fetch;
pub mod hold;
pub mod journal;
mod kind;
pub mod offline;
mod preprocessed;
pub mod reading;
mod transcribe;
pub mod verdict;

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use tracing::{Instrument as _, Span};

use crate::config::{LimitsConfig, RetryConfig};
use crate::cpu::{OpenDocument, Pool};
use crate::extract::Terms;
use crate::fault;
use crate::gate::{Einvoice, Verdict};
use crate::kinds::{Classified, Kind, Kinds};
use crate::ledger::{Ledger, Record};
use crate::llm::chain::{Chain, Rung};
use crate::metrics;
use crate::model::{Claimed, Extraction, Reason, Stage, Transcript, Usage};
use crate::store::Store;
use crate::telemetry::spans;
pub use byte_budget::ByteBudget;
pub use cost::Costs;
pub use elsewhere::{Elsewhere, Wishes};
use escalate::{Climbed, Climber};
use extract::{Extracted, Readings};
pub use hold::{Hold, Keeper};
pub use reading::{PageSink, Reader, Reading};

/// Everything the steps work with.
pub struct Ports {
    /// Documents and artefacts.
    pub store: Arc<dyn Store>,
    /// Claims and their ends.
    pub ledger: Arc<dyn Ledger>,
    /// Bytes to transcript.
    pub reader: Arc<Reader>,
    /// CPU work.
    pub pool: Arc<Pool>,
    /// The models; none: the rules reader.
    pub models: Chain,
    /// Kinds of documents.
    pub kinds: Arc<Kinds>,
    /// Bytes of documents in memory.
    pub budget: ByteBudget,
    /// Settings of the steps.
    pub config: StepsConfig,
}

/// Settings of the steps.
#[derive(Debug, Clone)]
pub struct StepsConfig {
    /// Caps on one document.
    pub limits: LimitsConfig,
    /// What follows a failed attempt.
    pub retry: RetryConfig,
    /// Kind of documents for which the producer named none.
    pub default_kind: String,
    /// Whether the kind is told from the document where the producer named none.
    pub classify: bool,
    /// Whether a model is asked where a document might be of several kinds.
    pub ask_on_ties: bool,
    /// Pages below this are flagged.
    pub quality_threshold: f32,
    /// Parts of one long document that are asked for at the same time.
    pub parts_at_once: usize,
    /// Prices and the day's budget.
    pub costs: Arc<Costs>,
    /// Read the pages alone, whatever XML the document carries.
    pub ignore_xml: bool,
}

impl StepsConfig {
    /// What bounds the calls about one transcript.
    fn terms(&self, identity: String, max_output_tokens: u32) -> Terms {
        let prompt_tokens = self.limits.prompt_tokens;
        Terms { identity, prompt_tokens, max_output_tokens, parts_at_once: self.parts_at_once }
    }
}

/// Why a step could not hand its document on.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The input ends here, for this reason. The text is for operators: never document content.
    #[error("{}: {detail}", reason.code())]
    Rejected {
        /// The code that goes into the row.
        reason: Reason,
        /// Counts and limits, e.g. `812 pages, limits.pages is 500`.
        detail: String,
    },
    /// The outside failed; its fault says how to react.
    #[error(transparent)]
    Fault(#[from] fault::Error),
    /// The claim is no longer ours: nothing more is written or started.
    #[error("the claim is lost")]
    ClaimLost,
}

impl StepError {
    /// The word of the log and the metric.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Rejected { reason, .. } => reason.code(),
            Self::Fault(error) => error.fault.code(),
            Self::ClaimLost => "claim_lost",
        }
    }

    /// The input ends here.
    pub fn rejected(reason: Reason, detail: impl Into<String>) -> Self {
        Self::Rejected { reason, detail: detail.into() }
    }
}

/// A step that failed, and which one.
#[derive(Debug)]
pub struct Failed {
    /// Where.
    pub stage: Stage,
    /// Why.
    pub error: StepError,
}

/// Takes a claimed ingestion through every step, up to what is to be recorded.
///
/// # Errors
/// The step that failed and why. Dropping the future stops the work at its next await.
pub async fn run(ports: &Ports, claimed: &Claimed, hold: &Hold) -> Result<Record, Failed> {
    let (stage, since) = (Stage::Claimed, Instant::now());
    let (span, spent) = (Span::none(), Usage::default());
    let mut steps = Steps { ports, hold, stage, since, span, spent };
    let outcome = steps.run(claimed).await;
    if let Err(error) = &outcome {
        spans::failed(&steps.span, error.code());
    }
    steps.leave();
    let outcome = outcome.map(|mut record| {
        record.usage += steps.spent;
        record
    });
    outcome.map_err(|error| Failed { stage: steps.stage, error })
}

/// Where a run is, for the row, the metrics and the failure.
struct Steps<'a> {
    ports: &'a Ports,
    hold: &'a Hold,
    stage: Stage,
    since: Instant,
    /// Of the stage. Entered only around what makes spans of its own.
    span: Span,
    /// Tokens of calls that belong to no reading.
    spent: Usage,
}

impl Steps<'_> {
    async fn run(&mut self, claimed: &Claimed) -> Result<Record, StepError> {
        let ports = self.ports;
        let named = kind::named(ports, claimed)?;

        self.enter(Stage::Fetch)?;
        let (limits, budget) = (&ports.config.limits, &ports.budget);
        let (store, ledger) = (ports.store.as_ref(), ports.ledger.as_ref());
        let fetched = fetch::fetch(store, ledger, &claimed.document, limits, budget).await?;
        let sha256 = fetched.sha256.clone();

        self.enter(Stage::Transcribe)?;
        let document = ports.reader.open(fetched.bytes.clone(), claimed.suspect).await?;
        let look = match ports.config.ignore_xml {
            true => einvoice::Look::NONE,
            false => {
                einvoice::look((&ports.reader, &ports.pool), &document, &sha256, &named).await?
            }
        };
        let climbed = match look.told {
            Some(told) => {
                let named = (claimed.kind.as_deref(), &named);
                let (kind, extraction) = told.extraction(&ports.kinds, named);
                let transcript =
                    einvoice::keep(ports, self.hold, &fetched, told.transcript).await?;
                self.enter(Stage::Extract)?;
                let told = Classified::certain(kind);
                let case = Case { claimed, told: &told, note: look.note, transcript: &transcript };
                let verdict = self.judge(case, &extraction).await?;
                Climbed::Judged(extraction, verdict)
            }
            None => self.read(claimed, (&named, look.note), (fetched, document)).await?,
        };
        let (extraction, verdict) = match climbed {
            Climbed::Judged(extraction, verdict) => (extraction, verdict),
            Climbed::Unfinished(unfinished) => {
                return Ok(Record { sha256: Some(sha256), ..verdict::unfinished(unfinished) });
            }
        };
        self.enter(Stage::Record)?;
        Ok(verdict::record(extraction, &verdict, Some(sha256)))
    }

    /// Transcribes the pages and has them read by as many models as it takes.
    async fn read(
        &mut self,
        claimed: &Claimed,
        (named, note): (&Arc<Kind>, Einvoice),
        (fetched, document): (fetch::Fetched, OpenDocument),
    ) -> Result<Climbed, StepError> {
        let (ports, hold) = (self.ports, self.hold);
        // Before the document is read only its producer can say what it is.
        let is_named = claimed.kind.is_some() || !ports.config.classify;
        let order = named.read_by.clone().filter(|_| is_named);
        let transcribed =
            transcribe::transcribe(ports, (hold, claimed), order, (fetched, document))
                .instrument(self.span.clone())
                .await?;
        self.enter(Stage::Extract)?;
        let transcript = &transcribed.transcript;
        let classify = ports.config.classify && claimed.kind.is_none();
        let told = kind::told(&ports.kinds, named, classify, transcript);
        let (told, spent) = choice::settle((ports, hold), claimed, &transcribed, told)
            .instrument(self.span.clone())
            .await?;
        self.spent += spent;
        let case = Case { claimed, told: &told, note, transcript };
        let rungs = ports.models.for_kind(&told.kind.name);
        let Some(first) = rungs.first() else {
            let extraction = extract::by_rules(&ports.pool, &told.kind, transcript).await?;
            let verdict = self.judge(case, &extraction).await?;
            return Ok(Climbed::Judged(extraction, verdict));
        };
        let read = (Arc::clone(&told.kind), &transcribed);
        let readings = Readings::open((ports, hold), claimed, read, first).await?;
        escalate::climb(&rungs, &mut Climb { steps: self, readings, case }).await
    }

    /// Asks the gate.
    async fn judge(
        &mut self,
        case: Case<'_>,
        extraction: &Extraction,
    ) -> Result<Verdict, StepError> {
        self.enter(Stage::Gate)?;
        let Case { claimed, told, note, transcript } = case;
        let terms = (told.kind.as_ref(), self.ports.config.quality_threshold, note);
        let ledger = self.ports.ledger.as_ref();
        let document = (claimed.document.id, claimed.tenant.as_deref());
        let mut verdict = verdict::judge(ledger, document, extraction, transcript, terms).await?;
        kind::note(told.doubt, &mut verdict);
        Ok(verdict)
    }

    /// Goes on to the next stage, if the claim is still ours.
    fn enter(&mut self, stage: Stage) -> Result<(), StepError> {
        self.leave();
        self.stage = stage;
        self.since = Instant::now();
        // The outcome is written by the worker, which has a span for it.
        self.span = if stage == Stage::Record { Span::none() } else { spans::step(stage) };
        self.hold.enter(stage);
        if self.hold.is_lost() { Err(StepError::ClaimLost) } else { Ok(()) }
    }

    fn leave(&mut self) {
        metrics::stage(self.stage.code(), self.since.elapsed());
        self.span = Span::none();
    }
}

/// What the gate has to know of a document beside its data.
#[derive(Clone, Copy)]
struct Case<'a> {
    claimed: &'a Claimed,
    told: &'a Classified,
    note: Einvoice,
    transcript: &'a Arc<Transcript>,
}

/// The climb of a claimed ingestion.
struct Climb<'c, 'a> {
    steps: &'c mut Steps<'a>,
    readings: Readings<'c>,
    case: Case<'c>,
}

#[async_trait]
impl Climber for Climb<'_, '_> {
    async fn read(&mut self, at: usize, rung: &Rung) -> Result<Extracted, StepError> {
        if self.steps.stage != Stage::Extract {
            self.steps.enter(Stage::Extract)?;
        }
        let span = self.steps.span.clone();
        self.readings.by(at, rung).instrument(span).await
    }

    async fn judge(&mut self, extraction: &Extraction) -> Result<Verdict, StepError> {
        self.steps.judge(self.case, extraction).await
    }
}
