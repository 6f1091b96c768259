//! The file as another library reads it, checked against PDF/A-2b (ISO 19005-2; clauses in the
//! messages), and its text against the boxes that it was made of.

use std::collections::BTreeMap;
use std::io::Cursor;

use image::{GrayImage, ImageFormat, Luma};
use lopdf::content::Content as ContentStream;
use lopdf::{Dictionary, Document, Object};

use super::*;
use crate::document::open_document;
use crate::page::PageContent;
use docmill_core::config::LimitsConfig;
use docmill_core::model::{ImageEncoding, ImageHeader};

/// An identity as transcripts have it.
const IDENTITY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn word(text: &str, [x, y, w, h]: [f32; 4]) -> TextWord {
    let bounding_box = BoundingBox { x, y, w, h };
    TextWord { text: text.into(), bounding_box, confidence: 0.9, unwitnessed: false }
}

/// A page of 600 by 800 pixels at 100 dpi that was read from its picture.
fn page(number: u32, lines: Vec<Vec<TextWord>>) -> PageText {
    let lines = lines.into_iter().map(|words| TextLine { words }).collect();
    PageText {
        source: PageSource::Ocr,
        ..PageText::from_native(number, (600.0, 800.0), 0.9, lines)
    }
}

fn picture(format: ImageFormat) -> EncodedImage {
    let picture = GrayImage::from_fn(600, 800, |x, y| {
        Luma([if (100..300).contains(&x) && (200..220).contains(&y) { 20 } else { 240 }])
    });
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    let encoding = match format {
        ImageFormat::Png => ImageEncoding::Png,
        _ => ImageEncoding::Jpeg,
    };
    let header = ImageHeader { width: 600, height: 800, dpi: 100, encoding };
    EncodedImage { header, bytes: bytes.into_inner() }
}

/// Texts of the tests' pages; the third is white.
fn sample() -> Vec<u8> {
    let first = page(
        1,
        vec![
            vec![
                word("Rechnung", [100.0, 200.0, 200.0, 20.0]),
                word("№ ", [310.0, 200.0, 30.0, 20.0]),
            ],
            vec![word("Zürich\u{feff}\u{7}", [100.0, 300.0, 90.0, 16.0])],
        ],
    );
    let second = page(
        2,
        vec![
            vec![
                word("hinauf", [20.0, 500.0, 12.0, 90.0]),
                word("weiter ", [20.0, 380.0, 12.0, 90.0]),
            ],
            vec![word("𝔘x ", [f32::NAN, 700.0, 40.0, 12.0])],
        ],
    );
    let mut pdf = SearchablePdf::default();
    // Not in their order.
    pdf.add_page(&second, Some(&picture(ImageFormat::Png))).unwrap();
    pdf.add_page(&first, Some(&picture(ImageFormat::Jpeg))).unwrap();
    pdf.add_page(&page(3, Vec::new()), None).unwrap();
    pdf.finish(IDENTITY)
}

/// Meaning of a letter's code, by the font's map.
fn read_map(document: &Document, font: &Dictionary) -> BTreeMap<u16, String> {
    let map = document.get_object(font.get(b"ToUnicode").unwrap().as_reference().unwrap()).unwrap();
    let map = map.as_stream().unwrap().decompressed_content().unwrap();
    let lines = String::from_utf8(map).unwrap();
    let pair = |line: &str| {
        let (code, text) = line.strip_prefix('<')?.strip_suffix('>')?.split_once("> <")?;
        let hex = text.as_bytes().chunks(4).map(|unit| std::str::from_utf8(unit).unwrap());
        let units: Vec<u16> = hex.map(|unit| u16::from_str_radix(unit, 16).unwrap()).collect();
        Some((u16::from_str_radix(code, 16).ok()?, String::from_utf16(&units).unwrap()))
    };
    let inside = lines.split("beginbfchar").skip(1).flat_map(|part| part.split("endbfchar").next());
    inside.flat_map(str::lines).filter_map(pair).collect()
}

/// A shown text: its letters, its matrix, the length of its letters, and the rendering mode.
#[derive(Debug)]
struct ShownText {
    text: String,
    matrix: Vec<f32>,
    size: f32,
    length: f32,
    mode: i64,
}

