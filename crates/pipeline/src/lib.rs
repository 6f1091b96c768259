//! The pipeline: defines the order of a document's steps.
//!
//! [`run_pipeline`] takes a claimed document through the steps. Each is a plain function of the
//! output of the one before:
//!
//! 1. **Fetch** ([`fetch`]): the original's bytes, within the limits and not on the block list.
//! 2. **Transcribe** (`children`, `einvoice`, `transcribe`): the document is opened in a page process.
//!    Documents found in it are stored; a container ends with them. An
//!    embedded e-invoice is its data, and of the pages only the text layers are read. Otherwise its
//!    pages are read, by text layer or OCR. The transcript is stored before it is used.
//!    A file of several documents ends here, with these as its children (`packets`, `packet_question`).
//! 3. **Extract** (`kind`, `kind_choice`, `extract`, `escalate`): the kind is classified, then the
//!    models of the chain read the transcript while the gate asks for more, or the rules reader
//!    does. Every model reply is stored before it is used.
//! 4. **Gate** (`verdict`): deterministic rules judge the extraction.
//! 5. **Record**: returned to the caller, who writes it.
//!
//! Hooks (`hooks`) are asked about the open document, before anything is found in it, and about the
//! judged result.
//!
//! The claim is checked before each step, each paid call and each write: once it is lost, nothing
//! more happens. Stored results of earlier attempts are used and not paid for again.
//!
//! The source of a document, the place of its artefacts and the book of its costs are the three
//! backends of [`PipelineContext`]. The database's worker, a bucket's, a workspace's and `docmill
//! process` differ only in these. The pipeline does not touch a queue; the message's disposition
//! follows from the result of [`run_pipeline`].

pub mod artefact;
mod batch_lane;
mod byte_budget;
mod children;
pub mod claim_handle;
mod context;
pub mod cost;
mod earlier_transcript;
mod einvoice;
mod escalate;
mod extract;
pub mod failpoint;
pub mod failure;
pub mod fetch;
mod figures;
mod hook_set;
mod hooks;
pub mod journal;
mod kind;
mod kind_choice;
mod local_pages;
mod master_data;
mod own_companies;
mod packet_question;
mod packets;
mod page_pictures;
mod page_sink;
mod preprocessed;
mod question_journal;
pub mod reading;
pub mod remote_ocr;
mod reopened;
mod searchable;
mod second_looks;
mod second_reading;
pub mod shutdown;
mod step_error;
mod structure;
pub mod supplier_memory;
mod text_budget;
mod text_work;
mod timings;
mod transcribe;
pub mod verdict;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt as _;
use tracing::{Instrument as _, Span};

pub use byte_budget::ByteBudget;
pub use claim_handle::{ClaimHandle, ClaimRenewer};
use context::AttemptContext;
pub use context::{PipelineContext, PipelineServices};
pub use cost::CostTracker;
use docmill_client::telemetry::spans;
use docmill_core::config::HookMoment;
use docmill_core::fault::Error;
use docmill_core::model::message::plain_etag;
use docmill_core::model::{
    ClaimedIngestion, Extraction, ExtractionMethod, IngestionStage, IngestionStatus,
    InvoiceReference, ModelUsage, OutcomeReason, RuleReport, Transcript,
};
use docmill_documents::sandbox::OpenDocument;
use docmill_extract::ReadingFaults;
use docmill_extract::memory::SupplierRecall;
use docmill_gate::kinds::{ClassifiedKind, Kind, RuleCheck};
use docmill_gate::{EinvoiceState, SecondReading, Verdict};
use docmill_ledger::{IngestionResult, NewChild, StoredTranscript, VersionOutcome};
use docmill_llm::chain::ChainModel;
use einvoice::{EinvoiceScan, ParsedEinvoice};
use escalate::{EscalationOutcome, EscalationStep};
use extract::{ExtractionOutcome, ModelReadings};
use fetch::FetchedDocument;
pub use figures::{CutFigures, FigurePicture, cut_figures};
pub use hook_set::PipelineHooks;
use hooks::{HookEffects, HookQuestion};
pub use own_companies::OwnCompanyBook;
use packets::{PacketDoubt, PacketVerdict};
pub use page_sink::PageSink;
pub use reading::{DocumentReader, ReadRequest};
pub use remote_ocr::{ReadOptions, RemoteOcr};
pub use second_looks::SecondLooks;
use second_reading::FieldReading;
pub use step_error::{StageFailure, StepError};
pub use structure::find_layout;
use supplier_memory::recall_supplier;
pub use text_budget::TextBudget;
pub use text_work::run_on_text;
use timings::StageClock;
pub use timings::StageTimings;
use verdict::{GateInput, OtherReadings};

