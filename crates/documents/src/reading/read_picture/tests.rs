//! The policy, with a recogniser that follows a script. It sees which way up a page is by the shade
//! of its letters, which are black above and grey below.

use super::*;
use crate::quality::SURE_FEET;
use crate::quality::page_in_code::{skewed, specked, text_page};
use crate::reading::orientation_probe;
use docmill_core::fault::Result;
use docmill_core::model::{BoundingBox, RepairSwitches, TextWord};

const ENGLISH: &str = "Invoice number and date of the order, please pay the amount due";
const GERMAN: &str = "Rechnung und Datum der Lieferung, bitte zahlen Sie den Betrag";
const GIBBERISH: &str = "mqwz xkvj pfgh zzqx wvkp jjqm";

/// A page at 200 dpi with many lines of letters of 14 x 20 pixels.
fn page() -> PageRaster {
    let (width, height) = (1000_usize, 1200_usize);
    let mut pixels = vec![255_u8; width * height];
    for top in (100..1100).step_by(50) {
        for left in (100..900).step_by(20) {
            for y in 0..20 {
                let shade = if y < 10 { 0 } else { 60 };
                for x in 0..14 {
                    let stroke = !(4..10).contains(&x) || (8..12).contains(&y);
                    // Words: every sixth letter is a space.
                    if stroke && (left / 20) % 6 != 0 {
                        pixels[(top + y) * width + left + x] = shade;
                    }
                }
            }
        }
    }
    PageRaster { width: 1000, height: 1200, dpi: 200, pixels }
}

/// The same with a speck on every thirtieth pixel, which calls for a repair.
fn grainy() -> PageRaster {
    let mut page = page();
    let mut random = fastrand::Rng::with_seed(7);
    for value in &mut page.pixels {
        match random.u8(..60) {
            0 => *value = 0,
            1 => *value = 255,
            _ => {}
        }
    }
    page
}

/// Quarter turns clockwise that the page has been given, by the shades of its letters.
fn turns_of(page: &PageRaster) -> u8 {
    let across = page.width as usize;
    let mut seen = [0_u32; 4];
    let at = |index: usize| page.pixels.get(index).copied().unwrap_or(255);
    let steps = |one: u8, next: u8| one < 30 && (40..80).contains(&next);
    for index in 0..page.pixels.len() {
        let (here, right, below) = (at(index), at(index + 1), at(index + across));
        seen[0] += u32::from(steps(here, below));
        seen[1] += u32::from(steps(right, here));
        seen[2] += u32::from(steps(below, here));
        seen[3] += u32::from(steps(here, right));
    }
    (0..4_u8).max_by_key(|turns| seen[usize::from(*turns)]).unwrap()
}

type Answer<'a> = dyn FnMut(&PageRaster, &str) -> (&'static str, f32) + Send + 'a;

struct Script<'a> {
    installed: Vec<String>,
    answer: Box<Answer<'a>>,
    /// Width, height and language of everything that was read.
    log: Vec<(u32, u32, String)>,
    /// Position of a text on a page of this width and height.
    place: fn(&str, f32, f32) -> BoundingBox,
}

impl<'a> Script<'a> {
    fn new(answer: impl FnMut(&PageRaster, &str) -> (&'static str, f32) + Send + 'a) -> Self {
        let installed = ["deu", "eng"].map(str::to_owned).into();
        Self { installed, answer: Box::new(answer), log: Vec::new(), place: everywhere }
    }

    /// Languages of the readings of a whole page; the part that is looked at first is a long strip.
    fn whole(&self) -> Vec<&str> {
        let whole = self.log.iter().filter(|(w, h, _)| w.max(h) < &(w.min(h) * 2));
        whole.map(|(_, _, language)| language.as_str()).collect()
    }
}

fn everywhere(_: &str, w: f32, h: f32) -> BoundingBox {
    BoundingBox { x: 0.0, y: 0.0, w, h }
}

/// Each text has its own part of the page, the one that begins with I the upper.
fn apart(text: &str, w: f32, h: f32) -> BoundingBox {
    let (y, h) = if text.starts_with('I') { (0.0, h * 0.6) } else { (h * 0.7, h * 0.3) };
    BoundingBox { x: 0.0, y, w, h }
}

/// Where [`page`] has its lines.
fn on_the_lines(_: &str, w: f32, h: f32) -> BoundingBox {
    BoundingBox { x: w * 0.1, y: h * 0.08, w: w * 0.8, h: h * 0.83 }
}

impl PageRecogniser for Script<'_> {
    fn languages(&self) -> &[String] {
        &self.installed
    }

