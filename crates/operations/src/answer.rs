//! The answer to the sender of an e-invoice, from its outcome and a reviewer's decision.

use serde::Serialize;
use time::OffsetDateTime;

use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{IngestionId, InvoiceReference};
pub use docmill_formats::einvoice_answer::AnswerForm;
use docmill_formats::einvoice_answer::{AnswerStatus, InvoiceAnswer};
use docmill_ledger::db::Db;
use docmill_ledger::db::reports::{IngestionRow, load_einvoice_facts};

use crate::review::{DocumentRevision, ReviewCase};

/// An answer that can be sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SenderAnswer {
    /// Number of the invoice.
    pub invoice_number: String,
    /// The answer, UTF-8.
    pub xml: String,
}

/// The form of an answer, and the code of the reason for a rejection.
#[derive(Debug, Clone, Copy)]
pub struct AnswerRequest<'a> {
    /// The form.
    pub form: AnswerForm,
    /// `None`: the form's own for "other", where it has one.
    pub reason_code: Option<&'a str>,
}

/// The decision of a person that holds for the data of an ingestion.
pub fn standing_decision<'a>(
    row: &IngestionRow,
    case: &'a ReviewCase,
) -> Option<&'a DocumentRevision> {
    let last = case.revisions.last().filter(|last| !last.awaits_second)?;
    let holds = case.ingestion_id == Some(row.id) && last.decision != "undone";
    holds.then_some(last)
}

/// Writes the answer to the sender of the e-invoice that an ingestion read.
///
/// # Errors
/// `Rejected`: it has not ended, it read no invoice in UBL or CII, the invoice lacks a part that the
/// form requires, or a rejection needs a code. No answer from Postgres.
pub async fn write_answer(
    db: &Db,
    row: &IngestionRow,
    case: &ReviewCase,
    request: AnswerRequest<'_>,
) -> Result<SenderAnswer> {
    let facts = load_einvoice_facts(db, IngestionId(row.id)).await?;
    let Some(ended) = row.completed_at else {
        return Err(refusal("the ingestion has not ended yet"));
    };
    let reference = facts.reference.map(serde_json::from_value::<InvoiceReference>).transpose();
    let reference = reference.map_err(|error| {
        Error::internal("the reference of an e-invoice has another form").with_source(error)
    })?;
    let invoice = reference.ok_or_else(|| {
        refusal("it read no e-invoice in UBL or CII, so there is no address to answer to")
    })?;
    let state = AnswerState::of(row.needs_human_review, ended, standing_decision(row, case));
    let answer = InvoiceAnswer {
        id: &format!("{}-{}", row.id, state.since.unix_timestamp()),
        invoice: &invoice,
        status: state.status,
        since: state.since,
        reason_code: request.reason_code,
        reason: state.reason,
    };
    let xml = answer.write(request.form).map_err(|defect| refusal(&defect.to_string()))?;
    Ok(SenderAnswer { invoice_number: invoice.number, xml })
}

fn refusal(text: &str) -> Error {
    Error::new(Fault::Rejected, text.to_owned())
}

/// The state of an invoice, as its sender is told.
#[derive(Debug, PartialEq)]
struct AnswerState<'a> {
    status: AnswerStatus,
    since: OffsetDateTime,
    reason: &'a str,
}

impl<'a> AnswerState<'a> {
    /// No person's decision: it arrived, or waits for a person. A decision is passed on, a
    /// rejection with its reason.
    fn of(
        needs_review: bool,
        ended: OffsetDateTime,
        decision: Option<&'a DocumentRevision>,
    ) -> Self {
        let Some(last) = decision else {
            let status =
                if needs_review { AnswerStatus::InProcess } else { AnswerStatus::Received };
            return Self { status, since: ended, reason: "" };
        };
        if last.decision == "rejected" {
            let (status, since) = (AnswerStatus::Rejected, last.decided_at);
            return Self { status, since, reason: &last.why };
        }
        Self { status: AnswerStatus::Accepted, since: last.decided_at, reason: "" }
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn the_sender_is_told_a_decision_and_without_one_that_it_arrived_or_waits() {
        let (ended, decided_at) =
            (datetime!(2026-11-28 10:00 UTC), datetime!(2026-11-29 10:00 UTC));
        let revision = |decision: &str| DocumentRevision {
            decided_at,
            reviewer: "anna".to_owned(),
            decision: decision.to_owned(),
            why: "wrong rate".to_owned(),
            changed_fields: Vec::new(),
            first_by: None,
            awaits_second: false,
        };
        let accepted =
            AnswerState { status: AnswerStatus::Accepted, since: decided_at, reason: "" };
        for (needs_review, decision, expected) in [
            (false, None, AnswerState { status: AnswerStatus::Received, since: ended, reason: "" }),
            (true, None, AnswerState { status: AnswerStatus::InProcess, since: ended, reason: "" }),
            (true, Some("accepted"), AnswerState { ..accepted }),
            (false, Some("corrected"), AnswerState { ..accepted }),
            (
                true,
                Some("rejected"),
                AnswerState {
                    status: AnswerStatus::Rejected,
                    since: decided_at,
                    reason: "wrong rate",
                },
            ),
        ] {
            let revision = decision.map(revision);
            assert_eq!(AnswerState::of(needs_review, ended, revision.as_ref()), expected);
        }
    }
}
