//! What a page prints between net amount with tax and the total: shipping, a tax of the town, tax that
//! the payer withholds. Which amounts are taken is the parent's choice.

use rust_decimal::Decimal;

use super::{TOLERANCE, amounts_beside};
use crate::extract::rules::abs_close;
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
