//! Other documents of the same invoice, or with the same content, as links.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::layout::foreign_name;
use super::state::ConsoleState;
use docmill_core::model::DocumentId;
use docmill_gate::kinds::{FieldRole, Kind, RuleCheck};
use docmill_ledger::duplicate_key::{DuplicateKeys, NearKeys, PaymentFacts};
use docmill_operations::inspect::{self, DocumentQuery, DocumentRow, IngestionRow};
use docmill_operations::review::{self, SimilarityKeys};

/// Documents with the same content that are shown.
const MAX_COPIES: u32 = 10;
/// The rules that look for another document.
pub(super) const DUPLICATE_RULES: [RuleCheck; 2] = [RuleCheck::Duplicate, RuleCheck::NearDuplicate];

/// The keys by which another document of the same invoice is found.
pub(super) fn similarity_keys(kind: &Kind, data: &Map<String, Value>) -> SimilarityKeys {
    let text = |role: FieldRole| data.get(kind.field_of(role)).and_then(Value::as_str);
    let (supplier, number) = (text(FieldRole::SupplierName), text(FieldRole::DocumentNumber));
    let issued = text(FieldRole::IssueDate);
    let exact = supplier.zip(number).and_then(|(name, number)| DuplicateKeys::new(name, number));
    let total = data.get(kind.field_of(FieldRole::Total)).and_then(Value::as_number);
    let total = total.map(ToString::to_string);
    let total = total.as_deref();
    SimilarityKeys {
        exact: exact.map(|keys| keys.of_issue(issued, &kind.name)),
        near: NearKeys::new(&PaymentFacts { supplier, number, issued, total, kind: &kind.name }),
    }
}

/// The section of a document's page, if there is another document.
///
/// # Errors
/// No answer from Postgres.
pub(super) async fn similar_section(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    row: &IngestionRow,
    data: Option<&Value>,
) -> Result<Markup, ConsoleFailure> {
    let (db, document) = (state.database(), DocumentId(row.document_id));
    let kind = state.kinds().for_name(row.kind.as_deref());
    let kind = kind.filter(|it| it.rules.iter().any(|rule| DUPLICATE_RULES.contains(&rule.check)));
    let keys = kind.zip(data.and_then(Value::as_object));
    let keys = keys.map(|(kind, data)| similarity_keys(kind, data)).unwrap_or_default();
    let similar = review::find_similar(db, document, row.tenant.as_deref(), &keys).await?;
    let copies = list_copies(state, visitor, row).await?;
    Ok(html! {
        @if similar.is_some() || !copies.is_empty() {
            h2 { "Duplicates" }
            ul {
                @if let Some(other) = similar { li {
                    a href=(state.link(&format!("/ingestions/{}", other.ingestion.0))) {
                        (foreign_name(other.name.as_deref().unwrap_or("without a name"))) }
                    ": the same invoice, or nearly"
                } }
                @for copy in &copies { li {
                    a href=(state.link(&format!("/ingestions/{}", copy.id))) {
                        (foreign_name(copy.original_name.as_ref().unwrap_or(&copy.file_path))) }
                    ": the same content"
                } }
            }
        }
    })
}

/// Other documents with the content of this one, as far as the visitor sees them.
async fn list_copies(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    row: &IngestionRow,
) -> Result<Vec<DocumentRow>, ConsoleFailure> {
    let Some(sha256) = row.sha256.clone() else { return Ok(Vec::new()) };
    let tenant = visitor.tenant.clone();
    let same = DocumentQuery { sha256: Some(sha256), tenant, ..DocumentQuery::default() };
    let mut found = inspect::find_documents(state.database(), &same, MAX_COPIES, None).await?;
    found.retain(|copy| copy.id != row.document_id);
    Ok(found)
}
