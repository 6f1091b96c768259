//! Read-only queries: the ingestions behind an id, their state, lists and costs.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

pub use docmill_ledger::db::reports::audit::{
    AuditCheck, AuditDefect, AuditEntry, AuditFilter, AuditFinding, AuditPage, check_audit,
    list_entries as list_audit,
};
pub use docmill_ledger::db::reports::costs::{
    AttemptCost, CostGrouping, CostSum, list_attempt_costs, sum_costs,
};
pub use docmill_ledger::db::reports::families::FamilyMember;
pub use docmill_ledger::db::reports::field_history::{FieldChange, list_field_changes};
pub use docmill_ledger::db::reports::message_record::{
    MessageRecord, OperatorActionRow, list_operator_actions, load_message_record,
};
pub use docmill_ledger::db::reports::row_security::require_all_rows;
pub use docmill_ledger::db::reports::search::{
    DocumentKeys, DocumentQuery, DocumentRow, find_by_keys, find_documents,
};
pub use docmill_ledger::db::reports::{
    AttemptRow, ExportedDocument, InFlightIngestion, IngestionFilter, IngestionRow,
    find_newest_ingestions, find_waiting, ingestions_by_id, list_exported_documents,
    list_ingestion_ids, list_ingestions, load_einvoice_facts, load_grounding,
};

use crate::printed_value::read_number;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{IngestionId, IngestionStatus};
use docmill_ledger::db::Db;
use docmill_ledger::db::reports;
use docmill_ledger::db::reports::families::load_family;
use docmill_ledger::db::reports::search::find_piece_end;

/// A document has rarely more ingestions; an id that means more is not precise enough to act on.
const MAX_ROWS: u32 = 100;

/// A century: what is longer ago than calendars reach could not be reckoned with.
const MAX_SINCE_AGE: Duration = Duration::from_secs(100 * 365 * 86_400);

/// How far back to look: a length of time such as `2h` or `3days`.
///
/// # Errors
/// The text is no length of time, zero, or longer than a century; the error names the format.
pub fn parse_look_back(text: &str) -> std::result::Result<Duration, String> {
    humantime::parse_duration(text)
        .ok()
        .filter(|length| !length.is_zero() && *length <= MAX_SINCE_AGE)
        .ok_or_else(|| "it is a time such as 2h or 3days, a century at most".to_owned())
}

/// Documents that a search looks through in one statement: some tens of milliseconds.
const SEARCH_PIECE_ROWS: u32 = 10_000;

/// Hits of a word search, and how far back it went.
#[derive(Debug, Clone, Default)]
pub struct FoundDocuments {
    /// The newest that pass.
    pub rows: Vec<DocumentRow>,
    /// The document after which the search continues; `None`: all were looked through.
    pub next: Option<Uuid>,
    /// Looking ended at documents of this time although the page is not full.
    pub looked_back_to: Option<OffsetDateTime>,
}

/// Up to `limit` matching documents, newest first, after `after`. Searches piece by piece and ends
/// at the first piece after `patience`, so that a request never waits for the whole table.
///
/// # Errors
/// No answer from Postgres.
pub async fn look_for_documents(
    db: &Db,
    wanted: &DocumentQuery,
    limit: u32,
    after: Option<Uuid>,
    patience: Duration,
) -> Result<FoundDocuments> {
    let begun = Instant::now();
    let (mut found, mut from) = (FoundDocuments::default(), after);
    loop {
        let end = find_piece_end(db, wanted.tenant.as_deref(), from, SEARCH_PIECE_ROWS).await?;
        let piece = DocumentQuery { until: end.map(|end| end.last), ..wanted.clone() };
        let missing = limit.saturating_sub(u32::try_from(found.rows.len()).unwrap_or(limit));
        found.rows.extend(find_documents(db, &piece, missing, from).await?);
        if found.rows.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            found.next = found.rows.last().map(|row| row.id);
            return Ok(found);
        }
        let Some(end) = end else { return Ok(found) };
        if begun.elapsed() >= patience {
            found.next = Some(end.last);
            found.looked_back_to = Some(end.registered);
            return Ok(found);
        }
        from = Some(end.last);
    }
}

/// Characters of a supplier's name by which documents are found: fewer are the beginning of too many.
const MIN_SUPPLIER_CHARS: usize = 3;
/// Characters of an amount.
const MAX_AMOUNT_CHARS: usize = 30;
/// Characters of a supplier's name that are compared.
const MAX_KEY_CHARS: usize = 100;

/// The keys that a text may be: a number, a path, the beginning of a supplier's name, or an amount as
/// documents print it, if it has one reading.
pub fn read_keys(text: &str, tenant: Option<String>) -> DocumentKeys {
    // No document prints an exponent; JSON, by which an exact number is read, has them.
    let has_exponent = text.contains(['e', 'E'])
        && text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let number = if has_exponent { None } else { read_number(text).ok() };
    let total = number.map(|number| number.to_string()).filter(|total| is_plain_amount(total));
    let is_name = text.chars().count() >= MIN_SUPPLIER_CHARS;
    let supplier = is_name.then(|| text.chars().take(MAX_KEY_CHARS).collect());
    DocumentKeys { text: text.to_owned(), supplier, total, tenant }
}

fn is_plain_amount(total: &str) -> bool {
    total.len() <= MAX_AMOUNT_CHARS
        && total.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-'))
}

