//! Extraction: by the models where some are configured, by the rules reader otherwise.
//!
//! Every model reply is stored and referenced before it is used, so that a crash in between costs
//! nothing twice. The replies of all models of a chain share one artefact, each under its own
//! identity. The artefact's identity is the first model's, so that extending the chain keeps it.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::artefact::ArtefactSlot;
use crate::batch_lane::BatchLane;
use crate::context::{AttemptContext, PipelineServices};
use crate::cost::LlmCallBilling;
use crate::failpoint::{FailureSeam, guard_call};
use crate::page_pictures::PagePictures;
use crate::step_error::StepError;
use crate::text_work::run_on_text;
use crate::transcribe::TranscribedDocument;
use docmill_core::fault;
use docmill_core::model::{ClaimedIngestion, Extraction, ModelUsage, OutcomeReason, Transcript};
use docmill_extract::memory::{SupplierRecall, apply_memory};
use docmill_extract::parties::{extract_from_others, release_own_values};
use docmill_extract::prompt::TranscriptView;
use docmill_extract::{
    self, CallLimits, CallRoute, ExtractError, ModelReading, ReadingFaults, RecordedReplies,
    ReplyJournal, ShownDocument,
};
use docmill_gate::kinds::Kind;
use docmill_gate::{OwnCompanies, fill_from_codes};
use docmill_llm::batch::BatchApi;
use docmill_llm::chain::ChainModel;
use docmill_llm::{Llm, Prompt};
use docmill_storage::keys;

/// A reader's result.
#[derive(Debug)]
pub(super) enum ExtractionOutcome {
    /// Complete; the gate decides whether it is acceptable.
    Whole(Extraction),
    /// The model answered, but not acceptably, and would again.
    Unfinished(UnfinishedExtraction),
}

/// A reading that was not acceptable.
#[derive(Debug)]
pub(super) struct UnfinishedExtraction {
    /// The code that goes into the row.
    pub(super) reason: OutcomeReason,
    /// The error for operators; never document content.
    pub(super) detail: String,
    /// The partial data, for the reviewer.
    pub(super) partial: Option<Box<Extraction>>,
    /// Tokens that the model has used.
    pub(super) usage: ModelUsage,
    /// The model that answered.
    pub(super) model: Option<String>,
}

/// Extracts data by labels and layout.
///
/// # Errors
/// Rejected if reading its text takes too long; the CPU pool is gone.
pub(super) async fn extract_by_rules(
    services: &PipelineServices,
    kind: &Arc<Kind>,
    transcript: &Arc<Transcript>,
    recall: SupplierRecall,
    own: Arc<OwnCompanies>,
) -> Result<Extraction, StepError> {
    let (kind, transcript) = (Arc::clone(kind), Arc::clone(transcript));
    run_on_text(services, move || {
        let read = extract_from_others(&transcript, &kind, &own);
        let read = apply_memory(read, &transcript, &kind, &recall);
        fill_from_codes(read, &transcript, &kind)
    })
    .await
}

/// The identity of a model's reading of a transcript for a tenant.
fn reading_identity(transcript: &str, llm: &dyn Llm, kind: &Kind, own: &OwnCompanies) -> String {
    let identity = docmill_extract::extraction_identity(transcript, llm, kind);
    docmill_extract::identity_with_companies(identity, own.prompt())
}

/// Lays a transcript out as it is shown to models.
///
/// # Errors
/// Rejected if that takes too long.
pub(super) async fn lay_out(
    services: &PipelineServices,
    transcript: &Arc<Transcript>,
) -> Result<Arc<TranscriptView>, StepError> {
    let transcript = Arc::clone(transcript);
    run_on_text(services, move || Arc::new(TranscriptView::of_transcript(&transcript))).await
}

/// Lays out the confirmed documents of a supplier that were known when the document came in: a later
/// attempt asks the same question, whose answer may be paid for already.
async fn lay_out_examples(
    attempt: AttemptContext<'_>,
    kind: &Arc<Kind>,
    mut recall: SupplierRecall,
) -> Result<Arc<str>, StepError> {
    recall.documents.retain(|it| it.learned_at <= attempt.claimed.created_at);
    if recall.documents.is_empty() {
        return Ok(Arc::from(""));
    }
    let (kind, room) = (Arc::clone(kind), attempt.config().limits.prompt_tokens);
    run_on_text(attempt.services(), move || {
        docmill_extract::prompt::write_remembered(&kind, &recall.documents, room).into()
    })
    .await
}