/// An object that is replaced so often while it is fetched is left alone for a while.
const MAX_VERSIONS: u32 = 3;

/// The output of a run of the pipeline.
#[derive(Debug)]
pub struct PipelineOutput {
    /// The result to record.
    pub record: IngestionResult,
    /// The transcript of the document.
    pub transcript: Arc<Transcript>,
    /// The time spent in each stage.
    pub timings: StageTimings,
}

/// Takes a claimed document through every step, up to what is to be recorded.
///
/// # Errors
/// The step that failed and why. Dropping the future stops the work at its next await.
pub async fn run_pipeline(
    context: &PipelineContext,
    claimed: &ClaimedIngestion,
    claim: &ClaimHandle,
) -> Result<PipelineOutput, StageFailure> {
    let hook_kind = OnceLock::new();
    let mut steps =
        PipelineRun::new(AttemptContext { context, claimed, claim, hook_kind: &hook_kind });
    let outcome = steps.run().await;
    steps.finish(outcome)
}

/// Runs the first two steps only, ignoring embedded XML: reads the pages.
///
/// # Errors
/// As [`run_pipeline`].
pub async fn transcribe_document(
    context: &PipelineContext,
    claimed: &ClaimedIngestion,
    claim: &ClaimHandle,
) -> Result<Arc<Transcript>, StageFailure> {
    let hook_kind = OnceLock::new();
    let mut steps =
        PipelineRun::new(AttemptContext { context, claimed, claim, hook_kind: &hook_kind });
    let outcome = steps.transcribe().await;
    steps.finish(outcome)
}

/// Runs the steps behind the reading over a transcript in its stored form, as the kind that the row
/// names: no original is fetched and no page is read.
///
/// # Errors
/// As [`run_pipeline`]; `Internal` if the transcript is not readable.
pub async fn replay_transcript(
    context: &PipelineContext,
    claimed: &ClaimedIngestion,
    claim: &ClaimHandle,
    stored: Bytes,
) -> Result<PipelineOutput, StageFailure> {
    let hook_kind = OnceLock::new();
    let mut steps =
        PipelineRun::new(AttemptContext { context, claimed, claim, hook_kind: &hook_kind });
    let outcome = Box::pin(steps.replay(stored)).await;
    steps.finish(outcome)
}

/// An original that is open, and what was found in it.
struct ScannedOriginal {
    fetched: FetchedDocument,
    document: OpenDocument,
    sha256: String,
    scan: EinvoiceScan,
    /// Documents found in it, which are stored.
    children: Vec<NewChild>,
}

/// The rules reader's reading of a transcript that a model has read.
struct RulesReading {
    transcript: Arc<Transcript>,
    /// Else the code of the error.
    read: Result<Arc<Extraction>, &'static str>,
}

