//! Amounts between net with tax and the total: shipping, a city tax, withheld tax. The parent
//! chooses among them.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::{AmountCandidate, AmountRole, MAX_LABELLED, TOLERANCE, amounts_beside};
use crate::rules::characters::count_letters;
use crate::rules::label_matches::LabelMatches;
use crate::rules::layout::{CellLayout, TextCell};
use crate::rules::vocabulary::vocabulary;
use crate::rules::{FoundValue, abs_close};
use docmill_formats::notation::fold_text;

/// Labelled charges that are added up.
const MAX_CHARGES: usize = 6;

/// Each printed charge, and all of them together; withheld amounts are negative.
fn printed_charges(matches: &LabelMatches<'_>) -> Vec<Decimal> {
    let beside = |section: &'static str| {
        let labels = matches.leading(section);
        labels.filter_map(move |label_match| {
            let (amount, _) = amounts_beside(matches, label_match).0.pop()?;
            (amount.is_money() && !amount.value.is_zero()).then_some(amount.value)
        })
    };
    let withheld = beside("withheld").map(|value| -value.abs());
    let mut all: Vec<Decimal> = beside("charge").chain(withheld).take(MAX_CHARGES).collect();
    let together: Decimal = all.iter().sum();
    if all.len() > 1 {
        all.push(together);
    }
    all
}

/// Rounding is less than the smallest coin or note: five forints.
const MAX_ROUNDING: Decimal = Decimal::from_parts(5, 0, 0, false, 0);

/// A sum with a charge in it is no better than one without that has a weaker label.
const CHARGED: f32 = 3.0;

/// Printed amounts between net with tax and gross.
pub(super) struct PrintedRests<'a> {
    pub(super) layout: &'a CellLayout,
    /// Nothing, or a printed rounding with either sign.
    roundings: Vec<Decimal>,
    /// Labelled charges.
    charges: Vec<Decimal>,
    /// The rows labelled as charges or reductions.
    rows: BTreeSet<usize>,
}

impl<'a> PrintedRests<'a> {
    pub(super) fn new(matches: &LabelMatches<'a>) -> Self {
        let rows = matches.layout.rows.iter().filter_map(|row| {
            let last = matches.layout.cells.get(row.clone())?.last()?;
            is_no_tax(matches, last).then_some(last.row)
        });
        Self {
            layout: matches.layout,
            roundings: possible_roundings(matches),
            charges: printed_charges(matches),
            rows: rows.collect(),
        }
    }

    /// Whether a row is labelled as a charge or a reduction: its rate is no tax rate.
    pub(super) fn is_own_row(&self, row: usize) -> bool {
        self.rows.contains(&row)
    }

    /// A total, and the same without each charge.
    pub(super) fn before_charges(&self, gross: Decimal) -> impl Iterator<Item = Decimal> {
        std::iter::once(gross).chain(self.charges.iter().map(move |charge| gross - charge))
    }

    /// Whether a printed rounding makes the total of an amount.
    pub(super) fn is_rounded(&self, made: Decimal, gross: Decimal) -> bool {
        made != gross && self.roundings.contains(&(gross - made))
    }

    /// The cost of making a third amount from two: zero without a charge between them.
    pub(super) fn cost_between(&self, made: Decimal, gross: Decimal) -> Option<f32> {
        let within =
            |rests: &[Decimal]| rests.iter().any(|rest| abs_close(made + rest, gross, TOLERANCE));
        if within(&self.roundings) {
            return Some(0.0);
        }
        within(&self.charges).then_some(CHARGED)
    }
}

/// Nothing, or a printed rounding with either sign.
pub(super) fn possible_roundings(matches: &LabelMatches<'_>) -> Vec<Decimal> {
    let mut all = vec![Decimal::ZERO];
    for label_match in matches.of_field("rounding") {
        let (amounts, _) = amounts_beside(matches, label_match);
        let small = amounts.last().map(|(amount, _)| amount.value.abs());
        let small = small.filter(|value| *value < MAX_ROUNDING);
        all.extend(small.into_iter().flat_map(|value| [value, -value]));
    }
    all
}

/// Whether a row begins with the label of a charge.
pub(super) fn is_charge(matches: &LabelMatches<'_>, cell: &TextCell) -> bool {
    let row = matches.layout.rows.get(cell.row).cloned().unwrap_or_default();
    let first = row.start;
    matches.in_cells(row).any(|label_match| {
        label_match.cell == first && label_match.words.start == 0 && label_match.field == "charge"
    })
}

/// Whether a row is labelled as a charge or a reduction: its amounts are no taxes, whatever their
/// ratio.
pub(super) fn is_no_tax(matches: &LabelMatches<'_>, cell: &TextCell) -> bool {
    is_charge(matches, cell) || is_reduction(matches.layout, cell)
}

/// Letters of a word beside an amount that is no currency.
const MIN_WORD_LETTERS: usize = 4;

/// `Member disc 10 %   -2.60`: the words left of an amount, or before it in its cell.
fn is_reduction(layout: &CellLayout, cell: &TextCell) -> bool {
    let row = layout.row_cells(cell.row).iter().rev();
    let mut texts = row
        .skip_while(|other| !std::ptr::eq(*other, cell))
        .map(|other| fold_text(&other.joined_text()));
    texts
        .find(|text: &String| count_letters(text) >= MIN_WORD_LETTERS)
        .is_some_and(|text| vocabulary().reduction.is_within(&text))
}

/// `Subtotal 26.00, Discount -2.60, Total 23.40`: whether a labelled sum is the total before a
/// reduction.
pub(super) fn is_net_reduced(
    layout: &CellLayout,
    candidates: &[AmountCandidate<'_>],
    total: &FoundValue<Decimal>,
) -> bool {
    let sums = candidates
        .iter()
        .filter(|c| c.role == AmountRole::Net && c.weight >= 5.0 && c.value > total.value);
    sums.take(MAX_LABELLED).any(|sum| {
        let off = sum.value - total.value;
        layout.amounts().any(|(amount, cell)| {
            amount.value.abs() == off && cell.row > sum.cell.row && is_reduction(layout, cell)
        })
    })
}

/// Of amounts that make the total with a printed charge those that make it without: a table of
/// rates prints the tax of one of them beside a label, and all taxes beside the total.
pub(super) fn without_charge<'c, 'a>(
    [net, vat, gross]: [&'c AmountCandidate<'a>; 3],
    candidates: &'c [AmountCandidate<'a>],
    rests: &PrintedRests<'a>,
) -> [&'c AmountCandidate<'a>; 3] {
    let charged = rests.cost_between(net.value + vat.value, gross.value) == Some(CHARGED);
    let whole = candidates
        .iter()
        .find(|one: &&AmountCandidate<'_>| {
            one.role == AmountRole::Vat && net.value + one.value == gross.value
        })
        .filter(|_| charged);
    // In one row with the other two.
    [
        net,
        whole.filter(|one: &&AmountCandidate<'_>| one.cell.row == net.cell.row).unwrap_or(vat),
        gross,
    ]
}
