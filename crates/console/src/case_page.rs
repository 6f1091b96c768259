//! The page of one review: a bar with the decisions, the fields, the lines, and the pictured pages.
//! Nothing is written here.

use std::collections::BTreeMap;

use axum::response::Html;
use maud::{Markup, html};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::document_data::DataView;
use super::document_history::decisions_list;
use super::failure::ConsoleFailure;
use super::fields::FieldValues;
use super::findings::{ReviewFinding, explain_reasons, field_of_place};
use super::layout::{fact, foreign_name, form_secret, frame_work, moment, version_text};
use super::page_sheets::{FieldPlaces, PicturedPages};
use super::queue_choice::{QueueChoice, counted};
use super::review_desk::{ReviewLock, lock_notice};
use super::review_form::{REJECT_REASONS, label_of, shown_text};
use super::review_inputs::FormSource;
use super::review_lines::total_text;
use super::similar_documents::{DUPLICATE_RULES, similarity_keys};
use super::state::ConsoleState;
use super::transcripts::{load_page_sheets, work_on_transcript};
use docmill_core::config::WebRole;
use docmill_core::model::{DocumentId, IngestionId};
use docmill_gate::kinds::{FieldRole, Kind, RuleCheck};
use docmill_operations::inspect;
use docmill_operations::review::{
    self, KnownAccount, QueuePlace, ReviewCase, ReviewOrder, SimilarDocument,
};
use docmill_packets::{PageSigns, judge_packet};

/// How a document is shown: for the first time, or once more because something was wrong.
pub(super) struct ReviewTurn<'a> {
    /// The notice at the top; may be empty.
    pub(super) notice: Markup,
    /// Where the values in the form come from; may be empty. Its button belongs to the form.
    pub(super) kept: Markup,
    /// Whose the document is meanwhile.
    pub(super) lock: ReviewLock,
    /// Typed values that go into the form again.
    pub(super) typed: Option<&'a FieldValues>,
    /// Typed values that are shown beside a document that has changed.
    pub(super) lost: BTreeMap<String, String>,
    /// The part of the queue that the reviewer works through.
    pub(super) choice: &'a QueueChoice,
    /// Empty lines more than usual.
    pub(super) added_lines: usize,
    /// Why the form was refused, if that is about one field.
    pub(super) problem: Option<&'a ConsoleFailure>,
}

impl<'a> ReviewTurn<'a> {
    /// For the first time.
    pub(super) fn new(lock: ReviewLock, choice: &'a QueueChoice) -> Self {
        Self {
            notice: Markup::default(),
            kept: Markup::default(),
            lock,
            typed: None,
            lost: BTreeMap::new(),
            choice,
            added_lines: 0,
            problem: None,
        }
    }

    /// Once more, with the problem at the top and at its field.
    pub(super) fn again(
        failure: &'a ConsoleFailure,
        lock: ReviewLock,
        typed: Option<&'a FieldValues>,
        choice: &'a QueueChoice,
    ) -> Self {
        let notice = html! { p.notice.bad role="alert" { (failure.detail) } };
        Self { notice, typed, problem: Some(failure), ..Self::new(lock, choice) }
    }
}

/// A document with its pages, findings and place in the queue.
struct ShownCase<'a> {
    case: &'a ReviewCase,
    kind: Option<&'a Kind>,
    /// The best known data.
    data: Option<Map<String, Value>>,
    pages: &'a PicturedPages,
    findings: &'a [ReviewFinding],
    place: Option<QueuePlace>,
    /// The other document, if this one may be its duplicate.
    similar: Option<SimilarDocument>,
    /// The supplier's confirmed accounts, if a rule found another one.
    known_accounts: Vec<KnownAccount>,
    /// The pages on which further documents seem to begin.
    firsts: Vec<u32>,
}

/// The page of `case`; pages and places as far as they can be had.
pub(super) async fn case_page(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
    turn: &ReviewTurn<'_>,
) -> Html<String> {
    let kind = state.kinds().for_name(case.kind.as_deref()).map(|kind| &**kind);
    let findings = explain_reasons(kind, &case.review_reasons);
    let pages = load_pages(state, visitor, case).await;
    let place = review::find_place(state.database(), &turn.choice.filter, case.document_id).await;
    let shown = ShownCase {
        case,
        kind,
        data: review::read_fields(case),
        pages: &pages,
        findings: &findings,
        place: place.ok(),
        similar: find_similar(state, case, kind).await,
        known_accounts: find_known_accounts(state, case, &findings, kind).await,
        firsts: propose_cuts(state, visitor, case).await,
    };
    let title = case.original_name.clone().unwrap_or_else(|| case.file_path.clone());
    let body = html! {
        div.notices {
            (turn.notice)
            (lock_notice(&turn.lock, visitor.role >= WebRole::Reviewer))
            p id="review-says" .notice.bad role="alert" {}
            @if !turn.lost.is_empty() {
                div.notice { p { "Your unsaved input:" }
                    dl.facts { @for (name, text) in &turn.lost { (fact(name, Some(text))) } } }
            }
        }
        (decision_form(state, visitor, turn, &shown, &title))
    };
    let scripts = [state.review_script_path(), state.picture_script_path()];
    frame_work(state, visitor, &title, &body, &scripts)
}