/// A run: which step it is at, for the row, the metrics and the failure.
struct PipelineRun<'a> {
    attempt: AttemptContext<'a>,
    clock: StageClock,
    /// The span of the stage. Entered only around work with spans of its own.
    span: Span,
    /// Tokens of calls that belong to no reading.
    spent: ModelUsage,
    /// Room for the text of the pages beside an e-invoice.
    text_budget: Option<TextBudget>,
    /// Which pages models were shown, for operators.
    shown: String,
    /// The verdict of official rules on the document's XML.
    einvoice_rules: Option<Arc<RuleReport>>,
    /// The parts of that XML which an answer names.
    einvoice_reference: Option<Box<InvoiceReference>>,
    /// Its pages may be several documents.
    several: Option<PacketDoubt>,
    /// Documents that were found in it so far.
    found: u32,
    /// Whether more are attached to it than were taken.
    leaves_children_out: bool,
    /// The second reading of its fields, once it was asked for.
    second_reading: Option<FieldReading>,
    /// The rules reader's reading beside a model's.
    rules_reading: Option<RulesReading>,
    /// The answers of hooks so far.
    hooks: HookEffects,
}

/// Documents that the pages of a file are.
enum PagesRead {
    /// One document of this kind.
    One(transcribe::TranscribedDocument, ClassifiedKind),
    /// Several documents, and the text of all.
    Several(Vec<NewChild>, Arc<Transcript>),
}

impl<'a> PipelineRun<'a> {
    fn new(attempt: AttemptContext<'a>) -> Self {
        Self {
            attempt,
            clock: StageClock::start(),
            span: Span::none(),
            spent: ModelUsage::default(),
            text_budget: None,
            shown: String::new(),
            einvoice_rules: None,
            einvoice_reference: None,
            several: None,
            found: 0,
            leaves_children_out: false,
            second_reading: None,
            rules_reading: None,
            hooks: HookEffects::default(),
        }
    }

    /// Runs the steps in order. Each is a separate future on the heap, dropped with the step: of
    /// thousands of jobs most wait for a model, and hold nothing of the page reading.
    async fn run(&mut self) -> Result<PipelineOutput, StepError> {
        kind::named_kind(self.attempt)?;
        let (fetched, document) = Box::pin(self.open_and_ask()).await?;
        if let Some(stop) = self.hooks.stop() {
            let transcript = Arc::new(Transcript::without_pages(&fetched.sha256));
            let record = stop.to_result(fetched.sha256);
            return self.finish_record(record, transcript);
        }
        let named = kind::named_kind(self.attempt)?;
        // Moved on and never borrowed here: what waits for a model has no room for them.
        let ScannedOriginal { fetched, document, sha256, scan, mut children } =
            Box::pin(self.scan_original(&named, fetched, document)).await?;
        self.found = u32::try_from(children.len()).unwrap_or(u32::MAX);
        if document.page_count() == 0 {
            let transcript = Arc::new(Transcript::without_pages(&sha256));
            return self.finish_container(sha256, children, transcript);
        }
        let EinvoiceScan { parsed, note, rules } = scan;
        self.einvoice_rules = rules.map(Arc::new);
        let (transcript, outcome) = match parsed {
            Some(parsed) => Box::pin(self.judge_einvoice(parsed, &named, fetched, note)).await?,
            None => {
                let read = Box::pin(self.read_and_classify(&named, fetched, document)).await?;
                let (transcribed, classified) = match read {
                    PagesRead::One(transcribed, classified) => (transcribed, classified),
                    PagesRead::Several(parts, transcript) => {
                        children.extend(parts);
                        return self.finish_container(sha256, children, transcript);
                    }
                };
                let transcript = Arc::clone(&transcribed.transcript);
                let input = GateInput::of_text(&classified, note, &transcript);
                let outcome = Box::pin(self.extract(input, &transcribed)).await?;
                (transcript, outcome)
            }
        };
        let mut output = Box::pin(self.record(transcript, outcome, Some(sha256))).await?;
        output.record.children = children;
        Ok(output)
    }

