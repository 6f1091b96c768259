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
use super::layout::{age_since, foreign_name, form_secret, frame_page, next_link, state_mark};
use super::listing::{PAGE_ROWS, read_cursor};
use super::review_desk::done_notice;
use super::state::ConsoleState;
use docmill_core::config::WebRole;
use docmill_operations::review::{self, ReviewFilter, ReviewOrder, ReviewRow};

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

/// The documents that a query string asks for, as far as the visitor sees them.
pub(super) async fn load_queue(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
    limit: u32,
) -> Result<ReviewPage, ConsoleFailure> {
    let query = ReviewFilter {
        tenant: visitor.narrow_tenant(wanted.text("tenant")),
        kind: wanted.text("kind"),
        reason: wanted.text("reason"),
        order: read_order(wanted)?,
    };
    let after = match query.order {
        ReviewOrder::Age => read_cursor(wanted)?,
        ReviewOrder::Amount => None,
    };
    let asked = limit.saturating_add(1);
    let mut rows = review::list_reviews(state.database(), &query, asked, after).await?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > most;
    rows.truncate(most);
    let goes_on = more && query.order == ReviewOrder::Age;
    let next = rows.last().filter(|_| goes_on).map(|row| row.document_id);
    Ok(ReviewPage { rows, next })
}

fn read_order(wanted: &FieldValues) -> Result<ReviewOrder, ConsoleFailure> {
    match wanted.get("order") {
        None | Some("age") => Ok(ReviewOrder::Age),
        Some("amount") => Ok(ReviewOrder::Amount),
        Some(_) => Err(ConsoleFailure::wrong_request("order is age or amount")),
    }
}

/// `/reviews`.
pub(super) async fn show_reviews(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    let page = load_queue(&state, &visitor, &wanted, PAGE_ROWS).await?;
    let next = page
        .next
        .map(|id| state.link(&format!("/reviews?{}", wanted.with("cursor", &id.to_string()))));
    let body = html! {
        (done_notice(&state, &visitor, &wanted, None).await?)
        @if visitor.role >= WebRole::Reviewer && !page.rows.is_empty() {
            form method="post" action=(state.link("/reviews/next")) {
                (form_secret(&visitor))
                button { "Begin with the first free one" }
            }
        }
        (queue_filters(&state, &visitor, &wanted))
        @if page.rows.is_empty() { p { "No document needs review." } } @else {
            div.wide { table {
                thead { tr { th { "document" } th { "kind" } th { "tenant" } th { "reasons" } th { "status" } th.number { "amount" } th { "open at" } th { "waits" } } }
                tbody { @for row in &page.rows { (queue_row(&state, row)) } }
            } }
        }
        (next_link(next))
    };
    Ok(frame_page(&state, Some(&visitor), "To be reviewed", &body))
}

fn queue_row(state: &ConsoleState, row: &ReviewRow) -> Markup {
    html! {
        tr {
            td { a href=(state.link(&format!("/reviews/{}", row.document_id))) {
                (foreign_name(row.original_name.as_ref().unwrap_or(&row.file_path))) } }
            td { (row.kind.as_deref().unwrap_or("–")) }
            td { (foreign_name(row.tenant.as_deref().unwrap_or("–"))) }
            td { (row.review_reasons.join(", ")) @if row.decided_before { " (decided before)" } }
            td { (state_mark(row.status.as_deref().unwrap_or("–"))) }
            td.number { @match row.amount { Some(amount) => (format!("{amount:.2}")), None => "–" }
                @if let Some(currency) = &row.currency { " " (foreign_name(currency)) } }
            td { @if let Some(who) = &row.held_by { (foreign_name(who))
                @if let Some(since) = row.held_since { " since " (review::clock_time(since)) } } @else { "–" } }
            td { (age_since(row.since)) }
        }
    }
}

fn queue_filters(state: &ConsoleState, visitor: &ConsoleVisitor, wanted: &FieldValues) -> Markup {
    html! {
        form.filters method="get" action=(state.link("/reviews")) {
            div { label for="kind" { "Kind" }
                select id="kind" name="kind" { option value="" { "any" }
                    @for kind in state.kinds().iter() {
                        option value=(kind.name) selected[wanted.get("kind") == Some(kind.name.as_str())] { (kind.title) } } } }
            @if visitor.tenant.is_none() {
                div { label for="tenant" { "Tenant" } input id="tenant" name="tenant" value=(wanted.value("tenant")); }
            }
            div { label for="reason" { "Reason" } input id="reason" name="reason" placeholder="required:total" value=(wanted.value("reason")); }
            div { label for="order" { "First" }
                select id="order" name="order" {
                    option value="age" { "oldest first" }
                    option value="amount" selected[wanted.get("order") == Some("amount")] { "largest amount first" } } }
            button { "Show" }
        }
    }
}
