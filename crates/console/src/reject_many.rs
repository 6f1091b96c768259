//! One rejection of many documents, and its undo: of the rows that were selected in the review queue, or of
//! all that match its filter.
//!
//! Two steps, without script: a page that lists them, each ticked in the version that it shows, and the
//! rejection of the ticked ones. Decisions between the two steps are kept.

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use axum::{Json, response::IntoResponse as _, response::Response};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::ToSchema;
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::api_forms::JsonBody;
use super::chosen_ingestions::{back_to_list, read_ids};
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::ingestion::require_confirmation;
use super::layout::{age_since, foreign_name, form_secret, frame_page, version_text, visible_text};
use super::list_filters::hidden_fields;
use super::queue_choice::{QueueChoice, choice_names};
use super::review_desk::undo_button;
use super::review_form::{REJECT_REASONS, rejection_words};
use super::review_queue::reasons_in_words;
use super::state::ConsoleState;
use docmill_operations::rejections::{
    BulkUndoEnd, DocumentRejection, DocumentUndo, MAX_REJECTED, RejectionEnd, SeenDocument,
    reject_documents, undo_decisions,
};
use docmill_operations::review::{
    self, DecidingReviewer, ReviewFilter, ReviewOrder, ReviewPart, ReviewRow,
};

/// Documents that are left as they were and shown one by one.
const MAX_SHOWN_OTHERS: usize = 20;

/// The documents that a list's form means and that wait for review, longest first; one more than are
/// rejected together.
async fn load_rows(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
) -> Result<Vec<ReviewRow>, ConsoleFailure> {
    let own = QueueChoice::read(visitor, wanted)?.filter;
    let filter = match wanted.get("of") {
        Some("waiting") => ReviewFilter { order: ReviewOrder::Age, ..own },
        Some("documents") => ReviewFilter {
            tenant: visitor.tenant.clone(),
            documents: Some(read_ids(wanted)?),
            part: ReviewPart::All,
            ..ReviewFilter::default()
        },
        _ => return Err(ConsoleFailure::wrong_request("of is documents or waiting")),
    };
    let limit = u32::try_from(MAX_REJECTED + 1).unwrap_or(u32::MAX);
    Ok(review::list_reviews(state.database(), &filter, limit, None).await?)
}

/// `/reviews/reject`: lists the documents that are meant, and asks for the reason.
pub(super) async fn show_rejection(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    let rows = load_rows(&state, &visitor, &wanted).await?;
    let body = html! {
        @if rows.is_empty() { p { "None of these documents waits for review any more." } }
        @else { (rejection_form(&state, &visitor, &wanted, &rows)) }
        (back_to_list(&state, &visitor, &wanted))
    };
    Ok(frame_page(&state, Some(&visitor), "Reject documents", &body))
}

fn rejection_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
    rows: &[ReviewRow],
) -> Markup {
    let shown = rows.get(..MAX_REJECTED).unwrap_or(rows);
    html! {
        @if rows.len() > shown.len() {
            p { "More match. These " (MAX_REJECTED) " wait longest." }
        }
        form method="post" action=(state.link("/reviews/reject")) {
            (form_secret(visitor))
            (hidden_queue(visitor, wanted))
            div.wide tabindex="0" { table {
                thead { tr { th { "Reject" } th { "Document" } th { "Kind" } th { "Tenant" } th { "Needs attention" } th { "Open by" } th { "Waiting" } } }
                tbody { @for row in shown { (picked_row(state, row)) } }
            } }
            div.field { label for="reason" { "Reason" }
                select id="reason" name="reason" { option value="" { "other: see the note" }
                    @for (code, words) in REJECT_REASONS { option value=(code) { (words) } } } }
            div.field { label for="why" { "Note" } input id="why" name="why"; }
            p { label { input type="checkbox" name="confirm" value="yes" required; " I mean it" } }
            button.first { "Reject the ticked documents" }
        }
    }
}

/// The queue in which the documents were chosen, for a form that is sent next.
fn hidden_queue(visitor: &ConsoleVisitor, wanted: &FieldValues) -> Markup {
    let names: Vec<_> = choice_names(visitor).chain(["of"]).collect();
    hidden_fields(wanted, &names)
}