/// The readings of a document by the models of a chain.
pub(super) struct ModelReadings<'a> {
    attempt: AttemptContext<'a>,
    kind: Arc<Kind>,
    transcribed: &'a TranscribedDocument,
    /// As it is shown to models.
    shown: Arc<TranscriptView>,
    /// Confirmed documents of its supplier, shown before it; empty: none.
    examples: Arc<str>,
    /// The tenant's own companies.
    own: Arc<OwnCompanies>,
    /// The pages that are shown beside it.
    pictures: PagePictures<'a>,
    slot: ArtefactSlot<StoredModelReplies>,
    stored: StoredModelReplies,
    /// Faults of an earlier reading: named to the model that reads again.
    pub(super) faults: ReadingFaults,
}

/// The stored form: the first model's replies, and beside them those of the stronger ones.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct StoredModelReplies {
    #[serde(flatten)]
    first: Option<RecordedReplies>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stronger: Vec<RecordedReplies>,
    /// The number of the claim that stored them; none where an earlier build did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claims: Option<i64>,
}

impl<'a> ModelReadings<'a> {
    /// Loads the replies of an earlier run.
    ///
    /// # Errors
    /// Store errors; rejected if laying out its text takes too long.
    pub(super) async fn open(
        attempt: AttemptContext<'a>,
        kind: Arc<Kind>,
        transcribed: &'a TranscribedDocument,
        first: &ChainModel,
        recall: SupplierRecall,
    ) -> Result<Self, StepError> {
        let examples = lay_out_examples(attempt, &kind, recall).await?;
        let own = attempt.own_companies().await?;
        let identity = reading_identity(&transcribed.identity, first.llm.as_ref(), &kind, &own);
        let key = keys::extraction_key(attempt.claim.id);
        let (store, pool) = (attempt.artefacts(), &attempt.services().pool);
        let loading = ArtefactSlot::load(store, pool, key, identity.clone());
        let laying_out = lay_out(attempt.services(), &transcribed.transcript);
        let (slot, shown) = futures::future::join(loading, laying_out).await;
        let (mut slot, shown) = (slot?, shown?);
        let referenced = attempt.claimed.extraction.as_ref();
        let mut stored: StoredModelReplies = slot.content.take().unwrap_or_default();
        if referenced.is_none_or(|referenced| referenced.identity != identity) {
            let ClaimedIngestion { claims, attempt: attempts, suspect, .. } = *attempt.claimed;
            if stored.was_stored_since_opened(claims, attempts, suspect) {
                // Its worker died before it could refer to what it had paid for.
                attempt.save_extraction(&slot.to_ref()).await?;
            } else {
                // An operator reopened it and wants the model asked again.
                stored = StoredModelReplies::default();
            }
        }
        let pictures = PagePictures::new(attempt, Arc::clone(&transcribed.transcript));
        let faults = ReadingFaults::default();
        Ok(Self {
            attempt,
            kind,
            transcribed,
            shown,
            examples,
            own,
            pictures,
            slot,
            stored,
            faults,
        })
    }

