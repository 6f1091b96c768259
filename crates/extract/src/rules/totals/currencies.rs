//! Totals in two currencies: the document's own, and their value in that of the country or of the
//! payer. The stated currency is the document's, else the first.

use super::{AmountCandidate, AmountRole};
use crate::rules::label_matches::LabelMatches;
use crate::rules::layout::{CellLayout, TextCell};
use crate::rules::money::labelled_currency;
use docmill_formats::notation::currency;
use docmill_formats::notation::number::FoundNumber;

/// Cells over an amount among which the heading of its column is looked for: a long table's.
const MAX_CELLS: usize = 400;

/// Names the currencies that head amounts, and drops the amounts in another one than the
/// document's.
pub(super) fn keep_own_currency(
    matches: &LabelMatches<'_>,
    candidates: &mut Vec<AmountCandidate<'_>>,
) {
    for one in candidates.iter_mut().filter(|one| one.currency.is_none()) {
        one.currency = currency_over(matches.layout, one.cell);
    }
    let totals = candidates.iter().filter(|one| one.role == AmountRole::Gross);
    let named = totals.filter_map(|one| Some((one.cell.page, one.cell.row, one.currency?)));
    let named: Vec<(usize, usize, &'static str)> = named.collect();
    let first = named.iter().min_by_key(|(page, row, _)| (*page, *row)).map(|(.., code)| *code);
    let Some(first) = first.filter(|first| named.iter().any(|(.., code)| code != first)) else {
        return;
    };
    let own = stated_currency(matches).filter(|own| named.iter().any(|(.., code)| code == own));
    let own = own.unwrap_or(first);
    candidates.retain(|one| one.currency.is_none_or(|code| code == own));
}

/// Of amounts in one row under headings of several currencies, those in the stated one.
pub(super) fn keep_stated_column(
    matches: &LabelMatches<'_>,
    found: &mut Vec<(FoundNumber, &TextCell)>,
) {
    let over = |cell: &TextCell| currency_over(matches.layout, cell);
    let [.., (_, a), (_, b)] = found.as_slice() else { return };
    let several = matches!((over(a), over(b)), (Some(a), Some(b)) if a != b);
    let Some(own) = Some(()).filter(|()| several).and_then(|()| stated_currency(matches)) else {
        return;
    };
    if found.iter().any(|(_, cell)| over(cell) == Some(own)) {
        found.retain(|(_, cell)| over(cell) == Some(own));
    }
}

fn stated_currency(matches: &LabelMatches<'_>) -> Option<&'static str> {
    labelled_currency(matches).map(|found| found.value)
}

/// The currency that is the heading of the column of an amount.
fn currency_over(layout: &CellLayout, amount: &TextCell) -> Option<&'static str> {
    let from = layout.rows.get(amount.row)?.start;
    let above = layout.cells.get(..from)?.iter().rev().take(MAX_CELLS);
    let mut column = above.filter(|cell| cell.page == amount.page && cell.overlap_x(amount) > 0.0);
    column.find_map(|cell| {
        let [word] = cell.words.as_slice() else { return None };
        currency::exact_currency(word).filter(|_| !currency::is_also_word(word))
    })
}
