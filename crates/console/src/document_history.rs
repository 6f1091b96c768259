//! The history of a document's values: the reader or person that set each, with the value before, and
//! all decisions.

use maud::{Markup, html};
use serde_json::Value;

use super::document_data::{DataView, entry_label};
use super::failure::ConsoleFailure;
use super::layout::{foreign_name, moment};
use super::review_form::label_of;
use super::state::ConsoleState;
use docmill_gate::kinds::Kind;
use docmill_operations::inspect::{self, FieldChange, IngestionRow};
use docmill_operations::review::{DocumentRevision, ReviewCase};

/// Changes that are shown.
const MAX_SHOWN_CHANGES: u32 = 200;

/// The section of the page.
///
/// # Errors
/// No answer from Postgres.
pub(super) async fn history_section(
    state: &ConsoleState,
    row: &IngestionRow,
    case: &ReviewCase,
) -> Result<Markup, ConsoleFailure> {
    let kind = state.kinds().for_name(row.kind.as_deref()).map(|kind| &**kind);
    let (db, limit) = (state.database(), MAX_SHOWN_CHANGES + 1);
    let mut changes = inspect::list_field_changes(db, row.document_id, limit).await?;
    let is_cut = changes.len() > usize::try_from(MAX_SHOWN_CHANGES).unwrap_or(usize::MAX);
    changes.truncate(usize::try_from(MAX_SHOWN_CHANGES).unwrap_or(usize::MAX));
    sort_by_field(kind, &mut changes);
    Ok(html! {
        @if row.structured_data.is_some() || !changes.is_empty() || !case.revisions.is_empty() {
            h2 id="history" { "History" }
            (first_reading(row))
            @if !changes.is_empty() { (changes_table(DataView::of_kind(kind), &changes)) }
            @if is_cut { p.hint { "The newest " (MAX_SHOWN_CHANGES) " changes." } }
            (decisions_list(case))
        }
    })
}

/// The reader of this ingestion, which set all values but those that were changed.
fn first_reading(row: &IngestionRow) -> Markup {
    html! {
        @if let (Some(at), Some(_)) = (row.completed_at, &row.structured_data) {
            p { "Read by " (setter(row.reader.as_deref().unwrap_or_default(), row.extraction_model.as_deref()))
                " at " (moment(at)) " (UTC): every value that is not listed here." }
        }
    }
}

fn setter(who: &str, model: Option<&str>) -> Markup {
    html! { (foreign_name(who)) @if let Some(model) = model { " (" (foreign_name(model)) ")" } }
}

/// The fields in the order of the kind, each from its first change to its last.
fn sort_by_field(kind: Option<&Kind>, changes: &mut [FieldChange]) {
    let order: Vec<&str> = kind.into_iter().flat_map(Kind::fields).map(|(name, _)| name).collect();
    changes.sort_by_key(|change| {
        let place = order.iter().position(|name| *name == change.field).unwrap_or(order.len());
        (place, change.field.clone(), change.entry, change.part.clone(), change.changed_at)
    });
}

fn changes_table(view: DataView<'_>, changes: &[FieldChange]) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            thead { tr { th { "Field" } th { "Before" } th { "After" } th { "Set by" } th { "When (UTC)" } } }
            tbody { @for change in changes { tr {
                td { (change_label(change)) }
                td { (changed_value(view, change, change.before.as_ref())) }
                td { (changed_value(view, change, change.after.as_ref())) }
                td { (setter(&change.set_by, change.model.as_deref())) ", " (change.cause)
                    @if change.awaits_second { " (the first of two)" } }
                td { (moment(change.changed_at)) }
            } } }
        } }
    }
}

fn change_label(change: &FieldChange) -> String {
    let entry = change.entry.and_then(|entry| usize::try_from(entry).ok());
    entry_label(&change.field, entry, change.part.as_deref())
}

fn changed_value(view: DataView<'_>, change: &FieldChange, value: Option<&Value>) -> Markup {
    match &change.part {
        Some(part) => {
            view.value(&format!("{}.{part}", change.field), value.unwrap_or(&Value::Null))
        }
        None => view.value(&change.field, value.unwrap_or(&Value::Null)),
    }
}

fn changed_labels(revision: &DocumentRevision) -> String {
    let labels = revision.changed_fields.iter().map(|field| label_of(field));
    labels.collect::<Vec<_>>().join(", ")
}

/// All decisions about a document, oldest first.
pub(super) fn decisions_list(case: &ReviewCase) -> Markup {
    html! {
        @if !case.revisions.is_empty() {
            h2 { "Earlier decisions" }
            ul { @for last in &case.revisions { li {
                (moment(last.decided_at)) ": " (last.decision) " by " (foreign_name(&last.reviewer)) " "
                @if let Some(first) = &last.first_by { "after " (foreign_name(first)) " " }
                @if last.awaits_second { "(the first of two) " }
                @if !last.changed_fields.is_empty() { span.hint { "(" (changed_labels(last)) ") " } }
                (foreign_name(&last.why))
            } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;
    use time::OffsetDateTime;

    use super::*;

    fn change(second: i64, field: &str, entry: Option<i64>, part: Option<&str>) -> FieldChange {
        FieldChange {
            changed_at: OffsetDateTime::from_unix_timestamp(second).unwrap(),
            set_by: "web:ann".to_owned(),
            model: None,
            cause: "corrected".to_owned(),
            awaits_second: false,
            field: field.to_owned(),
            entry,
            part: part.map(str::to_owned),
            before: None,
            after: Some(12.into()),
        }
    }

    #[test]
    fn changes_are_told_by_field_in_the_kinds_order_and_each_field_from_its_first_to_its_last() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("invoice").map(|it| &**it);
        let mut changes = [
            change(9, "total", None, None),
            change(5, "own_field", None, None),
            change(5, "line_items", Some(10), Some("amount")),
            change(5, "line_items", Some(2), Some("unit_price")),
            change(3, "total", None, None),
            change(1, "supplier_vat_id", None, None),
        ];
        sort_by_field(kind, &mut changes);
        let told: Vec<String> = changes
            .iter()
            .map(|it| format!("{} {}", it.changed_at.unix_timestamp(), change_label(it)))
            .collect();
        let expected = [
            "1 Supplier VAT ID",
            "5 Line items 2: Unit price",
            "5 Line items 10: Amount",
            "3 Total",
            "9 Total",
            "5 Own field",
        ];
        assert_eq!(told, expected);
        let table = changes_table(DataView::of_kind(kind), &changes).into_string();
        assert!(table.contains("12.00") && table.contains("–"), "{table}");
    }
}
