//! What needs a person: the queue, one document, and the decision about it. How reviewers get along
//! beside each other is in `review_desk`.
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
    age_since, fact, foreign_name, form_secret, frame_page, frame_with, moment, next_link,
    state_mark, version_text,
};
use super::listing::{PAGE, read_cursor};
use super::page_sheets::{FieldPlaces, PicturedPages};
use super::review_desk::{
    ReviewSeat, done_notice, load_visible_case, next_path, seat_notice, skip_document, take_seat,
};
use super::review_form::{FormSource, read_changes};
use super::state::ConsoleState;
use super::transcripts::load_page_sheets;
use crate::ops::inspect;
use crate::ops::review::{
    self, AcceptedData, DataCorrection, DecidingReviewer, RecordedDecision, ReviewCase,
    ReviewOrder, ReviewQuery, ReviewRow,
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

/// A verdict with what belongs to it.
pub(super) struct SaidVerdict<'a> {
    /// The verdict.
    pub(super) verdict: ReviewerVerdict,
    /// The reviewer's words; may be empty.
    pub(super) why: &'a str,
    /// Whether it holds also if somebody else has the document open.
    pub(super) take_over: bool,
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

/// Writes a verdict about `case` down.
///
/// # Errors
/// `version_changed` if the document is no longer as in `case`; `held` if somebody else has it open;
/// what does not fit is refused.
pub(super) async fn record_verdict(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
    said: SaidVerdict<'_>,
) -> Result<RecordedDecision, ConsoleFailure> {
    let db = state.database();
    let by = DecidingReviewer {
        by: visitor.audit_note(said.why),
        config: state.review(),
        take_over: said.take_over,
    };
    let done = match said.verdict {
        ReviewerVerdict::Accept(which) => review::accept_document(db, case, which, &by).await,
        ReviewerVerdict::Correct(correction) => {
            review::correct_document(db, case, state.kinds(), correction, &by).await
        }
        ReviewerVerdict::Reject => review::reject_document(db, case, &by).await,
    };
    match done {
        Err(error) if error.fault == Fault::Rejected => {
            let now = review::load_case(db, &case.document_id.to_string()).await?;
            let is_others = |hold: &review::ReviewHold| {
                !review::is_same_person(&hold.reviewer, &by.by.operator)
            };
            if now.version != case.version {
                Err(stale_version(&now))
            } else if !by.take_over && now.held.as_ref().is_some_and(is_others) {
                Err(ConsoleFailure::held(error.to_string()))
            } else {
                Err(error.into())
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
        (done_notice(&state, &visitor, &wanted, None).await?)
        @if visitor.role >= WebRole::Reviewer && !page.rows.is_empty() {
            p { a.button href=(state.link("/reviews/next")) { "Begin with the first free one" } }
        }
        (queue_filters(&state, &visitor, &wanted))
        @if page.rows.is_empty() { p { "Nothing waits for a person." } } @else {
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
            div { label for="order" { "First" }
                select id="order" name="order" {
                    option value="age" { "what waits longest" }
                    option value="amount" selected[wanted.get("order") == Some("amount")] { "the largest amount" } } }
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
    let notice = done_notice(&state, &visitor, &wanted, Some(case.document_id)).await?;
    let seat = take_seat(&state, &visitor, &case, false).await;
    let turn = ReviewTurn { notice, seat, typed: None, lost: BTreeMap::new() };
    Ok(review_page(&state, &visitor, &case, &turn).await)
}

/// How a document is shown: for the first time, or once more because something was wrong.
struct ReviewTurn<'a> {
    notice: Markup,
    /// Whose the document is meanwhile.
    seat: ReviewSeat,
    /// Typed values that go into the form again.
    typed: Option<&'a FieldValues>,
    /// Typed values that are shown beside a document that has changed.
    lost: BTreeMap<String, String>,
}

impl<'a> ReviewTurn<'a> {
    fn again(problem: &str, seat: ReviewSeat, typed: Option<&'a FieldValues>) -> Self {
        let notice = html! { p.notice.bad role="alert" { (problem) } };
        Self { notice, seat, typed, lost: BTreeMap::new() }
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
    let pages = load_pages(state, case).await;
    let title = case.original_name.clone().unwrap_or_else(|| case.file_path.clone());
    let form = decision_form(
        state,
        visitor,
        turn,
        &ShownCase { case, pages: &pages, findings: &findings },
    );
    let may = visitor.role >= WebRole::Reviewer;
    let body = html! {
        (turn.notice)
        (seat_notice(&turn.seat, may))
        p id="review-says" .notice.bad role="alert" {}
        @if !turn.lost.is_empty() {
            p { "What you had typed:" }
            dl.facts { @for (name, text) in &turn.lost { (fact(name, Some(text))) } }
        }
        (case_facts(state, case, &findings))
        div.desk {
            div { (form) }
            (page_sheets(&pages, &findings))
        }
        (decisions(case))
    };
    let scripts = [state.review_script_path(), state.picture_script_path()];
    frame_with(state, Some(visitor), &title, &body, &scripts)
}

fn case_facts(state: &ConsoleState, case: &ReviewCase, findings: &[ReviewFinding]) -> Markup {
    let whole = findings.iter().filter(|finding| finding.fields.is_empty());
    html! {
        p { @if case.needs_human_review { "Calls for a person." } @else { "Nothing to review." } }
        @if let Some(first) = &case.pending {
            p { (foreign_name(&first.reviewer)) " has " (first.decision) " it at " (moment(first.decided_at))
                ", as the form shows it: a second person has to accept that. What anybody changes has to be accepted by another one again." }
        }
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
                @if let Some(first) = &last.first_by { "after " (foreign_name(first)) " " }
                @if last.awaits_second { "(the first of two) " }
                (foreign_name(&last.why))
            } } }
        }
    }
}

/// The pages of the newest ingestion, as far as they can be had: the form is of use without them.
async fn load_pages(state: &ConsoleState, case: &ReviewCase) -> PicturedPages {
    let sheets = match &case.transcription_file_path {
        Some(key) => load_page_sheets(state, key).await,
        None => Vec::new(),
    };
    let places = match case.ingestion_id {
        Some(id) => inspect::load_grounding(state.database(), IngestionId(id)).await.ok().flatten(),
        None => None,
    };
    PicturedPages::new(state, case.ingestion_id, sheets, FieldPlaces::read(places))
}

/// What stands on the pages, open where there is something to be checked.
fn page_sheets(pages: &PicturedPages, findings: &[ReviewFinding]) -> Markup {
    let is_doubtful = |field: &str| {
        let whole = field.split(['[', '.']).next().unwrap_or(field);
        findings.iter().any(|finding| finding.fields.iter().any(|it| it == whole))
    };
    let sheets = pages.sheets();
    let has_doubt = |number| pages.has_mark_on(number, is_doubtful);
    let none = !sheets.iter().any(|sheet| has_doubt(sheet.number));
    html! {
        @if !sheets.is_empty() {
            // It scrolls beside the form, for which it has to be reached by keys.
            section.sheets aria-labelledby="pages" tabindex="0" {
                h2 id="pages" { "What stands on the pages" }
                button.plain type="button" data-whole hidden { "Whole page" }
                @for (at, sheet) in sheets.iter().enumerate() {
                    details open[has_doubt(sheet.number) || (none && at == 0)] {
                        summary { "Page " (sheet.number) }
                        (pages.picture(sheet.number, is_doubtful))
                        pre { (sheet.text) }
                    }
                }
            }
        }
    }
}

/// A document with what is shown beside its data.
struct ShownCase<'a> {
    case: &'a ReviewCase,
    pages: &'a PicturedPages,
    findings: &'a [ReviewFinding],
}

