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
use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::case_page::{ReviewTurn, case_page};
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::ingestion::read_id;
use super::queue_choice::QueueChoice;
use super::review_desk::{
    acquire_review_lock, done_notice, load_visible_case, next_path, read_review_lock, skip_document,
};
use super::review_draft::{find_own_draft, keep_draft, read_version};
use super::review_form::{read_changes, rejection_words, require_values};
use super::state::ConsoleState;
use super::transcripts::work_on_transcript;
use docmill_core::model::PageRange;
use docmill_operations::review::{
    self, AcceptedData, DataCorrection, DecidingReviewer, DecisionEffort, DecisionRefusal,
    MAX_DECISION_KEYS, MAX_DECISION_SECONDS, PacketCut, RecordedDecision, ReviewCase, ReviewDraft,
};

/// Empty lines that the button for more adds to each table.
const ADDED_LINES: usize = 5;

/// The content of a decision.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ReviewDecisionInput {
    /// This data is right.
    Accept(AcceptedData),
    /// Other data is right.
    Correct(DataCorrection),
    /// It is no document to be recorded.
    Reject,
    /// It is several documents; those after the first begin on these pages.
    Cut(Vec<u32>),
}

/// A decision with its reason.
pub(super) struct DecisionRequest<'a> {
    /// The input.
    pub(super) input: ReviewDecisionInput,
    /// The reviewer's words; may be empty.
    pub(super) why: &'a str,
    /// Whether to decide even if another reviewer has the document open.
    pub(super) take_over: bool,
    /// The effort, if the page measured it.
    pub(super) effort: Option<DecisionEffort>,
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
        effort: request.effort,
    };
    let done = match request.input {
        ReviewDecisionInput::Accept(which) => review::accept_document(db, case, which, &by).await,
        ReviewDecisionInput::Correct(correction) => {
            review::correct_document(db, case, correction, &by).await
        }
        ReviewDecisionInput::Reject => review::reject_document(db, case, &by).await,
        ReviewDecisionInput::Cut(firsts) => {
            let cut = find_cut(state, visitor, case, firsts).await?;
            review::cut_document(db, case, &cut, &by).await
        }
    };
    Ok(done?)
}

/// A cut of the pages that were read of a document.
async fn find_cut(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
    firsts: Vec<u32>,
) -> Result<PacketCut, ConsoleFailure> {
    let unread = || ConsoleFailure::refused("Its pages were not read: it cannot be cut.");
    let key = case.transcription_file_path.as_deref().ok_or_else(unread)?;
    let read = work_on_transcript(state, visitor, key, |read, _| {
        let first = read.pages.first().map(|page| page.number)?;
        let last = read.pages.last().map(|page| page.number)?;
        Some((read.sha256, PageRange { first, last }))
    });
    let (sha256, pages) = read.await?.flatten().ok_or_else(unread)?;
    Ok(PacketCut { firsts, pages, sha256 })
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
    let choice = QueueChoice::read(&visitor, &wanted)?;
    let case = load_visible_case(&state, &visitor, read_id(&id)?).await?;
    let done = done_notice(&state, &visitor, &wanted, Some(case.document_id)).await?;
    let lock = read_review_lock(&visitor, &case);
    let draft = find_own_draft(&state, &visitor, &case).await;
    let typed = draft.as_ref().map(|draft| FieldValues::parse(draft.form.as_bytes()));
    let (same, other) = match &draft {
        Some(draft) if draft.version == case.version => (typed.as_ref(), None),
        _ => (None, typed.as_ref()),
    };
    let kept = draft.as_ref().map(|draft| draft_notice(draft, same.is_some()));
    let lost = other.map(|form| changes_in(&state, &case, form)).unwrap_or_default();
    let kept = kept.unwrap_or_default();
    let turn =
        ReviewTurn { notice: done, kept, typed: same, lost, ..ReviewTurn::new(lock, &choice) };
    Ok(case_page(&state, &visitor, &case, &turn).await)
}

/// Where the values in the form come from, and the button that forgets them.
fn draft_notice(draft: &ReviewDraft, is_in_form: bool) -> Markup {
    html! {
        div.notice role="status" {
            "Your unsaved changes of " (review::clock_time(draft.saved_at)) " (UTC) "
            @if is_in_form { "are in the form. " }
            @else { "are of an earlier version of the document: see below. " }
            button.plain name="decision" value="discard" { "Discard them" }
        }
    }
}

