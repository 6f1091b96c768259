//! Master data beside a judged extraction: the match goes into the record, contradictions to a person.

use crate::context::AttemptContext;
use crate::step_error::StepError;
use docmill_core::model::{Extraction, MasterMatch};
use docmill_core::work_clock::wait_off_clock;
use docmill_gate::{Verdict, master_query, match_master_data};

/// The match of an extraction, its contradictions added to the verdict; `None`: the tenant has no master
/// data, or the data is of no known kind.
///
/// # Errors
/// Ledger errors.
pub(super) async fn match_extraction(
    attempt: AttemptContext<'_>,
    extraction: &Extraction,
    verdict: &mut Verdict,
) -> Result<Option<MasterMatch>, StepError> {
    let (ledger, tenant) = (attempt.context.ledger.as_ref(), attempt.claimed.tenant.as_deref());
    let Some(kind) = attempt.services().kinds.get(&extraction.kind) else { return Ok(None) };
    if !attempt.services().companies.has_master_data(ledger, tenant).await? {
        return Ok(None);
    }
    let query = master_query(&extraction.data, kind);
    let hits = wait_off_clock(ledger.find_master_data(tenant, &query)).await?;
    let (found, findings) = match_master_data(&extraction.data, kind, &hits);
    verdict.findings.extend(findings);
    Ok(Some(found))
}
