//! Shapes of drawn glyphs, and of the characters of the standard fonts, to compare the two.
//!
//! A shape is a grid of cells that are ink or not, height and width stretched to the same, with the
//! proportions of the glyph and its position above the baseline. Not promised: that the letters of
//! every honest font are near to those of the standard fonts.

use std::sync::{Arc, OnceLock};

use hayro::hayro_interpret::font::{Glyph, GlyphRun, OutlineGlyph};
use hayro::hayro_interpret::hayro_cmap::BfString;
use hayro::hayro_interpret::hayro_syntax::Pdf;
use hayro::hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps,
    InterpreterCache, InterpreterSettings, SoftMask, TransformExt as _, interpret_page,
};
use hayro::kurbo::{Affine, BezPath, Line, PathEl, PathSeg, Rect, Shape as _, flatten, segments};

/// Cells of a shape across and down.
const ACROSS: u8 = 12;
const DOWN: u8 = 18;
/// Rows of cells in one word of 64 bits, and the words of a shape.
const WORD_ROWS: u8 = 5;
const WORDS: usize = 4;
/// An outline of more elements than this is no character of a text font.
const MAX_ELEMENTS: usize = 400;
/// Distance of straight pieces from the curves they approximate, in cells.
const FLATNESS: f64 = 0.02;
/// Units of an outline to the size of its font.
pub(crate) const EM_UNITS: f64 = 1000.0;
/// Parts of a difference: other proportions (a logarithm), and each edge at another height (ems).
const STRETCH_WEIGHT: f32 = 0.15;
const EDGE_WEIGHT: f32 = 0.4;
const MAX_STRETCH_STEP: f32 = 1.0;
const MAX_EDGE_STEP: f32 = 0.4;
/// The standard fonts whose characters are known.
const FONTS: [&str; 14] = [
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
    "Symbol",
    "ZapfDingbats",
];
/// Those of them that have letters.
const TEXT_FONTS: usize = 12;

/// A glyph as cells that are ink or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GlyphShape {
    cells: [u64; WORDS],
    /// Logarithm of width by height.
    stretch: f32,
    /// Lower and upper edge above the baseline, in ems.
    bottom: f32,
    top: f32,
}

impl GlyphShape {
    /// The shape of outlines in units of [`EM_UNITS`], y upwards, filled one over the other. `None`:
    /// nothing is drawn, or it is no plain shape.
    pub(crate) fn from_outlines(outlines: &[DrawnOutline]) -> Option<Self> {
        let elements = outlines.iter().map(|it| it.path.elements().len()).sum::<usize>();
        let boxes = outlines.iter().map(|it| it.path.bounding_box());
        let bounds = boxes.reduce(|all, one| all.union(one))?;
        let is_drawn = bounds.is_finite() && bounds.width() > 0.0 && bounds.height() > 0.0;
        if elements > MAX_ELEMENTS || !is_drawn {
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
        let mut cells = [0_u64; WORDS];
        for outline in outlines {
            let pieces = straight_pieces(outline.path.iter().map(|element| to_cells * element));
            for y in 0..DOWN {
                let row =
                    RowCrossings::find(&pieces, f64::from(y) + 0.5).cells(outline.is_even_odd);
                if let Some(word) = cells.get_mut(usize::from(y / WORD_ROWS)) {
                    *word |= row << (y % WORD_ROWS * ACROSS);
                }
            }
        }
        let [stretch, bottom, top] =
            [(bounds.width() / bounds.height()).ln(), bounds.y0 / EM_UNITS, bounds.y1 / EM_UNITS]
                .map(narrow);
        Some(Self { cells, stretch, bottom, top })
    }

    /// Share of the cells that differ, and something for other proportions and another height.
    pub(crate) fn difference(&self, other: &Self) -> f32 {
        let pairs = self.cells.iter().zip(&other.cells);
        let differing: u32 = pairs.map(|(one, other)| (one ^ other).count_ones()).sum();
        let cells = f32::from(u16::from(ACROSS) * u16::from(DOWN));
        let share = f32::from(u16::try_from(differing).unwrap_or(u16::MAX)) / cells;
        let stretch = (self.stretch - other.stretch).abs().min(MAX_STRETCH_STEP) * STRETCH_WEIGHT;
        let bottom = (self.bottom - other.bottom).abs().min(MAX_EDGE_STEP);
        let top = (self.top - other.top).abs().min(MAX_EDGE_STEP);
        share + stretch + (bottom + top) * EDGE_WEIGHT
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a proportion, and positions in ems")]
fn narrow(value: f64) -> f32 {
    value as f32
}

/// One filled path of a glyph.
#[derive(Debug, Clone)]
pub(crate) struct DrawnOutline {
    /// In units of [`EM_UNITS`], y upwards.
    pub path: BezPath,
    /// Whether it is filled by the even-odd rule.
    pub is_even_odd: bool,
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

    /// The cells of the row that are ink, the first in the lowest bit.
    fn cells(&self, is_even_odd: bool) -> u64 {
        let mut row = 0;
        for x in 0..ACROSS {
            let turns = self.winding(f64::from(x) + 0.5);
            let is_ink = if is_even_odd { turns % 2 != 0 } else { turns != 0 };
            row |= u64::from(is_ink) << x;
        }
        row
    }

    /// How often the outline winds around this position of the row.
    fn winding(&self, x: f64) -> i32 {
        let before = self.0.iter().filter(|(place, _)| *place <= x);
        before.map(|(_, direction)| direction).sum()
    }
}

/// The characters of the standard fonts, as hayro draws them, sorted.
pub(crate) fn known_shapes() -> &'static [(char, GlyphShape)] {
    &standard_fonts().found
}

/// Whether a glyph is missing in the standard font that takes the place of its own.
pub(crate) fn is_missing_in_substitute(glyph: &OutlineGlyph) -> bool {
    standard_fonts().missing.contains(&glyph.identifier().cache_key())
}

/// Made once.
fn standard_fonts() -> &'static ShapeTaker {
    static KNOWN: OnceLock<ShapeTaker> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut taker = ShapeTaker::default();
        let Ok(pdf) = Pdf::new(Arc::new(specimen())) else { return taker };
        for page in pdf.pages().iter() {
            let cache = InterpreterCache::new();
            let area = Rect::new(0.0, 0.0, 100.0, 100.0);
            let upright = page.initial_transform(true).to_kurbo();
            let settings = InterpreterSettings::default();
            let mut context = Context::new(upright, area, &cache, page.xref(), settings);
            interpret_page(page, &mut context, &mut taker);
        }
        taker.found.sort_by_key(|(character, _)| *character);
        taker
    })
}

