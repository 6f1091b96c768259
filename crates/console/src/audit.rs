//! The audit: who did what, when and why, newest first, and whether each row is as it was written.

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use maud::{Markup, html};
use time::OffsetDateTime;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, QueryFields};
use super::layout::{foreign_name, frame_page, moment, state_mark};
use super::overview::require_all_tenants;
use super::state::ConsoleState;
use docmill_operations::inspect::{self, AuditEntry, AuditFilter, AuditPage};

/// Entries of a page.
const PAGE_ENTRIES: u32 = 50;

/// `/audit`.
pub(super) async fn show_audit(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let filter = read_filter(&wanted)?;
    let AuditPage { entries, next } =
        inspect::list_audit(state.database(), &filter, PAGE_ENTRIES).await?;
    let full = entries.len() == usize::try_from(PAGE_ENTRIES).unwrap_or(usize::MAX);
    let next = next
        .map(|link| state.link(&format!("/audit?{}", wanted.with("cursor", &link.to_string()))));
    let body = html! {
        p.hint { "Times are in UTC. The whole chain is checked by " code { "docmill audit" } "." }
        form.filters method="get" action=(state.link("/audit")) {
            div { label for="who" { "Who" }
                input id="who" name="who" placeholder="web:ann" value=(wanted.value("who")); }
            div { label for="action" { "Action or decision" }
                input id="action" name="action" placeholder="cancel" value=(wanted.value("action")); }
            div { label for="target" { "Target" } input id="target" name="target" value=(wanted.value("target")); }
            div { label for="since" { "Within" }
                input id="since" name="since" placeholder="30days" value=(wanted.value("since")); }
            button { "Show" }
        }
        @if entries.is_empty() {
            p { @if next.is_some() { "Nothing was found so far." } @else { "There is no such entry." } }
        } @else { (entries_table(&state, &entries)) }
        @if let Some(href) = next {
            p { a rel="next" href=(href) { @if full { "Next page" } @else { "Look further back" } } }
        }
    };
    Ok(frame_page(&state, Some(&visitor), "Audit", &body))
}

fn read_filter(wanted: &FieldValues) -> Result<AuditFilter, ConsoleFailure> {
    let since = wanted.get("since").map(inspect::parse_look_back).transpose();
    let since = since
        .map_err(|problem| ConsoleFailure::wrong_request(format!("since: {problem}")))?
        .map(|length| OffsetDateTime::now_utc() - length);
    let before = wanted.get("cursor").map(str::parse).transpose();
    let before = before
        .map_err(|_| ConsoleFailure::wrong_request("cursor is the one of the page before"))?;
    Ok(AuditFilter {
        who: wanted.text("who"),
        action: wanted.text("action"),
        target: wanted.text("target"),
        since,
        before,
    })
}

fn entries_table(state: &ConsoleState, entries: &[AuditEntry]) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            thead { tr { th { "When" } th { "Who" } th { "Login" } th { "Action" } th { "Target" } th { "Why" }
                th { "Row" } } }
            tbody { @for entry in entries { tr {
                td { @match entry.at { Some(at) => (moment(at)), None => "–" } }
                td { (foreign_name(entry.who.as_deref().unwrap_or("–"))) }
                td { (foreign_name(entry.login.as_deref().unwrap_or("–"))) }
                td { (entry.action) } td { (target_link(state, entry)) } td { (foreign_name(&entry.why)) }
                td { (state_mark(row_state(entry))) }
            } } }
        } }
    }
}

/// The document of a decision is a link.
fn target_link(state: &ConsoleState, entry: &AuditEntry) -> Markup {
    let target = entry.target.as_deref().unwrap_or("–");
    html! {
        @if entry.source == "document_revision" && entry.target.is_some() {
            a href=(state.link(&format!("/reviews/{target}"))) { (target) }
        } @else { (foreign_name(target)) }
    }
}

fn row_state(entry: &AuditEntry) -> &'static str {
    match (entry.is_whole, entry.action.as_str()) {
        (Some(true), _) => "as written",
        (Some(false), _) => "changed",
        (None, "erased") => "erased",
        (None, _) => "removed",
    }
}