/// The other document, if a rule found one.
async fn find_similar(
    state: &ConsoleState,
    case: &ReviewCase,
    kind: Option<&Kind>,
) -> Option<SimilarDocument> {
    let kind = kind?;
    let mut rules = kind.rules.iter().filter(|rule| DUPLICATE_RULES.contains(&rule.check));
    rules.find(|rule| case.review_reasons.contains(&rule.name))?;
    let data = review::read_fields(case)?;
    let keys = similarity_keys(kind, &data);
    let (db, document) = (state.database(), DocumentId(case.document_id));
    let found = review::find_similar(db, document, case.tenant.as_deref(), &keys).await;
    found.ok().flatten()
}

/// The supplier's confirmed accounts, if a rule found another one.
async fn find_known_accounts(
    state: &ConsoleState,
    case: &ReviewCase,
    findings: &[ReviewFinding],
    kind: Option<&Kind>,
) -> Vec<KnownAccount> {
    let rules = kind.into_iter().flat_map(|kind| &kind.rules);
    let mut guards = rules.filter(|rule| matches!(rule.check, RuleCheck::KnownAccount(_)));
    let is_guarded = guards.any(|rule| {
        findings.iter().any(|it| it.code.split(':').next() == Some(rule.name.as_str()))
    });
    if !is_guarded {
        return Vec::new();
    }
    review::find_known_accounts(state.database(), case, state.kinds()).await.unwrap_or_default()
}

/// Fields by which a person tells whether two documents are one.
const COMPARED: [FieldRole; 7] = [
    FieldRole::SupplierName,
    FieldRole::SupplierVatId,
    FieldRole::DocumentNumber,
    FieldRole::IssueDate,
    FieldRole::Total,
    FieldRole::Currency,
    FieldRole::Iban,
];

/// Both documents beside each other.
fn similar_table(state: &ConsoleState, shown: &ShownCase<'_>, other: &SimilarDocument) -> Markup {
    let Some((kind, own)) = shown.kind.zip(shown.data.as_ref()) else { return html! {} };
    let fields = COMPARED.map(|role| kind.field_of(role));
    html! {
        div.notice {
            p { "The other document: "
                a href=(state.link(&format!("/ingestions/{}", other.ingestion.0))) {
                    (foreign_name(other.name.as_deref().unwrap_or("open it"))) } }
            div.wide { table {
                thead { tr { th { "field" } th { "here" } th { "there" } th { "" } } }
                tbody { @for field in fields {
                    @let (here, there) = (shown_text(own.get(field)), shown_text(other.data.get(field)));
                    @if !(here.is_empty() && there.is_empty()) {
                        tr { td { (label_of(field)) } td { (foreign_name(&here)) } td { (foreign_name(&there)) }
                            td { (if here == there { "agrees" } else { "differs" }) } }
                    }
                } }
            } }
        }
    }
}

