//! Whether glyphs that a font maps to digits look like them.
//!
//! A PDF maps each glyph to a character, and nothing ensures that the map is true: a drawn 1 may be
//! extracted as a 9, and a falsified amount agrees with itself. So the outline of every glyph
//! mapped to a digit, or to a blank, is compared with the digits of the twelve standard fonts. A
//! glyph contradicts if it looks clearly more like another digit. A page with one is read from its
//! picture, if that has the layer's words: with a font that cannot be drawn here other letters
//! would differ, too.
//!
//! Not covered: digits of Type 3 fonts, which have no outline; exchanged letters, which make no
//! other amount (`crate::pdf::text_layer_check` detects many of them); comparison of a layer with
//! an e-invoice, which needs no picture.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use hayro::hayro_interpret::font::{Glyph, GlyphRun, OutlineGlyph};
use hayro::hayro_interpret::hayro_syntax::Pdf;
use hayro::hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps,
    InterpreterCache, InterpreterSettings, SoftMask, TransformExt as _, interpret_page,
};
use hayro::kurbo::{Affine, BezPath, Line, PathEl, PathSeg, Rect, Shape as _, flatten, segments};

/// Cells of a shape across and down.
const ACROSS: u8 = 12;
const DOWN: u8 = 18;
/// A glyph looks like a digit if at most this share of the cells differ, ...
const MAX_DIFFERENCE: f32 = 0.25;
/// ... and like another digit if so many more cells differ from its own. No honest digit of
/// upright, oblique, bold, narrow, serif and monospaced fonts comes near.
const MIN_MARGIN: f32 = 0.08;
/// A glyph mapped to a blank looks like a digit if at most this share of the cells differ.
const MAX_BLANK_DIFFERENCE: f32 = 0.12;
/// Different glyphs of one page; no page of figures has as many.
const MAX_GLYPHS: usize = 512;
/// An outline of more elements than this is no digit of a text font.
const MAX_ELEMENTS: usize = 400;
/// Distance of straight pieces from the curves they approximate, in cells.
const FLATNESS: f64 = 0.02;
/// The standard fonts, whose digits are known.
const FONTS: [&str; 12] = [
    "Helvetica",
    "Helvetica-Bold",
    "Helvetica-Oblique",
    "Helvetica-BoldOblique",
    "Times-Roman",
    "Times-Bold",
    "Times-Italic",
    "Times-BoldItalic",
    "Courier",
    "Courier-Bold",
    "Courier-Oblique",
    "Courier-BoldOblique",
];

/// Results for the glyphs of a page.
#[derive(Debug, Default)]
pub(crate) struct DigitShapes {
    seen: HashSet<(u128, Option<char>)>,
    contradict: bool,
}

impl DigitShapes {
    /// Whether some glyph looks like another digit than it is called.
    pub(crate) fn contradict(&self) -> bool {
        self.contradict
    }

    /// Looks at a glyph that is read as `text`.
    pub(crate) fn examine(&mut self, glyph: &Glyph<'_>, text: &str) {
        let Glyph::Outline(outline) = glyph else { return };
        let mut digits = text.chars().filter_map(as_digit);
        let (first, second) = (digits.next(), digits.next());
        let is_blank = text.chars().all(char::is_whitespace);
        if self.contradict || first.is_none() && !is_blank {
            return;
        }
        if !self.seen.insert((outline.identifier().cache_key(), first)) {
            return;
        }
        // Two digits for one shape, or more shapes than figures have: not trustworthy.
        let too_many = second.is_some() && text.chars().all(|c| as_digit(c).is_some());
        self.contradict |= too_many || self.seen.len() > MAX_GLYPHS || contradicts(outline, first);
    }
}

/// The digit of a character, if it is one.
fn as_digit(c: char) -> Option<char> {
    let plain = match c {
        // Full-width forms become digits by normalisation.
        '\u{ff10}'..='\u{ff19}' => char::from_u32(u32::from(c) - 0xff10 + u32::from('0'))?,
        c => c,
    };
    plain.is_ascii_digit().then_some(plain)
}

