//! Kinds of documents: fields and rules in words, which rules flagged, and who read.

use std::collections::{BTreeMap, HashSet};

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Html;
use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::findings::words_of_check;
use super::kind_drafts::{load_replays, replays_table, short_version};
use super::layout::{foreign_name, frame_page};
use super::review_form::label_of;
use super::state::ConsoleState;
use docmill_core::config::WebRole;
use docmill_gate::kinds::{FieldType, GateRule, Kind, RuleCheck, RuleConsequence};
use docmill_operations::kind_drafts::{KindCount, ReasonYield, count_kind, count_kind_reasons};

/// `/kinds`.
pub(super) async fn show_kinds(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
) -> Html<String> {
    let body = html! {
        div.wide tabindex="0" { table {
            thead { tr { th { "kind" } th { "name" } th { "fields" } th { "rules" } th { "files" } th { "version" } } }
            tbody { @for kind in state.kinds().iter() { tr {
                td { a href=(state.link(&format!("/kinds/{}", kind.name))) { (kind.title) } }
                td { (kind.name) } td { (kind.fields().count()) } td { (kind.rules.len()) }
                td { @if kind.built_in { "built in" } @else { "from kinds.path" } }
                td { (short_version(&kind.version)) }
            } } }
        } }
    };
    frame_page(&state, Some(&visitor), "Kinds", &body)
}

/// `/kinds/{kind}`.
pub(super) async fn show_kind(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(name): Path<String>,
) -> Result<Html<String>, ConsoleFailure> {
    let kind = state.kinds().get(&name).ok_or_else(ConsoleFailure::missing)?;
    // Not for reviewers: a count that grows by a decision says that its document was drawn.
    let counts = match visitor.role >= WebRole::Operator {
        true => Some(load_counts(&state, &visitor, &name).await?),
        false => None,
    };
    let body = html! {
        p { "Kind " code { (kind.name) } ", version " code { (short_version(&kind.version)) } "." }
        h2 { "Fields" }
        (fields_table(kind))
        h2 { "Rules" }
        (rules_table(kind, counts.as_ref()))
        @if let Some(counts) = &counts {
            (readers_table(counts))
            (replays_table(&state, kind, &load_replays(&state, &visitor, &name).await?))
        }
    };
    Ok(frame_page(&state, Some(&visitor), &kind.title, &body))
}

/// Documents of a kind and decisions about them.
struct KindCounts {
    /// By reader and by reason.
    documents: Vec<KindCount>,
    /// By reason.
    decisions: BTreeMap<String, ReasonYield>,
}

async fn load_counts(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    kind: &str,
) -> Result<KindCounts, ConsoleFailure> {
    let (db, tenant) = (state.database(), visitor.tenant.as_deref());
    let documents = count_kind(db, kind, tenant).await?;
    let decided = count_kind_reasons(db, kind, tenant).await?;
    let decisions = decided.into_iter().map(|row| (row.reason.clone(), row)).collect();
    Ok(KindCounts { documents, decisions })
}

fn fields_table(kind: &Kind) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            thead { tr { th { "field" } th { "name" } th { "type" } th { "without it" } th { "meaning" } } }
            tbody { @for (name, kind_of_value) in kind.fields() {
                tr {
                    td { (label_of(name)) } td { code { (name) } } td { (words_of_type(kind_of_value)) }
                    td { (words_of_absence(kind, name)) }
                    td { (meaning_of(kind, &format!("/properties/{name}"))) }
                }
                @for (item, of_item) in kind.item_types(name) { tr {
                    td { (label_of(item)) } td { code { (name) "." (item) } } td { (words_of_type(of_item)) }
                    td { "–" }
                    td { (meaning_of(kind, &format!("/properties/{name}/items/properties/{item}"))) }
                } }
            } }
        } }
    }
}

fn words_of_type(of_value: FieldType) -> &'static str {
    match of_value {
        FieldType::Text => "text",
        FieldType::Date => "day",
        FieldType::Number => "number",
        FieldType::Boolean => "yes or no",
        FieldType::List => "list",
        FieldType::Object => "group of fields",
    }
}

/// The gravest consequence of a field's absence.
fn words_of_absence(kind: &Kind, field: &str) -> &'static str {
    let requiring = kind.rules.iter().filter(|rule| requires_field(rule, field));
    requiring.map(|rule| rule.consequence).max().map_or("passes", words_of_consequence)
}

fn requires_field(rule: &GateRule, field: &str) -> bool {
    match &rule.check {
        RuleCheck::Required(fields) => fields.iter().any(|required| required == field),
        _ => false,
    }
}

fn words_of_consequence(consequence: RuleConsequence) -> &'static str {
    match consequence {
        RuleConsequence::Flag => "flagged",
        RuleConsequence::Review => "refused",
        RuleConsequence::Again => "next model, then refused",
    }
}

fn meaning_of<'k>(kind: &'k Kind, pointer: &str) -> &'k str {
    let schema = kind.schema.pointer(pointer);
    schema.and_then(|schema| schema.get("description")?.as_str()).unwrap_or("–")
}

fn rules_table(kind: &Kind, counts: Option<&KindCounts>) -> Markup {
    let mut named = HashSet::new();
    let rules: Vec<(bool, &GateRule)> =
        kind.rules.iter().map(|rule| (named.insert(rule.name.as_str()), rule)).collect();
    html! {
        @if counts.is_some() {
            p.hint { "Counts: of the last 30 days, among the newest 5,000 documents and 2,000 decisions of \
                all kinds. Changed: the value that the rule is about, or where it is about none, anything." }
        }
        div.wide tabindex="0" { table {
            thead { tr { th { "rule" } th { "says" } th { "fields" } th { "then" } th { "readers" }
                @if counts.is_some() { th { "flagged" } th { "decided" } th { "changed" } } } }
            tbody { @for (is_first, rule) in &rules { tr {
                td { code { (rule.name) } } td { (words_of_check(&rule.check)) }
                td { (rule.check.named_fields().join(", ")) }
                td { (words_of_consequence(rule.consequence)) }
                td { (words_of_readers(rule)) }
                @if let Some(counts) = counts { (count_cells(counts, &rule.name, *is_first)) }
            } } }
        } }
    }
}

fn words_of_readers(rule: &GateRule) -> String {
    let names: Vec<&str> = rule.readers.iter().map(|reader| reader.code()).collect();
    if names.is_empty() { "all".to_owned() } else { names.join(", ") }
}

/// Counts are by name: of rules that share one, the first has them.
fn count_cells(counts: &KindCounts, rule: &str, is_first: bool) -> Markup {
    let flagged = counts.documents.iter().find(|count| !count.is_reader && count.name == rule);
    let decided = counts.decisions.get(rule);
    html! {
        @if is_first {
            td { (flagged.map_or(0, |count| count.documents)) }
            td { (decided.map_or(0, |row| row.decided)) } td { (decided.map_or(0, |row| row.changed)) }
        } @else { td { "–" } td { "–" } td { "–" } }
    }
}

fn readers_table(counts: &KindCounts) -> Markup {
    let readers: Vec<&KindCount> = counts.documents.iter().filter(|it| it.is_reader).collect();
    html! {
        h2 { "Readers" }
        @if readers.is_empty() { p { "No document of this kind ended within 30 days." } } @else {
            div.wide tabindex="0" { table {
                thead { tr { th { "reader" } th { "documents" } th { "flagged" } } }
                tbody { @for row in readers { tr {
                    td { @if row.name.is_empty() { "none" } @else { (foreign_name(&row.name)) } }
                    td { (row.documents) } td { (row.flagged) }
                } } }
            } }
        }
    }
}
