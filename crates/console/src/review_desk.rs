//! Several reviewers at once: the lock of an open document, the next free document, and undo.
//!
//! Nothing here prevents a decision: the decision's own transaction checks the lock again. Not
//! promised: that a page left without its script releases the document before the lease ends.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Json};
use maud::{Markup, html};
use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::ingestion::read_id;
use super::layout::{foreign_name, form_secret};
use super::queue_choice::QueueChoice;
use super::review_draft::keep_draft;
use super::state::ConsoleState;
use docmill_core::config::WebRole;
use docmill_operations::review::{self, LockRequest, ReviewCase, ReviewHold};

/// How long a reviewer is not led to a document that was set aside.
const LATER: Duration = Duration::from_secs(24 * 3600);
/// Documents that are tried in a row when others are as quick.
const MAX_TRIES: usize = 20;

/// The document as a reviewer sees it, if the visitor may.
pub(super) async fn load_visible_case(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    id: Uuid,
) -> Result<ReviewCase, ConsoleFailure> {
    let case = review::load_case(state.database(), &id.to_string()).await?;
    if !visitor.sees(case.tenant.as_deref()) {
        return Err(ConsoleFailure::missing());
    }
    Ok(case)
}

/// The lock of an open document, as seen by the visitor.
#[derive(Debug, Clone)]
pub(super) enum ReviewLock {
    /// It is the visitor's, or free for the shown page to claim; the id is that of the page.
    Own(Uuid),
    /// Another reviewer has it.
    Others(ReviewHold),
    /// It needs no review, or the visitor only looks.
    Open,
    /// Unknown: Postgres did not answer, or refused.
    Unknown,
}

/// The lock of a document that is shown. Nothing is claimed: a GET may be another site's link.
pub(super) fn read_review_lock(visitor: &ConsoleVisitor, case: &ReviewCase) -> ReviewLock {
    match case.held.clone().filter(|hold| hold.reviewer != visitor.audit_name()) {
        Some(other) => ReviewLock::Others(other),
        None if may_claim(visitor, case) => ReviewLock::Own(Uuid::new_v4()),
        None => ReviewLock::Open,
    }
}

fn may_claim(visitor: &ConsoleVisitor, case: &ReviewCase) -> bool {
    visitor.role >= WebRole::Reviewer && case.needs_human_review
}

/// Makes a document the visitor's, if it calls for a person and the visitor may decide.
pub(super) async fn acquire_review_lock(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
    take_over: bool,
) -> ReviewLock {
    if !may_claim(visitor, case) {
        return read_review_lock(visitor, case);
    }
    let page = Uuid::new_v4();
    let reviewer = visitor.audit_name();
    let request = LockRequest {
        reviewer: &reviewer,
        page,
        opens: true,
        take_over,
        lease: state.review().lease,
    };
    match review::claim_review(state.database(), case.document_id, &request).await {
        Ok(Some(hold)) if hold.reviewer == reviewer => ReviewLock::Own(page),
        Ok(Some(other)) => ReviewLock::Others(other),
        Ok(None) => ReviewLock::Open,
        Err(error) => {
            tracing::warn!(error = %error, "a document could not be claimed for review: {error}");
            ReviewLock::Unknown
        }
    }
}

/// The holder of the lock, in words.
pub(super) fn lock_notice(lock: &ReviewLock, may: bool) -> Markup {
    html! {
        @match lock {
            ReviewLock::Others(hold) => p.notice role="status" {
                (foreign_name(&hold.reviewer)) " has had it since " (review::clock_time(hold.since))
                " (UTC)." @if may { " Go on with the next free one, or take it over." }
            },
            ReviewLock::Unknown => p.notice.bad role="status" {
                "The lock failed: another reviewer may decide too."
            },
            ReviewLock::Own(_) | ReviewLock::Open => {}
        }
    }
}

/// The next free document of the reviewer's choice but for `left`, locked for this visitor; the path
/// of the queue if there is none.
pub(super) async fn next_path(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    choice: &QueueChoice,
    left: Option<Uuid>,
) -> Result<String, ConsoleFailure> {
    let reviewer = visitor.audit_name();
    let db = state.database();
    let mut passed: Vec<Uuid> = left.into_iter().collect();
    for _ in 0..MAX_TRIES {
        let found = review::find_free_review(db, &choice.filter, &reviewer, &passed).await?;
        let Some(id) = found else { break };
        let request = LockRequest {
            reviewer: &reviewer,
            page: Uuid::new_v4(),
            opens: true,
            take_over: false,
            lease: state.review().lease,
        };
        let hold = review::claim_review(db, id, &request).await?;
        if hold.is_some_and(|hold| hold.reviewer == reviewer) {
            return Ok(format!("/reviews/{id}"));
        }
        passed.push(id);
    }
    Ok("/reviews".to_owned())
}

/// `POST /reviews/next`: to the first free document.
pub(super) async fn post_next(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
    PostedForm(_): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    let choice = QueueChoice::read(&visitor, &wanted)?;
    let next = next_path(&state, &visitor, &choice, None).await?;
    Ok(Redirect::to(&state.link(&choice.path(&next, &[]))))
}

