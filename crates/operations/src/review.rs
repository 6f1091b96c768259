//! Decisions of reviewers: accept the data, correct it, or reject the document.
//!
//! Corrected data fits the schema of the kind. The gate's rules are not applied: they are the
//! reason why a person was asked.

mod export;
mod four_eyes;
mod typed_data;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

pub use crate::suppliers::KnownAccount;
pub use export::{TruthExport, TruthReport, export_truth};
pub use typed_data::check_typed_data;

pub use docmill_ledger::db::reviews::counts::{
    MAX_COUNTED, QueuePlace, ReviewCounts, count_reviews, find_place, list_reasons,
};
pub use docmill_ledger::db::reviews::decisions::{
    DecisionEffort, MAX_DECISION_KEYS, MAX_DECISION_SECONDS, find_undoable,
};
pub use docmill_ledger::db::reviews::drafts::{
    MAX_DRAFT_BYTES, ReviewDraft, discard_draft, find_draft, save_draft, set_aside,
};
pub use docmill_ledger::db::reviews::leases::{
    LockRequest, ReviewHold, claim_review, find_free_review, release_review,
};
pub use docmill_ledger::db::reviews::similar::{SimilarDocument, SimilarityKeys, find_similar};
pub use docmill_ledger::db::reviews::{
    DocumentRevision, PendingDecision, ReviewCase, ReviewDecision, ReviewFilter, ReviewOrder,
    ReviewPart, ReviewRow, list_reviews,
};

use crate::inspect;
use crate::printed_value::{PrintedValueError, read_date, read_number};
use crate::suppliers::{self, SupplierData};
use docmill_core::config::ReviewConfig;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{IngestionId, PageRange};
use docmill_extract::schema::find_data_violations;
use docmill_gate::kinds::{FieldRole, FieldType, Kind, KindSet};
use docmill_ledger::NewChild;
use docmill_ledger::db::Db;
use docmill_ledger::db::operators::AuditNote;
use docmill_ledger::db::reviews;
use docmill_ledger::db::reviews::decisions::{self, DecisionDraft, DecisionEnd, UndoEnd};
use docmill_pipeline::supplier_memory::lesson_of;

/// Bytes of the data of a decision, as JSON; data that was read and is larger can be kept.
const MAX_DECISION_BYTES: usize = 1 << 20;

/// Positions of the documents that a reviewer cuts a file into begin here, behind those of all that can be
/// found in a file.
const CUT_POSITION: u32 = 100_000;

/// Which data a reviewer accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AcceptedData {
    /// The pending decision of a first person, if there is one; else the document's data; else the
    /// data of its newest ingestion.
    #[default]
    Document,
    /// The data of its newest ingestion.
    Newest,
}

/// The corrected data.
#[derive(Debug, Clone, PartialEq)]
pub enum DataCorrection {
    /// The whole data.
    Whole(Value),
    /// These fields, in the form in which a person types them (empty for null); the others stay.
    Fields(BTreeMap<String, String>),
}

/// The reviewer, and the rules for decisions.
#[derive(Debug, Clone)]
pub struct DecidingReviewer<'a> {
    /// The reviewer, and why.
    pub by: AuditNote,
    /// The settings for decisions.
    pub config: &'a ReviewConfig,
    /// The kinds of the documents.
    pub kinds: &'a KindSet,
    /// Whether to decide even if another reviewer has the document open.
    pub take_over: bool,
    /// The effort, if the page measured it.
    pub effort: Option<DecisionEffort>,
}

impl DecidingReviewer<'_> {
    /// # Errors
    /// `Rejected` without a reason in words.
    pub(crate) fn require_reason(&self) -> Result<()> {
        match self.by.why.trim() {
            "" => Err(Error::new(Fault::Rejected, "say why it is rejected")),
            _ => Ok(()),
        }
    }
}

/// A decision that is written down.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RecordedDecision {
    /// The document decided about.
    pub document_id: Uuid,
    /// The decision.
    pub decision: ReviewDecision,
    /// The document's data now; while a second decision is pending, its data after that.
    #[schema(value_type = Value)]
    pub data: Option<Value>,
    /// Whether it takes effect only with the same decision of a second person.
    pub awaits_second: bool,
    /// Until when it can be undone; `None`: it cannot.
    #[serde(with = "time::serde::rfc3339::option")]
    pub undo_until: Option<OffsetDateTime>,
}

