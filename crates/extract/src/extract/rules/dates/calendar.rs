//! In which order a document writes day and month: what its dates show, else what its language and
//! currency make usual.

use time::Date;

use crate::extract::rules::layout::TextCell;
use crate::extract::rules::spots::LabelMatches;
use docmill_formats::notation::date::{self, DayMonthOrder};
use docmill_formats::notation::fold_text;

/// Every date of the document and what they say about the order of day and month.
pub(in super::super) struct DateReader {
    order: DayMonthOrder,
    /// Nothing shows the order, and both are usual in the document's language.
    open: bool,
}

/// Words by which an English document is distinguished from others that write days first.
const ENGLISH: &[&str] = &["the", "of", "and", "invoice", "due", "payment", "amount", "to", "for"];
const OTHERS: &[&str] = &[
    "der", "die", "und", "rechnung", "betrag", "le", "la", "et", "facture", "les", "het", "een",
    "factuur", "en", "el", "fecha", "factura", "di", "fattura", "og", "faktura", "och", "do",
];

/// Currencies of countries that write the day first, in English, too.
const DAY_FIRST: [&str; 14] = [
    "EUR", "MYR", "GBP", "INR", "SGD", "AUD", "NZD", "ZAR", "AED", "NOK", "SEK", "DKK", "CHF",
    "PLN",
];

/// Folded words of the names and addresses of firms that write the month first.
const AMERICAN: [&str; 5] = ["inc", "llc", "corp", "usa", "incorporated"];

/// The abbreviations of the states that stand before a ZIP code in the United States.
const STATES: &[&str] = &[
    "AK", "AL", "AR", "AZ", "CA", "CO", "CT", "DC", "DE", "FL", "GA", "HI", "IA", "ID", "IL", "IN",
    "KS", "KY", "LA", "MA", "MD", "ME", "MI", "MN", "MO", "MS", "MT", "NC", "ND", "NE", "NH", "NJ",
    "NM", "NV", "NY", "OH", "OK", "OR", "PA", "RI", "SC", "SD", "TN", "TX", "UT", "VA", "VT", "WA",
    "WI", "WV", "WY",
];

/// Folded words between a town and the day on which a letter is written.
const OF_DAY: [&str; 16] = [
    "den", "am", "le", "li", "il", "a", "el", "op", "dnia", "dn", "dne", "dana", "the", "dna",
    "la", "de",
];

/// What stands behind a day, without the mark of its year: `28 lutego 2025 r.`, `3.5.2025 г.`
pub(super) fn after_year_mark(after: &str) -> &str {
    let mark =
        ["r.", "г.", "m.", "g."].into_iter().find_map(|mark| after.trim_start().strip_prefix(mark));
    mark.unwrap_or(after)
}

/// Words of the longest town before a day.
const LONGEST_TOWN: usize = 4;

/// Whether what stands before a day is a town, as letters have it: `Leeds, `, `Graz, am `, `Lorient, le `.
pub(super) fn ends_in_town(before: &str) -> bool {
    let before = before.trim();
    let last = before.rsplit(' ').next().unwrap_or_default();
    let day = OF_DAY.contains(&fold_text(last).as_str());
    let town = if day { before.strip_suffix(last).unwrap_or_default().trim() } else { before };
    let words: Vec<&str> = town.trim_end_matches(',').split(' ').collect();
    let named = |text: &str| text.chars().next().is_some_and(char::is_uppercase);
    town.ends_with(',')
        && words.len() <= LONGEST_TOWN
        && words.first().is_some_and(|word| named(word))
        && !town.contains(|c: char| c.is_ascii_digit() || c == ':')
}

/// Folded words of streets that are called by a day: `Rua 31 de Janeiro 88`, `rue du 8 mai 1945`.
const STREETS: [&str; 26] = [
    "rua",
    "rue",
    "via",
    "viale",
    "piazza",
    "plaza",
    "calle",
    "c",
    "avenida",
    "avenue",
    "av",
    "avda",
    "ul",
    "ulica",
    "ulice",
    "place",
    "largo",
    "praca",
    "strada",
    "str",
    "strasse",
    "platz",
    "bd",
    "boulevard",
    "corso",
    "trg",
];

