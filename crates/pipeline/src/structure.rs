//! The blocks of a transcript, for what is made of a document beside its data.

use std::sync::Arc;

use crate::context::PipelineServices;
use crate::step_error::StepError;
use crate::text_work::run_on_text;
use docmill_core::model::Transcript;
use docmill_layout::{DocumentLayout, read_layout};

/// Finds the blocks of a transcript, on the threads for CPU work.
///
/// # Errors
/// Rejected: `timeout`, if it takes longer than `limits.page_time`. Internal: it panicked.
pub async fn find_layout(
    services: &PipelineServices,
    transcript: &Arc<Transcript>,
) -> Result<DocumentLayout, StepError> {
    let transcript = Arc::clone(transcript);
    run_on_text(services, move || read_layout(&transcript)).await
}
