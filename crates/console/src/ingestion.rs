//! One ingestion: its state, its history, and the operator's actions.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{Html, Redirect};
use maud::{Markup, html};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::findings::explain_reason;
use super::layout::{
    age_since, age_text, fact, foreign_name, form_secret, frame_page, moment, money, state_mark,
};
use super::page_sheets::{FieldPlace, FieldPlaces, mark_id};
use super::review_form::label_of;
use super::state::ConsoleState;
use docmill_core::config::WebRole;
use docmill_core::model::{IngestionId, OutcomeReason, RuleReport, value_at};
use docmill_gate::kinds::Kind;
use docmill_operations::answer::standing_decision;
use docmill_operations::export::ExportForm;
use docmill_operations::inspect::{
    self, AttemptCost, AttemptRow, FamilyMember, IngestionHistory, IngestionRow, MessageRecord,
    OperatorActionRow,
};
use docmill_operations::retry::{self, IngestionAction, IngestionChange};
use docmill_operations::review::{self, DocumentRevision, ReviewCase};

/// The newest ingestion that an id means and the visitor sees: its own id, or its document's.
pub(super) async fn find_visible(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    id: Uuid,
) -> Result<IngestionHistory, ConsoleFailure> {
    let found = inspect::load_histories(state.database(), &id.to_string()).await?;
    let mut visible = found.into_iter().filter(|it| visitor.sees(it.ingestion.tenant.as_deref()));
    visible.next().ok_or_else(ConsoleFailure::missing)
}

/// An id in the address.
pub(super) fn read_id(text: &str) -> Result<Uuid, ConsoleFailure> {
    Uuid::parse_str(text).map_err(|_| ConsoleFailure::missing())
}

/// `/ingestions/{id}`.
pub(super) async fn show_ingestion(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    QueryFields(wanted): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    let story = find_visible(&state, &visitor, read_id(&id)?).await?;
    let row = &story.ingestion;
    let id = IngestionId(row.id);
    let case = review::load_case(state.database(), &row.id.to_string()).await?;
    let title = row.original_name.clone().unwrap_or_else(|| row.file_path.clone());
    let body = html! {
        @if let Some(done) = wanted.get("done").and_then(words_of_change) {
            p.notice role="status" { (done) }
        }
        p { (state_mark(&row.status)) " " (row.reason.as_deref().unwrap_or_default()) " · registered "
            (age_since(row.created_at)) " ago" }
        (why_it_waits(&story))
        (family(&state, &story))
        (original_form(&state, &visitor, row))
        (password_form(&state, &visitor, row))
        @if visitor.role >= WebRole::Operator { (actions(&state, &visitor, row)) }
        (facts(row))
        (reasons(&state, row))
        (rules_section(story.einvoice_rules.as_ref()))
        (attempts_table(&story.attempts))
        (costs_table(&inspect::list_attempt_costs(state.database(), id).await?))
        @if let Some(record) = inspect::load_message_record(state.database(), id).await? {
            (messages_facts(&state, row, &record))
        }
        @if visitor.role >= WebRole::Operator {
            (actions_table(&inspect::list_operator_actions(state.database(), id).await?))
        }
        (pages_links(&state, row))
        (data_section(&state, row, &case))
        (places_list(&state, &story))
    };
    Ok(frame_page(&state, Some(&visitor), &title, &body))
}

fn why_it_waits(story: &IngestionHistory) -> Markup {
    html! {
        @if let (Some(state), Some(why)) = (&story.state, &story.explanation) {
            p.notice { "Why it waits: " (state_mark(state)) " – " (foreign_name(why)) }
        }
    }
}

/// The document that it was found in, and those found in it.
fn family(state: &ConsoleState, story: &IngestionHistory) -> Markup {
    html! {
        @if let Some(parent) = &story.parent {
            p { "Found in " (member_link(state, parent)) }
        }
        @if !story.children.is_empty() {
            h2 { "Documents found in it" }
            div.wide tabindex="0" { table {
                thead { tr { th.number { "no." } th { "name" } th { "status" } th { "kind" } th { "pages" } } }
                tbody { @for child in &story.children { tr {
                    td.number { (child.position.unwrap_or_default() + 1) }
                    td { (member_link(state, child)) }
                    td { (state_mark(&child.status)) " " (child.reason.as_deref().unwrap_or_default())
                        @if child.needs_human_review { " "
                            a href=(state.link(&format!("/reviews/{}", child.document_id))) { "to be reviewed" } } }
                    td { (child.kind.as_deref().unwrap_or("–")) }
                    td { (page_range(child)) }
                } } }
            } }
        }
    }
}

