//! Lists of ingestions, and the search for documents.
//!
//! Each page continues after the last row of the one before, never by number: the hundredth costs
//! as much as the first. A word search covers the newest documents within a short time, and older
//! ones on request.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, QueryFields};
use super::layout::{
    age_since, foreign_name, frame_page, moment, next_link, state_mark, visible_text,
};
use super::list_filters::hidden_filter;
use super::saved_view_page::view_links;
use super::state::ConsoleState;
use docmill_core::config::WebRole;
use docmill_core::model::{IngestionId, IngestionStatus, OutcomeReason};
use docmill_ledger::db::Db;
use docmill_operations::inspect::{
    self, DocumentQuery, FoundDocuments, IngestionFilter, IngestionRow,
};
use docmill_operations::saved_views::ViewedList;

/// Rows of a page.
pub(super) const PAGE_ROWS: u32 = 50;
/// Time limit of a word search, and the range searched by then.
const SEARCH_TIMEOUT: Duration = Duration::from_millis(100);
/// The same for a request to look further back.
const WIDE_SEARCH_TIMEOUT: Duration = Duration::from_secs(2);

/// One page of a list, and where the next begins.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct IngestionPage {
    /// The rows.
    #[serde(rename = "items")]
    pub(super) rows: Vec<IngestionRow>,
    /// The cursor of the next page; `None`: this was the last.
    #[serde(rename = "next_cursor")]
    pub(super) next: Option<Uuid>,
}

/// The ingestions that a query string asks for, as far as the visitor sees them.
pub(super) async fn load_page(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
    limit: u32,
) -> Result<IngestionPage, ConsoleFailure> {
    let filter = read_filter(visitor, wanted)?;
    let after = read_cursor(wanted)?.map(IngestionId);
    let mut rows =
        inspect::list_ingestions(state.database(), &filter, limit.saturating_add(1), after).await?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > most;
    rows.truncate(most);
    let next = rows.last().filter(|_| more).map(|row| row.id);
    Ok(IngestionPage { rows, next })
}

/// The filter of a list of ingestions.
///
/// # Errors
/// There is no such status, or the time is not one.
pub(super) fn read_filter(
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
) -> Result<IngestionFilter, ConsoleFailure> {
    let status = match wanted.get("status") {
        None => None,
        Some(code) => Some(IngestionStatus::from_code(code).ok_or_else(|| {
            let text = "status is one of in-progress, completed, failed, cancelled";
            ConsoleFailure::wrong_request(text)
        })?),
    };
    let since = wanted
        .get("since")
        .map(inspect::parse_look_back)
        .transpose()
        .map_err(|problem| ConsoleFailure::wrong_request(format!("since: {problem}")))?
        .map(|length| OffsetDateTime::now_utc() - length);
    Ok(IngestionFilter {
        status,
        reason: wanted.text("reason"),
        kind: wanted.text("kind"),
        tenant: visitor.narrow_tenant(wanted.text("tenant")),
        needs_review: None,
        since,
    })
}

/// The id that the next page begins after.
pub(super) fn read_cursor(wanted: &FieldValues) -> Result<Option<Uuid>, ConsoleFailure> {
    let cursor = wanted.get("cursor").map(Uuid::parse_str).transpose();
    cursor
        .map_err(|_| ConsoleFailure::wrong_request("cursor is the next_cursor of the page before"))
}

/// `/ingestions`.
pub(super) async fn show_ingestions(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
) -> Result<Response, ConsoleFailure> {
    let page = match load_page(&state, &visitor, &wanted, PAGE_ROWS).await {
        Err(failure) if failure.status == StatusCode::BAD_REQUEST => {
            let body = html! {
                p.notice role="alert" { (failure.detail) }
                (filters(&state, &visitor, &wanted))
            };
            let page = frame_page(&state, Some(&visitor), "Ingestions", &body);
            return Ok((StatusCode::BAD_REQUEST, page).into_response());
        }
        page => page?,
    };
    let next = page
        .next
        .map(|id| state.link(&format!("/ingestions?{}", wanted.with("cursor", &id.to_string()))));
    let body = html! {
        (filters(&state, &visitor, &wanted))
        (view_links(&state, &visitor, ViewedList::Ingestions, &wanted).await?)
        @if page.rows.is_empty() { p { "No documents match. " a href=(state.link("/ingestions")) { "Clear filters" } } } @else {
            (ingestions_table(&state, &visitor, Some(&wanted), &page.rows))
        }
        (next_link(next))
    };
    let failed = wanted.get("status") == Some("failed");
    let title = if failed { "Failed ingestions" } else { "Ingestions" };
    Ok(frame_page(&state, Some(&visitor), title, &body).into_response())
}

