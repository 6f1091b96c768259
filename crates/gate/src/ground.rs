//! Where a value stands on the document: numbers and dates in any notation, texts folded.
//!
//! A reader's own word on where it read a value is not used: the value itself is searched for. What
//! stands only on lines that speak to a model ([`super::instructions`]) does not count as printed.
//! Nothing here knows what a value means: a total that is printed as a subtotal is found as well.

use std::collections::{BTreeSet, HashMap, HashSet};

use rust_decimal::Decimal;
use serde_json::Value;
use time::Date;

use super::PageRegion;
use super::subject::json_decimal;
use super::work_budget::WorkBudget;
use docmill_core::model::{BoundingBox, PageText, TextLine, TextWord, Transcript};
use docmill_formats::notation::currency::{self, CurrencyMark};
use docmill_formats::notation::number::DecimalSeparator;
use docmill_formats::notation::{date, fold_text, number};

/// Bytes of text that are searched for the values of one extraction: ten thousand values in a text
/// of four hundred kilobytes. What is searched for beyond it is not found, which the rules say.
const MAX_SEARCHED_BYTES: u64 = 4 << 30;

/// Most places that are kept of one value; a number printed more often says no more.
const MAX_PLACES: usize = 50;

/// Everything the transcript says, in the forms values are compared in.
pub(super) struct PrintedValues {
    /// By absolute value: signs are often printed apart or as words.
    numbers: HashMap<Decimal, Vec<PageRegion>>,
    /// Numbers with a percent sign.
    pub(super) percentages: HashSet<Decimal>,
    dates: HashMap<Date, Vec<PageRegion>>,
    words: HashMap<String, PageRegion>,
    /// All folded text without spaces.
    text: String,
    /// Where in `text` each word, or piece of one between marks, begins, ascending.
    starts: Vec<(usize, PageRegion)>,
    currencies: HashSet<CurrencyMark>,
    lines: Vec<PrintedLine>,
    /// Bytes of `text` that values may still be searched in.
    pub(super) searches: WorkBudget,
}

impl Default for PrintedValues {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            percentages: HashSet::new(),
            dates: HashMap::new(),
            words: HashMap::new(),
            text: String::new(),
            starts: Vec::new(),
            currencies: HashSet::new(),
            lines: Vec::new(),
            searches: WorkBudget::new(MAX_SEARCHED_BYTES),
        }
    }
}

/// A line as far as rules need it.
struct PrintedLine {
    /// A space around each word.
    folded: String,
    numbers: HashSet<Decimal>,
    percentages: HashSet<Decimal>,
}

impl PrintedLine {
    /// Whether one of these words, folded, stands on it whole.
    fn names_one_of(&self, words: &[String]) -> bool {
        words.iter().any(|word| self.folded.contains(&format!(" {word} ")))
    }
}

impl PrintedValues {
    /// Takes in every line that `counts`.
    pub(super) fn new(transcript: &Transcript, counts: impl Fn(&PageText, usize) -> bool) -> Self {
        let mut ground = Self::default();
        for page in &transcript.pages {
            for (_, line) in page.lines.iter().enumerate().filter(|(at, _)| counts(page, *at)) {
                ground.add_line(page, line);
            }
        }
        ground
    }