/// The form: bar, fields, lines and pages in one, so that each button of the bar sends it.
fn decision_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    turn: &ReviewTurn<'_>,
    shown: &ShownCase<'_>,
    title: &str,
) -> Markup {
    let case = shown.case;
    let none = Map::new();
    let problem = turn.problem.and_then(|it| Some((it.field.as_deref()?, it.detail.as_str())));
    let source = shown.kind.map(|kind| FormSource {
        kind,
        data: shown.data.as_ref().unwrap_or(&none),
        findings: shown.findings,
        pages: shown.pages,
        typed: turn.typed,
        added_lines: turn.added_lines,
        problem,
    });
    let may = visitor.role >= WebRole::Reviewer;
    let path = state.link(&format!("/reviews/{}", case.document_id));
    let own = match &turn.lock {
        ReviewLock::Own(page) => Some(page),
        _ => None,
    };
    html! {
        form id="review" .review.changed[turn.typed.is_some()] method="post" action=(turn.choice.path(&path, &[])) autocomplete="off"
            data-check=[may.then(|| format!("{path}/check"))] data-renew=[own.map(|_| format!("{path}/renew"))]
            data-ahead=[own.map(|_| turn.choice.path(&state.link("/reviews/ahead"), &[("left", &case.document_id.to_string())]))]
            data-release=[own.map(|_| format!("{path}/release"))]
            data-every=[own.map(|_| (state.review().lease / 3).as_secs())] {
            @if may { (form_secret(visitor)) }
            @if let Some(page) = own { input type="hidden" name="page" value=(page); }
            input type="hidden" name="version" value=(version_text(case.version));
            @for name in ["seconds", "keys"] {
                input type="hidden" name=(name) value=(turn.typed.map(|typed| typed.value(name)).unwrap_or_default());
            }
            div.bar {
                (bar_facts(shown, turn, title))
                @if may { (bar_decisions(shown, turn)) }
                // Violations of the typed data, for readers who do not see them beside the input. Its line is
                // kept free: the picture moves under no pointer when they come.
                div.advice { p id="typed-says" .hint role="status" {} }
            }
            div.fields {
                (turn.kept)
                (case_facts(state, shown, may))
                @match &source {
                    // Who only looks types nothing.
                    Some(source) => fieldset disabled[!may] { (source.inputs()) },
                    None => (data_without_kind(shown)),
                }
                @if let Some(newer) = newer_data(case) {
                    details.more open { summary { "The newest ingestion has other data" } (DataView::of_kind(shown.kind).table(newer)) }
                }
                (decisions_list(case))
                @if may { (keys()) }
            }
            @if let Some(source) = &source { div.grid { fieldset disabled[!may] { (source.lines()) } } }
            (page_sheets(state, shown))
        }
    }
}

/// The newest ingestion's data, if the document carries other data.
fn newer_data(case: &ReviewCase) -> Option<&Value> {
    let newer = case.ingestion_data.as_ref()?;
    case.document_data.as_ref().is_some_and(|data| data != newer).then_some(newer)
}

fn data_without_kind(shown: &ShownCase<'_>) -> Markup {
    html! {
        p.notice.bad { "The kind of this document is not among those of kinds.path: it can be accepted or rejected, not corrected here." }
        @if let Some(data) = &shown.data { (DataView::default().table(&Value::Object(data.clone()))) }
    }
}

/// Name, supplier, amount and place in the queue.
fn bar_facts(shown: &ShownCase<'_>, turn: &ReviewTurn<'_>, title: &str) -> Markup {
    let data = shown.data.as_ref();
    let supplier = shown.kind.zip(data);
    let supplier =
        supplier.and_then(|(kind, data)| data.get(kind.field_of(FieldRole::SupplierName)));
    let amount = shown.kind.zip(data).and_then(|(kind, data)| total_text(kind, data));
    html! {
        div.what {
            h1 title=(title) { (foreign_name(title)) }
            p {
                @if let Some(place) = shown.place.filter(|place| place.total > 0) {
                    span.place-in-queue { (place_text(place, turn.choice.filter.order)) } " "
                }
                @if let Some(supplier) = supplier.and_then(Value::as_str) { bdi { (supplier) } " " }
                @if let Some(amount) = amount { strong.amount { (amount) } }
            }
        }
    }
}

/// `3 of 28`, or of another order than age how many wait.
fn place_text(place: QueuePlace, order: ReviewOrder) -> String {
    match order {
        ReviewOrder::Age if place.place > 0 => {
            format!("{} of {}", place.place, counted(place.total))
        }
        _ => format!("{} waiting", counted(place.total)),
    }
}