    /// Every step behind the reading.
    async fn replay(&mut self, stored: Bytes) -> Result<PipelineOutput, StepError> {
        let named = kind::named_kind(self.attempt)?;
        let transcribed = transcribe::parse_stored(self.attempt, stored).await?;
        let transcript = Arc::clone(&transcribed.transcript);
        let resolving = kind::resolve_kind(self.attempt, &named, &transcript);
        let classified = Box::pin(resolving).await?;
        self.enter(IngestionStage::Extract)?;
        let input = GateInput::of_text(&classified, EinvoiceState::Absent, &transcript);
        let outcome = Box::pin(self.extract(input, &transcribed)).await?;
        let sha256 = Some(transcript.sha256.clone()).filter(|sha256| !sha256.is_empty());
        Box::pin(self.record(Arc::clone(&transcript), outcome, sha256)).await
    }

    /// The record of an outcome.
    async fn record(
        &mut self,
        transcript: Arc<Transcript>,
        outcome: EscalationOutcome,
        sha256: Option<String>,
    ) -> Result<PipelineOutput, StepError> {
        let mut record = match outcome {
            EscalationOutcome::Judged(extraction, mut verdict) => {
                let matching =
                    master_data::match_extraction(self.attempt, &extraction, &mut verdict);
                let master_match = Box::pin(matching).await?;
                self.enter(IngestionStage::Record)?;
                let kinds = &self.attempt.services().kinds;
                let judged = verdict::judged_result(extraction, kinds, &verdict, sha256);
                IngestionResult { master_match, ..judged }
            }
            EscalationOutcome::Unfinished(unfinished) => {
                IngestionResult { sha256, ..verdict::unfinished_result(unfinished) }
            }
        };
        Box::pin(self.ask_after(&mut record)).await?;
        let (kinds, tenant) =
            (&self.attempt.services().kinds, self.attempt.claimed.tenant.as_deref());
        record.lesson = verdict::exact_lesson(&record, kinds, tenant);
        record.usage += self.spent;
        record.einvoice_rules = self.einvoice_rules.take();
        record.einvoice_reference = self.einvoice_reference.take();
        record.add_detail(&self.shown);
        if let Some(asked) = &self.second_reading {
            record.add_detail(&asked.describe());
        }
        if let Some(RulesReading { read: Err(code), .. }) = &self.rules_reading {
            record
                .add_detail(&format!("its fields are not compared with the rules reader: {code}"));
        }
        if let Some(doubt) = &self.several {
            record.add_detail(&doubt.describe());
        }
        Ok(PipelineOutput { record, transcript, timings: self.clock.timings() })
    }

    /// Ends with the documents found in a container, or in a file of several documents.
    fn finish_container(
        &mut self,
        sha256: String,
        children: Vec<NewChild>,
        transcript: Arc<Transcript>,
    ) -> Result<PipelineOutput, StepError> {
        let mut record = verdict::container_result(sha256, children);
        record.usage += self.spent;
        std::mem::take(&mut self.hooks).note(&mut record);
        self.finish_record(record, transcript)
    }

    /// Ends with a record that nothing is added to.
    fn finish_record(
        &mut self,
        record: IngestionResult,
        transcript: Arc<Transcript>,
    ) -> Result<PipelineOutput, StepError> {
        self.enter(IngestionStage::Record)?;
        Ok(PipelineOutput { record, transcript, timings: self.clock.timings() })
    }

    /// Opens the original and asks the hooks about it; the kind that one names is the document's.
    async fn open_and_ask(&mut self) -> Result<(FetchedDocument, OpenDocument), StepError> {
        let scan_einvoice = !self.attempt.services().ignore_xml;
        let (fetched, document) = Box::pin(self.open_original(scan_einvoice)).await?;
        let original = &self.attempt.claimed.document;
        let facts = serde_json::json!({
            "name": original.original_name,
            "source": original.file_path,
            "size": fetched.bytes.len(),
            "sha256": fetched.sha256,
            "page_count": document.page_count(),
            "depth": original.depth,
            "pages": original.pages,
        });
        let question = HookQuestion {
            at: HookMoment::Before,
            kind: self.attempt.kind_name(),
            facts: facts.as_object().cloned().unwrap_or_default(),
            data: None,
        };
        self.hooks = hooks::ask_hooks(self.attempt, question).await?;
        if let Some(kind) = self.hooks.kind() {
            self.attempt.hook_kind.get_or_init(|| kind.to_owned());
        }
        Ok((fetched, document))
    }

