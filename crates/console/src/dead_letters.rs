//! Dead letters: messages that the queue gave up, and sending them again.

use std::collections::HashSet;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{Html, Redirect};
use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::ingestion::require_confirmation;
use super::layout::{form_secret, frame_page, state_mark};
use super::overview::require_all_tenants;
use super::state::ConsoleState;
use docmill_core::config::WebRole;
use docmill_core::fault::Fault;
use docmill_core::model::OutcomeReason;
use docmill_operations::dead::{self, DeadLetterView, LetterChoice};

/// Dead letters that are shown, and that are sent again by one selection.
const MAX_LETTERS: usize = 50;
/// How long a page waits for the end of a redrive.
const REDRIVE_WAIT: Duration = Duration::from_secs(20);

/// `/dead-letters`: messages that the queue gave up; they stay where they are.
pub(super) async fn show_dead_letters(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let letters = match dead::list_letters(state.database(), state.queue(), MAX_LETTERS).await {
        Ok(letters) => letters,
        Err(error) if error.fault == Fault::Misconfigured => {
            return Err(ConsoleFailure::conflict(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    let body = html! {
        @if let Some(done) = wanted.get("done") { p.notice role="status" { (words_of_redrive(done)) } }
        p.hint { "At most " (MAX_LETTERS) " are shown." }
        @if letters.is_empty() { p { "No dead letters. Messages that the queue gives up would be here." } }
        @else if visitor.role >= WebRole::Operator { (redrive_form(&state, &visitor, &letters)) }
        @else { (letters_table(&state, &letters, false)) }
    };
    Ok(frame_page(&state, Some(&visitor), "Dead letters", &body))
}

fn letters_table(state: &ConsoleState, letters: &[DeadLetterView], is_selectable: bool) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            thead { tr { @if is_selectable { th { "Select" } }
                th { "Ingestion" } th { "State" } th { "Reason" } th.number { "Tries" } th { "Sent (UTC)" } } }
            tbody { @for letter in letters { tr {
                @if is_selectable { td { input type="checkbox" name="letter" value=(letter.message_id)
                    aria-label={ "Select message " (letter.message_id) }; } }
                td { @match letter.ingestion {
                    Some(id) => a href=(state.link(&format!("/ingestions/{id}"))) { (id) },
                    None => (letter.message_id),
                } }
                td { (state_mark(&letter.state)) } td { (letter.reason.as_deref().unwrap_or("–")) }
                td.number { (letter.receive_count) } td { (letter.sent_at.as_deref().unwrap_or("–")) }
            } } }
        } }
    }
}

fn redrive_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    letters: &[DeadLetterView],
) -> Markup {
    html! {
        form method="post" action=(state.link("/dead-letters/redrive")) {
            (form_secret(visitor))
            (letters_table(state, letters, true))
            p { "Failed ingestions are opened again, open ones are sent, and letters of those that \
                 ended otherwise are removed." }
            div.field { label for="redrive-why" { "Why" } input id="redrive-why" name="why"; }
            p { label { input type="checkbox" name="confirm" value="yes" required; " I mean it" } }
            div.actions { button.first name="which" value="selected" { "Send the selected again" } }
            details {
                summary { "Also those that are not shown…" }
                div.field { label for="reason" { "Only those that failed for this reason" }
                    select id="reason" name="reason" { option value="" { "any" }
                        @for code in OutcomeReason::ALL.map(OutcomeReason::code) {
                            option value=(code) { (code) } } } }
                div.actions { button name="which" value="all" { "Send all again" } }
            }
        }
    }
}

/// The letters that a form means.
///
/// # Errors
/// None or too many are ticked; the form names none.
fn read_choice(form: &FieldValues) -> Result<LetterChoice, ConsoleFailure> {
    match form.get("which") {
        Some("all") => Ok(form.text("reason").map_or(LetterChoice::All, LetterChoice::Reason)),
        Some("selected") => {
            let ids: HashSet<String> = form.all("letter").map(str::to_owned).collect();
            if (1..=MAX_LETTERS).contains(&ids.len()) {
                return Ok(LetterChoice::Named(ids));
            }
            let text = format!("Select 1 to {MAX_LETTERS} letters.");
            Err(ConsoleFailure::wrong_request(text))
        }
        _ => Err(ConsoleFailure::wrong_request("Say which: selected or all.")),
    }
}

/// `POST /dead-letters/redrive`.
pub(super) async fn post_redrive(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    require_confirmation(&form)?;
    let (database, queue) = (state.database().clone(), state.queue_handle());
    let (choice, by) =
        (read_choice(&form)?, visitor.audit_note(form.get("why").unwrap_or_default()));
    // It continues after the client has gone: half of a batch would stay hidden for minutes.
    let redrive = tokio::spawn(async move {
        let done = dead::redrive_letters(&database, queue.as_ref(), &choice, &by).await;
        if let Err(error) = &done {
            tracing::error!(error = %error, "dead letters could not all be sent again: {error}");
        }
        done
    });
    let done = match tokio::time::timeout(REDRIVE_WAIT, redrive).await {
        Ok(Ok(done)) => {
            let done = done?;
            format!("{}-{}-{}", done.sent.len() + done.as_they_were, done.cleared, done.left)
        }
        Ok(Err(_panicked)) => {
            return Err(ConsoleFailure::from_status(StatusCode::INTERNAL_SERVER_ERROR));
        }
        Err(_elapsed) => "going-on".to_owned(),
    };
    Ok(Redirect::to(&state.link(&format!("/dead-letters?done={done}"))))
}

/// Words for the result of a redrive in the address; other texts give nothing.
fn words_of_redrive(done: &str) -> String {
    if done == "going-on" {
        return "They are being sent, and that goes on. Look again in a moment.".to_owned();
    }
    let counts: Vec<u64> = done.split('-').filter_map(|count| count.parse().ok()).collect();
    match counts.as_slice() {
        [sent, cleared, left] => format!(
            "Sent again: {sent}. Gone, because what they stood for has ended: {cleared}. Left: {left}."
        ),
        _ => String::new(),
    }
}
