//! Amounts of money wherever they are printed, whatever stands beside them. What they are is the
//! parent's to tell.

use rust_decimal::Decimal;

use crate::extract::rules::layout::{CellLayout, TextCell};
use docmill_formats::notation::number::{self, DecimalSeparator, FoundNumber};

/// The largest amount of money on the document.
pub(in super::super) fn largest_amount(
    layout: &CellLayout,
    mark: Option<DecimalSeparator>,
) -> Option<Decimal> {
    printed_amounts(layout, mark).map(|(amount, _)| amount.value.abs()).max()
}

/// Every amount of money, with the cell it stands in.
pub(super) fn printed_amounts(
    layout: &CellLayout,
    mark: Option<DecimalSeparator>,
) -> impl Iterator<Item = (FoundNumber, &TextCell)> {
    layout.cells.iter().flat_map(move |cell| {
        let words = cell.words_in(0..cell.words.len());
        let amounts = number::find_numbers(&words, mark).into_iter();
        let money = amounts.filter(|amount| amount.is_money() && !amount.percent);
        money.map(move |amount| (amount, cell)).collect::<Vec<_>>()
    })
}

/// Where `value` is printed as an amount.
pub(super) fn find_printed(
    layout: &CellLayout,
    value: Decimal,
    mark: Option<DecimalSeparator>,
) -> Option<&TextCell> {
    layout.cells.iter().find(|cell| {
        let words = cell.words_in(0..cell.words.len());
        number::find_numbers(&words, mark).iter().any(|a| a.value == value && a.is_money())
    })
}

/// Whether an amount is printed in a row with a percentage, as in a table of taxes by rate.
pub(super) fn stands_beside_rate(
    layout: &CellLayout,
    amount: Decimal,
    mark: Option<DecimalSeparator>,
) -> bool {
    layout.rows.iter().any(|row| {
        let cells = layout.cells.get(row.clone()).unwrap_or_default();
        let words: Vec<&str> =
            cells.iter().flat_map(|cell| &cell.words).map(String::as_str).collect();
        let numbers = number::find_numbers(&words, mark);
        numbers.iter().any(|n| n.percent)
            && numbers.iter().any(|n| n.is_money() && n.value == amount)
    })
}
