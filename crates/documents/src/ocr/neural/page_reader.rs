//! A page from its pixels to its lines: orientation, positions, text.

use std::sync::Arc;

use parking_lot::Mutex;

use super::detector::LineDetector;
use super::line_box::LineBox;
use super::line_reader::{LineReader, LineReading};
use super::network;
use super::spelling::Lexicon;
use super::weights::WeightFolder;
use crate::image::opencv_mat::{self, OpenCvError, PixelMatrix};
use crate::language::LanguageEvidence;
use crate::ocr::tesseract::{LanguageWords, WordList};
use crate::page::PageRaster;
use crate::reading::recognise::{PageRecogniser, TurnedPage, TurnedReading};
use crate::repair;
use docmill_core::fault::Result;
use docmill_core::model::TextLine;

/// Lines that are read to determine a page's orientation.
const SAMPLE_LINES: usize = 6;
/// A sample of this confidence lies upright and is not read upside down.
const UPRIGHT_CONFIDENCE: f32 = 0.75;
/// Length of all lines of a page in heights of a line: a dense page has some thousand. More of them
/// would take longer than a page may, and are noise.
const MAX_TEXT_LENGTH: f32 = 8000.0;
/// A line of lower confidence is no text.
const MIN_LINE_CONFIDENCE: f32 = 0.2;

/// Both networks, for one reader at a time.
struct ReaderNetworks {
    detector: LineDetector,
    reader: LineReader,
}

impl ReaderNetworks {
    fn load(folder: &WeightFolder) -> Result<Self> {
        let runtime = network::load_runtime(&folder.library())?;
        let files = folder.load()?;
        Ok(Self {
            detector: LineDetector::load(runtime, &files.detector)?,
            reader: LineReader::load(runtime, &files.quick, &files.thorough)?,
        })
    }
}

/// The networks of as many readers as read at the same time.
pub(super) struct LoadedNetworks {
    folder: WeightFolder,
    /// Those that no reader has.
    idle: Mutex<Vec<Arc<Mutex<ReaderNetworks>>>>,
}

impl LoadedNetworks {
    /// For so many readers.
    ///
    /// # Errors
    /// The files are none that can be used.
    pub(super) fn load(folder: WeightFolder, readers: usize) -> Result<Self> {
        let loaded = Self { folder, idle: Mutex::default() };
        for _reader in 0..readers {
            loaded.give_back(loaded.load_one()?);
        }
        Ok(loaded)
    }

    fn load_one(&self) -> Result<Arc<Mutex<ReaderNetworks>>> {
        Ok(Arc::new(Mutex::new(ReaderNetworks::load(&self.folder)?)))
    }

    /// Networks that no reader has, loaded now where none are left.
    fn take(&self) -> Result<Arc<Mutex<ReaderNetworks>>> {
        let idle = self.idle.lock().pop();
        idle.map_or_else(|| self.load_one(), Ok)
    }

    fn give_back(&self, networks: Arc<Mutex<ReaderNetworks>>) {
        self.idle.lock().push(networks);
    }
}

/// A line that was found on a page.
struct FoundLine {
    area: LineBox,
    /// Its reading, if it was read to determine the page's orientation.
    read: Option<LineReading>,
}

/// Reads pages, one at a time.
pub(super) struct NeuralReader {
    all: Arc<LoadedNetworks>,
    /// Its own until it is dropped.
    networks: Arc<Mutex<ReaderNetworks>>,
    languages: Vec<String>,
    words: Option<Arc<LanguageWords>>,
}

impl NeuralReader {
    /// One more reader; its networks are others' again once it is dropped. Unsure readings are
    /// checked against `words`, if there are any.
    ///
    /// # Errors
    /// No networks are left, and no more can be loaded.
    pub(super) fn new(all: Arc<LoadedNetworks>, words: Option<Arc<LanguageWords>>) -> Result<Self> {
        let networks = all.take()?;
        Ok(Self { all, networks, languages: Vec::new(), words })
    }

    fn find_lines(&self, page: &impl PixelMatrix) -> Result<Vec<FoundLine>> {
        let boxes = self.networks.lock().detector.find_lines(page)?;
        Ok(boxes.into_iter().map(|area| FoundLine { area, read: None }).collect())
    }

    fn read_lines(
        &self,
        page: &impl PixelMatrix,
        found: Vec<FoundLine>,
        languages: &[String],
    ) -> Result<Vec<TextLine>> {
        let mut lines = Vec::with_capacity(found.len());
        for FoundLine { area, read } in affordable_lines(found) {
            let read = match read {
                Some(read) => read,
                None => self.read_box(page, &area)?,
            };
            if read.confidence >= MIN_LINE_CONFIDENCE {
                lines.push(read);
            }
        }
        self.correct_spelling(&mut lines, languages)?;
        Ok(lines.into_iter().map(|read| read.line).collect())
    }