    /// Asks the hooks about a result, and writes the effects of all answers into it.
    async fn ask_after(&mut self, record: &mut IngestionResult) -> Result<(), StepError> {
        let facts = serde_json::json!({
            "status": record.reason.map_or(IngestionStatus::Completed, OutcomeReason::status),
            "reason": record.reason,
            "reader": record.reader,
            "review_reasons": record.review_reasons,
            "sha256": record.sha256,
        });
        let question = HookQuestion {
            at: HookMoment::After,
            kind: record.kind.as_deref(),
            facts: facts.as_object().cloned().unwrap_or_default(),
            data: record.structured_data.as_ref(),
        };
        let later = hooks::ask_hooks(self.attempt, question).await?;
        let mut effects = std::mem::take(&mut self.hooks);
        effects.extend(later);
        effects.note(record);
        Ok(())
    }

    /// The first two steps.
    async fn transcribe(&mut self) -> Result<Arc<Transcript>, StepError> {
        let named = kind::named_kind(self.attempt)?;
        let (fetched, document) = self.open_original(false).await?;
        let (transcribed, stored) = self.read_pages(&named, fetched, document).await?;
        self.attempt.save_transcription(&stored).await?;
        Ok(transcribed.transcript)
    }

    /// Stores the documents found in an open original, and looks for an e-invoice in it.
    async fn scan_original(
        &mut self,
        named: &Arc<Kind>,
        fetched: FetchedDocument,
        mut document: OpenDocument,
    ) -> Result<ScannedOriginal, StepError> {
        let services = self.attempt.services();
        let sha256 = fetched.sha256.clone();
        // The files attached to a file of several documents are its own children, not those of its parts.
        let mut children = Vec::new();
        if self.attempt.claimed.document.pages.is_none() {
            let stored = children::store_children(self.attempt, &document, &sha256);
            let stored = Box::pin(stored).await?;
            (children, self.leaves_children_out) = (stored.children, stored.are_left_out);
        }
        let scan = einvoice::scan_einvoice(services, &mut document, &sha256, named);
        let scan = Box::pin(scan).await?;
        Ok(ScannedOriginal { fetched, document, sha256, scan, children })
    }

    /// Fetches the original and opens it; `scan_einvoice`: searches it for an e-invoice.
    async fn open_original(
        &mut self,
        scan_einvoice: bool,
    ) -> Result<(FetchedDocument, OpenDocument), StepError> {
        let AttemptContext { context, claimed, .. } = self.attempt;
        let services = self.attempt.services();
        self.enter(IngestionStage::Fetch)?;
        let (documents, ledger) = (context.documents.as_ref(), context.ledger.as_ref());
        let (limits, budget) = (&services.config.limits, &services.budget);
        let mut wanted = claimed.document.clone();
        let mut versions = 0;
        let fetched = loop {
            match fetch::fetch_document(documents, ledger, &wanted, limits, budget).await {
                Err(error) if error.is_superseded() && versions == MAX_VERSIONS => {
                    let text = "the object was replaced repeatedly";
                    return Err(Error::transient(text).into());
                }
                Err(error) if error.is_superseded() => {
                    versions += 1;
                    wanted.etag = Some(self.adopt_version().await?);
                }
                fetched => break fetched?,
            }
        };

        self.enter(IngestionStage::Transcribe)?;
        let document = self.attempt.open_document(fetched.bytes.clone(), scan_einvoice).await?;
        Ok((fetched, document))
    }

