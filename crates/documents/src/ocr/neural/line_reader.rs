//! The reading of a line.

use opencv::core::Mat;
use opencv::prelude::*;
use ort::environment::Environment;

use super::ctc::{CharacterClasses, StripWord};
use super::line_box::LineBox;
use super::line_strip::cut_strip;
use super::network::{NetworkInput, NeuralNetwork};
use super::pixels::{self, LevelScale};
use super::spelling::{LetterRival, Lexicon, WordSpelling, spell_word};
use super::word_box::StripInk;
use crate::image::opencv_mat::{OpenCvError, PixelMatrix};
use docmill_core::fault::{Error, Result};
use docmill_core::model::{BoundingBox, TextLine, TextWord};

/// Height at which the network sees lines.
const HEIGHT: i32 = 48;
/// Widest strip: longer lines are squeezed, so that memory has an end.
const MAX_STRIP_PIXELS: i32 = 3200;
/// Input scaling of the network's training.
const SCALE: LevelScale = LevelScale { mean: 0.5, deviation: 0.5 };
/// Four in five words are right that were corrected, however surely they were read before: names that
/// no list has are among the others.
const CORRECTED: f32 = 0.8;
/// Of what is unsure of words that the language has this part is left, where they were read at least
/// as surely as that: of those that are read at .3 to .8 nineteen in twenty are right.
const DOUBT_OF_KNOWN: f32 = 0.2;
const HALFWAY_READ: f32 = 0.3;
/// Widths are multiples of what the network divides by.
const STRIDE: usize = 8;

/// Reads lines.
pub(super) struct LineReader {
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
    /// Of each word the letters that it might have instead of unsure ones.
    rivals: Vec<Vec<LetterRival>>,
}

impl LineReader {
    /// From the bytes of the network's file and the names of its classes.
    ///
    /// # Errors
    /// They are none that can be used.
    pub(super) fn load(runtime: &Environment, bytes: &[u8], classes: &str) -> Result<Self> {
        let network = NeuralNetwork::load(runtime, "recogniser", bytes)?;
        Ok(Self { network, classes: CharacterClasses::from_lines(classes) })
    }

    /// Reads the text in `line` on `page`.
    ///
    /// # Errors
    /// No memory; the network and the names of its classes do not fit.
    pub(super) fn read_line(
        &mut self,
        page: &impl PixelMatrix,
        line: &LineBox,
    ) -> Result<LineReading> {
        let strip = cut_strip(page, line, HEIGHT, MAX_STRIP_PIXELS).map_err(OpenCvError::from)?;
        let input = strip_input(&strip)?;
        let output = self.network.run(&input)?;
        if output.shape.last() != Some(&self.classes.count()) {
            return Err(Error::internal("the recogniser's weights and characters do not fit"));
        }
        let columns = output.values.len() / self.classes.count();
        let words = self.classes.decode(&output.values);
        let ink = StripInk::measure(&strip).map_err(OpenCvError::from)?;
        // The last columns are those of the filling.
        let of_strip = padded_width(&strip);
        let per_column = f32::from(u16::try_from(of_strip).unwrap_or(u16::MAX))
            / f32::from(u16::try_from(columns.max(1)).unwrap_or(u16::MAX));
        let boxes = ink.word_boxes(&words, per_column);
        let placed = words.into_iter().zip(boxes);
        let words = placed.map(|(word, area)| page_word(word, area.on_page(line)));
        Ok(LineReading::from_words(words))
    }
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

fn padded_width(strip: &Mat) -> usize {
    pixels::side(strip.cols()).next_multiple_of(STRIDE)
}

/// The strip as the network takes it, filled up with grey on the right.
fn strip_input(strip: &Mat) -> Result<NetworkInput> {
    let (width, height) = (pixels::side(strip.cols()), pixels::side(strip.rows()));
    let padded = padded_width(strip);
    let grey = strip.data_bytes().map_err(OpenCvError::from)?;
    let mut plane = vec![0.0; padded * height];
    for (row, levels) in plane.chunks_exact_mut(padded).zip(grey.chunks_exact(width)) {
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
