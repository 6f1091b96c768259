//! Aligns a model's reading with the local one: the lines and positions are local; words are
//! confirmed, corrected, doubted or added.
//!
//! | | text | place | confidence | marked |
//! |---|---|---|---|---|
//! | both have it | the local reader's | its | at least 0.9 | no |
//! | other letters, the local reader was sure | the local reader's | its | its | no |
//! | other letters, it was not | the model's | its | 0.3 | yes |
//! | other digits | the local reader's | its | at most 0.3 | yes |
//! | the model alone | the model's | between its neighbours, or none | 0.35 | yes |
//! | the local reader alone | the local reader's | its | its | no |
//!
//! Local words of low confidence that the model reads differently are dropped, unless they have a
//! digit. The order is the local one. Not promised: that a marked word is on the page.

use std::collections::BTreeMap;

use super::match_words::{WordMatch, has_digit, match_words, word_key};
use super::recipe::ModelPage;
use docmill_core::model::{BoundingBox, TextLine, TextWord};

/// Minimum confidence at which a local word is kept unchanged.
const SURE: f32 = 0.8;
/// Minimum confidence of a local word that the model contradicts or omits; below, it is dropped.
const HARDLY: f32 = 0.5;
/// Minimum confidence of a word that both read.
const AGREED: f32 = 0.9;
/// Confidence of a word of the model alone; below the threshold of the rule `legible`.
const UNCONFIRMED: f32 = 0.35;

/// Both readings merged, and their agreement.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct AlignedPage {
    pub(super) lines: Vec<TextLine>,
    pub(super) agreement: ReadingAgreement,
    /// The local words that the model has as well.
    pub(super) confirmed: Vec<TextLine>,
}

/// Counts of words of two or more letters or digits, and of letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ReadingAgreement {
    /// Local words of high confidence.
    pub(super) sure: usize,
    /// Of these, words that the model has.
    pub(super) sure_found: usize,
    /// Words that the model has.
    pub(super) said: usize,
    /// Of these, words that the local reader has.
    pub(super) said_found: usize,
    /// Letters of words without a similar local word.
    pub(super) letters_alone: usize,
}

/// Position of a word of the local reader.
#[derive(Clone, Copy)]
struct WordPlace {
    line: usize,
    at: usize,
}

/// A word of the model, with the index of its line.
struct ModelWord<'a> {
    text: &'a str,
    line: usize,
}

/// Aligns `page` with the lines of the local reader.
pub(super) fn align_page(page: &ModelPage, local: &[TextLine]) -> AlignedPage {
    let model: Vec<ModelWord<'_>> = (0..)
        .zip(&page.lines)
        .flat_map(|(line, words)| words.iter().map(move |text| ModelWord { text, line }))
        .collect();
    let places: Vec<WordPlace> = (0..)
        .zip(local)
        .flat_map(|(line, words)| (0..words.words.len()).map(move |at| WordPlace { line, at }))
        .collect();
    let model_keys: Vec<String> = model.iter().map(|word| word_key(word.text)).collect();
    let all = local.iter().flat_map(|line| &line.words);
    let local_keys: Vec<String> = all.map(|word| word_key(&word.text)).collect();
    let found = match_words(&model_keys, &local_keys);
    let aligner = PageAligner { local, places, model, found };
    aligner.finish()
}

struct PageAligner<'a> {
    local: &'a [TextLine],
    places: Vec<WordPlace>,
    model: Vec<ModelWord<'a>>,
    found: Vec<WordMatch>,
}

/// Words of the model alone, by insertion point.
#[derive(Default)]
struct AddedWords {
    /// After the local word of this index, within its line.
    behind: BTreeMap<usize, Vec<TextWord>>,
    /// Before the local word of this index.
    before: BTreeMap<usize, Vec<TextWord>>,
    /// As lines after the local line of this index plus one; 0 is before the first.
    lines: BTreeMap<usize, Vec<TextLine>>,
    /// Local words that they replace.
    replaced: Vec<usize>,
}

