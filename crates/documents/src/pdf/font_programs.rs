//! Fonts that viewers do not all draw with the embedded program.
//!
//! Viewers choose differently among several embedded programs. A program that does not fit its font
//! they use or substitute. The interpreter's rendering proves nothing then.

use std::collections::HashMap;

use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_interpret::font::OutlineGlyph;
use hayro::hayro_interpret::hayro_syntax::object::{Array, Dict, Name, ObjectIdentifier, Stream};
use hayro_font::{FontCache, FontGlyph};

use crate::pdf::contested_digits::{DIGIT_CODES, DIGIT_NAMES};
use crate::pdf::standard_shapes::is_digit_of_substitute;

/// Descriptor keys of an embedded font program.
const PROGRAMS: [&[u8]; 3] = [b"FontFile", b"FontFile2", b"FontFile3"];
/// The descriptor's `Symbolic` flag.
pub(crate) const SYMBOLIC: u32 = 4;

/// Cache of one predicate over objects of a file.
#[derive(Debug, Default)]
pub(crate) struct ObjectVerdicts(HashMap<ObjectIdentifier, bool>);

impl ObjectVerdicts {
    pub(crate) fn holds(&mut self, object: &Dict<'_>, check: impl FnOnce() -> bool) -> bool {
        let Some(id) = object.obj_id() else { return check() };
        *self.0.entry(id).or_insert_with(check)
    }
}

/// The fonts of a file.
#[derive(Debug, Default)]
pub(crate) struct FontPrograms {
    /// Whether the page has a digit drawn by a substitute font.
    has_substitute: bool,
    /// Fonts that the interpreter substitutes although they are embedded.
    replaced: ObjectVerdicts,
    /// Fonts whose dictionary is ambiguous.
    open: ObjectVerdicts,
}

impl FontPrograms {
    /// Notes a glyph that is drawn as `text`.
    pub(crate) fn note_glyph(&mut self, glyph: &OutlineGlyph, text: &str) {
        self.has_substitute = self.has_substitute
            || text.contains(|c: char| c.is_ascii_digit())
                && glyph.font_data().is_none()
                && is_digit_of_substitute(glyph);
    }

    /// Whether viewers draw different glyphs for a font.
    pub(crate) fn is_disputed(&mut self, font: &Dict<'_>) -> bool {
        self.open.holds(font, || has_odd_program(font) || encodes_digits_anew(font))
            || self.has_substitute
                && self.replaced.holds(font, || is_in_file(font) && loses_program(font))
    }
}

/// Whether a font has a program in the file.
pub(crate) fn is_in_file(font: &Dict<'_>) -> bool {
    !programs_of(&descriptor_of(font)).is_empty()
}

/// The font descriptor; of a composite font, its descendant's.
fn descriptor_of<'a>(font: &Dict<'a>) -> Dict<'a> {
    let descendants = font.get::<Array<'a>>(b"DescendantFonts");
    let descendant = descendants.and_then(|all| all.iter::<Dict<'a>>().next());
    let described = descendant.as_ref().unwrap_or(font);
    described.get::<Dict<'a>>(b"FontDescriptor").unwrap_or_default()
}

fn programs_of(descriptor: &Dict<'_>) -> Vec<&'static [u8]> {
    PROGRAMS.into_iter().filter(|key| descriptor.contains_key(key)).collect()
}

/// Whether a font has several programs or one of another font type, or is a composite font without
/// any that is drawn by its `ToUnicode` map.
fn has_odd_program(font: &Dict<'_>) -> bool {
    let kind = font.get::<Name<'_>>(b"Subtype");
    let fitting: &[&[u8]] = match kind.as_ref().map(|kind| kind.as_ref()) {
        Some(b"Type3") => return false,
        Some(b"Type1" | b"MMType1") => &[b"FontFile", b"FontFile3"],
        Some(b"TrueType") => &[b"FontFile2"],
        Some(b"Type0") => &[b"FontFile2", b"FontFile3"],
        _ => &[],
    };
    match *programs_of(&descriptor_of(font)) {
        [] => fitting.is_empty() || fitting.len() > 1 && is_drawn_by_map(font),
        [only] => !fitting.contains(&only),
        _ => true,
    }
}

fn is_drawn_by_map(font: &Dict<'_>) -> bool {
    font.contains_key(b"DescendantFonts") && font.contains_key(b"ToUnicode")
}

/// Whether the built-in encoding of a Type 1 font changes digits of the standard encoding, and the
/// file does not state which applies (ISO 32000-1, 9.6.6.2).
fn encodes_digits_anew(font: &Dict<'_>) -> bool {
    let descriptor = descriptor_of(font);
    let is_symbolic = descriptor.get::<u32>(b"Flags").is_some_and(|it| it & SYMBOLIC != 0);
    let encoding = font.get::<Dict<'_>>(b"Encoding");
    let is_stated = match &encoding {
        Some(encoding) => encoding.contains_key(b"BaseEncoding"),
        None => font.contains_key(b"Encoding"),
    };
    if is_symbolic || is_stated {
        return false;
    }
    let program = descriptor.get::<Stream<'_>>(b"FontFile").and_then(|it| it.decoded().ok());
    program.is_some_and(|program| names_other_digits(&program))
}

/// Whether the clear-text encoding of a Type 1 program (`dup 49 /one put`) has another name at the
/// code of a digit.
fn names_other_digits(program: &[u8]) -> bool {
    let end = memchr::memmem::find(program, b"eexec").unwrap_or(program.len());
    let readable = String::from_utf8_lossy(program.get(..end).unwrap_or(program));
    let words: Vec<&str> = readable.split_ascii_whitespace().collect();
    words.windows(3).any(|entry| match entry {
        ["dup", code, name] => {
            let digit = code.parse().ok().and_then(|code: usize| code.checked_sub(0x30));
            digit.and_then(|digit| DIGIT_NAMES.get(digit)).is_some_and(|own| {
                name.strip_prefix('/').is_some_and(|name| name.as_bytes() != *own)
            })
        }
        _ => false,
    })
}

/// Whether the interpreter draws digits of a font by a substitute.
fn loses_program(font: &Dict<'_>) -> bool {
    let settings = InterpreterSettings::default();
    let cache = FontCache::new();
    let Some(font) = cache.font(font, &settings.font_resolver, &settings.cmap_resolver) else {
        return true;
    };
    DIGIT_CODES.into_iter().any(|code| match font.glyph(font.map_code(code), code) {
        FontGlyph::Outline(glyph) => is_digit_of_substitute(&glyph),
        FontGlyph::Type3(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_that_exchanges_digits_is_found_in_the_readable_part_of_a_program() {
        for (program, expected) in [
            ("/Encoding StandardEncoding def eexec", false),
            ("dup 49 /one put dup 57 /nine put readonly def eexec", false),
            ("dup 49 /nine put dup 57 /one put readonly def eexec", true),
            ("dup 49 /one put dup 49\n/nine put readonly def eexec", true),
            ("dup 65 /one put readonly def eexec", false),
            ("readonly def eexec dup 49 /nine put", false),
        ] {
            assert_eq!(names_other_digits(program.as_bytes()), expected, "{program}");
        }
    }
}