    /// Has the transcript read by one model.
    ///
    /// # Errors
    /// Faults of store, ledger and model; a lost claim.
    pub(super) async fn read_with_model(
        &mut self,
        at: usize,
        model: &ChainModel,
    ) -> Result<ExtractionOutcome, StepError> {
        let llm = model.llm.as_ref();
        let kind = Arc::clone(&self.kind);
        let shown = Arc::clone(&self.shown);
        let identity = reading_identity(&self.transcribed.identity, llm, &kind, &self.own);
        let services = self.attempt.services();
        let faults = std::mem::take(&mut self.faults);
        let terms = services.call_terms(identity.clone(), model.max_output_tokens);
        let (examples, companies) = (Arc::clone(&self.examples), Arc::clone(self.own.prompt()));
        let has_next = at + 1 < services.models.for_kind(&kind.name).len();
        let terms = CallLimits { has_next, faults, examples, companies, ..terms };
        // State before and after the call is on the heap: jobs wait in the call.
        let pages = Box::pin(self.pictures.draw_pages(at, model, &kind)).await?;
        let shown = ShownDocument { text: shown, pages };
        let book = LlmCallBilling::new(self.attempt.spending_book(), llm);
        let batches = model.batches.as_deref();
        let taken = Vec::new();
        let mut journal = ModelReplyStore { readings: self, at, identity, book, batches, taken };
        let read =
            match docmill_extract::read_by_model(llm, &kind, shown, &terms, &mut journal).await {
                Ok(read) => read,
                Err(error) => return sort_outcome(Err(error)),
            };
        Box::pin(self.finish_reading(model, kind, read)).await
    }

    /// Rereads values taken from pictures, and joins the parts.
    async fn finish_reading(
        &mut self,
        model: &ChainModel,
        kind: Arc<Kind>,
        read: ModelReading,
    ) -> Result<ExtractionOutcome, StepError> {
        self.pictures.note_shown(model, read.shown_pages());
        self.pictures.reread_claims(read.list_claims()).await?;
        let (transcript, own) = (Arc::clone(&self.transcribed.transcript), Arc::clone(&self.own));
        sort_outcome(
            run_on_text(self.attempt.services(), move || {
                let read = read.into_extraction(&kind, &transcript)?;
                let filled = fill_from_codes(read, &transcript, &kind);
                Ok(release_own_values(filled, &kind, &own))
            })
            .await?,
        )
    }

    /// The pages that were shown, and what was read from them.
    pub(super) fn pictures(&self) -> &PagePictures<'a> {
        &self.pictures
    }

    /// Writes the replies of all models, and refers to them.
    async fn store_replies(&mut self) -> fault::Result<()> {
        let Self { attempt, slot, stored, .. } = self;
        stored.claims = Some(attempt.claimed.claims);
        slot.write(attempt.artefacts(), attempt.claim, stored.clone()).await?;
        attempt.save_extraction(&slot.to_ref()).await
    }
}

/// Sorts the endings of an extraction into those of a step.
pub(super) fn sort_outcome(
    asked: Result<Extraction, ExtractError>,
) -> Result<ExtractionOutcome, StepError> {
    match asked {
        Ok(extraction) => Ok(ExtractionOutcome::Whole(extraction)),
        Err(ExtractError::Fault(fault)) => Err(fault.into()),
        Err(ExtractError::Ended { ending, partial, usage, model }) => {
            let (reason, detail) = (ending.outcome_reason(), ending.to_string());
            Ok(ExtractionOutcome::Unfinished(UnfinishedExtraction {
                reason,
                detail,
                partial,
                usage,
                model,
            }))
        }
    }
}

/// The journal of one model: its part of the artefact that the row refers to.
struct ModelReplyStore<'r, 'a> {
    readings: &'r mut ModelReadings<'a>,
    at: usize,
    identity: String,
    book: LlmCallBilling<'r>,
    /// How the model is asked in batches, if it may be.
    batches: Option<&'r dyn BatchApi>,
    /// Answers of batches that are to be kept next.
    taken: Vec<String>,
}

impl ModelReplyStore<'_, '_> {
    fn batch_lane(&self) -> Option<BatchLane<'_>> {
        let (attempt, kind) = (self.readings.attempt, self.readings.kind.name.as_str());
        Some(BatchLane { attempt, api: self.batches?, kind, identity: &self.identity })
    }
}

#[async_trait]
impl ReplyJournal for ModelReplyStore<'_, '_> {
    async fn load_replies(&mut self) -> fault::Result<Option<RecordedReplies>> {
        let StoredModelReplies { first, stronger, .. } = &self.readings.stored;
        let mut all = first.iter().chain(stronger);
        let kept = all.find(|replies| replies.identity == self.identity).cloned();
        self.book.skip_paid(kept.as_ref());
        Ok(kept)
    }

    async fn may_call(&mut self, prompt: &Prompt) -> fault::Result<bool> {
        let may = self.book.may_call(prompt).await?;
        self.readings.attempt.claim.ensure_live().await?;
        Ok(may)
    }

