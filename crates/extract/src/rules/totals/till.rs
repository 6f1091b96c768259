//! How tills print amounts: with a code of the tax behind them, the tax that a total includes in
//! rows of its own, and how the total was paid. Which total is taken is the parent's choice.

use rust_decimal::Decimal;

use super::charges::{PrintedRests, is_no_tax};
use super::printed::find_printed;
use super::tax_table::{taxes_of_part, taxes_that_make};
use super::{
    AmountCandidate, AmountRole, MAX_LABELLED, PAID, TOLERANCE, TotalAmounts, UNNAMED,
    amounts_beside,
};
use crate::rules::label_matches::LabelMatches;
use crate::rules::layout::{CellLayout, TextCell};
use crate::rules::{FoundValue, abs_close};
use docmill_formats::notation::number::{self, DecimalSeparator, FoundNumber};

/// The tax included in a total by its rate, both in one row: `incl. 6% GST 1.66`.
fn included_tax(
    matches: &LabelMatches<'_>,
    gross: Decimal,
    mark: Option<DecimalSeparator>,
) -> Option<FoundValue<Decimal>> {
    let hundred = Decimal::ONE_HUNDRED;
    matches.layout.rows.iter().find_map(|row| {
        let cells = matches.layout.cells.get(row.clone())?;
        let rates = cells.iter().flat_map(|cell| till_numbers(cell, mark)).filter(|n| n.percent);
        let rates = rates
            .map(|n| n.value)
            .filter(|rate| *rate >= Decimal::ONE && *rate <= Decimal::from(30));
        let taxes: Vec<Decimal> = rates.map(|rate| gross * rate / (hundred + rate)).collect();
        let is_tax =
            |value: Decimal| taxes.iter().any(|tax| abs_close(*tax, value, Decimal::new(1, 2)));
        // `Tip 15 %` is a share of the sum as well.
        if cells.first().is_some_and(|first| is_no_tax(matches, first)) {
            return None;
        }
        cells.iter().find_map(|cell| {
            let mut numbers = till_numbers(cell, mark).into_iter();
            let found = numbers.find(|n| n.is_money() && is_tax(n.value))?;
            Some(FoundValue::new(found.value, true, cell))
        })
    })
}

/// Whether a label is beside a tax other than zero: a zero rate beside it belongs to another
/// amount.
pub(super) fn has_labelled_tax(candidates: &[AmountCandidate<'_>]) -> bool {
    let own = |c: &AmountCandidate<'_>| c.role == AmountRole::Vat && c.weight >= 5.0;
    candidates.iter().any(|c| own(c) && !c.value.is_zero())
}

/// Leaves out a rate of nothing beside a labelled tax, and net amounts that are as much as the
/// largest total.
pub(super) fn leave_out_untaxed(candidates: &mut Vec<AmountCandidate<'_>>) {
    let totals = candidates.iter().filter(|c| c.role == AmountRole::Gross && c.weight >= 5.0);
    let largest = totals.map(|c| c.value).max();
    candidates.retain(|c| match c.role {
        AmountRole::Vat => !c.value.is_zero(),
        AmountRole::Net => Some(c.value) != largest,
        AmountRole::Gross => true,
    });
}

/// Rows of a receipt that are summed up.
const MAX_SUMMED: usize = 100;

/// The amount alone in its row that is the sum of the rows before it, two at least.
fn sum_under_lines(
    layout: &CellLayout,
    mark: Option<DecimalSeparator>,
) -> Option<(FoundNumber, &TextCell)> {
    let mut above: Vec<Decimal> = Vec::new();
    for row in &layout.rows {
        let cells = layout.cells.get(row.clone())?;
        let last = cells.iter().rev().find_map(|cell| {
            let found = till_numbers(cell, mark).pop()?;
            found.is_money().then_some((found, cell))
        });
        let Some((amount, cell)) = last else { continue };
        let lone = cells.len() == 1 && cell.words.len() <= 2;
        let sums = above.iter().rev().take(MAX_SUMMED).scan(Decimal::ZERO, |sum, line| {
            *sum += line;
            Some(*sum)
        });
        if lone && sums.skip(1).any(|sum| sum == amount.value) {
            return Some((amount, cell));
        }
        above.push(amount.value);
    }
    None
}

/// The numbers of a cell, without the codes of tax that tills print behind amounts.
pub(super) fn till_numbers(cell: &TextCell, mark: Option<DecimalSeparator>) -> Vec<FoundNumber> {
    let words: Vec<&str> = cell.words.iter().map(|word| without_tax_code(word)).collect();
    number::find_numbers(&words, mark)
}

/// `100.00C`, `1.80SR`: tills print a code of the tax behind an amount.
pub(in super::super) fn without_tax_code(word: &str) -> &str {
    let word = if word.contains('(') { word } else { word.trim_end_matches(')') };
    let amount = word.trim_end_matches(|c: char| c.is_ascii_uppercase());
    let cents = amount
        .rsplit_once('.')
        .is_some_and(|(_, cents)| cents.len() == 2 && cents.chars().all(|c| c.is_ascii_digit()));
    if cents && word.len() <= amount.len() + 2 { amount } else { word }
}

/// The tax that the total includes, and the taxes by rate that make it.
pub(super) fn take_till_taxes<'a>(
    matches: &LabelMatches<'a>,
    rests: &PrintedRests,
    mark: Option<DecimalSeparator>,
    chosen: &mut TotalAmounts<'a>,
) {
    if !(chosen.adds_up && chosen.taxed) {
        take_included_tax(matches, mark, chosen);
    }
    take_taxes_by_rate(matches, rests, mark, chosen);
}

