//! How tills print amounts: with a code of the tax behind them, and the tax that a total includes
//! in a row of its own. What it finds is a candidate; which amounts are taken is the parent's choice.

use rust_decimal::Decimal;

use crate::extract::rules::layout::{CellLayout, TextCell};
use crate::extract::rules::spots::LabelMatches;
use crate::extract::rules::{FoundValue, abs_close};
use docmill_formats::notation::number::{self, DecimalSeparator, FoundNumber};

/// What a rate makes of a total that includes it, where both stand in one row: `incl. 6% GST 1.66`.
pub(super) fn included_tax(
    spots: &LabelMatches<'_>,
    gross: Decimal,
    mark: Option<DecimalSeparator>,
) -> Option<FoundValue<Decimal>> {
    let hundred = Decimal::ONE_HUNDRED;
    spots.layout.rows.iter().find_map(|row| {
        let cells = spots.layout.cells.get(row.clone())?;
        let numbers = |cell: &TextCell| {
            let words: Vec<&str> = cell.words.iter().map(|word| without_tax_code(word)).collect();
            number::find_numbers(&words, mark)
        };
        let rates: Vec<Decimal> =
            cells.iter().flat_map(numbers).filter(|n| n.percent).map(|n| n.value).collect();
        let rates =
            rates.into_iter().filter(|rate| *rate >= Decimal::ONE && *rate <= Decimal::from(30));
        let taxes: Vec<Decimal> = rates.map(|rate| gross * rate / (hundred + rate)).collect();
        let is_tax =
            |value: Decimal| taxes.iter().any(|tax| abs_close(*tax, value, Decimal::new(1, 2)));
        cells.iter().find_map(|cell| {
            let found = numbers(cell).into_iter().find(|n| n.is_money() && is_tax(n.value))?;
            Some(FoundValue::new(found.value, true, cell))
        })
    })
}

/// Rows of a receipt that are summed up.
const MOST_SUMMED: usize = 100;

/// The amount that stands alone in its row and is what the rows before it make, two at least.
pub(super) fn sum_under_lines(
    layout: &CellLayout,
    mark: Option<DecimalSeparator>,
) -> Option<(FoundNumber, &TextCell)> {
    let mut above: Vec<Decimal> = Vec::new();
    for row in &layout.rows {
        let cells = layout.cells.get(row.clone())?;
        let last = cells.iter().rev().find_map(|cell| {
            let words: Vec<&str> = cell.words.iter().map(|word| without_tax_code(word)).collect();
            let found = number::find_numbers(&words, mark).pop()?;
            found.is_money().then_some((found, cell))
        });
        let Some((amount, cell)) = last else { continue };
        let lone = cells.len() == 1 && cell.words.len() <= 2;
        let sums = above.iter().rev().take(MOST_SUMMED).scan(Decimal::ZERO, |sum, line| {
            *sum += line;
            Some(*sum)
        });
        if lone && sums.skip(1).any(|sum| sum == amount.value) {
            return Some((amount, cell));
        }
        above.push(amount.value);
    }
    None
}

/// `100.00C`, `1.80SR`: tills print a code of the tax behind an amount.
pub(super) fn without_tax_code(word: &str) -> &str {
    let word = if word.contains('(') { word } else { word.trim_end_matches(')') };
    let amount = word.trim_end_matches(|c: char| c.is_ascii_uppercase());
    let cents = amount
        .rsplit_once('.')
        .is_some_and(|(_, cents)| cents.len() == 2 && cents.chars().all(|c| c.is_ascii_digit()));
    if cents && word.len() <= amount.len() + 2 { amount } else { word }
}
