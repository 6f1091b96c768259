//! Shapes of the characters of Western languages in the standard fonts.
//!
//! Drawing them takes a page process tens of milliseconds, so they are kept as
//! `standard_shapes.zlib`, which a test compares with the fonts, and writes anew if
//! `DOCMILL_WRITE_SHAPES` is set. Not promised: shapes of other scripts.

use std::io::Read as _;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use flate2::read::ZlibDecoder;
use hayro::hayro_interpret::font::{Glyph, GlyphRun, OutlineGlyph};
use hayro::hayro_interpret::hayro_cmap::BfString;
use hayro::hayro_interpret::hayro_syntax::Pdf;
use hayro::hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps,
    InterpreterCache, InterpreterSettings, SoftMask, TransformExt as _, interpret_page,
};
use hayro::kurbo::{BezPath, Rect};

use crate::pdf::glyph_shapes::{GlyphShape, WORDS};

/// The table: for each shape, sorted by character, the character and the shape's proportions and
/// edges (two bytes each, in [`STEP`]), and its cells (eight bytes a word), little-endian.
const TABLE: &[u8] = include_bytes!("standard_shapes.zlib");
/// Bytes of a shape in it.
const SHAPE_BYTES: usize = 8 + 8 * WORDS;
/// Step of a proportion or an edge in it.
const STEP: f32 = 1.0 / 4096.0;
/// The standard fonts that have letters, ...
const TEXT_FONTS: [&str; 12] = [
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
/// ... and the others.
const SIGN_FONTS: [&str; 2] = ["Symbol", "ZapfDingbats"];

/// The shapes of a character.
struct CharacterShapes {
    character: char,
    shapes: Range<usize>,
}

#[derive(Default)]
struct ShapeTable {
    shapes: Vec<GlyphShape>,
    /// Sorted.
    characters: Vec<CharacterShapes>,
    /// Which of them are the digits and the letters of English.
    plain: Vec<CharacterShapes>,
}

impl ShapeTable {
    /// Reads the shapes of [`TABLE`].
    fn read() -> Self {
        let mut bytes = Vec::new();
        let read = ZlibDecoder::new(TABLE).read_to_end(&mut bytes);
        debug_assert!(read.is_ok(), "the table is a part of the program");
        let mut table = Self::default();
        for record in bytes.chunks_exact(SHAPE_BYTES) {
            let Some((character, shape)) = read_shape(record) else { continue };
            let at = table.shapes.len();
            table.shapes.push(shape);
            match table.characters.last_mut().filter(|last| last.character == character) {
                Some(last) => last.shapes.end = at + 1,
                None => table.characters.push(CharacterShapes { character, shapes: at..at + 1 }),
            }
        }
        for CharacterShapes { character, shapes } in &table.characters {
            if character.is_ascii_alphanumeric() {
                let shapes = shapes.clone();
                table.plain.push(CharacterShapes { character: *character, shapes });
            }
        }
        table
    }

    fn shapes(&self, of: &CharacterShapes) -> &[GlyphShape] {
        self.shapes.get(of.shapes.clone()).unwrap_or_default()
    }
}

fn read_shape(record: &[u8]) -> Option<(char, GlyphShape)> {
    let (head, cells) = record.split_at_checked(8)?;
    let [character, measures @ ..] = head.as_chunks::<2>().0 else { return None };
    let character = char::from_u32(u32::from(u16::from_le_bytes(*character)))?;
    let [stretch, bottom, top] = *measures else { return None };
    let [stretch, bottom, top] =
        [stretch, bottom, top].map(|bytes| f32::from(i16::from_le_bytes(bytes)) * STEP);
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(cells.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    Some((character, GlyphShape { cells: words, stretch, bottom, top }))
}

fn table() -> &'static ShapeTable {
    static KNOWN: OnceLock<ShapeTable> = OnceLock::new();
    KNOWN.get_or_init(ShapeTable::read)
}

/// The known shapes of a character.
pub(crate) fn shapes_of(character: char) -> &'static [GlyphShape] {
    let table = table();
    let found = table.characters.binary_search_by_key(&character, |known| known.character);
    found.ok().and_then(|at| table.characters.get(at)).map_or(&[], |of| table.shapes(of))
}

/// The digits and the letters of English with their shapes.
pub(crate) fn plain_characters() -> impl Iterator<Item = (char, &'static [GlyphShape])> {
    let table = table();
    table.plain.iter().map(|of| (of.character, table.shapes(of)))
}

/// Whether a glyph is missing in the standard font that takes the place of its own.
pub(crate) fn is_missing_in_substitute(glyph: &OutlineGlyph) -> bool {
    static MISSING: OnceLock<Vec<u128>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let mut missing = draw_specimen(&TEXT_FONTS, [1]).keys;
        missing.extend(draw_specimen(&SIGN_FONTS, [1]).keys);
        missing
    });
    missing.contains(&glyph.identifier().cache_key())
}