    /// The object has another version than the row names. Takes the current one, unless another
    /// ingestion of the document reads it: then this one ends.
    async fn adopt_version(&self) -> Result<String, StepError> {
        let AttemptContext { context, claimed, claim, .. } = self.attempt;
        let there = context.documents.head(&claimed.document.file_path).await?;
        let Some(there) = there else { return Err(fetch::missing_error().into()) };
        let etag = plain_etag(&there.etag.0);
        match context.ledger.adopt_version(claim.id, claim.token, etag).await? {
            VersionOutcome::Adopted => Ok(etag.to_owned()),
            VersionOutcome::SupersededBy(successor) => {
                let detail = format!("ingestion {successor} reads the newer version of the object");
                Err(StepError::rejected(OutcomeReason::Superseded, detail))
            }
            VersionOutcome::Lost => Err(StepError::claim_lost()),
        }
    }

    /// Takes the data of an e-invoice, and has the gate judge it.
    async fn judge_einvoice(
        &mut self,
        parsed: ParsedEinvoice,
        named: &Arc<Kind>,
        fetched: FetchedDocument,
        note: EinvoiceState,
    ) -> Result<(Arc<Transcript>, EscalationOutcome), StepError> {
        let mut doubts = parsed.doubts();
        self.einvoice_reference = parsed.reference();
        let has_pages = matches!(note, EinvoiceState::Attached { .. });
        let read = self.read_einvoice(parsed, named, &fetched, has_pages);
        let (transcript, classified, extraction) = Box::pin(read).await?;
        let beside = has_pages.then_some(&transcript);
        let services = self.attempt.services();
        let own = self.attempt.own_companies().await?;
        let filling =
            einvoice::fill_from_pages(services, extraction, &classified.kind, beside, own);
        let (extraction, filled) = Box::pin(filling).await?;
        doubts.extend(filled);
        let input = GateInput::of_text(&classified, note, &transcript);
        let mut verdict = Box::pin(self.judge(input, &extraction)).await?;
        einvoice::note_doubts(doubts, &mut verdict);
        Ok((transcript, EscalationOutcome::Judged(extraction, Box::new(verdict))))
    }

    /// Takes the data from the XML, and the text of the pages beside it.
    async fn read_einvoice(
        &mut self,
        parsed: ParsedEinvoice,
        named: &Arc<Kind>,
        fetched: &FetchedDocument,
        has_pages: bool,
    ) -> Result<(Arc<Transcript>, ClassifiedKind, Extraction), StepError> {
        let is_named = self.attempt.kind_name().is_some();
        let kinds = &self.attempt.services().kinds;
        let (kind, extraction) = parsed.to_extraction(kinds, named, is_named);
        self.text_budget = Some(parsed.text_budget);
        let transcript =
            einvoice::store_transcript(self.attempt, fetched, parsed.transcript).await?;
        self.enter(IngestionStage::Extract)?;
        if !has_pages {
            return Ok((transcript, ClassifiedKind::certain(kind), extraction));
        }
        let checked = kind::check_einvoice_kind(self.attempt, &extraction, kind, &transcript);
        let classified = Box::pin(checked).await?;
        Ok((transcript, classified, extraction))
    }

    /// Reads the pages, or takes what an earlier attempt has read.
    async fn read_pages(
        &mut self,
        named: &Arc<Kind>,
        fetched: FetchedDocument,
        document: OpenDocument,
    ) -> Result<(transcribe::TranscribedDocument, StoredTranscript), StepError> {
        let attempt = self.attempt;
        // Before the document is read only its producer can name the kind.
        let is_named = attempt.kind_name().is_some() || !attempt.config().kinds.classify;
        let order = named.read_by.clone().filter(|_| is_named);
        transcribe::load_or_transcribe(attempt, order, fetched, document)
            .instrument(self.span.clone())
            .await
    }

