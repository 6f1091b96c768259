//! One document by its ingestion: data, history, processing, downloads, and the operator's actions.

use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{Html, Redirect};
use maud::{Markup, html};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::time::timeout;
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::document_data::{DataView, PlaceLinks};
use super::document_history::history_section;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::findings::explain_reasons;
use super::layout::{
    age_since, age_text, fact, foreign_name, form_secret, frame_page, moment, money, state_mark,
};
use super::page_sheets::FieldPlaces;
use super::review_form::label_of;
use super::similar_documents::similar_section;
use super::state::ConsoleState;
use docmill_core::config::WebRole;
use docmill_core::model::{IngestionId, OutcomeReason, RuleReport};
use docmill_operations::answer::standing_decision;
use docmill_operations::export::ExportForm;
use docmill_operations::inspect::{
    self, AttemptCost, AttemptRow, FamilyMember, IngestionHistory, IngestionRow, MessageRecord,
    OperatorActionRow,
};
use docmill_operations::retry::{self, IngestionAction, IngestionChange};
use docmill_operations::review::{self, DocumentRevision, ReviewCase};
use docmill_operations::webhooks::{self, DeliveryRow};

/// Webhooks of a document that are shown, the oldest.
const MAX_DELIVERIES: u32 = 50;
/// How long the page waits for the store to say whether there is a searchable copy.
const STORE_PROBE_TIMEOUT: Duration = Duration::from_millis(300);

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
    let case = review::load_case(state.database(), &row.id.to_string()).await?;
    let shown = ShownData::of_document(row, &case);
    let title = row.original_name.clone().unwrap_or_else(|| row.file_path.clone());
    let body = html! {
        @if let Some(done) = wanted.get("done").and_then(words_of_change) {
            p.notice role="status" { (done) }
        }
        p { (state_mark(&row.status)) " " (row.reason.as_deref().unwrap_or_default()) " · registered "
            (age_since(row.created_at)) " ago" }
        (why_it_waits(&story))
        nav aria-label="Parts of the page" { p.actions {
            @if shown.data.is_some() { a href="#data" { "Data" } a href="#history" { "History" } }
            a href="#downloads" { "Downloads" } a href="#processing" { "Processing" }
        } }
        (family(&state, &story))
        (similar_section(&state, &visitor, row, shown.data).await?)
        (password_form(&state, &visitor, row))
        @if visitor.role >= WebRole::Operator { (actions(&state, &visitor, row)) }
        (reasons(&state, row))
        (data_section(&state, &story, &shown))
        (downloads(&state, &visitor, row, &shown).await)
        (pages_links(&state, row))
        (history_section(&state, row, &case).await?)
        (rules_section(story.einvoice_rules.as_ref()))
        (processing(&state, &visitor, &story).await?)
    };
    Ok(frame_page(&state, Some(&visitor), &title, &body))
}

/// Each step from the message to the outcome, and the events that were sent of it.
async fn processing(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    story: &IngestionHistory,
) -> Result<Markup, ConsoleFailure> {
    let (db, row) = (state.database(), &story.ingestion);
    let id = IngestionId(row.id);
    // The names of targets are those of all tenants.
    let sent = match visitor.tenant {
        None => webhooks::list_of_document(db, row.document_id, MAX_DELIVERIES).await?,
        Some(_) => Vec::new(),
    };
    Ok(html! {
        h2 id="processing" { "Processing" }
        (facts(row))
        (attempts_table(&story.attempts))
        (costs_table(&inspect::list_attempt_costs(db, id).await?))
        @if let Some(record) = inspect::load_message_record(db, id).await? {
            (messages_facts(state, row, &record))
        }
        (deliveries_table(&sent))
        @if visitor.role >= WebRole::Operator {
            (actions_table(&inspect::list_operator_actions(db, id).await?))
        }
    })
}

