//! What a page prints between net amount with tax and the total: shipping, a tax of the town, tax that
//! the payer withholds. Which amounts are taken is the parent's choice.

use rust_decimal::Decimal;

use super::amounts_beside;
use crate::extract::rules::spots::LabelMatches;
use docmill_formats::notation::number::DecimalSeparator;

/// Labelled charges that are added up.
const MOST_CHARGES: usize = 6;

/// Each printed charge, and all of them together; what is withheld is less than nothing.
pub(super) fn printed_charges(
    spots: &LabelMatches<'_>,
    mark: Option<DecimalSeparator>,
) -> Vec<Decimal> {
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