fn member_link(state: &ConsoleState, member: &FamilyMember) -> Markup {
    let name = member.name.as_deref().unwrap_or("without a name");
    html! { a href=(state.link(&format!("/ingestions/{}", member.ingestion_id))) { (foreign_name(name)) } }
}

fn page_range(member: &FamilyMember) -> String {
    match (member.first_page, member.last_page) {
        (Some(first), Some(last)) if first < last => format!("{first}–{last}"),
        (Some(first), _) => first.to_string(),
        _ => "–".to_owned(),
    }
}

fn facts(row: &IngestionRow) -> Markup {
    html! {
        dl.facts {
            (fact("Detail", row.detail.as_deref()))
            (fact("File", row.original_name.as_deref()))
            (fact("Stored at", Some(&row.file_path)))
            (fact("Ingestion", Some(&row.id.to_string())))
            (fact("Document", Some(&row.document_id.to_string())))
            (fact("SHA-256", row.sha256.as_deref()))
            (fact("Kind", row.kind.as_deref()))
            (fact("Tenant", row.tenant.as_deref()))
            (fact("Pages", row.pages.map(|pages| pages.to_string()).as_deref()))
            (fact("Reader", row.reader.as_deref()))
            (fact("Model", row.extraction_model.as_deref()))
            (fact("Tokens read", row.extraction_input_tokens.map(|tokens| tokens.to_string()).as_deref()))
            (fact("Tokens written", row.extraction_output_tokens.map(|tokens| tokens.to_string()).as_deref()))
            (fact("Quality of the pages", row.transcription_quality_score.map(|score| format!("{score:.2}")).as_deref()))
            (fact("Score of the gate", row.gate_score.map(|score| format!("{score:.2}")).as_deref()))
            (fact("Worker", row.worker.as_deref()))
            (fact("Attempts that count", Some(&row.attempt_count.to_string())))
            (fact("Transcript", row.transcription_file_path.as_deref()))
        }
    }
}

fn reasons(state: &ConsoleState, row: &IngestionRow) -> Markup {
    let kind = state.kinds().for_name(row.kind.as_deref());
    let findings = row.review_reasons.iter().map(|code| explain_reason(kind.map(|it| &**it), code));
    html! {
        @if row.needs_human_review {
            h2 { "Findings of the gate" }
            ul { @for finding in findings {
                li { (finding.words) " " span.hint { (finding.code) } }
            } }
            p { a href=(state.link(&format!("/reviews/{}", row.document_id))) { "Review the document" } }
        }
    }
}

/// The official rules that the e-invoice breaks, in their own words.
fn rules_section(rules: Option<&Value>) -> Markup {
    let report = rules.and_then(|rules| RuleReport::deserialize(rules).ok());
    html! {
        @if let Some(report) = report {
            h2 { "Official rules" }
            p.hint { "Checked by " (report.sets.join(", ")) "."
                @if report.is_cut { " It is too large to be checked to its end." } }
            @if report.findings.is_empty() { p { "It breaks none." } } @else {
                div.wide tabindex="0" { table {
                    thead { tr { th { "rule" } th { "severity" } th { "text" } th { "where" } } }
                    tbody { @for finding in &report.findings { tr {
                        td { (finding.rule) } td { (finding.severity.code()) @if finding.error.is_some() { " (no verdict)" } }
                        td { (foreign_name(&finding.text)) } td { (foreign_name(&finding.location)) }
                    } } }
                } }
            }
            @if report.more_findings > 0 { p.hint { (report.more_findings) " more." } }
        }
    }
}

/// Pages whose links are shown; the others are reached from page to page.
const LINKED_PAGES: i32 = 20;