/// The changes of a form to the document; none if it cannot be read.
fn changes_in(
    state: &ConsoleState,
    case: &ReviewCase,
    form: &FieldValues,
) -> BTreeMap<String, String> {
    let Some(kind) = state.kinds().for_name(case.kind.as_deref()) else { return BTreeMap::new() };
    let data = review::read_fields(case).unwrap_or_default();
    read_changes(kind, &data, form).unwrap_or_default()
}

/// A form that was sent, and where it came from.
struct SentForm<'a> {
    visitor: &'a ConsoleVisitor,
    choice: &'a QueueChoice,
    form: &'a FieldValues,
}

/// `POST /reviews/{document}`.
pub(super) async fn post_review(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    QueryFields(wanted): QueryFields,
    PostedForm(form): PostedForm,
) -> Result<Response, ConsoleFailure> {
    let choice = QueueChoice::read(&visitor, &wanted)?;
    let case = load_visible_case(&state, &visitor, read_id(&id)?).await?;
    let sent = SentForm { visitor: &visitor, choice: &choice, form: &form };
    match form.get("decision") {
        Some("skip") => {
            keep_draft(&state, &visitor, &case, &form).await;
            skip_document(&state, &visitor, &choice, &case).await
        }
        Some("take_over") => take_over(&state, &sent, &case).await,
        Some("more_lines") => Ok(show_more_lines(&state, &sent, &case).await),
        Some("discard") => {
            let who = visitor.audit_name();
            review::discard_draft(state.database(), case.document_id, &who).await?;
            let path = choice.path(&format!("/reviews/{}", case.document_id), &[]);
            Ok(Redirect::to(&state.link(&path)).into_response())
        }
        _ => decide(&state, &sent, &case).await,
    }
}

/// Records the decision of a form and leads to the next document.
async fn decide(
    state: &ConsoleState,
    sent: &SentForm<'_>,
    case: &ReviewCase,
) -> Result<Response, ConsoleFailure> {
    let SentForm { visitor, choice, form } = *sent;
    let done = match read_decision(state, case, form) {
        Ok(input) => {
            let why = recorded_reason(&input, form);
            let effort = read_effort(form);
            let request = DecisionRequest { input, why: &why, take_over: false, effort };
            record_review(state, visitor, case, request).await
        }
        Err(failure) => Err(failure),
    };
    match done {
        Ok(done) => {
            let code = match form.get("decision") {
                _ if done.awaits_second => "first",
                Some("cut") => "cut",
                _ => done.decision.code(),
            };
            let next = next_path(state, visitor, choice, None).await?;
            let undo = case.document_id.to_string();
            let path = choice.path(&next, &[("done", code), ("undo", &undo)]);
            Ok(Redirect::to(&state.link(&path)).into_response())
        }
        Err(failure) if failure.status == StatusCode::PRECONDITION_FAILED => {
            show_lost(state, sent, case).await
        }
        Err(failure) if is_told_on_page(failure.status) => {
            keep_draft(state, visitor, case, form).await;
            let lock = acquire_review_lock(state, visitor, case, false).await;
            let turn = ReviewTurn::again(&failure, lock, Some(form), choice);
            let page = case_page(state, visitor, case, &turn).await;
            Ok((failure.status, page).into_response())
        }
        Err(failure) => Err(failure),
    }
}

/// The effort that the page's script measured; `None` without script, or where it cannot be.
fn read_effort(form: &FieldValues) -> Option<DecisionEffort> {
    let seconds = form.get("seconds")?.parse().ok()?;
    let keys = form.get("keys")?.parse().ok()?;
    let is_possible =
        (0..=MAX_DECISION_SECONDS).contains(&seconds) && (0..=MAX_DECISION_KEYS).contains(&keys);
    is_possible.then_some(DecisionEffort { seconds, keys })
}

/// The reviewer's note; of a rejection after its reason from the list.
fn recorded_reason(input: &ReviewDecisionInput, form: &FieldValues) -> String {
    let code = form.get("reason").filter(|_| *input == ReviewDecisionInput::Reject);
    rejection_words(code, form.value("why"))
}

/// The form once more, with more empty lines in its tables.
async fn show_more_lines(state: &ConsoleState, sent: &SentForm<'_>, case: &ReviewCase) -> Response {
    let SentForm { visitor, choice, form } = *sent;
    keep_draft(state, visitor, case, form).await;
    let lock = acquire_review_lock(state, visitor, case, false).await;
    let turn =
        ReviewTurn { typed: Some(form), added_lines: ADDED_LINES, ..ReviewTurn::new(lock, choice) };
    case_page(state, visitor, case, &turn).await.into_response()
}

