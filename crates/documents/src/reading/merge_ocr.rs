//! Merges two OCR readings of a page: of a region that both have, the more confident words; of any
//! other, those of either.
//!
//! Small or worn print is read better now unchanged, now enlarged, now by the other reader, and
//! within one page that changes from word to word. So the better of two readings of a receipt still
//! lacks words that the other has. Voting among recognisers word by word is an old remedy (Lopresti
//! and Zhou, "Using consensus sequence voting to correct OCR errors", CVIU 67, 1997); with two
//! voters their confidence decides, and the dictionary between a long word and a misreading of it.
//! It works on boxes, so both readings must be of the same page up to its scale. One may have as
//! one word what the other splits in two, so all words of a region are compared together.

use std::collections::{BTreeMap, HashSet};

use docmill_core::model::{BoundingBox, TextLine, TextWord};

/// Two words are of one place if they share this much of the narrower one's width and of the lower
/// one's height.
const MIN_SHARED_SHARE: f32 = 0.5;
/// How much surer the other reading of one reader must be of a place to replace it: confidences of
/// two pictures are not quite alike.
const MIN_CONFIDENCE_LEAD: f32 = 0.1;
/// Confidence of a word that only one reading has: specks look like words too.
const MIN_LONE_CONFIDENCE: f32 = 0.5;
/// Minimum letters of a word that no misreading turns into another word of the language.
pub(crate) const MIN_LISTED_LETTERS: usize = 8;
/// Maximum letters in which a misreading differs from a listed word, at one position: `rn` for `m`.
const MAX_MISREAD_LETTERS: usize = 3;

/// Readers of two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ReadingOrigins<'a> {
    /// Of one reader, which read two pictures.
    OneReader,
    /// Of two readers, whose mistakes are different ones. How sure they are of all that they read,
    /// 0 to 1: a reader that is lost on a page is so in words that it is sure of, too.
    TwoReaders {
        /// The reader of the reading that is kept.
        base: f32,
        /// The other one.
        other: f32,
        /// Long words of the page's languages among those that were read.
        listed: &'a HashSet<String>,
    },
}

impl ReadingOrigins<'_> {
    /// Whether the other reading's words of a region replace those of the base, by their
    /// confidence.
    fn prefers_other(self, base_sure: f32, other_sure: f32) -> bool {
        match self {
            Self::OneReader => other_sure >= base_sure + MIN_CONFIDENCE_LEAD,
            Self::TwoReaders { base, other, .. } => {
                other_sure * other.powi(2) > base_sure * base.powi(2)
            }
        }
    }
}

/// Words of two readings in one region: indexes in their lists.
#[derive(Debug, Default)]
pub(crate) struct SharedRegion {
    /// Those of the first.
    pub base: Vec<usize>,
    /// Those of the second.
    pub other: Vec<usize>,
}

/// `base` with the words that `other` read more surely or alone. Boxes of `other` are multiplied by
/// `scale` to be boxes of `base`.
pub(crate) fn merge_lines(
    base: Vec<TextLine>,
    other: &[TextLine],
    scale: f32,
    origins: ReadingOrigins<'_>,
) -> Vec<TextLine> {
    let mut others: Vec<TextLine> = other.iter().map(|line| scale_line(line, scale)).collect();
    let own: Vec<&TextWord> = base.iter().flat_map(|line| &line.words).collect();
    let theirs: Vec<&TextWord> = others.iter().flat_map(|line| &line.words).collect();
    let mut chosen: Vec<Vec<TextWord>> = own.iter().map(|word| vec![(*word).clone()]).collect();
    let mut is_new = vec![true; theirs.len()];
    for place in shared_regions(&own, &theirs) {
        for at in &place.other {
            if let Some(new) = is_new.get_mut(*at) {
                *new = false;
            }
        }
        let words = choose_words(&pick(&own, &place.base), &pick(&theirs, &place.other), origins);
        let mut words = Some(words);
        for at in &place.base {
            // All chosen words take the position of the region's first word.
            if let Some(here) = chosen.get_mut(*at) {
                *here = words.take().unwrap_or_default();
            }
        }
    }
    let mut chosen = chosen.into_iter();
    let mut merged: Vec<TextLine> = base
        .iter()
        .map(|line| TextLine { words: chosen.by_ref().take(line.words.len()).flatten().collect() })
        .collect();
    let mut is_new = is_new.into_iter();
    for line in &mut others {
        line.words.retain(|word| is_new.next().unwrap_or(false) && is_reliable(word));
    }
    merged.append(&mut others);
    merged.retain(|line| !line.words.is_empty());
    merged
}

