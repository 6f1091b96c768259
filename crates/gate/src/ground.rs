//! The printed occurrences of a value: numbers and dates in any notation, texts folded.
//!
//! The reader's own claim of where it read a value is not used: the value itself is searched for.
//! Text that is only on lines addressed to a model ([`super::instructions`]) does not count as printed.
//! The meaning of a value plays no part: a total that is printed as a subtotal is found as well.

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
/// of four hundred kilobytes. Values beyond it count as not found.
const MAX_SEARCHED_BYTES: u64 = 4 << 30;

/// Occurrences that are kept of one value.
const MAX_PLACES: usize = 50;

/// The whole transcript in the forms in which values are compared.
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
    /// Starts of pieces in `text` that punctuation joins to the preceding piece: `118` of `WK-118`.
    joined: HashSet<usize>,
    currencies: HashSet<CurrencyMark>,
    /// Amounts with the currency printed with them.
    priced: HashSet<(Decimal, CurrencyMark)>,
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
            joined: HashSet::new(),
            currencies: HashSet::new(),
            priced: HashSet::new(),
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
    /// Of the numbers, those that are amounts of money.
    amounts: HashSet<Decimal>,
    has_dates: bool,
}

impl PrintedLine {
    /// Whether it contains one of these folded texts, within a word as well.
    fn contains_one_of(&self, words: &[String]) -> bool {
        words.iter().any(|word| self.folded.contains(word))
    }