/// Words between such a street and its day.
const WITHIN_STREET: [&str; 6] = ["du", "del", "de", "des", "di", "da"];

/// Whether what stands before a day whose month is a word is a street: the day is its name.
pub(super) fn ends_in_street(before: &str) -> bool {
    let folded = fold_text(before);
    let mut words = folded.rsplit(' ').peekable();
    words.next_if(|word| WITHIN_STREET.contains(word));
    words.next().is_some_and(|word| STREETS.contains(&word))
}

/// Whether a line ends in the state and ZIP code of an address: `LAS VEGAS NV 89103`.
fn ends_in_zip_code(cell: &TextCell) -> bool {
    let [.., town, state, zip] = cell.words.as_slice() else { return false };
    let zip = zip.trim_end_matches(['.', ',']);
    let digits = zip.split('-').next().unwrap_or_default();
    digits.len() == 5
        && zip.chars().all(|c| c.is_ascii_digit() || c == '-')
        && STATES.contains(&state.trim_end_matches([',', '.']))
        && town.trim_end_matches(',').chars().all(char::is_alphabetic)
}

impl DateReader {
    pub(in super::super) fn from_spots(spots: &LabelMatches<'_>, currency: Option<&str>) -> Self {
        let layout = spots.layout;
        let dates: Vec<date::FoundDate> =
            layout.cells.iter().flat_map(|cell| date::find_dates(&cell.joined_text())).collect();
        if let Some(order) = date::infer_order(dates.iter()) {
            return Self { order, open: false };
        }
        let dollars = currency.is_none_or(|code| code == "USD");
        let zip = layout.cells.iter().any(ends_in_zip_code);
        if dollars && zip {
            return Self { order: DayMonthOrder::MonthFirst, open: false };
        }
        let mut words = layout.cells.iter().flat_map(|cell| cell.folded.iter());
        // A shop's money is that of its country, and `INC 6% GST` on its paper is no company.
        let firm = !spots.till && words.any(|(word, _)| AMERICAN.contains(&word.as_str()));
        let american = zip || firm;
        if !american && currency.is_some_and(|code| DAY_FIRST.contains(&code)) {
            return Self { order: DayMonthOrder::DayFirst, open: false };
        }
        let words = layout.cells.iter().flat_map(|cell| cell.folded.iter());
        let (mut english, mut others) = (0, 0);
        for (word, _) in words {
            english += usize::from(ENGLISH.contains(&word.as_str()));
            others += usize::from(OTHERS.contains(&word.as_str()));
        }
        let american = english > others && currency == Some("USD");
        let order = if american { DayMonthOrder::MonthFirst } else { DayMonthOrder::DayFirst };
        Self { order, open: english > others }
    }

    pub(super) fn resolve_date(&self, found: &date::FoundDate) -> Option<(Date, bool)> {
        let certain = !(self.open && found.slashes && found.is_ambiguous());
        Some((found.date_under(self.order)?, certain))
    }
}

#[cfg(test)]
mod tests {
    use super::{ends_in_street, ends_in_town};

    #[test]
    fn a_street_may_be_called_by_a_day() {
        for (before, expected) in [
            ("Rua ", true),
            ("12 rue du ", true),
            ("Piazza ", true),
            ("Facture du ", false),
            ("", false),
            ("Warszawa, ul. ", true),
        ] {
            assert_eq!(ends_in_street(before), expected, "{before}");
        }
    }

    #[test]
    fn letters_are_dated_behind_their_town() {
        for (before, expected) in [
            ("Münster, ", true),
            ("Graz, am ", true),
            ("Krosno, dn. ", true),
            ("Aix-en-Provence, le ", true),
            ("Contract of ", false),
            ("Kaufvertrag vom ", false),
            ("Delivered, batch 7, ", false),
            ("Due: Leeds, ", false),
            ("we sold this, ", false),
        ] {
            assert_eq!(ends_in_town(before), expected, "{before}");
        }
    }
}
