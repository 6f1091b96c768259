//! Whether a value stands on the document: numbers and dates in any notation, texts folded.

use std::collections::HashSet;

use rust_decimal::Decimal;
use serde_json::Value;
use time::Date;

use super::checks::decimal;
use crate::model::{Line, Transcript};
use crate::notation::number::Mark;
use crate::notation::{date, fold, number};

/// Everything the transcript says, in the forms values are compared in.
pub(super) struct Ground<'a> {
    transcript: &'a Transcript,
    /// Absolute values: signs are often printed apart or as words.
    numbers: HashSet<Decimal>,
    dates: HashSet<Date>,
    words: HashSet<String>,
    /// All folded text without spaces.
    text: String,
}

impl<'a> Ground<'a> {
    pub(super) fn new(transcript: &'a Transcript) -> Self {
        let mut ground = Self {
            transcript,
            numbers: HashSet::new(),
            dates: HashSet::new(),
            words: HashSet::new(),
            text: String::new(),
        };
        for line in transcript.pages.iter().flat_map(|page| &page.lines) {
            ground.add(line);
        }
        ground
    }

    fn add(&mut self, line: &Line) {
        let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
        // Both notations: which one holds is the reader's judgement, not ours to repeat.
        for mark in [None, Some(Mark::Comma), Some(Mark::Point)] {
            let joined = number::find(&words, mark).into_iter();
            let single =
                words.iter().flat_map(|word| number::find(&[word.trim_matches(['(', ')'])], mark));
            self.numbers.extend(joined.chain(single).map(|amount| amount.value.abs().normalize()));
        }
        let text = words.join(" ");
        for found in date::find(&text) {
            self.dates.extend(found.day_first);
            self.dates.extend(found.month_first);
        }
        for word in fold(&text).split(' ').filter(|word| !word.is_empty()) {
            self.text.push_str(word);
            self.words.insert(word.to_owned());
        }
    }

    /// Whether any number is printed.
    pub(super) fn prints_numbers(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// Whether any date is printed.
    pub(super) fn prints_dates(&self) -> bool {
        !self.dates.is_empty()
    }

    /// Null stands everywhere.
    pub(super) fn holds(&self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Number(_) => decimal(value).is_some_and(|value| {
                value.is_zero() || self.numbers.contains(&value.abs().normalize())
            }),
            Value::String(text) => match date::parse_iso(text) {
                Some(date) => self.dates.contains(&date),
                None => self.holds_text(text),
            },
            _ => false,
        }
    }

    fn holds_text(&self, text: &str) -> bool {
        let folded = fold(text);
        let compact: String = folded.chars().filter(|c| *c != ' ').collect();
        !compact.is_empty()
            && (self.text.contains(&compact)
                || folded.split(' ').all(|word| self.words.contains(word)))
    }

    /// Rows of the pages that hold an amount and at least one more number, as lines of an invoice
    /// do. Counted by position, since a reader may give a row as several lines.
    pub(super) fn rows_of_amounts(&self) -> usize {
        let mut count = 0;
        for page in &self.transcript.pages {
            let mut numbers: Vec<(f32, f32, bool)> = Vec::new();
            for word in page.lines.iter().flat_map(|line| &line.words) {
                for amount in number::find(&[word.text.as_str()], None) {
                    let area = word.bounding_box;
                    numbers.push((area.y + area.h / 2.0, area.h, amount.is_money()));
                }
            }
            numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
            let rows = numbers.chunk_by(|a, b| (b.0 - a.0).abs() < 0.5 * a.1.min(b.1));
            count += rows.filter(|row| row.len() >= 2 && row.iter().any(|number| number.2)).count();
        }
        count
    }
}