impl PageAligner<'_> {
    fn finish(&self) -> AlignedPage {
        let mut by_local: Vec<Option<usize>> = vec![None; self.places.len()];
        for (at, found) in self.found.iter().enumerate() {
            if let Some(place) = found.local().and_then(|place| by_local.get_mut(place)) {
                *place = Some(at);
            }
        }
        let mut added = self.add_words();
        let mut lines: Vec<TextLine> = added.lines.remove(&0).unwrap_or_default();
        let mut confirmed = Vec::new();
        let mut number = 0;
        for (at, line) in self.local.iter().enumerate() {
            let mut words = Vec::with_capacity(line.words.len());
            let mut known = Vec::new();
            for word in &line.words {
                words.extend(added.before.remove(&number).unwrap_or_default());
                let beside = by_local.get(number).copied().flatten();
                match beside {
                    Some(beside) => {
                        words.push(self.joined_word(word, beside));
                        known.push(word.clone());
                    }
                    None if added.replaced.contains(&number) => {}
                    None => words.push(word.clone()),
                }
                words.extend(added.behind.remove(&number).unwrap_or_default());
                number += 1;
            }
            if !words.is_empty() {
                lines.push(TextLine { words });
            }
            if !known.is_empty() {
                confirmed.push(TextLine { words: known });
            }
            lines.extend(added.lines.remove(&(at + 1)).unwrap_or_default());
        }
        AlignedPage { lines, agreement: self.agreement(&by_local), confirmed }
    }

    /// A local word merged with the model's word at its position.
    fn joined_word(&self, word: &TextWord, beside: usize) -> TextWord {
        let said = self.model.get(beside).map_or("", |word| word.text);
        match self.found.get(beside) {
            Some(WordMatch::Same(_)) => {
                TextWord { confidence: word.confidence.max(AGREED), ..word.clone() }
            }
            Some(WordMatch::Differs(_)) => TextWord {
                confidence: word.confidence.min(TextWord::CONTRADICTED),
                unwitnessed: true,
                ..word.clone()
            },
            Some(WordMatch::Alike(_)) if word.confidence < SURE => TextWord {
                text: said.into(),
                confidence: TextWord::CONTRADICTED,
                unwitnessed: true,
                ..word.clone()
            },
            _ => word.clone(),
        }
    }

    /// Collects the words of the model alone by insertion point.
    fn add_words(&self) -> AddedWords {
        let mut added = AddedWords::default();
        let mut at = 0;
        // The last line of the local reader that a word of the model was found on.
        let mut last_line = 0;
        while at < self.model.len() {
            if let Some(place) = self.place_of(at) {
                last_line = place.line + 1;
                at += 1;
                continue;
            }
            let line = self.model.get(at).map(|word| word.line);
            let mut end = at + 1;
            while self.model.get(end).map(|word| word.line) == line && self.place_of(end).is_none()
            {
                end += 1;
            }
            self.add_run(at, end, last_line, &mut added);
            at = end;
        }
        added
    }

    fn place_of(&self, model: usize) -> Option<WordPlace> {
        self.places.get(self.found.get(model)?.local()?).copied()
    }

    /// The local reader's word for the model's word `at`, if that is on this line of the model.
    fn local_on_line(&self, at: usize, line: Option<usize>) -> Option<usize> {
        (self.model.get(at)?.line == line?).then_some(())?;
        self.found.get(at)?.local()
    }

    /// Adds the model's words from `start` to `end`, which are on one line and unmatched.
    fn add_run(&self, start: usize, end: usize, last_line: usize, added: &mut AddedWords) {
        let line = self.model.get(start).map(|word| word.line);
        let left = start.checked_sub(1).and_then(|before| self.local_on_line(before, line));
        let right = self.local_on_line(end, line);
        let between = match (left, right) {
            (Some(left), Some(right)) if left < right => self.gap_between(left, right, added),
            _ => None,
        };
        let texts: Vec<&str> =
            self.model.iter().take(end).skip(start).map(|word| word.text).collect();
        match (left, right, between) {
            (Some(left), _, Some(gap)) => {
                added.behind.entry(left).or_default().extend(spread_words(&texts, gap));
            }
            (Some(left), ..) => {
                let edge = self.edge_of(left, BoundingBox::right);
                added.behind.entry(left).or_default().extend(spread_words(&texts, edge));
            }
            (None, Some(right), _) => {
                let edge = self.edge_of(right, |own| own.x);
                added.before.entry(right).or_default().extend(spread_words(&texts, edge));
            }
            (None, None, _) => {
                let above = last_line.checked_sub(1).and_then(|at| self.local.get(at));
                let area = above.map(TextLine::bounding_box).unwrap_or_default();
                let place = BoundingBox { x: area.x, y: area.bottom(), w: 0.0, h: 0.0 };
                let words = spread_words(&texts, place);
                added.lines.entry(last_line).or_default().push(TextLine { words });
            }
        }
    }

    /// The gap between two words of one line, if it holds only unsure words of the local reader, which
    /// are dropped.
    fn gap_between(
        &self,
        left: usize,
        right: usize,
        added: &mut AddedWords,
    ) -> Option<BoundingBox> {
        let (first, last) = (self.places.get(left)?, self.places.get(right)?);
        (first.line == last.line).then_some(())?;
        let words = &self.local.get(first.line)?.words;
        let (from, to) = (words.get(first.at)?.bounding_box, words.get(last.at)?.bounding_box);
        for (number, word) in (left + 1..right).zip(words.get(first.at + 1..last.at)?) {
            if word.confidence < HARDLY && !has_digit(&word.text) {
                added.replaced.push(number);
            }
        }
        let w = (to.x - from.right()).max(0.0);
        Some(BoundingBox { x: from.right(), w, ..from })
    }

    /// A zero-width position at an edge of a word: beside it at an unknown distance.
    fn edge_of(&self, local: usize, edge: impl Fn(&BoundingBox) -> f32) -> BoundingBox {
        let place = self.places.get(local);
        let word = place.and_then(|place| self.local.get(place.line)?.words.get(place.at));
        let area = word.map(|word| word.bounding_box).unwrap_or_default();
        BoundingBox { x: edge(&area), w: 0.0, ..area }
    }

    fn agreement(&self, by_local: &[Option<usize>]) -> ReadingAgreement {
        let mut counts = ReadingAgreement::default();
        let all = self.local.iter().flat_map(|line| &line.words);
        for (word, beside) in all.zip(by_local) {
            if word.confidence >= SURE && counts_as_word(&word.text) {
                counts.sure += 1;
                let found = beside.and_then(|at| self.found.get(at));
                counts.sure_found += usize::from(matches!(found, Some(WordMatch::Same(_))));
            }
        }
        for (word, found) in self.model.iter().zip(&self.found) {
            if counts_as_word(word.text) {
                counts.said += 1;
                counts.said_found += usize::from(matches!(found, WordMatch::Same(_)));
            }
            if *found == WordMatch::Alone {
                counts.letters_alone += word.text.chars().count();
            }
        }
        counts
    }
}

