//! The service at one glance.

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::QueryFields;
use super::hook_states::hook_notices;
use super::layout::{age_since, age_text_of, foreign_name, frame_with, moment, money, state_mark};
use super::queue_choice::counted;
use super::service_charts::load_period;
use super::state::{ConsoleState, OverviewAnswer};
use docmill_operations::dashboard::{ServiceOverview, describe_turns};

/// Milliseconds after which the script loads the overview again.
const FOLLOW_MS: u32 = 5_000;

/// Refuses visitors of one tenant: the page is about all documents.
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
    QueryFields(wanted): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let period = load_period(&state, wanted.get("period")).await?;
    let answer = state.load_overview().await?;
    let service = &answer.service;
    let body = html! { div id="live" data-follow=(FOLLOW_MS) {
        (tiles(&state, &answer))
        @for target in answer.webhooks.iter() {
            @if let Some(since) = target.failing_since {
                p.notice.bad { a href=(state.link("/webhooks")) { "Webhook target " (target.name) } " has been failing since "
                    (moment(since)) ": " (target.last_problem.as_deref().unwrap_or("no answer")) }
            }
        }
        (hook_notices(&state, &service.lanes))
        @for pause in &service.pauses {
            p.notice { "Paused: " (pause.scope) " " (foreign_name(&pause.name)) " by "
                (foreign_name(&pause.paused_by)) " " (foreign_name(&pause.why)) }
        }
        (period.show(&state))
        (queue_section(service))
        (lanes_section(service))
        (local_models_section(service))
        (states_section(&state, service))
        (working_section(&state, service))
        (ended_section(service))
        (failures_section(&state, service))
        p.hint { "Up to two seconds old. Loaded again every five seconds while it is seen; without script by hand." }
    } };
    let scripts = [state.live_script_path()];
    Ok(frame_with(&state, Some(&visitor), "Overview", &body, &scripts))
}

/// A figure that leads to what it counts.
fn tile(name: &str, value: Option<String>, href: &str) -> Markup {
    html! { li { a href=(href) { strong { (value.as_deref().unwrap_or("–")) } (name) } } }
}

fn tiles(state: &ConsoleState, answer: &OverviewAnswer) -> Markup {
    let service = &answer.service;
    let open: i64 = service.in_flight.iter().map(|state| state.count).sum();
    let ready = service.queue.map(|depth| depth.ready.to_string());
    let dead = service.queue.and_then(|depth| depth.dead).map(|dead| dead.to_string());
    let (live, used, slots) =
        (service.workers.live, service.workers.slots_used, service.workers.slots);
    let failed: i64 = service.failures.iter().map(|failure| failure.count).sum();
    let spent = money(answer.cost.as_ref().map_or(0, |sum| sum.cost_nanos));
    let reviews = &answer.reviews;
    let waiting = counted(reviews.to_check + reviews.unreadable);
    let unsent: i64 = answer.webhooks.iter().map(|target| target.open + target.dead).sum();
    let listed = state.link("/ingestions?status=in-progress");
    let failures = state.link("/ingestions?status=failed&since=1day");
    html! {
        ul.tiles {
            (tile("in progress", Some(open.to_string()), &listed))
            (tile("oldest in progress", service.oldest_s.map(age_text_of), "#in-progress"))
            (tile("to review", Some(waiting), &state.link("/reviews")))
            (tile("oldest review", reviews.oldest.map(age_since), &state.link("/reviews")))
            (tile("webhook events unsent", Some(unsent.to_string()), &state.link("/webhooks")))
            (tile("failed within a day", Some(failed.to_string()), &failures))
            (tile("waiting in queue", ready, "#queue"))
            (tile("dead letters", dead, &state.link("/dead-letters")))
            (tile("workers online", Some(live.to_string()), "#running"))
            (tile("slots used", Some(format!("{used} of {slots}")), "#running"))
            (tile("spent today (UTC)", Some(spent), "#charts"))
        }
        @if answer.cost.as_ref().is_some_and(|sum| sum.unpriced_calls > 0) {
            p.hint { "Some calls of today have no price in the configuration." }
        }
    }
}