    /// Checks the readings against the words of `languages`, or if there are none of the detected
    /// language.
    fn correct_spelling(&self, lines: &mut [LineReading], languages: &[String]) -> Result<()> {
        let Some(words) = &self.words else { return Ok(()) };
        let known: Vec<String> = match languages {
            [] => {
                let read = LanguageEvidence::from_lines(lines.iter().map(|read| &read.line));
                let heard = read.leading_language(words.languages());
                heard.map(str::to_owned).into_iter().collect()
            }
            given => listed_languages(words, given),
        };
        let lexicon = ListedWords(read_lists(words, &known)?);
        for line in lines {
            line.correct_spelling(&lexicon);
        }
        Ok(())
    }

    /// Reads a line; a vertical one in both directions, of which the more confident reading counts.
    fn read_box(&self, page: &impl PixelMatrix, line: &LineBox) -> Result<LineReading> {
        if !line.is_upright() {
            return self.read_line(page, line);
        }
        let down = self.read_line(page, &line.turned(1))?;
        let up = self.read_line(page, &line.turned(3))?;
        Ok(if up.confidence > down.confidence { up } else { down })
    }

    fn read_line(&self, page: &impl PixelMatrix, line: &LineBox) -> Result<LineReading> {
        self.networks.lock().reader.read_line(page, line)
    }

    /// Reads each line, turned by `turns` quarter turns.
    fn read_turned(
        &self,
        page: &impl PixelMatrix,
        lines: &[LineBox],
        turns: usize,
    ) -> Result<Vec<LineReading>> {
        lines.iter().map(|line| self.read_line(page, &line.turned(turns))).collect()
    }

    /// Quarter turns clockwise that put upright a page with these lines on it. If it lies upright, the
    /// lines that were read to learn it are kept as they were read.
    fn find_turns(&self, page: &impl PixelMatrix, found: &mut [FoundLine]) -> Result<u8> {
        let (upright, level): (Vec<&FoundLine>, Vec<&FoundLine>) =
            found.iter().partition(|it| it.area.is_upright());
        let stands = total_length(&upright) > total_length(&level);
        let mut longest: Vec<&mut FoundLine> =
            found.iter_mut().filter(|it| it.area.is_upright() == stands).collect();
        longest.sort_by(|one, other| other.area.longer_side().total_cmp(&one.area.longer_side()));
        longest.truncate(SAMPLE_LINES);
        let areas: Vec<LineBox> = longest.iter().map(|it| it.area).collect();
        let (as_it_lies, other_way) = if stands { (1, 3) } else { (0, 2) };
        let first = self.read_turned(page, &areas, as_it_lies)?;
        let sure = mean_confidence(&first);
        let is_turned = sure < UPRIGHT_CONFIDENCE
            && mean_confidence(&self.read_turned(page, &areas, other_way)?) > sure;
        if !stands && !is_turned {
            for (line, read) in longest.into_iter().zip(first) {
                line.read = Some(read);
            }
        }
        Ok(match (stands, is_turned) {
            (false, false) => 0,
            // Read downwards: the page has to be turned back against the clock.
            (true, false) => 3,
            (false, true) => 2,
            (true, true) => 1,
        })
    }
}

impl Drop for NeuralReader {
    fn drop(&mut self) {
        self.all.give_back(Arc::clone(&self.networks));
    }
}

impl PageRecogniser for NeuralReader {
    fn languages(&self) -> &[String] {
        &self.languages
    }

    fn recognise(&mut self, page: &PageRaster, languages: &[String]) -> Result<Vec<TextLine>> {
        let page = opencv_mat::view_raster(page).map_err(OpenCvError::from)?;
        let found = self.find_lines(&page)?;
        self.read_lines(&page, found, languages)
    }

    fn recognise_turned(
        &mut self,
        page: &PageRaster,
        languages: &[String],
    ) -> Result<TurnedReading> {
        let view = opencv_mat::view_raster(page).map_err(OpenCvError::from)?;
        let mut found = self.find_lines(&view)?;
        let quarter_turns = self.find_turns(&view, &mut found)?;
        if quarter_turns == 0 {
            return Ok(TurnedReading::of_upright(self.read_lines(&view, found, languages)?));
        }
        let upright = repair::turn_page(page, quarter_turns)?;
        let lines = self.recognise(&upright, languages)?;
        Ok(TurnedReading { turned: Some(TurnedPage { quarter_turns, upright }), lines })
    }

    fn known_words(&self, words: &[&str], languages: &[String]) -> Result<Vec<bool>> {
        let Some(listed) = &self.words else { return Ok(vec![false; words.len()]) };
        let lexicon = ListedWords(read_lists(listed, &listed_languages(listed, languages))?);
        Ok(words.iter().map(|word| lexicon.has_compound(word)).collect())
    }

    fn is_robust(&self) -> bool {
        true
    }

    fn robust_reader(&mut self) -> Option<&mut dyn PageRecogniser> {
        Some(self)
    }
}