/// Whether a glyph is a digit of a standard font.
pub(crate) fn is_digit_of_substitute(glyph: &OutlineGlyph) -> bool {
    static DIGITS: OnceLock<Vec<u128>> = OnceLock::new();
    let digits = DIGITS.get_or_init(|| draw_specimen(&TEXT_FONTS, b'0'..=b'9').keys);
    digits.contains(&glyph.identifier().cache_key())
}

/// The glyphs of standard fonts with these codes.
fn draw_specimen(fonts: &[&str], codes: impl IntoIterator<Item = u8>) -> SpecimenGlyphs {
    let mut glyphs = SpecimenGlyphs::default();
    let Ok(pdf) = Pdf::new(Arc::new(specimen(fonts, codes))) else { return glyphs };
    for page in pdf.pages().iter() {
        let cache = InterpreterCache::new();
        let area = Rect::new(0.0, 0.0, 100.0, 100.0);
        let upright = page.initial_transform(true).to_kurbo();
        let settings = InterpreterSettings::default();
        let mut context = Context::new(upright, area, &cache, page.xref(), settings);
        interpret_page(page, &mut context, &mut glyphs);
    }
    glyphs
}

/// A page on which each font writes `codes`, as Western Windows has them.
fn specimen(names: &[&str], codes: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let fonts: String = (0..names.len()).map(|n| format!("/F{n} {} 0 R", n + 5)).collect();
    let codes: String = codes.into_iter().map(|code| format!("{code:02x}")).collect();
    let mut lines = String::new();
    for n in 0..names.len() {
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
    objects.extend(
        names
            .iter()
            .map(|name| format!("<</Type/Font/Subtype/Type1/BaseFont/{name}/Encoding{encoding}>>")),
    );
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

#[derive(Default)]
struct SpecimenGlyphs {
    /// Each character that is drawn.
    drawn: Vec<(char, BezPath)>,
    /// Keys of all glyphs.
    keys: Vec<u128>,
}

impl<'a> Device<'a> for SpecimenGlyphs {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, _: DrawProps<'a>, _: &DrawMode) {
        for glyph in run.glyphs() {
            let Glyph::Outline(outline) = &**glyph else { continue };
            self.keys.push(outline.identifier().cache_key());
            if let Some(BfString::Char(character)) = glyph.as_unicode() {
                self.drawn.push((character, outline.outline()));
            }
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
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;
    use crate::pdf::glyph_shapes::{DrawnOutline, GlyphDrawing};

    #[expect(clippy::cast_possible_truncation, reason = "within eight of zero")]
    fn written(character: char, shape: &GlyphShape) -> Vec<u8> {
        let measures = [shape.stretch, shape.bottom, shape.top];
        let measures = measures.map(|it| ((it / STEP).round() as i16).to_le_bytes());
        let character = u16::try_from(u32::from(character)).unwrap().to_le_bytes();
        let cells = shape.cells.map(u64::to_le_bytes);
        [character.as_slice(), measures.as_flattened(), cells.as_flattened()].concat()
    }

    #[test]
    fn the_table_has_the_shapes_that_the_standard_fonts_draw() {
        let mut drawn: Vec<(char, GlyphShape)> = Vec::new();
        let letters = draw_specimen(&TEXT_FONTS, 33..=255).drawn;
        for (character, path) in letters {
            let outline = DrawnOutline { path, is_even_odd: false };
            let shape = GlyphDrawing::from_outlines(&[outline]).shape();
            drawn.extend(shape.map(|shape| (character, shape)));
        }
        drawn.sort_by_key(|(character, _)| *character);
        let bytes: Vec<u8> = drawn.iter().flat_map(|(it, shape)| written(*it, shape)).collect();
        if std::env::var_os("DOCMILL_WRITE_SHAPES").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/pdf/standard_shapes.zlib");
            let mut file =
                ZlibEncoder::new(std::fs::File::create(path).unwrap(), Compression::best());
            file.write_all(&bytes).unwrap();
            file.finish().unwrap();
            return;
        }
        let mut kept = Vec::new();
        ZlibDecoder::new(TABLE).read_to_end(&mut kept).unwrap();
        assert!(kept == bytes, "run this test with DOCMILL_WRITE_SHAPES=1");
        assert_eq!(table().shapes.len(), drawn.len());
    }

    #[test]
    fn every_standard_font_is_known_and_no_digit_is_drawn_like_another() {
        for font in TEXT_FONTS.iter().chain(&SIGN_FONTS) {
            assert!(!draw_specimen(&[font], [1]).keys.is_empty(), "{font}");
        }
        let digits: Vec<(char, &GlyphShape)> = plain_characters()
            .filter(|(character, _)| character.is_ascii_digit())
            .flat_map(|(character, shapes)| shapes.iter().map(move |shape| (character, shape)))
            .collect();
        assert_eq!(digits.len(), TEXT_FONTS.len() * 10);
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
