//! Lines in another language than their page was read with.
//!
//! Tesseract reads a page in one language. Of text in another one it loses the letters that only
//! that language has, with no less confidence. Such lines are recognised by words that are in no
//! list of the page's language. If they are a good part of the page, lines with an unlisted word
//! and their neighbours are read by the robust reader too, in the regions that Tesseract found: it
//! reads all of its languages at once.

use super::{OcrPass, PictureReader, score_reading};
use crate::page_error::PageError;
use crate::reading::merge_ocr::{ReadingOrigins, merge_lines};
use docmill_core::model::{BoundingBox, TextLine};

/// Shorter words occur in many languages.
const MIN_WORD_CHARS: usize = 4;
/// A line is in another language if this many of its words are not in the page's language, ...
const MIN_UNKNOWN_WORDS: usize = 2;
/// ... and this share of its words: neighbouring languages have many words in common.
const MIN_UNKNOWN_SHARE: f32 = 0.25;
/// A page is in several languages if this share of its words is in such lines. Of the first pages
/// of 118 invoices eleven have as much, most of them German, whose compounds are in no list.
const MIN_OTHER_SHARE: f32 = 0.2;

/// How many words of a line are long enough to look up, and how many of these are not in the
/// language.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ListedWords {
    checked: usize,
    unknown: usize,
}

impl ListedWords {
    /// Whether these are words of another language.
    fn is_other(self) -> bool {
        self.unknown >= MIN_UNKNOWN_WORDS && share(self.unknown, self.checked) >= MIN_UNKNOWN_SHARE
    }
}

impl PictureReader<'_> {
    /// Adds to the reading of a page the robust reader's readings of its lines in other languages.
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

/// The words of each line that consist of letters and are long enough, without punctuation around.
fn long_words(lines: &[TextLine]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for line in lines {
        let mut words = Vec::new();
        for word in &line.words {
            let core = word.text.trim_matches(|c: char| !c.is_alphanumeric());
            if core.chars().all(char::is_alphabetic) && core.chars().count() >= MIN_WORD_CHARS {
                words.push(core.to_owned());
            }
        }
        found.push(words);
    }
    found
}

/// `known` has one entry for each of all words.
fn count_words(words: &[Vec<String>], known: &[bool]) -> Vec<ListedWords> {
    let mut known = known.iter();
    let mut counts = Vec::new();
    for line in words {
        let unknown = known.by_ref().take(line.len()).filter(|known| !**known).count();
        counts.push(ListedWords { checked: line.len(), unknown });
    }
    counts
}

/// Indexes of the lines with an unlisted word and of their neighbours, if the page is in several
/// languages. Neighbours, because all words of a line or two may be in the page's language by
/// chance.
fn lines_to_reread(lines: &[ListedWords]) -> Vec<usize> {
    let all: usize = lines.iter().map(|line| line.checked).sum();
    let other: usize = lines.iter().filter(|line| line.is_other()).map(|line| line.checked).sum();
    if other == 0 || share(other, all) < MIN_OTHER_SHARE {
        return Vec::new();
    }
    let mut chosen = Vec::new();
    for at in 0..lines.len() {
        let near = lines.get(at.saturating_sub(1)..(at + 2).min(lines.len())).unwrap_or_default();
        if near.iter().any(|line| line.unknown > 0) {
            chosen.push(at);
        }
    }
    chosen
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
