//! Numbers that are printed in parts or look like something else: behind their series, behind a
//! second title, beside the day of issue, and with the month as a day has it.

use super::{NumberCandidate, NumberSearch, NumberSign};
use crate::rules::characters::is_digits;
use crate::rules::fields::read_identifier;
use crate::rules::label_matches::LabelMatch;
use crate::rules::layout::TextCell;
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::date::{self, DayMonthOrder};
use docmill_formats::notation::fold_text;
use docmill_gate::kinds::{FieldRole, begins_subject};

/// Cells among which a receipt's number is beside the day.
const MAX_IN_HEAD: usize = 400;

/// Digits of the shortest such number: tables and tills have fewer.
const MIN_OF_TILL_DIGITS: usize = 4;

/// Digits of the shortest unlabelled number beside the day: `0027818   11-03-2026`.
const MIN_ALONE_DIGITS: usize = 6;

/// Heights of a line between the tops of two lines that follow each other.
const NEXT_LINE: f32 = 2.2;

/// The longest series, in letters and digits.
const MAX_SERIES: usize = 6;

/// Words of a line with two titles and a number: `Quittung / Rechnung 600-44921`, `Račun / Invoice
/// br. 18`.
const MAX_TITLES_WORDS: usize = 5;

impl<'a> NumberSearch<'a> {
    /// Series and number in the upper half of the first page.
    pub(super) fn add_series(&self, found: &mut Vec<NumberCandidate<'a>>) {
        let first = self.matches.layout.cells.iter().take_while(|cell| cell.page == 0);
        for cell in first.filter(|cell| self.matches.layout.depth_on_page(cell) < 0.5) {
            let folded: Vec<String> = cell.words.iter().map(|word| fold_text(word)).collect();
            let behind = folded.windows(3).position(|three| match three {
                [label, series, number] => {
                    vocabulary().series.has(label)
                        && (1..=MAX_SERIES).contains(&series.chars().count())
                        && vocabulary().number_mark.has(number)
                }
                _ => false,
            });
            let Some(at) = behind else { continue };
            let Some(series) = cell.words.get(at + 1).filter(|word| is_series(word)) else {
                continue;
            };
            let Some(number) = read_identifier(&cell.words_in(at + 3..cell.words.len()), true)
            else {
                continue;
            };
            let mut signs = self.place_signs(cell);
            signs.push(NumberSign::ShortLabel);
            found.push(NumberCandidate { value: format!("{series} {number}"), cell, signs });
        }
    }

    /// `Kvitto 11744` in the row of the day and time on a receipt: a word and a number without
    /// another label.
    pub(super) fn add_beside_day(&self, found: &mut Vec<NumberCandidate<'a>>) {
        if !self.matches.style.loose_number {
            return;
        }
        let layout = self.matches.layout;
        for (index, cell) in layout.cells.iter().enumerate().take(MAX_IN_HEAD) {
            let text = cell.joined_text();
            let day = date::find_dates(&text).first().map(|day| day.range.start);
            let row = layout.row_cells(cell.row).iter();
            let beside = day.is_some()
                || row.into_iter().any(|cell| !date::find_dates(&cell.joined_text()).is_empty());
            let before = text.get(..day.unwrap_or(text.len())).unwrap_or_default();
            let words: Vec<&str> = before.split_whitespace().collect();
            let (named, number, least) = match words.as_slice() {
                [title, number] => {
                    let is_word =
                        title.chars().count() > 2 && title.chars().all(char::is_alphabetic);
                    (is_word, number, MIN_OF_TILL_DIGITS)
                }
                [number] => (true, number, MIN_ALONE_DIGITS),
                _ => continue,
            };
            let long = number.len() >= least && is_digits(number);
            let called = self.matches.in_cell(index).any(|label_match| {
                label_match.field != self.field && !label_match.field.starts_with("column_")
            });
            if beside && named && long && !called && !layout.is_on_amount_row(cell) {
                let mut signs = self.place_signs(cell);
                signs.push(NumberSign::WeakLabel);
                found.push(NumberCandidate { value: (*number).to_owned(), cell, signs });
            }
        }
    }

    /// Whether a number is nothing but the year of a day that is printed.
    pub(super) fn is_year_of_page(&self, value: &str) -> bool {
        let year = value.len() == 4 && value.starts_with("20");
        let year = value.parse::<i32>().ok().filter(|_| year);
        year.is_some_and(|year| {
            let cells = self.matches.layout.cells.iter();
            let mut days = cells.flat_map(|cell| date::find_dates(&cell.joined_text()));
            days.any(|day| {
                day.date_under(DayMonthOrder::DayFirst).is_some_and(|day| day.year() == year)
            })
        })
    }

