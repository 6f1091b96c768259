//! Webhooks: targets, their open and dead deliveries, and replay; and hooks.

use axum::Extension;
use axum::extract::State;
use axum::response::{Html, Redirect};
use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{PostedForm, QueryFields};
use super::hook_states::hooks_table;
use super::ingestion::require_confirmation;
use super::layout::{age_text_of, foreign_name, form_secret, frame_page, moment, state_mark};
use super::overview::require_all_tenants;
use super::state::ConsoleState;
use docmill_core::config::WebRole;
use docmill_operations::dashboard::sum_lanes;
use docmill_operations::webhooks::{self, COUNTED, DeliveryQuery, DeliveryRow, WebhookTargetState};

/// Deliveries that are shown of a target.
const MAX_SHOWN_ROWS: u32 = 50;
/// Deliveries that are replayed by one selection.
const MAX_SELECTED: usize = 100;

/// `/webhooks`: targets, and of one of them (`?target=`) its open and dead deliveries; hooks.
pub(super) async fn show_webhooks(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(asked): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let targets = webhooks::list_targets(state.database()).await?;
    let lanes = sum_lanes(state.database()).await?;
    let mut lists = Vec::new();
    if let Some(target) = asked.text("target") {
        for dead in [true, false] {
            let wanted = DeliveryQuery { target: target.clone(), dead, after: None };
            lists.push(webhooks::list_deliveries(state.database(), &wanted, MAX_SHOWN_ROWS).await?);
        }
    }
    let body = html! {
        @if targets.is_empty() { p { "There are no webhooks.targets in the settings." } }
        @else { (targets_table(&state, &visitor, &targets)) }
        @for rows in &lists { (deliveries_form(&state, &visitor, rows)) }
        (hooks_table(&lanes))
    };
    Ok(frame_page(&state, Some(&visitor), "Webhooks", &body))
}

fn counted(count: i64) -> String {
    if count < COUNTED { count.to_string() } else { format!("{}+", COUNTED - 1) }
}

fn targets_table(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    targets: &[WebhookTargetState],
) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            thead { tr { th { "target" } th { "place" } th { "state" } th.number { "open" } th { "oldest" }
                th.number { "dead" } th { "last answer" } th { "test" } } }
            tbody { @for target in targets { tr {
                td { a href=(state.link(&format!("/webhooks?target={}", target.name))) { (target.name) } }
                td { (foreign_name(&target.place)) } td { (target_state(target)) }
                td.number { (counted(target.open)) }
                td { (target.oldest_s.map(age_text_of).unwrap_or_default()) }
                td.number { (counted(target.dead)) }
                td { (last_answer(target)) }
                td { (last_test(target))
                    @if visitor.role >= WebRole::Operator { (test_form(state, visitor, target)) } }
            } } }
        } }
    }
}

/// Status and time of an answer.
fn answer_words(status: Option<i32>, ms: Option<i32>) -> String {
    let status = status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
    ms.map_or_else(|| status.clone(), |ms| format!("{status} in {ms} ms"))
}

fn last_answer(target: &WebhookTargetState) -> Markup {
    html! {
        @match target.tried_at {
            Some(at) => { (answer_words(target.answer_status, target.answer_ms)) ", " (moment(at)) },
            None => "none yet",
        }
    }
}

/// The result of the last test, or that none was sent.
fn last_test(target: &WebhookTargetState) -> Markup {
    html! {
        @match (target.test_asked_at, target.test_ended_at) {
            (None, _) => "",
            (Some(at), None) => { "asked " (moment(at)) ", not sent yet: load the page again " },
            (Some(_), Some(at)) => {
                (state_mark(if target.test_problem.is_some() { "failing" } else { "healthy" })) " "
                (answer_words(target.test_status, target.test_ms)) ", " (moment(at)) " "
                (target.test_problem.as_deref().unwrap_or_default())
            },
        }
    }
}

fn test_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    target: &WebhookTargetState,
) -> Markup {
    html! {
        form method="post" action=(state.link("/webhooks/test")) {
            (form_secret(visitor))
            input type="hidden" name="target" value=(target.name);
            button { "Send a test" }
        }
    }
}