    async fn route_call(&mut self, key: &str, prompt: &Prompt) -> fault::Result<CallRoute> {
        let Some(lane) = self.batch_lane() else { return Ok(CallRoute::Direct) };
        let request = lane.request_id(key);
        let route = lane.route(&request, prompt, &self.book).await?;
        if matches!(route, CallRoute::Answered(_)) {
            self.taken.push(request);
        }
        Ok(route)
    }

    async fn book_unkept(&mut self, usage: ModelUsage) -> fault::Result<()> {
        self.book.book_unkept(usage).await
    }

    async fn save_replies(&mut self, replies: &RecordedReplies) -> fault::Result<()> {
        // Paid, whether or not it can be stored; stored, whether or not that can be booked.
        let Self { readings, at, book, .. } = self;
        readings.stored.put_replies(*at, replies.clone());
        let storing = guard_call(FailureSeam::Reply, readings.store_replies());
        let (booked, stored) = futures::future::join(book.book(replies), storing).await;
        stored?;
        booked?;
        if let Some(lane) = self.batch_lane() {
            lane.use_answers(&self.taken).await?;
        }
        self.taken.clear();
        Ok(())
    }
}

impl StoredModelReplies {
    /// Whether a claim after the last reopening stored the replies, by the number of this claim and
    /// of attempts since then. A suspect's newest death is no attempt, and was after the reopening,
    /// which clears suspects. Released attempts and earlier deaths are not counted: after some of
    /// them own replies may count as older, never the other way round.
    fn was_stored_since_opened(&self, claims: i64, attempts: u32, suspect: bool) -> bool {
        let before = claims.saturating_sub(i64::from(attempts) + i64::from(suspect));
        self.claims.is_some_and(|stored| stored > before)
    }

    /// Puts a model's replies in the place of its earlier ones.
    fn put_replies(&mut self, at: usize, replies: RecordedReplies) {
        if at == 0 {
            self.first = Some(replies);
            return;
        }
        self.stronger.retain(|earlier| earlier.identity != replies.identity);
        self.stronger.push(replies);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_stored_before_chains_existed_are_found() {
        let alone = serde_json::to_value(RecordedReplies::new("first")).unwrap();
        let stored: StoredModelReplies = serde_json::from_value(alone.clone()).unwrap();
        assert_eq!(stored.first.as_ref().unwrap().identity, "first");
        assert_eq!(serde_json::to_value(&stored).unwrap(), alone);
    }

    #[test]
    fn unreferenced_replies_are_used_only_if_stored_since_the_last_reopening() {
        for (stored, claims, attempts, suspect, expected) in [
            // Its worker died before it could refer to them.
            (Some(1), 2, 2, false, true),
            (Some(3), 4, 3, false, true),
            // It died in company, which is given back.
            (Some(1), 2, 1, true, true),
            // Reopened after its third claim; this is the first attempt since.
            (Some(3), 4, 1, false, false),
            (Some(4), 5, 2, false, true),
            // One that was given back counts as a claim alone.
            (Some(1), 3, 2, false, false),
            (None, 2, 2, true, false),
        ] {
            let replies = StoredModelReplies { claims: stored, ..StoredModelReplies::default() };
            let found = replies.was_stored_since_opened(claims, attempts, suspect);
            assert_eq!(found, expected, "stored by {stored:?}, at {claims} after {attempts}");
        }
    }

    #[test]
    fn each_model_has_its_replies_once_and_a_stronger_one_takes_none_of_the_first() {
        let mut stored = StoredModelReplies::default();
        stored.put_replies(0, RecordedReplies::new("first"));
        for identity in ["second", "third", "second"] {
            stored.put_replies(1, RecordedReplies::new(identity));
        }
        let text = serde_json::to_string(&stored).unwrap();
        let back: StoredModelReplies = serde_json::from_str(&text).unwrap();
        let names: Vec<&str> = back.stronger.iter().map(|it| it.identity.as_str()).collect();
        assert_eq!(
            (back.first.unwrap().identity.as_str(), names),
            ("first", vec!["third", "second"])
        );
    }
}
