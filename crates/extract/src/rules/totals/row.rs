//! Rows that print net amount, tax and total side by side, under any heading. They give candidates;
//! the parent chooses.

use rust_decimal::Decimal;

use super::printed::find_printed;
use super::{AmountCandidate, AmountRole, MAX_LABELLED, TotalAmounts, WHOLE, half};
use crate::rules::layout::{CellLayout, TextCell};
use docmill_formats::notation::number::{self, FoundNumber};

/// A row that ends in a labelled total is one of totals, but a label is better.
const BY_ROW: f32 = 2.0;

/// Net amount and tax of rows that end in a labelled total, which both make.
pub(super) fn add_rows_of_sums<'a>(
    layout: &'a CellLayout,
    candidates: &mut Vec<AmountCandidate<'a>>,
) {
    let totals = candidates.iter().filter(|c| c.role == AmountRole::Gross && c.weight >= BY_ROW);
    let totals: Vec<Decimal> = totals.map(|c| c.value).take(MAX_LABELLED).collect();
    for row in &layout.rows {
        let cells = layout.cells.get(row.clone()).unwrap_or_default();
        let amounts = amounts_of_row(cells, layout);
        let (net, net_cell, tax, tax_cell, total) = match amounts.as_slice() {
            // Each tax and then all of them, as in India: the total is elsewhere.
            [(net, net_cell), taxes @ .., (tax, tax_cell)]
                if taxes.len() > 1
                    && taxes.iter().map(|(one, _)| one.value).sum::<Decimal>() == tax.value =>
            {
                (net, net_cell, tax, tax_cell, net.value + tax.value)
            }
            [.., (net, net_cell), (tax, tax_cell), (total, _)]
                if net.value + tax.value == total.value =>
            {
                (net, net_cell, tax, tax_cell, total.value)
            }
            // The total is in the next row.
            [.., (net, net_cell), (tax, tax_cell)] => {
                (net, net_cell, tax, tax_cell, net.value + tax.value)
            }
            _ => continue,
        };
        let signed = net.value.is_sign_negative() == tax.value.is_sign_negative();
        // A rounding may be between their sum and the total.
        let made = totals.iter().any(|other: &Decimal| (*other - total).abs() < Decimal::ONE)
            && signed
            && !tax.value.is_zero();
        if made && tax.value.abs() <= half(net.value) {
            for (role, amount, cell) in
                [(AmountRole::Net, net, *net_cell), (AmountRole::Vat, tax, *tax_cell)]
            {
                candidates.push(AmountCandidate::new(role, BY_ROW, amount, cell));
            }
        }
    }
}

/// The amounts of money in a row; where it has none, the whole numbers that are alone in their
/// cells: forints and yen have no cents, and tables do not repeat their sign.
fn amounts_of_row<'a>(
    cells: &'a [TextCell],
    layout: &CellLayout,
) -> Vec<(FoundNumber, &'a TextCell)> {
    let money: Vec<(FoundNumber, &TextCell)> =
        cells.iter().flat_map(|cell| money_of_cell(cell, layout)).collect();
    if !money.is_empty() {
        return money;
    }
    cells.iter().filter_map(|cell| Some((whole_of_cell(cell, layout)?, cell))).collect()
}

/// The whole number that a cell holds, and nothing else.
pub(super) fn whole_of_cell(cell: &TextCell, layout: &CellLayout) -> Option<FoundNumber> {
    let words = cell.all_words();
    number::grouped_whole(&words).or_else(|| {
        let found = layout.numbers_in(&words).into_iter().next()?;
        (found.words == (0..words.len()) && found.decimals == 0 && !found.percent).then_some(found)
    })
}

fn money_of_cell<'a>(
    cell: &'a TextCell,
    layout: &CellLayout,
) -> impl Iterator<Item = (FoundNumber, &'a TextCell)> + use<'a> {
    let words = cell.all_words();
    let found = layout.numbers_in(&words).into_iter();
    found.filter(|amount| amount.is_money()).map(move |amount| (amount, cell))
}

/// The row that sums up the net amount, tax and total of the rows above it, where the chosen three
/// are one of those: `[net, tax, total]`.
pub(super) fn sum_of_rows<'a>(
    layout: &'a CellLayout,
    chosen: &TotalAmounts<'_>,
) -> Option<[AmountCandidate<'a>; 3]> {
    let amounts = [&chosen.net, &chosen.vat, &chosen.gross];
    let [Some(net), Some(tax), Some(total)] = amounts.map(Option::as_ref) else { return None };
    let chosen = chosen.adds_up.then_some([net.value, tax.value, total.value])?;
    let rows = layout.rows.iter().filter_map(|row| {
        let cells = layout.cells.get(row.clone()).unwrap_or_default();
        let amounts = amounts_of_row(cells, layout);
        let [.., net, tax, total] = amounts.as_slice() else { return None };
        let made = net.0.value + tax.0.value == total.0.value && tax.0.value >= Decimal::ZERO;
        made.then(|| [net.clone(), tax.clone(), total.clone()])
    });
    let mut above = [Decimal::ZERO; 3];
    let mut known = false;
    for row in rows {
        let values = row.each_ref().map(|(amount, _)| amount.value);
        if known && values == above && values != chosen {
            let [net, tax, total] = row;
            let roles =
                [(AmountRole::Net, net), (AmountRole::Vat, tax), (AmountRole::Gross, total)];
            return Some(
                roles
                    .map(|(role, (amount, cell))| AmountCandidate::new(role, WHOLE, &amount, cell)),
            );
        }
        known |= values == chosen;
        for (sum, value) in above.iter_mut().zip(values) {
            *sum += value;
        }
    }
    None
}

