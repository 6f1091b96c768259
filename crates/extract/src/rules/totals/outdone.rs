//! Alternatives to the chosen total: larger amounts with its label, and the sum of taxes by rate.

use rust_decimal::Decimal;

use super::charges::PrintedRests;
use super::printed::is_beside_rate;
use super::tax_table::{is_made_by_rates, taxes_that_make};
use super::{AmountCandidate, AmountRole, MAX_LABELLED, TotalAmounts, WHOLE};
use crate::rules::layout::{CellLayout, TextCell};
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::fold_text;

/// The candidate that equals the taxes by rate with their bases, where the chosen total is another
/// one.
pub(super) fn total_by_rates(
    chosen: &TotalAmounts<'_>,
    candidates: &[AmountCandidate<'_>],
    rests: &PrintedRests<'_>,
) -> Option<Decimal> {
    let own = chosen.gross.as_ref().map(|gross| gross.value)?;
    let made = |value: &Decimal| {
        let mut sums = rests.before_charges(*value);
        sums.any(|sum| is_made_by_rates(sum, rests))
    };
    let totals = candidates.iter().filter(|c| c.role == AmountRole::Gross && c.weight >= WHOLE);
    let mut totals = totals.map(|c| c.value).filter(|value| *value > own).take(MAX_LABELLED);
    totals.find(made).filter(|_| taxes_that_make(own, rests).is_none())
}

/// The labelled total of which the chosen one is the part of one rate: larger by an amount in the
/// row of another rate. Amounts owed before have no rate.
pub(super) fn whole_of_rate(
    chosen: &TotalAmounts<'_>,
    candidates: &[AmountCandidate<'_>],
    layout: &CellLayout,
) -> Option<Decimal> {
    let part = chosen.gross.as_ref().map(|gross| gross.value)?;
    let labelled = candidates.iter().filter(|c| c.role == AmountRole::Gross && c.value > part);
    let named = labelled.filter(|c| c.weight >= WHOLE).map(|c| c.value).take(MAX_LABELLED);
    named.filter(|whole| is_beside_rate(layout, whole - part)).max()
}

/// Whether another labelled total is larger, by more than a rounding and other than by the amount
/// owed before.
pub(super) fn is_outdone(
    chosen: &TotalAmounts<'_>,
    candidates: &[AmountCandidate<'_>],
    layout: &CellLayout,
) -> bool {
    let rounding = Decimal::new(5, 2);
    chosen.gross.as_ref().is_some_and(|gross| {
        candidates.iter().any(|c| {
            c.role == AmountRole::Gross
                && c.weight >= 5.0
                && c.value > gross.value + rounding
                && !is_owed_before(layout, c.value - gross.value)
        })
    })
}

/// Whether an amount is in a row about an amount owed before this invoice.
fn is_owed_before(layout: &CellLayout, amount: Decimal) -> bool {
    layout.amounts().filter(|(printed, _)| printed.value == amount).any(|(_, cell)| {
        let row = layout.row_cells(cell.row).iter();
        let words: Vec<String> = row.map(TextCell::joined_text).collect();
        vocabulary().owed_before.is_within(&fold_text(&words.join(" ")))
    })
}

/// Whether the chosen sum has no label of a total and is one rate's part of a table, while a larger
/// amount has the label and is printed again where it was paid.
pub(super) fn is_unnamed_part(
    chosen: &TotalAmounts<'_>,
    candidates: &[AmountCandidate<'_>],
    layout: &CellLayout,
) -> bool {
    let Some(part) = chosen.gross.as_ref().map(|gross| gross.value) else { return false };
    let totals = || candidates.iter().filter(|c| c.role == AmountRole::Gross);
    let named = totals().any(|c| c.value == part && c.weight >= 1.0);
    !named
        && totals()
            .any(|c| c.weight >= WHOLE && c.value > part && is_printed_again(layout, c.value))
}

fn is_printed_again(layout: &CellLayout, value: Decimal) -> bool {
    layout.amounts().filter(|(amount, _)| amount.value == value).count() > 1
}