    /// Whether it contains one of these folded words as a whole.
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
        let [numbers, percentages, amounts] = self.add_numbers(&words, page.number, line);
        // Bytes of the joined text, back to words: where each word ends, ascending.
        let ends: Vec<usize> = words
            .iter()
            .scan(0, |end, word| {
                *end += word.len() + 1;
                Some(*end)
            })
            .collect();
        // `Invoice no. 7      November 30, 2022`: words before a gap are no part of the date.
        let pairs = line.words.iter().zip(line.words.iter().skip(1)).zip(&ends).enumerate();
        let parted = pairs.filter(|(_, ((one, next), _))| is_parted(one, next));
        let after_gaps = parted.map(|(at, (_, end))| {
            let last = ends.get(at + MAX_DATE_WORDS).or(ends.last()).map_or(*end, |end| end - 1);
            *end..last
        });
        let parts = std::iter::once(0..text.len()).chain(after_gaps);
        let mut has_dates = false;
        for found in parts.flat_map(|part| dates_in(&text, part)) {
            has_dates = true;
            let before = ends.partition_point(|end| *end <= found.range.start);
            let within = text.get(found.range.clone()).unwrap_or_default().matches(' ').count();
            for date in [found.day_first, found.month_first].into_iter().flatten() {
                add_place(
                    &mut self.dates,
                    date,
                    words_place(page.number, line, before..before + within + 1),
                );
            }
        }
        self.add_compact_dates(&words, page.number, line);
        let mut folded = String::new();
        for (at, word) in words.iter().enumerate() {
            let own = fold_text(word);
            if own.is_empty() {
                continue;
            }
            let place = words_place(page.number, line, at..at + 1);
            let joined = joined_pieces(word);
            for (index, part) in own.split(' ').enumerate() {
                if joined.get(index) == Some(&true) {
                    self.joined.insert(self.text.len());
                }
                self.starts.push((self.text.len(), place));
                self.text.push_str(part);
                let known = self.words.entry(part.to_owned()).or_insert(place);
                if known.unwitnessed {
                    *known = place;
                }
            }
            folded.push(' ');
            folded.push_str(&own);
        }
        self.currencies.extend(words.iter().filter_map(|word| lone_currency(word)));
        folded.push(' ');
        self.lines.push(PrintedLine { folded, numbers, percentages, amounts, has_dates });
    }

    /// Dates such as `20260815`. Only here: the date parser would accept invoice numbers too.
    fn add_compact_dates(&mut self, words: &[&str], page: u32, line: &TextLine) {
        for (at, word) in words.iter().enumerate() {
            let last = word.rsplit(':').next().unwrap_or_default();
            let digits = last.trim_matches(|c: char| !c.is_alphanumeric());
            if let Some(date) = date::parse_compact(digits) {
                add_place(&mut self.dates, date, words_place(page, line, at..at + 1));
            }
        }
    }

    /// The numbers, the percentages and the amounts of money of a line.
    fn add_numbers(&mut self, words: &[&str], page: u32, line: &TextLine) -> [HashSet<Decimal>; 3] {
        let (mut own, mut percentages, mut amounts) =
            (HashMap::new(), HashSet::new(), HashSet::new());
        if !words.iter().any(|word| has_digit(word)) {
            return Default::default();
        }
        // All notations: the choice between them is the reader's. Words without a separator read the
        // same in each.
        for mark in [None, Some(DecimalSeparator::Comma), Some(DecimalSeparator::Point)] {
            if mark.is_some() && !words.iter().any(|word| has_separator(word)) {
                break;
            }
            let mut found: Vec<(usize, number::FoundNumber)> = Vec::new();
            found.extend(number::find_numbers(words, mark).into_iter().map(|amount| (0, amount)));
            for (at, word) in words.iter().enumerate() {
                if has_digit(word) && (mark.is_none() || has_separator(word)) {
                    let single = number::find_numbers(&[word.trim_matches(['(', ')'])], mark);
                    found.extend(single.into_iter().map(|amount| (at, amount)));
                }
            }
            for (first, amount) in found {
                let value = amount.value.abs().normalize();
                if amount.percent {
                    percentages.insert(value);
                }
                amounts.extend(Some(value).filter(|_| amount.is_money()));
                self.currencies.extend(amount.mark);
                self.priced.extend(amount.mark.map(|mark| (value, mark)));
                own.entry(value).or_insert(first + amount.words.start..first + amount.words.end);
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
            add_place(&mut self.numbers, *value, words_place(page, line, range.clone()));
        }
        self.percentages.extend(&percentages);
        [own.into_keys().collect(), percentages, amounts]
    }

    /// Whether any number is printed.
    pub(super) fn prints_numbers(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// Whether any date is printed.
    pub(super) fn prints_dates(&self) -> bool {
        !self.dates.is_empty()
    }

    /// Whether the value is printed anywhere. Null and zero always count as printed.
    pub(super) fn contains_value(&self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Number(_) if json_decimal(value).is_some_and(|value| value.is_zero()) => true,
            _ => !self.value_places(value).is_empty(),
        }
    }

    /// The occurrences of the value that are kept.
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
        // A number that is only a piece of a printed one was cut; a name may be glued to another.
        let numbered = has_digit(&compact);
        if self.searches.spend(self.text.len()) {
            let matches = self.text.match_indices(&compact);
            let ranges = matches.map(|(start, _)| start..start + compact.len());
            let mut places = ranges
                .filter(|range| !numbered || self.is_whole(range))
                .filter_map(|range| self.range_place(range));
            // The first, unless only a later one was read by two readers.
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

    /// Whether an identifier is printed other than as a piece of a longer one: `118` of `WK-118`.
    pub(super) fn prints_identifier(&self, text: &str) -> bool {
        let compact = fold_text(text).replace(' ', "");
        let mut ranges =
            self.text.match_indices(&compact).map(|(start, it)| start..start + it.len());
        !compact.is_empty()
            && self.searches.spend(self.text.len())
            && ranges.any(|range| {
                let mut borders = [range.start, range.end].into_iter();
                self.is_whole(&range) && !borders.any(|border| self.joined.contains(&border))
            })
    }

    /// Whether the range of `text` begins and ends at borders of words.
    fn is_whole(&self, range: &std::ops::Range<usize>) -> bool {
        [range.start, range.end].iter().all(|border| {
            *border == self.text.len()
                || self.starts.binary_search_by_key(border, |(at, _)| *at).is_ok()
        })
    }

    /// The area of the words in a range of `text`.
    fn range_place(&self, range: std::ops::Range<usize>) -> Option<PageRegion> {
        let first = self.starts.partition_point(|(at, _)| *at <= range.start).checked_sub(1)?;
        let own = self.starts.iter().skip(first).take_while(|(at, _)| *at < range.end);
        own.map(|(_, place)| *place).reduce(join_places)
    }

    /// Whether at least `share` of the text's words are printed, and all that have a digit.
    pub(super) fn holds_words(&self, text: &str, share: f64) -> bool {
        let folded = fold_text(text);
        let words: Vec<&str> = folded.split(' ').filter(|word| !word.is_empty()).collect();
        let missing: Vec<&&str> = words.iter().filter(|word| !self.holds_word(word)).collect();
        let found = words.len() - missing.len();
        !missing.iter().any(|word| has_digit(word)) && found as f64 >= share * words.len() as f64
    }

    /// Whether a folded word is printed by itself or within another: `D-82216`, `82216`.
    fn holds_word(&self, word: &str) -> bool {
        self.words.contains_key(word)
            || word.len() > 3 && self.searches.spend(self.text.len()) && self.text.contains(word)
    }

    /// Whether the currency is printed by its code or by a sign that may mean it, or none is at all. Where
    /// a printed code decides between the currencies of a sign, the sign means no other one.
    pub(super) fn shows_currency(&self, code: &str) -> bool {
        self.currencies.is_empty()
            || self.currencies.iter().any(|mark| match mark {
                CurrencyMark::Code(own) => *own == code,
                CurrencyMark::Sign(_) => {
                    mark.may_mean(code) && !self.means_other_currency(mark, code)
                }
            })
    }

    /// Whether an amount is printed with a currency, and never with one that matches this code.
    pub(super) fn prices_otherwise(&self, amount: Decimal, code: &str) -> bool {
        let amount = amount.abs().normalize();
        let mut marks = self.priced.iter().filter(|(own, _)| *own == amount).peekable();
        marks.peek().is_some() && !marks.any(|(_, mark)| mark.may_mean(code))
    }

    /// Whether the code of another currency that the sign may mean is printed.
    fn means_other_currency(&self, sign: &CurrencyMark, code: &str) -> bool {
        self.currencies.iter().any(|other| match other {
            CurrencyMark::Code(own) => *own != code && sign.may_mean(own),
            CurrencyMark::Sign(_) => false,
        })
    }

    /// Numbers on the lines that contain one of these folded texts.
    pub(super) fn numbers_beside(&self, words: &[String]) -> impl Iterator<Item = Decimal> {
        let lines = self.lines.iter().filter(|line| !line.numbers.is_empty());
        let labelled = lines.filter(move |line| line.contains_one_of(words));
        labelled.flat_map(|line| line.numbers.iter().copied())
    }

    /// The amounts of each line that begins with one of these folded labels. On request only
    /// directly after the label: `net weight 12.50` has no net amount.
    pub(super) fn amounts_labelled(
        &self,
        labels: &[String],
        right_behind: bool,
    ) -> impl Iterator<Item = &HashSet<Decimal>> {
        let lines = self.lines.iter().filter(|line| !line.amounts.is_empty());
        let labelled = lines.filter(move |line| {
            labels.iter().any(|label| {
                let rest = line.folded.strip_prefix(&format!(" {label} "));
                rest.is_some_and(|rest| !right_behind || begins_with_amount(rest))
            })
        });
        labelled.map(|line| &line.amounts)
    }

    /// The folded text of each line, a space around each word.
    pub(super) fn folded_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|line| line.folded.as_str())
    }

    /// Numbers on the lines that contain one of these folded words as a whole.
    pub(super) fn numbers_named(&self, words: &[String]) -> impl Iterator<Item = Decimal> {
        let lines = self.lines.iter().filter(|line| !line.numbers.is_empty());
        let named = lines.filter(move |line| line.names_one_of(words));
        named.flat_map(|line| line.numbers.iter().copied())
    }

    /// The amounts of each line that contains one of these folded words as a whole.
    pub(super) fn amounts_named(
        &self,
        words: &[String],
    ) -> impl Iterator<Item = &HashSet<Decimal>> {
        let named = self.lines.iter().filter(move |line| line.names_one_of(words));
        named.map(|line| &line.amounts)
    }

    /// Whether a line that contains one of these folded words as a whole prints a date.
    pub(super) fn prints_date_named(&self, words: &[String]) -> bool {
        self.lines.iter().any(|line| line.has_dates && line.names_one_of(words))
    }

    /// Percentages on the lines that contain one of these folded words as a whole.
    pub(super) fn percentages_beside(&self, words: &[String]) -> BTreeSet<Decimal> {
        let lines = self.lines.iter().filter(|line| !line.percentages.is_empty());
        let named = lines.filter(|line| line.names_one_of(words));
        named.flat_map(|line| line.percentages.iter().copied()).collect()
    }

    /// Whether the number is on a line that contains one of these folded texts.
    pub(super) fn printed_beside(&self, value: Decimal, words: &[String]) -> bool {
        let value = value.abs().normalize();
        let mut lines = self.lines.iter().filter(|line| line.numbers.contains(&value));
        lines.any(|line| line.contains_one_of(words))
    }
}

