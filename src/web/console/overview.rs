//! The service at one glance, and its dead letters.

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::layout::{age_text_of, foreign_name, frame_page, moment, state_mark};
use super::state::{ConsoleState, OverviewAnswer};
use crate::ops::dashboard::ServiceOverview;
use crate::ops::dead;
use docmill_core::fault::Fault;

/// Dead letters that are shown.
const LETTERS: usize = 50;

/// Everybody's documents together: not for visitors who see one tenant alone.
pub(super) fn require_all_tenants(visitor: &ConsoleVisitor) -> Result<(), ConsoleFailure> {
    match visitor.tenant {
        None => Ok(()),
        Some(_) => {
            let text = "This tells of all tenants, and your token is for one of them.";
            Err(ConsoleFailure::forbidden(text))
        }
    }
}

/// `/overview`.
pub(super) async fn show_overview(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
) -> Result<Html<String>, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let answer = state.load_overview().await?;
    let service = &answer.service;
    let body = html! {
        (tiles(&answer))
        @for pause in &service.pauses {
            p.notice { "Paused: " (pause.scope) " " (foreign_name(&pause.name)) " by "
                (foreign_name(&pause.paused_by)) " " (foreign_name(&pause.why)) }
        }
        (queue_section(service))
        (states_section(&state, service))
        (working_section(&state, service))
        (ended_section(service))
        (failures_section(&state, service))
        p.hint { "Up to two seconds old. Load the page again for what is new." }
    };
    Ok(frame_page(&state, Some(&visitor), "Overview", &body))
}

fn tiles(answer: &OverviewAnswer) -> Markup {
    let service = &answer.service;
    let open: i64 = service.in_flight.iter().map(|state| state.count).sum();
    let ready = service.queue.map(|depth| depth.ready.to_string());
    let dead = service.queue.and_then(|depth| depth.dead).map(|dead| dead.to_string());
    let oldest = service.oldest_s.map(age_text_of);
    let workers = service.workers;
    let (live, used, slots) = (workers.live, workers.slots_used, workers.slots);
    let tile = |name: &str, value: Option<String>| {
        html! { li { strong { (value.as_deref().unwrap_or("–")) } (name) } }
    };
    html! {
        ul.tiles {
            (tile("not ended", Some(open.to_string())))
            (tile("oldest of these", oldest))
            (tile("messages ready", ready))
            (tile("dead letters", dead))
            (tile("workers seen", Some(live.to_string())))
            (tile("slots used", Some(format!("{used} of {slots}"))))
            (tile("spent today (UTC)", Some(money(answer.cost.as_ref().map_or(0, |sum| sum.cost_nanos)))))
        }
        @if answer.cost.as_ref().is_some_and(|sum| sum.unpriced_calls > 0) {
            p.hint { "Some calls of today have no price in the configuration." }
        }
    }
}

/// Billionths of the currency, to the hundredth.
pub(super) fn money(nanos: i64) -> String {
    format!("{}.{:02}", nanos / 1_000_000_000, nanos.rem_euclid(1_000_000_000) / 10_000_000)
}

fn queue_section(service: &ServiceOverview) -> Markup {
    html! {
        @if let Some(problem) = &service.queue_problem {
            p.notice.bad { "The queue does not answer: " (problem) }
        }
        @if !service.tiers.is_empty() {
            h2 { "Messages by tier" }
            div.wide tabindex="0" { table {
                thead { tr { th { "tier" } th.number { "ready" } th.number { "hidden" } th.number { "delayed" } } }
                tbody { @for tier in &service.tiers { tr {
                    td { (tier.priority.code()) } td.number { (tier.ready) }
                    td.number { (tier.in_flight) } td.number { (tier.delayed) }
                } } }
            } }
        }
    }
}

fn states_section(state: &ConsoleState, service: &ServiceOverview) -> Markup {
    html! {
        h2 { "Not ended" }
        @if service.in_flight.is_empty() { p { "Nothing." } } @else {
            div.wide tabindex="0" { table {
                thead { tr { th { "state" } th.number { "number" } th { "oldest" } } }
                tbody { @for count in &service.in_flight { tr {
                    td { (state_mark(&count.state)) } td.number { (count.count) }
                    td { (age_text_of(count.oldest_s)) }
                } } }
            } }
            p { a href=(state.link("/ingestions?status=in-progress")) { "List them" } }
        }
    }
}

fn working_section(state: &ConsoleState, service: &ServiceOverview) -> Markup {
    html! {
        h2 { "Worked on, longest first" }
        @if service.working.is_empty() { p { "Nothing." } } @else {
            div.wide tabindex="0" { table {
                thead { tr { th { "ingestion" } th { "stage" } th { "for" } th { "kind" } th { "worker" } th.number { "attempt" } } }
                tbody { @for job in &service.working { tr {
                    td { a href=(state.link(&format!("/ingestions/{}", job.ingestion_id))) { (job.ingestion_id) } }
                    td { (job.stage.as_deref().unwrap_or("–")) } td { (age_text_of(job.age_s)) }
                    td { (job.kind.as_deref().unwrap_or("–")) } td { (job.worker.as_deref().unwrap_or("–")) }
                    td.number { (job.attempt_count) }
                } } }
            } }
        }
    }
}

fn ended_section(service: &ServiceOverview) -> Markup {
    html! {
        h2 { "Ended" }
        div.wide tabindex="0" { table {
            thead { tr { th { "within" } th.number { "completed" } th.number { "of these flagged" } th.number { "failed" } th.number { "cancelled" } } }
            tbody { @for ended in &service.throughput { tr {
                td { (ended.minutes) " min" } td.number { (ended.completed) } td.number { (ended.flagged) }
                td.number { (ended.failed) } td.number { (ended.cancelled) }
            } } }
        } }
    }
}

fn failures_section(state: &ConsoleState, service: &ServiceOverview) -> Markup {
    html! {
        h2 { "Failed within a day" }
        @if service.failures.is_empty() { p { "Nothing." } } @else {
            div.wide tabindex="0" { table {
                thead { tr { th { "reason" } th.number { "number" } th { "latest" } } }
                tbody { @for failure in &service.failures { tr {
                    td { a href=(state.link(&format!("/ingestions?status=failed&reason={}", failure.reason))) { (failure.reason) } }
                    td.number { (failure.count) } td { (moment(failure.latest)) }
                } } }
            } }
        }
    }
}

/// `/dead-letters`: messages that the queue gave up; they stay where they are.
pub(super) async fn show_dead_letters(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
) -> Result<Html<String>, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let letters = match dead::list_letters(state.database(), state.queue(), LETTERS).await {
        Ok(letters) => letters,
        Err(error) if error.fault == Fault::Misconfigured => {
            return Err(ConsoleFailure::conflict(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    let body = html! {
        p.hint { "At most " (LETTERS) ". They are brought back by: docmill dead redrive" }
        @if letters.is_empty() { p { "None." } } @else {
            div.wide tabindex="0" { table {
                thead { tr { th { "ingestion" } th { "its state" } th { "reason" } } }
                tbody { @for letter in &letters { tr {
                    td { @match letter.ingestion {
                        Some(id) => a href=(state.link(&format!("/ingestions/{id}"))) { (id) },
                        None => (letter.message_id),
                    } }
                    td { (state_mark(&letter.state)) } td { (letter.reason.as_deref().unwrap_or("–")) }
                } } }
            } }
        }
    };
    Ok(frame_page(&state, Some(&visitor), "Dead letters", &body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_told_to_the_hundredth() {
        assert_eq!((money(0), money(1_239_999_999)), ("0.00".to_owned(), "1.23".to_owned()));
    }
}