fn deliveries_table(sent: &[DeliveryRow]) -> Markup {
    html! {
        @if !sent.is_empty() {
            h2 { "Webhooks" }
            div.wide tabindex="0" { table {
                thead { tr { th { "target" } th { "event" } th { "when" } th { "state" } th.number { "tries" } th { "last answer" } } }
                tbody { @for row in sent { tr {
                    td { (row.target) } td { (row.event) } td { (moment(row.occurred_at)) }
                    td { (state_mark(&row.state)) } td.number { (row.tries) }
                    td { @if let Some(status) = row.last_status { (status) " " } (row.last_problem.as_deref().unwrap_or_default()) }
                } } }
            } }
        }
    }
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
                tbody { @for (at, child) in story.children.iter().enumerate() { tr {
                    td.number { (at + 1) }
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
            (fact("From registration to outcome", row.completed_at.map(|at| length_text(at - row.created_at)).as_deref()))
            (fact("Stored at", Some(&row.file_path)))
            (fact("Ingestion", Some(&row.id.to_string())))
            (fact("Document", Some(&row.document_id.to_string())))
            (fact("SHA-256", row.sha256.as_deref()))
            (fact("Kind", row.kind.as_deref()))
            (fact("Tenant", row.tenant.as_deref()))
            (fact("Pages", row.pages.map(|pages| pages.to_string()).as_deref()))
            (fact("Reader", row.reader.as_deref()))
            (fact("Model", row.extraction_model.as_deref()))
            (fact("Tokens read", counted_tokens(row.extraction_input_tokens).as_deref()))
            (fact("Tokens written", counted_tokens(row.extraction_output_tokens).as_deref()))
            (fact("Quality of the pages", row.transcription_quality_score.map(|score| format!("{score:.2}")).as_deref()))
            (fact("Score of the gate", row.gate_score.map(|score| format!("{score:.2}")).as_deref()))
            (fact("Worker", row.worker.as_deref()))
            (fact("Attempts that count", Some(&row.attempt_count.to_string())))
            (fact("Transcript", row.transcription_file_path.as_deref()))
        }
    }
}

/// Nothing where no model was asked.
fn counted_tokens(count: Option<i64>) -> Option<String> {
    count.filter(|count| *count > 0).map(|count| count.to_string())
}

fn reasons(state: &ConsoleState, row: &IngestionRow) -> Markup {
    let kind = state.kinds().for_name(row.kind.as_deref());
    let findings = explain_reasons(kind.map(|it| &**it), &row.review_reasons);
    html! {
        @if row.needs_human_review {
            h2 { "Findings of the gate" }
            ul { @for finding in &findings {
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
    length_text(attempt.ended_at - started)
}

fn length_text(length: time::Duration) -> String {
    match length.whole_seconds() {
        seconds if seconds < 10 => format!("{:.2} s", length.as_seconds_f64()),
        seconds => age_text(u64::try_from(seconds).unwrap_or_default()),
    }
}

/// The document's data as a person decided it, or else as it was read.
struct ShownData<'a> {
    /// The decision that holds.
    decided: Option<&'a DocumentRevision>,
    /// The data.
    data: Option<&'a Value>,
    /// The data as it was read, if that is other data.
    read: Option<&'a Value>,
}

impl<'a> ShownData<'a> {
    fn of_document(row: &'a IngestionRow, case: &'a ReviewCase) -> Self {
        let decided = standing_decision(row, case);
        let read = row.structured_data.as_ref();
        let data = if decided.is_some() { case.document_data.as_ref() } else { read };
        let read = read.filter(|read| decided.is_some() && Some(*read) != data);
        Self { decided, data, read }
    }
}

fn data_section(state: &ConsoleState, story: &IngestionHistory, shown: &ShownData<'_>) -> Markup {
    let row = &story.ingestion;
    let kind = state.kinds().for_name(row.kind.as_deref()).map(|kind| &**kind);
    let pages = state.link(&format!("/ingestions/{}/pages", row.id));
    let found = FieldPlaces::read(story.grounded.clone());
    let places = PlaceLinks::new(pages, row.structured_data.as_ref(), &found);
    let view = DataView { kind, places: Some(&places) };
    html! {
        @if shown.decided.is_some() || shown.data.is_some() {
            h2 id="data" { "Data" }
            @if let Some(last) = shown.decided { p.notice {
                (decision_word(&last.decision)) " by " (foreign_name(&last.reviewer)) ", " (moment(last.decided_at)) " (UTC)"
                @let changed = changed_since(shown.read, shown.data);
                @if !changed.is_empty() { ". Changed: " (changed) }
                @if !last.why.is_empty() { ". Reason: " (foreign_name(&last.why)) }
            } }
            @if row.reader.as_deref() == Some("einvoice") {
                p { a href=(state.link(&format!("/ingestions/{}/invoice", row.id))) { "By the terms of EN 16931" } }
            }
            @if let Some(data) = shown.data { (view.table(data)) }
            @else { p { "The document carries no data." } }
            @if let Some(read) = shown.read { details { summary { "As it was read" } (view.table(read)) } }
        }
    }
}

/// Files of the document: its data in all forms that it has, its text, and itself.
async fn downloads(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    row: &IngestionRow,
    shown: &ShownData<'_>,
) -> Markup {
    let kind = state.kinds().for_name(row.kind.as_deref()).filter(|_| shown.data.is_some());
    let path = state.link(&format!("/ingestions/{}", row.id));
    let has_copy = has_searchable_copy(state, row).await;
    html! {
        h2 id="downloads" { "Downloads" }
        p.actions {
            @if shown.data.is_some() { a href={ (path) "/data" } { "JSON" } }
            @if let Some(kind) = kind {
                @for (name, form) in ExportForm::ALL.into_iter().filter(|(_, form)| form.is_of(kind)) {
                    a href={ (path) "/export?form=" (name) } { (form.title()) }
                }
            }
            @if row.transcription_file_path.is_some() {
                a href={ (path) "/transcript?format=text" } { "Text" }
                a href={ (path) "/transcript?format=markdown" } { "Markdown" }
            }
            @if has_copy { a href={ (path) "/transcript?format=pdf" } { "Searchable PDF" } }
            (original_form(state, visitor, row))
        }
    }
}

/// Whether there is a copy with a layer of text beside the transcript, as far as the store says in time.
async fn has_searchable_copy(state: &ConsoleState, row: &IngestionRow) -> bool {
    let folder = row.transcription_file_path.as_deref().and_then(|path| path.rsplit_once('/'));
    let Some((folder, _)) = folder else { return false };
    let key = format!("{folder}/searchable.pdf");
    let asked = timeout(STORE_PROBE_TIMEOUT, state.store().head(&key)).await;
    matches!(asked, Ok(Ok(Some(_))))
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

fn actions(state: &ConsoleState, visitor: &ConsoleVisitor, row: &IngestionRow) -> Markup {
    let (open, completed) = (row.status == "in-progress", row.status == "completed");
    let path = state.link(&format!("/ingestions/{}", row.id));
    html! {
        div.actions {
            @if !open && !completed {
                // It has ended without a result: nothing is lost by another try.
                form.inline method="post" action={ (path) "/retry" } {
                    (form_secret(visitor))
                    input type="hidden" name="confirm" value="yes";
                    label.unseen-label for="retry-why" { "Why" }
                    input id="retry-why" name="why" placeholder="Why (optional)"; " "
                    button.first { "Retry" }
                }
            }
            @if completed { (RETRY_COMPLETED.show(visitor, &path)) }
            @if open { (RETRY_OPEN.show(visitor, &path)) (CANCEL_OPEN.show(visitor, &path)) }
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

/// A change of the ingestion at `path`: the words to open it, to confirm it and on its button.
struct ActionForm<'a> {
    verb: &'a str,
    opens: &'a str,
    confirms: &'a str,
    does: &'a str,
}

impl ActionForm<'_> {
    fn show(&self, visitor: &ConsoleVisitor, path: &str) -> Markup {
        let verb = self.verb;
        html! {
            details {
                summary { (self.opens) }
                form method="post" action={ (path) "/" (verb) } {
                    (form_secret(visitor))
                    div.field { label for={ (verb) "-why" } { "Why" } input id={ (verb) "-why" } name="why"; }
                    p { label { input type="checkbox" name="confirm" value="yes" required; " " (self.confirms) } }
                    button.first { (self.does) }
                }
            }
        }
    }
}

const RETRY_COMPLETED: ActionForm<'static> = ActionForm {
    verb: "retry",
    opens: "Retry…",
    confirms: "Read it once more, whatever that costs",
    does: "Retry",
};
const RETRY_OPEN: ActionForm<'static> = ActionForm {
    verb: "retry",
    opens: "Retry now…",
    confirms: "Send its message again, due at once",
    does: "Retry now",
};
const CANCEL_OPEN: ActionForm<'static> = ActionForm {
    verb: "cancel",
    opens: "Cancel it…",
    confirms: "End it without a result",
    does: "Cancel it",
};

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
