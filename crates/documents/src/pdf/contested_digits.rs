//! Digits whose `cmap` subtables and glyph names select different glyphs of a TrueType font, and
//! digits of a damaged font.
//!
//! The standard leaves the choice open for many fonts (ISO 32000-1, 9.6.6.4), and viewers differ;
//! damaged fonts they replace by their own. So no rendering proves such a digit. Not covered: fonts
//! that are not embedded, which every viewer substitutes.

use hayro::hayro_interpret::font::OutlineGlyph;

/// `cmap` subtables read of one font.
const MAX_MAPS: u32 = 32;
/// Code bases of Windows symbol maps, besides zero.
const SYMBOL_PAGES: [u32; 3] = [0xf000, 0xf100, 0xf200];

/// Codes of the digits in all usual encodings.
pub(crate) const DIGIT_CODES: std::ops::RangeInclusive<u32> = 0x30..=0x39;
/// Names of the digits, from zero.
pub(crate) const DIGIT_NAMES: [&[u8]; 10] =
    [b"zero", b"one", b"two", b"three", b"four", b"five", b"six", b"seven", b"eight", b"nine"];
/// Index of `zero` in the Macintosh glyph order, which begins every `post` table.
const FIRST_DIGIT_NAME: u32 = 19;
/// Glyphs in the Macintosh order.
const MAC_NAMES: u32 = 258;
/// Tables that rendering TrueType outlines requires.
const NEEDED_TABLES: [&[u8; 4]; 6] = [b"head", b"hhea", b"hmtx", b"maxp", b"loca", b"glyf"];

/// Whether some viewers draw another glyph here: another map or the glyph name selects one, or the
/// font is damaged. Digits and glyphs of unknown character only. `is_composite`: the page has no
/// embedded simple font; only simple fonts use maps and names.
pub(crate) fn is_contested(glyph: &OutlineGlyph, text: &str, is_composite: bool) -> bool {
    let digit = match text.as_bytes() {
        [digit] if digit.is_ascii_digit() => Some(digit - b'0'),
        _ if text == "\u{fffd}" => None,
        _ => return false,
    };
    let Some(font) = glyph.font_data() else { return false };
    let program = (*font.data).as_ref();
    let code = glyph.char_code();
    if is_damaged(program) {
        return true;
    }
    if is_composite || code > u32::from(u8::MAX) {
        return false;
    }
    let (drawn, mut found) = (glyph.glyph_id().to_u32(), glyphs_of(program, code));
    let named = digit.map(|digit| glyphs_named(program, digit)).unwrap_or_default();
    let mapped = digit.map(|digit| glyphs_of(program, u32::from(b'0' + digit))).unwrap_or_default();
    // Composite fonts use neither, and their codes are usually glyph ids.
    let may_be_simple = found.contains(&drawn)
        || drawn != code
            && (DIGIT_CODES.contains(&code) || named.contains(&drawn) || mapped.contains(&drawn));
    found.extend(named);
    may_be_simple && found.iter().any(|other| *other != drawn)
}

/// Whether a font lacks a required table, or has outlines of another kind than its header states.
fn is_damaged(program: &[u8]) -> bool {
    match program.first_chunk() {
        Some([0, 1, 0, 0] | b"true") => {
            let format = table_of(program, b"head").and_then(|head| word_at(head, 50));
            !matches!(format, Some(0 | 1))
                || NEEDED_TABLES.iter().any(|name| table_of(program, name).is_none())
        }
        Some(b"OTTO") => table_of(program, b"CFF ").is_none(),
        // Fonts without tables are Type 1.
        Some([1, 0, ..] | b"ttcf") => false,
        _ => true,
    }
}

/// The glyphs named as this digit in `post`.
fn glyphs_named(program: &[u8], digit: u8) -> Vec<u32> {
    let names = table_of(program, b"post").filter(|post| long_at(post, 0) == Some(0x2_0000));
    let Some((names, name)) = names.zip(DIGIT_NAMES.get(usize::from(digit))) else {
        return Vec::new();
    };
    let count = word_at(names, 32).unwrap_or(0);
    let own = own_name_at(names.get(34 + 2 * to_index(count)..).unwrap_or_default(), name);
    let is_it = |index: u32| {
        index == FIRST_DIGIT_NAME + u32::from(digit)
            || own.is_some_and(|own| index == MAC_NAMES + own)
    };
    (0..count).filter(|at| word_at(names, 34 + 2 * to_index(*at)).is_some_and(is_it)).collect()
}

/// The index of a name among the font's own Pascal strings.
fn own_name_at(mut names: &[u8], name: &[u8]) -> Option<u32> {
    for place in 0.. {
        let (length, rest) = names.split_first()?;
        let (own, rest) = rest.split_at_checked(usize::from(*length))?;
        if own == name {
            return Some(place);
        }
        names = rest;
    }
    None
}

/// The glyphs that the `cmap` subtables give for a code.
fn glyphs_of(program: &[u8], code: u32) -> Vec<u32> {
    let Some(maps) = table_of(program, b"cmap") else { return Vec::new() };
    let count = word_at(maps, 2).unwrap_or(0).min(MAX_MAPS);
    let records = (0..count).filter_map(|at| maps.get(4 + 8 * to_index(at)..));
    let found = records.filter_map(|record| {
        let map = maps.get(to_index(long_at(record, 4)?)..)?;
        let is_windows = word_at(record, 0)? == 3;
        let pages = SYMBOL_PAGES.iter().filter(|_| is_windows).map(|page| page + code);
        std::iter::once(code).chain(pages).find_map(|code| glyph_in(map, code))
    });
    found.collect()
}

