//! Annotations without an appearance of their own, which viewers draw by what they state (PDF 32000-1
//! §12.5.6): lines through text, areas of one colour, and text in a box.
//!
//! Not promised: their looks. It counts that text under them is crossed out or covered, and that text
//! in them is read.

use hayro::hayro_interpret::TransformExt as _;
use hayro::hayro_interpret::hayro_syntax::object::{
    Array, Dict, Name, Rect as PdfRect, Stream, String as PdfString,
};
use hayro::hayro_interpret::hayro_syntax::page::Page as PdfPage;
use hayro::kurbo::{Affine, BezPath, Point, Rect, Vec2};

use crate::pdf::attachments::full_name;
use crate::pdf::form_fields::{glyph_at, is_hidden, stated_size};
use crate::pdf::glyph_collector::GlyphCollector;
use crate::pdf::layers::{HiddenLayers, LayerState};

/// Annotations of a page that are looked at.
const MAX_ANNOTATIONS: usize = 10_000;
/// Points of one line.
const MAX_LINE_NUMBERS: usize = 10_000;
/// Characters of a text that are shown.
const MAX_TEXT_CHARS: usize = 2_000;
/// Wider borders and lines cover the text under them, in points.
const MAX_BORDER_POINTS: f64 = 4.0;
/// Darkest highlight through which text is legible, as a share of black.
const MIN_DARKNESS: f64 = 0.6;
/// Points, where a text does not state its size.
const USUAL_SIZE: f64 = 10.0;
/// Points between the border of a box and its text.
const BOX_MARGIN: f64 = 2.0;

/// Draws the annotations of a page that have no appearance on its surface.
pub(crate) fn draw_annotations(page: &PdfPage<'_>, surface: &mut GlyphCollector) {
    let Some(annotations) = page.raw().get::<Array<'_>>(b"Annots") else { return };
    let upright = page.initial_transform(true).to_kurbo();
    for annotation in annotations.iter::<Dict<'_>>().take(MAX_ANNOTATIONS) {
        if is_hidden(&annotation) || !is_on_shown_layer(&annotation, &surface.layers) {
            continue;
        }
        if has_appearance(&annotation) {
            if is_state_open(&annotation) || surface.layers.change_on_opening() {
                dispute_area(&annotation, upright, surface);
            }
            continue;
        }
        if border_width(&annotation) > MAX_BORDER_POINTS {
            cover_area(&annotation, b"C", upright, surface);
        }
        let kind = annotation.get::<Name<'_>>(b"Subtype");
        match kind.as_ref().map(|kind| kind.as_ref()) {
            Some(b"StrikeOut") => strike_areas(&annotation, upright, surface),
            Some(b"Line") => draw_lines(&annotation, b"L", upright, surface),
            Some(b"PolyLine" | b"Polygon") => {
                cover_area(&annotation, b"IC", upright, surface);
                draw_lines(&annotation, b"Vertices", upright, surface);
            }
            Some(b"Ink") => {
                for line in annotation.get::<Array<'_>>(b"InkList").iter().flat_map(Array::iter) {
                    draw_line(&line, upright, surface);
                }
            }
            Some(b"Square" | b"Circle" | b"Redact") => {
                cover_area(&annotation, b"IC", upright, surface);
            }
            Some(b"Highlight") if is_dark(&annotation) => {
                cover_area(&annotation, b"C", upright, surface);
            }
            Some(b"FreeText") => {
                cover_area(&annotation, b"C", upright, surface);
                write_text(&annotation, upright, surface);
            }
            // Some viewers generate an appearance.
            Some(b"Link" | b"Widget" | b"Popup" | b"Highlight" | b"Underline" | b"Squiggly") => {}
            _ => dispute_area(&annotation, upright, surface),
        }
    }
}

/// The areas of annotations that have an appearance, on a layer that is not shown.
pub(crate) fn hidden_areas(page: &PdfPage<'_>, layers: &HiddenLayers) -> Vec<Rect> {
    let Some(annotations) = page.raw().get::<Array<'_>>(b"Annots") else { return Vec::new() };
    let upright = page.initial_transform(true).to_kurbo();
    let all = annotations.iter::<Dict<'_>>().take(MAX_ANNOTATIONS);
    let unshown = all.filter(|it| has_appearance(it) && !is_on_shown_layer(it, layers));
    unshown.filter_map(|it| area_of(&it, upright)).collect()
}

/// Whether an annotation has an appearance stream: one, or one per state.
fn has_appearance(annotation: &Dict<'_>) -> bool {
    let drawings = annotation.get::<Dict<'_>>(b"AP");
    drawings.is_some_and(|drawings| {
        drawings.get::<Stream<'_>>(b"N").is_some() || drawings.get::<Dict<'_>>(b"N").is_some()
    })
}

