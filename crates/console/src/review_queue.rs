//! The review queue: the waiting documents, their order, and the list.
//!
//! Not promised: places in the order of amounts beyond the first page of it.

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use maud::{Markup, html};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, QueryFields};
use super::findings::explain_reason;
use super::layout::{
    age_since, foreign_name, form_secret, frame_page, next_link, state_mark, visible_text,
};
use super::listing::{PAGE_ROWS, read_cursor};
use super::queue_choice::{QueueChoice, counted, read_filter};
use super::review_desk::done_notice;
use super::saved_view_page::view_links;
use super::state::ConsoleState;
use docmill_core::config::WebRole;
use docmill_gate::kinds::Kind;
use docmill_operations::review::{
    self, ReviewCounts, ReviewFilter, ReviewOrder, ReviewPart, ReviewRow,
};
use docmill_operations::saved_views::ViewedList;

/// Reasons of a document that its row shows.
const MAX_SHOWN_REASONS: usize = 2;

/// One page of the queue.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReviewPage {
    /// The rows, those that wait longest first.
    #[serde(rename = "items")]
    pub(super) rows: Vec<ReviewRow>,
    /// The cursor of the next page; `None`: this was the last.
    #[serde(rename = "next_cursor")]
    pub(super) next: Option<Uuid>,
}

/// All documents that a query string asks for, as far as the visitor sees them.
pub(super) async fn load_queue(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
    limit: u32,
) -> Result<ReviewPage, ConsoleFailure> {
    load_part(state, &read_filter(visitor, wanted)?, wanted, limit).await
}

async fn load_part(
    state: &ConsoleState,
    query: &ReviewFilter,
    wanted: &FieldValues,
    limit: u32,
) -> Result<ReviewPage, ConsoleFailure> {
    let after = match query.order {
        ReviewOrder::Age => read_cursor(wanted)?,
        ReviewOrder::Amount => None,
    };
    let asked = limit.saturating_add(1);
    let mut rows = review::list_reviews(state.database(), query, asked, after).await?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > most;
    rows.truncate(most);
    let goes_on = more && query.order == ReviewOrder::Age;
    let next = rows.last().filter(|_| goes_on).map(|row| row.document_id);
    Ok(ReviewPage { rows, next })
}

/// `/reviews`.
pub(super) async fn show_reviews(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    let choice = QueueChoice::read(&visitor, &wanted)?;
    let page = load_part(&state, &choice.filter, &wanted, PAGE_ROWS).await?;
    let (tenant, who) = (visitor.tenant.as_deref(), visitor.audit_name());
    let counts = review::count_reviews(state.database(), tenant, &who).await?;
    let reasons = review::list_reasons(state.database(), tenant).await?;
    let next = page
        .next
        .map(|id| state.link(&format!("/reviews?{}", wanted.with("cursor", &id.to_string()))));
    let next_path = state.link(&choice.path("/reviews/next", &[]));
    let body = html! {
        (done_notice(&state, &visitor, &wanted, None).await?)
        (part_tabs(&state, &visitor, &choice, &counts))
        @if visitor.role >= WebRole::Reviewer && !page.rows.is_empty() {
            form method="post" action=(next_path) {
                (form_secret(&visitor))
                button.first { "Start reviewing" }
            }
        }
        (queue_filters(&state, &visitor, &wanted, &reasons))
        (view_links(&state, &visitor, ViewedList::Reviews, &wanted).await?)
        @if page.rows.is_empty() { (empty_queue(&state, &choice, &counts)) }
        @else { (queue_table(&state, &visitor, &choice, &page.rows)) }
        (next_link(next))
    };
    Ok(frame_page(&state, Some(&visitor), "Review", &body))
}

/// The parts of the queue with their counts.
fn part_tabs(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    choice: &QueueChoice,
    counts: &ReviewCounts,
) -> Markup {
    let tabs = [
        ("", "To check", counts.to_check, true),
        ("unreadable", "Unreadable", counts.unreadable, true),
        ("later", "Later", counts.later, visitor.role >= WebRole::Reviewer),
    ];
    let shown = choice.part();
    html! {
        nav.tabs aria-label="Parts of the queue" { ul {
            @for (part, name, count, _) in tabs.iter().filter(|(.., is_for)| *is_for) {
                li { a href=(state.link(&choice.path_of_part(part)))
                    aria-current=[(*part == shown).then_some("page")] {
                    (name) " " span.count { (counted(*count)) } } }
            }
        } }
    }
}

/// Why a list of the queue is empty, and what to do next.
fn empty_queue(state: &ConsoleState, choice: &QueueChoice, counts: &ReviewCounts) -> Markup {
    html! {
        @if choice.is_narrowed() {
            p { "No documents match. " a href=(state.link("/reviews")) { "Clear filters" } }
        } @else if matches!(choice.filter.part, ReviewPart::Later(_)) {
            p { "You have set nothing aside. What you skip with “Later” is kept here for a day." }
        } @else if matches!(choice.filter.part, ReviewPart::Unreadable(_)) {
            p { "No document is unreadable. Documents of which nothing could be read would be here." }
        } @else {
            p { "No document needs review. "
                @if counts.unreadable > 0 { (counted(counts.unreadable)) " unreadable ones wait in a part of their own. " }
                @if counts.later > 0 { "You have set " (counted(counts.later)) " aside for later." } }
        }
    }
}

