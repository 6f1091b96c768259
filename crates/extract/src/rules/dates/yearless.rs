//! Days to pay by that are written without their year, `please pay by 16 June`: the next such day
//! after the day of issue.

use time::Date;

use super::term;
use super::{DateCandidate, DateSearch, DateSign};
use crate::rules::characters::{count_digits, is_digits};
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::date::{self, DayMonthOrder};
use docmill_formats::notation::fold_text;

/// Days between issue and payment.
const MAX_TERM_DAYS: i64 = 120;

impl DateSearch<'_> {
    /// Days behind a word such as "by" on a line that asks for money, as they lie after the day of
    /// issue.
    pub(super) fn days_without_year(&self, issued: Date) -> Vec<DateCandidate> {
        let mut found = Vec::new();
        for (index, cell) in self.matches.layout.cells.iter().enumerate() {
            for (at, pair) in cell.words.windows(2).enumerate() {
                let [day, month] = pair else { continue };
                if !day.starts_with(|c: char| c.is_ascii_digit()) {
                    continue;
                }
                let before = at.checked_sub(1).and_then(|before| cell.words.get(before));
                if !before.is_some_and(|word| is_before_day(word)) {
                    continue;
                }
                let Some(date) = day_after(day, month, issued) else { continue };
                // With its year it is read as others are.
                let year = cell.words.get(at + 2).map_or("", String::as_str);
                let before = cell.words_in(0..at).join(" ");
                if !starts_with_year(year)
                    && term::is_to_pay_on(self.matches.layout, index, &before)
                {
                    let place = (index, before.len() + usize::from(at > 0));
                    let signs = vec![DateSign::PayBy, DateSign::Prose];
                    found.push(DateCandidate { date, certain: true, place, signs });
                }
            }
        }
        found
    }
}

/// Whether a word may be right before a day to pay by: cheaper to check than a day.
fn is_before_day(word: &str) -> bool {
    let folded = fold_text(word);
    [&vocabulary().by, &vocabulary().by_the, &vocabulary().on]
        .iter()
        .any(|words| words.has(&folded))
}

fn starts_with_year(word: &str) -> bool {
    count_digits(word) == 4
}

/// The day that a number and the name of a month make, in the year of the day of issue or the next.
fn day_after(day: &str, month: &str, issued: Date) -> Option<Date> {
    let digits = day.trim_end_matches(['.', ',']);
    let month = month.trim_end_matches(|c: char| !c.is_alphabetic());
    let short = (1..=2).contains(&digits.len()) && is_digits(digits);
    if !short || month.chars().any(|c| !c.is_alphabetic()) {
        return None;
    }
    let mut years = [issued.year(), issued.year() + 1].into_iter();
    years.find_map(|year| {
        let text = format!("{digits} {month} {year}");
        let found = date::find_dates(&text).into_iter().next()?;
        let date = found.date_under(DayMonthOrder::DayFirst)?;
        (0..=MAX_TERM_DAYS).contains(&(date - issued).whole_days()).then_some(date)
    })
}
