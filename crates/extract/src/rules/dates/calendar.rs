//! The order of day and month: from the document's dates, else from its language and currency.

use time::Date;

use crate::rules::characters::has_digit;
use crate::rules::label_matches::LabelMatches;
use crate::rules::supplier::ends_in_zip_code;
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::date::{self, DayMonthOrder};
use docmill_formats::notation::fold_text;

/// Every date of the document and the order of day and month that they show.
pub(in super::super) struct DateReader {
    order: DayMonthOrder,
    /// Nothing shows the order, and both are usual in the document's language.
    open: bool,
    /// The document is from where some write the month first with points, too.
    american: bool,
}

/// Currencies of countries that write the day first, in English, too.
const DAY_FIRST: [&str; 14] = [
    "EUR", "MYR", "GBP", "INR", "SGD", "AUD", "NZD", "ZAR", "AED", "NOK", "SEK", "DKK", "CHF",
    "PLN",
];

/// The text behind a day, without the mark of its year: `28 lutego 2025 r.`, `3.5.2025 г.`
pub(super) fn after_year_mark(after: &str) -> &str {
    vocabulary()
        .year_mark
        .iter()
        .find_map(|mark: &str| after.trim_start().strip_prefix(mark)?.strip_prefix('.'))
        .unwrap_or(after)
}

/// Words of the longest town before a day.
const MAX_TOWN_WORDS: usize = 4;

/// Whether the text before a day is a town, as in letters: `Leeds, `, `Graz, am `, `Lorient, le `.
pub(super) fn ends_in_town(before: &str) -> bool {
    let before = before.trim();
    let last = before.rsplit(' ').next().unwrap_or_default();
    let day = vocabulary().of_day.has(&fold_text(last));
    let town = if day { before.strip_suffix(last).unwrap_or_default().trim() } else { before };
    let words: Vec<&str> = town.trim_end_matches(',').split(' ').collect();
    town.ends_with(',')
        && words.len() <= MAX_TOWN_WORDS
        && words.first().is_some_and(|word| word.chars().next().is_some_and(char::is_uppercase))
        && !town.contains(|c: char| c.is_ascii_digit() || c == ':')
}

/// Whether the text before a day is a mark and a number, with a stroke between: `№ 118 / `, `Nr.
/// 118 vom `.
pub(super) fn ends_in_number(before: &str) -> bool {
    let words: Vec<&str> = before.split_whitespace().collect();
    let [mark, number, link] = words.as_slice() else { return false };
    let links = matches!(*link, "/" | "-" | "–");
    vocabulary().number_front.has(&fold_text(mark)) && has_digit(number) && links
}

/// Whether the text before a day with a month in words is a street: the day is the street's name.
pub(super) fn ends_in_street(before: &str) -> bool {
    let folded = fold_text(before);
    let mut words = folded.rsplit(' ').peekable();
    words.next_if(|word| vocabulary().street_of.has(word));
    words.next().is_some_and(|word| vocabulary().street.has(word))
}

impl DateReader {
    pub(in super::super) fn from_matches(
        matches: &LabelMatches<'_>,
        currency: Option<&str>,
    ) -> Self {
        let layout = matches.layout;
        let dates: Vec<date::FoundDate> =
            layout.cells.iter().flat_map(|cell| date::find_dates(&cell.joined_text())).collect();
        if let Some(order) = date::infer_order(dates.iter()) {
            let american = order == DayMonthOrder::MonthFirst;
            return Self { order, open: false, american };
        }
        let dollars = currency.is_none_or(|code| code == "USD");
        let zip = layout.cells.iter().any(|cell| ends_in_zip_code(&cell.words));
        if dollars && zip {
            return Self { order: DayMonthOrder::MonthFirst, open: false, american: true };
        }
        let mut words = layout.cells.iter().flat_map(|cell| cell.folded.iter());
        // A shop's money is that of its country, and `INC 6% GST` on its paper is no company.
        let firm =
            !matches.style.shop_head && words.any(|(word, _)| vocabulary().american.has(word));
        let american = zip || firm;
        let mut lines = layout.cells.iter().map(|cell| fold_text(&cell.joined_text()));
        if !american
            && (currency.is_some_and(|code| DAY_FIRST.contains(&code))
                || lines.any(|line| vocabulary().day_first_form.is_within(&line)))
        {
            return Self { order: DayMonthOrder::DayFirst, open: false, american: false };
        }
        let words = layout.cells.iter().flat_map(|cell| cell.folded.iter());
        let (mut english, mut others) = (0, 0);
        for (word, _) in words {
            english += usize::from(vocabulary().plain_english.has(word));
            others += usize::from(vocabulary().plain_other.has(word));
        }
        let american = english > others && currency == Some("USD");
        let order = if american { DayMonthOrder::MonthFirst } else { DayMonthOrder::DayFirst };
        Self { order, open: english > others, american: zip }
    }

    pub(super) fn resolve_date(&self, found: &date::FoundDate) -> Option<(Date, bool)> {
        let swapped = found
            .day_first
            .is_some_and(|date| date.day() <= 12 && date.day() != u8::from(date.month()));
        let certain = !(self.open && found.slashes && found.is_ambiguous()
            || self.american && found.points && swapped);
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