fn decision_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    turn: &ReviewTurn<'_>,
    shown: &ShownCase<'_>,
) -> Markup {
    let ShownCase { case, pages, findings } = *shown;
    let kind = state.kinds().for_name(case.kind.as_deref()).map(|kind| &**kind);
    let data = review::read_fields(case);
    let none = Map::new();
    let source = kind.map(|kind| FormSource {
        kind,
        data: data.as_ref().unwrap_or(&none),
        findings,
        pages,
        typed: turn.typed,
    });
    let may = visitor.role >= WebRole::Reviewer;
    let link = |rest: &str| state.link(&format!("/reviews/{}{rest}", case.document_id));
    let own = match &turn.seat {
        ReviewSeat::Own(page) => Some(page),
        _ => None,
    };
    let newer = case.ingestion_data.as_ref();
    let newer =
        newer.filter(|_| case.document_data.is_some() && case.document_data != case.ingestion_data);
    html! {
        form id="review" method="post" action=(link(""))
            data-check=[may.then(|| link("/check"))] data-renew=[own.map(|_| link("/renew"))] data-release=[own.map(|_| link("/release"))]
            data-every=[own.map(|_| (state.review().lease / 3).as_secs())] {
            @if may { (form_secret(visitor)) }
            @if let Some(page) = own { input type="hidden" name="page" value=(page); }
            input type="hidden" name="version" value=(version_text(case.version));
            // What the rules say of what is typed, for those who do not see it beside the input.
            p id="typed-says" .hint role="status" {}
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
            @if may {
                @match &turn.seat {
                    ReviewSeat::Others(_) => (take_over_buttons()),
                    _ => (decision_buttons(case, data.is_some(), kind.is_some(), newer.is_some())),
                }
            }
        }
        @if may { (keys()) }
    }
}

