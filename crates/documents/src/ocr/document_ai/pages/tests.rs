use super::*;
use docmill_core::model::{EncodedImage, ImageEncoding, ImageHeader, PictureFacts, TextMap};
use serde_json::{Value, json};

fn picture(number: u32) -> PagePicture {
    let facts = PictureFacts {
        number,
        repaired: false,
        score: 1.0,
        defects: Vec::new(),
        text: TextMap::default(),
        layer: None,
        cut: false,
        codes: Vec::new(),
    };
    let image = EncodedImage {
        header: ImageHeader { width: 1000, height: 2000, dpi: 100, encoding: ImageEncoding::Png },
        bytes: vec![],
    };
    PagePicture { facts, image, local_reading: None }
}

fn layout(start: usize, end: usize, confidence: f64) -> Value {
    let at = |index: usize| Value::String(index.to_string());
    let mut segment = json!({"endIndex": at(end)});
    if start > 0 {
        segment["startIndex"] = at(start);
    }
    json!({
        "textAnchor": {"textSegments": [segment]},
        "confidence": confidence,
        "boundingPoly": {"normalizedVertices": [{"x": 0.1, "y": 0.1}, {"x": 0.2, "y": 0.2}]},
    })
}

fn token(start: usize, end: usize, confidence: f64, after: Option<&str>) -> Value {
    let mut token = json!({"layout": layout(start, end, confidence)});
    if let Some(kind) = after {
        token["detectedBreak"] = json!({"type": kind});
    }
    token
}

fn document(value: Value) -> ProcessedDocument {
    serde_json::from_value(value).unwrap()
}

fn texts(reading: &ProviderReading) -> Vec<String> {
    reading.lines.iter().map(TextLine::text).collect()
}

/// Two pages in one text, with characters of one to four bytes and of one and two UTF-16 units.
fn two_pages() -> Value {
    // 0..6 "Größe " 6..9 "INV" 9..10 "-" 10..15 "𝟚041\n"; 15..22 "Zürich\n"
    json!({
        "text": "Größe INV-𝟚041\nZürich\n",
        "pages": [
            {"pageNumber": 1, "dimension": {"width": 1000, "height": 2000},
             "lines": [{"layout": layout(0, 15, 0.9)}],
             "tokens": [
                 token(0, 6, 0.99, Some("SPACE")), token(6, 9, 0.9, None),
                 token(9, 10, 0.5, None), token(10, 15, 0.8, Some("WIDE_SPACE")),
             ]},
            {"pageNumber": 2, "dimension": {"width": 1000, "height": 2000},
             "lines": [{"layout": layout(15, 22, 0.9)}],
             "tokens": [token(15, 22, 0.7, Some("SPACE"))]},
        ],
    })
}

#[test]
fn offsets_are_characters_and_tokens_without_a_break_are_one_word() {
    let read =
        parse_readings(&document(two_pages()), &[picture(7), picture(9)], Some("v2")).unwrap();
    assert_eq!(texts(&read[0]), ["Größe INV-𝟚041"]);
    let number = &read[0].lines[0].words[1];
    assert_eq!((number.text.as_str(), number.confidence), ("INV-𝟚041", 0.5));
    assert_eq!(texts(&read[1]), ["Zürich"]);
    assert_eq!(read[1].version.as_deref(), Some("v2"));
    assert_eq!(read[0].score, None, "scores were not given");
}

#[test]
fn pages_are_told_by_their_number_and_a_missing_one_makes_the_answer_useless() {
    let mut swapped = two_pages();
    swapped["pages"].as_array_mut().unwrap().reverse();
    let read = parse_readings(&document(swapped.clone()), &[picture(1), picture(2)], None).unwrap();
    assert_eq!(texts(&read[1]), ["Zürich"]);
    assert!(parse_readings(&document(swapped.clone()), &[picture(1)], None).is_none());
    swapped["pages"][0]["pageNumber"] = json!(1);
    assert!(parse_readings(&document(swapped), &[picture(1), picture(2)], None).is_none());
}

#[test]
fn an_anchor_beyond_the_text_is_no_word_and_lines_are_not_mixed() {
    let page = json!({
        "text": "one two\nthree\n",
        "pages": [{"pageNumber": 1,
            "lines": [{"layout": layout(0, 8, 1.0)}, {"layout": layout(8, 14, 1.0)}],
            "tokens": [token(0, 4, 1.0, Some("SPACE")), token(4, 7, 1.0, None),
                       token(8, 14, 1.0, None), token(14, 99, 1.0, None), token(5, 2, 1.0, None)]}],
    });
    let read = parse_readings(&document(page), &[picture(1)], None).unwrap();
    assert_eq!(texts(&read[0])[..2], ["one two", "three"]);
    assert_eq!(texts(&read[0]).len(), 2);
}

#[test]
fn defects_come_by_name_and_a_score_that_is_left_out_is_zero() {
    let page = json!({"text": "", "pages": [{"pageNumber": 1,
        "detectedLanguages": [{"languageCode": "fr", "confidence": 0.4},
            {"languageCode": "zh-Hant", "confidence": 0.9}, {"languageCode": "x", "confidence": 0.1}],
        "imageQualityScores": {"detectedDefects": [
            {"type": "quality/defect_blurry", "confidence": 0.9},
            {"type": "quality/defect_text_too_small", "confidence": 0.2},
            {"type": "quality/defect_dark", "confidence": 0.01},
            {"type": "quality/defect_of_the_future", "confidence": 1.0}]}}]});
    let read = parse_readings(&document(page), &[picture(1)], None).unwrap();
    assert_eq!(read[0].score, Some(0.0));
    let kinds: Vec<PageDefectKind> = read[0].defects.iter().map(|defect| defect.kind).collect();
    assert_eq!(kinds, [PageDefectKind::Blurry, PageDefectKind::TextTooSmall]);
    assert_eq!(read[0].languages, ["chi_sim", "fra"]);
}
