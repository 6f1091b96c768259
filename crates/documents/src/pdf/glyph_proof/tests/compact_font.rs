//! Fonts in the compact format (CFF), which name and encode their glyphs themselves.

use super::*;

/// A glyph: the letter that it draws, the one that it is named after, and its code.
type CompactGlyph = (char, char, char);

fn index(items: &[Vec<u8>]) -> Vec<u8> {
    let mut found = u16::try_from(items.len()).unwrap().to_be_bytes().to_vec();
    if items.is_empty() {
        return found;
    }
    found.push(4);
    let mut offset = 1_u32;
    found.extend(offset.to_be_bytes());
    for item in items {
        offset += u32::try_from(item.len()).unwrap();
        found.extend(offset.to_be_bytes());
    }
    found.extend(items.concat());
    found
}

/// A number of a dictionary, always five bytes long.
fn number(value: usize) -> Vec<u8> {
    [&[29][..], &u32::try_from(value).unwrap().to_be_bytes()].concat()
}

fn drawing(contours: &[Vec<(i16, i16)>]) -> Vec<u8> {
    let (mut program, mut at) = (Vec::new(), (0, 0));
    for contour in contours {
        for (number, point) in contour.iter().enumerate() {
            for step in [point.0 - at.0, point.1 - at.1] {
                program.push(28);
                program.extend(step.to_be_bytes());
            }
            program.push(if number == 0 { 21 } else { 5 });
            at = *point;
        }
    }
    program.push(14);
    program
}

/// The program of a font.
fn program(glyphs: &[CompactGlyph]) -> Vec<u8> {
    let known = outlines();
    let mut drawings = vec![vec![14]];
    let (mut charset, mut encoding) = (vec![0], vec![0, u8::try_from(glyphs.len()).unwrap()]);
    for (drawn, name, code) in glyphs {
        drawings.push(drawing(&known[drawn]));
        charset.extend((u16::try_from(u32::from(*name)).unwrap() - 31).to_be_bytes());
        encoding.push(u8::try_from(*code).unwrap());
    }
    let head = [&[1, 0, 4, 4][..], &index(&[b"Own".to_vec()])].concat();
    let drawings = index(&drawings);
    let start = head.len() + index(&[vec![0; 4 * 6 + 5]]).len() + 2 * index(&[]).len();
    let charset_at = start + encoding.len();
    let drawings_at = charset_at + charset.len();
    let entries = [(charset_at, 15), (start, 16), (drawings_at, 17)];
    let mut top: Vec<u8> =
        entries.iter().flat_map(|(at, key)| [number(*at), vec![*key]].concat()).collect();
    // An empty private dictionary, at the end.
    top.extend([number(0), number(drawings_at + drawings.len()), vec![18]].concat());
    let none = index(&[]);
    [head, index(&[top]), none.clone(), none, encoding, charset, drawings].concat()
}

fn simple(glyphs: &[CompactGlyph], encoding: &str, lies: Option<&[(&str, &str)]>) -> Vec<Vec<u8>> {
    let widths = "556 ".repeat(224);
    let map = if lies.is_some() { "/ToUnicode 4 0 R" } else { "" };
    let font = format!(
        "<</Type/Font/Subtype/Type1/BaseFont/ABCDEF+Own{encoding}{map}/FirstChar 32/LastChar 255\
         /Widths[{widths}]/FontDescriptor<</Type/FontDescriptor/FontName/ABCDEF+Own/Flags 4\
         /FontFile3 5 0 R>>>>"
    );
    let file = stream("/Subtype/Type1C", &program(glyphs));
    vec![font.into_bytes(), to_unicode(&said(lies.unwrap_or_default())), file]
}

fn composite(glyphs: &[CompactGlyph], lies: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let mut codes: Vec<(String, &str)> = Vec::new();
    for (glyph, (drawn, ..)) in (1..).zip(glyphs) {
        let at = LETTERS.find(*drawn).unwrap();
        let letter = LETTERS.get(at..=at).unwrap();
        let lie = lies.iter().find(|(told, _)| *told == letter).map(|(_, lie)| *lie);
        codes.push((format!("{glyph:04x}"), lie.unwrap_or(letter)));
    }
    let font = "<</Type/Font/Subtype/Type0/BaseFont/ABCDEF+Own/Encoding/Identity-H/ToUnicode 4 0 R\
         /DescendantFonts[<</Type/Font/Subtype/CIDFontType0/BaseFont/ABCDEF+Own\
         /CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/DW 556\
         /FontDescriptor<</Type/FontDescriptor/FontName/ABCDEF+Own/Flags 4/FontFile3 5 0 R>>>>]>>";
    let file = stream("/Subtype/CIDFontType0C", &program(glyphs));
    vec![font.as_bytes().to_vec(), to_unicode(&codes), file]
}

#[test]
fn a_compact_font_that_exchanges_names_codes_or_texts_proves_nothing() {
    let honest: Vec<CompactGlyph> = LETTERS.chars().map(|it| (it, it, it)).collect();
    let exchange = |letter: char| match letter {
        '1' => '9',
        '9' => '1',
        other => other,
    };
    let names: Vec<CompactGlyph> = LETTERS.chars().map(|it| (it, exchange(it), it)).collect();
    let codes: Vec<CompactGlyph> = LETTERS.chars().map(|it| (it, it, exchange(it))).collect();
    let nine: &[(&str, &str)] = &[("1", "9")];
    let wide = |text: &str| {
        let glyphs = text.chars().map(|it| LETTERS.find(it).unwrap() + 1);
        let codes: String = glyphs.map(|glyph| format!("{glyph:04x}")).collect();
        format!("BT /F1 12 Tf 60 700 Td <{codes}> Tj ET")
    };
    #[rustfmt::skip]
    let table = [
        ("honest, by its own codes", shown("RTU 1,100.02"), simple(&honest, "", Some(&[])),       "RTU 1,100.02"),
        ("honest, by names",         shown("RTU 1,100.02"), simple(&honest, WINDOWS, None),       "RTU 1,100.02"),
        ("names exchanged",          shown("RTU 9,900.02"), simple(&names, WINDOWS, None),        "RTU 9,900.02*"),
        ("codes exchanged",          shown("RTU 9,900.02"), simple(&codes, "", Some(&[])),        "RTU 9,900.02*"),
        ("texts exchanged",          shown("RTU 1,100.02"), simple(&honest, "", Some(nine)),      "RTU 9,900.02*"),
        ("honest, composite",        wide("1,100.02"),      composite(&honest, &[]),              "1,100.02"),
        ("composite that lies",      wide("1,100.02"),      composite(&honest, nine),             "9,900.02*"),
    ];
    for (name, content, objects, expected) in table {
        assert_eq!(read(&content, &objects), expected, "{name}");
    }
}