fn take_over_buttons() -> Markup {
    html! {
        div.actions {
            button.first name="decision" value="skip" accesskey="s" { "Next free one" }
            button name="decision" value="take_over" accesskey="t" { "Take it over" }
        }
    }
}

/// The keys, for those who use no mouse; the same whether a script runs or not, but for the last two.
fn keys() -> Markup {
    let rows = [
        ("Tab, Shift+Tab", "next and previous input, doubtful fields first"),
        ("Enter", "save what I changed"),
        ("access key a", "accept as it is"),
        ("access key c", "save what I changed"),
        ("access key r", "reject; say why before"),
        ("access key u", "undo my last decision"),
        ("access key s", "skip: give it back, on to the next free one"),
        ("access key t", "take over what somebody else has"),
        ("access key l", "to the first empty line of the longest list"),
        ("access key h", "open and close this list"),
        ("Alt+Down, Alt+Up", "next and previous field; among items the next and previous line"),
        ("Ctrl+Enter", "accept as it is"),
    ];
    html! {
        details.keys open {
            summary accesskey="h" { "Keys" }
            dl.facts { @for (key, does) in rows { div { dt { kbd { (key) } } dd { (does) } } } }
            p.hint { "Access keys go with Alt, Alt+Shift or Control+Option, as your browser has it." }
        }
    }
}

fn decision_buttons(case: &ReviewCase, has_data: bool, has_kind: bool, has_newer: bool) -> Markup {
    html! {
        div.field { label for="why" { "Why (needed to reject)" } input id="why" name="why"; }
        div.actions {
            // The first button is the one that Enter presses: it changes nothing by mistake,
            // because it refuses a form in which nothing was changed.
            @if has_kind { button.first name="decision" value="correct" accesskey="c" { "Save what I changed" } }
            @if has_data { button name="decision" value="accept" accesskey="a" { "Accept as it is" } }
            @if has_newer { button name="decision" value="accept_newest" { "Accept the newer reading" } }
            button name="decision" value="reject" accesskey="r" { "Reject" }
            @if case.needs_human_review { button name="decision" value="skip" accesskey="s" { "Skip" } }
        }
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
    match form.get("decision") {
        Some("skip") => return skip_document(&state, &visitor, case.document_id).await,
        Some("take_over") => return take_over(&state, &visitor, &case, &form).await,
        _ => {}
    }
    let done = match read_verdict(&state, &case, &form) {
        Ok(verdict) => {
            let why = form.get("why").unwrap_or_default();
            let said = SaidVerdict { verdict, why, take_over: false };
            record_verdict(&state, &visitor, &case, said).await
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
            show_lost(&state, &visitor, &case, &form, &failure).await
        }
        Err(failure) if is_told_on_page(failure.status) => {
            let seat = take_seat(&state, &visitor, &case, false).await;
            let turn = ReviewTurn::again(&failure.detail, seat, Some(&form));
            let page = review_page(&state, &visitor, &case, &turn).await;
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

/// Whether the reviewer can go on where he is: what he said was refused, or somebody has it.
fn is_told_on_page(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNPROCESSABLE_ENTITY | StatusCode::CONFLICT)
}

/// The document as it is, with what went wrong.
async fn show_problem(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
    failure: &ConsoleFailure,
) -> Result<Response, ConsoleFailure> {
    let seat = take_seat(state, visitor, case, false).await;
    let turn = ReviewTurn::again(&failure.detail, seat, None);
    let page = review_page(state, visitor, case, &turn).await;
    Ok((failure.status, page).into_response())
}

/// Makes the document the visitor's whoever has it, and keeps what was typed.
async fn take_over(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
    form: &FieldValues,
) -> Result<Response, ConsoleFailure> {
    if read_version(form) != Some(case.version) {
        return show_lost(state, visitor, case, form, &stale_version(case)).await;
    }
    let seat = take_seat(state, visitor, case, true).await;
    let notice = html! { p.notice role="status" { "It is yours now." } };
    let turn = ReviewTurn { notice, seat, typed: Some(form), lost: BTreeMap::new() };
    Ok(review_page(state, visitor, case, &turn).await.into_response())
}

/// The version that the form was made for.
fn read_version(form: &FieldValues) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(form.get("version")?, &Rfc3339).ok()
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
    let seat = take_seat(state, visitor, &now, false).await;
    let mut turn = ReviewTurn::again(&failure.detail, seat, None);
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
