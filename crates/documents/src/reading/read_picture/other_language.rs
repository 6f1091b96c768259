//! Lines in another language than their page was read with.
//!
//! Tesseract reads a page in one language, and what stands on it in another one without the letters
//! that only that one has, and as surely: the page is read well enough by its confidence. What tells
//! such lines is that their words are none of the page's language. So where a good part of a page is
//! such lines, those with a word that nobody knows, and their neighbours, are read by the robust reader
//! as well, which reads all of its languages at once. Where they stand Tesseract has found already.

use super::{OcrPass, PictureReader, score_reading};
use crate::page_error::PageError;
use crate::reading::merge_ocr::{ReadingOrigins, merge_lines};
use docmill_core::model::{BoundingBox, TextLine};

/// Letters of a word at least: shorter ones are words of many languages.
const SHORTEST: usize = 4;
/// A line is of another language if this many of its words are none of the page's language, ...
const UNKNOWN_WORDS: usize = 2;
/// ... and this share of its words: neighbours have many words in common.
const UNKNOWN_SHARE: f32 = 0.25;
/// A page is in several languages if this share of its words stands in such lines. Of the first pages
/// of 118 invoices eleven have as much, most of them German, whose compounds no list has.
const OTHER_SHARE: f32 = 0.2;

/// What the words of a line are: how many are long enough to be told, and how many of those are none
/// of the language.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ToldWords {
    told: usize,
    unknown: usize,
}

impl ToldWords {
    /// Whether these are words of another language.
    fn is_other(self) -> bool {
        self.unknown >= UNKNOWN_WORDS && share(self.unknown, self.told) >= UNKNOWN_SHARE
    }
}

impl PictureReader<'_> {
    /// The reading of a page, with what the robust reader makes of its lines in other languages than it
    /// was read with.
    pub(super) fn reread_other_language<'a>(
        &mut self,
        mut reading: OcrPass<'a>,
    ) -> Result<OcrPass<'a>, PageError> {
        if reading.robust || !self.has_robust_reader() || !self.has_time() {
            return Ok(reading);
        }
        let languages = self.recipe.languages.clone();
        let Some(robust) = self.recogniser.robust_reader() else { return Ok(reading) };
        let words = long_words(&reading.lines);
        let flat: Vec<&str> = words.iter().flatten().map(String::as_str).collect();
        let Some(known) = robust.known_words(&flat, &reading.languages)? else {
            return Ok(reading);
        };
        let chosen = lines_to_reread(&count_words(&words, &known));
        let regions: Vec<BoundingBox> =
            chosen.iter().filter_map(|at| line_region(reading.lines.get(*at)?)).collect();
        let again = robust.recognise_regions(&reading.candidate.picture, &regions, &languages)?;
        let read: Vec<TextLine> = again.into_iter().flatten().collect();
        if read.is_empty() {
            return Ok(reading);
        }
        let origins = ReadingOrigins::TwoReaders {
            base: reading.legibility.confidence,
            other: score_reading(&reading.text, &read, true).confidence,
        };
        reading.lines = merge_lines(reading.lines, &read, 1.0, origins);
        reading.legibility = score_reading(&reading.text, &reading.lines, false);
        Ok(reading)
    }
}

/// Of each line the words of letters that are long enough to be told, without what stands around them.
fn long_words(lines: &[TextLine]) -> Vec<Vec<String>> {
    let core = |text: &str| text.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let is_told =
        |word: &String| word.chars().all(char::is_alphabetic) && word.chars().count() >= SHORTEST;
    let of_line = |line: &TextLine| {
        line.words.iter().map(|word| core(&word.text)).filter(is_told).collect::<Vec<_>>()
    };
    lines.iter().map(of_line).collect()
}

/// `known` has an answer for each of all words.
fn count_words(words: &[Vec<String>], known: &[bool]) -> Vec<ToldWords> {
    let mut known = known.iter();
    let count = |line: &Vec<String>| ToldWords {
        told: line.len(),
        unknown: known.by_ref().take(line.len()).filter(|known| !**known).count(),
    };
    words.iter().map(count).collect()
}

/// The numbers of the lines with a word that nobody knows and of those beside them, if the page is in
/// several languages: of a line or two all words may happen to be words of the page's language.
fn lines_to_reread(lines: &[ToldWords]) -> Vec<usize> {
    let all: usize = lines.iter().map(|line| line.told).sum();
    let other: usize = lines.iter().filter(|line| line.is_other()).map(|line| line.told).sum();
    if other == 0 || share(other, all) < OTHER_SHARE {
        return Vec::new();
    }
    let is_near = |at: &usize| {
        let near = lines.iter().skip(at.saturating_sub(1)).take(if *at == 0 { 2 } else { 3 });
        near.into_iter().any(|line| line.unknown > 0)
    };
    (0..lines.len()).filter(is_near).collect()
}

fn line_region(line: &TextLine) -> Option<BoundingBox> {
    line.words.iter().map(|word| word.bounding_box).reduce(BoundingBox::union)
}

#[expect(clippy::cast_precision_loss, reason = "words of a page")]
fn share(part: usize, whole: usize) -> f32 {
    part as f32 / whole.max(1) as f32
}

#[cfg(test)]
mod tests;
