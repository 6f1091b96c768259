//! Amounts of money anywhere on the page. The parent decides about their role.

use rust_decimal::Decimal;

use super::charges::possible_roundings;
use super::row::whole_of_cell;
use crate::rules::FoundValue;
use crate::rules::label_matches::{LabelMatch, LabelMatches};
use crate::rules::layout::{CellLayout, TextCell};
use docmill_formats::notation::number::FoundNumber;

/// The largest amount of money on the document.
pub(in super::super) fn largest_amount(layout: &CellLayout) -> Option<Decimal> {
    layout.amounts().map(|(amount, _)| amount.value.abs()).max()
}

/// Rows under a total in which another total may follow.
const ROWS_BELOW: usize = 4;

/// Whether a row without a known label under the total has an amount that is larger than the total,
/// or equal but for cents: the total may be a subtotal of it. A difference equal to a printed
/// rounding does not count, because tables of taxes repeat the unrounded amount.
pub(in super::super) fn has_open_amount_below(
    matches: &LabelMatches<'_>,
    total: &FoundValue<Decimal>,
) -> bool {
    let layout = matches.layout;
    let own = layout.cells.iter().find(|cell| (cell.page, cell.line) == (total.page, total.line));
    let Some(own) = own else { return false };
    let below = (own.row + 1..).take(ROWS_BELOW).filter_map(|row| layout.rows.get(row));
    let mut open = below.filter(|row| matches.in_cells((*row).clone()).next().is_none());
    let roundings = possible_roundings(matches);
    open.any(|row| {
        let cells = layout.cells.get(row.clone()).unwrap_or_default();
        let words: Vec<&str> =
            cells.iter().flat_map(|cell| &cell.words).map(String::as_str).collect();
        let page = cells.first().is_some_and(|cell| cell.page == own.page);
        let numbers = layout.numbers_in(&words).into_iter();
        let mut money = numbers.filter(|number| number.is_money() && !number.percent);
        let total = total.value.abs();
        page && money.any(|number| {
            let value = number.value.abs();
            let rounded = value != total && roundings.contains(&(total - value));
            !rounded && (value > total || value != total && total - value < Decimal::ONE)
        })
    })
}

/// Where `value` is printed as an amount.
pub(super) fn find_printed(layout: &CellLayout, value: Decimal) -> Option<&TextCell> {
    let mut amounts = layout.amounts();
    amounts.find(|(amount, _)| amount.value == value).map(|(_, cell)| cell)
}

/// Whether an amount is in a row with a percentage, as in a table of taxes by rate. An amount
/// without cents is in a cell of its own.
pub(super) fn is_beside_rate(layout: &CellLayout, amount: Decimal) -> bool {
    layout.rows.iter().any(|row| {
        let cells = layout.cells.get(row.clone()).unwrap_or_default();
        let words: Vec<&str> =
            cells.iter().flat_map(|cell| &cell.words).map(String::as_str).collect();
        let numbers = layout.numbers_in(&words);
        numbers.iter().any(|n| n.percent)
            && (numbers.iter().any(|n| n.is_money() && n.value == amount)
                || amount >= Decimal::ONE_HUNDRED
                    && cells.iter().any(|cell| {
                        whole_of_cell(cell, layout).is_some_and(|one| one.value == amount)
                    }))
    })
}

/// Money in the cells right of a label, up to the next label.
pub(super) fn money_right_of<'a>(
    matches: &LabelMatches<'a>,
    label_match: &LabelMatch,
) -> Vec<(FoundNumber, &'a TextCell)> {
    let right = matches.layout.right_of(label_match.cell).iter().enumerate();
    let plain = right.take_while(|(at, _)| !matches.begins_with_label(label_match.cell + 1 + at));
    let amounts = plain.flat_map(|(_, cell)| {
        let found = matches.layout.numbers_of(cell).into_iter();
        found.filter(|amount| amount.is_money()).map(move |amount| (amount, cell))
    });
    amounts.collect()
}

/// The amount that alone begins the row of a label, which ends it: `$2,130.00    SUBTOTAL`.
pub(super) fn money_before<'a>(
    matches: &LabelMatches<'a>,
    label_match: &LabelMatch,
) -> Option<(FoundNumber, &'a TextCell)> {
    let row = matches.layout.row_cells(matches.cell_of(label_match)?.row);
    let [amount, label] = row else { return None };
    let own = matches.cell_of(label_match).is_some_and(|cell| std::ptr::eq(cell, label));
    let words = amount.all_words();
    let numbers = matches.layout.numbers_in(&words);
    let [number] = numbers.as_slice() else { return None };
    let whole = number.words == (0..words.len()) && number.is_money() && !number.percent;
    (own && label_match.words.start == 0 && whole).then(|| (number.clone(), amount))
}