/// Why a decision is not recorded. Nothing is written.
#[derive(Debug, thiserror::Error)]
pub enum DecisionRefusal {
    /// The document has changed since the reviewer loaded it.
    #[error("The document has changed since you loaded it. Nothing was written: load it again.")]
    Changed,
    /// Another reviewer has the document open.
    #[error(
        "{} has the document open since {} (UTC): take it over to decide all the same",
        .0.reviewer,
        clock_time(.0.since)
    )]
    Held(ReviewHold),
    /// The reviewer made the first decision; the second needs another person.
    #[error("you made the first decision, and it needs a second person (review.four_eyes_above)")]
    SamePerson,
    /// Both decisions come from one database login on the command line.
    #[error(
        "both decisions come from the database login {0}, and it needs a second person \
         (review.four_eyes_above): decide with a login of your own, or on the pages"
    )]
    SameLogin(String),
    /// The decision is invalid, or Postgres does not answer.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl From<DecisionRefusal> for Error {
    fn from(refusal: DecisionRefusal) -> Self {
        match refusal {
            DecisionRefusal::Failed(error) => error,
            other => Self::new(Fault::Rejected, other.to_string()),
        }
    }
}

/// The document behind `id`, as a reviewer sees it.
///
/// # Errors
/// `Missing` if nothing has the id; `Rejected` if several documents have it; no answer from
/// Postgres.
pub async fn load_case(db: &Db, id: &str) -> Result<ReviewCase> {
    let ingestion = inspect::find_one(db, id).await?;
    reviews::load_review_case(db, ingestion)
        .await?
        .ok_or_else(|| Error::new(Fault::Missing, "the document was erased meanwhile"))
}

/// The document behind `id`, if it is still the version that the reviewer saw; any, if none is named.
///
/// # Errors
/// `Rejected` if it has changed since; as [`load_case`].
pub async fn load_seen_case(db: &Db, id: &str, seen: Option<OffsetDateTime>) -> Result<ReviewCase> {
    let case = load_case(db, id).await?;
    if seen.is_some_and(|seen| seen != case.version) {
        let text = "the document has changed since that version: look again, then decide";
        return Err(Error::new(Fault::Rejected, text));
    }
    Ok(case)
}

/// The accounts that were confirmed of the supplier of a document before, with since when; none if its
/// kind or supplier is unknown.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_known_accounts(
    db: &Db,
    case: &ReviewCase,
    kinds: &KindSet,
) -> Result<Vec<KnownAccount>> {
    let (kind, data) = (kinds.for_name(case.kind.as_deref()), read_fields(case));
    let (Some(kind), Some(data)) = (kind, data) else { return Ok(Vec::new()) };
    let tenant = case.tenant.as_deref();
    let about = SupplierData { document: case.document_id, tenant, kind, data: &data };
    suppliers::find_known_accounts(db, about).await
}

/// Confirms the data of a document.
///
/// # Errors
/// `Failed` if there is no data or Postgres does not answer; the other refusals as documented
/// there.
pub async fn accept_document(
    db: &Db,
    case: &ReviewCase,
    which: AcceptedData,
    by: &DecidingReviewer<'_>,
) -> std::result::Result<RecordedDecision, DecisionRefusal> {
    let data = match which {
        AcceptedData::Document => standing_data(case),
        AcceptedData::Newest => case.ingestion_data.as_ref(),
    };
    let data = data.ok_or_else(|| {
        Error::new(Fault::Rejected, "nothing was read that could be accepted: correct or reject it")
    })?;
    let content = DecisionContent::of_data(ReviewDecision::Accepted, data.clone());
    record(db, case, content, by).await
}

