//! The report as one HTML file: tables, plots, and every value that was read otherwise than known.
//!
//! Holds document content, so it is made only when somebody names a file for it. Self-contained:
//! no script, no picture, no font from elsewhere, and a policy that forbids them, because what
//! documents say ends up in it.

use std::fmt::Write as _;

use serde_json::Value;

use super::baseline::RunComparison;
use super::{DocumentScore, EvalReport, GroupReport, plot};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;\
padding:0 1rem;color:#1c2430;background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}\
table{border-collapse:collapse;margin:.6rem 0}td,th{padding:.2rem .7rem;text-align:left;\
border-bottom:1px solid #8884;vertical-align:top}td.n,th.n{text-align:right;\
font-variant-numeric:tabular-nums}.bad{color:#b3261e}.ok{color:#146c2e}svg{max-width:100%;\
height:auto}svg text{font:12px system-ui,sans-serif;fill:currentColor}.bar{fill:#3b6fb5}\
.frame{fill:none;stroke:#8888}.ideal{stroke:#8888;stroke-dasharray:4 4}.point{fill:#3b6fb5;\
fill-opacity:.7}code{overflow-wrap:anywhere}.plots{display:flex;flex-wrap:wrap;gap:2rem}\
@media(prefers-color-scheme:dark){body{color:#dfe3ea;background:#14181f}.bad{color:#ff8a80}\
.ok{color:#7bd88f}.bar,.point{fill:#7aa7e8}}";

/// Renders the report as one HTML page.
pub fn html_page(report: &EvalReport, comparison: Option<&RunComparison>) -> String {
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>docmill eval</title><style>{STYLE}</style></head><body>\
         <h1>Evaluation of {} documents</h1>",
        report.all.documents
    );
    write_overview(&mut html, report);
    write_plots(&mut html, &report.all);
    if let Some(comparison) = comparison {
        write_comparison(&mut html, comparison);
    }
    for (name, group) in &report.groups {
        write_fields(&mut html, name, group);
    }
    if report.groups.len() > 1 {
        write_fields(&mut html, "all", &report.all);
    }
    write_documents(&mut html, &report.documents);
    html.push_str("</body></html>\n");
    html
}

/// Text as it may stand in HTML, attributes included.
pub(super) fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

fn format_share(share: Option<f64>) -> String {
    share.map_or("–".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

fn format_figure(figure: Option<f64>) -> String {
    figure.map_or("–".to_owned(), |figure| format!("{figure:.3}"))
}

// Writing to a string cannot fail, here and below.
fn write_overview(html: &mut String, report: &EvalReport) {
    html.push_str(
        "<table><tr><th>group<th class=n>documents<th class=n>completed<th class=n>flagged\
         <th class=n>all right<th class=n>silent errors<th class=n>list rows found\
         <th class=n>word recall</tr>",
    );
    let all = [("all", &report.all)];
    let groups = report.groups.iter().map(|(name, group)| (name.as_str(), group));
    for (name, group) in groups.chain(all.into_iter().filter(|_| report.groups.len() > 1)) {
        let whole =
            (group.with_truth > 0).then(|| group.whole_documents as f64 / group.with_truth as f64);
        let rows =
            (group.rows.known > 0).then(|| group.rows.found as f64 / group.rows.known as f64);
        let silent = if group.silent_errors > 0 { "n bad" } else { "n ok" };
        _ = write!(
            html,
            "<tr><td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}\
             <td class=\"{silent}\">{}<td class=n>{}<td class=n>{}</tr>",
            escape_html(name),
            group.documents,
            group.completed,
            group.flagged,
            format_share(whole),
            group.silent_errors,
            format_share(rows),
            format_share(group.word_recall),
        );
    }
    html.push_str("</table>");
}

fn write_plots(html: &mut String, all: &GroupReport) {
    let values: Vec<(String, f64)> =
        all.fields.iter().filter_map(|(field, score)| Some((field.clone(), score.f1?))).collect();
    html.push_str("<div class=plots>");
    if !values.is_empty() {
        _ = write!(html, "<div><h2>F1 by field</h2>{}</div>", plot::draw_bars(&values));
    }
    let calibration = &all.calibration;
    if !calibration.bins.is_empty() {
        _ = write!(
            html,
            "<div><h2>The score</h2>{}<p>{} results, {} right. Area under the ROC curve {}, expected \
             calibration error {}.</p></div>",
            plot::draw_reliability(&calibration.bins),
            calibration.results,
            calibration.right,
            format_figure(calibration.auroc),
            format_figure(calibration.expected_error),
        );
    }
    if !all.trade_off.is_empty() {
        let curve = plot::draw_trade_off(&all.trade_off);
        _ = write!(
            html,
            "<div><h2>Flags</h2>{curve}<p>By level of certainty: right documents that are flagged              (across) against errors among the unflagged (up).</p></div>",
        );
    }
    html.push_str("</div>");
}

fn write_comparison(html: &mut String, comparison: &RunComparison) {
    html.push_str("<h2>Against the earlier run</h2>");
    if comparison.moved.is_empty() && comparison.changed.is_empty() {
        html.push_str("<p>Nothing moved.</p>");
        return;
    }
    html.push_str("<table><tr><th>figure<th class=n>before<th class=n>after<th class=n></tr>");
    for moved in &comparison.moved {
        _ = write!(
            html,
            "<tr><td>{}<td class=n>{:.3}<td class=n>{:.3}<td class=n>{:+.3}</tr>",
            escape_html(&moved.name),
            moved.before,
            moved.after,
            moved.after - moved.before
        );
    }
    html.push_str("</table><table><tr><th>document<th>now wrong<th>now right</tr>");
    for changed in &comparison.changed {
        _ = write!(
            html,
            "<tr><td>{}<td class=bad>{}<td class=ok>{}</tr>",
            escape_html(&changed.name),
            escape_html(&changed.worse.join(", ")),
            escape_html(&changed.better.join(", "))
        );
    }
    html.push_str("</table>");
}

fn write_fields(html: &mut String, name: &str, group: &GroupReport) {
    if group.fields.is_empty() {
        return;
    }
    _ = write!(
        html,
        "<h2>{}: fields</h2><table><tr><th>field<th class=n>precision<th class=n>recall\
         <th class=n>F1<th class=n>right<th class=n>known</tr>",
        escape_html(name)
    );
    for (field, score) in &group.fields {
        _ = write!(
            html,
            "<tr><td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}</tr>",
            escape_html(field),
            format_share(score.precision),
            format_share(score.recall),
            format_figure(score.f1),
            score.correct,
            score.correct + score.missed
        );
    }
    html.push_str("</table>");
}

fn write_documents(html: &mut String, documents: &[DocumentScore]) {
    html.push_str(
        "<h2>Documents</h2><table><tr><th>document<th>ended<th class=n>score<th>wrong or lacking</tr>",
    );
    for document in documents {
        let ended = document.reason.as_deref().unwrap_or(&document.status);
        let silent = document.whole == Some(false)
            && document.status == "completed"
            && !document.needs_review;
        let flag = if document.needs_review { ", to review" } else { "" };
        _ = write!(
            html,
            "<tr><td>{}<td>{}{flag}{}<td class=n>{}<td>",
            escape_html(&document.name),
            escape_html(ended),
            if silent { " <b class=bad>silent error</b>" } else { "" },
            format_figure(document.score.map(f64::from)),
        );
        for difference in &document.differences {
            _ = write!(
                html,
                "{}: <code>{}</code> instead of <code>{}</code><br>",
                escape_html(&difference.field),
                escape_html(&format_value(&difference.given)),
                escape_html(&format_value(&difference.known))
            );
        }
        html.push_str("</tr>");
    }
    html.push_str("</table>");
}

fn format_value(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(rows) => format!("{} rows", rows.len()),
        other => other.to_string(),
    }
}