/// The taxes by rate make the total: their sum is the tax, and the sum of their bases is the net
/// amount where it is printed.
fn take_taxes_by_rate<'a>(
    matches: &LabelMatches<'a>,
    rests: &PrintedRests,
    mark: Option<DecimalSeparator>,
    chosen: &mut TotalAmounts<'a>,
) {
    let Some(gross) = chosen.gross.as_ref().map(|gross| gross.value) else { return };
    let made = taxes_that_make(matches.layout, gross, rests, mark);
    let Some(taxes) = made else {
        // `19 % = 2.69 of 16.83`: the rest has no tax.
        let part = taxes_of_part(matches.layout, gross, rests, mark).filter(|_| !chosen.adds_up);
        if let Some(taxes) = part {
            chosen.vat = Some(FoundValue::new(taxes.tax, true, taxes.cell));
            chosen.net = None;
            chosen.tax_by_rate = true;
            chosen.taxed = true;
        }
        return;
    };
    chosen.tax_table = true;
    if taxes.tax.is_zero() {
        return;
    }
    let known = |found: &FoundValue<Decimal>| abs_close(found.value, taxes.tax, TOLERANCE);
    if !chosen.vat.as_ref().is_some_and(known) {
        chosen.vat = Some(FoundValue::new(taxes.tax, true, taxes.cell));
    }
    chosen.taxed = true;
    let printed = find_printed(matches.layout, taxes.net, mark);
    let own = chosen.net.as_ref().is_some_and(|net| abs_close(net.value, taxes.net, TOLERANCE));
    if !own {
        chosen.net_is_total = chosen.net.as_ref().is_some_and(|net| net.value == gross);
        chosen.net = printed.map(|cell| FoundValue::new(taxes.net, true, cell));
        chosen.net_is_rest = false;
    }
}

/// Whether the total is repeated beside a word for the means of payment.
pub(super) fn is_charged(
    matches: &LabelMatches<'_>,
    gross: &FoundValue<Decimal>,
    mark: Option<DecimalSeparator>,
) -> bool {
    let labels = matches.of_field("card_payment").chain(matches.of_field("tendered"));
    let mut amounts = labels
        .filter(|label_match| label_match.words.start == 0)
        .flat_map(|label_match| amounts_beside(matches, label_match, mark).0);
    amounts.any(|(amount, cell)| {
        amount.value.abs() == gross.value.abs()
            && (cell.page, cell.line) != (gross.page, gross.line)
    })
}

