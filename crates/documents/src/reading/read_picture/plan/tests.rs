//! Which reader reads which picture of a page, with two readers that follow a script.

use std::sync::Arc;
use std::time::{Duration, Instant};

use opencv::core::Point2f;
use parking_lot::Mutex;

use crate::page::PageRaster;
use crate::quality::page_in_code::{noisy, photographed, shadowed, specked, speckled, text_page};
use crate::reading::read_picture::PictureReader;
use crate::reading::recognise::{PageRecogniser, TurnedReading};
use docmill_core::fault::Result;
use docmill_core::model::{BoundingBox, ReadRecipe, RepairSwitches, TextLine, TextWord};

/// A name, a page, the confidence of Tesseract, of the robust reader on the file's picture and on
/// any other one, and the expected passes.
type ReadersCase<'a> = (&'a str, &'a PageRaster, f32, [f32; 2], &'a [&'a str]);
/// The readings of whole pages, in order.
type ReadingLog = Arc<Mutex<Vec<String>>>;

/// Both readers, with fixed confidences for the file's picture and for any other.
struct TwoReaders {
    languages: Vec<String>,
    plain: f32,
    robust: RobustScript,
    log: ReadingLog,
}

struct RobustScript {
    as_it_is: f32,
    altered: f32,
    original: PageRaster,
    log: ReadingLog,
}

fn page_of_words(page: &PageRaster, confidence: f32) -> Vec<TextLine> {
    #[expect(clippy::cast_precision_loss, reason = "a small page")]
    let bounding_box = BoundingBox { x: 0.0, y: 0.0, w: page.width as f32, h: page.height as f32 };
    let text = "Invoice number and date of the order, please pay the amount due";
    let word =
        |text: &str| TextWord { text: text.into(), bounding_box, confidence, unwitnessed: false };
    vec![TextLine { words: text.split_whitespace().map(word).collect() }]
}

impl PageRecogniser for TwoReaders {
    fn languages(&self) -> &[String] {
        &self.languages
    }

    fn recognise(&mut self, page: &PageRaster, _: &[String]) -> Result<Vec<TextLine>> {
        // A probe of a few lines is a long strip.
        let is_whole = page.width.max(page.height) < 2 * page.width.min(page.height);
        if is_whole {
            self.log.lock().push("plain".to_owned());
        }
        Ok(page_of_words(page, if is_whole { self.plain } else { 0.95 }))
    }

    fn robust_reader(&mut self) -> Option<&mut dyn PageRecogniser> {
        Some(&mut self.robust)
    }
}

impl RobustScript {
    fn read(&mut self, page: &PageRaster, how: &str) -> Vec<TextLine> {
        let (what, sure) = match *page == self.original {
            true => ("as it is", self.as_it_is),
            false if page.width < self.original.width => ("sheet", self.altered),
            false => ("repaired", self.altered),
        };
        self.log.lock().push(format!("{how}: {what}"));
        page_of_words(page, sure)
    }
}

impl PageRecogniser for RobustScript {
    fn languages(&self) -> &[String] {
        &[]
    }

    fn recognise(&mut self, page: &PageRaster, _: &[String]) -> Result<Vec<TextLine>> {
        Ok(self.read(page, "robust"))
    }

    fn recognise_turned(&mut self, page: &PageRaster, _: &[String]) -> Result<TurnedReading> {
        Ok(TurnedReading::of_upright(self.read(page, "robust turning")))
    }

    fn is_robust(&self) -> bool {
        true
    }
}

fn who_reads(page: &PageRaster, plain: f32, robust: [f32; 2]) -> Vec<String> {
    let log = ReadingLog::default();
    let [as_it_is, altered] = robust;
    let script = RobustScript { as_it_is, altered, original: page.clone(), log: Arc::clone(&log) };
    let languages = vec!["eng".to_owned()];
    let mut both = TwoReaders { languages, plain, robust: script, log: Arc::clone(&log) };
    let recipe = ReadRecipe {
        dpi: 200,
        languages: vec!["eng".to_owned()],
        repairs: RepairSwitches::ALL,
        threshold: 0.7,
    };
    let mut reader = PictureReader {
        recogniser: &mut both,
        recipe: &recipe,
        hint: None,
        started: Instant::now(),
        page_time: Duration::from_secs(600),
    };
    reader.read(page).unwrap();
    log.lock().clone()
}

#[test]
fn the_reader_of_each_pass_follows_from_the_picture_and_the_readings_so_far() {
    let clean = text_page(1240, 1754, 24);
    let bad = noisy(&shadowed(&text_page(1240, 1754, 10)), 25);
    let fax = speckled(&text_page(1240, 1754, 9), 0.01);
    let specks = specked(&text_page(1240, 1754, 10), 0.012);
    let corners = [(90.0, 130.0), (1150.0, 90.0), (1180.0, 1620.0), (70.0, 1650.0)]
        .map(|(x, y)| Point2f::new(x, y));
    let photo = photographed(&noisy(&shadowed(&text_page(1240, 1754, 12)), 15), corners);
    // Which way up a page lies is asked for until it was read so surely that it is known.
    let (first, looking) = ("robust turning: as it is", "robust turning: repaired");
    let (sheet, again) = ("robust turning: sheet", "robust: repaired");
    #[rustfmt::skip]
    let table: [ReadersCase<'_>; 13] = [
        ("clean print, read well",       &clean, 0.95, [0.97, 0.97], &[first]),
        ("clean print, hardly in doubt", &clean, 0.95, [0.89, 0.89], &[first, "plain"]),
        ("clean print, read badly",      &clean, 0.6,  [0.6, 0.6],   &[first, "plain"]),
        ("a bad page, read well",        &bad,   0.9,  [0.97, 0.97], &[first]),
        ("a bad page, hardly in doubt",  &bad,   0.9,  [0.89, 0.89], &[first, "plain"]),
        ("a bad page, read fairly",      &bad,   0.6,  [0.75, 0.9],  &[first, "plain", again]),
        ("a fax, read well",             &fax,   0.95, [0.6, 0.97],  &[looking]),
        ("a fax that the main one reads", &fax,  0.95, [0.6, 0.6],   &[looking, "plain"]),
        ("a fax that nothing mends",     &fax,   0.6,  [0.6, 0.6],   &[looking, "plain", first]),
        ("specks that the repair takes", &specks, 0.6, [0.6, 0.97],  &[looking]),
        ("specks, read badly",           &specks, 0.6, [0.6, 0.6],   &[looking, "plain", first]),
        ("a photograph of a sheet",      &photo, 0.9,  [0.5, 0.97],  &[sheet]),
        ("a photograph, read badly",     &photo, 0.6,  [0.5, 0.65],  &[sheet, "plain", looking, first]),
    ];
    for (name, page, plain, robust, expected) in table {
        assert_eq!(who_reads(page, plain, robust), expected, "{name}");
    }
}
