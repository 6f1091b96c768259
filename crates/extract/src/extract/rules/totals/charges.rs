//! What a page prints between net amount with tax and the total: shipping, a tax of the town, tax that
//! the payer withholds. Which amounts are taken is the parent's choice.

use rust_decimal::Decimal;

use super::{AmountCandidate, AmountRole, MOST_LABELLED, TOLERANCE, amounts_beside};
use crate::extract::rules::abs_close;
use crate::extract::rules::layout::TextCell;
use crate::extract::rules::spots::LabelMatches;
use docmill_formats::notation::number::DecimalSeparator;

/// Labelled charges that are added up.
const MOST_CHARGES: usize = 6;

/// Each printed charge, and all of them together; what is withheld is less than nothing.
fn printed_charges(spots: &LabelMatches<'_>, mark: Option<DecimalSeparator>) -> Vec<Decimal> {
    let beside = |section: &'static str| {
        let labels = spots.of_field(section).filter(|spot| spot.words.start == 0);
        labels.filter_map(move |spot| {
            let (amount, _) = amounts_beside(spots, spot, mark).0.pop()?;
            (amount.is_money() && !amount.value.is_zero()).then_some(amount.value)
        })
    };
    let withheld = beside("withheld").map(|value| -value.abs());
    let mut all: Vec<Decimal> = beside("charge").chain(withheld).take(MOST_CHARGES).collect();
    let together: Decimal = all.iter().sum();
    if all.len() > 1 {
        all.push(together);
    }
    all
}

/// Rounding is less than the smallest coin or note: five forints.
const MOST_ROUNDING: Decimal = Decimal::from_parts(5, 0, 0, false, 0);

/// A sum with a charge in it is no better than one without that has a weaker label.
const CHARGED: f32 = 3.0;

/// What may stand between net with tax and gross.
pub(super) struct PrintedRests {
    /// Nothing, or a printed rounding with either sign.
    roundings: Vec<Decimal>,
    /// Labelled charges.
    charges: Vec<Decimal>,
}

impl PrintedRests {
    pub(super) fn new(spots: &LabelMatches<'_>, mark: Option<DecimalSeparator>) -> Self {
        Self { roundings: possible_roundings(spots, mark), charges: printed_charges(spots, mark) }
    }

    /// What it costs that two amounts make a third: nothing without a charge between them.
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
pub(super) fn possible_roundings(
    spots: &LabelMatches<'_>,
    mark: Option<DecimalSeparator>,
) -> Vec<Decimal> {
    let mut all = vec![Decimal::ZERO];
    for spot in spots.of_field("rounding") {
        let (amounts, _) = amounts_beside(spots, spot, mark);
        let small = amounts.last().map(|(amount, _)| amount.value.abs());
        let small = small.filter(|value| *value < MOST_ROUNDING);
        all.extend(small.into_iter().flat_map(|value| [value, -value]));
    }
    all
}

/// Whether a row begins with the label of a charge.
pub(super) fn is_charge(spots: &LabelMatches<'_>, cell: &TextCell) -> bool {
    let row = spots.layout.rows.get(cell.row).cloned().unwrap_or_default();
    let first = row.start;
    spots
        .in_cells(row)
        .any(|spot| spot.cell == first && spot.words.start == 0 && spot.field == "charge")
}

/// Of amounts that make the total with a printed charge those that make it without: a table of rates prints the tax of
/// one of them beside a label, and all taxes beside the total.
pub(super) fn without_charge<'c, 'a>(
    [net, vat, gross]: [&'c AmountCandidate<'a>; 3],
    candidates: &'c [AmountCandidate<'a>],
    rests: &PrintedRests,
) -> [&'c AmountCandidate<'a>; 3] {
    let charged = rests.cost_between(net.value + vat.value, gross.value) == Some(CHARGED);
    let exact = |one: &&AmountCandidate<'_>| {
        one.role == AmountRole::Vat && net.value + one.value == gross.value
    };
    let whole = candidates.iter().find(exact).filter(|_| charged);
    // In one row with the other two.
    let beside = |one: &&AmountCandidate<'_>| one.cell.row == net.cell.row;
    [net, whole.filter(beside).unwrap_or(vat), gross]
}

/// `Fare 31.42, HST 4.08, Subtotal 35.50, Tip 5.33, Total 40.83`: what a labelled sum is without the labelled tax, where
/// that is printed over both and a charge makes the total of the sum.
pub(super) fn add_net_before_charge<'a>(
    spots: &LabelMatches<'a>,
    mark: Option<DecimalSeparator>,
    candidates: &mut Vec<AmountCandidate<'a>>,
) {
    if !spots.till {
        return;
    }
    let charges = printed_charges(spots, mark);
    let labelled = |role: AmountRole| {
        candidates.iter().filter(move |c| c.role == role && c.weight >= 5.0).take(MOST_LABELLED)
    };
    let totals: Vec<Decimal> = labelled(AmountRole::Gross).map(|c| c.value).collect();
    let sums = labelled(AmountRole::Net)
        .filter(|sum| charges.iter().any(|charge| totals.contains(&(sum.value + charge))));
    let mut found = Vec::new();
    for sum in sums {
        let taxes = labelled(AmountRole::Vat).filter(|tax| tax.cell.row < sum.cell.row);
        for net in taxes.map(|tax| sum.value - tax.value) {
            let mut amounts = spots.layout.amounts(mark);
            let printed = amounts.find(|(one, at)| one.value == net && at.row < sum.cell.row);
            let (value, weight) = (net, sum.weight + 0.5);
            found.extend(printed.map(|(_, cell)| AmountCandidate {
                value,
                weight,
                cell,
                ..sum.clone()
            }));
        }
    }
    candidates.extend(found);
}
