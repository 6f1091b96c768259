//! A whole reading by a model, as the pipeline does it in steps.

use std::sync::Arc;

use docmill_core::model::{Extraction, Transcript};
use docmill_extract::prompt::TranscriptView;
use docmill_extract::{self, CallLimits, ExtractError, ReplyJournal, ShownDocument};
use docmill_gate::kinds::Kind;
use docmill_llm::Llm;

/// Lays the transcript out, has it read, and joins the parts.
pub(crate) async fn extract_by_model(
    llm: &dyn Llm,
    kind: &Kind,
    transcript: &Transcript,
    terms: &CallLimits,
    journal: &mut dyn ReplyJournal,
) -> Result<Extraction, ExtractError> {
    let text = Arc::new(TranscriptView::of_transcript(transcript));
    let shown = ShownDocument { text, pages: Vec::new() };
    let read = docmill_extract::read_by_model(llm, kind, shown, terms, journal).await?;
    read.into_extraction(kind, transcript)
}