/// For each piece of a word between punctuation, whether it is joined to the preceding one: a label
/// ends in a point or a colon, `Nr.118`.
fn joined_pieces(word: &str) -> Vec<bool> {
    let mut pieces = Vec::new();
    let (mut marks, mut before) = (String::new(), None);
    for c in word.chars() {
        if !c.is_alphanumeric() {
            marks.push(c);
            continue;
        }
        if before.is_none() || !marks.is_empty() {
            let point = marks == "." && before.is_some_and(char::is_alphabetic);
            let joins = marks.chars().all(|mark| matches!(mark, '-' | '–' | '/' | '_' | '.'));
            pieces.push(before.is_some() && joins && !point);
            marks.clear();
        }
        before = Some(c);
    }
    pieces
}

fn has_digit(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}

/// Whether a folded text begins with digits, with or without the code of a currency before them.
fn begins_with_amount(folded: &str) -> bool {
    let mut words = folded.split(' ');
    let first = words.next().unwrap_or_default();
    let is_code = CurrencyMark::from_word(&first.to_uppercase()).is_some();
    has_digit(first) || is_code && words.next().is_some_and(has_digit)
}

fn has_separator(word: &str) -> bool {
    word.contains([',', '.'])
}

/// Gap between words of different columns, in heights of a word.
const COLUMN_GAP: f32 = 2.0;

