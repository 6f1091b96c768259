//! Sums of a column of amounts: an unlabelled total alone under them, and a total that they confirm
//! where their lines were not read.

use rust_decimal::Decimal;

use super::{AmountCandidate, AmountRole, WHOLE};
use crate::rules::FoundValue;
use crate::rules::label_matches::{LabelMatch, LabelMatches};
use crate::rules::layout::{CellLayout, TextCell};
use docmill_formats::notation::number::FoundNumber;

/// Amounts of a column that are summed up.
const MAX_SUMMED: usize = 60;

/// Amounts alone in their rows that may be such a sum, from the last one on: for each the cells
/// over it are looked through, and an enemy's page may have tens of thousands.
const MAX_SUMS: usize = 200;

/// Lines of height that a sign of money behind the sum may set it aside.
const ASIDE: f32 = 2.0;

/// Adds the sum alone in its row, right under its amounts. Those are no totals, whatever their
/// heading.
pub(super) fn add_sum_of_column<'a>(
    matches: &LabelMatches<'a>,
    candidates: &mut Vec<AmountCandidate<'a>>,
) {
    let alone = matches
        .layout
        .cells
        .iter()
        .rev()
        .filter(|cell: &&TextCell| matches.layout.row_cells(cell.row).len() == 1);
    let mut sums =
        alone.filter_map(|cell| Some((cell, lone_amount(cell, matches.layout)?))).take(MAX_SUMS);
    let found = sums.find_map(|(cell, amount)| {
        Some((made_of(matches.layout, cell, amount.value)?, amount, cell))
    });
    let Some((parts, amount, cell)) = found else { return };
    let is_part =
        |one: &AmountCandidate<'_>| parts.iter().any(|part| std::ptr::eq(*part, one.cell));
    candidates.retain(|one| one.role != AmountRole::Gross || one.weight >= WHOLE || !is_part(one));
    candidates.push(AmountCandidate::new(AmountRole::Gross, WHOLE, &amount, cell));
}

/// Whether an amount is the sum of those right over it in its column, none of which is a sum
/// itself.
pub(in super::super) fn is_sum_of_column(
    matches: &LabelMatches<'_>,
    sum: &FoundValue<Decimal>,
) -> bool {
    let (layout, value) = (matches.layout, sum.value.abs());
    let is_printed = |cell: &TextCell| {
        let words = cell.all_words();
        let mut amounts = layout.numbers_in(&words).into_iter();
        amounts.any(|amount| amount.is_money() && amount.value.abs() == value)
    };
    let own = layout.cells.iter().rev().find(|cell: &&TextCell| {
        (cell.page, cell.line) == (sum.page, sum.line) && is_printed(cell)
    });
    let parts = own.and_then(|cell| made_of(layout, cell, value));
    parts.is_some_and(|parts| {
        parts.iter().all(|cell: &&TextCell| {
            let row = layout.rows.get(cell.row).cloned().unwrap_or_default();
            !matches.in_cells(row).any(LabelMatch::is_sum)
        })
    })
}

/// The amount of money that a cell holds, and nothing else.
fn lone_amount(cell: &TextCell, layout: &CellLayout) -> Option<FoundNumber> {
    let words = cell.all_words();
    let amount = layout.numbers_in(&words).into_iter().next()?;
    (amount.is_money() && amount.words == (0..words.len())).then_some(amount)
}

/// The amounts over a sum in its column, two at least, that make it.
fn made_of<'a>(
    layout: &'a CellLayout,
    sum: &TextCell,
    value: Decimal,
) -> Option<Vec<&'a TextCell>> {
    let in_column = |cell: &&TextCell| {
        cell.page == sum.page
            && cell.row < sum.row
            && (cell.area.right() - sum.area.right()).abs() < ASIDE * sum.area.h
            && cell.overlap_x(sum) > 0.0
    };
    let (mut parts, mut left) = (Vec::new(), value);
    for cell in layout.cells.iter().rev().filter(in_column).take(MAX_SUMMED) {
        let Some(amount) = lone_amount(cell, layout) else { break };
        left -= amount.value;
        parts.push(cell);
        if left <= Decimal::ZERO {
            break;
        }
    }
    (left.is_zero() && parts.len() > 1).then_some(parts)
}
