//! One change of many ingestions: of the rows that were selected in a list, or of all that match its filter.
//!
//! Two steps, without script: a page that counts what is meant, and the change itself. A request changes at
//! most [`MAX_TOGETHER`] ingestions, newest first; its answer offers to go on with the rest.

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use maud::{Markup, html};
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::ingestion::{require_confirmation, words_of_action};
use super::layout::{foreign_name, form_secret, frame_page};
use super::list_filters::{filter_names, hidden_fields, hidden_filter};
use super::listing::{read_cursor, read_filter};
use super::state::ConsoleState;
use docmill_core::model::{IngestionId, Priority};
use docmill_operations::inspect;
use docmill_operations::retry::{
    self, CourseChange, IngestionAction, IngestionChange, MAX_TOGETHER,
};

/// Problems that are shown one by one.
const MAX_SHOWN_PROBLEMS: usize = 20;

/// Ingestions that are to be changed.
struct ChosenIngestions {
    ids: Vec<IngestionId>,
    /// More match than one request changes.
    has_more: bool,
}

/// The chosen ingestions, as far as the visitor sees them.
async fn load_chosen(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
) -> Result<ChosenIngestions, ConsoleFailure> {
    match wanted.get("of") {
        Some("selected") => load_selected(state, visitor, wanted).await,
        Some("matching") => load_matching(state, visitor, wanted).await,
        _ => Err(ConsoleFailure::wrong_request("of is selected or matching")),
    }
}

async fn load_selected(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
) -> Result<ChosenIngestions, ConsoleFailure> {
    let ids: Result<Vec<Uuid>, _> = wanted.all("id").map(Uuid::parse_str).collect();
    let ids = ids.map_err(|_| ConsoleFailure::wrong_request("id is the id of an ingestion"))?;
    if ids.is_empty() {
        return Err(ConsoleFailure::wrong_request("No row is selected: go back and tick some."));
    }
    if ids.len() > MAX_TOGETHER {
        let text = format!("At most {MAX_TOGETHER} ingestions are changed together.");
        return Err(ConsoleFailure::wrong_request(text));
    }
    let ids: Vec<IngestionId> = ids.into_iter().map(IngestionId).collect();
    let mut rows = inspect::ingestions_by_id(state.database(), &ids).await?;
    rows.retain(|row| visitor.sees(row.tenant.as_deref()));
    if rows.is_empty() {
        return Err(ConsoleFailure::missing());
    }
    let ids = rows.iter().map(|row| IngestionId(row.id)).collect();
    Ok(ChosenIngestions { ids, has_more: false })
}

/// A status is needed: a filter without one also means everything that is completed.
async fn load_matching(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
) -> Result<ChosenIngestions, ConsoleFailure> {
    let filter = read_filter(visitor, wanted)?;
    if filter.status.is_none() {
        let text = "All that match are changed by status: filter by one first.";
        return Err(ConsoleFailure::wrong_request(text).about("status"));
    }
    let after = read_cursor(wanted)?.map(IngestionId);
    let limit = u32::try_from(MAX_TOGETHER + 1).unwrap_or(u32::MAX);
    let mut ids = inspect::list_ingestion_ids(state.database(), &filter, limit, after).await?;
    let has_more = ids.len() > MAX_TOGETHER;
    ids.truncate(MAX_TOGETHER);
    Ok(ChosenIngestions { ids, has_more })
}

/// The change that a form names, as far as the visitor may make it.
fn read_change(
    visitor: &ConsoleVisitor,
    form: &FieldValues,
) -> Result<CourseChange, ConsoleFailure> {
    let priority = match form.value("change") {
        "retry" => return Ok(CourseChange::Retry),
        "cancel" => return Ok(CourseChange::Cancel),
        code => Priority::from_code(code).ok_or_else(|| {
            ConsoleFailure::wrong_request("change is retry, cancel or a priority").about("change")
        })?,
    };
    // More urgent priorities come first in their order.
    if priority < visitor.highest_priority {
        let text =
            format!("Your token gives up to the priority {}.", visitor.highest_priority.code());
        return Err(ConsoleFailure::forbidden(text));
    }
    Ok(CourseChange::Reprioritize(priority))
}

/// `/ingestions/change`: counts what is meant, and asks for the change.
pub(super) async fn show_change(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    let chosen = load_chosen(&state, &visitor, &wanted).await?;
    let body = html! {
        @if chosen.ids.is_empty() { p { "No ingestion matches any more." } }
        @else { (change_form(&state, &visitor, &wanted, &chosen)) }
        (back_to_list(&state, &visitor, &wanted))
    };
    Ok(frame_page(&state, Some(&visitor), "Change ingestions", &body))
}

