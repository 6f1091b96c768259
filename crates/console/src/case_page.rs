//! The page of one review: the reasons, the form beside the pictured pages, and earlier decisions.
//! Nothing is written here.

use std::collections::{BTreeMap, BTreeSet};

use axum::response::Html;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::access::ConsoleVisitor;
use super::fields::FieldValues;
use super::findings::{ReviewFinding, explain_reason, field_of_place};
use super::ingestion::data_table;
use super::layout::{fact, foreign_name, form_secret, frame_with, moment, version_text};
use super::page_sheets::{FieldPlaces, PicturedPages};
use super::review_desk::{ReviewLock, lock_notice};
use super::review_form::FormSource;
use super::state::ConsoleState;
use super::transcripts::load_page_sheets;
use docmill_core::config::WebRole;
use docmill_core::model::IngestionId;
use docmill_operations::inspect;
use docmill_operations::review::{self, ReviewCase};

/// How a document is shown: for the first time, or once more because something was wrong.
pub(super) struct ReviewTurn<'a> {
    /// The notice at the top; may be empty.
    pub(super) notice: Markup,
    /// Whose the document is meanwhile.
    pub(super) lock: ReviewLock,
    /// Typed values that go into the form again.
    pub(super) typed: Option<&'a FieldValues>,
    /// Typed values that are shown beside a document that has changed.
    pub(super) lost: BTreeMap<String, String>,
}

impl<'a> ReviewTurn<'a> {
    /// Once more, with the problem at the top.
    pub(super) fn again(problem: &str, lock: ReviewLock, typed: Option<&'a FieldValues>) -> Self {
        let notice = html! { p.notice.bad role="alert" { (problem) } };
        Self { notice, lock, typed, lost: BTreeMap::new() }
    }
}

/// The page of `case`; pages and places as far as they can be had.
pub(super) async fn case_page(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
    turn: &ReviewTurn<'_>,
) -> Html<String> {
    let kind = state.kinds().for_name(case.kind.as_deref()).map(|kind| &**kind);
    let findings: Vec<ReviewFinding> =
        case.review_reasons.iter().map(|code| explain_reason(kind, code)).collect();
    let pages = load_pages(state, visitor, case).await;
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
        (lock_notice(&turn.lock, may))
        p id="review-says" .notice.bad role="alert" {}
        @if !turn.lost.is_empty() {
            p { "Your unsaved input:" }
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
        p { @if case.needs_human_review { "Needs review." } @else { "Nothing to review." } }
        @if let Some(first) = &case.pending {
            p { (foreign_name(&first.reviewer)) " has " (first.decision) " it at " (moment(first.decided_at))
                ", as the form shows it. A second person has to accept it; a change needs another second person." }
        }
        ul { @for finding in whole { li.finding { (finding.words) " " span.hint { (finding.code) } } } }
        dl.facts {
            (fact("Kind", case.kind.as_deref()))
            (fact("Tenant", case.tenant.as_deref()))
            (fact("Status of the newest ingestion", case.status.as_deref()))
            (fact("Its reason", case.reason.as_deref()))
            (fact("Stored at", Some(&case.file_path)))
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
async fn load_pages(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
) -> PicturedPages {
    let sheets = match &case.transcription_file_path {
        Some(key) => load_page_sheets(state, visitor, key).await,
        None => Vec::new(),
    };
    let places = match case.ingestion_id {
        Some(id) => inspect::load_grounding(state.database(), IngestionId(id)).await.ok().flatten(),
        None => None,
    };
    PicturedPages::new(state, case.ingestion_id, sheets, FieldPlaces::read(places))
}

fn is_doubtful(findings: &[ReviewFinding], field: &str) -> bool {
    let whole = field_of_place(field);
    findings.iter().any(|finding| finding.fields.iter().any(|it| it == whole))
}

/// The text of the pages, open where there is something to be checked.
fn page_sheets(pages: &PicturedPages, findings: &[ReviewFinding]) -> Markup {
    let sheets = pages.sheets();
    let doubtful: BTreeSet<u32> = sheets
        .iter()
        .map(|sheet| sheet.number)
        .filter(|number| pages.has_mark_on(*number, |field| is_doubtful(findings, field)))
        .collect();
    html! {
        @if !sheets.is_empty() {
            // It scrolls beside the form, for which it has to be reached by keys.
            section.sheets aria-labelledby="pages" tabindex="0" {
                h2 id="pages" { "Text of the pages" }
                button.plain type="button" data-whole hidden { "Whole page" }
                @for (at, sheet) in sheets.iter().enumerate() {
                    details open[doubtful.contains(&sheet.number) || (doubtful.is_empty() && at == 0)] {
                        summary { "Page " (sheet.number) }
                        (pages.picture(sheet.number, |field| is_doubtful(findings, field)))
                        pre { (sheet.text) }
                    }
                }
            }
        }
    }
}

/// A document with its pages and findings.
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
    let path = state.link(&format!("/reviews/{}", case.document_id));
    let own = match &turn.lock {
        ReviewLock::Own(page) => Some(page),
        _ => None,
    };
    let newer = case.ingestion_data.as_ref();
    let newer =
        newer.filter(|_| case.document_data.is_some() && case.document_data != case.ingestion_data);
    html! {
        form id="review" method="post" action=(path)
            data-check=[may.then(|| format!("{path}/check"))] data-renew=[own.map(|_| format!("{path}/renew"))]
            data-release=[own.map(|_| format!("{path}/release"))]
            data-every=[own.map(|_| (state.review().lease / 3).as_secs())] {
            @if may { (form_secret(visitor)) }
            @if let Some(page) = own { input type="hidden" name="page" value=(page); }
            input type="hidden" name="version" value=(version_text(case.version));
            // Violations of the typed data, for readers who do not see them beside the input.
            p id="typed-says" .hint role="status" {}
            @match source {
                Some(source) => (source.inputs()),
                None => {
                    p.notice.bad { "The kind of this document is not among those of kinds.path: it can be accepted or rejected, not corrected here." }
                    @if let Some(data) = &data { (data_table(&Value::Object(data.clone()))) }
                }
            }
            @if let Some(newer) = newer {
                h2 { "The newest ingestion has other data" }
                (data_table(newer))
            }
            @if may {
                @match &turn.lock {
                    ReviewLock::Others(_) => (take_over_buttons()),
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

/// The access keys, for use without a mouse; they work with and without the script, except the
/// last two.
fn keys() -> Markup {
    let rows = [
        ("Tab, Shift+Tab", "next and previous input, doubtful fields first"),
        ("Enter", "save what I changed"),
        ("access key a", "accept as it is"),
        ("access key c", "save what I changed"),
        ("access key r", "reject; needs a reason"),
        ("access key u", "undo my last decision"),
        ("access key s", "skip: release it, on to the next free one"),
        ("access key t", "take over from another reviewer"),
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
            // Enter presses the first button: it changes nothing by mistake, because it refuses an
            // unchanged form.
            @if has_kind { button.first name="decision" value="correct" accesskey="c" { "Save what I changed" } }
            @if has_data { button name="decision" value="accept" accesskey="a" { "Accept as it is" } }
            @if has_newer { button name="decision" value="accept_newest" { "Accept the newer data" } }
            button name="decision" value="reject" accesskey="r" { "Reject" }
            @if case.needs_human_review { button name="decision" value="skip" accesskey="s" { "Skip" } }
        }
    }
}