fn counts_as_word(text: &str) -> bool {
    text.chars().filter(|c| c.is_alphanumeric()).nth(1).is_some()
}

/// Words side by side in a place, each as wide as it is long.
fn spread_words(texts: &[&str], place: BoundingBox) -> Vec<TextWord> {
    let lengths: Vec<f32> = texts.iter().map(|text| letters_of(text)).collect();
    let all: f32 = lengths.iter().sum::<f32>().max(1.0);
    let mut x = place.x;
    let words = texts.iter().zip(lengths).map(|(text, length)| {
        let w = place.w * length / all;
        let bounding_box = BoundingBox { x, w, ..place };
        x += w;
        let text = (*text).to_owned();
        TextWord { text: text.into(), bounding_box, confidence: UNCONFIRMED, unwitnessed: true }
    });
    words.collect()
}

fn letters_of(text: &str) -> f32 {
    f32::from(u16::try_from(text.chars().count()).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    type LineTexts = &'static [&'static str];

    /// Lines of words `text` or `text~confidence`, each ten pixels a letter.
    fn local(lines: &[&str]) -> Vec<TextLine> {
        let line = |(row, text): (u8, &&str)| {
            let mut x = 0.0;
            let words = text.split(' ').map(|word| {
                let (text, sure) = word.split_once('~').unwrap_or((word, "0.85"));
                let w = letters_of(text) * 10.0;
                let bounding_box = BoundingBox { x, y: f32::from(row) * 20.0, w, h: 12.0 };
                x += w + 10.0;
                let (text, confidence) = (text.to_owned(), sure.parse().unwrap());
                TextWord { text: text.into(), bounding_box, confidence, unwitnessed: false }
            });
            TextLine { words: words.collect() }
        };
        (0..).zip(lines).map(line).collect()
    }

    fn model(lines: &[&str]) -> ModelPage {
        let words = |line: &&str| line.split(' ').map(str::to_owned).collect();
        ModelPage { lines: lines.iter().map(words).collect(), turn: 0 }
    }

    /// Marked words with a star.
    fn shown(page: &AlignedPage) -> Vec<String> {
        let word =
            |word: &TextWord| format!("{}{}", word.text, if word.unwitnessed { "*" } else { "" });
        let line = |line: &TextLine| line.words.iter().map(word).collect::<Vec<_>>().join(" ");
        page.lines.iter().map(line).collect()
    }

    #[test]
    fn what_both_have_is_surer_and_what_one_has_is_kept_or_marked() {
        #[rustfmt::skip]
        let table: [(&str, LineTexts, LineTexts, LineTexts); 10] = [
            ("the same",                 &["Total 9,50"],         &["Total 9,50"],          &["Total 9,50"]),
            ("a word of the model's",    &["Total EUR"],          &["Total 9,50 EUR"],      &["Total 9,50* EUR"]),
            ("other digits",             &["Total 9,50 EUR"],     &["Total 9,60 EUR"],      &["Total 9,50* EUR"]),
            ("left out by the model",    &["IBAN DE12", "Total"], &["Total"],               &["IBAN DE12", "Total"]),
            ("surely other letters",     &["a Muller b"],         &["a Mueller b"],         &["a Muller b"]),
            ("hardly read",              &["a Mtiller~0.4 b"],    &["a Miiller b"],         &["a Miiller* b"]),
            ("dust between words",       &["Net x~0.2 sum"],     &["Net amount sum"],      &["Net amount* sum"]),
            ("a line of the model's",    &["Total"],              &["Total", "Paid 3"],     &["Total", "Paid* 3*"]),
            ("at the head",              &["Total"],              &["Paid 3", "Total"],     &["Paid* 3*", "Total"]),
            ("before the first word",    &["Total 9"],            &["Grand Total 9"],       &["Grand* Total 9"]),
        ];
        for (name, beside, said, expected) in table {
            assert_eq!(shown(&align_page(&model(said), &local(beside))), expected, "{name}");
        }
        let page = align_page(&model(&["Total EUR"]), &local(&["Total~0.6 x~0.95 EUR~0.95"]));
        let confidences: Vec<f32> =
            page.lines[0].words.iter().map(|word| word.confidence).collect();
        assert_eq!(confidences, [0.9, 0.95, 0.95]);
    }

    #[test]
    fn no_unmarked_digit_is_one_that_the_local_reader_has_not() {
        let beside = ["Invoice 2041 of 03.04.2026", "Net 1.000,00", "VAT 190,00 DE123456789"];
        let page = align_page(
            &model(&["Invoice 2047 of 03.04.2026 99", "Net 1.000,00 1.000,00", "7 VAT 190.00"]),
            &local(&beside),
        );
        let said: Vec<&str> = beside.iter().flat_map(|line| line.split(' ')).collect();
        let words = page.lines.iter().flat_map(|line| &line.words);
        for word in words.filter(|word| has_digit(&word.text) && !word.unwitnessed) {
            assert!(said.contains(&word.text.as_str()), "{}", word.text);
        }
        let marked = shown(&page).join(" ");
        for word in ["2041*", "99*", "1.000,00*", "7*", "190,00*"] {
            assert!(marked.contains(word), "{word}: {marked}");
        }
        assert!(marked.contains("03.04.2026 "), "{marked}");
    }

    #[test]
    fn an_added_word_stands_between_its_neighbours_or_has_no_width() {
        let page = align_page(&model(&["Total 9,50 EUR now"]), &local(&["Total xxxx~0.1 EUR"]));
        let words = &page.lines[0].words;
        assert_eq!(words.len(), 4, "{words:?}");
        let (gap, end) = (words[1].bounding_box, words[3].bounding_box);
        assert!(gap.x >= 50.0 && gap.right() <= 110.0 && gap.w > 30.0, "{gap:?}");
        assert_eq!((end.w, end.x), (0.0, words[2].bounding_box.right()));
    }

    #[test]
    fn agreement_counts_sure_words_and_the_letters_of_nobody_else() {
        let page =
            align_page(&model(&["Total 9,50 or somewhat"]), &local(&["Total 9,50 EUR faint~0.2"]));
        let expected = ReadingAgreement {
            sure: 3,
            sure_found: 2,
            said: 4,
            said_found: 2,
            letters_alone: 2 + 8,
        };
        assert_eq!(page.agreement, expected);
    }
}
