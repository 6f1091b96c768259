//! Quality: the stated bounds on silent errors and what more looks would buy, the straight-through
//! share, and where errors arise. Counts alone: which documents were drawn is shown nowhere.

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Html, Response};
use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::api_forms::tagged_json;
use super::failure::ConsoleFailure;
use super::findings::explain_reason;
use super::layout::{foreign_name, frame_page, moment};
use super::review_form::label_of;
use super::state::ConsoleState;
use docmill_operations::silent_errors::{self, BoundStatement, LevelPrice, QualityReport};

/// `/quality`.
pub(super) async fn show_quality(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
) -> Result<Html<String>, ConsoleFailure> {
    let report = load_report(&state, &visitor).await?;
    let body = html! {
        h2 { "Stated bounds" }
        @if report.bounds.is_empty() {
            p { "No bound on silent errors is stated, or no document was drawn yet. Set "
                code { "silent_errors.at_most_one_in" } " to state one." }
        }
        @for bound in &report.bounds { (show_bound(bound)) }
        (show_throughput(&report))
        (show_reasons(&report))
        (show_corrections(&report))
        (show_efforts(&report))
    };
    Ok(frame_page(&state, Some(&visitor), "Quality", &body))
}

/// The bounds on silent errors, the straight-through share, and where errors arise.
#[utoipa::path(
    get,
    path = "/quality",
    operation_id = "getQuality",
    responses((status = 200, description = "Done.", body = QualityReport))
)]
pub(super) async fn get_quality(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    tagged_json(&headers, &load_report(&state, &visitor).await?)
}

async fn load_report(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
) -> Result<QualityReport, ConsoleFailure> {
    let (db, terms, tenant) = (state.database(), state.silent_errors(), visitor.tenant.as_deref());
    Ok(silent_errors::report_quality(db, terms, state.kinds(), tenant).await?)
}

fn show_bound(bound: &BoundStatement) -> Markup {
    let scope = &bound.scope;
    html! {
        h3 { (foreign_name(&scope.kind)) " by " (foreign_name(&scope.reader))
            @if !scope.tenant.is_empty() { " for " (foreign_name(&scope.tenant)) } }
        p { (state_words(bound)) " Since " (moment(bound.since)) "." }
        p { (bound.decided) " drawn documents decided, " (bound.wrong) " of them wrong, "
            (bound.waiting) " waiting." }
        div.wide { table {
            thead { tr { th { "flagged" } th { "passing" } th { "more looks, all right" } } }
            tbody { @for price in &bound.levels { tr {
                td { (level_words(price.level)) }
                td { (share_words(price.passing)) }
                td { (price_words(price, bound.one_in)) }
            } } }
        } }
    }
}

fn state_words(bound: &BoundStatement) -> String {
    let one_in = bound.one_in;
    match (bound.state, bound.at_most) {
        ("shown", Some(share)) => format!(
            "At most 1 in {one_in} unflagged documents is wrong, with a certainty of 95 %. Now: at \
             most {:.2} %. {}.",
            share * 100.0,
            level_words(bound.level)
        ),
        ("broken", _) => format!(
            "More than 1 in {one_in} were wrong: every document is flagged until decisions show the \
             bound again."
        ),
        (_, share) => format!(
            "1 in {one_in} is not shown yet: the gate stays as it is. Shown: at most {:.1} % wrong.",
            share.unwrap_or(1.0) * 100.0
        ),
    }
}

fn level_words(level: f32) -> String {
    if level <= 0.0 {
        "The gate as it is".to_owned()
    } else {
        format!("Also what is less certain than {level:.2}")
    }
}

fn share_words(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

fn price_words(price: &LevelPrice, one_in: u32) -> String {
    match price.looks_to_show {
        Some(0) => format!("1 in {one_in} is shown"),
        Some(looks) => format!("{looks} show 1 in {one_in}"),
        None => "out of reach".to_owned(),
    }
}

fn named_or_dash(name: &str) -> Markup {
    foreign_name(if name.is_empty() { "–" } else { name })
}

fn show_throughput(report: &QualityReport) -> Markup {
    html! {
        h2 { "Without a person" }
        @if report.throughput.is_empty() { p { "No document has ended yet." } } @else {
            div.wide { table {
                thead { tr { th { "kind" } th { "reader" } th { "ended" } th { "unflagged" } } }
                tbody { @for row in &report.throughput { tr {
                    td { (named_or_dash(&row.kind)) } td { (named_or_dash(&row.reader)) }
                    td { (row.ended) }
                    td { (share_words(Some(row.straight_through as f64 / row.ended.max(1) as f64))) }
                } } }
            } }
        }
    }
}

fn show_reasons(report: &QualityReport) -> Markup {
    html! {
        @if !report.reasons.is_empty() {
            h2 { "Reasons that led to a change" }
            div.wide { table {
                thead { tr { th { "reason" } th { "decided" } th { "changed" } } }
                tbody { @for row in &report.reasons { tr {
                    td { (explain_reason(None, &row.reason).words) }
                    td { (row.decided) } td { (row.changed) }
                } } }
            } }
        }
    }
}

fn show_efforts(report: &QualityReport) -> Markup {
    html! {
        @if !report.efforts.is_empty() {
            h2 { "Effort of decisions" }
            p.hint { "Medians, of pages with script." }
            div.wide { table {
                thead { tr { th { "kind" } th { "decisions" } th { "seconds" } th { "keys" } } }
                tbody { @for row in &report.efforts { tr {
                    td { (foreign_name(&row.kind)) } td { (row.measured) }
                    td { (format!("{:.0}", row.seconds)) } td { (format!("{:.0}", row.keys)) }
                } } }
            } }
        }
    }
}

fn show_corrections(report: &QualityReport) -> Markup {
    html! {
        @if !report.corrections.is_empty() {
            h2 { "Corrections by field" }
            div.wide { table {
                thead { tr { th { "field" } th { "reader" } th { "corrections" } } }
                tbody { @for row in &report.corrections { tr {
                    td { (label_of(&row.field)) } td { (foreign_name(&row.reader)) }
                    td { (row.corrections) }
                } } }
            } }
        }
        @if !report.suppliers.is_empty() {
            h2 { "Corrections by supplier" }
            div.wide { table {
                thead { tr { th { "supplier" } th { "decided" } th { "corrected" } } }
                tbody { @for row in &report.suppliers { tr {
                    td { (foreign_name(&row.supplier)) } td { (row.decided) } td { (row.changed) }
                } } }
            } }
        }
    }
}