    /// Reads the pages and classifies the kind; a model resolves ties. Several documents are parted.
    async fn read_and_classify(
        &mut self,
        named: &Arc<Kind>,
        fetched: FetchedDocument,
        document: OpenDocument,
    ) -> Result<PagesRead, StepError> {
        let (transcribed, stored) = self.read_pages(named, fetched, document).await?;
        let judged = packets::judge_pages(self.attempt, &transcribed.transcript).await?;
        let judged = match judged {
            PacketVerdict::Open(open) => {
                self.attempt.save_transcription(&stored).await?;
                let (settled, spent) =
                    packet_question::resolve_boundaries(self.attempt, &transcribed, open).await?;
                self.spent += spent;
                settled
            }
            certain => certain,
        };
        match judged {
            PacketVerdict::One(doubt) => self.several = doubt,
            PacketVerdict::Several(parts) => {
                self.attempt.save_transcription(&stored).await?;
                let positions = self.found..;
                let parts =
                    packets::store_parts(self.attempt, &transcribed, positions.zip(parts)).await?;
                return Ok(PagesRead::Several(parts, transcribed.transcript));
            }
            PacketVerdict::Open(_) => {}
        }
        // Free work runs while the reference is written; paid work does not.
        let saving = self.attempt.save_transcription(&stored);
        let resolving = kind::resolve_kind(self.attempt, named, &transcribed.transcript);
        let (saved, classified) = futures::future::join(saving, resolving).await;
        saved?;
        self.enter(IngestionStage::Extract)?;
        let (classified, spent) = kind_choice::resolve_tie(self.attempt, &transcribed, classified?)
            .instrument(self.span.clone())
            .await?;
        self.spent += spent;
        Ok(PagesRead::One(transcribed, classified))
    }

    /// Has the transcript read by as many models as it takes, or by labels and layout.
    async fn extract(
        &mut self,
        input: GateInput<'_>,
        transcribed: &transcribe::TranscribedDocument,
    ) -> Result<EscalationOutcome, StepError> {
        let services = self.attempt.services();
        let kind = &input.classified.kind;
        let rungs = services.models.for_kind(&kind.name);
        let recall = recall_supplier(self.attempt, kind, input.transcript);
        let recall = Box::pin(recall).await?;
        let Some(first) = rungs.first() else {
            let own = self.attempt.own_companies().await?;
            let extraction =
                extract::extract_by_rules(services, kind, input.transcript, recall, own).await?;
            let verdict = Box::pin(self.judge(input, &extraction)).await?;
            return Ok(EscalationOutcome::Judged(extraction, Box::new(verdict)));
        };
        let readings =
            ModelReadings::open(self.attempt, Arc::clone(kind), transcribed, first, recall);
        let readings = Box::pin(readings).await?;
        let mut step = GatedModelStep { steps: self, readings, input };
        let outcome = escalate::escalate(&rungs, &mut step).await?;
        let shown = step.readings.pictures().describe();
        self.shown = shown;
        Ok(outcome)
    }

    /// Has the gate judge an extraction.
    async fn judge(
        &mut self,
        input: GateInput<'_>,
        extraction: &Extraction,
    ) -> Result<Verdict, StepError> {
        self.enter(IngestionStage::Gate)?;
        let second = self.read_fields_again(input, extraction).await?;
        let rules = Box::pin(self.read_by_rules(input, extraction)).await?;
        let others = OtherReadings { second, rules };
        let rules = self.einvoice_rules.clone();
        let judging = verdict::judge_extraction(self.attempt, input, extraction, rules, others);
        let mut verdict = judging.await?;
        if let Some(doubt) = &self.several {
            doubt.note(&mut verdict);
        }
        if self.leaves_children_out {
            children::note_left_out(&mut verdict);
        }
        Ok(verdict)
    }

