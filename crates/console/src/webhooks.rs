//! Webhooks: targets, their open and dead deliveries, and replay.

use axum::Extension;
use axum::extract::State;
use axum::response::{Html, Redirect};
use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{PostedForm, QueryFields};
use super::ingestion::require_confirmation;
use super::layout::{age_text_of, foreign_name, form_secret, frame_page, moment, state_mark};
use super::overview::require_all_tenants;
use super::state::ConsoleState;
use docmill_core::config::WebRole;
use docmill_operations::webhooks::{self, COUNTED, DeliveryQuery, DeliveryRow, WebhookTargetState};

/// Deliveries that are shown of a target.
const MAX_SHOWN_ROWS: u32 = 50;

/// `/webhooks`: targets, and of one of them (`?target=`) its open and dead deliveries.
pub(super) async fn show_webhooks(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(asked): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let targets = webhooks::list_targets(state.database()).await?;
    let mut lists = Vec::new();
    if let Some(target) = asked.text("target") {
        for dead in [true, false] {
            let wanted = DeliveryQuery { target: target.clone(), dead, after: None };
            lists.push(webhooks::list_deliveries(state.database(), &wanted, MAX_SHOWN_ROWS).await?);
        }
    }
    let body = html! {
        @if targets.is_empty() { p { "There are no webhooks.targets in the settings." } }
        @else { (targets_table(&state, &targets)) }
        @for rows in &lists { (deliveries_table(&state, &visitor, rows)) }
    };
    Ok(frame_page(&state, Some(&visitor), "Webhooks", &body))
}

fn counted(count: i64) -> String {
    if count < COUNTED { count.to_string() } else { format!("{}+", COUNTED - 1) }
}

fn targets_table(state: &ConsoleState, targets: &[WebhookTargetState]) -> Markup {
    html! {
        div.wide { table {
            thead { tr { th { "target" } th { "place" } th.number { "open" } th { "oldest" } th.number { "dead" } th { "state" } } }
            tbody { @for target in targets { tr {
                td { a href=(state.link(&format!("/webhooks?target={}", target.name))) { (target.name) } }
                td { (foreign_name(&target.place)) } td.number { (counted(target.open)) }
                td { (target.oldest_s.map(age_text_of).unwrap_or_default()) }
                td.number { (counted(target.dead)) }
                td { (target_state(target)) }
            } } }
        } }
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

fn deliveries_table(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    rows: &[DeliveryRow],
) -> Markup {
    html! {
        @if let Some(first) = rows.first() {
            h2 { @if first.state == "dead" { "Dead" } @else { "Open" } }
            p.hint { "At most " (MAX_SHOWN_ROWS) ", oldest first." }
            div.wide { table {
                thead { tr { th { "event" } th { "ingestion" } th { "state" } th.number { "tries" } th { "last problem" } th { "once more" } } }
                tbody { @for row in rows { tr {
                    td { (row.event) " " (moment(row.occurred_at)) }
                    td { @match row.ingestion_id {
                        Some(id) => a href=(state.link(&format!("/ingestions/{id}"))) { (id) },
                        None => "–",
                    } }
                    td { (state_mark(&row.state)) } td.number { (row.tries) }
                    td { (row.last_problem.as_deref().unwrap_or("–")) }
                    td { @if visitor.role >= WebRole::Operator { (replay_form(state, visitor, row)) } @else { "–" } }
                } } }
            } }
        }
    }
}

fn replay_form(state: &ConsoleState, visitor: &ConsoleVisitor, row: &DeliveryRow) -> Markup {
    html! {
        form method="post" action=(state.link("/webhooks/replay")) {
            (form_secret(visitor))
            input type="hidden" name="delivery" value=(row.id);
            input type="hidden" name="target" value=(row.target);
            label { input type="checkbox" name="confirm" value="yes" required; " I mean it" }
            button { "Replay" }
        }
    }
}

/// `POST /webhooks/replay`.
pub(super) async fn post_replay(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    require_confirmation(&form)?;
    let id = form.get("delivery").and_then(|text| text.parse().ok());
    let id: i64 = id.ok_or_else(|| ConsoleFailure::wrong_request("There is no such delivery."))?;
    let done =
        webhooks::replay_deliveries(state.database(), &[id], &visitor.audit_note("")).await?;
    if done.replayed.is_empty() {
        return Err(ConsoleFailure::conflict("It is gone, or is being sent at this moment."));
    }
    let target = form.text("target").unwrap_or_default();
    let target: String = form_urlencoded::byte_serialize(target.as_bytes()).collect();
    Ok(Redirect::to(&state.link(&format!("/webhooks?target={target}"))))
}