/// A page on which each standard font writes its characters of Western languages, and a code that
/// has none.
fn specimen() -> Vec<u8> {
    let fonts: String = (0..FONTS.len()).map(|n| format!("/F{n} {} 0 R", n + 5)).collect();
    let codes: String =
        std::iter::once(1).chain(33..=255).map(|code| format!("{code:02x}")).collect();
    let mut lines = String::new();
    for n in 0..FONTS.len() {
        let codes = if n < TEXT_FONTS { codes.as_str() } else { "01" };
        lines.push_str(&format!("/F{n} 5 Tf 1 0 0 1 5 {} Tm <{codes}> Tj ", 5 + 6 * n));
    }
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
    // Two codes without a character in Western Windows show the ligatures.
    let encoding = "<</BaseEncoding/WinAnsiEncoding/Differences[129/fi 141/fl]>>";
    objects
        .extend(FONTS.map(|name| {
            format!("<</Type/Font/Subtype/Type1/BaseFont/{name}/Encoding{encoding}>>")
        }));
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

/// Keeps the shapes of the characters that are drawn.
#[derive(Default)]
struct ShapeTaker {
    found: Vec<(char, GlyphShape)>,
    /// Keys of what each font draws for a code without a character.
    missing: Vec<u128>,
}

impl<'a> Device<'a> for ShapeTaker {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, _: DrawProps<'a>, _: &DrawMode) {
        for glyph in run.glyphs() {
            let Glyph::Outline(outline) = &**glyph else { continue };
            let Some(BfString::Char(character)) = glyph.as_unicode() else {
                self.missing.push(outline.identifier().cache_key());
                continue;
            };
            let drawn = DrawnOutline { path: outline.outline(), is_even_odd: false };
            self.found.extend(GlyphShape::from_outlines(&[drawn]).map(|shape| (character, shape)));
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
    use std::collections::BTreeMap;

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
            let path = BezPath::from_svg(path).unwrap();
            let bounds = path.bounding_box();
            for is_even_odd in [false, true] {
                let drawn = DrawnOutline { path: path.clone(), is_even_odd };
                let shape = GlyphShape::from_outlines(&[drawn]).unwrap();
                for y in 0..DOWN {
                    for x in 0..ACROSS {
                        let place = Point::new(
                            bounds.x0 + (f64::from(x) + 0.5) / f64::from(ACROSS) * bounds.width(),
                            bounds.y1 - (f64::from(y) + 0.5) / f64::from(DOWN) * bounds.height(),
                        );
                        let turns = path.winding(place);
                        let is_ink = if is_even_odd { turns % 2 != 0 } else { turns != 0 };
                        let word = shape.cells[usize::from(y / WORD_ROWS)];
                        let bit = word >> (y % WORD_ROWS * ACROSS + x) & 1;
                        assert_eq!(bit == 1, is_ink, "column {x}, row {y}, {is_even_odd}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_standard_font_is_known_and_no_digit_is_drawn_like_another() {
        let digits: Vec<&(char, GlyphShape)> =
            known_shapes().iter().filter(|(character, _)| character.is_ascii_digit()).collect();
        assert_eq!(digits.len(), TEXT_FONTS * 10);
        assert!(standard_fonts().missing.len() >= FONTS.len());
        let mut nearest: BTreeMap<(char, char), f32> = BTreeMap::new();
        for (one, shape) in &digits {
            for (other, known) in digits.iter().filter(|(other, _)| other != one) {
                let least = nearest.entry((*one, *other)).or_insert(f32::INFINITY);
                *least = least.min(shape.difference(known));
            }
        }
        assert!(nearest.values().all(|difference| *difference > 0.1), "{nearest:?}");
    }
}