/// The rows; for reviewers with a box to tick before each, and what can be done with those.
fn queue_table(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    choice: &QueueChoice,
    rows: &[ReviewRow],
) -> Markup {
    let decides = visitor.role >= WebRole::Reviewer;
    let table = html! {
        div.wide { table {
            thead { tr { @if decides { th { "Select" } }
                th { "Document" } th { "Kind" } th { "Tenant" } th { "Needs attention" } th { "Status" } th.number { "Amount" } th { "Open by" } th { "Waiting" } } }
            tbody { @for row in rows { (queue_row(state, choice, row, decides)) } }
        } }
    };
    let (change, export) = (state.link("/ingestions/change"), state.link("/ingestions/export"));
    html! {
        @if decides {
            form method="get" action=(state.link("/reviews/reject")) {
                (choice.hidden())
                (table)
                div.actions {
                    button name="of" value="documents" { "Reject the selected…" }
                    button name="of" value="waiting" { "Reject all that match…" }
                    button name="of" value="documents" formaction=(export) { "Export the selected…" }
                    button name="of" value="waiting" formaction=(export) { "Export all that match…" }
                    @if visitor.role >= WebRole::Operator {
                        button name="of" value="documents" formaction=(change) { "Change the selected…" }
                    }
                }
            }
        } @else { (table) }
    }
}

fn queue_row(
    state: &ConsoleState,
    choice: &QueueChoice,
    row: &ReviewRow,
    is_selectable: bool,
) -> Markup {
    let path = choice.path(&format!("/reviews/{}", row.document_id), &[]);
    let kind = state.kinds().for_name(row.kind.as_deref()).map(|kind| &**kind);
    let name = row.original_name.as_ref().unwrap_or(&row.file_path);
    html! {
        tr {
            @if is_selectable {
                td { input type="checkbox" name="id" value=(row.document_id) aria-label={ "Select " (visible_text(name)) }; }
            }
            td { a href=(state.link(&path)) { (foreign_name(name)) } }
            td { (row.kind.as_deref().unwrap_or("–")) }
            td { (foreign_name(row.tenant.as_deref().unwrap_or("–"))) }
            td.reasons { (reasons_in_words(kind, &row.review_reasons)) @if row.decided_before { " (decided before)" } }
            td { @match row.status.as_deref() {
                // Green would suggest that nothing is left to do.
                Some("completed") | None => "–",
                Some(status) => (state_mark(status)),
            } }
            td.number { @match row.amount { Some(amount) => (format!("{amount:.2}")), None => "–" }
                @if let Some(currency) = &row.currency { " " (foreign_name(currency)) } }
            td { @if let Some(who) = &row.held_by { (foreign_name(who))
                @if let Some(since) = row.held_since { " since " (review::clock_time(since)) } } @else { "–" } }
            td { (age_since(row.since)) }
        }
    }
}

/// The first reasons of a document as its reviewers read them, with their codes as title.
pub(super) fn reasons_in_words(kind: Option<&Kind>, codes: &[String]) -> Markup {
    let mut words: Vec<String> = Vec::new();
    for finding in codes.iter().map(|code| explain_reason(kind, code)) {
        let text = finding.summary();
        if !words.contains(&text) {
            words.push(text);
        }
    }
    html! {
        span title=(codes.join(", ")) {
            (words.iter().take(MAX_SHOWN_REASONS).cloned().collect::<Vec<_>>().join(" · "))
            @if words.len() > MAX_SHOWN_REASONS { " · " (words.len() - MAX_SHOWN_REASONS) " more" }
        }
    }
}

fn queue_filters(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
    reasons: &[String],
) -> Markup {
    let kind = state.kinds().for_name(wanted.get("kind")).map(|kind| &**kind);
    let chosen = wanted.value("reason");
    let unlisted = !chosen.is_empty() && !reasons.iter().any(|code| code == chosen);
    html! {
        form.filters method="get" action=(state.link("/reviews")) {
            @if let Some(part) = wanted.get("part") { input type="hidden" name="part" value=(part); }
            div { label for="kind" { "Kind" }
                select id="kind" name="kind" { option value="" { "any" }
                    @for kind in state.kinds().iter() {
                        option value=(kind.name) selected[wanted.get("kind") == Some(kind.name.as_str())] { (kind.title) } } } }
            @if visitor.tenant.is_none() {
                div { label for="tenant" { "Tenant" } input id="tenant" name="tenant" value=(wanted.value("tenant")); }
            }
            div { label for="reason" { "Reason" }
                select id="reason" name="reason" { option value="" { "any" }
                    @if unlisted { option value=(chosen) selected { (chosen) } }
                    @for code in reasons { option value=(code) selected[code == chosen] {
                        (explain_reason(kind, code).summary()) " (" (code) ")" } } } }
            div { label for="order" { "Order" }
                select id="order" name="order" {
                    option value="age" { "oldest first" }
                    option value="amount" selected[wanted.get("order") == Some("amount")] { "largest amount of each currency first" } } }
            button { "Show" }
        }
    }
}