fn table_of<'p>(program: &'p [u8], name: &[u8; 4]) -> Option<&'p [u8]> {
    let count = word_at(program, 4)?;
    let mut records = (0..count).filter_map(|at| program.get(12 + 16 * to_index(at)..));
    let record = records.find(|record| record.starts_with(name))?;
    program.get(to_index(long_at(record, 8)?)..)
}

/// The glyph of a code in one subtable; `None`: unmapped.
fn glyph_in(map: &[u8], code: u32) -> Option<u32> {
    let glyph = match word_at(map, 0)? {
        0 => map.get(6..262)?.get(to_index(code)).copied().map(u32::from)?,
        4 => glyph_in_segments(map, code)?,
        6 => {
            let at = code.checked_sub(word_at(map, 6)?)?;
            (at < word_at(map, 8)?).then(|| word_at(map, 10 + 2 * to_index(at)))??
        }
        12 => {
            let groups = (0..long_at(map, 12)?).map_while(|at| map.get(16 + 12 * to_index(at)..));
            let mut found = groups.filter_map(|group| {
                let (first, last) = (long_at(group, 0)?, long_at(group, 4)?);
                (first..=last).contains(&code).then(|| long_at(group, 8).map(|it| (first, it)))?
            });
            let (first, glyph) = found.next()?;
            glyph.checked_add(code - first)?
        }
        _ => return None,
    };
    (glyph != 0).then_some(glyph)
}

/// The same in format 4: end codes, start codes, deltas and range offsets of segments.
fn glyph_in_segments(map: &[u8], code: u32) -> Option<u32> {
    let length = to_index(word_at(map, 6)?);
    let ends = (0..length).step_by(2).map_while(|at| Some((at, word_at(map, 14 + at)?)));
    let (at, _) = ends.into_iter().find(|(_, end)| *end >= code)?;
    let first = word_at(map, 16 + length + at)?;
    let step = word_at(map, 16 + 2 * length + at)?;
    let place = 16 + 3 * length + at;
    let from_first = code.checked_sub(first)?;
    let glyph = match word_at(map, place)? {
        0 => code,
        list => {
            word_at(map, place + to_index(list) + 2 * to_index(from_first)).filter(|it| *it != 0)?
        }
    };
    Some((glyph + step) & 0xffff)
}

fn word_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from(u16::from_be_bytes(*word)))
}

fn long_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|long| u32::from_be_bytes(*long))
}

fn to_index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::pdf::glyphless_font::lay_out;

    /// A table of character maps: platform, encoding, and a map of the format that gives one glyph to
    /// one code.
    pub(crate) fn maps_of(maps: &[(u16, u16, u16)], code: u16, glyphs: &[u16]) -> Vec<u8> {
        let words =
            |values: &[u16]| values.iter().flat_map(|it| it.to_be_bytes()).collect::<Vec<u8>>();
        let mut table = words(&[0, u16::try_from(maps.len()).unwrap()]);
        let mut bodies = Vec::new();
        for ((platform, encoding, format), glyph) in maps.iter().zip(glyphs) {
            let place = u16::try_from(4 + 8 * maps.len() + bodies.len()).unwrap();
            table.extend(words(&[*platform, *encoding, 0, place]));
            let page = if (*platform, *encoding) == (3, 0) { 0xf000 } else { 0 };
            let (code, step) = (code + page, glyph.wrapping_sub(code + page));
            bodies.extend(match format {
                0 => {
                    let mut list = vec![0; 256];
                    list[usize::from(code)] = u8::try_from(*glyph).unwrap();
                    [words(&[0, 262, 0]), list].concat()
                }
                4 => words(&[4, 32, 0, 4, 4, 1, 0, code, 0xffff, 0, code, 0xffff, step, 1, 0, 0]),
                6 => words(&[6, 12, 0, code, 1, *glyph]),
                _ => words(&[12, 0, 0, 28, 0, 0, 0, 1, 0, code, 0, code, 0, *glyph]),
            });
        }
        [table, bodies].concat()
    }

    #[test]
    fn each_kind_of_map_is_read_and_a_damaged_one_names_nothing() {
        for format in [0, 4, 6, 12] {
            for (platform, encoding) in [(1, 0), (3, 1), (3, 0)] {
                if format == 0 && encoding == 0 && platform == 3 {
                    continue;
                }
                let table = maps_of(&[(platform, encoding, format)], 57, &[7]);
                for (length, expected) in [(table.len(), vec![7]), (table.len() - 24, vec![])] {
                    let program = lay_out(&[(b"cmap", table[..length].to_vec())]);
                    let program = program[..28 + length].to_vec();
                    let found = glyphs_of(&program, 57);
                    assert_eq!(found, expected, "format {format} of {platform}, {encoding}");
                    assert_eq!(glyphs_of(&program, 56), Vec::<u32>::new(), "another code");
                }
            }
        }
    }
}
