//! What needs a person: the queue, one document, and the decision about it.
//!
//! A decision is about the version that was shown. Where another came first, nothing is written, and
//! the reviewer is shown what is there now and what he had typed.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::findings::{ReviewFinding, explain_reason};
use super::ingestion::{data_table, read_id};
use super::layout::{
    age_since, fact, foreign_name, form_secret, frame_page, moment, next_link, state_mark,
    version_text,
};
use super::listing::{PAGE, read_cursor};
use super::review_form::{FormSource, read_changes};
use super::state::ConsoleState;
use super::transcripts::load_page_texts;
use crate::ops::inspect;
use crate::ops::review::{
    self, AcceptedData, DataCorrection, RecordedDecision, ReviewCase, ReviewQuery, ReviewRow,
};
use docmill_core::config::WebRole;
use docmill_core::fault::Fault;
use docmill_core::model::IngestionId;

/// What a reviewer says about a document.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ReviewerVerdict {
    /// This data is right.
    Accept(AcceptedData),
    /// Other data is right.
    Correct(DataCorrection),
    /// It is no document to be recorded.
    Reject,
}

/// One page of the queue.
#[derive(Debug)]
pub(super) struct ReviewPage {
    /// The rows, those that wait longest first.
    pub(super) rows: Vec<ReviewRow>,
    /// The cursor of the next page; `None`: this was the last.
    pub(super) next: Option<Uuid>,
}

/// The documents that a query string asks for, as far as the visitor sees them.
pub(super) async fn load_queue(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
    limit: u32,
) -> Result<ReviewPage, ConsoleFailure> {
    let query = ReviewQuery {
        tenant: visitor.narrow_tenant(wanted.text("tenant")),
        kind: wanted.text("kind"),
        reason: wanted.text("reason"),
    };
    let after = read_cursor(wanted)?;
    let asked = limit.saturating_add(1);
    let mut rows = review::list_reviews(state.database(), &query, asked, after).await?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > most;
    rows.truncate(most);
    let next = rows.last().filter(|_| more).map(|row| row.document_id);
    Ok(ReviewPage { rows, next })
}

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

/// Writes a verdict about `case` down.
///
/// # Errors
/// `version_changed` if the document is no longer as in `case`; what does not fit is refused.
pub(super) async fn record_verdict(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
    verdict: ReviewerVerdict,
    why: &str,
) -> Result<RecordedDecision, ConsoleFailure> {
    let (db, by) = (state.database(), visitor.audit_note(why));
    let done = match verdict {
        ReviewerVerdict::Accept(which) => review::accept_document(db, case, which, &by).await,
        ReviewerVerdict::Correct(correction) => {
            review::correct_document(db, case, state.kinds(), correction, &by).await
        }
        ReviewerVerdict::Reject => review::reject_document(db, case, &by).await,
    };
    match done {
        Err(error) if error.fault == Fault::Rejected => {
            let now = review::load_case(db, &case.document_id.to_string()).await?;
            match now.version == case.version {
                true => Err(error.into()),
                false => Err(stale_version(&now)),
            }
        }
        other => Ok(other?),
    }
}

/// Says who was faster, if it was a person.
pub(super) fn stale_version(now: &ReviewCase) -> ConsoleFailure {
    let by = now.revisions.last().filter(|last| last.decided_at == now.version);
    ConsoleFailure::stale_version(match by {
        Some(last) => format!(
            "Meanwhile {} has decided ({}). Nothing of yours was written: look again.",
            last.reviewer, last.decision
        ),
        None => "The document has changed since you looked at it. Nothing of yours was written: \
                 look again."
            .to_owned(),
    })
}

/// `/reviews`.
pub(super) async fn show_reviews(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    let page = load_queue(&state, &visitor, &wanted, PAGE).await?;
    let next = page
        .next
        .map(|id| state.link(&format!("/reviews?{}", wanted.with("cursor", &id.to_string()))));
    let body = html! {
        (done_notice(&wanted))
        (queue_filters(&state, &visitor, &wanted))
        @if page.rows.is_empty() { p { "Nothing waits for a person." } } @else {
            div.wide { table {
                thead { tr { th { "document" } th { "kind" } th { "tenant" } th { "reasons" } th { "status" } th { "waits" } } }
                tbody { @for row in &page.rows { (queue_row(&state, row)) } }
            } }
        }
        (next_link(next))
    };
    Ok(frame_page(&state, Some(&visitor), "To be reviewed", &body))
}

fn done_notice(wanted: &FieldValues) -> Markup {
    let words = match wanted.get("done") {
        Some("accepted") => "The last document is accepted.",
        Some("corrected") => "The last document is corrected.",
        Some("rejected") => "The last document is rejected.",
        _ => "",
    };
    html! { @if !words.is_empty() { p.notice role="status" { (words) } } }
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
            td { (age_since(row.since)) }
        }
    }
}