fn contradicts(glyph: &OutlineGlyph, called: Option<char>) -> bool {
    let Some(shape) = GlyphShape::from_outline(&glyph.outline()) else { return false };
    let (mut own, mut other) = (1.0_f32, 1.0_f32);
    for (digit, known) in known_digits() {
        let nearest = if Some(*digit) == called { &mut own } else { &mut other };
        *nearest = nearest.min(shape.difference(known));
    }
    match called {
        None => other <= MAX_BLANK_DIFFERENCE,
        Some(_) => other <= MAX_DIFFERENCE && own - other > MIN_MARGIN,
    }
}

/// A glyph as cells that are ink or not, its height and width stretched to the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GlyphShape([u16; DOWN as usize]);

impl GlyphShape {
    /// `None`: nothing is drawn, or it is no plain shape.
    fn from_outline(outline: &BezPath) -> Option<Self> {
        if outline.elements().len() > MAX_ELEMENTS {
            return None;
        }
        let bounds = outline.bounding_box();
        if !bounds.is_finite() || bounds.width() <= 0.0 || bounds.height() <= 0.0 {
            return None;
        }
        // From the font's coordinates to columns and rows: however an outline is stretched, it
        // comes to as many pieces as its shape needs.
        let across = f64::from(ACROSS) / bounds.width();
        let down = f64::from(DOWN) / bounds.height();
        let to_cells =
            Affine::scale_non_uniform(across, -down) * Affine::translate((-bounds.x0, -bounds.y1));
        if !to_cells.is_finite() {
            return None;
        }
        let pieces = straight_pieces(outline.iter().map(|element| to_cells * element));
        let mut rows = [0_u16; DOWN as usize];
        for (row, y) in rows.iter_mut().zip(0..DOWN) {
            let crossings = RowCrossings::find(&pieces, f64::from(y) + 0.5);
            for x in 0..ACROSS {
                *row |= u16::from(crossings.winding(f64::from(x) + 0.5) != 0) << x;
            }
        }
        Some(Self(rows))
    }

    /// Share of the cells that differ.
    fn difference(&self, other: &Self) -> f32 {
        let pairs = self.0.iter().zip(&other.0);
        let differing: u32 = pairs.map(|(one, other)| (one ^ other).count_ones()).sum();
        let cells = f32::from(u16::from(ACROSS) * u16::from(DOWN));
        f32::from(u16::try_from(differing).unwrap_or(u16::MAX)) / cells
    }
}

/// An outline in straight pieces. Asking the outline itself cell by cell cuts its curves anew for
/// each cell, which took most of the time of a page with text.
fn straight_pieces(outline: impl Iterator<Item = PathEl>) -> Vec<Line> {
    let mut elements: Vec<PathEl> = Vec::new();
    flatten(outline, FLATNESS, |element| elements.push(element));
    let mut lines = Vec::new();
    for segment in segments(elements) {
        if let PathSeg::Line(line) = segment {
            lines.push(line);
        }
    }
    lines
}

/// Where an outline crosses a row, and which way.
struct RowCrossings(Vec<(f64, i32)>);

impl RowCrossings {
    fn find(pieces: &[Line], y: f64) -> Self {
        let mut crossings = Vec::new();
        for Line { p0: start, p1: end } in pieces {
            // Where two pieces meet, one of them is crossed.
            let direction = i32::from(end.y <= y) - i32::from(start.y <= y);
            if direction != 0 {
                crossings.push((start.lerp(*end, (y - start.y) / (end.y - start.y)).x, direction));
            }
        }
        Self(crossings)
    }

    /// How often the outline winds around this place of the row.
    fn winding(&self, x: f64) -> i32 {
        let before = self.0.iter().filter(|(place, _)| *place <= x);
        before.map(|(_, direction)| direction).sum()
    }
}

/// The digits of the standard fonts, as hayro draws them. Made once.
fn known_digits() -> &'static [(char, GlyphShape)] {
    static KNOWN: OnceLock<Vec<(char, GlyphShape)>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let Ok(pdf) = Pdf::new(Arc::new(specimen())) else { return Vec::new() };
        let mut taker = ShapeTaker { found: Vec::new() };
        for page in pdf.pages().iter() {
            let cache = InterpreterCache::new();
            let area = Rect::new(0.0, 0.0, 100.0, 100.0);
            let upright = page.initial_transform(true).to_kurbo();
            let settings = InterpreterSettings::default();
            let mut context = Context::new(upright, area, &cache, page.xref(), settings);
            interpret_page(page, &mut context, &mut taker);
        }
        taker.found
    })
}

