//! Which lines are read again, and what becomes of them, with readers that follow a script.

use std::time::{Duration, Instant};

use super::*;
use crate::page::PageRaster;
use crate::reading::read_picture::plan::{EngineSet, PassEngine, ReadingPlan};
use crate::reading::read_picture::{PageReading, SourcePicture};
use crate::reading::recognise::PageRecogniser;
use docmill_core::fault::Result;
use docmill_core::model::{ReadRecipe, RepairSwitches, TextWord};

/// Words below that are in the page's language.
const KNOWN: [&str; 6] = ["quick", "brown", "jumps", "over", "lazy", "email"];

/// A line for each text, one below the other; words side by side.
fn page_lines(texts: &[&str], confidence: f32) -> Vec<TextLine> {
    let mut lines = Vec::new();
    let mut y = 100.0;
    for text in texts {
        let mut x = 100.0;
        let mut words = Vec::new();
        for word in text.split_whitespace() {
            let bounding_box = BoundingBox { x, y, w: 90.0, h: 30.0 };
            let text = word.to_owned();
            words.push(TextWord {
                text: text.into(),
                bounding_box,
                confidence,
                unwitnessed: false,
            });
            x += 100.0;
        }
        lines.push(TextLine { words });
        y += 50.0;
    }
    lines
}

/// Tesseract, who reads `lines`, and beside it a robust reader.
struct Pair {
    languages: Vec<String>,
    lines: Vec<TextLine>,
    robust: RegionReader,
}

/// Reads accents where Tesseract read none, and nothing of whole pages.
struct RegionReader {
    has_words: bool,
    asked: Vec<BoundingBox>,
    lines: Vec<TextLine>,
}

impl PageRecogniser for Pair {
    fn languages(&self) -> &[String] {
        &self.languages
    }

    fn recognise(&mut self, _: &PageRaster, _: &[String]) -> Result<Vec<TextLine>> {
        Ok(self.lines.clone())
    }

    fn robust_reader(&mut self) -> Option<&mut dyn PageRecogniser> {
        Some(&mut self.robust)
    }
}

impl PageRecogniser for RegionReader {
    fn languages(&self) -> &[String] {
        &[]
    }

    fn recognise(&mut self, _: &PageRaster, _: &[String]) -> Result<Vec<TextLine>> {
        panic!("no page is read again as a whole")
    }

    fn recognise_regions(
        &mut self,
        _: &PageRaster,
        places: &[BoundingBox],
        _: &[String],
    ) -> Result<Vec<Option<TextLine>>> {
        self.asked = places.to_vec();
        let at = |place: &BoundingBox| {
            self.lines.iter().find(|line| line_region(line).is_some_and(|it| it == *place)).cloned()
        };
        Ok(places.iter().map(at).collect())
    }

    fn known_words(&self, words: &[&str], languages: &[String]) -> Result<Option<Vec<bool>>> {
        assert_eq!(languages, ["eng"]);
        let is_known = |word: &&str| KNOWN.contains(&word.to_lowercase().as_str());
        Ok(self.has_words.then(|| words.iter().map(is_known).collect()))
    }

    fn is_robust(&self) -> bool {
        true
    }
}

/// The reading of a page that Tesseract reads as `plain` and the robust reader as `robust`, and how
/// many lines the latter was asked for.
fn read(plain: &[&str], robust: &[&str], has_words: bool) -> (Vec<String>, usize) {
    let languages = vec!["eng".to_owned()];
    let robust = RegionReader { has_words, asked: Vec::new(), lines: page_lines(robust, 0.97) };
    let mut both = Pair { languages: languages.clone(), lines: page_lines(plain, 0.93), robust };
    let recipe = ReadRecipe { dpi: 200, languages, repairs: RepairSwitches::NONE, threshold: 0.0 };
    let mut reader = PictureReader {
        recogniser: &mut both,
        recipe: &recipe,
        hint: None,
        started: Instant::now(),
        page_time: Duration::from_secs(600),
    };
    // Nothing else on it looks like missing text.
    let page = PageRaster { width: 1240, height: 1754, dpi: 150, pixels: vec![255; 1240 * 1754] };
    let found = crate::quality::assess_page(&page).unwrap();
    let plan = ReadingPlan::choose(&found, EngineSet::MainAndRobust);
    assert_eq!(plan.first.engine, PassEngine::Main);
    let source = SourcePicture { page: &page, found: &found };
    let PageReading { best, .. } = reader.run_plan(&plan, source).unwrap();
    (best.lines.iter().map(TextLine::text).collect(), both.robust.asked.len())
}

#[test]
fn lines_in_other_languages_are_read_by_the_robust_reader_too_and_those_of_the_pages_language_are_not()
 {
    let plain =
        ["quick brown jumps", "over lazy", "tiber braune springt", "Over lazy cao", "email"];
    let robust =
        ["Quick Brown Jumps", "Over Lazy", "über braune springt", "Over lazy cão", "Email"];
    // The lines beside it are read again, and the first and the last one are not.
    let both = [plain[0], robust[1], robust[2], robust[3], plain[4]];
    assert_eq!(read(&plain, &robust, true), (both.map(str::to_owned).into(), 3));
    assert_eq!(read(&plain, &robust, false), (plain.map(str::to_owned).into(), 0), "no lists");
    let own = ["quick brown jumps", "over lazy Fuchs", "email brown tiber"];
    assert_eq!(read(&own, &robust, true), (own.map(str::to_owned).into(), 0), "names in it");
}

#[test]
fn a_good_part_of_a_page_has_to_be_of_another_language() {
    let told = |checked, unknown| ListedWords { checked, unknown };
    let all: Vec<usize> = (0..5).collect();
    #[rustfmt::skip]
    let table = [
        ("one language",             vec![told(4, 0), told(6, 1)],                            vec![]),
        ("compounds in every line",  vec![told(4, 1); 5],                                     vec![]),
        ("a line of names",          vec![told(9, 0), told(3, 2), told(9, 1)],                vec![]),
        ("a paragraph of another",   vec![told(9, 1), told(4, 2), told(4, 0), told(3, 1)],    vec![0, 1, 2, 3]),
        ("neighbours of many words", vec![told(9, 0), told(8, 2), told(8, 2), told(9, 0)],    vec![0, 1, 2, 3]),
        ("it ends above",            vec![told(4, 2), told(4, 0), told(4, 0), told(1, 0)],    vec![0, 1]),
        ("all of another",           vec![told(4, 3); 5],                                     all),
        ("nothing to be told",       vec![told(0, 0); 3],                                     vec![]),
        ("single words in cells",    vec![told(1, 1); 5],                                     vec![]),
        ("no line",                  vec![],                                                  vec![]),
    ];
    for (name, lines, expected) in table {
        assert_eq!(lines_to_reread(&lines), expected, "{name}");
    }
}

#[test]
fn words_of_four_letters_are_looked_up_without_punctuation_around_them() {
    let lines = page_lines(&["(über) den «faulen» 4711 A4 Müller-Lüdenscheidt,"], 0.9);
    assert_eq!(long_words(&lines), [["über", "faulen"]]);
}