    fn recognise(&mut self, page: &PageRaster, languages: &[String]) -> Result<Vec<TextLine>> {
        let language = languages.join("+");
        let (text, confidence) = (self.answer)(page, &language);
        self.log.push((page.width, page.height, language));
        #[expect(clippy::cast_precision_loss, reason = "a small page")]
        let (w, h) = (page.width as f32, page.height as f32);
        let bounding_box = (self.place)(text, w, h);
        let word = |text: &str| TextWord {
            text: text.into(),
            bounding_box,
            confidence,
            unwitnessed: false,
        };
        Ok(vec![TextLine { words: text.split_whitespace().map(word).collect() }])
    }
}

fn read(page: &PageRaster, script: &mut Script<'_>, repairs: RepairSwitches) -> PictureRead {
    let recipe = ReadRecipe { dpi: 200, languages: Vec::new(), repairs, threshold: 0.7 };
    let (started, page_time) = (Instant::now(), Duration::from_secs(600));
    let mut reader =
        PictureReader { recogniser: script, recipe: &recipe, hint: None, started, page_time };
    reader.read(page).unwrap()
}

const TURNS_ONLY: RepairSwitches =
    RepairSwitches { enabled: true, orientation: true, ..RepairSwitches::NONE };

#[test]
fn a_page_without_defects_is_read_once_and_left_alone() {
    let mut script = Script::new(|_, _| (ENGLISH, 0.95));
    let read = read(&page(), &mut script, RepairSwitches::ALL);
    assert_eq!(script.whole(), ["eng"]);
    assert!(read.repaired.is_none());
    assert_eq!((read.width, read.height), (1000, 1200));
}

/// A page whose letters are seen to stand on their feet.
fn surely_upright() -> PageRaster {
    text_page(1240, 1754, 20)
}

#[test]
fn more_of_an_upright_page_is_probed_until_its_words_prove_their_language() {
    let page = surely_upright();
    assert!(quality::assess_page(&page).unwrap().direction.feet >= SURE_FEET);
    let mut strips = 0;
    let mut script = Script::new(|picture: &PageRaster, language: &str| {
        strips += u32::from(picture.width > picture.height * 2);
        match (strips, language) {
            (0..3, _) => ("4711 0815 Musterfirma Beispielstadt", 0.95),
            _ => (GERMAN, 0.95),
        }
    });
    let read = read(&page, &mut script, RepairSwitches::ALL);
    assert_eq!(script.whole(), ["deu"], "never read in another language");
    assert_eq!(script.log.len(), 4, "three pieces and the page");
    assert_eq!(read.languages, ["deu"]);
}

#[test]
fn no_piece_of_a_page_that_surely_lies_upright_is_turned() {
    let mut script = Script::new(|_, _| (GIBBERISH, 0.3));
    read(&surely_upright(), &mut script, TURNS_ONLY);
    let is_piece = |(w, h, _): &&(u32, u32, String)| *w > h * 2;
    assert_eq!(
        script.log.iter().filter(is_piece).count(),
        4,
        "four that nobody can read, as they lie"
    );
}

#[test]
fn specks_on_blank_paper_do_not_count_as_missing_text() {
    let mut page = text_page(1240, 1754, 10);
    let written = page.pixels.len() / 2;
    page.pixels[written..].fill(255);
    let dirty = specked(&page, 0.012);
    let found = quality::assess_page(&dirty).unwrap();
    assert!(found.is_speckled());
    let count =
        |page: &PageRaster, found: &PageAssessment| text_cells(page, found).unwrap().uncovered(&[]);
    let grain = PageAssessment { noise: 99.0, ..found.clone() };
    let blank = PageRaster { pixels: dirty.pixels[written..].to_vec(), height: 877, ..dirty };
    let (as_specks, as_grain) = (count(&blank, &found), count(&blank, &grain));
    assert!(as_specks * 4 < as_grain, "{as_specks} {as_grain}");
}