/// The decisions. Enter presses the first button: it changes nothing by mistake, because it refuses
/// an unchanged form.
fn bar_decisions(shown: &ShownCase<'_>, turn: &ReviewTurn<'_>) -> Markup {
    let case = shown.case;
    let reason = turn.typed.map(|typed| typed.value("reason")).unwrap_or_default();
    let why = turn.typed.map(|typed| typed.value("why")).unwrap_or_default();
    html! {
        div.decide {
            @if let ReviewLock::Others(_) = &turn.lock {
                button.first name="decision" value="skip" accesskey="s" { "Next free one" }
                button name="decision" value="take_over" accesskey="t" { "Take it over" }
            } @else {
                @if shown.kind.is_some() { button name="decision" value="correct" accesskey="c" { "Save and finish " kbd { "⏎" } } }
                @if shown.data.is_some() { button.first name="decision" value="accept" accesskey="a" { "Approve " kbd { "Ctrl ⏎" } } }
                @if newer_data(case).is_some() { button name="decision" value="accept_newest" { "Approve the newer data" } }
                @if case.needs_human_review { button name="decision" value="skip" accesskey="s" { "Later " kbd { "S" } } }
                span.reject {
                    label.unseen-label for="reason" { "Reason to reject" }
                    select id="reason" name="reason" {
                        option value="" { "Reason…" }
                        @for (code, words) in REJECT_REASONS { option value=(code) selected[*code == reason] { (words) } }
                    }
                    label.unseen-label for="why" { "Note (needed to reject without a reason)" }
                    input id="why" name="why" placeholder="Note" value=(why);
                    button.danger name="decision" value="reject" accesskey="r" { "Reject " kbd { "R" } }
                }
                (cut_choice(shown, turn))
            }
        }
    }
}

/// Which pages begin a document: a box for each page, the proposed ones ticked.
fn cut_choice(shown: &ShownCase<'_>, turn: &ReviewTurn<'_>) -> Markup {
    let sheets = shown.pages.sheets();
    let ticked = |page: u32| match turn.typed {
        Some(typed) => typed.all("first").any(|text| text == page.to_string()),
        None => shown.firsts.contains(&page),
    };
    html! {
        @if sheets.len() > 1 {
            details.cut open[!shown.firsts.is_empty()] {
                summary accesskey="p" { "Several documents " kbd { "P" } }
                fieldset {
                    legend { "A document begins on page" }
                    @for sheet in sheets.iter().skip(1) {
                        label { input type="checkbox" name="first" value=(sheet.number) checked[ticked(sheet.number)]; " " (sheet.number) " " }
                    }
                }
                button.danger name="decision" value="cut" { "Cut into documents" }
            }
        }
    }
}

