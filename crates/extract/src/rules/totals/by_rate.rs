//! An unlabelled total: the sum of a labelled tax and the amount over it, if the printed rate makes
//! the tax of that amount.

use rust_decimal::Decimal;

use super::{AmountCandidate, AmountRole, MAX_CANDIDATES, WHOLE};
use crate::rules::abs_close;
use crate::rules::label_matches::LabelMatches;
use crate::rules::layout::TextCell;

/// Weaker than any label.
const MADE: f32 = 0.5;

/// Rounding of a tax, and of a total in coins of five cents.
const ROUNDING: Decimal = Decimal::from_parts(2, 0, 0, false, 2);

/// Rows under a tax that may hold its total.
const ROWS_BELOW: usize = 4;

/// Adds net amount and total of a labelled tax with its rate, where no total has a label.
pub(super) fn add_sums_of_rate<'a>(
    matches: &LabelMatches<'a>,
    candidates: &mut Vec<AmountCandidate<'a>>,
) {
    if candidates
        .iter()
        .any(|c: &AmountCandidate<'_>| c.role == AmountRole::Gross && c.weight >= WHOLE)
    {
        return;
    }
    let printed: Vec<_> = matches.layout.amounts().collect();
    let taxes = candidates.iter().filter(|c| c.role == AmountRole::Vat && !c.value.is_zero());
    let mut found = Vec::new();
    for tax in taxes.take(MAX_CANDIDATES) {
        let row = matches.layout.row_cells(tax.cell.row).iter().flat_map(|cell| &cell.words);
        let words: Vec<&str> = row.map(String::as_str).collect();
        let numbers = matches.layout.numbers_in(&words).into_iter();
        let Some(rate) = numbers.filter(|one| one.percent).map(|one| one.value).next() else {
            continue;
        };
        let is_base = |amount: Decimal, cell: &TextCell| {
            let made = amount.checked_mul(rate).map(|made| made / Decimal::ONE_HUNDRED);
            cell.row <= tax.cell.row
                && amount > tax.value
                && made.is_some_and(|made| abs_close(made, tax.value, ROUNDING))
        };
        let bases = printed.iter().filter(|(amount, cell)| is_base(amount.value, cell));
        let under: Vec<_> = printed
            .iter()
            .filter(|(_, cell)| cell.row > tax.cell.row && cell.row <= tax.cell.row + ROWS_BELOW)
            .collect();
        for (net, net_cell) in bases.take(MAX_CANDIDATES) {
            let sum = net.value + tax.value;
            let total = under.iter().find(|(amount, _)| abs_close(amount.value, sum, ROUNDING));
            let Some((total, cell)) = total else { continue };
            for (role, amount, cell) in
                [(AmountRole::Net, net, *net_cell), (AmountRole::Gross, total, *cell)]
            {
                found.push(AmountCandidate::new(role, MADE, amount, cell));
            }
        }
    }
    candidates.extend(found);
}