fn is_reliable(word: &TextWord) -> bool {
    word.confidence >= MIN_LONE_CONFIDENCE && word.text.chars().any(char::is_alphanumeric)
}

fn pick<'a>(words: &[&'a TextWord], places: &[usize]) -> Vec<&'a TextWord> {
    let mut picked: Vec<&TextWord> =
        places.iter().filter_map(|at| words.get(*at).copied()).collect();
    picked.sort_by(|one, other| one.bounding_box.x.total_cmp(&other.bounding_box.x));
    picked
}

/// Chooses the words of a region. A word that two readers read alike gets a higher confidence than
/// either gave it.
fn choose_words(
    base: &[&TextWord],
    other: &[&TextWord],
    origins: ReadingOrigins<'_>,
) -> Vec<TextWord> {
    let (base_sure, other_sure) = (mean_confidence(base), mean_confidence(other));
    let takes_other = listed_other(base, other, origins)
        .unwrap_or_else(|| origins.prefers_other(base_sure, other_sure));
    let kept = if takes_other { other } else { base };
    let mut kept: Vec<TextWord> = kept.iter().map(|word| (*word).clone()).collect();
    if let (ReadingOrigins::TwoReaders { .. }, [one], [another], [word]) =
        (origins, base, other, kept.as_mut_slice())
        && one.text == another.text
    {
        word.confidence = 1.0 - (1.0 - one.confidence) * (1.0 - another.confidence);
    }
    kept
}

/// Of two readings of one word, one listed and the other its misreading: whether the other reader's
/// is the listed one.
fn listed_other(
    base: &[&TextWord],
    other: &[&TextWord],
    origins: ReadingOrigins<'_>,
) -> Option<bool> {
    let (ReadingOrigins::TwoReaders { listed, .. }, [base], [other]) = (origins, base, other)
    else {
        return None;
    };
    let [base, other] = [base, other].map(|word| letters_of(&word.text));
    let is_listed = listed.contains(other);
    (is_listed != listed.contains(base) && is_misreading(base, other)).then_some(is_listed)
}

