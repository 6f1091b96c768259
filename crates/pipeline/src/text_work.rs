//! CPU work on a document's text. The text is untrusted, so the work runs on the CPU threads, never
//! on those of leases and health checks, and has a time limit.

use crate::context::PipelineServices;
use crate::step_error::StepError;
use docmill_core::model::OutcomeReason;

/// Runs `work` on a core, for at most `limits.page_time` from its start.
///
/// # Errors
/// Rejected: `timeout`, if it takes longer; it goes on until it ends by itself, which bounds on the
/// text make soon. Internal: it panicked.
pub async fn run_on_text<T, F>(services: &PipelineServices, work: F) -> Result<T, StepError>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let limit = services.config.limits.page_time;
    services.pool.run_within(limit, work).await?.ok_or_else(|| {
        let limit = humantime::format_duration(limit);
        let detail = format!("work on its text took longer than {limit} (limits.page_time)");
        StepError::rejected(OutcomeReason::Timeout, detail)
    })
}