    fn add_line(&mut self, page: &PageText, line: &TextLine) {
        let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
        let text = words.join(" ");
        let place = |range: std::ops::Range<usize>| {
            bounding_place(page.number, line.words.get(range).unwrap_or_default())
        };
        let (numbers, percentages) = self.add_numbers(&words, place);
        // Bytes of the joined text, back to words: where each word ends, ascending.
        let ends: Vec<usize> = words
            .iter()
            .scan(0, |end, word| {
                *end += word.len() + 1;
                Some(*end)
            })
            .collect();
        // `Invoice no. 7      November 30, 2022`: what a gap parts is no part of the day.
        let pairs = line.words.iter().zip(line.words.iter().skip(1)).zip(&ends).enumerate();
        let apart =
            pairs.filter(|(_, ((one, next), _))| is_parted(one, next)).map(|(at, (_, end))| {
                let last = ends.get(at + DATE_WORDS).or(ends.last()).map_or(*end, |end| end - 1);
                *end..last
            });
        for found in
            std::iter::once(0..text.len()).chain(apart).flat_map(|part| dates_in(&text, part))
        {
            let before = ends.partition_point(|end| *end <= found.range.start);
            let within = text.get(found.range.clone()).unwrap_or_default().matches(' ').count();
            for date in [found.day_first, found.month_first].into_iter().flatten() {
                add_place(&mut self.dates, date, place(before..before + within + 1));
            }
        }
        let mut folded = String::new();
        for (at, word) in words.iter().enumerate() {
            let own = fold_text(word);
            if own.is_empty() {
                continue;
            }
            for part in own.split(' ') {
                self.starts.push((self.text.len(), place(at..at + 1)));
                self.text.push_str(part);
                let known = self.words.entry(part.to_owned()).or_insert_with(|| place(at..at + 1));
                if known.unwitnessed {
                    *known = place(at..at + 1);
                }
            }
            folded.push(' ');
            folded.push_str(&own);
        }
        self.currencies.extend(words.iter().filter_map(|word| lone_currency(word)));
        folded.push(' ');
        self.lines.push(PrintedLine { folded, numbers, percentages });
    }

    fn add_numbers(
        &mut self,
        words: &[&str],
        place: impl Fn(std::ops::Range<usize>) -> PageRegion,
    ) -> (HashSet<Decimal>, HashSet<Decimal>) {
        let (mut own, mut percentages) = (HashMap::new(), HashSet::new());
        let has_digit = |word: &&str| word.contains(|c: char| c.is_ascii_digit());
        if !words.iter().any(has_digit) {
            return Default::default();
        }
        let has_separator = |word: &&str| word.contains([',', '.']);
        // Both notations: which one holds is the reader's judgement, not ours to repeat. What has no
        // separator is the same in all of them.
        for mark in [None, Some(DecimalSeparator::Comma), Some(DecimalSeparator::Point)] {
            let may_differ = |word: &&str| mark.is_none() || has_separator(word);
            if !words.iter().any(&may_differ) {
                break;
            }
            let mut take = |amount: number::FoundNumber, first: usize| {
                let value = amount.value.abs().normalize();
                if amount.percent {
                    percentages.insert(value);
                }
                self.currencies.extend(amount.mark);
                own.entry(value).or_insert(first + amount.words.start..first + amount.words.end);
            };
            number::find_numbers(words, mark).into_iter().for_each(|amount| take(amount, 0));
            let apart = |word: &&str| has_digit(word) && may_differ(word);
            for (at, word) in words.iter().enumerate().filter(|(_, word)| apart(word)) {
                let single = number::find_numbers(&[word.trim_matches(['(', ')'])], mark);
                single.into_iter().for_each(|amount| take(amount, at));
            }
        }
        // `106 680`, printed in groups without cents: whole where its column has no other words.
        for (at, count) in (0..words.len()).flat_map(|at| [(at, 2), (at, 3)]) {
            let group = words.get(at..at + count).and_then(number::grouped_whole);
            if let Some(amount) = group {
                own.entry(amount.value.normalize()).or_insert(at..at + count);
            }
        }
        for (value, range) in &own {
            add_place(&mut self.numbers, *value, place(range.clone()));
        }
        self.percentages.extend(&percentages);
        (own.into_keys().collect(), percentages)
    }

    /// Whether any number is printed.
    pub(super) fn prints_numbers(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// Whether any date is printed.
    pub(super) fn prints_dates(&self) -> bool {
        !self.dates.is_empty()
    }

    /// Whether the value stands anywhere. Null and zero stand everywhere.
    pub(super) fn contains_value(&self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Number(_) if json_decimal(value).is_some_and(|value| value.is_zero()) => true,
            _ => !self.value_places(value).is_empty(),
        }
    }

