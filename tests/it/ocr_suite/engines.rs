//! Cases of the engines of this machine, which read pictures on the thread that calls them.

use std::sync::Arc;

use docmill_core::config::{LimitsConfig, OcrConfig, OcrEngineChoice};
use docmill_core::model::TextLine;
use docmill_documents::PageRaster;
use docmill_documents::ocr::OcrEngine;
use docmill_documents::ocr::tesseract::TesseractEngine;

use crate::reading::{neural as pages, papers};

/// Finds an engine.
pub(super) type FindEngine = Box<dyn Fn() -> Arc<dyn OcrEngine> + Send + Sync>;

/// Tesseract, by the library or by this program.
pub(super) fn tesseract(program: &'static str) -> FindEngine {
    Box::new(move || {
        let languages = vec!["eng".to_owned()];
        let config = OcrConfig { tesseract: program.into(), languages, ..OcrConfig::default() };
        let page_time = LimitsConfig::default().page_time;
        Arc::new(TesseractEngine::find_installed(&config, page_time).unwrap())
    })
}

pub(super) fn neural() -> FindEngine {
    Box::new(|| Arc::new(pages::engines(OcrEngineChoice::Neural)))
}

pub(super) fn both() -> FindEngine {
    Box::new(|| Arc::new(pages::engines(OcrEngineChoice::Auto)))
}

fn english() -> Vec<String> {
    vec!["eng".to_owned()]
}

fn printed(lines: &[&str]) -> PageRaster {
    let picture = papers::picture(papers::pdf(&[&papers::content(lines)], ""));
    let (width, height) = picture.dimensions();
    PageRaster { width, height, dpi: 150, pixels: picture.into_raw() }
}

fn flat(width: u32, height: u32) -> PageRaster {
    PageRaster { width, height, dpi: 150, pixels: vec![250; (width * height) as usize] }
}

fn read(engine: &dyn OcrEngine, page: &PageRaster) -> Vec<TextLine> {
    engine.make_recogniser().unwrap().recognise(page, &english()).unwrap()
}

/// Share of the words of [`pages::LINES`] that were read.
fn recall(lines: &[TextLine]) -> f32 {
    let words = || lines.iter().flat_map(|line| &line.words);
    let expected: Vec<&str> = pages::LINES.iter().flat_map(|line| line.split(' ')).collect();
    let found = expected.iter().filter(|word| words().any(|read| read.text == **word)).count();
    found as f32 / expected.len() as f32
}

pub(super) async fn has_a_name_and_an_identity_that_two_finds_share(find: &FindEngine) {
    let (one, other) = (find(), find());
    assert!(!one.name().is_empty() && !one.identity().is_empty());
    assert_eq!((one.name(), one.identity()), (other.name(), other.identity()));
}

pub(super) async fn a_clean_page_is_read_and_its_words_lie_within_it(find: &FindEngine) {
    let page = printed(&pages::LINES);
    let lines = read(&*find(), &page);
    assert!(recall(&lines) >= 0.9, "{lines:?}");
    for word in lines.iter().flat_map(|line| &line.words) {
        let place = word.bounding_box;
        let inside = place.x >= -1.0
            && place.y >= -1.0
            && place.right() <= page.width as f32 + 1.0
            && place.bottom() <= page.height as f32 + 1.0;
        assert!(inside, "{:?} at {place:?}", word.text);
        assert!((0.0..=1.0).contains(&word.confidence), "{:?}", word.text);
    }
}

pub(super) async fn the_same_picture_gives_the_same_lines_whatever_was_read_before(
    find: &FindEngine,
) {
    let (page, another) = (printed(&pages::LINES[..3]), printed(&pages::LINES[3..]));
    let mut reader = find().make_recogniser().unwrap();
    let first = reader.recognise(&page, &english()).unwrap();
    reader.recognise(&another, &english()).unwrap();
    assert_eq!(reader.recognise(&page, &english()).unwrap(), first);
}

pub(super) async fn a_page_without_ink_has_no_words_and_none_of_any_shape_is_a_failure(
    find: &FindEngine,
) {
    let engine = find();
    for (width, height) in [(800, 1000), (1, 1), (1500, 1), (1, 1500)] {
        let lines = read(&*engine, &flat(width, height));
        assert_eq!(lines.iter().flat_map(|line| &line.words).count(), 0, "{width} x {height}");
    }
}

pub(super) async fn two_pages_are_read_at_the_same_time(find: &FindEngine) {
    let engine = find();
    let reading = |lines: &'static [&'static str]| {
        let engine = Arc::clone(&engine);
        std::thread::spawn(move || read(&*engine, &printed(lines)))
    };
    let (one, other) = (reading(&pages::LINES[..4]), reading(&pages::LINES[4..]));
    let both = [one.join().unwrap(), other.join().unwrap()].concat();
    assert!(recall(&both) >= 0.9, "{both:?}");
}