/// A row that is rejected while it is ticked, in the version that it shows.
fn picked_row(state: &ConsoleState, row: &ReviewRow) -> Markup {
    let kind = state.kinds().for_name(row.kind.as_deref()).map(|kind| &**kind);
    let name = row.original_name.as_ref().unwrap_or(&row.file_path);
    html! { tr {
        td { input type="checkbox" name="pick" checked value={ (row.document_id) " " (version_text(row.since)) }
            aria-label={ "Reject " (visible_text(name)) }; }
        td { a href=(state.link(&format!("/reviews/{}", row.document_id))) { (foreign_name(name)) } }
        td { (row.kind.as_deref().unwrap_or("–")) }
        td { (foreign_name(row.tenant.as_deref().unwrap_or("–"))) }
        td { (reasons_in_words(kind, &row.review_reasons)) }
        td { (foreign_name(row.held_by.as_deref().unwrap_or("–"))) }
        td { (age_since(row.since)) }
    } }
}

/// The ticked documents of a form.
fn read_picks(form: &FieldValues) -> Result<Vec<SeenDocument>, ConsoleFailure> {
    let picks: Option<Vec<SeenDocument>> = form.all("pick").map(read_pick).collect();
    match picks {
        None => Err(ConsoleFailure::wrong_request("pick is an id and a version")),
        Some(picks) if picks.is_empty() => {
            Err(ConsoleFailure::wrong_request("No row is selected: go back and tick some."))
        }
        Some(picks) => Ok(picks),
    }
}

fn read_pick(text: &str) -> Option<SeenDocument> {
    let (id, version) = text.split_once(' ')?;
    let version = OffsetDateTime::parse(version, &Rfc3339).ok()?;
    Some(SeenDocument { document_id: id.parse().ok()?, version })
}

async fn reject_seen(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    seen: &[SeenDocument],
    why: &str,
) -> Result<Vec<DocumentRejection>, ConsoleFailure> {
    let by = DecidingReviewer {
        by: visitor.audit_note(why),
        config: state.review(),
        kinds: state.kinds(),
        take_over: false,
        effort: None,
    };
    let tenant = visitor.tenant.as_deref();
    Ok(reject_documents(state.database(), seen, tenant, &by).await?)
}