/// Whether an annotation has appearances per state and selects none.
fn is_state_open(annotation: &Dict<'_>) -> bool {
    let drawings = annotation.get::<Dict<'_>>(b"AP");
    let has_states = drawings.is_some_and(|it| it.get::<Stream<'_>>(b"N").is_none());
    has_states && !annotation.contains_key(b"AS")
}

/// Whether an annotation's colour hides dark text that it is multiplied with.
fn is_dark(annotation: &Dict<'_>) -> bool {
    let colour = annotation.get::<Array<'_>>(b"C").map(|it| numbers_of(&it)).unwrap_or_default();
    match colour.as_slice() {
        [] => false,
        [cyan, magenta, yellow, black] => {
            cyan.min(*magenta).min(*yellow).max(*black) > MIN_DARKNESS
        }
        plain => plain.iter().all(|part| 1.0 - part > MIN_DARKNESS),
    }
}

/// Marks the letters in and beside an annotation that only some viewers draw.
fn dispute_area(annotation: &Dict<'_>, upright: Affine, surface: &mut GlyphCollector) {
    if let Some(area) = area_of(annotation, upright) {
        surface.dispute_area(area);
        surface.small.note_disputed(area);
    }
}

/// The width that an annotation states for its lines, in points.
fn border_width(annotation: &Dict<'_>) -> f64 {
    let style = annotation.get::<Dict<'_>>(b"BS").and_then(|style| style.get::<f64>(b"W"));
    let border = annotation.get::<Array<'_>>(b"Border");
    let third = border.and_then(|border| border.iter::<f64>().nth(2));
    style.or(third).unwrap_or(1.0)
}

/// Whether the layer that an annotation belongs to, if any, is shown.
fn is_on_shown_layer(annotation: &Dict<'_>, layers: &HiddenLayers) -> bool {
    annotation
        .get::<Dict<'_>>(b"OC")
        .is_none_or(|layer| layers.state_of(&layer) == LayerState::Shown)
}

fn numbers_of(list: &Array<'_>) -> Vec<f64> {
    list.iter::<f64>().take(MAX_LINE_NUMBERS).collect()
}

/// The middle of each marked piece of text: its corners stand left, right, left, right.
fn strike_areas(annotation: &Dict<'_>, upright: Affine, surface: &mut GlyphCollector) {
    let Some(corners) = annotation.get::<Array<'_>>(b"QuadPoints") else { return };
    for piece in numbers_of(&corners).chunks_exact(8) {
        let [x0, y0, x1, y1, x2, y2, x3, y3] = piece else { continue };
        let left = Point::new(*x0, *y0).midpoint(Point::new(*x2, *y2));
        let right = Point::new(*x1, *y1).midpoint(Point::new(*x3, *y3));
        let ends = [left, right];
        note_line(&ends, upright, surface);
    }
}

fn draw_lines(annotation: &Dict<'_>, key: &[u8], upright: Affine, surface: &mut GlyphCollector) {
    if let Some(line) = annotation.get::<Array<'_>>(key) {
        draw_line(&line, upright, surface);
    }
}

fn draw_line(line: &Array<'_>, upright: Affine, surface: &mut GlyphCollector) {
    let numbers = numbers_of(line);
    let points = numbers.chunks_exact(2).filter_map(|pair| match pair {
        [x, y] => Some(Point::new(*x, *y)),
        _ => None,
    });
    let points: Vec<Point> = points.collect();
    note_line(&points, upright, surface);
}

fn note_line(points: &[Point], upright: Affine, surface: &mut GlyphCollector) {
    let mut path = BezPath::new();
    for point in points {
        if path.elements().is_empty() { path.move_to(*point) } else { path.line_to(*point) }
    }
    let page = surface.page_area();
    surface.lines.note_path(&path, upright, page);
    // It may be a digit or a sign of a number.
    surface.small.note_disputed((upright * path).control_box().inflate(0.5, 0.5));
}

/// The area of an annotation on the page.
fn area_of(annotation: &Dict<'_>, upright: Affine) -> Option<Rect> {
    let area = annotation.get::<PdfRect>(b"Rect")?;
    let corners = [Point::new(area.x0, area.y0), Point::new(area.x1, area.y1)];
    let [one, other] = corners.map(|corner| upright * corner);
    Some(Rect::from_points(one, other))
}

/// Hides what is in an area that has a colour.
fn cover_area(annotation: &Dict<'_>, key: &[u8], upright: Affine, surface: &mut GlyphCollector) {
    let has_colour =
        annotation.get::<Array<'_>>(key).is_some_and(|it| it.iter::<f64>().count() > 0);
    let Some(area) = area_of(annotation, upright).filter(|_| has_colour) else { return };
    for glyph in surface.glyphs.iter_mut().filter(|glyph| area.contains(glyph.centre())) {
        glyph.visible = false;
    }
}