fn queue_section(service: &ServiceOverview) -> Markup {
    html! {
        div #queue { @if let Some(problem) = &service.queue_problem {
            p.notice.bad { "The queue does not answer: " (problem) }
        } }
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

fn lanes_section(service: &ServiceOverview) -> Markup {
    html! {
        @if !service.lanes.is_empty() {
            h2 { "Calls to providers" }
            div.wide tabindex="0" { table {
                thead { tr { th { "provider" } th { "breaker" } th.number { "under way" } th.number { "wait" } th.number { "a minute at most" } th.number { "workers" } } }
                tbody { @for lane in &service.lanes { tr {
                    td { (lane.provider) " " (lane.model) }
                    td { @if lane.down == 0 && lane.denied == 0 { "closed" }
                        @else { (state_mark("failed")) " open in " (lane.down) " of them"
                            @if lane.denied > 0 { "; denied: credentials or money" } } }
                    td.number { (lane.in_flight) } td.number { (lane.waiting) }
                    td.number { @match lane.rate { Some(rate) => (format!("{:.0}", rate * 60.0)), None => "–" } }
                    td.number { (lane.workers) }
                } } }
            } }
        }
    }
}

/// Models on the machines of workers: their memory, the waiting calls, the free rest.
fn local_models_section(service: &ServiceOverview) -> Markup {
    html! {
        @if !service.local_models.is_empty() {
            h2 { "Models on the workers' machines" }
            div.wide tabindex="0" { table {
                thead { tr { th { "model" } th.number { "MiB needed" } th { "with its workers" } th.number { "under way" } th.number { "wait for memory" } th { "the oldest for" } } }
                tbody { @for model in &service.local_models { tr {
                    td { (model.model) }
                    td.number { @match model.needs_mib { Some(mib) => (mib), None => "all of a device" } }
                    td { (describe_turns(model)) }
                    td.number { (model.running) } td.number { (model.waiting) }
                    td { @match model.oldest_s { Some(age) => (age_text_of(age)), None => "–" } }
                } } }
            } }
        }
        @if !service.local_devices.is_empty() {
            h2 { "Their memory, in MiB" }
            div.wide tabindex="0" { table {
                thead { tr { th { "device" } th { "of" } th.number { "in all" } th.number { "held by models" } th.number { "free" } th { "read" } } }
                tbody { @for device in &service.local_devices { tr {
                    td { (device.device) }
                    td { (device.worker) @if device.workers > 1 { " and " (device.workers - 1) " more" } }
                    td.number { (device.total_mib) } td.number { (device.held_mib) }
                    td.number { (device.free_mib) } td { (age_text_of(device.read_s)) " ago" }
                } } }
            } }
        }
    }
}

fn states_section(state: &ConsoleState, service: &ServiceOverview) -> Markup {
    html! {
        h2 #in-progress { "In progress" }
        @if service.in_flight.is_empty() { p { "No document is in progress." } } @else {
            div.wide tabindex="0" { table {
                thead { tr { th { "state" } th.number { "number" } th { "oldest" } } }
                tbody { @for count in &service.in_flight { tr {
                    td { (state_mark(&count.state)) } td.number { @if count.estimated { "about " } (count.count) }
                    td { (age_text_of(count.oldest_s)) }
                } } }
            } }
            p { a href=(state.link("/ingestions?status=in-progress")) { "List them" } }
        }
    }
}

fn working_section(state: &ConsoleState, service: &ServiceOverview) -> Markup {
    html! {
        h2 #running { "Running now, longest first" }
        @if service.working.is_empty() { p { "No worker has a document in hand." } } @else {
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
        @if service.failures.is_empty() { p { "No failures within a day." } } @else {
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