fn pages_links(state: &ConsoleState, row: &IngestionRow) -> Markup {
    let path = state.link(&format!("/ingestions/{}/pages", row.id));
    let count = row.pages.unwrap_or(1);
    html! {
        @if row.transcription_file_path.is_some() {
            h2 { "Pages" }
            p.actions { @for page in 1..=count.min(LINKED_PAGES) {
                a href={ (path) "/" (page) } { "Page " (page) }
            } }
        }
    }
}

/// The places of the values on the pages, each a link to its mark.
fn places_list(state: &ConsoleState, story: &IngestionHistory) -> Markup {
    let places = FieldPlaces::read(story.grounded.clone());
    let mut places = places.iter().enumerate().peekable();
    let data = story.ingestion.structured_data.as_ref().and_then(Value::as_object);
    html! {
        @if places.peek().is_some() {
            h2 { "Where the values were found" }
            dl.facts { @for (at, place) in places { div {
                dt { (place.field) }
                dd {
                    @if let Some(value) = data.and_then(|data| value_at(data, &place.field)) {
                        (data_value(None, "", value)) " · "
                    }
                    a href=(state.link(&place_path(story, at, place))) { "page " (place.page) }
                }
            } } }
        }
    }
}

fn place_path(story: &IngestionHistory, at: usize, place: &FieldPlace) -> String {
    format!("/ingestions/{}/pages/{}#{}", story.ingestion.id, place.page, mark_id(at))
}

fn attempts_table(attempts: &[AttemptRow]) -> Markup {
    html! {
        h2 { "Attempts" }
        @if attempts.is_empty() { p { "None has ended." } } @else {
            div.wide tabindex="0" { table {
                thead { tr { th.number { "claim" } th { "began" } th { "took" } th { "reached" } th { "outcome" } th { "worker" } th { "detail" } } }
                tbody { @for attempt in attempts { tr {
                    td.number { (attempt.claims) }
                    td { @match attempt.started_at { Some(at) => (moment(at)), None => "–" } }
                    td { (took(attempt)) }
                    td { (attempt.stage.as_deref().unwrap_or("–")) }
                    td { (attempt.outcome) @if !attempt.counted { " (given back)" } }
                    td { (attempt.worker.as_deref().unwrap_or("–")) }
                    td { (foreign_name(attempt.detail.as_deref().unwrap_or_default())) }
                } } }
            } }
        }
    }
}

fn costs_table(costs: &[AttemptCost]) -> Markup {
    html! {
        @if !costs.is_empty() {
            h2 { "Costs" }
            div.wide tabindex="0" { table {
                thead { tr { th.number { "claim" } th { "paid to" } th.number { "calls" } th.number { "pages" } th.number { "tokens read" } th.number { "tokens written" } th.number { "cost" } } }
                tbody { @for cost in costs { tr {
                    td.number { (cost.claims) } td { (cost.provider) " " (cost.model) }
                    td.number { (cost.calls) } td.number { (cost.pages) }
                    td.number { (cost.input_tokens) } td.number { (cost.output_tokens) }
                    td.number { (money(cost.cost_nanos)) @if cost.unpriced_calls > 0 { " (some without a price)" } }
                } } }
            } }
        }
    }
}

/// Facts about its messages.
fn messages_facts(state: &ConsoleState, row: &IngestionRow, record: &MessageRecord) -> Markup {
    let open = row.status == "in-progress";
    html! {
        h2 { "Messages" }
        dl.facts {
            div { dt { "Now" } dd { (where_message_is(record, open)) } }
            div { dt { "Last message sent" } dd { (moment(record.sent_at)) ", " (age_since(record.sent_at)) " ago" } }
            (fact("Sent again because nothing came of it", Some(&record.resends.to_string())))
            (fact("Tier", Some(&record.priority)))
        }
        @if open { p.hint {
            "What the queue gave up is among the " a href=(state.link("/dead-letters")) { "dead letters" } "."
        } }
    }
}

