//! Decisions about one document that needs review. The queue is in `review_queue`, the page in
//! `case_page`, locks and undo in `review_desk`.
//!
//! A decision is about the version that was shown. After another decision nothing is written, and
//! the reviewer sees the present state beside the values typed.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use maud::html;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::access::ConsoleVisitor;
use super::case_page::{ReviewTurn, case_page};
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::ingestion::read_id;
use super::review_desk::{
    acquire_review_lock, done_notice, load_visible_case, next_path, read_review_lock, skip_document,
};
use super::review_form::read_changes;
use super::state::ConsoleState;
use docmill_operations::review::{
    self, AcceptedData, DataCorrection, DecidingReviewer, DecisionRefusal, RecordedDecision,
    ReviewCase,
};

/// The content of a decision.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ReviewDecisionInput {
    /// This data is right.
    Accept(AcceptedData),
    /// Other data is right.
    Correct(DataCorrection),
    /// It is no document to be recorded.
    Reject,
}

/// A decision with its reason.
pub(super) struct DecisionRequest<'a> {
    /// The input.
    pub(super) input: ReviewDecisionInput,
    /// The reviewer's words; may be empty.
    pub(super) why: &'a str,
    /// Whether to decide even if another reviewer has the document open.
    pub(super) take_over: bool,
}

/// Records a decision about `case`.
///
/// # Errors
/// `version_changed` if the document is no longer as in `case`; `held` if another reviewer has it
/// open; `refused` for invalid data.
pub(super) async fn record_review(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
    request: DecisionRequest<'_>,
) -> Result<RecordedDecision, ConsoleFailure> {
    let db = state.database();
    let by = DecidingReviewer {
        by: visitor.audit_note(request.why),
        config: state.review(),
        kinds: state.kinds(),
        take_over: request.take_over,
    };
    let done = match request.input {
        ReviewDecisionInput::Accept(which) => review::accept_document(db, case, which, &by).await,
        ReviewDecisionInput::Correct(correction) => {
            review::correct_document(db, case, correction, &by).await
        }
        ReviewDecisionInput::Reject => review::reject_document(db, case, &by).await,
    };
    Ok(done?)
}

/// The newer version, with its reviewer if a person made it.
pub(super) fn stale_version(now: &ReviewCase) -> ConsoleFailure {
    let by = now.revisions.last().filter(|last| last.decided_at == now.version);
    match by {
        Some(last) => ConsoleFailure::stale_version(format!(
            "Meanwhile {} has decided ({}). Nothing was written: load the document again.",
            last.reviewer, last.decision
        )),
        None => DecisionRefusal::Changed.into(),
    }
}

/// `/reviews/{document}`.
pub(super) async fn show_review(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    QueryFields(wanted): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    let case = load_visible_case(&state, &visitor, read_id(&id)?).await?;
    let notice = done_notice(&state, &visitor, &wanted, Some(case.document_id)).await?;
    let lock = read_review_lock(&visitor, &case);
    let turn = ReviewTurn { notice, lock, typed: None, lost: BTreeMap::new() };
    Ok(case_page(&state, &visitor, &case, &turn).await)
}

/// `POST /reviews/{document}`.
pub(super) async fn post_review(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    PostedForm(form): PostedForm,
) -> Result<Response, ConsoleFailure> {
    let case = load_visible_case(&state, &visitor, read_id(&id)?).await?;
    match form.get("decision") {
        Some("skip") => return skip_document(&state, &visitor, case.document_id).await,
        Some("take_over") => return take_over(&state, &visitor, &case, &form).await,
        _ => {}
    }
    let done = match read_decision(&state, &case, &form) {
        Ok(input) => {
            let why = form.get("why").unwrap_or_default();
            let request = DecisionRequest { input, why, take_over: false };
            record_review(&state, &visitor, &case, request).await
        }
        Err(failure) => Err(failure),
    };
    match done {
        Ok(done) => {
            let code = if done.awaits_second { "first" } else { done.decision.code() };
            let next = next_path(&state, &visitor, None).await?;
            let path = format!("{next}?done={code}&undo={}", case.document_id);
            Ok(Redirect::to(&state.link(&path)).into_response())
        }
        Err(failure) if failure.status == StatusCode::PRECONDITION_FAILED => {
            show_lost(&state, &visitor, &case, &form).await
        }
        Err(failure) if is_told_on_page(failure.status) => {
            let lock = acquire_review_lock(&state, &visitor, &case, false).await;
            let turn = ReviewTurn::again(&failure.detail, lock, Some(&form));
            let page = case_page(&state, &visitor, &case, &turn).await;
            Ok((failure.status, page).into_response())
        }
        Err(failure) => Err(failure),
    }
}

