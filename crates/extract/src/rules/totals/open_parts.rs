//! Unlabelled amounts near a total that relate to it as a net amount and a tax: the absence of both
//! is then uncertain.

use rust_decimal::Decimal;

use crate::rules::label_matches::LabelMatches;
use crate::rules::layout::TextCell;
use crate::rules::{FoundValue, abs_close};

/// Rows above and below a total that may hold its parts.
const ROWS_ABOVE: usize = 6;
const ROWS_BELOW: usize = 4;

/// Rows above a total that are looked at for the lines it is the sum of.
const MAX_ROWS: usize = 60;

/// A cent that rounding may add.
const ROUNDING: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

/// Rates of taxes on turnover, in tenths of a percent.
const RATES: [u16; 28] = [
    38, 50, 55, 60, 70, 77, 80, 81, 90, 100, 110, 120, 130, 135, 140, 150, 160, 170, 180, 190, 200,
    210, 220, 230, 240, 250, 255, 270,
];

/// The parts of a total that may be printed without a known label.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct OpenParts {
    pub(in super::super) net: bool,
    pub(in super::super) tax: bool,
}

/// Finds amounts near the total that could be its net amount or its tax; `lines`: the amounts of
/// the document's lines.
pub(in super::super) fn find_open_parts(
    matches: &LabelMatches<'_>,
    gross: &FoundValue<Decimal>,
    lines: &[Decimal],
) -> OpenParts {
    let (layout, total) = (matches.layout, gross.value);
    let own = layout
        .cells
        .iter()
        .find(|cell: &&TextCell| (cell.page, cell.line) == (gross.page, gross.line));
    let Some(own) = own.filter(|_| !matches.style.till_sums) else { return OpenParts::default() };
    let above = amounts_of_rows(matches, own, own.row.saturating_sub(MAX_ROWS)..own.row);
    let below = amounts_of_rows(matches, own, own.row + 1..own.row + 1 + ROWS_BELOW);
    let near = above.get(above.len().saturating_sub(ROWS_ABOVE)..).unwrap_or_default();
    // The amounts right over the parts are lines of that sum; two lines may match by accident.
    let summed = |sums: &[Decimal], of: &AmountRow| {
        let lines = above.iter().rev().skip_while(|row| row.row >= of.row);
        let mut sum = Decimal::ZERO;
        lines.into_iter().any(|row| {
            sum += row.amount;
            sums.contains(&sum)
        })
    };
    let pair = near.iter().any(|net| {
        let tax = total - net.amount;
        let made = RATES.iter().any(|rate| abs_close(tax_of(net.amount, *rate), tax, ROUNDING));
        tax > Decimal::ZERO
            && made
            && near.iter().any(|row| row.amount == tax)
            && summed(&[net.amount, total], net)
    });
    let included = below.iter().filter(|row| !row.named).any(|row| {
        !lines.contains(&row.amount)
            && RATES.iter().any(|rate| abs_close(tax_within(total, *rate), row.amount, ROUNDING))
    });
    OpenParts { net: pair, tax: pair || included }
}

fn tax_of(net: Decimal, rate: u16) -> Decimal {
    net * Decimal::from(rate) / Decimal::ONE_THOUSAND
}

/// Whether a usual rate makes a tax of a total that includes it.
pub(super) fn is_usual_within(gross: Decimal, tax: Decimal) -> bool {
    RATES.iter().any(|rate| abs_close(tax_within(gross, *rate), tax, ROUNDING))
}

fn tax_within(gross: Decimal, rate: u16) -> Decimal {
    let rate = Decimal::from(rate);
    gross * rate / (Decimal::ONE_THOUSAND + rate)
}

/// The last amount of a row.
struct AmountRow {
    amount: Decimal,
    row: usize,
    /// The row has a label.
    named: bool,
}

/// The last amount of each row of the total's page.
fn amounts_of_rows(
    matches: &LabelMatches<'_>,
    total: &TextCell,
    rows: std::ops::Range<usize>,
) -> Vec<AmountRow> {
    let layout = matches.layout;
    let rows = rows.filter_map(|row| Some((row, layout.rows.get(row)?)));
    let amounts = rows.filter_map(|(at, row)| {
        let cells = layout.cells.get(row.clone())?;
        let own = cells.iter().rev().filter(|cell| cell.page == total.page);
        let amount = own.into_iter().find_map(|cell| {
            let numbers = layout.numbers_of(cell);
            numbers.into_iter().rfind(|one| one.is_money() && !one.percent)
        })?;
        let named = matches.in_cells(row.clone()).next().is_some();
        Some(AmountRow { amount: amount.value, row: at, named })
    });
    amounts.collect()
}
