//! Numbers that a model wrote as texts: copied from the document, or as JSON would have them.
//!
//! A text with the same value in every notation is read directly. `1.234` is ambiguous: it is read
//! in the notation of the document's other numbers if it is printed there, else not at all.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use rust_decimal::Decimal;

use docmill_formats::notation::number::{
    DecimalSeparator, find_numbers, grouped_quantity, parse_number,
};

const MARKS: [DecimalSeparator; 2] = [DecimalSeparator::Comma, DecimalSeparator::Point];

/// The printed rows of a document.
pub(super) trait PrintedRows: fmt::Debug + Send + Sync {
    /// Their texts from top to bottom.
    fn rows(&self) -> Box<dyn Iterator<Item = &str> + '_>;
}

/// Reads numbers written as texts, for one document; by default for none.
#[derive(Debug, Default)]
pub struct PrintedNumbers {
    document: Option<Arc<dyn PrintedRows>>,
    /// Built for the first ambiguous text.
    notation: OnceLock<DocumentNotation>,
}

impl PrintedNumbers {
    /// A reader for this document.
    pub(super) fn of_document(document: Arc<dyn PrintedRows>) -> Self {
        Self { document: Some(document), notation: OnceLock::new() }
    }

    /// The decimal of a reply's text, in JSON notation; `None`: unreadable or ambiguous.
    pub(super) fn read(&self, text: &str) -> Option<String> {
        let as_json = serde_json::from_str::<serde_json::Number>(text).ok();
        let as_json: Option<Decimal> = as_json.and_then(|_| text.parse().ok());
        let notations = MARKS.map(|mark| sole_number(text, mark));
        let readings: BTreeSet<Decimal> =
            notations.into_iter().chain([as_json]).flatten().collect();
        let read = match readings.len() {
            0 | 1 => readings.first().copied(),
            _ => self.notation().read_ambiguous(text, as_json),
        };
        read.map(|number| number.to_string())
    }

    fn notation(&self) -> &DocumentNotation {
        let document = self.document.as_deref();
        self.notation.get_or_init(|| document.map(DocumentNotation::of_rows).unwrap_or_default())
    }
}

/// The number notation of a document.
#[derive(Debug, Default)]
struct DocumentNotation {
    /// Its decimal mark, where unambiguous numbers show it.
    mark: Option<DecimalSeparator>,
    /// All numbers, read with that mark.
    values: BTreeSet<Decimal>,
    /// Printed numbers whose value depends on the decimal mark.
    ambiguous: BTreeSet<String>,
}

impl DocumentNotation {
    fn of_rows(document: &dyn PrintedRows) -> Self {
        let words = || document.rows().flat_map(str::split_whitespace);
        let mark =
            DecimalSeparator::from_words(words()).or_else(|| words().find_map(mark_by_groups));
        let mut numbers = Self { mark, ..Self::default() };
        if mark.is_none() {
            return numbers;
        }
        for row in document.rows() {
            let words: Vec<&str> = row.split_whitespace().collect();
            numbers.values.extend(find_numbers(&words, mark).into_iter().map(|it| it.value));
            for word in words {
                let [comma, point] = MARKS.map(|mark| parse_number(word, Some(mark)));
                numbers.values.extend(parse_number(word, mark));
                if comma != point {
                    numbers.ambiguous.insert(bare_digits(word).to_owned());
                }
            }
        }
        numbers
    }

    /// Reads a text whose value depends on the decimal mark; `as_json`: its value as a JSON number.
    fn read_ambiguous(&self, text: &str, as_json: Option<Decimal>) -> Option<Decimal> {
        let own = sole_number(text, self.mark?);
        let digits = bare_digits(text);
        // `2.500` as JSON has it, of a printed `2,500`.
        let other = as_json.filter(|other| own != Some(*other));
        let is_other = other.is_some() && self.ambiguous.contains(&swap_marks(digits));
        match (self.ambiguous.contains(digits), is_other) {
            (true, true) => None,
            (true, false) => own,
            (false, true) => other,
            // `1.234` of a printed `1.234,00`.
            (false, false) => own.filter(|own| {
                self.values.contains(own) && !other.is_some_and(|it| self.values.contains(&it))
            }),
        }
    }
}