/// The rows; for reviewers with a box to tick before each, and what can be done with those, or with all
/// that match where the rows are of a filter.
fn ingestions_table(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    filter: Option<&FieldValues>,
    rows: &[IngestionRow],
) -> Markup {
    let selects = visitor.role >= WebRole::Reviewer;
    let export = state.link("/ingestions/export");
    let table = html! {
        div.wide { table {
            thead { tr {
                @if selects { th { "Select" } }
                th { "Document" } th { "Status" } th { "Reason or stage" } th { "Kind" }
                th { "Tenant" } th.number { "Attempts" } th { "Review" } th { "Age" } th { "Id" }
            } }
            tbody { @for row in rows { (ingestion_row(state, row, selects)) } }
        } }
    };
    html! {
        @if selects {
            form method="get" action=(state.link("/ingestions/change")) {
                @if let Some(wanted) = filter { (hidden_filter(visitor, wanted)) }
                (table)
                div.actions {
                    @if visitor.role >= WebRole::Operator {
                        button name="of" value="selected" { "Change the selected…" }
                        @if filter.is_some_and(|wanted| wanted.get("status").is_some()) {
                            button name="of" value="matching" { "Change all that match…" }
                        }
                    }
                    button name="of" value="selected" formaction=(export) { "Export the selected…" }
                    @if filter.is_some() {
                        button name="of" value="matching" formaction=(export) { "Export all that match…" }
                    }
                }
            }
        } @else { (table) }
    }
}

fn ingestion_row(state: &ConsoleState, row: &IngestionRow, is_selectable: bool) -> Markup {
    let id = row.id.to_string();
    let name = row.original_name.as_ref().unwrap_or(&row.file_path);
    html! {
        tr {
            @if is_selectable {
                td { input type="checkbox" name="id" value=(id) aria-label={ "Select " (visible_text(name)) }; }
            }
            td { a href=(state.link(&format!("/ingestions/{id}"))) {
                (foreign_name(name)) } }
            td { (state_mark(&row.status)) }
            td { (row.reason.as_deref().or(row.stage.as_deref().filter(|_| row.status == "in-progress")).unwrap_or("–")) }
            td { (row.kind.as_deref().unwrap_or("–")) }
            td { (foreign_name(row.tenant.as_deref().unwrap_or("–"))) }
            td.number { (row.attempt_count) }
            td { @if row.needs_human_review {
                a href=(state.link(&format!("/reviews/{}", row.document_id))) title=(row.review_reasons.join(", ")) { "Needs review" } }
                @else { "–" } }
            td { (age_since(row.created_at)) }
            td { code title=(id) { (id.get(..8).unwrap_or(&id)) } }
        }
    }
}

fn filters(state: &ConsoleState, visitor: &ConsoleVisitor, wanted: &FieldValues) -> Markup {
    let statuses = ["in-progress", "completed", "failed", "cancelled"];
    html! {
        form.filters method="get" action=(state.link("/ingestions")) {
            div { label for="status" { "Status" }
                select id="status" name="status" { option value="" { "any" }
                    @for code in statuses { option value=(code) selected[wanted.value("status") == code] { (code) } } } }
            div { label for="reason" { "Reason" }
                select id="reason" name="reason" { option value="" { "any" }
                    @for code in OutcomeReason::ALL.map(OutcomeReason::code) {
                        option value=(code) selected[wanted.value("reason") == code] { (code) } } } }
            div { label for="kind" { "Kind" }
                select id="kind" name="kind" { option value="" { "any" }
                    @for kind in state.kinds().iter() {
                        option value=(kind.name) selected[wanted.value("kind") == kind.name] { (kind.title) } } } }
            @if visitor.tenant.is_none() {
                div { label for="tenant" { "Tenant" } input id="tenant" name="tenant" value=(wanted.value("tenant")); }
            }
            div { label for="since" { "Registered within" }
                input id="since" name="since" placeholder="2h" value=(wanted.value("since")); }
            button { "Show" }
        }
    }
}