/// `POST /reviews/{document}/undo`.
pub(super) async fn post_undo(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    QueryFields(wanted): QueryFields,
    PostedForm(_): PostedForm,
) -> Result<Response, ConsoleFailure> {
    let choice = QueueChoice::read(&visitor, &wanted)?;
    let case = load_visible_case(&state, &visitor, read_id(&id)?).await?;
    let by = visitor.audit_note("");
    match review::undo_decision(state.database(), case.document_id, &by).await {
        Ok(_) => {
            let path = format!("/reviews/{}", case.document_id);
            let path = choice.path(&path, &[("done", "undone")]);
            Ok(Redirect::to(&state.link(&path)).into_response())
        }
        Err(error) => {
            let failure = ConsoleFailure::from(error);
            if failure.status != StatusCode::UNPROCESSABLE_ENTITY {
                return Err(failure);
            }
            let lock = acquire_review_lock(&state, &visitor, &case, false).await;
            let turn = ReviewTurn::again(&failure, lock, None, &choice);
            let page = case_page(&state, &visitor, &case, &turn).await;
            Ok((failure.status, page).into_response())
        }
    }
}

/// Whether the page is shown again: the decision was refused, or another reviewer has the lock.
fn is_told_on_page(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNPROCESSABLE_ENTITY | StatusCode::CONFLICT)
}

/// Takes the lock over from another reviewer, and keeps the typed values.
async fn take_over(
    state: &ConsoleState,
    sent: &SentForm<'_>,
    case: &ReviewCase,
) -> Result<Response, ConsoleFailure> {
    let SentForm { visitor, choice, form } = *sent;
    if read_version(form) != Some(case.version) {
        return show_lost(state, sent, case).await;
    }
    let lock = acquire_review_lock(state, visitor, case, true).await;
    let notice = html! { p.notice role="status" { "It is yours now." } };
    let turn = ReviewTurn { notice, typed: Some(form), ..ReviewTurn::new(lock, choice) };
    Ok(case_page(state, visitor, case, &turn).await.into_response())
}

/// The present document, with the values typed about the earlier version.
async fn show_lost(
    state: &ConsoleState,
    sent: &SentForm<'_>,
    seen: &ReviewCase,
) -> Result<Response, ConsoleFailure> {
    let SentForm { visitor, choice, form } = *sent;
    let now = load_visible_case(state, visitor, seen.document_id).await?;
    let failure = stale_version(&now);
    let lock = acquire_review_lock(state, visitor, &now, false).await;
    let lost = changes_in(state, &now, form);
    let turn = ReviewTurn { lost, ..ReviewTurn::again(&failure, lock, None, choice) };
    let page = case_page(state, visitor, &now, &turn).await;
    Ok((failure.status, page).into_response())
}

/// The pages that are ticked as the first of a document, in rising order.
fn read_firsts(form: &FieldValues) -> Vec<u32> {
    let mut firsts: Vec<u32> = form.all("first").filter_map(|page| page.parse().ok()).collect();
    firsts.sort_unstable();
    firsts.dedup();
    firsts
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
        Some(kind) => {
            let changes = read_changes(kind, &review::read_fields(case).unwrap_or_default(), form)?;
            require_values(kind, case, &changes)?;
            changes
        }
        None => BTreeMap::new(),
    };
    match form.get("decision") {
        Some("correct") if changes.is_empty() => {
            Err(ConsoleFailure::refused("You have changed nothing: accept the document as it is."))
        }
        Some("correct") => Ok(ReviewDecisionInput::Correct(DataCorrection::Fields(changes))),
        Some("reject") => Ok(ReviewDecisionInput::Reject),
        Some("cut") => Ok(ReviewDecisionInput::Cut(read_firsts(form))),
        Some("accept" | "accept_newest") if !changes.is_empty() => {
            let text = "You have changed fields: save what you changed, or load the page again.";
            Err(ConsoleFailure::refused(text))
        }
        Some("accept") => Ok(ReviewDecisionInput::Accept(AcceptedData::Document)),
        Some("accept_newest") => Ok(ReviewDecisionInput::Accept(AcceptedData::Newest)),
        _ => Err(ConsoleFailure::wrong_request("The form does not say what you have decided.")),
    }
}
