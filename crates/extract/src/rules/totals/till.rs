//! How tills print amounts: with a code of the tax behind them, the tax that a total includes in
//! rows of its own, and how the total was paid. Which total is taken is the parent's choice.

use rust_decimal::Decimal;

use super::charges::PrintedRests;
use super::outdone::{is_outdone, is_unnamed_part, total_by_rates};
use super::printed::find_printed;
use super::tax_table::{taxes_of_part, taxes_that_make};
use super::{
    AmountCandidate, AmountRole, MAX_LABELLED, PAID, TOLERANCE, TotalAmounts, UNNAMED,
    amounts_beside, choose_by_label, choose_totals,
};
use crate::rules::characters::is_digits;
use crate::rules::label_matches::LabelMatches;
use crate::rules::layout::{CellLayout, TextCell};
use crate::rules::{FoundValue, abs_close};
use docmill_formats::notation::number::{FoundNumber, strip_credit};

/// Whether a label is beside a tax that is not zero: a zero rate beside it is another amount's.
pub(super) fn has_labelled_tax(candidates: &[AmountCandidate<'_>]) -> bool {
    candidates.iter().any(|c| is_labelled_tax(c) && !c.value.is_zero())
}

fn is_labelled_tax(c: &AmountCandidate<'_>) -> bool {
    c.role == AmountRole::Vat && c.weight >= 5.0
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
fn sum_under_lines(layout: &CellLayout) -> Option<(FoundNumber, &TextCell)> {
    let mut above: Vec<Decimal> = Vec::new();
    for row in &layout.rows {
        let cells = layout.cells.get(row.clone())?;
        let last = cells.iter().rev().find_map(|cell| {
            let found = till_numbers(cell, layout).pop()?;
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
pub(super) fn till_numbers(cell: &TextCell, layout: &CellLayout) -> Vec<FoundNumber> {
    let words: Vec<&str> = cell.words.iter().map(|word| without_tax_code(word)).collect();
    layout.numbers_in(&words)
}

/// `100.00C`, `1.80SR`: tills print a code of the tax behind an amount. `CR` is a sign and no code.
pub(in super::super) fn without_tax_code(word: &str) -> &str {
    let closes = word.len() > 1 && !word.contains('(');
    let word = if closes { word.trim_end_matches(')') } else { word };
    let amount = word.trim_end_matches(|c: char| c.is_ascii_uppercase());
    let (_, cents) = amount.rsplit_once('.').unwrap_or_default();
    let is_code = cents.len() == 2 && is_digits(cents) && word.len() <= amount.len() + 2;
    if is_code && strip_credit(word).is_none() { amount } else { word }
}

/// Chooses again where another total is larger or made by the rates, and takes the taxes by rate.
/// Tills sum up each rate of tax as well.
pub(super) fn revise_till_totals<'a>(
    rests: &PrintedRests<'a>,
    candidates: &mut Vec<AmountCandidate<'a>>,
    chosen: &mut TotalAmounts<'a>,
) {
    if chosen.adds_up
        && (is_outdone(chosen, candidates, rests.layout)
            || is_unnamed_part(chosen, candidates, rests.layout))
    {
        *chosen = choose_by_label(candidates, rests);
    }
    if let Some(whole) = total_by_rates(chosen, candidates, rests) {
        candidates.retain(|c| c.role != AmountRole::Gross || c.value == whole);
        *chosen = choose_totals(candidates, rests);
    }
    take_taxes_by_rate(rests, chosen);
}

/// The taxes by rate make the total: their sum is the tax, and the sum of their bases is the net
/// amount where it is printed.
fn take_taxes_by_rate<'a>(rests: &PrintedRests<'a>, chosen: &mut TotalAmounts<'a>) {
    let Some(gross) = chosen.gross.as_ref().map(|gross| gross.value) else { return };
    let made = taxes_that_make(gross, rests);
    let Some(taxes) = made else {
        // `19 % = 2.69 of 16.83`: the rest has no tax.
        let part = taxes_of_part(gross, rests).filter(|_| !chosen.adds_up);
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
    if !chosen
        .vat
        .as_ref()
        .is_some_and(|found: &FoundValue<Decimal>| abs_close(found.value, taxes.tax, TOLERANCE))
    {
        chosen.vat = Some(FoundValue::new(taxes.tax, true, taxes.cell));
    }
    chosen.taxed = true;
    let printed = find_printed(rests.layout, taxes.net);
    let own = chosen.net.as_ref().is_some_and(|net| abs_close(net.value, taxes.net, TOLERANCE));
    if !own {
        chosen.net_is_total = chosen.net.as_ref().is_some_and(|net| net.value == gross);
        chosen.net = printed.map(|cell| FoundValue::new(taxes.net, true, cell));
        chosen.net_is_rest = false;
    }
}

/// Whether the total is repeated beside a word for the means of payment.
pub(super) fn is_charged(matches: &LabelMatches<'_>, gross: &FoundValue<Decimal>) -> bool {
    let labels = matches.of_field("card_payment").chain(matches.of_field("tendered"));
    let mut amounts = labels
        .filter(|label_match| label_match.words.start == 0)
        .flat_map(|label_match| amounts_beside(matches, label_match).0);
    amounts.any(|(amount, cell)| {
        amount.value.abs() == gross.value.abs()
            && (cell.page, cell.line) != (gross.page, gross.line)
    })
}

/// Receipts without a word for the total: the net amount paid as it is, the amount charged to a
/// card and repeated, or the sum alone under the lines.
pub(super) fn add_unnamed_totals<'a>(
    matches: &LabelMatches<'a>,
    candidates: &mut Vec<AmountCandidate<'a>>,
) {
    if candidates.iter().any(|c| c.role == AmountRole::Gross && c.weight >= 1.0) {
        return;
    }
    let given = tendered_amounts(matches, "tendered");
    let nets = candidates.iter().filter(|c| c.role == AmountRole::Net && given.contains(&c.value));
    let paid = nets.map(|c| AmountCandidate { role: AmountRole::Gross, weight: PAID, ..c.clone() });
    let paid: Vec<AmountCandidate<'a>> = paid.collect();
    candidates.extend(paid);
    if let Some((amount, cell)) = sum_under_lines(matches.layout) {
        candidates.push(AmountCandidate::new(AmountRole::Gross, UNNAMED, &amount, cell));
    }
}

/// The amounts beside the labels of a section of tills.
pub(super) fn tendered_amounts(matches: &LabelMatches<'_>, section: &str) -> Vec<Decimal> {
    let all = matches.leading(section);
    let amounts = all.filter_map(|label_match| amounts_beside(matches, label_match).0.pop());
    let money = amounts.filter(|(amount, _)| amount.is_money());
    money.map(|(amount, _)| amount.value.abs()).take(MAX_LABELLED).collect()
}

/// The amount paid on the spot: the amount tendered less the change.
pub(super) fn paid_amounts(matches: &LabelMatches<'_>) -> Vec<Decimal> {
    let change = tendered_amounts(matches, "change");
    let pairs = tendered_amounts(matches, "tendered").into_iter().flat_map(|given| {
        let back: Vec<Decimal> = change.iter().map(|back| given - *back).collect();
        back.into_iter()
    });
    pairs.filter(|paid| paid.is_sign_positive() && !paid.is_zero()).collect()
}
