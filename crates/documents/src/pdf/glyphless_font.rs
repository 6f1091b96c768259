//! The font's file. Glyph 1 is used for all letters, glyph 0 for missing ones.
//!
//! Built here instead of shipped as a file, so each byte has a reason and it is free of licences.
//! It has the tables that an embedded TrueType font needs (ISO 32000-1, 9.9) and no others. Not
//! promised: that it can be installed.

/// Width of every letter in thousandths of its size.
pub(crate) const ADVANCE: u16 = 500;
/// Units of the font to the size of a letter; thousandths, as widths in a PDF are.
const UNITS: u16 = 1000;
/// Checksum of a whole font (OpenType, `head.checkSumAdjustment`).
const WHOLE_SUM: u32 = 0xb1b0_afba;
/// Offset in `head` of the checksum adjustment.
const ADJUSTMENT: usize = 8;
/// Bytes of the font's header, and of a table's entry in it.
const HEADER: usize = 12;
const ENTRY: usize = 16;

/// The font's file. Glyph 1 is what letters are shown by, glyph 0 stands for what is missing.
pub(crate) fn glyphless_font() -> Vec<u8> {
    // In the order of their tags, as the format requires.
    let tables: [(&[u8; 4], Vec<u8>); 7] = [
        // No glyph has any; a table of no bytes is refused by some readers.
        (b"glyf", vec![0; 4]),
        (b"head", head_table(0)),
        (b"hhea", hhea_table()),
        (b"hmtx", words(&[ADVANCE, 0, ADVANCE, 0])),
        (b"loca", words(&[0, 0, 0])),
        (b"maxp", maxp_table()),
        (b"post", post_table()),
    ];
    let plain = lay_out(&tables);
    let adjustment = WHOLE_SUM.wrapping_sub(sum_words(&plain));
    let adjusted = tables.map(|(tag, table)| match tag {
        b"head" => (tag, head_table(adjustment)),
        _ => (tag, table),
    });
    // The entry of `head` keeps the checksum that it had without the adjustment.
    let mut font = lay_out(&adjusted);
    let header = HEADER + ENTRY * adjusted.len();
    if let (Some(old), Some(new)) = (plain.get(..header), font.get_mut(..header)) {
        new.copy_from_slice(old);
    }
    font
}

/// The header, the tables' entries, and the tables, each begun at a multiple of four.
pub(crate) fn lay_out(tables: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let count = u16::try_from(tables.len()).unwrap_or(u16::MAX);
    let power = count.checked_ilog2().unwrap_or(0);
    let range = (1_u16 << power) * 16;
    let mut font = 0x0001_0000_u32.to_be_bytes().to_vec();
    font.extend(words(&[count, range, u16::try_from(power).unwrap_or(0), count * 16 - range]));
    let mut body = Vec::new();
    for (tag, table) in tables {
        let start = HEADER + ENTRY * tables.len() + body.len();
        font.extend_from_slice(*tag);
        font.extend(sum_words(table).to_be_bytes());
        font.extend(length_of(start));
        font.extend(length_of(table.len()));
        body.extend_from_slice(table);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    font.extend(body);
    font
}

fn length_of(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()
}

/// The sum of the big-endian words of four bytes, as if there were zeros behind the last.
fn sum_words(bytes: &[u8]) -> u32 {
    bytes.chunks(4).fold(0, |sum: u32, piece| {
        let mut word = [0; 4];
        word.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
        sum.wrapping_add(u32::from_be_bytes(word))
    })
}

fn words(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

fn head_table(adjustment: u32) -> Vec<u8> {
    let mut table = words(&[1, 0, 1, 0]);
    debug_assert_eq!(table.len(), ADJUSTMENT, "the adjustment comes next");
    table.extend(adjustment.to_be_bytes());
    table.extend(0x5f0f_3cf5_u32.to_be_bytes());
    // Baseline and left side at 0; no dates, so that the same font is the same bytes.
    table.extend(words(&[0b11, UNITS]));
    table.extend([0; 16]);
    // Bounds, style, smallest size, direction, short offsets, form of glyphs.
    table.extend(words(&[0, 0, ADVANCE, UNITS, 0, 8, 2, 0, 0]));
    table
}

fn hhea_table() -> Vec<u8> {
    // Letters reach from their baseline up to their size: a word's box is its text's box.
    let metrics = [1, 0, UNITS, 0, 0, ADVANCE, 0, 0, 0, 1, 0, 0];
    let mut table = words(&metrics);
    table.extend([0; 10]);
    // Both glyphs have a width of their own.
    table.extend(words(&[2]));
    table
}

fn maxp_table() -> Vec<u8> {
    // Two glyphs, one zone, nothing else.
    let mut table = words(&[1, 0, 2, 0, 0, 0, 0, 1]);
    table.extend([0; 16]);
    table
}

fn post_table() -> Vec<u8> {
    // Without names; every letter is as wide as the others.
    let mut table = words(&[3, 0, 0, 0, 0, 0, 0, 1]);
    table.extend([0; 16]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_have_the_lengths_of_their_form_and_the_sums_hold() {
        let font = glyphless_font();
        assert_eq!(sum_words(&font), WHOLE_SUM);
        let number = |at: usize| {
            let bytes = font[at..at + 4].try_into().unwrap();
            usize::try_from(u32::from_be_bytes(bytes)).unwrap()
        };
        let expected = [
            ("glyf", 4),
            ("head", 54),
            ("hhea", 36),
            ("hmtx", 8),
            ("loca", 6),
            ("maxp", 32),
            ("post", 32),
        ];
        for (at, (tag, length)) in expected.into_iter().enumerate() {
            let entry = HEADER + ENTRY * at;
            assert_eq!((&font[entry..entry + 4], number(entry + 12)), (tag.as_bytes(), length));
            let start = number(entry + 8);
            let mut table = font[start..start + length].to_vec();
            if tag == "head" {
                table[ADJUSTMENT..ADJUSTMENT + 4].fill(0);
            }
            assert_eq!(number(entry + 4), usize::try_from(sum_words(&table)).unwrap(), "{tag}");
            assert_eq!(start % 4, 0, "{tag}");
        }
    }
}