/// A word without the punctuation around it.
pub(crate) fn letters_of(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Whether two words differ at one position, by at most [`MAX_MISREAD_LETTERS`].
fn is_misreading(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let alike = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let behind = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    one.len().max(other.len()).saturating_sub(alike + behind) <= MAX_MISREAD_LETTERS
}

/// Longer words count more.
fn mean_confidence(words: &[&TextWord]) -> f32 {
    let (mut sum, mut letters) = (0.0, 0.0);
    for word in words {
        let count = f32::from(u16::try_from(word.text.chars().count()).unwrap_or(u16::MAX));
        sum += word.confidence * count;
        letters += count;
    }
    sum / f32::max(letters, 1.0)
}

/// The places of which both have something.
pub(crate) fn shared_regions(base: &[&TextWord], other: &[&TextWord]) -> Vec<SharedRegion> {
    let mut down: Vec<usize> = (0..other.len()).collect();
    down.sort_by(|one, next| top_of(other, *one).total_cmp(&top_of(other, *next)));
    let tallest = other.iter().map(|word| word.bounding_box.h).fold(0.0, f32::max);
    // Each word's number, or that of a word before it at the same place; those of `other` follow.
    let mut before: Vec<usize> = (0..base.len() + other.len()).collect();
    for (at, word) in base.iter().enumerate() {
        let place = &word.bounding_box;
        let from = down.partition_point(|at| top_of(other, *at) < place.y - tallest);
        for candidate in down.iter().skip(from) {
            if top_of(other, *candidate) > place.bottom() {
                break;
            }
            if other.get(*candidate).is_some_and(|it| is_same_region(place, &it.bounding_box)) {
                join_regions(&mut before, at, base.len() + candidate);
            }
        }
    }
    let mut places: BTreeMap<usize, SharedRegion> = BTreeMap::new();
    for at in 0..before.len() {
        let place = places.entry(first_of_region(&before, at)).or_default();
        match at.checked_sub(base.len()) {
            None => place.base.push(at),
            Some(at) => place.other.push(at),
        }
    }
    places.into_values().filter(|it| !it.base.is_empty() && !it.other.is_empty()).collect()
}

fn top_of(words: &[&TextWord], at: usize) -> f32 {
    words.get(at).map_or(0.0, |word| word.bounding_box.y)
}

fn join_regions(before: &mut [usize], one: usize, other: usize) {
    let (one, other) = (first_of_region(before, one), first_of_region(before, other));
    if let Some(link) = before.get_mut(one.max(other)) {
        *link = one.min(other);
    }
}

fn first_of_region(before: &[usize], mut at: usize) -> usize {
    while let Some(earlier) = before.get(at).filter(|earlier| **earlier < at) {
        at = *earlier;
    }
    at
}

fn is_same_region(one: &BoundingBox, other: &BoundingBox) -> bool {
    let across = one.right().min(other.right()) - one.x.max(other.x);
    let down = one.bottom().min(other.bottom()) - one.y.max(other.y);
    across > 0.0
        && down > 0.0
        && across >= MIN_SHARED_SHARE * one.w.min(other.w)
        && down >= MIN_SHARED_SHARE * one.h.min(other.h)
}

fn scale_line(line: &TextLine, scale: f32) -> TextLine {
    let mut line = line.clone();
    for word in &mut line.words {
        word.bounding_box = word.bounding_box.scaled(scale, scale);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[(&str, f32, f32)], scale: f32) -> TextLine {
        let word = |(text, x, confidence): &(&str, f32, f32)| {
            let bounding_box =
                BoundingBox { x: x * scale, y: 10.0 * scale, w: 40.0 * scale, h: 12.0 * scale };
            TextWord {
                text: (*text).into(),
                bounding_box,
                confidence: *confidence,
                unwitnessed: false,
            }
        };
        TextLine { words: words.iter().map(word).collect() }
    }

    fn read(base: &[(&str, f32, f32)], other: &[(&str, f32, f32)]) -> Vec<String> {
        let (base, other) = (vec![line(base, 2.0)], [line(other, 1.0)]);
        merge_lines(base, &other, 2.0, ReadingOrigins::OneReader)
            .iter()
            .map(TextLine::text)
            .collect()
    }

    #[test]
    fn of_two_readings_of_a_word_the_surer_one_stays_and_words_of_only_one_are_added() {
        #[rustfmt::skip]
        let table: [(&str, &[_], &[_], &[&str]); 6] = [
            ("the other is surer",          &[("T0tal", 0.0, 0.4)], &[("Total", 1.0, 0.9)],  &["Total"]),
            ("the other is hardly surer",   &[("Total", 0.0, 0.8)], &[("T0tal", 1.0, 0.85)], &["Total"]),
            ("only the other has it",       &[("Total", 0.0, 0.9)], &[("9.90", 60.0, 0.6)],  &["Total", "9.90"]),
            ("the other is not sure",       &[("Total", 0.0, 0.9)], &[("9.90", 60.0, 0.4)],  &["Total"]),
            ("the other saw specks",        &[("Total", 0.0, 0.9)], &[(".:-", 60.0, 0.9)],   &["Total"]),
            ("half of it is taken already", &[("Total", 0.0, 0.9)], &[("tal", 19.0, 0.95)],  &["Total"]),
        ];
        for (name, base, other, expected) in table {
            assert_eq!(read(base, other), expected, "{name}");
        }
    }

    #[test]
    fn a_long_word_of_the_language_stays_against_a_surer_misreading_of_it() {
        let listed = HashSet::from(["Rechnungsnummer".to_owned(), "Lieferschein".to_owned()]);
        let origins = ReadingOrigins::TwoReaders { base: 0.9, other: 0.6, listed: &listed };
        #[rustfmt::skip]
        let table = [
            ("two letters for one",      "Rechnungsnurnmer", "Rechnungsnummer:", "Rechnungsnummer:"),
            ("another letter",           "Rechmungsnummer",  "Rechnungsnummer",  "Rechnungsnummer"),
            ("the base is listed",       "Rechnungsnummer",  "Rechnungsnunmer",  "Rechnungsnummer"),
            ("differs at two places",    "Rechmungsnurnmer", "Rechnungsnummer",  "Rechmungsnurnmer"),
            ("both are listed",          "Lieferschein",     "Rechnungsnummer",  "Lieferschein"),
            ("neither is",               "Musterhaus",       "Musternaus",       "Musterhaus"),
        ];
        for (name, base, other, expected) in table {
            let [base, other] = [(base, 0.9), (other, 0.5)]
                .map(|(text, confidence)| line(&[(text, 0.0, confidence)], 1.0));
            let merged = merge_lines(vec![base], &[other], 1.0, origins);
            assert_eq!(merged[0].text(), expected, "{name}");
        }
    }

    #[test]
    fn of_two_readers_the_slightly_more_confident_reading_of_a_word_is_kept() {
        let (base, other) = ([("T0tal", 0.0, 0.8)], [line(&[("Total", 1.0, 0.85)], 1.0)]);
        let read = |origins| {
            let merged = merge_lines(vec![line(&base, 2.0)], &other, 2.0, origins);
            merged.iter().map(TextLine::text).collect::<Vec<_>>()
        };
        let listed = HashSet::new();
        let readers = |base, other| ReadingOrigins::TwoReaders { base, other, listed: &listed };
        assert_eq!(read(ReadingOrigins::OneReader), ["T0tal"]);
        assert_eq!(read(readers(0.9, 0.9)), ["Total"]);
        assert_eq!(read(readers(0.9, 0.8)), ["T0tal"], "the other is lost on this page");
        assert_eq!(read(readers(0.8, 0.9)), ["Total"]);
    }

    #[test]
    fn words_that_one_reader_has_as_one_and_the_other_as_two_are_weighed_together() {
        let wide = |text: &str, confidence| {
            let mut one = line(&[(text, 0.0, confidence)], 1.0);
            one.words[0].bounding_box.w = 90.0;
            one
        };
        let two =
            |confidence| line(&[("tax", 0.0, confidence), ("invoice", 48.0, confidence)], 1.0);
        let listed = HashSet::new();
        let origins = ReadingOrigins::TwoReaders { base: 0.9, other: 0.9, listed: &listed };
        #[rustfmt::skip]
        let table = [
            ("the two are surer",               wide("taxinvoice", 0.7), two(0.9),                "tax invoice"),
            ("the one is surer",                wide("taxinvoice", 0.9), two(0.7),                "taxinvoice"),
            ("the two are the kept ones",       two(0.9),                wide("taxinvoice", 0.7), "tax invoice"),
            ("the two are kept and less sure",  two(0.7),                wide("taxinvoice", 0.9), "taxinvoice"),
        ];
        for (name, base, other, expected) in table {
            let merged = merge_lines(vec![base], &[other], 1.0, origins);
            let text: Vec<String> = merged.iter().map(TextLine::text).collect();
            assert_eq!(text, [expected], "{name}");
        }
    }

    #[test]
    fn agreement_of_two_readers_raises_a_words_confidence_and_of_one_reader_it_does_not() {
        let read = |origins| {
            let (base, other) =
                (line(&[("4711", 0.0, 0.8)], 1.0), line(&[("4711", 0.0, 0.7)], 1.0));
            merge_lines(vec![base], &[other], 1.0, origins)[0].words[0].confidence
        };
        let listed = HashSet::new();
        let both = read(ReadingOrigins::TwoReaders { base: 0.9, other: 0.9, listed: &listed });
        assert!((both - 0.94).abs() < 0.001, "{both}");
        assert!((read(ReadingOrigins::OneReader) - 0.8).abs() < 0.001);
    }

    #[test]
    fn boxes_of_added_words_are_in_the_picture_of_the_kept_reading() {
        let origins = ReadingOrigins::OneReader;
        let found = merge_lines(Vec::new(), &[line(&[("9.90", 60.0, 0.9)], 1.0)], 2.0, origins);
        let place = found.first().unwrap().words.first().unwrap().bounding_box;
        assert_eq!(place, BoundingBox { x: 120.0, y: 20.0, w: 80.0, h: 24.0 });
    }
}
