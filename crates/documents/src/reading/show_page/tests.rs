use std::io::Cursor;

use image::{GrayImage, ImageFormat, Luma};

use super::*;
use crate::document::open_document;
use docmill_core::config::LimitsConfig;
use docmill_core::model::{BoundingBox, PageSource, RepairSwitches, TextLayer, TextLine, TextWord};

fn recipe(repairs: RepairSwitches) -> ReadRecipe {
    ReadRecipe { dpi: 100, languages: Vec::new(), repairs, threshold: 0.7 }
}

/// Rows of marks that look like letters, on paper of this shade.
fn document(paper: u8) -> ParsedDocument {
    let picture = GrayImage::from_fn(600, 800, |x, y| {
        let is_letter = y % 40 < 14 && x % 18 < 12 && (x % 18 % 6 < 2 || y % 40 % 6 < 2);
        let in_margin = !(60..540).contains(&x) || !(60..740).contains(&y);
        Luma([if is_letter && !in_margin { paper / 4 } else { paper }])
    });
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, ImageFormat::Png).unwrap();
    open_document(bytes.into_inner().into(), &LimitsConfig::default(), 100).unwrap()
}

fn picture(document: &ParsedDocument, view: PageViewMode) -> PagePicture {
    match show_page(document, 0, view, &recipe(RepairSwitches::ALL)).unwrap() {
        PageViewResult::Picture(picture) => *picture,
        other => panic!("{other:?}"),
    }
}

fn reading(score: Option<f32>) -> ProviderReading {
    let bounding_box = BoundingBox { x: 60.0, y: 60.0, w: 480.0, h: 14.0 };
    let word = TextWord { text: "Total".into(), bounding_box, confidence: 0.9, unwitnessed: false };
    ProviderReading {
        lines: vec![TextLine { words: vec![word] }],
        score,
        ..ProviderReading::default()
    }
}

#[test]
fn a_picture_is_shown_as_it_is_repaired_where_it_needs_it_and_without_bytes_on_request() {
    let dark = document(110);
    let as_it_is = picture(&dark, PageViewMode::AsItIs);
    assert!(as_it_is.facts.score < 1.0 && !as_it_is.facts.defects.is_empty());
    assert!(has_text(&as_it_is.facts.text));
    let facts = picture(&dark, PageViewMode::Facts);
    assert_eq!((facts.facts, facts.image.bytes.len()), (as_it_is.facts.clone(), 0));
    let repaired = picture(&dark, PageViewMode::Repaired);
    assert!(repaired.facts.repaired && repaired.facts.score >= 1.0);
    assert_eq!(repaired.facts.defects, as_it_is.facts.defects, "as the file has it");
    assert_ne!(repaired.image.bytes, as_it_is.image.bytes);
    let kept = show_page(&dark, 0, PageViewMode::Repaired, &recipe(RepairSwitches::NONE)).unwrap();
    assert_eq!(kept, PageViewResult::Unaltered, "repairs are switched off");
}

#[test]
fn a_providers_own_score_decides_and_where_it_has_none_ours_does() {
    let shown = picture(&document(230), PageViewMode::AsItIs);
    let scored =
        page_from_reading("document_ai", &shown.facts, &shown.image.header, reading(Some(0.42)));
    assert_eq!((scored.quality, scored.source, scored.number), (0.42, PageSource::Ocr, 1));
    let notes = scored.provider.unwrap();
    assert_eq!((notes.name.as_str(), notes.score), ("document_ai", Some(0.42)));
    let unscored = page_from_reading("textract", &shown.facts, &shown.image.header, reading(None));
    assert!(unscored.quality < 0.3, "one line of many was found: {}", unscored.quality);
    let blank = PictureFacts { text: TextMap::default(), ..shown.facts };
    let empty =
        page_from_reading("textract", &blank, &shown.image.header, ProviderReading::default());
    assert!(empty.quality >= 0.9 && !has_text(&blank.text), "{}", empty.quality);
}

#[test]
fn text_missing_from_a_doubtful_layer_is_added_and_the_call_is_recorded() {
    let shown = picture(&document(230), PageViewMode::AsItIs);
    let bounding_box = BoundingBox { x: 43.2, y: 43.2, w: 345.6, h: 10.1 };
    let word = TextWord { text: "Total".into(), bounding_box, confidence: 1.0, unwitnessed: false };
    let lines = vec![TextLine { words: vec![word] }];
    let layer = TextLayer { width: 432.0, height: 576.0, lines, garbled: false, marks: Vec::new() };
    let facts = PictureFacts { layer: Some(layer.clone()), ..shown.facts };
    let image = ImageHeader { width: 600, height: 800, dpi: 100, ..shown.image.header };
    let all_there = page_from_reading("textract", &facts, &image, reading(None));
    assert_eq!((all_there.source, all_there.text().as_str()), (PageSource::Native, "Total"));
    assert!(all_there.provider.is_some(), "a page that was paid for is kept");
    let garbled = TextLayer { garbled: true, ..layer };
    let facts = PictureFacts { layer: Some(garbled), ..facts };
    let replaced = page_from_reading("textract", &facts, &image, reading(Some(0.9)));
    assert_eq!(replaced.source, PageSource::Ocr);
    let cut = PictureFacts { cut: true, ..facts };
    let page = page_from_reading("textract", &cut, &image, reading(Some(0.9)));
    assert!(page.quality <= 0.3, "a cut page never passes for a whole one");
}
