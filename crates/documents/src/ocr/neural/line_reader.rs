//! The reading of a line, piece by piece: by a small network, and by a larger one at five times the
//! cost if a word of the piece is unsure. Pieces bound the memory of a run, and a doubtful word costs
//! its piece alone.

use std::ops::Range;

use opencv::core::Mat;
use opencv::prelude::*;
use ort::environment::Environment;

use super::ctc::{CharacterClasses, StripWord};
use super::line_box::LineBox;
use super::line_strip::cut_strip;
use super::network::{NetworkInput, NeuralNetwork};
use super::pixels::{self, LevelScale};
use super::spelling::{LetterRival, Lexicon, WordSpelling, spell_word};
use super::weights::RecogniserFiles;
use super::word_box::StripInk;
use crate::image::opencv_mat::{OpenCvError, PixelMatrix};
use docmill_core::fault::{Error, Result};
use docmill_core::model::{BoundingBox, TextLine, TextWord};

/// Height of the network's input, in pixels.
const HEIGHT: i32 = 48;
/// Widest strip: longer lines are squeezed, to bound memory.
const MAX_STRIP_PIXELS: i32 = 3200;
/// Widest piece of a strip that a network reads at once.
const MAX_PIECE_PIXELS: usize = 800;
/// Input scaling of the network's training.
const SCALE: LevelScale = LevelScale { mean: 0.5, deviation: 0.5 };
/// Confidence of a corrected word: four in five are right, at any earlier confidence. The others
/// include names that no list has.
const CORRECTED: f32 = 0.8;
/// Remaining share of the doubt about a listed word read with at least the confidence below:
/// nineteen in twenty of those read at .3 to .8 are right.
const DOUBT_OF_KNOWN: f32 = 0.2;
const HALFWAY_READ: f32 = 0.3;
/// Minimum confidence of each word for the small network's reading of a piece to be kept; ...
const MIN_QUICK_CONFIDENCE: f32 = 0.85;
/// ... of a word with a digit, whose errors no dictionary detects.
const MIN_QUICK_DIGITS: f32 = 0.98;
/// Widths are multiples of the network's stride.
const STRIDE: usize = 8;

/// Reads lines.
pub(super) struct LineReader {
    quick: LineNetwork,
    thorough: LineNetwork,
}

/// One network that reads lines.
struct LineNetwork {
    network: NeuralNetwork,
    classes: CharacterClasses,
}

/// A line as it was read.
#[derive(Debug, Clone)]
pub(super) struct LineReading {
    /// The words, boxes in pixels of the page.
    pub line: TextLine,
    /// Mean confidence of the words, longer ones counting more; 0 without any.
    pub confidence: f32,
    /// For each word, the alternatives to its uncertain letters.
    rivals: Vec<Vec<LetterRival>>,
}

impl LineReader {
    /// Loads both networks from their files.
    ///
    /// # Errors
    /// The files cannot be used.
    pub(super) fn load(
        runtime: &Environment,
        quick: &RecogniserFiles,
        thorough: &RecogniserFiles,
    ) -> Result<Self> {
        Ok(Self {
            quick: LineNetwork::load(runtime, "quick recogniser", quick)?,
            thorough: LineNetwork::load(runtime, "recogniser", thorough)?,
        })
    }

    /// Reads the text in `line` on `page`.
    ///
    /// # Errors
    /// Out of memory, or the number of classes differs from the network's output.
    pub(super) fn read_line(
        &mut self,
        page: &impl PixelMatrix,
        line: &LineBox,
    ) -> Result<LineReading> {
        let strip = cut_strip(page, line, HEIGHT, MAX_STRIP_PIXELS).map_err(OpenCvError::from)?;
        let ink = StripInk::measure(&strip).map_err(OpenCvError::from)?;
        let (mut output, mut of_strip) = (StripOutput::default(), 0);
        for piece in ink.pieces(MAX_PIECE_PIXELS, STRIDE) {
            // The last columns are padding.
            of_strip += padded_width(&piece);
            output.append(self.read_piece(&strip, &piece)?);
        }
        let per_column = f32::from(u16::try_from(of_strip).unwrap_or(u16::MAX))
            / f32::from(u16::try_from(output.columns.max(1)).unwrap_or(u16::MAX));
        let boxes = ink.word_boxes(&output.words, per_column);
        let placed = output.words.into_iter().zip(boxes);
        let words = placed.map(|(word, area)| page_word(word, area.on_page(line)));
        Ok(LineReading::from_words(words))
    }