/// Replaces the data of a document, or fields of it.
///
/// # Errors
/// `Rejected` if the data does not fit the schema of the document's kind (each place is named,
/// never a value), and as an acceptance is; `Misconfigured` if its kind is unknown; no
/// answer from Postgres.
pub async fn correct_document(
    db: &Db,
    case: &ReviewCase,
    correction: DataCorrection,
    by: &DecidingReviewer<'_>,
) -> std::result::Result<RecordedDecision, DecisionRefusal> {
    let kind = by.kinds.for_name(case.kind.as_deref()).ok_or_else(|| {
        let name = case.kind.as_deref().unwrap_or_default();
        Error::new(Fault::Misconfigured, format!("no kind `{name}` among those of kinds.path"))
    })?;
    let data = match correction {
        DataCorrection::Whole(data) => data,
        DataCorrection::Fields(fields) => Value::Object(apply_fields(kind, case, &fields)?),
    };
    let violations = find_data_violations(kind, &data)?;
    if !violations.is_empty() {
        let lines = violations.iter().map(|it| format!("  {}: {}", it.path, it.demand));
        let lines: Vec<String> = lines.collect();
        let text = format!("the data does not fit the kind {}:\n{}", kind.name, lines.join("\n"));
        return Err(Error::new(Fault::Rejected, text).into());
    }
    record(db, case, DecisionContent::of_data(ReviewDecision::Corrected, data), by).await
}

/// The data of a document with these fields as a person types them.
///
/// # Errors
/// `Rejected` if the kind has no such field, or a value is not of its type.
pub fn apply_fields(
    kind: &Kind,
    case: &ReviewCase,
    fields: &BTreeMap<String, String>,
) -> Result<Map<String, Value>> {
    let mut data = read_fields(case)
        .unwrap_or_else(|| kind.fields().map(|(name, _)| (name.to_owned(), Value::Null)).collect());
    for (name, text) in fields {
        data.insert(name.clone(), parse_typed_value(kind, name, text)?);
    }
    Ok(data)
}

/// A value as it was typed, by the type that the kind's schema gives its field.
fn parse_typed_value(kind: &Kind, name: &str, text: &str) -> Result<Value> {
    let text = text.trim();
    let Some((_, field_type)) = kind.fields().find(|(field, _)| *field == name) else {
        let names: Vec<&str> = kind.fields().map(|(field, _)| field).collect();
        let text = format!("kind {} has no field `{name}`, only {}", kind.name, names.join(", "));
        return Err(Error::new(Fault::Rejected, text));
    };
    parse_as_type(field_type, name, text)
}

/// A cell of a list's item as it was typed, by the type that the kind's schema gives it.
///
/// # Errors
/// `Rejected` if the items of that list have no such field, or it is not of its type.
pub fn parse_typed_cell(kind: &Kind, list: &str, field: &str, text: &str) -> Result<Value> {
    let name = format!("{list}.{field}");
    match kind.item_types(list).find(|(known, _)| *known == field) {
        Some((_, field_type)) => parse_as_type(field_type, &name, text.trim()),
        None => Err(Error::new(Fault::Rejected, format!("there is no field `{name}`"))),
    }
}

/// The value of a typed text, trimmed; empty is null.
fn parse_as_type(field_type: FieldType, name: &str, text: &str) -> Result<Value> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let (value, expected) = match field_type {
        FieldType::Text => return Ok(Value::String(text.to_owned())),
        FieldType::Date => (read_date(text), "a date, e.g. 2026-11-28"),
        FieldType::Number => (read_number(text), "a number, e.g. 120.50"),
        FieldType::Boolean => (read_json(text, Value::is_boolean), "true or false"),
        FieldType::List => (read_json(text, Value::is_array), "a JSON array"),
        FieldType::Object => (read_json(text, Value::is_object), "a JSON object"),
    };
    value.map_err(|error| {
        let text = match error {
            PrintedValueError::Unreadable => format!("the value of `{name}` is not {expected}"),
            PrintedValueError::Ambiguous(how) => {
                format!("the value of `{name}` can be read in two ways: {how}")
            }
        };
        Error::new(Fault::Rejected, text)
    })
}

fn read_json(
    text: &str,
    is_wanted: fn(&Value) -> bool,
) -> std::result::Result<Value, PrintedValueError> {
    let value = serde_json::from_str(text).ok().filter(is_wanted);
    value.ok_or(PrintedValueError::Unreadable)
}

/// The best known data: a pending decision, else the document's data, else that of its newest
/// ingestion.
fn standing_data(case: &ReviewCase) -> Option<&Value> {
    let pending = case.pending.as_ref().map(|pending| &pending.data);
    pending.or(case.document_data.as_ref()).or(case.ingestion_data.as_ref())
}

/// The fields that a correction of single ones starts from: those of a pending decision, else of
/// the document, else of its newest ingestion; `None` if there are none.
pub fn read_fields(case: &ReviewCase) -> Option<Map<String, Value>> {
    standing_data(case)?.as_object().cloned()
}