fn where_message_is(record: &MessageRecord, open: bool) -> Markup {
    html! {
        @if !open { "none is needed any more" }
        @else if let Some(pause) = &record.parked_by {
            "none, while there is the pause " (foreign_name(pause))
        }
        @else if let Some(until) = record.parked_until { "none, until " (moment(until)) }
        @else { "one in the queue; were it lost, another is sent" }
    }
}

fn actions_table(actions: &[OperatorActionRow]) -> Markup {
    html! {
        @if !actions.is_empty() {
            h2 { "What operators did" }
            div.wide tabindex="0" { table {
                thead { tr { th { "when" } th { "who" } th { "what" } th { "why" } } }
                tbody { @for action in actions { tr {
                    td { (moment(action.done_at)) } td { (foreign_name(&action.operator)) }
                    td { (action.action) } td { (foreign_name(&action.why)) }
                } } }
            } }
        }
    }
}

fn took(attempt: &AttemptRow) -> String {
    let Some(started) = attempt.started_at else { return "–".to_owned() };
    let length = attempt.ended_at - started;
    match length.whole_seconds() {
        seconds if seconds < 10 => format!("{:.2} s", length.as_seconds_f64()),
        seconds => age_text(u64::try_from(seconds).unwrap_or_default()),
    }
}

/// The links to the forms that documents of a kind have.
fn export_links(state: &ConsoleState, row: &IngestionRow, kind: &Kind) -> Markup {
    let path = state.link(&format!("/ingestions/{}/export", row.id));
    html! {
        p.actions {
            @for (name, form) in ExportForm::ALL {
                @if form.is_of(kind) { a href={ (path) "?form=" (name) } { (form.title()) } }
            }
        }
    }
}

/// The data of the document, as a person decided or else as it was read, and the decisions.
fn data_section(state: &ConsoleState, row: &IngestionRow, case: &ReviewCase) -> Markup {
    let kind = state.kinds().for_name(row.kind.as_deref()).map(|kind| &**kind);
    let decided = standing_decision(row, case);
    let shown = if decided.is_some() { &case.document_data } else { &row.structured_data };
    let read = row
        .structured_data
        .as_ref()
        .filter(|read| decided.is_some() && Some(*read) != shown.as_ref());
    html! {
        @if decided.is_some() || shown.is_some() {
            h2 { "Data" }
            @if let Some(last) = decided { p.notice {
                (decision_word(&last.decision)) " by " (foreign_name(&last.reviewer)) ", " (moment(last.decided_at)) " (UTC)"
                @let changed = changed_since(read, shown.as_ref());
                @if !changed.is_empty() { ". Changed: " (changed) }
                @if !last.why.is_empty() { ". Reason: " (foreign_name(&last.why)) }
            } }
            @if row.reader.as_deref() == Some("einvoice") {
                p { a href=(state.link(&format!("/ingestions/{}/invoice", row.id))) { "By the terms of EN 16931" } }
            }
            @if let (Some(kind), Some(_)) = (kind, shown) { (export_links(state, row, kind)) }
            @if let Some(data) = shown { (data_table(kind, data)) }
            @else { p { "The document carries no data." } }
            @if let Some(read) = read { details { summary { "As it was read" } (data_table(kind, read)) } }
        }
        (decisions_list(case))
    }
}

fn decision_word(decision: &str) -> &'static str {
    match decision {
        "accepted" => "Approved",
        "corrected" => "Corrected",
        "rejected" => "Rejected",
        _ => "Decided",
    }
}

