//! Codes and boxes to be ticked, on pages with a text layer and on pictures of the same pages.

use super::*;
use docmill_core::model::{PageCode, PageText};
use docmill_layout::{BlockContent, read_layout, render_markdown};
use qrcode::{Color, EcLevel, QrCode};

pub(crate) const ORDER: &str =
    "BCD\n002\n1\nSCT\n\nHonest Parts Ltd\nDE89370400440532013000\nEUR480.00\n\n\n4711";

/// How the modules of a code are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ModuleForm {
    /// A rectangle each.
    Each,
    /// One shape of all.
    Whole,
    /// An inline image.
    Image,
}

/// The program that draws a code with its lower left corner there, in points.
pub(crate) fn drawn_code(
    said: &str,
    (left, bottom): (u32, u32),
    side: u32,
    form: ModuleForm,
) -> String {
    let code = QrCode::with_error_correction_level(said, EcLevel::M).unwrap();
    let modules = code.width();
    let unit = f64::from(side) / modules as f64;
    let colors = code.to_colors();
    if form == ModuleForm::Image {
        let row = |colors: &[Color]| -> String {
            colors.iter().map(|it| if *it == Color::Dark { "00" } else { "FF" }).collect()
        };
        let data: String = colors.chunks(modules).map(row).collect();
        return format!(
            "q {side} 0 0 {side} {left} {bottom} cm BI /W {modules} /H {modules} /CS /G /BPC 8 \
             /F /AHx ID {data}> EI Q "
        );
    }
    let end = if form == ModuleForm::Each { "f " } else { "" };
    let dark = colors.iter().enumerate().filter(|(_, color)| **color == Color::Dark);
    let drawn: String = dark
        .map(|(at, _)| {
            let (column, row) = (at % modules, at / modules);
            let x = f64::from(left) + unit * column as f64;
            let y = f64::from(bottom) + unit * (modules - 1 - row) as f64;
            format!("{x:.3} {y:.3} {unit:.3} {unit:.3} re {end}")
        })
        .collect();
    format!("q 0 g {drawn} f Q ")
}

/// An empty box and one with a cross, each beside a word.
const BOXES: &str = "q 1 w 60 500 11 11 re S 60 470 11 11 re S 62 472 m 69 479 l S 69 472 m \
                     62 479 l S Q BT /F1 12 Tf 80 501 Td (Delivery) Tj 0 -30 Td (Collection) Tj ET ";

fn layered(form: ModuleForm, side: u32) -> Vec<u8> {
    let text = content(&INVOICE);
    pdf(&[&format!("{text} {BOXES} {}", drawn_code(ORDER, (400, 100), side, form))], "")
}

fn code_of(page: &PageText) -> &PageCode {
    assert_eq!(page.codes.len(), 1, "{:?}", page.codes);
    let code = &page.codes[0];
    assert_eq!((code.payload.as_str(), code.bytes), (ORDER, false));
    code
}

#[tokio::test]
async fn a_code_that_is_drawn_on_a_page_of_text_is_read_however_it_is_drawn() {
    for form in [ModuleForm::Each, ModuleForm::Whole, ModuleForm::Image] {
        for side in [100, 130] {
            let file = layered(form, side);
            let page = &read_blind(file, LimitsConfig::default()).await.unwrap().pages[0];
            let words = page.lines.iter().flat_map(|line| &line.words);
            let unsure: Vec<_> = words.filter(|word| word.unwitnessed).collect();
            assert_eq!((page.source, unsure), (PageSource::Native, Vec::new()), "{form:?}");
            assert_eq!(page.quality, 1.0, "{form:?}");
            let place = code_of(page).bounding_box;
            let near = |one: f32, other: u32| (one - other as f32).abs() < 6.0;
            assert!(near(place.x, 400) && near(place.w, side), "{form:?} {place:?}");
            assert!(near(place.y, 742 - side) && near(place.h, side), "{form:?} {place:?}");
        }
    }
}

/// As long as a Swiss bill says: 65 modules a side.
fn long_order() -> String {
    format!(
        "SPC\n0200\n1\nCH4431999123000889012\nS\n{}\nEPD\n",
        "Harbour Road 12\n8000\n".repeat(12)
    )
}

#[tokio::test]
async fn codes_as_small_as_they_are_printed_are_read_on_a_page_of_text() {
    let long = long_order();
    for form in [ModuleForm::Each, ModuleForm::Whole] {
        for (said, sides) in [(ORDER, &[40, 60, 100, 130][..]), (&long, &[40, 60, 80, 100, 130])] {
            for side in sides {
                let drawn = drawn_code(said, (400, 100), *side, form);
                let file = pdf(&[&format!("{} {drawn}", content(&INVOICE))], "");
                let page = &read_blind(file, LimitsConfig::default()).await.unwrap().pages[0];
                let at = format!("{form:?}, {side} points, {} bytes", said.len());
                assert_eq!(page.source, PageSource::Native, "{at}");
                let codes: Vec<&str> = page.codes.iter().map(|it| it.payload.as_str()).collect();
                assert_eq!(codes, [said], "{at}");
                let place = page.codes[0].bounding_box;
                let near = |one: f32, other: u32| (one - other as f32).abs() < 6.0;
                assert!(near(place.x, 400) && near(place.w, *side), "{at} {place:?}");
                assert!(near(place.y, 742 - side) && near(place.h, *side), "{at} {place:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_page_without_marks_says_the_same_as_before_they_were_looked_for() {
    let page = &read_blind(pdf(&[&content(&INVOICE)], ""), LimitsConfig::default()).await.unwrap();
    let stored = serde_json::to_string(&page.pages[0]).unwrap();
    assert!(!stored.contains("codes"), "{stored}");
}

#[tokio::test]
async fn boxes_on_a_page_of_text_are_list_entries_that_say_whether_they_are_ticked() {
    let transcript =
        read_blind(layered(ModuleForm::Each, 100), LimitsConfig::default()).await.unwrap();
    let layout = read_layout(&transcript);
    let ticks: Vec<(bool, &str)> = layout.pages[0]
        .blocks
        .iter()
        .filter_map(|block| match &block.content {
            BlockContent::Checkbox { checked, text } => Some((*checked, text.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(ticks, [(false, "☐ Delivery"), (true, "☒ Collection")]);
    let markdown = render_markdown(&layout);
    assert!(markdown.contains("- [ ] Delivery\n") && markdown.contains("- [x] Collection\n"));
}

#[tokio::test]
async fn codes_and_boxes_are_read_from_the_picture_of_a_page() {
    let scan = picture(layered(ModuleForm::Each, 130));
    let transcript = read_with_tesseract(encoded(&scan, ImageFormat::Png)).await.unwrap();
    let page = &transcript.pages[0];
    assert_eq!(page.source, PageSource::Ocr);
    let place = code_of(page).bounding_box;
    let scale = page.width / 595.0;
    assert!((place.x / scale - 400.0).abs() < 6.0, "{place:?} at {scale}");
    let text = page.text();
    assert!(text.contains("☐ Delivery") && text.contains("☒ Collection"), "{text}");
}