/// `/documents`: the search for documents by words.
pub(super) async fn show_search(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
) -> Result<Response, ConsoleFailure> {
    let asked = wanted.text("q");
    if let Some(id) = asked.as_deref().and_then(|text| Uuid::parse_str(text).ok()) {
        return Ok(Redirect::to(&state.link(&format!("/ingestions/{id}"))).into_response());
    }
    let keyed = match asked.as_deref().filter(|_| wanted.get("by") == Some("key")) {
        Some(text) => find_keyed(&state, &visitor, text).await?,
        None => Vec::new(),
    };
    if let [only] = keyed.as_slice() {
        return Ok(Redirect::to(&state.link(&format!("/ingestions/{}", only.id))).into_response());
    }
    if !keyed.is_empty() {
        let body = html! {
            p.hint { "The newest with this key, at most " (PAGE_ROWS) "." }
            (ingestions_table(&state, &visitor, None, &keyed))
        };
        return Ok(frame_page(&state, Some(&visitor), "Search", &body).into_response());
    }
    let mut found = FoundDocuments::default();
    if let Some(text) = &asked {
        let query = read_search(&visitor, text);
        let after = read_cursor(&wanted)?;
        let patience = if after.is_some() { WIDE_SEARCH_TIMEOUT } else { SEARCH_TIMEOUT };
        let database = state.database();
        found = match &query.sha256 {
            Some(_) => find_by_hash(database, &query, after).await?,
            None => {
                inspect::look_for_documents(database, &query, PAGE_ROWS, after, patience).await?
            }
        };
    }
    let next = found.next.map(|last| {
        state.link(&format!("/documents?{}", wanted.with("cursor", &last.to_string())))
    });
    let body = html! {
        form.filters method="get" action=(state.link("/documents")) role="search" aria-label="Words" {
            div {
                label for="q" { "Id, file name, hash, supplier, number or label: words" }
                input id="q" name="q" accesskey="s" size="40" value=(asked.as_deref().unwrap_or_default());
            }
            button { "Find" }
        }
        @if asked.is_some() { (documents_table(&state, &found)) }
        @match found.looked_back_to {
            Some(time) => (further_link(next, time)),
            None => (next_link(next)),
        }
    };
    Ok(frame_page(&state, Some(&visitor), "Search", &body).into_response())
}

/// Those whose number, path, supplier or total this is, which indexes find at any size.
async fn find_keyed(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    text: &str,
) -> Result<Vec<IngestionRow>, ConsoleFailure> {
    let (db, keys) = (state.database(), inspect::read_keys(text, visitor.tenant.clone()));
    let ids = inspect::find_by_keys(db, &keys, PAGE_ROWS).await?;
    Ok(inspect::ingestions_by_id(db, &ids).await?)
}

/// Those with this hash, which an index finds at any size.
async fn find_by_hash(
    database: &Db,
    query: &DocumentQuery,
    after: Option<Uuid>,
) -> Result<FoundDocuments, ConsoleFailure> {
    let rows = inspect::find_documents(database, query, PAGE_ROWS, after).await?;
    let full = rows.len() == usize::try_from(PAGE_ROWS).unwrap_or(usize::MAX);
    let next = rows.last().filter(|_| full).map(|row| row.id);
    Ok(FoundDocuments { rows, next, looked_back_to: None })
}

/// Shows how far the search got, with a link to continue.
fn further_link(href: Option<String>, looked_back_to: OffsetDateTime) -> Markup {
    html! {
        p.hint { "Looked through what was registered since " (moment(looked_back_to)) " (UTC)." }
        @if let Some(href) = href { p { a.button rel="next" href=(href) { "Look further back" } } }
    }
}

/// Six and more digits of hex are the beginning of a hash, everything else are words.
fn read_search(visitor: &ConsoleVisitor, text: &str) -> DocumentQuery {
    let tenant = visitor.tenant.clone();
    let is_hash = (6..=64).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_hexdigit())
        && text.chars().any(|c| c.is_ascii_alphabetic());
    if is_hash {
        return DocumentQuery { sha256: Some(text.to_owned()), tenant, ..DocumentQuery::default() };
    }
    let words = text.split_whitespace().take(8).map(str::to_owned).collect();
    DocumentQuery { words, tenant, ..DocumentQuery::default() }
}

fn documents_table(state: &ConsoleState, found: &FoundDocuments) -> Markup {
    let rows = &found.rows;
    let nothing = match found.looked_back_to {
        Some(_) => "Nothing was found so far.",
        None => "Nothing was found.",
    };
    html! {
        @if rows.is_empty() { p { (nothing) } } @else {
            div.wide { table {
                thead { tr { th { "Document" } th { "Supplier" } th { "Number" } th { "Tenant" } th { "Status" } } }
                tbody { @for row in rows { tr {
                    @let name = foreign_name(row.original_name.as_ref().unwrap_or(&row.file_path));
                    td { @match row.ingestion_id {
                        Some(id) => a href=(state.link(&format!("/ingestions/{id}"))) { (name) },
                        None => (name),
                    } }
                    td { (foreign_name(row.supplier_name.as_deref().unwrap_or("–"))) }
                    td { (foreign_name(row.invoice_number.as_deref().unwrap_or("–"))) }
                    td { (foreign_name(row.tenant.as_deref().unwrap_or("–"))) }
                    td { (state_mark(row.status.as_deref().unwrap_or("–"))) " " (row.reason.as_deref().unwrap_or_default()) }
                } } }
            } }
        }
    }
}