/// A page on which each standard font writes the digits.
fn specimen() -> Vec<u8> {
    let fonts: String = (0..FONTS.len()).map(|n| format!("/F{n} {} 0 R", n + 5)).collect();
    let lines: String = (0..FONTS.len())
        .map(|n| format!("/F{n} 5 Tf 1 0 0 1 5 {} Tm (0123456789) Tj ", 5 + 7 * n))
        .collect();
    let content = format!("BT {lines}ET");
    let mut objects = vec![
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned(),
        format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]/Contents 4 0 R\
             /Resources<</Font<<{fonts}>>>>>>"
        ),
        format!("<</Length {}>>\nstream\n{content}\nendstream", content.len()),
    ];
    objects.extend(FONTS.map(|name| format!("<</Type/Font/Subtype/Type1/BaseFont/{name}>>")));
    let mut file = "%PDF-1.7\n".to_owned();
    let mut places = String::new();
    for (at, object) in objects.iter().enumerate() {
        places.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    let (start, size) = (file.len(), objects.len() + 1);
    format!(
        "{file}xref\n0 {size}\n0000000000 65535 f \n{places}\
         trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n"
    )
    .into_bytes()
}

/// Keeps the shapes of the digits that are drawn.
struct ShapeTaker {
    found: Vec<(char, GlyphShape)>,
}

impl<'a> Device<'a> for ShapeTaker {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, _: DrawProps<'a>, _: &DrawMode) {
        for glyph in run.glyphs() {
            let Glyph::Outline(outline) = &**glyph else { continue };
            let digit = char::from_u32(glyph.char_code()).filter(char::is_ascii_digit);
            self.found.extend(digit.zip(GlyphShape::from_outline(&outline.outline())));
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

#[cfg(test)]
mod tests {
    use hayro::kurbo::Point;

    use super::*;

    #[test]
    fn a_shape_has_ink_where_its_outline_winds_around_the_middle_of_a_cell() {
        // A ring, lines and curves, a bow that crosses itself, a curve that turns back.
        for path in [
            "M10,10 C10,90 90,90 90,10 C90,-40 10,-40 10,10 Z M30,10 Q50,60 70,10 Q50,-30 30,10 Z",
            "M0,0 L100,0 L100,50 L60,50 L60,140 L0,140 Z M20,20 L40,20 L40,90 L20,90 Z",
            "M0,0 L80,120 L80,0 L0,120 Z",
            "M0,0 C120,300 -60,-200 70,110 L90,-30 Z",
        ] {
            let outline = BezPath::from_svg(path).unwrap();
            let bounds = outline.bounding_box();
            let GlyphShape(rows) = GlyphShape::from_outline(&outline).unwrap();
            for (row, y) in rows.iter().zip(0..DOWN) {
                for x in 0..ACROSS {
                    let place = Point::new(
                        bounds.x0 + (f64::from(x) + 0.5) / f64::from(ACROSS) * bounds.width(),
                        bounds.y1 - (f64::from(y) + 0.5) / f64::from(DOWN) * bounds.height(),
                    );
                    let is_ink = outline.winding(place) != 0;
                    assert_eq!(row >> x & 1 == 1, is_ink, "{path}: column {x}, row {y}");
                }
            }
        }
    }

    #[test]
    fn the_digits_of_every_standard_font_are_known_and_each_is_nearest_to_its_own_kind() {
        let known = known_digits();
        assert_eq!(known.len(), FONTS.len() * 10);
        for (at, (digit, shape)) in known.iter().enumerate() {
            let others = known.iter().enumerate().filter(|(other, _)| *other != at);
            let difference = |same: bool| {
                let of_it = others.clone().filter(|(_, (other, _))| (other == digit) == same);
                of_it.map(|(_, (_, other))| shape.difference(other)).fold(1.0_f32, f32::min)
            };
            let (own, other) = (difference(true), difference(false));
            assert!(own - other <= MIN_MARGIN, "{digit} of {}: {own} {other}", FONTS[at / 10]);
        }
    }
}