    /// Whether a mark of numbers follows a label: `Invoice #` means the number and nothing else.
    pub(super) fn is_numbered(&self, label_match: &LabelMatch) -> bool {
        let cell = self.matches.cell_of(label_match);
        let next = cell.and_then(|cell| cell.words.get(label_match.words.end));
        next.is_some_and(|word| matches!(word.trim_end_matches(':'), "#"))
    }

    /// Whether a heading such as `Number` is in one row with those of days, its value below: the
    /// row identifies the document.
    pub(super) fn heads_document_row(&self, label_match: &LabelMatch) -> bool {
        let whole = |label_match: &LabelMatch| {
            label_match.words.start == 0
                && self
                    .matches
                    .cell_of(label_match)
                    .is_some_and(|cell| cell.words.len() == label_match.words.end)
        };
        let Some(cell) = self.matches.cell_of(label_match).filter(|_| whole(label_match)) else {
            return false;
        };
        let beside = |other: &LabelMatch| {
            self.matches.cell_of(other).is_some_and(|one| {
                one.page == cell.page && one.row == cell.row && !std::ptr::eq(one, cell)
            })
        };
        let mut days = self.matches.of_role(FieldRole::IssueDate);
        days.any(|day| whole(day) && beside(day))
    }

    /// `Oggetto: fattura n. 27`: the title of a letter begins behind the word for its subject.
    pub(super) fn is_subject(&self, label_match: &LabelMatch) -> bool {
        let words =
            self.matches.cell_of(label_match).map(|cell| cell.words.as_slice()).unwrap_or_default();
        let first = words.first().filter(|_| label_match.words.start == 1);
        first.is_some_and(|word| {
            is_enumeration_mark(word) || word.ends_with(':') && begins_subject(&fold_text(word))
        })
    }

    /// Whether a title is behind another one and a bar, and a number ends the line.
    pub(super) fn is_second_title(&self, label_match: &LabelMatch) -> bool {
        let Some(cell) = self.matches.cell_of(label_match) else { return false };
        let bar = label_match.words.start.checked_sub(1).and_then(|at| cell.words.get(at));
        let rest = cell.words.get(label_match.words.end..).unwrap_or_default();
        let marks = rest.iter().take_while(|word| vocabulary().number_mark.has(&fold_text(word)));
        cell.words.len() <= MAX_TITLES_WORDS
            && rest.len() == marks.count() + 1
            && bar.is_some_and(|word| matches!(word.as_str(), "/" | "-" | "–"))
    }

    /// Whether the label of the day of issue is behind this one, right over it or right under it:
    /// `Number` above `Date` is the number of the dated document.
    pub(super) fn has_day_beside(&self, label_match: &LabelMatch) -> bool {
        let Some(label) = self.matches.cell_of(label_match) else { return false };
        self.matches.of_role(FieldRole::IssueDate).any(|day| {
            let cell = self.matches.cell_of(day).filter(|_| day.words.start == 0);
            cell.is_some_and(|cell| {
                let gap = (cell.area.y - label.area.y).abs();
                cell.page == label.page
                    && label_match.words.start == 0
                    && (cell.area.x - label.area.x).abs() < 0.6 * label.area.h
                    && gap < NEXT_LINE * label.area.h
            })
        })
    }
}

/// `2. Abschlagsrechnung Nr. 26/039`: which one it is.
fn is_enumeration_mark(word: &str) -> bool {
    word.strip_suffix('.')
        .is_some_and(|count| count.len() <= 2 && is_digits(count) && !count.is_empty())
}

/// Where the value begins behind a mark and, parted by a bar, the same in another language:
/// `Nr / No.: 11/09`.
pub(super) fn after_second_mark(cell: &TextCell, from: usize) -> usize {
    let folded = |at: usize| cell.words.get(at).map(|word| fold_text(word));
    let bar = cell.words.get(from).is_some_and(|word| matches!(word.as_str(), "/" | "|"));
    let second = folded(from + 1).is_some_and(|word| vocabulary().number_mark.has(&word));
    if bar && second { from + 2 } else { from }
}

fn is_series(word: &str) -> bool {
    word.chars().all(|c| c.is_uppercase() || c.is_ascii_digit())
}

/// `17/06/2024` right behind the label of the number: numbered by the month. Days have other
/// labels.
pub(super) fn number_like_day(words: &[&str]) -> Option<String> {
    let [word] = words else { return None };
    let parts: Vec<&str> = word.split('/').collect();
    let [_, month, year] = parts.as_slice() else { return None };
    let fits = parts.iter().all(|part: &&str| !part.is_empty() && is_digits(part))
        && month.len() <= 2
        && matches!(year.len(), 2 | 4);
    fits.then(|| (*word).to_owned())
}