/// `POST /reviews/reject`.
pub(super) async fn post_rejection(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Html<String>, ConsoleFailure> {
    require_confirmation(&form)?;
    let why = rejection_words(form.get("reason"), form.value("why"));
    let done = reject_seen(&state, &visitor, &read_picks(&form)?, &why).await?;
    let ends = done.iter().map(|one| EndedDocument { id: one.document_id, end: one.end.words() });
    let body = html! {
        (ends_table(&state, &RejectionEnd::ALL.map(RejectionEnd::words), &ends.collect::<Vec<_>>()))
        (undo_form(&state, &visitor, &form, &done))
        (back_to_list(&state, &visitor, &form))
    };
    Ok(frame_page(&state, Some(&visitor), "Rejected documents", &body))
}

/// A document and its result, in words.
struct EndedDocument {
    id: Uuid,
    end: &'static str,
}

/// Counts of documents by result, and a list of those without the intended one.
fn ends_table(state: &ConsoleState, all: &[&'static str], done: &[EndedDocument]) -> Markup {
    let others: Vec<_> = done.iter().filter(|one| all.first() != Some(&one.end)).collect();
    html! {
        table { thead { tr { th.number { "Documents" } th { "Result" } } }
            tbody { @for end in all {
                @let count = done.iter().filter(|one| one.end == *end).count();
                @if count > 0 { tr { td.number { (count) } td { (end) } } }
            } } }
        @if !others.is_empty() {
            h2 { "Left as they were" }
            ul { @for one in others.iter().take(MAX_SHOWN_OTHERS) {
                li { a href=(state.link(&format!("/reviews/{}", one.id))) { (one.id) } ": " (one.end) } } }
        }
    }
}

/// The button that undoes a whole rejection, while its oldest decision can be undone.
fn undo_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    form: &FieldValues,
    done: &[DocumentRejection],
) -> Markup {
    let undoable: Vec<_> = done.iter().filter(|one| one.undo_until.is_some()).collect();
    let until = undoable.iter().filter_map(|one| one.undo_until).min();
    let words = match undoable.len() {
        1 => "Undo this rejection".to_owned(),
        many => format!("Undo these {many} rejections"),
    };
    html! {
        @if let Some(until) = until {
            form method="post" action=(state.link("/reviews/undo")) {
                (form_secret(visitor))
                (hidden_queue(visitor, form))
                @for one in &undoable { input type="hidden" name="id" value=(one.document_id); }
                (undo_button(&words, until))
            }
            p.hint { "Each can also be undone on the page of its document." }
        }
    }
}

/// `POST /reviews/undo`: of many documents, the visitor's own newest decisions.
pub(super) async fn post_undo(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Html<String>, ConsoleFailure> {
    let done = undo_own(&state, &visitor, &read_ids(&form)?, "").await?;
    let ends = done.iter().map(|one| EndedDocument { id: one.document_id, end: one.end.words() });
    let body = html! {
        (ends_table(&state, &BulkUndoEnd::ALL.map(BulkUndoEnd::words), &ends.collect::<Vec<_>>()))
        (back_to_list(&state, &visitor, &form))
    };
    Ok(frame_page(&state, Some(&visitor), "Undone rejections", &body))
}

async fn undo_own(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    documents: &[Uuid],
    why: &str,
) -> Result<Vec<DocumentUndo>, ConsoleFailure> {
    if !(1..=MAX_REJECTED).contains(&documents.len()) {
        let text = format!("documents has 1 to {MAX_REJECTED} ids");
        return Err(ConsoleFailure::wrong_request(text).about("documents"));
    }
    let (tenant, by) = (visitor.tenant.as_deref(), visitor.audit_note(why));
    Ok(undo_decisions(state.database(), documents, tenant, &by).await?)
}

/// Documents that are rejected together, each in the version that was seen.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RejectionRequest {
    #[schema(min_items = 1, max_items = 200)]
    documents: Vec<SeenDocument>,
    #[schema(pattern = "\\S")]
    why: String,
}

/// The results, in the order of the request.
#[derive(Serialize, ToSchema)]
struct RejectedDocuments {
    items: Vec<DocumentRejection>,
}

/// Rejects up to 200 documents for one reason. Of those that changed or are open at another reviewer nothing
/// is written.
#[utoipa::path(
    post,
    path = "/reviews/reject",
    operation_id = "rejectReviews",
    request_body = RejectionRequest,
    responses((status = 200, description = "Done.", body = RejectedDocuments))
)]
pub(super) async fn post_rejections(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    JsonBody(request): JsonBody<RejectionRequest>,
) -> Result<Response, ConsoleFailure> {
    if request.documents.is_empty() {
        return Err(ConsoleFailure::wrong_request("documents is empty").about("documents"));
    }
    let items = reject_seen(&state, &visitor, &request.documents, &request.why).await?;
    Ok(Json(RejectedDocuments { items }).into_response())
}

/// Documents whose newest decisions are undone together.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UndoRequest {
    #[schema(min_items = 1, max_items = 200)]
    documents: Vec<Uuid>,
    #[serde(default)]
    why: String,
}

/// The results, in the order of the request.
#[derive(Serialize, ToSchema)]
struct UndoneDecisions {
    items: Vec<DocumentUndo>,
}

/// Undoes the token's own newest decisions about up to 200 documents, each within `review.undo`. Of those that
/// changed since nothing is written.
#[utoipa::path(
    post,
    path = "/reviews/undo",
    operation_id = "undoDecisions",
    request_body = UndoRequest,
    responses((status = 200, description = "Done.", body = UndoneDecisions))
)]
pub(super) async fn post_undos(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    JsonBody(request): JsonBody<UndoRequest>,
) -> Result<Response, ConsoleFailure> {
    let items = undo_own(&state, &visitor, &request.documents, &request.why).await?;
    Ok(Json(UndoneDecisions { items }).into_response())
}