/// The fields in which a decision differs from what was read.
fn changed_since(read: Option<&Value>, decided: Option<&Value>) -> String {
    let before = read.and_then(Value::as_object);
    let (Some(before), Some(after)) = (before, decided.and_then(Value::as_object)) else {
        return String::new();
    };
    let changed = after.iter().filter(|(name, value)| before.get(*name) != Some(*value));
    changed.map(|(name, _)| label_of(name)).collect::<Vec<_>>().join(", ")
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

/// Data as a person reads it: fields and columns in the order of the kind.
pub(super) fn data_table(kind: Option<&Kind>, data: &Value) -> Markup {
    let Value::Object(fields) = data else { return data_value(kind, "", data) };
    let known: Vec<&str> =
        kind.map(|kind| kind.fields().map(|(name, _)| name).collect()).unwrap_or_default();
    let of_kind = known.iter().filter_map(|name| Some((*name, fields.get(*name)?)));
    let others = fields.iter().map(|(name, value)| (name.as_str(), value));
    let others = others.filter(|(name, _)| !known.contains(name));
    html! {
        dl.facts { @for (name, value) in of_kind.chain(others) {
            div.whole[is_table(value)] { dt { (label_of(name)) } dd { (data_value(kind, name, value)) } }
        } }
    }
}

/// Whether it is a list of lines, each with fields.
fn is_table(value: &Value) -> bool {
    value.as_array().is_some_and(|lines| !lines.is_empty() && lines.iter().all(Value::is_object))
}

/// Lines as a table, with a column for each field that one of them has.
fn lines_table(kind: Option<&Kind>, list: &str, lines: &[Value]) -> Markup {
    let mut columns: Vec<&str> = kind.map(|kind| kind.item_fields(list)).unwrap_or_default();
    let found = lines.iter().filter_map(Value::as_object).flat_map(Map::keys);
    for name in found.map(String::as_str) {
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    html! {
        div.wide tabindex="0" { table {
            thead { tr { @for name in &columns { th { (label_of(name)) } } } }
            tbody { @for line in lines { tr { @for name in &columns {
                @let value = line.get(name).unwrap_or(&Value::Null);
                td.number[value.is_number()] { (data_value(None, name, value)) }
            } } } }
        } }
    }
}

fn data_value(kind: Option<&Kind>, name: &str, value: &Value) -> Markup {
    html! {
        @match value {
            Value::Null => "–",
            Value::String(text) => (foreign_name(text)),
            Value::Array(lines) if is_table(value) => (lines_table(kind, name, lines)),
            Value::Array(items) => ol { @for item in items { li { (data_value(None, "", item)) } } },
            Value::Object(fields) => {
                @for (name, value) in fields { span.hint { (label_of(name)) ": " } (data_value(None, name, value)) "; " }
            }
            Value::Number(number) => (decimal_text(&number.to_string())),
            other => (other.to_string()),
        }
    }
}

/// A number with a fraction has two decimals at least.
fn decimal_text(number: &str) -> String {
    match number.split_once('.') {
        Some((whole, "0")) => whole.to_owned(),
        Some((_, fraction)) if fraction.len() == 1 => format!("{number}0"),
        _ => number.to_owned(),
    }
}

fn actions(state: &ConsoleState, visitor: &ConsoleVisitor, row: &IngestionRow) -> Markup {
    let open = row.status == "in-progress";
    let retry = if open { "Retry now…" } else { "Retry…" };
    html! {
        div.actions {
            (action_form(state, visitor, row, "retry", retry))
            @if open { (action_form(state, visitor, row, "cancel", "Cancel it…")) }
        }
    }
}

/// The button for the original.
fn original_form(state: &ConsoleState, visitor: &ConsoleVisitor, row: &IngestionRow) -> Markup {
    html! {
        @if visitor.role >= WebRole::Reviewer && row.sha256.is_some() {
            form.inline method="post" action=(state.link(&format!("/ingestions/{}/original", row.id))) {
                (form_secret(visitor))
                button { "Download the original" }
            }
        }
    }
}

/// The place for the password of an encrypted document.
fn password_form(state: &ConsoleState, visitor: &ConsoleVisitor, row: &IngestionRow) -> Markup {
    let encrypted = row.reason.as_deref() == Some(OutcomeReason::Encrypted.code());
    html! {
        @if encrypted && visitor.role >= WebRole::Operator {
            form.filters method="post" action=(state.link(&format!("/ingestions/{}/password", row.id))) {
                (form_secret(visitor))
                div { label for="password" { "Password of the document" }
                    input id="password" name="password" type="password" autocomplete="off" required maxlength="127"; }
                button.first { "Open it and read it again" }
            }
        }
    }
}

fn action_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    row: &IngestionRow,
    verb: &str,
    label: &str,
) -> Markup {
    html! {
        details {
            summary { (label) }
            form method="post" action=(state.link(&format!("/ingestions/{}/{verb}", row.id))) {
                (form_secret(visitor))
                div.field { label for={ (verb) "-why" } { "Why" } input id={ (verb) "-why" } name="why"; }
                p { label { input type="checkbox" name="confirm" value="yes" required; " I mean it" } }
                button.first { (verb) }
            }
        }
    }
}

/// Refuses a change that was not confirmed.
pub(super) fn require_confirmation(form: &FieldValues) -> Result<(), ConsoleFailure> {
    match form.get("confirm") {
        Some("yes") => Ok(()),
        _ => Err(ConsoleFailure::wrong_request("Say that you mean it: go back and tick the box.")),
    }
}

/// `POST /ingestions/{id}/retry`.
pub(super) async fn post_retry(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    require_confirmation(&form)?;
    let why = form.get("why").unwrap_or_default();
    let change = retry_visible(&state, &visitor, read_id(&id)?, why).await?;
    Ok(redirect_to_change(&state, &change))
}

/// `POST /ingestions/{id}/cancel`.
pub(super) async fn post_cancel(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    require_confirmation(&form)?;
    let why = form.get("why").unwrap_or_default();
    let change = cancel_visible(&state, &visitor, read_id(&id)?, why).await?;
    Ok(redirect_to_change(&state, &change))
}

/// Retries an ingestion that the visitor sees.
pub(super) async fn retry_visible(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    id: Uuid,
    why: &str,
) -> Result<IngestionChange, ConsoleFailure> {
    let ids = [IngestionId(find_visible(state, visitor, id).await?.ingestion.id)];
    let by = visitor.audit_note(why);
    let done = retry::retry_ingestions(state.database(), state.queue(), &ids, &by).await?;
    done.into_iter().next().ok_or_else(ConsoleFailure::missing)
}

/// Cancels an ingestion that the visitor sees.
pub(super) async fn cancel_visible(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    id: Uuid,
    why: &str,
) -> Result<IngestionChange, ConsoleFailure> {
    let ids = [IngestionId(find_visible(state, visitor, id).await?.ingestion.id)];
    let by = visitor.audit_note(why);
    let done = retry::cancel_ingestions(state.database(), &ids, &by).await?;
    done.into_iter().next().ok_or_else(ConsoleFailure::missing)
}

/// Leads back to the changed ingestion.
pub(super) fn redirect_to_change(state: &ConsoleState, change: &IngestionChange) -> Redirect {
    let (id, done) = (change.ingestion_id, code_of_change(change.change));
    Redirect::to(&state.link(&format!("/ingestions/{id}?done={done}")))
}

fn code_of_change(change: IngestionAction) -> &'static str {
    match change {
        IngestionAction::Reopened => "reopened",
        IngestionAction::SentAgain => "sent_again",
        IngestionAction::BeingWorkedOn => "being_worked_on",
        IngestionAction::Moved => "moved",
        IngestionAction::Cancelled => "cancelled",
        IngestionAction::AlreadyEnded => "already_ended",
        IngestionAction::NotSent => "not_sent",
    }
}

/// The result of an action in words.
pub(super) fn words_of_action(action: IngestionAction) -> &'static str {
    words_of_change(code_of_change(action)).unwrap_or_default()
}

/// Words for a code in the address; `None` for an unknown one.
fn words_of_change(code: &str) -> Option<&'static str> {
    Some(match code {
        "reopened" => "It is open again, and its message is sent.",
        "sent_again" => "It is due now, and its message is sent again.",
        "being_worked_on" => "A worker has it right now; it goes on.",
        "moved" => "It has the new priority.",
        "cancelled" => "It is cancelled.",
        "already_ended" => "It had ended before; nothing was done.",
        "not_sent" => "It is open, but its message could not be sent: the janitor will do that.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_keeps_two_decimals_and_whole_numbers_none() {
        for (number, shown) in [
            ("2042.4", "2042.40"),
            ("24.35", "24.35"),
            ("2", "2"),
            ("2.0", "2"),
            ("0.125", "0.125"),
        ] {
            assert_eq!(decimal_text(number), shown);
        }
    }
}