/// `POST /reviews/{document}/undo`.
pub(super) async fn post_undo(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    PostedForm(_): PostedForm,
) -> Result<Response, ConsoleFailure> {
    let case = load_visible_case(&state, &visitor, read_id(&id)?).await?;
    let by = visitor.audit_note("");
    match review::undo_decision(state.database(), case.document_id, &by).await {
        Ok(_) => {
            let path = format!("/reviews/{}?done=undone", case.document_id);
            Ok(Redirect::to(&state.link(&path)).into_response())
        }
        Err(error) => {
            let failure = ConsoleFailure::from(error);
            match failure.status {
                StatusCode::UNPROCESSABLE_ENTITY => {
                    show_problem(&state, &visitor, &case, &failure).await
                }
                _ => Err(failure),
            }
        }
    }
}

/// Whether the page is shown again: the decision was refused, or another reviewer has the lock.
fn is_told_on_page(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNPROCESSABLE_ENTITY | StatusCode::CONFLICT)
}

/// The present document with the problem at the top.
async fn show_problem(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
    failure: &ConsoleFailure,
) -> Result<Response, ConsoleFailure> {
    let lock = acquire_review_lock(state, visitor, case, false).await;
    let turn = ReviewTurn::again(&failure.detail, lock, None);
    let page = case_page(state, visitor, case, &turn).await;
    Ok((failure.status, page).into_response())
}

/// Takes the lock over from another reviewer, and keeps the typed values.
async fn take_over(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
    form: &FieldValues,
) -> Result<Response, ConsoleFailure> {
    if read_version(form) != Some(case.version) {
        return show_lost(state, visitor, case, form).await;
    }
    let lock = acquire_review_lock(state, visitor, case, true).await;
    let notice = html! { p.notice role="status" { "It is yours now." } };
    let turn = ReviewTurn { notice, lock, typed: Some(form), lost: BTreeMap::new() };
    Ok(case_page(state, visitor, case, &turn).await.into_response())
}

/// The version that the form was made for.
fn read_version(form: &FieldValues) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(form.get("version")?, &Rfc3339).ok()
}

/// The present document, with the values typed about the earlier version.
async fn show_lost(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    seen: &ReviewCase,
    form: &FieldValues,
) -> Result<Response, ConsoleFailure> {
    let now = load_visible_case(state, visitor, seen.document_id).await?;
    let failure = stale_version(&now);
    let lock = acquire_review_lock(state, visitor, &now, false).await;
    let mut turn = ReviewTurn::again(&failure.detail, lock, None);
    if let Some(kind) = state.kinds().for_name(now.kind.as_deref()) {
        let data = review::read_fields(&now).unwrap_or_default();
        turn.lost = read_changes(kind, &data, form).unwrap_or_default();
    }
    let page = case_page(state, visitor, &now, &turn).await;
    Ok((failure.status, page).into_response())
}

/// The decision in the form, about the version that it was made for.
fn read_decision(
    state: &ConsoleState,
    case: &ReviewCase,
    form: &FieldValues,
) -> Result<ReviewDecisionInput, ConsoleFailure> {
    if read_version(form) != Some(case.version) {
        return Err(stale_version(case));
    }
    let changes = match state.kinds().for_name(case.kind.as_deref()) {
        Some(kind) => read_changes(kind, &review::read_fields(case).unwrap_or_default(), form)?,
        None => BTreeMap::new(),
    };
    match form.get("decision") {
        Some("correct") if changes.is_empty() => {
            Err(ConsoleFailure::refused("You have changed nothing: accept the document as it is."))
        }
        Some("correct") => Ok(ReviewDecisionInput::Correct(DataCorrection::Fields(changes))),
        Some("reject") => Ok(ReviewDecisionInput::Reject),
        Some("accept" | "accept_newest") if !changes.is_empty() => {
            let text = "You have changed fields: save what you changed, or load the page again.";
            Err(ConsoleFailure::refused(text))
        }
        Some("accept") => Ok(ReviewDecisionInput::Accept(AcceptedData::Document)),
        Some("accept_newest") => Ok(ReviewDecisionInput::Accept(AcceptedData::Newest)),
        _ => Err(ConsoleFailure::wrong_request("The form does not say what you have decided.")),
    }
}