/// One ingestion with its history.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct IngestionHistory {
    /// The ingestion's row, with its state.
    #[serde(flatten)]
    pub ingestion: IngestionRow,
    /// While in progress: `queued`, `leased`, `deferred`, `parked` or `orphaned`.
    pub state: Option<String>,
    /// While in progress: what it waits for, in words.
    pub explanation: Option<String>,
    /// The attempts at the ingestion, oldest first.
    pub attempts: Vec<AttemptRow>,
    /// Where on the pages its values were found: a list of field, page, box and confidence.
    #[schema(value_type = Value)]
    pub grounded: Option<Value>,
    /// Official rules that its e-invoice breaks, and the sets it was checked by.
    #[schema(value_type = Value)]
    pub einvoice_rules: Option<Value>,
    /// The document that it was found in.
    pub parent: Option<FamilyMember>,
    /// The documents that were found in it, in their order.
    pub children: Vec<FamilyMember>,
    /// How many of those, and of what was found in them, have not ended.
    pub open_children: i64,
    /// Match with the tenant's master data: `supplier` and `order`, with the evidence.
    #[schema(value_type = Value)]
    pub master_match: Option<Value>,
    /// Fields that hooks added, by their names.
    #[schema(value_type = Value)]
    pub hooks: Option<Value>,
}

impl IngestionHistory {
    /// Whether it and all that was found in its document have ended.
    pub fn has_ended(&self) -> bool {
        self.ingestion.status != IngestionStatus::InProgress.code() && self.open_children == 0
    }

    /// With the status of the whole: in progress until everything found in its document has ended.
    #[must_use]
    pub fn as_whole(mut self) -> Self {
        if !self.has_ended() {
            self.ingestion.status = IngestionStatus::InProgress.code().to_owned();
        }
        self
    }
}

/// The ingestions behind an operator's id: an ingestion id, a document id (all its ingestions,
/// newest first) or the beginning of a document's SHA-256.
///
/// # Errors
/// `Missing` if nothing has it; no answer from Postgres.
pub async fn find_ingestions(db: &Db, id: &str) -> Result<Vec<IngestionRow>> {
    let found = reports::find_ingestions(db, id, MAX_ROWS).await?;
    if found.is_empty() {
        let text = format!(
            "nothing has the id `{id}`: write the UUID of an ingestion or document, or at least \
             6 digits of a document's SHA-256; `docmill list` shows what there is"
        );
        return Err(Error::new(Fault::Missing, text));
    }
    Ok(found)
}

/// The one ingestion that an operator wants to change: of a document the newest.
///
/// # Errors
/// As [`find_ingestions`]; `Rejected` if a SHA-256 prefix means several documents.
pub async fn find_one(db: &Db, id: &str) -> Result<IngestionId> {
    let found = find_ingestions(db, id).await?;
    let documents: std::collections::BTreeSet<_> =
        found.iter().map(|row| row.document_id).collect();
    match found.first() {
        Some(newest) if documents.len() == 1 => Ok(IngestionId(newest.id)),
        _ => {
            let text = format!("`{id}` means {} documents: write more digits", documents.len());
            Err(Error::new(Fault::Rejected, text))
        }
    }
}

/// The ingestions behind `id`, newest first, with state and attempts.
///
/// # Errors
/// As [`find_ingestions`].
pub async fn load_histories(db: &Db, id: &str) -> Result<Vec<IngestionHistory>> {
    let found = find_ingestions(db, id).await?;
    let ids: Vec<_> = found.iter().map(|row| IngestionId(row.id)).collect();
    let waiting = find_waiting(db, &ids).await?;
    let mut stories = Vec::new();
    for ingestion in found {
        let waits = waiting.iter().find(|row| row.ingestion_id == ingestion.id);
        let family = load_family(db, IngestionId(ingestion.id)).await?;
        stories.push(IngestionHistory {
            state: waits.map(|row| row.state.clone()),
            explanation: waits.map(|row| row.explanation.clone()),
            attempts: reports::list_attempts(db, IngestionId(ingestion.id)).await?,
            grounded: load_grounding(db, IngestionId(ingestion.id)).await?,
            parent: family.parent,
            children: family.children,
            open_children: family.open,
            einvoice_rules: load_einvoice_facts(db, IngestionId(ingestion.id)).await?.rules,
            master_match: reports::load_master_match(db, IngestionId(ingestion.id)).await?,
            hooks: reports::load_hook_fields(db, IngestionId(ingestion.id)).await?,
            ingestion,
        });
    }
    Ok(stories)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_number_a_suppliers_beginning_and_an_amount_if_it_has_one_reading() {
        let long = "x".repeat(200);
        let begun = "x".repeat(100);
        for (text, supplier, total) in [
            ("RE-17", Some("RE-17"), None),
            ("17", None, Some("17")),
            ("1.700,00", Some("1.700,00"), Some("1700")),
            ("1,234.50", Some("1,234.50"), Some("1234.5")),
            ("-12.40", Some("-12.40"), Some("-12.4")),
            ("1.700", Some("1.700"), None),
            ("1e9", Some("1e9"), None),
            (long.as_str(), Some(begun.as_str()), None),
        ] {
            let keys = read_keys(text, None);
            let found = (keys.supplier.as_deref(), keys.total.as_deref());
            assert_eq!((keys.text.as_str(), found), (text, (supplier, total)));
        }
    }

    #[test]
    fn a_look_back_has_a_length_that_calendars_reach() {
        assert_eq!(parse_look_back("2h"), Ok(Duration::from_secs(7200)));
        for none in ["0", "0s", "0h 0s", "", "2", "soon", "101years"] {
            assert!(parse_look_back(none).is_err(), "{none}");
        }
    }
}
