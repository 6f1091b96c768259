//! Resolves undecided boundaries of a packet: a model is asked about each, and its answer counts
//! only where it agrees with the evidence of the pages.

use crate::context::AttemptContext;
use crate::extract::lay_out;
use crate::packets::{PacketVerdict, verdict_of};
use crate::question_journal::QuestionJournal;
use crate::step_error::StepError;
use crate::transcribe::TranscribedDocument;
use docmill_core::config::PacketMode;
use docmill_core::model::ModelUsage;
use docmill_llm::chain::ChainModel;
use docmill_packets::PacketJudgement;
use docmill_storage::keys;

/// Maximum boundaries that a model is asked about; a file with more goes to review.
const MAX_QUESTIONS: usize = 16;

/// The model to ask about the open boundaries of a file, if the settings allow it and there is one.
fn find_model(attempt: AttemptContext<'_>, open: &[u32]) -> Option<ChainModel> {
    let config = attempt.config();
    let may_ask = config.packets.ask_on_ties && (1..=MAX_QUESTIONS).contains(&open.len());
    let kind = attempt.kind_name().unwrap_or(&config.kinds.default);
    attempt.services().models.for_kind(kind).into_iter().next().filter(|_| may_ask)
}

/// The verdict on a file with open boundaries, and the tokens of the calls about these.
///
/// # Errors
/// Faults of store, ledger and model; a lost claim.
pub(super) async fn resolve_boundaries(
    attempt: AttemptContext<'_>,
    transcribed: &TranscribedDocument,
    mut judged: PacketJudgement,
) -> Result<(PacketVerdict, ModelUsage), StepError> {
    let pages = judged.open_boundaries();
    let Some(model) = find_model(attempt, &pages) else {
        return Ok((verdict_of(PacketMode::Content, &judged), ModelUsage::default()));
    };
    let llm = model.llm.as_ref();
    let identity = docmill_extract::boundary_identity(&transcribed.identity, llm, &pages);
    let key = keys::packet_question_key(attempt.claim.id);
    let mut journal = QuestionJournal::load(attempt, llm, key, &identity).await?;
    let shown = lay_out(attempt.services(), &transcribed.transcript).await?;
    let (answers, usage) =
        docmill_extract::ask_boundaries(llm, &shown, &pages, &identity, &mut journal).await?;
    for (page, begins) in answers {
        if let Some(begins) = begins {
            judged.confirm(page, begins);
        }
    }
    Ok((verdict_of(PacketMode::Content, &judged), usage))
}