fn change_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
    chosen: &ChosenIngestions,
) -> Markup {
    let count = chosen.ids.len();
    html! {
        p {
            @if chosen.has_more { "More than " }
            (counted_ingestions(count))
            @if wanted.get("of") == Some("matching") { " match: " (filter_words(visitor, wanted)) "." }
            @else { " selected." }
            @if chosen.has_more { " The newest " (count) " are changed first." }
        }
        form method="post" action=(state.link("/ingestions/change")) {
            (form_secret(visitor))
            (hidden_fields(wanted, &["of", "id"]))
            (hidden_filter(visitor, wanted))
            div.field { label for="change" { "Change" }
                select id="change" name="change" required {
                    option value="" { "choose" }
                    option value="retry" { "Retry: work on them once more" }
                    option value="cancel" { "Cancel those in progress" }
                    @for priority in Priority::ALL.into_iter().filter(|it| *it >= visitor.highest_priority) {
                        option value=(priority.code()) { "Priority " (priority.code()) " for those in progress" }
                    }
                } }
            div.field { label for="why" { "Why" } input id="why" name="why"; }
            p { label { input type="checkbox" name="confirm" value="yes" required; " I mean it" } }
            button.first { "Change " (counted_ingestions(count)) }
        }
    }
}

/// `POST /ingestions/change`.
pub(super) async fn post_change(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Html<String>, ConsoleFailure> {
    require_confirmation(&form)?;
    let change = read_change(&visitor, &form)?;
    let chosen = load_chosen(&state, &visitor, &form).await?;
    let by = visitor.audit_note(form.get("why").unwrap_or_default());
    let (database, queue) = (state.database(), state.queue());
    let done = retry::change_ingestions(database, queue, &chosen.ids, change, &by).await?;
    let rest = chosen.ids.last().filter(|_| chosen.has_more);
    let body = html! {
        (results(&state, &done))
        @if let Some(last) = rest { (rest_form(&state, &visitor, &form, *last)) }
        (back_to_list(&state, &visitor, &form))
    };
    Ok(frame_page(&state, Some(&visitor), "Changed ingestions", &body))
}

/// How many ended in which way, and the problems.
fn results(state: &ConsoleState, done: &[IngestionChange]) -> Markup {
    let troubled = done.iter().filter_map(|line| Some((line.ingestion_id, line.problem.as_ref()?)));
    let troubled: Vec<_> = troubled.collect();
    html! {
        table { thead { tr { th.number { "Ingestions" } th { "Result" } } }
            tbody { @for (action, count) in count_actions(done) {
                tr { td.number { (count) } td { (words_of_action(action)) } } } } }
        @if !troubled.is_empty() {
            h2 { "Problems" }
            ul { @for (id, problem) in troubled.iter().take(MAX_SHOWN_PROBLEMS) {
                li { a href=(state.link(&format!("/ingestions/{id}"))) { (id) } ": " (problem) } } }
            @if troubled.len() > MAX_SHOWN_PROBLEMS {
                p.hint { "and " (troubled.len() - MAX_SHOWN_PROBLEMS) " more" }
            }
        }
    }
}

fn count_actions(done: &[IngestionChange]) -> Vec<(IngestionAction, usize)> {
    let mut counts: Vec<(IngestionAction, usize)> = Vec::new();
    for line in done {
        match counts.iter_mut().find(|(action, _)| *action == line.change) {
            Some((_, count)) => *count += 1,
            None => counts.push((line.change, 1)),
        }
    }
    counts
}

/// The same change for those that come after this one.
fn rest_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    form: &FieldValues,
    last: IngestionId,
) -> Markup {
    html! {
        form method="post" action=(state.link("/ingestions/change")) {
            (form_secret(visitor))
            (hidden_fields(form, &["of", "change", "why", "confirm"]))
            (hidden_filter(visitor, form))
            input type="hidden" name="cursor" value=(last);
            p { "Older ones match as well." }
            button.first { "Go on with the next " (MAX_TOGETHER) }
        }
    }
}

fn back_to_list(state: &ConsoleState, visitor: &ConsoleVisitor, wanted: &FieldValues) -> Markup {
    let (mut query, names) =
        (form_urlencoded::Serializer::new(String::new()), filter_names(visitor));
    query.extend_pairs(wanted.pairs().filter(|(name, _)| names.contains(name)));
    html! { p { a href=(state.link(&format!("/ingestions?{}", query.finish()))) { "Back to the list" } } }
}

fn counted_ingestions(count: usize) -> String {
    if count == 1 { "1 ingestion".to_owned() } else { format!("{count} ingestions") }
}

fn filter_words(visitor: &ConsoleVisitor, wanted: &FieldValues) -> Markup {
    let named = filter_names(visitor).iter().filter_map(|name| Some((*name, wanted.get(name)?)));
    html! { @for (place, (name, value)) in named.enumerate() {
        @if place > 0 { ", " } (name) " " (foreign_name(value)) }
    }
}
