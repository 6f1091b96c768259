//! Pages of Office documents, web pages and text files: as text, and as a picture for people.

use encoding_rs::WINDOWS_1252;
use pdf_writer::{Content, Finish as _, Name, Pdf, Rect, Ref, Str};

use crate::page::mark_incomplete;
use docmill_core::model::PageText;
use docmill_office::GridPage;

/// Number of the objects of a file with one page.
const CATALOG: Ref = Ref::new(1);
const PAGE_TREE: Ref = Ref::new(2);
const PAGE: Ref = Ref::new(3);
const CONTENTS: Ref = Ref::new(4);
const FONT: Ref = Ref::new(5);
/// Name of the font in the page's resources.
const COURIER: Name<'_> = Name(b"F1");
/// Height of the baseline above the lower end of a word's box, by that box's height.
const DESCENT: f32 = 0.2;

/// A laid-out page. One that misses a value which a person would see is read as a cut one.
pub(crate) fn page_from_grid(number: u32, page: GridPage) -> PageText {
    let GridPage { width, height, lines, notes } = page;
    let has_gap = notes.iter().any(|note| note.is_gap());
    let page = PageText { notes, ..PageText::from_native(number, (width, height), 1.0, lines) };
    if has_gap { mark_incomplete(page) } else { page }
}

/// The page as a PDF in a font that every reader of PDF has. `None`: a word has a letter that the
/// font lacks, and a page with other letters would mislead.
pub(crate) fn draw_grid(page: &GridPage) -> Option<Vec<u8>> {
    let mut content = Content::new();
    content.begin_text();
    for word in page.lines.iter().flat_map(|line| &line.words) {
        let (bytes, _, is_lossy) = WINDOWS_1252.encode(&word.text);
        if is_lossy {
            return None;
        }
        let area = word.bounding_box;
        let baseline = page.height - area.bottom() + DESCENT * area.h;
        content.set_font(COURIER, area.h);
        content.set_text_matrix([1.0, 0.0, 0.0, 1.0, area.x, baseline]);
        content.show(Str(&bytes));
    }
    content.end_text();
    let mut file = Pdf::new();
    file.catalog(CATALOG).pages(PAGE_TREE);
    file.pages(PAGE_TREE).kids([PAGE]).count(1);
    let mut sheet = file.page(PAGE);
    sheet.parent(PAGE_TREE).media_box(Rect::new(0.0, 0.0, page.width, page.height));
    sheet.contents(CONTENTS).resources().fonts().pair(COURIER, FONT);
    sheet.finish();
    file.stream(CONTENTS, &content.finish());
    let mut font = file.type1_font(FONT);
    font.base_font(Name(b"Courier")).encoding_predefined(Name(b"WinAnsiEncoding"));
    font.finish();
    Some(file.finish())
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use docmill_core::config::LimitsConfig;
    use docmill_core::model::PageNote;
    use image::{GrayImage, ImageFormat};
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use crate::{PageContent, open_document};

    fn open(text: &str) -> crate::ParsedDocument {
        open_document(text.to_owned().into(), &LimitsConfig::default(), 100).unwrap()
    }

    #[test]
    fn a_text_is_a_page_whose_picture_has_its_words_in_their_boxes() {
        let document = open("Invoice 4711 für Büro\n\n\nTotal      119.00 €\n");
        assert_eq!((document.page_count(), document.format().code()), (1, "txt"));
        let PageContent::Laid(page) = document.page_content(0).unwrap() else { panic!("laid") };
        let drawn = document.draw_page(0).unwrap().unwrap();
        let scale = f64::from(drawn.dpi) / 72.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "on the page")]
        let ink_in = |x: f32, y: f32, w: f32, h: f32| {
            let [x, y, w, h] = [x, y, w, h].map(|it| (f64::from(it) * scale).round() as usize);
            let width = drawn.width as usize;
            let rows = drawn.pixels.chunks(width).skip(y).take(h);
            rows.flat_map(|row| &row[x..(x + w).min(row.len())]).filter(|grey| **grey < 128).count()
        };
        for word in page.lines.iter().flat_map(|line| &line.words) {
            let area = word.bounding_box;
            assert!(ink_in(area.x, area.y, area.w, area.h) > 0, "{}", word.text);
        }
        let all: usize = ink_in(0.0, 0.0, page.width, page.height);
        let inside: usize = page
            .lines
            .iter()
            .flat_map(|line| &line.words)
            .map(|word| word.bounding_box)
            .map(|area| ink_in(area.x - 1.0, area.y - 1.0, area.w + 2.0, area.h + 2.0))
            .sum();
        assert_eq!(all, inside, "no ink lies beside the boxes");
    }

    /// A document that holds nothing but a picture of the size of a page.
    fn document_of_picture(picture: &[u8]) -> Vec<u8> {
        let relation = |kind: &str, target: &str| {
            let link = format!("<Relationship Id='p' Type='x/{kind}' Target='{target}'/>");
            format!("<Relationships>{link}</Relationships>").into_bytes()
        };
        let body =
            b"<w:document xmlns:w='w' xmlns:a='a' xmlns:r='r' xmlns:wp='wp'><w:body><w:p><w:r>\
            <w:drawing><wp:inline><wp:extent cx='7000000' cy='9000000'/><a:blip r:embed='p'/>\
            </wp:inline></w:drawing></w:r></w:p></w:body></w:document>";
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in [
            ("[Content_Types].xml", b"<Types/>".to_vec()),
            ("_rels/.rels", relation("officeDocument", "word/document.xml")),
            ("word/document.xml", body.to_vec()),
            ("word/_rels/document.xml.rels", relation("image", "media/scan.png")),
            ("word/media/scan.png", picture.to_vec()),
        ] {
            writer.start_file(name, SimpleFileOptions::default()).unwrap();
            writer.write_all(&bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn a_scan_in_a_document_is_a_page_for_ocr_and_a_damaged_one_is_a_lost_page() {
        let mut png = Cursor::new(Vec::new());
        GrayImage::new(60, 80).write_to(&mut png, ImageFormat::Png).unwrap();
        let page_of = |picture: &[u8]| {
            let file = document_of_picture(picture);
            let document = open_document(file.into(), &LimitsConfig::default(), 100).unwrap();
            assert_eq!((document.page_count(), document.format().code()), (1, "docx"));
            assert!(document.printed_page(0).unwrap().shows_more);
            document.page_content(0).unwrap()
        };
        let PageContent::Image(scan) = page_of(png.get_ref()) else { panic!("a picture") };
        assert_eq!((scan.width, scan.height), (60, 80));
        assert!(matches!(page_of(b"no picture"), PageContent::Damaged { .. }));
    }

    #[test]
    fn a_page_with_letters_that_the_font_lacks_has_text_and_no_picture() {
        let document = open("Рахунок 4711");
        assert_eq!(document.draw_page(0).unwrap(), None);
        assert_eq!(document.printed_page(0).unwrap().text.text(), "Рахунок 4711");
    }

    #[test]
    fn a_page_without_a_value_that_people_see_is_not_read_as_whole() {
        let page = docmill_office::GridPage {
            width: 100.0,
            height: 100.0,
            lines: vec![docmill_core::model::TextLine { words: Vec::new() }],
            notes: vec![PageNote::FormulaWithoutValue],
        };
        let whole = docmill_office::GridPage { notes: vec![PageNote::HiddenText], ..page.clone() };
        assert!(super::page_from_grid(1, page).quality < 0.5);
        assert_eq!(super::page_from_grid(1, whole).quality, 1.0);
    }
}