    /// Everywhere the value stands, as far as kept.
    pub(super) fn value_places(&self, value: &Value) -> Vec<PageRegion> {
        match value {
            Value::Number(_) => json_decimal(value).map(|value| self.number_places(value)),
            Value::String(text) => match date::parse_iso(text) {
                Some(date) => self.dates.get(&date).cloned(),
                None => self.text_place(text).map(|place| vec![place]),
            },
            _ => None,
        }
        .unwrap_or_default()
    }

    /// Where a number is printed, signs aside.
    pub(super) fn number_places(&self, value: Decimal) -> Vec<PageRegion> {
        self.numbers.get(&value.abs().normalize()).cloned().unwrap_or_default()
    }

    fn text_place(&self, text: &str) -> Option<PageRegion> {
        let folded = fold_text(text);
        let compact: String = folded.chars().filter(|c| *c != ' ').collect();
        if compact.is_empty() {
            return None;
        }
        // A number that is but a piece of a printed one was cut; a name may be glued to another.
        let numbered = compact.contains(|c: char| c.is_ascii_digit());
        let whole = |start: usize| {
            let begins = |at: usize| self.starts.binary_search_by_key(&at, |(at, _)| *at).is_ok();
            let end = start + compact.len();
            !numbered || (begins(start) && (end == self.text.len() || begins(end)))
        };
        let place = |start: usize| {
            let first = self.starts.partition_point(|(at, _)| *at <= start).checked_sub(1)?;
            let end = start + compact.len();
            let own = self.starts.iter().skip(first).take_while(|(at, _)| *at < end);
            own.map(|(_, place)| *place).reduce(join_places)
        };
        if self.searches.spend(self.text.len()) {
            let matches = self.text.match_indices(&compact).map(|(start, _)| start);
            let mut places = matches.filter(|start| whole(*start)).filter_map(place);
            // The first, unless only a later one was seen by two.
            let first = places.next();
            let better = first
                .filter(|first| first.unwitnessed)
                .and_then(|_| places.take(MAX_PLACES).find(|other| !other.unwitnessed));
            if let Some(found) = better.or(first) {
                return Some(found);
            }
        }
        let places: Option<Vec<PageRegion>> =
            folded.split(' ').map(|word| self.words.get(word).copied()).collect();
        places?.into_iter().reduce(join_places)
    }

    /// Whether at least `share` of the text's words stand somewhere, and all that have a digit.
    pub(super) fn holds_words(&self, text: &str, share: f64) -> bool {
        let folded = fold_text(text);
        let words: Vec<&str> = folded.split(' ').filter(|word| !word.is_empty()).collect();
        // Words may be printed apart or together: `D-82216`, `82216`.
        let within = |word: &str| {
            word.len() > 3 && self.searches.spend(self.text.len()) && self.text.contains(word)
        };
        let found = |word: &&&str| self.words.contains_key(**word) || within(word);
        let numbered = |word: &&&str| word.contains(|c: char| c.is_ascii_digit());
        let count = words.iter().filter(found).count();
        words.iter().filter(numbered).all(|word| found(&word))
            && count as f64 >= share * words.len() as f64
    }

    /// Whether the currency is printed by its code or by a sign that may mean it, or none is at all. Where
    /// a code says which of the currencies of a sign is meant, the sign means no other one.
    pub(super) fn shows_currency(&self, code: &str) -> bool {
        let is_settled = |mark: &CurrencyMark| {
            self.currencies.iter().any(|other| match other {
                CurrencyMark::Code(own) => *own != code && mark.may_mean(own),
                CurrencyMark::Sign(_) => false,
            })
        };
        self.currencies.is_empty()
            || self.currencies.iter().any(|mark| match mark {
                CurrencyMark::Code(own) => *own == code,
                CurrencyMark::Sign(_) => mark.may_mean(code) && !is_settled(mark),
            })
    }