/// The decimal mark of a document with several group separators in one number: `1.234.567`.
fn mark_by_groups(word: &str) -> Option<DecimalSeparator> {
    let digits = bare_digits(word);
    let group = digits.find([',', '.']).and_then(|at| digits.get(at..=at))?;
    let is_grouped = digits.matches(group).count() > 1 && parse_number(digits, None).is_some();
    let mark = if group == "." { DecimalSeparator::Comma } else { DecimalSeparator::Point };
    is_grouped.then_some(mark)
}

fn bare_digits(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_ascii_digit())
}

fn swap_marks(digits: &str) -> String {
    let swapped = digits.chars().map(|c| match c {
        ',' => '.',
        '.' => ',',
        other => other,
    });
    swapped.collect()
}

/// The only number of a text; other words have no digits: units, a currency.
fn sole_number(text: &str, mark: DecimalSeparator) -> Option<Decimal> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let Some(grouped) = grouped_quantity(&words) {
        return Some(grouped.value);
    }
    let found = find_numbers(&words, Some(mark));
    let [only] = found.as_slice() else { return None };
    let mut beside = (0..).zip(&words).filter(|(at, _)| !only.words.contains(at));
    beside.all(|(_, word)| !word.contains(|c: char| c.is_ascii_digit())).then_some(only.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl PrintedRows for Vec<String> {
        fn rows(&self) -> Box<dyn Iterator<Item = &str> + '_> {
            Box::new(self.iter().map(String::as_str))
        }
    }

    #[test]
    fn a_text_is_the_number_that_the_document_prints_and_else_unread() {
        let german = ["Holz 1.234 Stk 12,50 15.387,08", "2,500 kg 1.000 mm und 1,000 m 7.654,00"];
        let english = ["Wood 1,234 pcs 12.50 15,387.08", "2.500 kg"];
        let yen = ["¥12,000 and ¥1,234,000"];
        let none = ["Total 1.234 or 12,000"];
        let read = |rows: &[&str], text: &str| {
            let rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
            PrintedNumbers::of_document(Arc::new(rows)).read(text)
        };
        #[rustfmt::skip]
        let table: [(&[&str], &str, Option<&str>); 29] = [
            (&none,    "15.387,08",      Some("15387.08")),
            (&none,    "15387.08",       Some("15387.08")),
            (&none,    "15,387.08",      Some("15387.08")),
            (&none,    "1 234,50 €",     Some("1234.50")),
            (&none,    "106 680",        Some("106680")),
            (&none,    "1.234.567",      Some("1234567")),
            (&none,    "-0,10",          Some("-0.10")),
            (&none,    "(41,27)",        Some("-41.27")),
            (&none,    "19 %",           Some("19")),
            (&none,    "3 Stk",          Some("3")),
            (&none,    "EUR 12.50",      Some("12.50")),
            (&none,    "5 x 100",        None),
            (&none,    "3x",             None),
            (&none,    "twelve",         None),
            (&none,    "07.04.2019",     None),
            (&none,    "1.234",          None),
            (&none,    "12,000",         None),
            (&yen,     "12,000",         Some("12000")),
            (&german,  "1.234",          Some("1234")),
            (&german,  "2,500",          Some("2.500")),
            // `2.500` in JSON, and both readings are printed.
            (&german,  "2.500",          Some("2.500")),
            (&german,  "1.000",          None),
            // Without its decimals, and on no line.
            (&german,  "7.654",          Some("7654")),
            (&german,  "9.876",          None),
            (&english, "1,234",          Some("1234")),
            (&english, "1234",           Some("1234")),
            (&english, "2.500",          Some("2.500")),
            // In a notation that is not the document's.
            (&english, "2,500",          None),
            (&english, "1.234",          None),
        ];
        for (rows, text, expected) in table {
            assert_eq!(read(rows, text).as_deref(), expected, "{text} of {rows:?}");
        }
    }
}