fn queue_filters(state: &ConsoleState, visitor: &ConsoleVisitor, wanted: &FieldValues) -> Markup {
    let value = |name: &str| wanted.get(name).unwrap_or_default().to_owned();
    html! {
        form.filters method="get" action=(state.link("/reviews")) {
            div { label for="kind" { "Kind" }
                select id="kind" name="kind" { option value="" { "any" }
                    @for kind in state.kinds().iter() {
                        option value=(kind.name) selected[wanted.get("kind") == Some(kind.name.as_str())] { (kind.title) } } } }
            @if visitor.tenant.is_none() {
                div { label for="tenant" { "Tenant" } input id="tenant" name="tenant" value=(value("tenant")); }
            }
            div { label for="reason" { "Reason" } input id="reason" name="reason" placeholder="required:total" value=(value("reason")); }
            button { "Show" }
        }
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
    Ok(review_page(&state, &visitor, &case, &ReviewTurn::first(&wanted)).await)
}

/// How a document is shown: for the first time, or once more because something was wrong.
struct ReviewTurn<'a> {
    notice: Markup,
    /// Typed values that go into the form again.
    typed: Option<&'a FieldValues>,
    /// Typed values that are shown beside a document that has changed.
    lost: BTreeMap<String, String>,
}

impl<'a> ReviewTurn<'a> {
    fn first(wanted: &FieldValues) -> Self {
        Self { notice: done_notice(wanted), typed: None, lost: BTreeMap::new() }
    }

    fn again(problem: &str, typed: Option<&'a FieldValues>) -> Self {
        let notice = html! { p.notice.bad role="alert" { (problem) } };
        Self { notice, typed, lost: BTreeMap::new() }
    }
}

async fn review_page(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
    turn: &ReviewTurn<'_>,
) -> Html<String> {
    let kind = state.kinds().for_name(case.kind.as_deref()).map(|kind| &**kind);
    let findings: Vec<ReviewFinding> =
        case.review_reasons.iter().map(|code| explain_reason(kind, code)).collect();
    let texts = match &case.transcription_file_path {
        Some(key) => load_page_texts(state, key).await,
        None => None,
    };
    let title = case.original_name.clone().unwrap_or_else(|| case.file_path.clone());
    let form = decision_form(state, visitor, case, turn, &findings).await;
    let body = html! {
        (turn.notice)
        @if !turn.lost.is_empty() {
            p { "What you had typed:" }
            dl.facts { @for (name, text) in &turn.lost { (fact(name, Some(text))) } }
        }
        (case_facts(state, case, &findings))
        (form)
        @if let Some(texts) = texts {
            h2 { "What stands on the pages" }
            @for (at, text) in texts.iter().enumerate() {
                details open[at == 0] { summary { "Page " (at + 1) } pre { (text) } }
            }
        }
        (decisions(case))
    };
    frame_page(state, Some(visitor), &title, &body)
}

fn case_facts(state: &ConsoleState, case: &ReviewCase, findings: &[ReviewFinding]) -> Markup {
    let whole = findings.iter().filter(|finding| finding.fields.is_empty());
    html! {
        p { @if case.needs_human_review { "Calls for a person." } @else { "Nothing to review." } }
        ul { @for finding in whole { li.finding { (finding.words) " " span.hint { (finding.code) } } } }
        dl.facts {
            (fact("Kind", case.kind.as_deref()))
            (fact("Tenant", case.tenant.as_deref()))
            (fact("Status of the newest ingestion", case.status.as_deref()))
            (fact("Its reason", case.reason.as_deref()))
            (fact("Lies at", Some(&case.file_path)))
        }
        @if let Some(id) = case.ingestion_id {
            p { a href=(state.link(&format!("/ingestions/{id}"))) { "The ingestion" } }
        }
    }
}

fn decisions(case: &ReviewCase) -> Markup {
    html! {
        @if !case.revisions.is_empty() {
            h2 { "Earlier decisions" }
            ul { @for last in &case.revisions { li {
                (moment(last.decided_at)) ": " (last.decision) " by " (foreign_name(&last.reviewer)) " "
                (foreign_name(&last.why))
            } } }
        }
    }
}

async fn load_places(state: &ConsoleState, case: &ReviewCase) -> BTreeMap<String, String> {
    let Some(id) = case.ingestion_id else { return BTreeMap::new() };
    // Of use, and not needed.
    let found = inspect::load_grounding(state.database(), IngestionId(id)).await.ok().flatten();
    let Some(Value::Array(places)) = found else { return BTreeMap::new() };
    let place = |value: &Value| {
        let (field, page) = (value.get("field")?.as_str()?, value.get("page")?.as_u64()?);
        Some((field.to_owned(), format!("found on page {page}")))
    };
    places.iter().filter_map(place).collect()
}