    /// Numbers that stand on a line with one of these words, folded.
    pub(super) fn numbers_beside(&self, words: &[String]) -> impl Iterator<Item = Decimal> {
        let labelled = move |line: &&PrintedLine| {
            !line.numbers.is_empty() && words.iter().any(|word| line.folded.contains(word))
        };
        self.lines.iter().filter(labelled).flat_map(|line| line.numbers.iter().copied())
    }

    /// Numbers that stand on a line with one of these words, folded and whole.
    pub(super) fn numbers_named(&self, words: &[String]) -> impl Iterator<Item = Decimal> {
        let named = move |line: &&PrintedLine| !line.numbers.is_empty() && line.names_one_of(words);
        self.lines.iter().filter(named).flat_map(|line| line.numbers.iter().copied())
    }

    /// Percentages that stand on a line with one of these words, folded and whole.
    pub(super) fn percentages_beside(&self, words: &[String]) -> BTreeSet<Decimal> {
        let named = |line: &&PrintedLine| !line.percentages.is_empty() && line.names_one_of(words);
        let lines = self.lines.iter().filter(named);
        lines.flat_map(|line| line.percentages.iter().copied()).collect()
    }

    /// Whether the number stands on a line with one of these words, folded.
    pub(super) fn printed_beside(&self, value: Decimal, words: &[String]) -> bool {
        let value = value.abs().normalize();
        let labelled = |line: &&PrintedLine| words.iter().any(|word| line.folded.contains(word));
        let mut lines = self.lines.iter().filter(|line| line.numbers.contains(&value));
        lines.any(|line| labelled(&line))
    }
}

/// Lines of height between words that belong to different columns.
const PARTED: f32 = 2.0;

/// Whether a wide gap parts two words of a line.
pub(super) fn is_parted(one: &TextWord, next: &TextWord) -> bool {
    next.bounding_box.x - one.bounding_box.right() > PARTED * one.bounding_box.h
}

/// More words than any form of a date has (`2024 m. kovo 7 d.`): how far one that begins behind a gap
/// is looked for. To search the rest of the line from each of its gaps takes the square of its length.
const DATE_WORDS: usize = 8;

/// The dates of a part of a text, each where it stands in the whole.
fn dates_in(text: &str, part: std::ops::Range<usize>) -> impl Iterator<Item = date::FoundDate> {
    let from = part.start;
    let found = date::find_dates(text.get(part).unwrap_or_default()).into_iter();
    found.map(move |one| {
        let range = one.range.start + from..one.range.end + from;
        date::FoundDate { range, ..one }
    })
}

/// The currency that a word stands for, or carries beside a number. One that is also another word
/// counts beside an amount, with which it is read.
fn lone_currency(word: &str) -> Option<CurrencyMark> {
    let plain = word.trim_matches(|c: char| c.is_ascii_digit() || ",.-:;()'".contains(c));
    CurrencyMark::from_word(plain).filter(|_| !currency::is_also_word(plain))
}

fn bounding_place(page: u32, words: &[TextWord]) -> PageRegion {
    let boxes = words.iter().map(|word| word.bounding_box);
    let confidence = words.iter().map(|word| word.confidence).fold(1.0, f32::min);
    let bounding_box = boxes.reduce(BoundingBox::union).unwrap_or_default();
    let unwitnessed = words.iter().any(|word| word.unwitnessed);
    PageRegion { page, bounding_box, confidence, unwitnessed }
}

/// One box around both, if they are on one page; else the first.
fn join_places(a: PageRegion, b: PageRegion) -> PageRegion {
    let confidence = a.confidence.min(b.confidence);
    let bounding_box =
        if a.page == b.page { a.bounding_box.union(b.bounding_box) } else { a.bounding_box };
    let unwitnessed = a.unwitnessed || b.unwitnessed;
    PageRegion { bounding_box, confidence, unwitnessed, ..a }
}

fn add_place<K: Eq + std::hash::Hash>(
    places: &mut HashMap<K, Vec<PageRegion>>,
    key: K,
    place: PageRegion,
) {
    let own = places.entry(key).or_default();
    if own.len() < MAX_PLACES && !own.contains(&place) {
        own.push(place);
    }
}