#[test]
fn of_two_readings_the_better_one_stays_and_the_second_happens_only_if_the_first_falls_short() {
    let original = grainy();
    #[rustfmt::skip]
    let table = [
        ("the repair did well",        0.9, 0.3, 1, true),
        ("the repair did a little",    0.6, 0.3, 2, true),
        ("the repair did harm",        0.3, 0.6, 2, false),
    ];
    for (name, repaired, plain, readings, stays) in table {
        let mut script = Script::new(|page: &PageRaster, _: &str| {
            let is_plain = page.pixels == original.pixels;
            (ENGLISH, if is_plain { plain } else { repaired })
        });
        let read = read(
            &original,
            &mut script,
            RepairSwitches { orientation: false, ..RepairSwitches::ALL },
        );
        assert_eq!(script.whole().len(), readings, "{name}");
        assert_eq!(read.repaired.is_some(), stays, "{name}");
    }
}

#[test]
fn small_print_that_falls_short_twice_is_read_a_third_time_sharpened_and_large_print_is_not() {
    let small = text_page(1240, 1754, 9);
    let without = RepairSwitches { sharpen: false, ..RepairSwitches::ALL };
    #[rustfmt::skip]
    let table = [
        ("read well",           &small,    0.95, RepairSwitches::ALL, 1),
        ("read badly",          &small,    0.6,  RepairSwitches::ALL, 3),
        ("not to be sharpened", &small,    0.6,  without,      2),
        ("large enough",        &grainy(), 0.6, RepairSwitches::ALL, 2),
    ];
    for (name, original, confidence, repairs, readings) in table {
        let mut script = Script::new(|_, _| (ENGLISH, confidence));
        read(original, &mut script, RepairSwitches { orientation: false, ..repairs });
        assert_eq!(script.whole().len(), readings, "{name}");
    }
}

#[test]
fn words_of_the_sharpened_picture_alone_are_added_also_where_the_repair_has_moved_the_ink() {
    let small = text_page(1240, 1754, 9);
    let crooked = skewed(&small, 3.0);
    for (original, third, added) in
        [(&small, 0.8, true), (&small, 0.4, false), (&crooked, 0.8, true)]
    {
        let mut enlarged = 0;
        let answer = move |page: &PageRaster, _: &str| {
            let is_enlarged = page.width > 2000 && page.height > page.width;
            enlarged += u32::from(is_enlarged);
            match (is_enlarged, enlarged) {
                (true, 1) => ("Invoice", 0.6),
                (true, _) => ("Total", third),
                (false, _) => ("worse", 0.3),
            }
        };
        let mut script = Script { place: apart, ..Script::new(answer) };
        let read = read(
            original,
            &mut script,
            RepairSwitches { orientation: false, ..RepairSwitches::ALL },
        );
        let text: Vec<String> = read.lines.iter().map(TextLine::text).collect();
        assert_eq!(script.whole().len(), 3, "{text:?}");
        assert_eq!(text.concat().contains("Total"), added, "{text:?}");
        assert!(text.concat().contains("Invoice"), "{text:?}");
    }
}

#[test]
fn words_of_the_worse_of_two_peer_readings_are_added_and_of_a_far_worse_one_none() {
    let original = grainy();
    for (plain, added) in [(0.65, true), (0.5, false)] {
        let answer = |page: &PageRaster, _: &str| match page.pixels == original.pixels {
            true => ("Total", plain),
            false => ("Invoice", 0.7),
        };
        let mut script = Script { place: apart, ..Script::new(answer) };
        let read = read(
            &original,
            &mut script,
            RepairSwitches { orientation: false, ..RepairSwitches::ALL },
        );
        let text: Vec<String> = read.lines.iter().map(TextLine::text).collect();
        assert_eq!(text.concat().contains("Total"), added, "{text:?}");
        assert!(text.concat().contains("Invoice"), "{text:?}");
    }
}