/// A printed rate makes a printed tax of the total: then a sum before tax equal to the total does
/// not count, and the difference is the net amount where it is printed.
fn take_included_tax(
    matches: &LabelMatches<'_>,
    mark: Option<DecimalSeparator>,
    chosen: &mut TotalAmounts<'_>,
) {
    let Some(gross) = chosen.gross.as_ref().map(|gross| gross.value) else { return };
    let Some(tax) = included_tax(matches, gross, mark) else { return };
    let rest = gross - tax.value;
    let printed = find_printed(matches.layout, rest, mark);
    chosen.tax_by_rate = true;
    chosen.adds_up = printed.is_some() && !tax.value.is_zero();
    chosen.taxed = true;
    if chosen.net.as_ref().is_some_and(|net| net.value == gross) {
        chosen.net_is_total = true;
        chosen.net = None;
    }
    if let Some(cell) = printed {
        chosen.net = Some(FoundValue::new(rest, true, cell));
    }
    chosen.vat = Some(tax);
}

/// Receipts without a word for the total: the net amount paid as it is, the amount charged to a
/// card and repeated, or the sum alone under the lines.
pub(super) fn add_unnamed_totals<'a>(
    matches: &LabelMatches<'a>,
    mark: Option<DecimalSeparator>,
    candidates: &mut Vec<AmountCandidate<'a>>,
) {
    if !matches.till || candidates.iter().any(|c| c.role == AmountRole::Gross && c.weight >= 1.0) {
        return;
    }
    let given = tendered_amounts(matches, "tendered", mark);
    let nets = candidates.iter().filter(|c| c.role == AmountRole::Net && given.contains(&c.value));
    let paid = nets.map(|c| AmountCandidate { role: AmountRole::Gross, weight: PAID, ..c.clone() });
    let paid: Vec<AmountCandidate<'a>> = paid.collect();
    candidates.extend(paid);
    for label_match in
        matches.of_field("card_payment").filter(|label_match| label_match.words.start == 0)
    {
        let Some((amount, cell)) = amounts_beside(matches, label_match, mark).0.pop() else {
            continue;
        };
        let again = matches.layout.amounts(mark).filter(|(one, _)| one.value == amount.value);
        if amount.is_money() && again.count() > 1 {
            let (value, currency, role) = (amount.value, amount.currency(), AmountRole::Gross);
            candidates.push(AmountCandidate { role, weight: UNNAMED, value, currency, cell });
        }
    }
    if let Some((amount, cell)) = sum_under_lines(matches.layout, mark) {
        let (value, currency, role) = (amount.value, amount.currency(), AmountRole::Gross);
        candidates.push(AmountCandidate { role, weight: UNNAMED, value, currency, cell });
    }
}

/// The amounts beside the labels of a section of tills.
pub(super) fn tendered_amounts(
    matches: &LabelMatches<'_>,
    section: &str,
    mark: Option<DecimalSeparator>,
) -> Vec<Decimal> {
    let all = matches.of_field(section).filter(|label_match| label_match.words.start == 0);
    let amounts = all.filter_map(|label_match| amounts_beside(matches, label_match, mark).0.pop());
    let money = amounts.filter(|(amount, _)| amount.is_money());
    money.map(|(amount, _)| amount.value.abs()).take(MAX_LABELLED).collect()
}

/// The amount paid on the label_match: the amount tendered less the change.
pub(super) fn paid_amounts(
    matches: &LabelMatches<'_>,
    mark: Option<DecimalSeparator>,
) -> Vec<Decimal> {
    let change = tendered_amounts(matches, "change", mark);
    let pairs = tendered_amounts(matches, "tendered", mark).into_iter().flat_map(|given| {
        let back: Vec<Decimal> = change.iter().map(|back| given - *back).collect();
        back.into_iter()
    });
    pairs.filter(|paid| paid.is_sign_positive() && !paid.is_zero()).collect()
}