/// Text in a box, from its upper left corner on. Letters under it cannot be read: they are hidden.
fn write_text(annotation: &Dict<'_>, upright: Affine, surface: &mut GlyphCollector) {
    let Some(area) = annotation.get::<PdfRect>(b"Rect") else { return };
    let Some(text) = annotation.get::<PdfString<'_>>(b"Contents") else { return };
    let text = full_name(text.as_bytes());
    let style = annotation.get::<PdfString<'_>>(b"DA").map(|style| full_name(style.as_bytes()));
    let size = style.and_then(|style| stated_size(&style)).unwrap_or(USUAL_SIZE);
    if let Some(place) = area_of(annotation, upright).filter(|_| !text.trim().is_empty()) {
        for glyph in surface.glyphs.iter_mut().filter(|glyph| place.contains(glyph.centre())) {
            glyph.visible = false;
        }
    }
    let (mut y, mut left) = (area.y1 - BOX_MARGIN - size, MAX_TEXT_CHARS);
    for line in text.lines() {
        let mut x = area.x0 + BOX_MARGIN;
        for c in line.chars().take(left) {
            left -= 1;
            let advance = Vec2::new(size / 2.0, 0.0);
            if !c.is_whitespace() {
                let mut glyph = glyph_at(c, Point::new(x, y), advance, upright);
                // Its place is a guess, and the page that is drawn here does not show it.
                (glyph.unproven, glyph.contested) = (true, true);
                surface.glyphs.push(glyph);
            }
            x += advance.x;
        }
        y -= size * 1.2;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::pdf::form_fields::tests::pdf;
    use crate::pdf::page_glyph::PageGlyph;
    use docmill_core::config::LimitsConfig;

    /// The visible text of a page that has `1320` under an annotation.
    fn seen_beside(entries: &str) -> String {
        let catalog = "<< /Type /Catalog /Pages 2 0 R >>";
        let pages = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>";
        let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] /Annots [4 0 R] >>";
        let annotation = format!("<< /Type /Annot /Rect [45 45 75 60] {entries} >>");
        let file = pdf(&[catalog, pages, page, &annotation]);
        let area = Rect::new(0.0, 0.0, 200.0, 100.0);
        let mut surface = GlyphCollector::new(area, Instant::now(), &LimitsConfig::default());
        for (digit, at) in "1320".chars().zip(0_u32..) {
            let x = 50.0 + 5.0 * f64::from(at);
            surface.glyphs.push(PageGlyph::sample(&digit.to_string(), x, 50.0));
        }
        draw_annotations(&file.pages()[0], &mut surface);
        std::mem::take(&mut surface.lines).hide_crossed_out(&mut surface.glyphs);
        let seen = surface.glyphs.iter().filter(|glyph| glyph.visible);
        let seen: String = seen.map(|glyph| glyph.text.as_str()).collect();
        if surface.glyphs.iter().any(|it| it.contested) { format!("{seen}*") } else { seen }
    }

    #[test]
    fn an_annotation_without_a_drawing_counts_as_viewers_draw_it() {
        #[rustfmt::skip]
        let table = [
            ("crossed out",         "/Subtype /StrikeOut /QuadPoints [49 57 71 57 49 49 71 49]", ""),
            ("a line",              "/Subtype /Line /L [49 53 71 53]",                           ""),
            ("a pen",               "/Subtype /Ink /InkList [[49 53 71 53]]",                    ""),
            ("a covering box",      "/Subtype /Square /IC [1 1 1]",                              ""),
            ("a frame",             "/Subtype /Square",                                          "1320"),
            ("a text over it",      "/Subtype /FreeText /Contents (99)",                         "99*"),
            ("a hidden line",       "/Subtype /Line /L [49 53 71 53] /F 2",                      "1320"),
            ("one that is drawn",   "/Subtype /Line /L [49 53 71 53] /AS /A /AP << /N << >> >>", "1320"),
            ("drawn in some state", "/Subtype /Line /L [49 53 71 53] /AP << /N << >> >>",        "1320*"),
            ("a stamp",             "/Subtype /Stamp",                                           "1320*"),
            ("a dark highlight",    "/Subtype /Highlight /C [0 0 .2]",                           ""),
            ("a bright highlight",  "/Subtype /Highlight /C [1 1 0]",                            "1320"),
            ("drawn by nothing",    "/Subtype /Line /L [49 53 71 53] /AP << >>",                 ""),
            ("a wide border",       "/Subtype /Square /C [1 1 1] /BS << /W 14 >>",               ""),
            ("a wide frame",        "/Subtype /Link /C [1 1 1] /Border [0 0 14]",                ""),
            ("a note",              "/Subtype /Text /Contents (99)",                             "1320*"),
            ("a link",              "/Subtype /Link",                                            "1320"),
        ];
        for (name, entries, expected) in table {
            assert_eq!(seen_beside(entries), expected, "{name}");
        }
    }
}