    fn read_piece(&mut self, strip: &Mat, piece: &Range<usize>) -> Result<StripOutput> {
        let input = strip_input(strip, piece)?;
        let output = self.quick.read(&input)?;
        if is_surely_read(&output.words) { Ok(output) } else { self.thorough.read(&input) }
    }
}

/// The words of a strip.
#[derive(Default)]
struct StripOutput {
    words: Vec<StripWord>,
    /// Columns that the strip has for the network.
    columns: usize,
}

impl StripOutput {
    /// Appends the words of a piece.
    fn append(&mut self, piece: Self) {
        for mut word in piece.words {
            word.columns = word.columns.start + self.columns..word.columns.end + self.columns;
            self.words.push(word);
        }
        self.columns += piece.columns;
    }
}

impl LineNetwork {
    fn load(runtime: &Environment, name: &'static str, files: &RecogniserFiles) -> Result<Self> {
        let network = NeuralNetwork::load(runtime, name, &files.weights)?;
        Ok(Self { network, classes: CharacterClasses::from_lines(&files.characters) })
    }

    fn read(&mut self, input: &NetworkInput) -> Result<StripOutput> {
        let output = self.network.run(input)?;
        if output.shape.last() != Some(&self.classes.count()) {
            return Err(Error::internal("a recogniser's weights and characters do not fit"));
        }
        let columns = output.values.len() / self.classes.count();
        Ok(StripOutput { words: self.classes.decode(&output.values), columns })
    }
}

/// Whether the small network's reading of a piece is kept.
fn is_surely_read(words: &[StripWord]) -> bool {
    !words.is_empty() && words.iter().all(|word| word.confidence >= needed_confidence(&word.text))
}

fn needed_confidence(word: &str) -> f32 {
    let has_digit = word.contains(|c: char| c.is_ascii_digit());
    if has_digit { MIN_QUICK_DIGITS } else { MIN_QUICK_CONFIDENCE }
}

impl LineReading {
    fn from_words(words: impl Iterator<Item = (TextWord, Vec<LetterRival>)>) -> Self {
        let (words, rivals): (Vec<_>, Vec<_>) = words.unzip();
        let (mut sum, mut letters) = (0.0, 0.0);
        for word in &words {
            let count = f32::from(u16::try_from(word.text.chars().count()).unwrap_or(u16::MAX));
            sum += word.confidence * count;
            letters += count;
        }
        Self { line: TextLine { words }, confidence: sum / f32::max(letters, 1.0), rivals }
    }

    /// Makes words of the language of those that are none, where letters that are nearly as likely do;
    /// those that are words are surer.
    pub(super) fn correct_spelling(&mut self, lexicon: &dyn Lexicon) {
        for (word, rivals) in self.line.words.iter_mut().zip(&self.rivals) {
            match spell_word(&word.text, rivals, lexicon) {
                WordSpelling::Corrected(corrected) => {
                    word.text = corrected.into();
                    word.confidence = CORRECTED;
                }
                WordSpelling::Twin(word_of_language) => word.text = word_of_language.into(),
                WordSpelling::Known if word.confidence >= HALFWAY_READ => {
                    word.confidence = 1.0 - DOUBT_OF_KNOWN * (1.0 - word.confidence);
                }
                WordSpelling::Known | WordSpelling::Unknown => {}
            }
        }
    }
}

