//! How the documents ended: the table at the end of `docmill dev`.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{print, submitted_ingestions};
use docmill_core::model::{DocumentId, IngestionId, OutcomeReason};
use docmill_operations::Db;
use docmill_operations::inspect::{self, IngestionRow};
use docmill_operations::submit::{Submission, SubmitStatus};

/// One file and how it ended.
#[derive(Debug, Clone, Serialize)]
pub(super) struct DocumentSummary {
    file: String,
    ingestion_id: Option<IngestionId>,
    document_id: Option<DocumentId>,
    /// As in the row; `refused` for a file that was not handed in.
    status: String,
    reason: Option<String>,
    detail: Option<String>,
    kind: Option<String>,
    reader: Option<String>,
    supplier: Value,
    number: Value,
    total: Value,
    currency: Value,
    needs_human_review: bool,
    review_reasons: Vec<String>,
}

impl DocumentSummary {
    /// Ended, and not for a technical reason.
    pub(super) fn is_success(&self) -> bool {
        let technical = self.reason.as_deref().and_then(OutcomeReason::from_code);
        let ended = matches!(self.status.as_str(), "completed" | "failed" | "cancelled");
        ended && !technical.is_some_and(OutcomeReason::is_technical)
    }

    fn from_refused(submission: &Submission) -> Self {
        let status = if submission.fate == SubmitStatus::Refused { "refused" } else { "unknown" };
        Self {
            file: submission.file.display().to_string(),
            ingestion_id: None,
            document_id: None,
            status: status.to_owned(),
            reason: None,
            detail: submission.problem.clone(),
            kind: None,
            reader: None,
            supplier: Value::Null,
            number: Value::Null,
            total: Value::Null,
            currency: Value::Null,
            needs_human_review: false,
            review_reasons: Vec::new(),
        }
    }

    fn from_row(submission: &Submission, row: &IngestionRow) -> Self {
        let data = row.structured_data.as_ref().and_then(Value::as_object);
        Self {
            file: submission.file.display().to_string(),
            ingestion_id: Some(IngestionId(row.id)),
            document_id: Some(DocumentId(row.document_id)),
            status: row.status.clone(),
            reason: row.reason.clone(),
            detail: row.detail.clone(),
            kind: row.kind.clone(),
            reader: row.reader.clone(),
            supplier: field_value(data, "supplier_name"),
            number: field_value(data, "invoice_number"),
            total: field_value(data, "total"),
            currency: field_value(data, "currency"),
            needs_human_review: row.needs_human_review,
            review_reasons: row.review_reasons.clone(),
        }
    }
}

fn field_value(data: Option<&Map<String, Value>>, name: &str) -> Value {
    data.and_then(|data| data.get(name)).cloned().unwrap_or_default()
}

/// The status of the submitted files, in their order.
pub(super) async fn load_summaries(
    db: &Db,
    submissions: &[Submission],
) -> anyhow::Result<Vec<DocumentSummary>> {
    let rows = inspect::ingestions_by_id(db, &submitted_ingestions(submissions)).await?;
    Ok(submissions
        .iter()
        .map(|submission: &Submission| {
            let row = rows.iter().find(|row| submission.ingestion_id == Some(IngestionId(row.id)));
            row.map_or_else(
                || DocumentSummary::from_refused(submission),
                |row| DocumentSummary::from_row(submission, row),
            )
        })
        .collect())
}

/// For people.
pub(super) fn format_summaries(ends: &[DocumentSummary]) -> String {
    let rows: Vec<_> = ends
        .iter()
        .map(|end| {
            let name = std::path::Path::new(&end.file).file_name().unwrap_or_default();
            let mut reasons: Vec<&str> = end.reason.iter().map(String::as_str).collect();
            reasons.extend(
                end.review_reasons
                    .iter()
                    .map(String::as_str)
                    .filter(|why| Some(*why) != end.reason.as_deref()),
            );
            if end.status == "refused" {
                reasons.extend(end.detail.as_deref());
            }
            [
                name.to_string_lossy().into_owned(),
                end.status.clone(),
                print::or_dash(end.reader.as_deref()),
                format_cell(&end.supplier),
                format_cell(&end.number),
                format_cell(&end.total),
                print::or_dash(Some(&reasons.join(", "))),
            ]
        })
        .collect();
    let header = ["file", "status", "reader", "supplier", "number", "total", "reasons"];
    print::table(header, &rows)
}

fn format_cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_technical_end_or_none_at_all_is_not_well() {
        let end = |status: &str, reason: Option<&str>| {
            let file = std::path::PathBuf::from("a.pdf");
            let fate = SubmitStatus::Submitted;
            let submission = Submission {
                file,
                fate,
                document_id: None,
                ingestion_id: None,
                status: None,
                problem: None,
            };
            let reason = reason.map(ToOwned::to_owned);
            DocumentSummary {
                status: status.to_owned(),
                reason,
                ..DocumentSummary::from_refused(&submission)
            }
        };
        for (status, reason, well) in [
            ("completed", None, true),
            ("failed", Some("corrupt"), true),
            ("failed", Some("gate_refused"), true),
            ("cancelled", Some("cancelled"), true),
            ("failed", Some("crashed"), false),
            ("failed", Some("internal"), false),
            ("in-progress", None, false),
            ("refused", None, false),
        ] {
            assert_eq!(end(status, reason).is_success(), well, "{status} {reason:?}");
        }
    }
}