/// Whether a wide gap separates two words of a line.
pub(super) fn is_parted(one: &TextWord, next: &TextWord) -> bool {
    next.bounding_box.x - one.bounding_box.right() > COLUMN_GAP * one.bounding_box.h
}

/// Words searched for a date behind a gap; no form of a date has more (`2024 m. kovo 7 d.`). Searching
/// the rest of the line from each gap would take the square of its length.
const MAX_DATE_WORDS: usize = 8;

/// The dates of a part of a text, their ranges within the whole.
fn dates_in(text: &str, part: std::ops::Range<usize>) -> impl Iterator<Item = date::FoundDate> {
    let from = part.start;
    let found = date::find_dates(text.get(part).unwrap_or_default()).into_iter();
    found.map(move |one| {
        let range = one.range.start + from..one.range.end + from;
        date::FoundDate { range, ..one }
    })
}

/// The currency that a word is, or carries beside a number. A code that is also an ordinary word counts
/// only beside an amount, with which it is read.
fn lone_currency(word: &str) -> Option<CurrencyMark> {
    let plain = word.trim_matches(|c: char| c.is_ascii_digit() || ",.-:;()'".contains(c));
    CurrencyMark::from_word(plain).filter(|_| !currency::is_also_word(plain))
}

/// The area of some words of a line.
fn words_place(page: u32, line: &TextLine, range: std::ops::Range<usize>) -> PageRegion {
    let words: &[TextWord] = line.words.get(range).unwrap_or_default();
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
