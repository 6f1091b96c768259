//! Plots as inline SVG: bars by field, and how honest the score is.
//!
//! No scripts, no fonts, nothing from elsewhere; colours adapt to a dark page by `currentColor`.

use std::fmt::Write as _;

use super::FlagTradeOff;
use super::calibration::CalibrationBin;

const WIDTH: f64 = 520.0;
const ROW: f64 = 20.0;
const LABELS: f64 = 190.0;

/// Horizontal bars of shares 0..1, each with its label and value.
pub(super) fn draw_bars(values: &[(String, f64)]) -> String {
    let height = values.len() as f64 * ROW + 4.0;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" role=\"img\" \
         aria-label=\"F1 by field\">"
    );
    for (index, (label, share)) in values.iter().enumerate() {
        let y = index as f64 * ROW;
        let length = share.clamp(0.0, 1.0) * (WIDTH - LABELS - 60.0);
        // Writing to a string cannot fail.
        _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{LABELS}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"14\" class=\"bar\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{share:.3}</text>",
            LABELS - 8.0,
            y + 14.0,
            super::html::escape_html(label),
            y + 3.0,
            LABELS + length + 6.0,
            y + 14.0,
        );
    }
    svg.push_str("</svg>");
    svg
}

const SIDE: f64 = 260.0;
const MARGIN: f64 = 34.0;

/// Share of right results over the score, bin by bin; the diagonal is an honest score. The area
/// of a point is the number of results.
pub(super) fn draw_reliability(bins: &[CalibrationBin]) -> String {
    let size = SIDE + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {size} {size}\" width=\"{size}\" role=\"img\" \
         aria-label=\"Share of right results by score\">\
         <rect x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{SIDE}\" height=\"{SIDE}\" class=\"frame\"/>\
         <line x1=\"{0}\" y1=\"{1}\" x2=\"{1}\" y2=\"{0}\" class=\"ideal\"/>\
         <text x=\"{MARGIN}\" y=\"{2:.0}\">0</text><text x=\"{1}\" y=\"{2:.0}\">1</text>\
         <text x=\"{3:.0}\" y=\"{2:.0}\">score</text>\
         <text x=\"4\" y=\"{4:.0}\">right</text>",
        MARGIN,
        MARGIN + SIDE,
        MARGIN + SIDE + 18.0,
        MARGIN + SIDE / 2.0 - 18.0,
        MARGIN - 10.0,
    );
    let most = bins.iter().map(|bin| bin.results).max().unwrap_or(1) as f64;
    for bin in bins {
        let radius = 3.0 + 9.0 * (bin.results as f64 / most).sqrt();
        _ = write!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" class=\"point\">\
             <title>{} results, score {:.2}, right {:.2}</title></circle>",
            MARGIN + bin.score * SIDE,
            MARGIN + (1.0 - bin.right) * SIDE,
            bin.results,
            bin.score,
            bin.right
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Share of right documents that are flagged (across) against share of errors among the unflagged
/// (up), a point for each level of certainty.
pub(super) fn draw_trade_off(curve: &[FlagTradeOff]) -> String {
    const SIDE: f64 = 260.0;
    const EDGE: f64 = 40.0;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {0} {0}\" width=\"{0}\" role=\"img\" aria-label=\"errors let through by \
         level of certainty\"><rect x=\"{EDGE}\" y=\"10\" width=\"{SIDE}\" height=\"{SIDE}\" class=\"frame\"/>",
        SIDE + EDGE + 20.0
    );
    for one in curve {
        let flagged = super::share_of(one.right_flagged, one.right).unwrap_or(0.0);
        let wrong = super::share_of(one.errors, one.unflagged).unwrap_or(0.0);
        let (x, y) = (EDGE + SIDE * flagged, 10.0 + SIDE * (1.0 - wrong));
        // Writing to a string cannot fail.
        _ = write!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" class=\"point\"/><text x=\"{:.1}\" \
             y=\"{:.1}\">{:.2}</text>",
            x + 6.0,
            y - 4.0,
            one.level
        );
    }
    svg.push_str("</svg>");
    svg
}
