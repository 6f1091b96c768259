//! One change of many ingestions: of the rows that were selected in a list, or of all that match its filter.
//!
//! Two steps, without script: a page that counts what is meant, and the change itself. A request
//! changes at most [`MAX_TOGETHER`] ingestions; its answer offers to continue with the rest.

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::chosen_ingestions::{
    ChosenIngestions, IngestionChoice, back_to_list, choice_words, counted_ingestions,
    hidden_choice,
};
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::ingestion::{require_confirmation, words_of_action};
use super::layout::{form_secret, frame_page};
use super::list_filters::hidden_fields;
use super::state::ConsoleState;
use docmill_core::model::{IngestionId, Priority};
use docmill_operations::retry::{
    self, CourseChange, IngestionAction, IngestionChange, MAX_TOGETHER,
};

/// Problems that are shown one by one.
const MAX_SHOWN_PROBLEMS: usize = 20;

/// The change of this name, as far as the visitor may make it.
///
/// # Errors
/// There is none, or it is a more urgent priority than the visitor gives.
pub(super) fn read_change(
    visitor: &ConsoleVisitor,
    name: &str,
) -> Result<CourseChange, ConsoleFailure> {
    let priority = match name {
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

async fn load_changeable(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
) -> Result<ChosenIngestions, ConsoleFailure> {
    let choice = IngestionChoice::read(visitor, wanted)?;
    choice.require_changeable()?;
    choice.load(state, visitor).await
}

/// `/ingestions/change`: counts what is meant, and asks for the change.
pub(super) async fn show_change(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    let chosen = load_changeable(&state, &visitor, &wanted).await?;
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
        p { (choice_words(visitor, wanted, chosen))
            @if chosen.has_more { " The newest " (count) " are changed first." } }
        form method="post" action=(state.link("/ingestions/change")) {
            (form_secret(visitor))
            (hidden_choice(visitor, wanted, false))
            div.field { label for="change" { "Change" }
                select id="change" name="change" required {
                    option value="" { "choose" }
                    option value="retry" selected[wanted.get("status") == Some("failed")] { "Retry: work on them once more" }
                    option value="cancel" { "Cancel those in progress" }
                    @for priority in Priority::ALL.into_iter().filter(|it| *it >= visitor.highest_priority) {
                        option value=(priority.code()) { "Priority " (priority.code()) " for those in progress" }
                    }
                } }
            div.field { label for="why" { "Why" } input id="why" name="why"; }
            p { label { input type="checkbox" name="confirm" value="yes" required; " Change " (counted_ingestions(count)) } }
            button.first { "Change them" }
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
    let change = read_change(&visitor, form.value("change"))?;
    let chosen = load_changeable(&state, &visitor, &form).await?;
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
            (hidden_fields(form, &["change", "why", "confirm"]))
            (hidden_choice(visitor, form, true))
            input type="hidden" name="cursor" value=(last);
            p { "Older ones match as well." }
            button.first { "Go on with the next " (MAX_TOGETHER) }
        }
    }
}
