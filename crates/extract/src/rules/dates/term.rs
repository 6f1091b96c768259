//! Terms of payment in sentences. The due day is the one as many days after the issue as the page
//! counts, the day behind `by` on a line about paying, or the day on which the money is collected.

use crate::rules::characters::has_digit;
use crate::rules::layout::{CellLayout, TextCell};
use crate::rules::vocabulary::{FoldedWords, vocabulary};
use docmill_formats::notation::{currency, fold_text};

/// Terms that are looked for: less is a time of delivery, more a contract's.
const TERMS: std::ops::RangeInclusive<i64> = 5..=120;

/// The numbers of days that the page counts outside of its rows with amounts.
pub(super) fn count_days(layout: &CellLayout) -> Vec<i64> {
    let cells = layout.cells.iter().filter(|cell| !layout.is_on_amount_row(cell));
    let counted = cells.flat_map(|cell| {
        cell.folded.windows(2).filter_map(|pair| match pair {
            [(number, _), (word, _)] if vocabulary().day.has(word) => number.parse().ok(),
            _ => None,
        })
    });
    counted.filter(|days| TERMS.contains(days)).collect()
}

/// Whether a sentence asks for money by the day that begins behind `before` in a cell, or announces
/// its collection on that day.
pub(super) fn is_to_pay_on(layout: &CellLayout, cell: usize, before: &str) -> bool {
    let folded = fold_text(before);
    let mut words = folded.split(' ').rev().skip_while(|word| vocabulary().by_the.has(word));
    let by = words.next().is_some_and(|word| vocabulary().by.has(word));
    // `1 May to 3 May`, `from 1 May until 3 May`: the end of a period; but not `CHF 148.00 by 3
    // May`.
    let period = words.next().is_some_and(has_digit);
    let priced = before.split_whitespace().any(|word| currency::exact_currency(word).is_some());
    (by && (priced || !period) && speaks_of(layout, cell, &folded, &vocabulary().paying))
        || is_collected_on(layout, cell, before)
}

/// Whether the text between two days is a discount for paying by the first: ` mit 2 % Skonto, bis
/// `.
pub(super) fn is_paid_early(between: &str) -> bool {
    let folded = fold_text(between);
    between.contains('%') && folded.split(' ').any(|word| vocabulary().early.has(word))
}

/// Whether a sentence announces the collection of money on the day that begins behind `before`.
pub(super) fn is_collected_on(layout: &CellLayout, cell: usize, before: &str) -> bool {
    let folded = fold_text(before);
    let on = folded.rsplit(' ').next().is_some_and(|word| vocabulary().on.has(word));
    on && speaks_of(layout, cell, &folded, &vocabulary().collecting)
}

/// Whether a word of the sentence begins as one of `fronts`; `before`: the text before its day,
/// folded.
fn speaks_of(layout: &CellLayout, cell: usize, before: &str, fronts: &FoldedWords) -> bool {
    // `We collect` over `£41.00 on 30 July`: no line begins with its amount.
    let begun_above = before.split(' ').rev().skip(1).all(has_digit);
    let line = fold_text(&text_of_sentence(layout, cell, begun_above));
    let line = format!(" {line}");
    fronts.iter().any(|front| line.contains(&format!(" {front}")))
}

/// Words of the shortest line that fills its column, so that its sentence may go on in the next
/// one.
const FULL_LINE: usize = 8;

/// The text of a cell with the line above if the sentence began there, and the line below if it
/// continues there.
fn text_of_sentence(layout: &CellLayout, cell: usize, begun_above: bool) -> String {
    let Some(line) = layout.cells.get(cell) else { return String::new() };
    let first_of = |row: Option<usize>| row.and_then(|row| layout.row_cells(row).first());
    let follows = |upper: &TextCell, lower: &TextCell| {
        let (above, below) = (upper.area, lower.area);
        upper.page == lower.page
            && (above.x - below.x).abs() < 0.6 * below.h
            && (-0.5 * below.h..1.2 * below.h).contains(&(below.y - above.bottom()))
    };
    let text = line.joined_text();
    let open = line.words.len() >= FULL_LINE && !text.ends_with('.');
    let above = first_of(line.row.checked_sub(1)).filter(|it| begun_above && follows(it, line));
    let below = first_of(Some(line.row + 1)).filter(|it| open && follows(line, it));
    let [above, below] = [above, below].map(|it| it.map(TextCell::joined_text).unwrap_or_default());
    format!("{above} {text} {below}")
}