/// The words of the languages of a page.
struct ListedWords(Vec<Arc<WordList>>);

impl Lexicon for ListedWords {
    fn has_word(&self, word: &str) -> bool {
        self.0.iter().any(|list| list.knows(word))
    }

    fn has_compound(&self, word: &str) -> bool {
        self.0.iter().any(|list| list.knows_parts(word))
    }
}

/// The members of `languages` with word lists.
fn listed_languages(words: &LanguageWords, languages: &[String]) -> Vec<String> {
    let listed = words.languages();
    languages.iter().filter(|language| listed.contains(language)).cloned().collect()
}

/// The words of each of `languages`.
fn read_lists(words: &LanguageWords, languages: &[String]) -> Result<Vec<Arc<WordList>>> {
    languages.iter().map(|language| words.of_language(language)).collect()
}

fn total_length(lines: &[&FoundLine]) -> f32 {
    lines.iter().map(|it| it.area.longer_side()).sum()
}

fn mean_confidence(lines: &[LineReading]) -> f32 {
    let sum: f32 = lines.iter().map(|read| read.confidence).sum();
    sum / f32::from(u16::try_from(lines.len().max(1)).unwrap_or(u16::MAX))
}

/// The lines to read: all, unless together they are longer than any page of text; then the first
/// ones that fit the budget.
fn affordable_lines(found: Vec<FoundLine>) -> impl Iterator<Item = FoundLine> {
    let mut left = MAX_TEXT_LENGTH;
    found.into_iter().filter(move |line| {
        let length = (line.area.longer_side() / line.area.shorter_side().max(1.0)).max(1.0);
        let fits = length <= left;
        left -= if fits { length } else { 0.0 };
        fits
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use opencv::core::{CV_8U, Mat, Point, Scalar};
    use opencv::imgproc;

    use super::*;

    /// The short line of [`printed_page`].
    const TOTAL: LineBox =
        LineBox { corners: [(57.0, 285.0), (145.0, 285.0), (145.0, 314.0), (57.0, 314.0)] };

    #[test]
    fn lines_are_read_until_they_are_longer_than_any_page_of_text() {
        let line = |height: f32| LineBox {
            corners: [(0.0, 0.0), (1000.0, 0.0), (1000.0, height), (0.0, height)],
        };
        let count = |area: LineBox, count: usize| {
            affordable_lines((0..count).map(|_| FoundLine { area, read: None }).collect()).count()
        };
        assert_eq!(count(line(25.0), 150), 150);
        assert_eq!(count(line(10.0), 3000), 80);
        assert_eq!(count(line(25.0).turned(1), 3000), 200);
    }

    /// A page of twelve lines of print, a line of little length among them.
    fn printed_page() -> Mat {
        let mut page =
            Mat::new_rows_cols_with_default(1000, 760, CV_8U, Scalar::all(255.0)).unwrap();
        for row in 0..12 {
            let text = if row == 3 { "Total" } else { "Invoice of the parts that were sold" };
            let at = Point::new(60, 80 * row + 70);
            let (font, ink) = (imgproc::FONT_HERSHEY_DUPLEX, Scalar::all(0.0));
            imgproc::put_text(&mut page, text, at, font, 1.0, ink, 2, imgproc::LINE_AA, false)
                .unwrap();
        }
        page
    }

    #[test]
    fn lines_that_told_which_way_up_a_page_lies_are_not_read_again() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/ocr-models");
        let folder = WeightFolder::find(&folder).unwrap().expect("scripts/models.sh makes it");
        let networks = LoadedNetworks::load(folder, 1).unwrap();
        let reader = NeuralReader::new(Arc::new(networks), None).unwrap();
        let page = printed_page();
        let mut found = reader.find_lines(&page).unwrap();
        assert_eq!(reader.find_turns(&page, &mut found).unwrap(), 0);
        let kept: Vec<_> = found.iter().filter(|line| line.read.is_some()).collect();
        assert_eq!(kept.len(), SAMPLE_LINES);
        for line in kept {
            let again = reader.read_box(&page, &line.area).unwrap();
            assert_eq!(line.read.as_ref().map(|read| &read.line), Some(&again.line));
        }
        // A reading that is impossible shows that the kept one is taken.
        let mut marked = found.remove(0);
        marked.read = Some(reader.read_box(&page, &TOTAL).unwrap());
        let lines = reader.read_lines(&page, vec![marked], &[]).unwrap();
        assert_eq!(lines[0].words[0].text.as_str(), "Total");

        let mut over = Mat::default();
        opencv::core::rotate(&page, &mut over, opencv::core::ROTATE_180).unwrap();
        let mut found = reader.find_lines(&over).unwrap();
        assert_eq!(reader.find_turns(&over, &mut found).unwrap(), 2);
        assert!(found.iter().all(|line| line.read.is_none()), "they were read upside down");
    }
}