/// `/reviews/ahead`: the picture of the first page of the document that would come next, for the
/// script to load it early. Claims nothing.
pub(super) async fn get_ahead(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
) -> Result<Response, ConsoleFailure> {
    let choice = QueueChoice::read(&visitor, &wanted)?;
    let left: Vec<Uuid> =
        wanted.get("left").and_then(|text| text.parse().ok()).into_iter().collect();
    let (db, reviewer) = (state.database(), visitor.audit_name());
    let next = review::find_free_review(db, &choice.filter, &reviewer, &left).await?;
    let Some(next) = next.filter(|_| state.drawer().is_some()) else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let case = load_visible_case(&state, &visitor, next).await?;
    Ok(match case.ingestion_id {
        Some(id) => {
            Redirect::to(&state.link(&format!("/ingestions/{id}/pages/1/picture"))).into_response()
        }
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// Sets the document aside for a day, gives it back and leads to the next free one.
pub(super) async fn skip_document(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    choice: &QueueChoice,
    case: &ReviewCase,
) -> Result<Response, ConsoleFailure> {
    let (db, document, reviewer) = (state.database(), case.document_id, visitor.audit_name());
    // A document that another reviewer has open is passed over, not put off.
    if !matches!(read_review_lock(visitor, case), ReviewLock::Others(_)) {
        review::set_aside(db, document, &reviewer, LATER).await?;
    }
    review::release_review(db, document, &reviewer, None).await?;
    let next = next_path(state, visitor, choice, Some(document)).await?;
    Ok(Redirect::to(&state.link(&choice.path(&next, &[]))).into_response())
}

fn read_page(form: &FieldValues) -> Result<Uuid, ConsoleFailure> {
    let page = form.get("page").and_then(|text| text.parse().ok());
    page.ok_or_else(|| ConsoleFailure::wrong_request("The form does not name its page."))
}

/// `POST /reviews/{document}/renew`: the page was opened, or is still open. Answers with the holder of the lock.
pub(super) async fn post_renew(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    PostedForm(form): PostedForm,
) -> Result<Response, ConsoleFailure> {
    let case = load_visible_case(&state, &visitor, read_id(&id)?).await?;
    let reviewer = visitor.audit_name();
    let request = LockRequest {
        reviewer: &reviewer,
        page: read_page(&form)?,
        opens: form.get("opens").is_some(),
        take_over: false,
        lease: state.review().lease,
    };
    let hold = review::claim_review(state.database(), case.document_id, &request).await?;
    let says = match &hold {
        Some(hold) if hold.reviewer == reviewer => String::new(),
        Some(other) => {
            let since = review::clock_time(other.since);
            format!("{} has taken it over, since {since} (UTC).", other.reviewer)
        }
        None => "Meanwhile it was decided.".to_owned(),
    };
    Ok(Json(json!({ "held": says.is_empty(), "says": says })).into_response())
}

/// `POST /reviews/{document}/release`: the reviewer left the page. The request carries the last
/// input.
pub(super) async fn post_release(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    PostedForm(form): PostedForm,
) -> Result<Response, ConsoleFailure> {
    let case = load_visible_case(&state, &visitor, read_id(&id)?).await?;
    let (page, reviewer) = (read_page(&form)?, visitor.audit_name());
    keep_draft(&state, &visitor, &case, &form).await;
    review::release_review(state.database(), case.document_id, &reviewer, Some(page)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The last decision, with an undo button while it can be undone. `shown` is the document of the
/// page.
pub(super) async fn done_notice(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
    shown: Option<Uuid>,
) -> Result<Markup, ConsoleFailure> {
    let words = match wanted.get("done") {
        Some("accepted") => "The last document is accepted.",
        Some("corrected") => "The last document is corrected.",
        Some("rejected") => "The last document is rejected.",
        Some("cut") => "The last document is cut into others.",
        Some("first") => "The last document needs the same decision of a second person.",
        Some("undone") => "Your decision is undone: the document is as it was.",
        _ => "",
    };
    let last = wanted.get("undo").and_then(|text| text.parse().ok()).or(shown);
    let until = match last.filter(|_| visitor.role >= WebRole::Reviewer) {
        Some(id) => review::find_undoable(state.database(), id, &visitor.audit_name()).await?,
        None => None,
    };
    let choice = QueueChoice::read(visitor, wanted)?;
    Ok(html! {
        @if !words.is_empty() || until.is_some() {
            div.notice role="status" {
                @if !words.is_empty() { (words) " " }
                @if let (Some(id), Some(until)) = (last, until) { (undo_form(state, visitor, &choice.path(&format!("/reviews/{id}/undo"), &[]), until)) }
            }
        }
    })
}

fn undo_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    path: &str,
    until: OffsetDateTime,
) -> Markup {
    html! {
        form.inline method="post" action=(state.link(path)) {
            (form_secret(visitor))
            (undo_button("Undo your decision", until))
        }
    }
}

/// The undo button for the last decision, with its deadline.
pub(super) fn undo_button(words: &str, until: OffsetDateTime) -> Markup {
    html! {
        button accesskey="u" { (words) }
        span.hint { " until " (review::clock_time(until)) ":" (format!("{:02}", until.second())) " (UTC)" }
    }
}