/// Healthy, failing since when and how, or disabled.
fn target_state(target: &WebhookTargetState) -> Markup {
    html! {
        @match (target.disabled_at, target.failing_since) {
            (Some(at), _) => { (state_mark("disabled")) " since " (moment(at)) ": " (target.disabled_why) },
            (None, Some(since)) => { (state_mark("failing")) " since " (moment(since)) ": "
                (target.last_problem.as_deref().unwrap_or("no answer")) },
            (None, None) => (state_mark("healthy")),
        }
    }
}

/// Deliveries of one state; operators choose which are sent again.
fn deliveries_form(state: &ConsoleState, visitor: &ConsoleVisitor, rows: &[DeliveryRow]) -> Markup {
    let Some(first) = rows.first() else { return html! {} };
    let (dead, operates) = (first.state == "dead", visitor.role >= WebRole::Operator);
    html! {
        h2 { @if dead { "Dead" } @else { "Open" } }
        p.hint { "At most " (MAX_SHOWN_ROWS) ", oldest first." }
        form method="post" action=(state.link("/webhooks/replay")) {
            (form_secret(visitor))
            input type="hidden" name="target" value=(first.target);
            (deliveries_table(state, rows, operates))
            @if operates {
                p { label { input type="checkbox" name="confirm" value="yes" required; " Send them again" } }
                button name="which" value="selected" { "Replay selected" }
                @if dead { " " button name="which" value="dead" { "Replay all dead of the target" } }
            }
        }
    }
}

fn deliveries_table(state: &ConsoleState, rows: &[DeliveryRow], operates: bool) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            thead { tr { @if operates { th { "select" } } th { "event" } th { "ingestion" } th { "state" }
                th.number { "tries" } th { "last problem" } } }
            tbody { @for row in rows { tr {
                @if operates { td { input type="checkbox" name="delivery" value=(row.id)
                    aria-label=(format!("Select delivery {}", row.id)); } }
                td { (row.event) " " (moment(row.occurred_at)) }
                td { @match row.ingestion_id {
                    Some(id) => a href=(state.link(&format!("/ingestions/{id}"))) { (id) },
                    None => "–",
                } }
                td { (state_mark(&row.state)) } td.number { (row.tries) }
                td { (row.last_problem.as_deref().unwrap_or("–")) }
            } } }
        } }
    }
}

fn target_link(state: &ConsoleState, target: &str) -> String {
    let target: String = form_urlencoded::byte_serialize(target.as_bytes()).collect();
    state.link(&format!("/webhooks?target={target}"))
}

/// `POST /webhooks/replay`: the chosen deliveries, or all dead ones of a target.
pub(super) async fn post_replay(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    require_confirmation(&form)?;
    let (target, by) = (form.value("target"), visitor.audit_note(""));
    let done = match form.get("which") {
        Some("dead") => webhooks::replay_dead(state.database(), target, &by).await?,
        Some("selected") => {
            let ids: Result<Vec<i64>, _> = form.all("delivery").map(str::parse).collect();
            let ids =
                ids.map_err(|_| ConsoleFailure::wrong_request("There is no such delivery."))?;
            if !(1..=MAX_SELECTED).contains(&ids.len()) {
                let text = format!("Select 1 to {MAX_SELECTED} deliveries.");
                return Err(ConsoleFailure::wrong_request(text));
            }
            webhooks::replay_deliveries(state.database(), &ids, &by).await?
        }
        _ => return Err(ConsoleFailure::wrong_request("Say which: selected or dead.")),
    };
    if done.replayed.is_empty() {
        return Err(ConsoleFailure::conflict("None is there, or all are being sent just now."));
    }
    Ok(Redirect::to(&target_link(&state, target)))
}

/// `POST /webhooks/test`.
pub(super) async fn post_test(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let target = form.value("target");
    match webhooks::ask_test(state.database(), target, &visitor.audit_note("")).await? {
        true => Ok(Redirect::to(&target_link(&state, target))),
        false => Err(ConsoleFailure::missing()),
    }
}