#[test]
fn grain_does_not_count_as_unread_text() {
    let mut grainy = page();
    let mut random = fastrand::Rng::with_seed(7);
    for value in &mut grainy.pixels {
        let noise: i32 = (0..3).map(|_| random.i32(-35..=35)).sum();
        *value = u8::try_from((i32::from(*value) + noise).clamp(0, 255)).unwrap();
    }
    let answer = |_: &PageRaster, _: &str| (ENGLISH, 0.95);
    let mut script = Script { place: on_the_lines, ..Script::new(answer) };
    let read = read(&grainy, &mut script, RepairSwitches::NONE);
    assert!(read.defects.iter().any(|defect| defect.kind == PageDefectKind::Noisy), "{read:?}");
    // Up to three tenths are taken off for the picture, no third for grain beside the lines.
    assert!(read.quality > 0.75, "{}", read.quality);
}

#[test]
fn a_page_upside_down_or_sideways_is_turned_back_and_kept_with_the_picture_of_its_boxes() {
    for turns in 0..4 {
        let lying = orientation_probe::rotate_raster(page(), turns);
        let mut script = Script::new(|page: &PageRaster, _: &str| match turns_of(page) {
            0 => (ENGLISH, 0.95),
            _ => (GIBBERISH, 0.3),
        });
        let read = read(&lying, &mut script, TURNS_ONLY);
        assert_eq!((read.width, read.height), (1000, 1200), "{turns} turns");
        assert_eq!(read.repaired.is_some(), turns != 0, "{turns} turns");
        assert!(read.quality > 0.7, "{turns} turns: {}", read.quality);
        assert_eq!(script.whole().len(), 1, "{turns} turns");
    }
}

#[test]
fn an_upright_page_is_not_turned_however_badly_it_is_read() {
    #[rustfmt::skip]
    let table = [
        ("nothing is read either way",       (GIBBERISH, 0.3), (GIBBERISH, 0.3)),
        ("turned it is read no better",      (ENGLISH, 0.72),  (ENGLISH, 0.95)),
        ("turned it looks a little better",  (GIBBERISH, 0.4), (GIBBERISH, 0.6)),
    ];
    for (name, upright, turned) in table {
        let answer =
            move |page: &PageRaster, _: &str| if turns_of(page) == 0 { upright } else { turned };
        let mut script = Script::new(answer);
        let read = read(&page(), &mut script, TURNS_ONLY);
        assert!(read.repaired.is_none(), "{name}");
        assert_eq!((read.width, read.height), (1000, 1200), "{name}");
    }
}

#[test]
fn a_page_is_read_in_the_language_of_a_few_of_its_lines() {
    let mut script = Script::new(|_, _| (GERMAN, 0.9));
    let read = read(&page(), &mut script, RepairSwitches::ALL);
    assert_eq!(script.whole(), ["deu"], "once, and in the right language");
    assert_eq!(
        (read.languages, read.detected_language),
        (vec!["deu".to_owned()], Some("deu".to_owned()))
    );
}

#[test]
fn a_page_in_another_language_is_read_again_and_keeps_the_better_reading() {
    for (german, kept) in [(0.9, "deu"), (0.4, "eng")] {
        let answer = move |page: &PageRaster, language: &str| {
            let is_whole = page.width * page.height >= 1_000_000;
            // The probed part has no word that proves a language.
            let text = if is_whole { GERMAN } else { "Berlin Hamburg Dresden" };
            (text, if language == "deu" { german } else { 0.8 })
        };
        let mut script = Script::new(answer);
        let read = read(&page(), &mut script, RepairSwitches::ALL);
        assert_eq!(script.whole(), ["eng", "deu"]);
        assert_eq!(read.languages, [kept]);
    }
}

#[test]
fn small_letters_count_against_tesseract_only_because_the_robust_readers_confidence_reflects_them()
{
    let blank = PageRaster { width: 400, height: 400, dpi: 100, pixels: vec![255; 160_000] };
    let bounding_box = BoundingBox { x: 10.0, y: 10.0, w: 60.0, h: 7.0 };
    let word = TextWord { text: "Total".into(), bounding_box, confidence: 0.9, unwitnessed: false };
    let lines = [TextLine { words: vec![word] }];
    let quality =
        |is_robust| score_reading(&TextCells::from_raster(&blank), &lines, is_robust).quality();
    assert!((quality(true) - 0.9).abs() < 0.001, "{}", quality(true));
    assert!(quality(false) < 0.5, "{}", quality(false));
}
