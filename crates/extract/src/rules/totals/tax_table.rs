//! The taxes of a receipt by rate, each in a row with its base. If their sum equals the total, both
//! are right, whatever the labels.

use rust_decimal::Decimal;

use super::charges::PrintedRests;
use super::till::till_numbers;
use crate::rules::abs_close;
use crate::rules::layout::TextCell;
use docmill_formats::notation::number::FoundNumber;

/// Half a cent is lost by rounding, and as much where a till rounds line by line.
const ROUNDING: Decimal = Decimal::from_parts(11, 0, 0, false, 3);

/// No rate of a tax on sales is higher.
const MAX_RATE: Decimal = Decimal::from_parts(30, 0, 0, false, 0);

/// Rows by rate that are tried: every way to read each with every way to read the others.
const MAX_ROWS: usize = 6;

/// Ways to read one row.
const MAX_READINGS: usize = 4;

/// The taxes by rate that make a total.
#[derive(Debug)]
pub(super) struct TaxesByRate<'a> {
    pub(super) net: Decimal,
    pub(super) tax: Decimal,
    /// The cell of the last of them.
    pub(super) cell: &'a TextCell,
}

/// A row with a rate and a tax.
struct RateRow<'a> {
    rate: Decimal,
    /// Net amount and tax: the amount beside the tax may include it.
    readings: Vec<(Decimal, Decimal)>,
    cell: &'a TextCell,
}

/// Whether two rows by rate or more make an amount together: it is the total, whatever its name.
pub(super) fn is_made_by_rates(gross: Decimal, rests: &PrintedRests<'_>) -> bool {
    let rows = rows_by_rate(gross, rests);
    let [first, rest @ ..] = rows.as_slice() else { return false };
    // Net amount with tax of each way to read all of the rows.
    let readings = |row: &RateRow<'_>| row.readings.iter().map(|(net, tax)| net + tax).collect();
    let sums: Vec<Decimal> = readings(first);
    let sums = rest.iter().fold(sums, |sums, row| {
        let own: Vec<Decimal> = readings(row);
        sums.iter().flat_map(|sum| own.iter().map(move |part| sum + part)).collect()
    });
    !rest.is_empty() && sums.contains(&gross)
}

/// Reads the rows by rate so that together they are `gross`, up to a printed rounding; none if they
/// cannot be read so.
pub(super) fn taxes_that_make<'a>(
    gross: Decimal,
    rests: &PrintedRests<'a>,
) -> Option<TaxesByRate<'a>> {
    let rows = rows_by_rate(gross, rests);
    let last = rows.last()?.cell;
    let mut sums = vec![(Decimal::ZERO, Decimal::ZERO, 0_usize)];
    for row in &rows {
        let with = sums.iter().flat_map(|(net, tax, count)| {
            row.readings
                .iter()
                .map(move |(own, more): &(Decimal, Decimal)| (net + own, tax + more, count + 1))
        });
        let with: Vec<_> = with.collect();
        sums.extend(with);
    }
    // With a charge for service between them they have to be all: any amount may be left out
    // otherwise.
    let whole = sums.into_iter().filter(|(net, tax, count)| {
        let cost = rests.cost_between(net + tax, gross);
        *count > 0 && cost.is_some_and(|cost| cost == 0.0 || *count == rows.len())
    });
    let (net, tax, _) = whole.max_by_key(|(_, _, count)| *count)?;
    Some(TaxesByRate { net, tax, cell: last })
}

/// The tax of a part of `gross`, where one row by rate alone is printed and can be read in one way.
pub(super) fn taxes_of_part<'a>(
    gross: Decimal,
    rests: &PrintedRests<'a>,
) -> Option<TaxesByRate<'a>> {
    let rows = rows_by_rate(gross, rests);
    let [row] = rows.as_slice() else { return None };
    let [(net, tax)] = row.readings.as_slice() else { return None };
    let part = !tax.is_zero() && (net + tax).abs() < gross.abs();
    part.then_some(TaxesByRate { net: *net, tax: *tax, cell: row.cell })
}