/// Rejects the document: it carries no data from now on.
///
/// # Errors
/// `Failed` without a reason in words, or if Postgres does not answer; the other refusals as
/// documented there.
pub async fn reject_document(
    db: &Db,
    case: &ReviewCase,
    by: &DecidingReviewer<'_>,
) -> std::result::Result<RecordedDecision, DecisionRefusal> {
    by.require_reason()?;
    record(db, case, DecisionContent::REJECTED, by).await
}

/// Where a file is cut.
#[derive(Debug, Clone)]
pub struct PacketCut {
    /// The pages on which the documents after the first begin, in rising order.
    pub firsts: Vec<u32>,
    /// The pages of the transcript.
    pub pages: PageRange,
    /// SHA-256 of the original, in hex, as the transcript has it.
    pub sha256: String,
}

/// Cuts a document into several: it carries no data from now on, and each part is a document of its
/// own, a child of its newest ingestion. This cannot be undone.
///
/// # Errors
/// `Failed` if the pages do not cut it or no ingestion of it has ended, or if Postgres does not answer;
/// the other refusals as documented there.
pub async fn cut_document(
    db: &Db,
    case: &ReviewCase,
    cut: &PacketCut,
    by: &DecidingReviewer<'_>,
) -> std::result::Result<RecordedDecision, DecisionRefusal> {
    let parts = cut.pages.cut_before(&cut.firsts);
    if cut.firsts.is_empty() || parts.len() != cut.firsts.len() + 1 {
        let PageRange { first, last } = cut.pages;
        let text = format!(
            "name the pages on which further documents begin, in rising order, from {} to {last}",
            first + 1
        );
        return Err(Error::new(Fault::Rejected, text).into());
    }
    let ended = case.status.as_deref().is_some_and(|status| status != "in-progress");
    let Some(parent) = case.ingestion_id.filter(|_| ended).map(IngestionId) else {
        return Err(Error::new(Fault::Rejected, "it is still worked on: nothing to cut").into());
    };
    let children: Vec<NewChild> = (CUT_POSITION..)
        .zip(parts)
        .map(|(position, pages)| NewChild {
            name: case.original_name.clone(),
            ..NewChild::of_pages(parent, &cut.sha256, position, pages, &case.file_path)
        })
        .collect();
    let content = DecisionContent { children: &children, ..DecisionContent::REJECTED };
    record(db, case, content, by).await
}

/// Undoes the newest decision about a document and restores the state before it.
///
/// # Errors
/// `Rejected` if it was another reviewer's, its time (`review.undo`) is over, the document has
/// changed since, or there is no decision; no answer from Postgres.
pub async fn undo_decision(db: &Db, document: Uuid, by: &AuditNote) -> Result<RecordedDecision> {
    let refusal = match decisions::undo_decision(db, document, by).await? {
        UndoEnd::Undone(data) => {
            return Ok(RecordedDecision {
                document_id: document,
                decision: ReviewDecision::Undone,
                data,
                awaits_second: false,
                undo_until: None,
            });
        }
        UndoEnd::Nothing => "there is no decision that could be undone".to_owned(),
        UndoEnd::Others(who) => format!(
            "the newest decision is {who}'s, who alone can undo it: decide otherwise instead"
        ),
        UndoEnd::TooLate => {
            "it is too late to undo the decision (review.undo): decide otherwise instead".to_owned()
        }
        UndoEnd::Changed => {
            "something else has happened to the document since the decision: look again".to_owned()
        }
    };
    Err(Error::new(Fault::Rejected, refusal))
}

/// Bytes of a value as JSON.
fn measure(value: &Value) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |text| text.len())
}

/// Bytes of the largest data that the document has already: it can be accepted and corrected.
fn measure_known(case: &ReviewCase) -> usize {
    let known = [standing_data(case), case.ingestion_data.as_ref()];
    known.into_iter().flatten().map(measure).max().unwrap_or_default()
}

/// The decision.
struct DecisionContent<'a> {
    decision: ReviewDecision,
    data: Option<Value>,
    /// The documents that the file is cut into.
    children: &'a [NewChild],
}

impl DecisionContent<'_> {
    const REJECTED: Self = Self { decision: ReviewDecision::Rejected, data: None, children: &[] };

    fn of_data(decision: ReviewDecision, data: Value) -> Self {
        Self { decision, data: Some(data), children: &[] }
    }
}