/// A text, its matrix, its size and its length.
type ExpectedText = (&'static str, [f32; 6], f32, f32);

fn shown_texts(document: &Document, page: lopdf::ObjectId) -> Vec<ShownText> {
    let font = document.get_object((5, 0)).unwrap().as_dict().unwrap();
    let map = read_map(document, font);
    let stream = ContentStream::decode(&document.get_page_content(page)).unwrap();
    let number = |object: &Object| object.as_float().unwrap();
    let (mut mode, mut size, mut scale, mut matrix, mut texts) =
        (0, 0.0, 100.0, Vec::new(), Vec::new());
    for operation in stream.operations {
        let first = operation.operands.first();
        match operation.operator.as_str() {
            "Tr" => mode = first.unwrap().as_i64().unwrap(),
            "Tf" => size = number(&operation.operands[1]),
            "Tz" => scale = number(first.unwrap()),
            "Tm" => matrix = operation.operands.iter().map(number).collect(),
            "Tj" => {
                let codes = first.unwrap().as_str().unwrap();
                let letters = codes.chunks(2).map(|code| {
                    map.get(&u16::from_be_bytes(code.try_into().unwrap())).unwrap().as_str()
                });
                let text: String = letters.collect();
                let count = u16::try_from(text.trim_end().chars().count()).unwrap();
                let length = f32::from(count) * 0.5 * size * scale / 100.0;
                texts.push(ShownText { text, matrix: matrix.clone(), size, length, mode });
            }
            _ => {}
        }
    }
    texts
}

#[test]
fn every_word_lies_invisible_over_its_box_and_maps_to_its_text() {
    let file = sample();
    let document = Document::load_mem(&file).unwrap();
    let pages: Vec<_> = document.get_pages().into_values().collect();
    assert_eq!(pages.len(), 3, "in the order of their numbers");
    // Points from pixels: 72 / 100. The page is 432 by 576 points.
    let expected: [&[ExpectedText]; 3] = [
        &[
            ("Rechnung ", [1.0, 0.0, 0.0, 1.0, 72.0, 417.6], 14.4, 144.0),
            ("№ ", [1.0, 0.0, 0.0, 1.0, 223.2, 417.6], 14.4, 21.6),
            // Without controls.
            ("Zürich ", [1.0, 0.0, 0.0, 1.0, 72.0, 348.48], 11.52, 64.8),
        ],
        &[
            // Up the page, from the lower end of the box at its right edge.
            ("hinauf ", [0.0, 1.0, -1.0, 0.0, 23.04, 151.2], 8.64, 64.8),
            ("weiter ", [0.0, 1.0, -1.0, 0.0, 23.04, 237.6], 8.64, 64.8),
            // Words without a position are found all the same.
            ("𝔘x ", [1.0, 0.0, 0.0, 1.0, 0.0, 63.36], 8.64, 0.5),
        ],
        &[],
    ];
    for (page, expected) in pages.into_iter().zip(expected) {
        let shown = shown_texts(&document, page);
        assert_eq!(shown.len(), expected.len(), "{shown:?}");
        for (shown, (text, matrix, size, length)) in shown.iter().zip(expected) {
            assert_eq!((shown.text.as_str(), shown.mode), (*text, 3));
            let near = |one: f32, other: f32| (one - other).abs() < 0.01;
            assert!(
                shown.matrix.iter().zip(matrix).all(|(one, other)| near(*one, *other)),
                "{shown:?}"
            );
            assert!(near(shown.size, *size) && near(shown.length, *length), "{shown:?}");
        }
    }
}

#[test]
fn our_own_reader_takes_the_picture_and_no_invisible_text() {
    let document = open_document(sample().into(), &LimitsConfig::default(), 100).unwrap();
    assert_eq!(document.page_count(), 3);
    for index in 0..2 {
        let PageContent::Image(shown) = document.page_content(index).unwrap() else {
            panic!("page {index} is no picture")
        };
        assert_eq!((shown.width, shown.height), (600, 800));
        let at = |x: usize, y: usize| shown.pixels[y * 600 + x];
        assert!(at(200, 210) < 60 && at(50, 50) > 200, "page {index}");
    }
}

/// Every dictionary of the file, those within others too.
fn visit<'a>(object: &'a Object, see: &mut impl FnMut(&'a Dictionary)) {
    match object {
        Object::Dictionary(dictionary) => {
            see(dictionary);
            dictionary.iter().for_each(|(_, value)| visit(value, see));
        }
        Object::Stream(stream) => {
            see(&stream.dict);
            stream.dict.iter().for_each(|(_, value)| visit(value, see));
        }
        Object::Array(items) => items.iter().for_each(|item| visit(item, see)),
        _ => {}
    }
}

#[test]
fn the_file_has_what_pdf_a_2b_asks_for() {
    let file = sample();
    assert!(file.starts_with(b"%PDF-1.7\n%"), "6.1.2");
    assert!(file[10..14].iter().all(|byte| *byte > 127), "6.1.2: bytes that say it is binary");
    assert!(
        file.ends_with(b"%%EOF\n") || file.ends_with(b"%%EOF"),
        "6.1.3: nothing behind the end"
    );
    let document = Document::load_mem(&file).unwrap();
    let id = document.trailer.get(b"ID").unwrap().as_array().unwrap();
    assert!(id.len() == 2 && id.iter().all(|part| part.as_str().unwrap().len() == 32), "6.1.3");
    assert!(document.trailer.get(b"Encrypt").is_err(), "6.1.3");
    assert!(document.trailer.get(b"Info").is_err(), "nothing that XMP might contradict");
    let catalog = document.catalog().unwrap();
    let metadata = document.get_object(catalog.get(b"Metadata").unwrap().as_reference().unwrap());
    let metadata = metadata.unwrap().as_stream().unwrap();
    assert!(metadata.dict.get(b"Filter").is_err(), "read without taking the file apart");
    let said = String::from_utf8(metadata.content.clone()).unwrap();
    let xml = said.split_once("?>\n").unwrap().1.rsplit_once("\n<?").unwrap().0;
    for part in [
        "<pdfaid:part>2</pdfaid:part>",
        "<pdfaid:conformance>B</pdfaid:conformance>",
        "uuid:00112233-4455-6677-8899-aabbccddeeff",
    ] {
        assert!(xml.contains(part), "6.6.4: {part}");
    }
    let intents = catalog.get(b"OutputIntents").unwrap().as_array().unwrap();
    let intent = intents[0].as_dict().unwrap();
    assert_eq!(intent.get(b"S").unwrap().as_name().unwrap(), b"GTS_PDFA1", "6.2.3");
    let profile = intent.get(b"DestOutputProfile").unwrap().as_reference().unwrap();
    let profile = document.get_object(profile).unwrap().as_stream().unwrap();
    assert_eq!(profile.dict.get(b"N").unwrap().as_i64().unwrap(), 3, "6.2.3");
    assert_eq!(&profile.content[36..40], b"acsp", "6.2.3");
}

#[test]
fn nothing_in_the_file_is_forbidden_in_an_archive() {
    let document = Document::load_mem(&sample()).unwrap();
    // Actions, scripts, forms, layers, transparency, files, foreign pictures: 6.2.5 to 6.9.
    let forbidden: [&[u8]; 16] = [
        b"OpenAction",
        b"AA",
        b"A",
        b"JS",
        b"AcroForm",
        b"OCProperties",
        b"SMask",
        b"ExtGState",
        b"EmbeddedFiles",
        b"EF",
        b"Annots",
        b"Alternates",
        b"OPI",
        b"Interpolate",
        b"Encrypt",
        b"Group",
    ];
    let filters: [&[u8]; 2] = [b"FlateDecode", b"DCTDecode"];
    let mut see = |dictionary: &Dictionary| {
        for key in forbidden {
            assert!(dictionary.get(key).is_err(), "{}", String::from_utf8_lossy(key));
        }
        if let Ok(filter) = dictionary.get(b"Filter") {
            assert!(filters.contains(&filter.as_name().unwrap()), "6.1.7.2: {filter:?}");
        }
        if let Ok(sides) = dictionary.get(b"MediaBox").and_then(Object::as_array) {
            let sides: Vec<f32> = sides.iter().map(|side| side.as_float().unwrap()).collect();
            assert!((3.0..=14_400.0).contains(&(sides[2] - sides[0])), "6.1.13");
            assert!((3.0..=14_400.0).contains(&(sides[3] - sides[1])), "6.1.13");
            assert!(dictionary.get(b"Resources").is_ok(), "6.2.2");
        }
        if dictionary.get(b"Subtype").and_then(Object::as_name).is_ok_and(|name| name == b"Image") {
            let space = dictionary.get(b"ColorSpace").unwrap().as_name().unwrap();
            assert_eq!(space, b"DeviceGray", "6.2.4: has a meaning by the output intent");
        }
    };
    document.objects.values().for_each(|object| visit(object, &mut see));
}

#[test]
fn the_font_is_embedded_whole_and_its_widths_are_those_declared() {
    let document = Document::load_mem(&sample()).unwrap();
    let follow = |dictionary: &Dictionary, key: &[u8]| {
        document.get_object(dictionary.get(key).unwrap().as_reference().unwrap()).unwrap().clone()
    };
    let font = document.get_object((5, 0)).unwrap().as_dict().unwrap();
    assert_eq!(font.get(b"Encoding").unwrap().as_name().unwrap(), b"Identity-H", "6.2.11.3.3");
    let below =
        font.get(b"DescendantFonts").unwrap().as_array().unwrap()[0].as_reference().unwrap();
    let below = document.get_object(below).unwrap().as_dict().unwrap();
    assert_eq!(below.get(b"DW").unwrap().as_float().unwrap(), 500.0, "6.2.11.5");
    assert!(below.get(b"W").is_err(), "6.2.11.5: no letter has another width");
    let descriptor = follow(below, b"FontDescriptor");
    let program = follow(descriptor.as_dict().unwrap(), b"FontFile2");
    let program = program.as_stream().unwrap();
    assert_eq!(program.content, glyphless_font(), "6.2.11.4");
    let length = program.dict.get(b"Length1").unwrap().as_i64().unwrap();
    assert_eq!(usize::try_from(length).unwrap(), program.content.len());
    // Code 0 is nothing's, every other one is the glyph that there is (6.2.11.3.2, 6.2.11.8).
    let glyphs = follow(below, b"CIDToGIDMap").as_stream().unwrap().decompressed_content().unwrap();
    let map = read_map(&document, font);
    assert_eq!(glyphs.len(), 2 * (map.len() + 1));
    assert!(glyphs.chunks(2).enumerate().all(|(code, glyph)| glyph == [0, u8::from(code > 0)]));
    let forbidden = ["\0", "\u{feff}", "\u{fffe}"];
    assert!(map.values().all(|text| !forbidden.contains(&text.as_str())), "6.2.11.7.2");
}

#[test]
fn the_same_pages_are_the_same_bytes_and_an_invalid_picture_is_refused() {
    assert_eq!(sample(), sample());
    let mut pdf = SearchablePdf::default();
    let before = pdf.size();
    let mut wrong = picture(ImageFormat::Png);
    wrong.bytes.truncate(60);
    assert_eq!(pdf.add_page(&page(1, Vec::new()), Some(&wrong)), Err(InvalidImageError));
    assert_eq!(pdf.size(), before);
}

#[test]
fn a_page_of_any_size_is_within_what_pages_may_have_and_keeps_its_shape() {
    let sides_of = |paper: PaperSize| (paper.width, paper.height);
    let sized = |width: u32, height: u32, dpi: u32| {
        let mut picture = picture(ImageFormat::Jpeg);
        picture.header = ImageHeader { width, height, dpi, ..picture.header };
        sides_of(PaperSize::of_page(&page(1, Vec::new()), Some(&picture)))
    };
    assert_eq!(sized(600, 800, 100), (432.0, 576.0));
    assert_eq!(sized(30_000, 15_000, 72), (14_400.0, 7_200.0), "larger than a page may be");
    assert_eq!(sized(1, 800, 100), (3.0, 576.0), "narrower");
    let white = |source, sides| {
        let page = PageText { source, ..PageText::from_native(1, sides, 0.0, Vec::new()) };
        sides_of(PaperSize::of_page(&page, None))
    };
    assert_eq!(white(PageSource::Native, (595.0, 842.0)), (595.0, 842.0), "points");
    assert_eq!(white(PageSource::Ocr, (2500.0, 3500.0)), (600.0, 840.0), "pixels");
    assert_eq!(white(PageSource::Ocr, (f32::INFINITY, 0.0)), (3.0, 3.0));
}

#[test]
fn more_letters_than_a_font_has_codes_for_are_given_as_one() {
    let mut letters = CharCodes::default();
    let all: Vec<char> = (0x1_0000..0x2_2000).filter_map(char::from_u32).collect();
    let codes: Vec<u16> = all.iter().map(|letter| letters.code(*letter)).collect();
    assert_eq!((codes[0], codes[65_533]), (1, 65_534));
    assert!(codes[65_534..].iter().all(|code| *code == u16::MAX));
    assert_eq!(letters.in_order.last(), Some(&REPLACEMENT));
    assert_eq!(letters.code(all[7]), 8, "the earlier ones keep theirs");
}