fn page_word(word: StripWord, bounding_box: BoundingBox) -> (TextWord, Vec<LetterRival>) {
    let StripWord { text, confidence, rivals, .. } = word;
    (TextWord { text: text.into(), bounding_box, confidence, unwitnessed: false }, rivals)
}

fn padded_width(piece: &Range<usize>) -> usize {
    piece.len().next_multiple_of(STRIDE)
}

/// A piece of the strip as network input, padded with grey on the right.
fn strip_input(strip: &Mat, piece: &Range<usize>) -> Result<NetworkInput> {
    let (width, height) = (pixels::side(strip.cols()), pixels::side(strip.rows()));
    let padded = padded_width(piece);
    let grey = strip.data_bytes().map_err(OpenCvError::from)?;
    let mut plane = vec![0.0; padded * height];
    for (row, levels) in plane.chunks_exact_mut(padded).zip(grey.chunks_exact(width)) {
        let levels = levels.get(piece.clone()).unwrap_or_default();
        for (value, level) in row.iter_mut().zip(levels) {
            *value = SCALE.value(*level);
        }
    }
    let mut values = Vec::with_capacity(3 * plane.len());
    for _colour in 0..3 {
        values.extend_from_slice(&plane);
    }
    Ok(NetworkInput { shape: [1, 3, height, padded], values })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OneWord;

    impl Lexicon for OneWord {
        fn has_word(&self, word: &str) -> bool {
            word == "Total"
        }

        fn has_compound(&self, word: &str) -> bool {
            self.has_word(word)
        }
    }

    /// The corrected line of one word that is read as `text` with this confidence, with a `t` as an
    /// equally likely third letter.
    fn spelt(text: &str, confidence: f32) -> (String, f32) {
        let bounding_box = BoundingBox::default();
        let word = TextWord { text: text.into(), bounding_box, confidence, unwitnessed: false };
        let rivals = vec![LetterRival { at: 2, letter: 't', odds: 1.0 }];
        let mut line = LineReading::from_words([(word, rivals)].into_iter());
        line.correct_spelling(&OneWord);
        let word = line.line.words.remove(0);
        (word.text.to_string(), word.confidence)
    }

    #[test]
    fn a_quick_reading_is_kept_if_all_of_its_words_are_sure_and_digits_are_nearly_certain() {
        #[rustfmt::skip]
        let table: [(&str, &[_], bool); 6] = [
            ("sure words",               &[("Total", 0.9), ("due", 0.86)],   true),
            ("an unsure word",           &[("Total", 0.9), ("due", 0.8)],    false),
            ("a digit as sure as words", &[("Total", 0.99), ("9.90", 0.95)], false),
            ("a nearly certain digit",   &[("Total", 0.9), ("9.90", 0.99)],  true),
            ("a digit among letters",    &[("T0tal", 0.95)],                 false),
            ("nothing was read",         &[],                                false),
        ];
        for (name, words, expected) in table {
            let word = |(text, confidence): &(&str, f32)| StripWord {
                text: (*text).to_owned(),
                columns: 0..1,
                confidence: *confidence,
                rivals: Vec::new(),
            };
            let words: Vec<StripWord> = words.iter().map(word).collect();
            assert_eq!(is_surely_read(&words), expected, "{name}");
        }
    }

    #[test]
    fn words_of_the_language_are_surer_and_what_becomes_one_is_fairly_sure() {
        #[rustfmt::skip]
        let table = [
            ("corrected",                ("Tolal", 0.4),  ("Total", 0.8)),
            ("corrected, and was surer", ("Tolal", 0.9),  ("Total", 0.8)),
            ("known",                    ("Total", 0.5),  ("Total", 0.9)),
            ("known, and hardly read",   ("Total", 0.25), ("Total", 0.25)),
            ("no word",                  ("Xolal", 0.5),  ("Xolal", 0.5)),
        ];
        for (name, (text, confidence), expected) in table {
            let (found, sure) = spelt(text, confidence);
            assert_eq!(found, expected.0, "{name}");
            assert!((sure - expected.1).abs() < 0.001, "{name}: {sure}");
        }
    }
}