async fn record(
    db: &Db,
    case: &ReviewCase,
    content: DecisionContent<'_>,
    by: &DecidingReviewer<'_>,
) -> std::result::Result<RecordedDecision, DecisionRefusal> {
    let DecisionContent { decision, data, children } = content;
    if data.as_ref().is_some_and(|data| measure(data) > MAX_DECISION_BYTES.max(measure_known(case)))
    {
        let text = format!("the data is larger than {} KiB as JSON", MAX_DECISION_BYTES >> 10);
        return Err(Error::new(Fault::Rejected, text).into());
    }
    let pending = case.pending.as_ref().map(|pending| &pending.data);
    let about = [case.ingestion_data.as_ref(), case.document_data.as_ref(), pending, data.as_ref()];
    let rejects = decision == ReviewDecision::Rejected;
    let kind = by.kinds.for_name(case.kind.as_deref());
    let currency =
        kind.map_or(FieldRole::Currency.name(), |kind| kind.field_of(FieldRole::Currency));
    let tenant = case.tenant.as_deref();
    let fields = data.as_ref().and_then(Value::as_object).filter(|_| !rejects);
    let named = kind.zip(fields);
    let has_news = match named.filter(|_| !by.config.four_eyes_above.is_empty()) {
        Some((kind, data)) => {
            let about = SupplierData { document: case.document_id, tenant, kind, data };
            suppliers::has_new_account(db, about).await?
        }
        None => false,
    };
    let above = four_eyes::needs_second(by.config, currency, &about);
    let draft = DecisionDraft {
        decision,
        data: data.as_ref(),
        needs_second: !rejects && (above || has_news),
        lesson: named.and_then(|(kind, data)| lesson_of(kind, tenant, data)),
        take_over: by.take_over,
        effort: by.effort,
        // Documents that others may be working on by then are not taken back.
        undo: if children.is_empty() { by.config.undo } else { Duration::ZERO },
        children,
    };
    match decisions::record_decision(db, case, &draft, &by.by).await? {
        DecisionEnd::Recorded(written) => Ok(RecordedDecision {
            document_id: case.document_id,
            decision,
            awaits_second: written.awaits_second,
            undo_until: written.undo_until,
            data,
        }),
        DecisionEnd::Changed => Err(DecisionRefusal::Changed),
        DecisionEnd::Held(holder) => Err(DecisionRefusal::Held(holder)),
        DecisionEnd::SamePerson => Err(DecisionRefusal::SamePerson),
        DecisionEnd::SameLogin(login) => Err(DecisionRefusal::SameLogin(login)),
    }
}

/// Hours and minutes, in UTC.
pub fn clock_time(at: OffsetDateTime) -> String {
    let at = at.to_offset(time::UtcOffset::UTC);
    format!("{:02}:{:02}", at.hour(), at.minute())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use docmill_core::config::KindsConfig;

    #[test]
    fn a_typed_value_becomes_what_the_kinds_schema_says_or_is_refused_without_being_repeated() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let invoice = kinds.get("invoice").unwrap();
        for (field, text, expected) in [
            ("total", "120.50", json!(120.5)),
            ("total", "", json!(null)),
            ("invoice_number", "2024", json!("2024")),
            ("invoice_number", " 00123 ", json!("00123")),
            ("invoice_date", "2026-11-22", json!("2026-11-22")),
            ("invoice_date", "05.03.2018", json!("2018-03-05")),
            ("total", "1.700,00", json!(1700)),
            ("total", "1,700.00", json!(1700)),
            ("line_items", "[]", json!([])),
        ] {
            let value = parse_typed_value(invoice, field, text).unwrap();
            assert_eq!(value, expected, "{field}={text}");
        }
        for (field, text, said) in [
            ("total", "SECRETMARK", "`total` is not a number"),
            ("total", "\"12\"", "`total` is not a number"),
            ("total", "1.700", "write 1700 or 1.7000"),
            ("invoice_date", "SECRETMARK", "`invoice_date` is not a date"),
            ("invoice_date", "03/05/2018", "write 2018-03-05"),
            ("line_items", "{}", "`line_items` is not a JSON array"),
            ("totla", "1", "has no field `totla`, only supplier_name"),
        ] {
            let error = parse_typed_value(invoice, field, text).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains("SECRETMARK"), "{error}");
        }
    }
}