/// The printed total that rows of net amount, tax and total by rate make together, where the chosen
/// three are only one of those: `[net, tax, total]`, the first two not printed as such.
pub(super) fn whole_of_rows<'a>(
    layout: &'a CellLayout,
    chosen: &TotalAmounts<'_>,
    candidates: &[AmountCandidate<'a>],
) -> Option<[AmountCandidate<'a>; 3]> {
    let amounts = [&chosen.net, &chosen.vat, &chosen.gross];
    let [Some(net), Some(tax), Some(total)] = amounts.map(Option::as_ref) else { return None };
    let chosen = chosen.adds_up.then_some([net.value, tax.value, total.value])?;
    let rows = layout.rows.iter().map(|row| {
        let cells = layout.cells.get(row.clone()).unwrap_or_default();
        let amounts = amounts_of_row(cells, layout);
        let [.., (net, _), (tax, _), (total, _)] = amounts.as_slice() else { return None };
        let values = [net.value, tax.value, total.value];
        (net.value + tax.value == total.value && tax.value >= Decimal::ZERO).then_some(values)
    });
    let rows: Vec<Option<[Decimal; 3]>> = rows.collect();
    let table = rows.split(Option::is_none).find(|table| table.contains(&Some(chosen)))?;
    let mut sums = [Decimal::ZERO; 3];
    for row in table.iter().flatten() {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    let [net, tax, total] = sums;
    let labelled = |c: &&AmountCandidate<'a>| {
        c.role == AmountRole::Gross && c.weight >= WHOLE && c.value == total && total > chosen[2]
    };
    let labelled = candidates.iter().find(labelled).cloned();
    // The sum of all rows of the table, printed elsewhere, is the total whatever its name.
    let whole = labelled.or_else(|| {
        let mut amounts = layout.amounts().filter(|_| total > chosen[2]);
        let (amount, cell) = amounts.find(|(amount, _)| amount.value == total)?;
        Some(AmountCandidate::new(AmountRole::Gross, WHOLE, amount, cell))
    })?;
    let roles = [(AmountRole::Net, net), (AmountRole::Vat, tax), (AmountRole::Gross, total)];
    Some(roles.map(|(role, value)| AmountCandidate { role, value, ..whole.clone() }))
}

/// `Totals   846.20   104.42` under columns of taxed amounts and taxes, with the sum of both
/// elsewhere.
pub(super) fn add_net_and_tax<'a>(
    layout: &CellLayout,
    found: &[(FoundNumber, &'a TextCell)],
    candidates: &mut Vec<AmountCandidate<'a>>,
) -> bool {
    let [net, tax] = found else { return false };
    let total = net.0.value + tax.0.value;
    let money = net.0.is_money() && tax.0.is_money() && tax.0.value > Decimal::ZERO;
    let made = money && tax.0.value <= half(net.0.value) && find_printed(layout, total).is_some();
    if made {
        let roles = [
            (AmountRole::Net, net.0.value, net.1),
            (AmountRole::Vat, tax.0.value, tax.1),
            (AmountRole::Gross, total, tax.1),
        ];
        candidates.extend(roles.map(|(role, value, cell)| AmountCandidate {
            role,
            weight: WHOLE,
            value,
            currency: net.0.currency(),
            cell,
        }));
    }
    made
}

/// Beside the label of a net amount the tax and the total as well: all three, by their sum.
pub(super) fn add_row_of_net<'a>(
    found: &[(FoundNumber, &'a TextCell)],
    candidates: &mut Vec<AmountCandidate<'a>>,
) -> bool {
    let [.., net, tax, total] = found else { return false };
    let made = net.0.value + tax.0.value == total.0.value && !tax.0.value.is_zero();
    if made {
        let roles = [(AmountRole::Net, net), (AmountRole::Vat, tax), (AmountRole::Gross, total)];
        candidates.extend(
            roles.map(|(role, (amount, cell))| AmountCandidate::new(role, WHOLE, amount, cell)),
        );
    }
    made
}