fn rows_by_rate<'a>(gross: Decimal, rests: &PrintedRests<'a>) -> Vec<RateRow<'a>> {
    let mut found: Vec<RateRow<'a>> = Vec::new();
    let mut before: Option<Decimal> = None;
    for (_, row) in rests.layout.rows.iter().enumerate().filter(|(at, _)| !rests.is_own_row(*at)) {
        let cells = rests.layout.cells.get(row.clone()).unwrap_or_default();
        let numbers: Vec<FoundNumber> =
            cells.iter().flat_map(|cell| till_numbers(cell, rests.layout)).collect();
        let money = numbers.iter().filter(|one| one.is_money() && !one.percent);
        let money: Vec<Decimal> = money.map(|one| one.value).collect();
        let above = std::mem::replace(&mut before, money.last().copied());
        let (Some(cell), false) = (cells.last(), money.is_empty()) else { continue };
        if let Some((rate, readings)) = read_row(&numbers, &money, above, gross) {
            let tax = readings.first().map(|(_, tax)| *tax);
            // The same tax is printed in a line of its own and in the summary.
            let known = found
                .iter_mut()
                .find(|one| one.rate == rate && one.readings.first().map(|(_, tax)| *tax) == tax);
            match known {
                Some(known) => known.readings.extend(readings),
                None => found.push(RateRow { rate, readings, cell }),
            }
        }
    }
    for row in &mut found {
        row.readings.sort_unstable();
        row.readings.dedup();
        row.readings.truncate(MAX_READINGS);
    }
    found.truncate(MAX_ROWS);
    found
}

/// The rate of a row, if it has one, and every way to make one of its amounts with it from another
/// one, from the amount right above it, or from the total.
fn read_row(
    numbers: &[FoundNumber],
    money: &[Decimal],
    above: Option<Decimal>,
    gross: Decimal,
) -> Option<(Decimal, Vec<(Decimal, Decimal)>)> {
    let named = numbers.iter().filter(|one| one.percent).find(is_percentage).map(|one| one.value);
    // `12,00  20,34  169,46  189,80`: a rate without its sign, where the row adds up as well.
    let bare = || {
        let first = numbers.first().filter(is_percentage).map(|one| one.value);
        first.filter(|rate| !rate.is_zero() && !triples(money, *rate).is_empty())
    };
    let rate = named.or_else(bare)?;
    let mut readings = triples(money, rate);
    if readings.is_empty() {
        let others = money.iter().copied();
        let lone = above.into_iter().chain([gross]).filter(|_| money.len() == 1);
        let bases: Vec<Decimal> = others.chain(lone).collect();
        for base in bases {
            readings.extend(money.iter().flat_map(|tax| pairs(base, *tax, rate)));
        }
    }
    (!readings.is_empty()).then_some((rate, readings))
}

fn is_percentage(one: &&FoundNumber) -> bool {
    one.value <= MAX_RATE && one.value >= Decimal::ZERO
}

/// Net amount and tax that a rate makes, with their sum beside them.
fn triples(money: &[Decimal], rate: Decimal) -> Vec<(Decimal, Decimal)> {
    let mut found = Vec::new();
    for net in money {
        for tax in money.iter().filter(|tax| makes(*net, rate, Decimal::ONE_HUNDRED, **tax)) {
            let whole = money.iter().filter(|sum| !tax.is_zero() && **sum == net + tax).count();
            found.extend((whole > 0).then_some((*net, *tax)));
        }
    }
    found
}

/// A rate's tax on an amount, or on the amount less the tax.
fn pairs(base: Decimal, tax: Decimal, rate: Decimal) -> Vec<(Decimal, Decimal)> {
    let mut found = Vec::new();
    if tax.abs() >= base.abs() || base.is_zero() {
        return found;
    }
    if makes(base, rate, Decimal::ONE_HUNDRED, tax) {
        found.push((base, tax));
    }
    if makes(base, rate, Decimal::ONE_HUNDRED + rate, tax) {
        found.push((base - tax, tax));
    }
    found
}

fn makes(base: Decimal, rate: Decimal, of: Decimal, tax: Decimal) -> bool {
    let made = base.checked_mul(rate).and_then(|made| made.checked_div(of));
    made.is_some_and(|made| abs_close(made, tax, ROUNDING))
}