    /// The rules reader's own reading of pages that a model has read, where the kind says how certain it has
    /// to be; once a transcript. It is only a second source: where it fails, the document goes on without.
    async fn read_by_rules(
        &mut self,
        input: GateInput<'_>,
        extraction: &Extraction,
    ) -> Result<Option<Arc<Extraction>>, StepError> {
        let kind = &input.classified.kind;
        let is_weighed = kind.rules.iter().any(|it| matches!(it.check, RuleCheck::Certain { .. }));
        if extraction.reader != ExtractionMethod::Llm || !is_weighed {
            return Ok(None);
        }
        if let Some(RulesReading { transcript, read }) = &self.rules_reading
            && Arc::ptr_eq(transcript, input.transcript)
        {
            return Ok(read.as_ref().ok().map(Arc::clone));
        }
        let own = self.attempt.own_companies().await?;
        let (services, recall) = (self.attempt.services(), SupplierRecall::default());
        let read = extract::extract_by_rules(services, kind, input.transcript, recall, own).await;
        let read = read.map(Arc::new).map_err(|error| {
            tracing::warn!(%error, "fields are not compared with the rules reader: {error}");
            error.code()
        });
        let reading = read.as_ref().ok().map(Arc::clone);
        self.rules_reading = Some(RulesReading { transcript: Arc::clone(input.transcript), read });
        Ok(reading)
    }

    /// A service's reading of the fields of pages, once for all readings of ours.
    async fn read_fields_again(
        &mut self,
        input: GateInput<'_>,
        extraction: &Extraction,
    ) -> Result<Option<SecondReading>, StepError> {
        if extraction.reader == ExtractionMethod::Einvoice {
            return Ok(None);
        }
        if let Some(read) = &self.second_reading {
            return Ok(read.second.clone());
        }
        // Of no type that the futures around it would have within theirs.
        let reading = second_reading::read_fields_again(self.attempt, input.transcript).boxed();
        let read = reading.await?;
        Ok(self.second_reading.insert(read).second.clone())
    }

    /// Begins the next stage if the claim is live.
    fn enter(&mut self, stage: IngestionStage) -> Result<(), StepError> {
        self.clock.enter(stage);
        // The outcome is written by the worker, which has a span for it.
        self.span =
            if stage == IngestionStage::Record { Span::none() } else { spans::step_span(stage) };
        self.attempt.claim.enter(stage);
        if self.attempt.claim.is_lost() { Err(StepError::claim_lost()) } else { Ok(()) }
    }

    /// Ends the current stage, and names it if the run failed there.
    fn finish<T>(mut self, outcome: Result<T, StepError>) -> Result<T, StageFailure> {
        if let Err(error) = &outcome {
            spans::record_failure(&self.span, error.code());
        }
        self.clock.stop();
        outcome.map_err(|error| StageFailure { stage: self.clock.stage(), error })
    }
}

/// One model's reading and the gate's word on it.
struct GatedModelStep<'c, 'a> {
    steps: &'c mut PipelineRun<'a>,
    readings: ModelReadings<'c>,
    input: GateInput<'c>,
}

#[async_trait]
impl EscalationStep for GatedModelStep<'_, '_> {
    async fn read(&mut self, at: usize, rung: &ChainModel) -> Result<ExtractionOutcome, StepError> {
        if self.steps.clock.stage() != IngestionStage::Extract {
            self.steps.enter(IngestionStage::Extract)?;
        }
        let span = self.steps.span.clone();
        self.readings.read_with_model(at, rung).instrument(span).await
    }

    fn may_read_again(&self) -> bool {
        self.steps.attempt.config().llm.ask_again
    }

    async fn read_again(
        &mut self,
        at: usize,
        rung: &ChainModel,
        faults: ReadingFaults,
    ) -> Result<ExtractionOutcome, StepError> {
        self.readings.faults = faults;
        self.read(at, rung).await
    }

    async fn judge(&mut self, extraction: &Extraction) -> Result<Verdict, StepError> {
        let pictures = self.readings.pictures();
        let (seen, pictures_shown) = (pictures.seen_transcript().await?, pictures.is_shown());
        let transcript = seen.as_ref().unwrap_or(self.input.transcript);
        let input = GateInput { transcript, pictures_shown, ..self.input };
        self.steps.judge(input, extraction).await
    }
}