/// The findings about the whole document, and its origin.
fn case_facts(state: &ConsoleState, shown: &ShownCase<'_>, may: bool) -> Markup {
    let case = shown.case;
    let whole: Vec<_> = shown.findings.iter().filter(|it| it.fields.is_empty()).collect();
    html! {
        @if !case.needs_human_review { p.notice { "Nothing to review." } }
        @if let Some(first) = &case.pending {
            p.notice { (foreign_name(&first.reviewer)) " has " (first.decision) " it at " (moment(first.decided_at))
                ", as the form shows it. A second person has to accept it; a change needs another second person." }
        }
        @if !whole.is_empty() {
            ul.whole { @for finding in whole { li.finding title=(finding.code) { (finding.words) } } }
        }
        @if let Some(other) = &shown.similar { (similar_table(state, shown, other)) }
        @for known in &shown.known_accounts {
            p.notice { "Confirmed account: " bdi { (known.account) } " since " (moment(known.since))
                ", documents: " (known.documents) }
        }
        details.more {
            summary { "Document" }
            dl.facts {
                (fact("Kind", case.kind.as_deref()))
                (fact("Tenant", case.tenant.as_deref()))
                (fact("Status of the newest ingestion", case.status.as_deref()))
                (fact("Its reason", case.reason.as_deref()))
                (fact("Stored at", Some(&case.file_path)))
            }
            @if let Some(id) = case.ingestion_id { (ingestion_actions(state, case, id, may)) }
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

/// The pages on which further documents may begin, if the gate found any.
async fn propose_cuts(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
) -> Vec<u32> {
    let is_packet = case.review_reasons.iter().any(|reason| reason == "several_documents");
    let Some(key) = case.transcription_file_path.as_deref().filter(|_| is_packet) else {
        return Vec::new();
    };
    let kinds = state.kinds().clone();
    let found = work_on_transcript(state, visitor, key, move |read, _| {
        let signs: Vec<PageSigns> =
            read.pages.iter().map(|page| PageSigns::read(page, &kinds)).collect();
        judge_packet(&signs).parts().iter().skip(1).map(|part| part.first).collect()
    });
    found.await.ok().flatten().unwrap_or_default()
}

fn is_doubtful(findings: &[ReviewFinding], field: &str) -> bool {
    let whole = field_of_place(field);
    findings.iter().any(|finding| finding.fields.iter().any(|it| it == whole))
}

/// The ingestion's page, the original, and reading it again as another kind. The buttons send the
/// form elsewhere, and the typed values stay on the page.
fn ingestion_actions(state: &ConsoleState, case: &ReviewCase, id: Uuid, may: bool) -> Markup {
    let path = state.link(&format!("/ingestions/{id}"));
    html! {
        p.actions {
            a href=(path) { "The ingestion" }
            @if may { button.plain formaction={ (path) "/original" } data-stays { "Download the original" } }
        }
        @if may {
            p.actions {
                label.unseen-label for="new_kind" { "Another kind" }
                select id="new_kind" name="new_kind" { option value="" { "Another kind…" }
                    @for kind in state.kinds().iter().filter(|kind| Some(kind.name.as_str()) != case.kind.as_deref()) {
                        option value=(kind.name) { (kind.title) } } }
                button formaction={ (path) "/kind" } { "Read again as this kind" }
            }
        }
    }
}

/// The pages as pictures with their text folded; without a transcript the picture of the first.
fn page_sheets(state: &ConsoleState, shown: &ShownCase<'_>) -> Markup {
    let (pages, findings) = (shown.pages, shown.findings);
    let sheets = pages.sheets();
    html! {
        div.sheets-field {
            div.tools {
                h2 id="pages" { "Document" }
                span.buttons data-tools hidden {
                    button.plain type="button" data-zoom="out" aria-label="Smaller" { "−" }
                    button.plain type="button" data-zoom="in" aria-label="Larger" { "+" }
                    button.plain type="button" data-whole { "Fit" }
                    button.plain type="button" data-rotate { "Rotate" }
                }
                @if sheets.len() > 1 {
                    nav.thumbs aria-label="Pages of the document" {
                        @for sheet in sheets { (thumbnail(pages, findings, sheet.number)) }
                    }
                }
            }
            // It scrolls beside the form, for which it has to be reached by keys.
            div.sheets tabindex="0" role="region" aria-labelledby="pages" {
                @for sheet in sheets {
                    section.page id={ "page-" (sheet.number) } {
                        (pages.picture(sheet.number, |field| is_doubtful(findings, field)))
                        details { summary { "Text of page " (sheet.number) } pre { (sheet.text) } }
                    }
                }
                @if sheets.is_empty() { (first_picture(state, shown.case)) }
            }
        }
    }
}

/// A small picture of a page that leads to it, marked if there is something to be checked.
fn thumbnail(pages: &PicturedPages, findings: &[ReviewFinding], number: u32) -> Markup {
    let doubtful = pages.has_mark_on(number, |field| is_doubtful(findings, field));
    html! {
        a href={ "#page-" (number) } class=[doubtful.then_some("doubtful")] {
            (pages.small_picture(number))
            span { (number) @if doubtful { span.unseen-label { ", to be checked" } } }
        }
    }
}

/// The first page of a document of which nothing was read.
fn first_picture(state: &ConsoleState, case: &ReviewCase) -> Markup {
    let picture = case.ingestion_id.filter(|_| state.drawer().is_some());
    html! {
        @match picture.map(|id| state.link(&format!("/ingestions/{id}/pages/1/picture"))) {
            Some(source) => figure.sheet {
                img src=(source) alt="Page 1 as it looks" loading="lazy";
                p.unseen hidden { a href=(source) { "Page 1 cannot be shown: why?" } }
            },
            None => p { "Nothing was read of this document, and there is no picture of it." },
        }
    }
}

/// The access keys, for use without a mouse; they work with and without the script, except the
/// last ones.
fn keys() -> Markup {
    let rows = [
        ("Tab, Shift+Tab", "next and previous input, doubtful fields first"),
        ("Enter", "save what I changed, and finish"),
        ("access key a", "approve as it is"),
        ("access key c", "save what I changed, and finish"),
        ("access key r", "reject; needs a reason"),
        ("access key p", "say which pages begin a document; then space on a page"),
        ("access key u", "undo my last decision"),
        ("access key s", "later: set it aside for a day, on to the next free one"),
        ("access key t", "take over from another reviewer"),
        ("access key l", "to the first empty line of the lines"),
        ("access key h", "open and close this list"),
        ("Alt+Down, Alt+Up", "next and previous field; among lines the next and previous line"),
        ("Alt+N, Alt+Delete", "add a line; delete the line"),
        ("Ctrl+Enter", "approve as it is"),
        (
            "click, drag on the page",
            "fill the field with the words, in a table rows with lines; with Shift add them",
        ),
    ];
    html! {
        details.keys {
            summary accesskey="h" { "Keys" }
            dl.facts { @for (key, does) in rows { div { dt { kbd { (key) } } dd { (does) } } } }
            p.hint { "Access keys go with Alt, Alt+Shift or Control+Option, as your browser has it." }
        }
    }
}