async fn decision_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
    turn: &ReviewTurn<'_>,
    findings: &[ReviewFinding],
) -> Markup {
    let kind = state.kinds().for_name(case.kind.as_deref()).map(|kind| &**kind);
    let data = review::read_fields(case);
    let places = load_places(state, case).await;
    let none = Map::new();
    let source = kind.map(|kind| FormSource {
        kind,
        data: data.as_ref().unwrap_or(&none),
        findings,
        places: &places,
        typed: turn.typed,
    });
    let may = visitor.role >= WebRole::Reviewer;
    let newer = case.ingestion_data.as_ref();
    let newer =
        newer.filter(|_| case.document_data.is_some() && case.document_data != case.ingestion_data);
    html! {
        form method="post" action=(state.link(&format!("/reviews/{}", case.document_id))) {
            @if may { (form_secret(visitor)) }
            input type="hidden" name="version" value=(version_text(case.version));
            @match source {
                Some(source) => (source.inputs()),
                None => {
                    p.notice.bad { "The kind of this document is not among those of kinds.path: it can be accepted or rejected, not corrected here." }
                    @if let Some(data) = &data { (data_table(&Value::Object(data.clone()))) }
                }
            }
            @if let Some(newer) = newer {
                h2 { "The newest ingestion read something else" }
                (data_table(newer))
            }
            @if may { (decision_buttons(data.is_some(), kind.is_some(), newer.is_some())) }
        }
    }
}

fn decision_buttons(has_data: bool, has_kind: bool, has_newer: bool) -> Markup {
    html! {
        div.field { label for="why" { "Why (needed to reject)" } input id="why" name="why"; }
        div.actions {
            // The first button is the one that Enter presses: it changes nothing by mistake,
            // because it refuses a form in which nothing was changed.
            @if has_kind { button.first name="decision" value="correct" accesskey="c" { "Save what I changed" } }
            @if has_data { button name="decision" value="accept" accesskey="a" { "Accept as it is" } }
            @if has_newer { button name="decision" value="accept_newest" { "Accept the newer reading" } }
            button name="decision" value="reject" accesskey="r" { "Reject" }
        }
        p.hint { "By keyboard: the access keys are c, a and r (with Alt+Shift or Alt, as your browser has it)." }
    }
}

/// `POST /reviews/{document}`.
pub(super) async fn post_review(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    PostedForm(form): PostedForm,
) -> Result<Response, ConsoleFailure> {
    let case = load_visible_case(&state, &visitor, read_id(&id)?).await?;
    let done = match read_verdict(&state, &case, &form) {
        Ok(verdict) => {
            let why = form.get("why").unwrap_or_default();
            record_verdict(&state, &visitor, &case, verdict, why).await
        }
        Err(failure) => Err(failure),
    };
    match done {
        Ok(done) => {
            let code = done.decision.code();
            let next = load_queue(&state, &visitor, &FieldValues::default(), 1).await?;
            let path = match next.rows.first() {
                Some(row) => format!("/reviews/{}?done={code}", row.document_id),
                None => format!("/reviews?done={code}"),
            };
            Ok(Redirect::to(&state.link(&path)).into_response())
        }
        Err(failure) if failure.status == StatusCode::PRECONDITION_FAILED => {
            show_lost(&state, &visitor, &case, &form, &failure).await
        }
        Err(failure) if failure.status == StatusCode::UNPROCESSABLE_ENTITY => {
            let turn = ReviewTurn::again(&failure.detail, Some(&form));
            let page = review_page(&state, &visitor, &case, &turn).await;
            Ok((failure.status, page).into_response())
        }
        Err(failure) => Err(failure),
    }
}

/// The document as it is now, and what was typed about the one before.
async fn show_lost(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    seen: &ReviewCase,
    form: &FieldValues,
    failure: &ConsoleFailure,
) -> Result<Response, ConsoleFailure> {
    let now = load_visible_case(state, visitor, seen.document_id).await?;
    let mut turn = ReviewTurn::again(&failure.detail, None);
    if let Some(kind) = state.kinds().for_name(now.kind.as_deref()) {
        let data = review::read_fields(&now).unwrap_or_default();
        turn.lost = read_changes(kind, &data, form).unwrap_or_default();
    }
    let page = review_page(state, visitor, &now, &turn).await;
    Ok((failure.status, page).into_response())
}

/// What the form says about the version that it was made for.
fn read_verdict(
    state: &ConsoleState,
    case: &ReviewCase,
    form: &FieldValues,
) -> Result<ReviewerVerdict, ConsoleFailure> {
    let seen = form.get("version").and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok());
    if seen != Some(case.version) {
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
        Some("correct") => Ok(ReviewerVerdict::Correct(DataCorrection::Fields(changes))),
        Some("reject") => Ok(ReviewerVerdict::Reject),
        Some("accept" | "accept_newest") if !changes.is_empty() => {
            let text = "You have changed fields: save what you changed, or load the page again.";
            Err(ConsoleFailure::refused(text))
        }
        Some("accept") => Ok(ReviewerVerdict::Accept(AcceptedData::Document)),
        Some("accept_newest") => Ok(ReviewerVerdict::Accept(AcceptedData::Newest)),
        _ => Err(ConsoleFailure::wrong_request("The form does not say what you have decided.")),
    }
}
