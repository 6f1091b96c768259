//! Net, VAT and gross: candidates beside their labels, and the choice among them by arithmetic.
//!
//! Three candidates that add up are worth more than any label: tables of tax rates, prepayments
//! and carry-overs print the same labels as the totals do.

mod by_rate;
mod charges;
mod column;
mod currencies;
mod included;
mod labelled;
mod open_parts;
mod outdone;
mod parts;
mod printed;
mod row;
mod tax_table;
mod till;

use rust_decimal::Decimal;

use self::by_rate::add_sums_of_rate;
use self::charges::{PrintedRests, is_net_reduced, is_no_tax, possible_roundings, without_charge};
use self::column::add_sum_of_column;
pub(super) use self::column::is_sum_of_column;
use self::currencies::{keep_own_currency, keep_stated_column};
use self::included::{add_included_tax, add_sums_by_rate, before_included, tax_within};
use self::labelled::labelled_amounts;
pub(super) use self::open_parts::{OpenParts, find_open_parts};
use self::outdone::{is_outdone, is_unnamed_part, whole_of_rate};
use self::parts::add_pairs_of_taxes;
pub(super) use self::parts::tax_parts;
use self::printed::{find_printed, money_before, money_right_of};
pub(super) use self::printed::{has_open_amount_below, largest_amount};
use self::row::{add_net_and_tax, add_row_of_net, add_rows_of_sums, sum_of_rows, whole_of_rows};
pub(super) use self::till::without_tax_code;
use self::till::{
    add_unnamed_totals, has_labelled_tax, is_charged, leave_out_untaxed, paid_amounts,
    revise_till_totals, tendered_amounts,
};
use super::label_matches::{LabelMatch, LabelMatches};
use super::layout::TextCell;
use super::vocabulary::vocabulary;
use super::{FoundValue, abs_close};
use docmill_formats::notation::fold_text;
use docmill_formats::notation::number::{self, FoundNumber};
use docmill_gate::kinds::FieldRole;

/// Two cents: the rounding per rate.
const TOLERANCE: Decimal = Decimal::from_parts(2, 0, 0, false, 2);

/// Labelled amounts of one role that sums are made of.
const MAX_LABELLED: usize = 6;

/// Candidates of one role that are tried: all combinations are.
const MAX_CANDIDATES: usize = 40;

/// The amounts of the totals block.
#[derive(Debug, Default)]
pub(super) struct TotalAmounts<'a> {
    pub(super) net: Option<FoundValue<Decimal>>,
    pub(super) vat: Option<FoundValue<Decimal>>,
    pub(super) gross: Option<FoundValue<Decimal>>,
    /// All three are printed and add up.
    pub(super) adds_up: bool,
    /// The total was paid: what was handed over, less the change, or by card.
    pub(super) paid: bool,
    /// The tax is not nothing.
    pub(super) taxed: bool,
    /// The tax is a printed rate's share of the total, which includes it.
    pub(super) tax_by_rate: bool,
    /// The taxes printed by rate make the total with their bases.
    pub(super) tax_table: bool,
    /// The net amount is the total less the included tax, and not printed.
    pub(super) net_is_rest: bool,
    /// The labelled net amount is the total, and includes the tax.
    pub(super) net_is_total: bool,
    /// The labelled net amount is the total before a discount.
    pub(super) net_is_reduced: bool,
    /// Another labelled total is larger.
    pub(super) outdone: bool,
    /// The currency printed beside the gross amount.
    pub(super) currency: Option<&'a str>,
}

#[derive(Debug, Clone)]
struct AmountCandidate<'a> {
    role: AmountRole,
    weight: f32,
    value: Decimal,
    currency: Option<&'static str>,
    cell: &'a TextCell,
}

impl<'a> AmountCandidate<'a> {
    fn new(role: AmountRole, weight: f32, amount: &FoundNumber, cell: &'a TextCell) -> Self {
        Self { role, weight, value: amount.value, currency: amount.currency(), cell }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AmountRole {
    Net,
    Vat,
    Gross,
}

pub(super) fn find_totals<'a>(matches: &LabelMatches<'a>) -> TotalAmounts<'a> {
    let paid = paid_amounts(matches);
    let mut candidates = gather_candidates(matches, &paid);
    let rests = PrintedRests::new(matches);
    let mut chosen = choose_by_rows(&mut candidates, &rests);
    if matches.style.till_sums {
        revise_till_totals(&rests, &mut candidates, &mut chosen);
    } else if chosen.adds_up && is_unnamed_part(&chosen, &candidates, matches.layout) {
        chosen = choose_by_label(&candidates, &rests);
    }
    chosen.paid = chosen
        .gross
        .as_ref()
        .is_some_and(|gross| paid.contains(&gross.value) || is_charged(matches, gross));
    chosen.outdone = is_outdone(&chosen, &candidates, matches.layout);
    leave_out_net(&mut chosen, &candidates, &rests);
    chosen
}

/// Every amount that may be a net amount, a tax or a total, the best first; `paid`: what was paid.
fn gather_candidates<'a>(matches: &LabelMatches<'a>, paid: &[Decimal]) -> Vec<AmountCandidate<'a>> {
    let till = matches.style.till_sums;
    let mut candidates = labelled_amounts(matches);
    keep_own_currency(matches, &mut candidates);
    add_sum_of_rates(matches, &mut candidates);
    add_pairs_of_taxes(matches, &mut candidates);
    if till && has_labelled_tax(&candidates) {
        leave_out_untaxed(&mut candidates);
    }
    add_unlabelled_sums(matches, &mut candidates);
    add_included_tax(matches, &mut candidates);
    add_sums_by_rate(matches, &mut candidates);
    add_rows_of_sums(matches.layout, &mut candidates);
    if !till {
        add_sums_of_rate(matches, &mut candidates);
        add_sum_of_column(matches, &mut candidates);
    }
    for (amount, cell) in matches.layout.amounts() {
        if paid.contains(&amount.value) {
            candidates.push(AmountCandidate::new(AmountRole::Gross, PAID, amount, cell));
        }
    }
    candidates.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    for role in [AmountRole::Net, AmountRole::Vat, AmountRole::Gross] {
        let mut kept = 0;
        candidates.retain(|candidate| {
            kept += usize::from(candidate.role == role);
            candidate.role != role || kept <= MAX_CANDIDATES
        });
    }
    add_rounded(matches, paid, &mut candidates);
    if till {
        add_unnamed_totals(matches, &mut candidates);
    }
    candidates
}

/// `Net total 68.60` behind a rounding, without a tax, is the total and no net amount beside it;
/// nor is a sum from which a discount is taken before the total.
fn leave_out_net(
    chosen: &mut TotalAmounts<'_>,
    candidates: &[AmountCandidate<'_>],
    rests: &PrintedRests<'_>,
) {
    let Some(total) = &chosen.gross else { return };
    let mut totals = candidates.iter().filter(|c| c.role == AmountRole::Gross && c.weight >= 5.0);
    let rounded = totals.any(|c| rests.is_rounded(c.value, total.value));
    let same = chosen.net.as_ref().is_some_and(|net| net.value == total.value);
    if same && rounded && chosen.vat.is_none() {
        chosen.net = None;
        chosen.net_is_total = true;
    } else if chosen.net.is_none() {
        chosen.net_is_reduced = is_net_reduced(rests.layout, candidates, total);
    }
}

/// The choice among all candidates, else the sum of a table of rates where the choice is one row's.
fn choose_by_rows<'a>(
    candidates: &mut Vec<AmountCandidate<'a>>,
    rests: &PrintedRests<'a>,
) -> TotalAmounts<'a> {
    let mut chosen = choose_totals(candidates, rests);
    let summed_up = |chosen: &TotalAmounts<'_>, candidates: &[AmountCandidate<'a>]| {
        sum_of_rows(rests.layout, chosen)
            .or_else(|| whole_of_rows(rests.layout, chosen, candidates))
    };
    let mut summed = summed_up(&chosen, candidates);
    if chosen.adds_up
        && let Some(whole) = whole_of_rate(&chosen, candidates, rests.layout)
    {
        candidates.retain(|c| c.role != AmountRole::Gross || c.value >= whole);
        chosen = choose_totals(candidates, rests);
        // Another sum that adds up needs no rows.
        summed = summed_up(&chosen, candidates).or(summed.filter(|_| !chosen.adds_up));
    }
    if let Some(sums) = summed {
        *candidates = sums.to_vec();
        chosen = choose_totals(candidates, rests);
    }
    chosen
}

/// A total with its printed rounding, where that is printed as well or was paid, is the total.
fn add_rounded<'a>(
    matches: &LabelMatches<'a>,
    paid: &[Decimal],
    candidates: &mut Vec<AmountCandidate<'a>>,
) {
    let rests = possible_roundings(matches).into_iter().filter(|rest| !rest.is_zero());
    let rests: Vec<Decimal> = rests.collect();
    let labelled = candidates.iter().filter(|c| c.role == AmountRole::Gross && c.weight >= 5.0);
    let rounded = labelled.take(MAX_LABELLED).flat_map(|c| {
        let sums = rests.iter().map(move |rest| c.value + rest);
        sums.map(move |value| AmountCandidate { value, weight: PAID + 0.5, ..c.clone() })
    });
    let given = tendered_amounts(matches, "tendered");
    let rounded: Vec<AmountCandidate<'a>> = rounded
        .filter(|one: &AmountCandidate<'_>| paid.contains(&one.value) || given.contains(&one.value))
        .collect();
    candidates.extend(rounded);
}

/// An amount under a heading of the table of lines is usually the amount of a line.
const HEADED: f32 = 4.5;

/// Headings in one row that are those of a table.
const COLUMNS: usize = 4;

/// A total beside a label, anywhere in its text.
const WHOLE: f32 = 3.0;

/// A sum without a label is a total, but surely no better than a labelled one.
const UNNAMED: f32 = 2.0;

/// A paid amount outweighs a label: a total before rounding is printed beside the same words.
const PAID: f32 = 7.5;

/// The amounts that belong to a label: right of it up to the next label, else below it.
fn gather_amounts<'a>(
    matches: &LabelMatches<'a>,
    label_match: &LabelMatch,
    role: AmountRole,
    candidates: &mut Vec<AmountCandidate<'a>>,
) {
    let Some(cell) = matches.cell_of(label_match) else { return };
    let after = cell.folded.iter().filter(|(_, word)| *word >= label_match.words.end);
    let after: Vec<&str> = after.map(|(text, _)| text.as_str()).take(3).collect();
    let role = match role {
        // The amount is the tax's, which has a label of its own.
        AmountRole::Gross if matches.included_in(label_match).is_some() => return,
        AmountRole::Gross if after.iter().any(|text| vocabulary().excluding.has(text)) => {
            AmountRole::Net
        }
        role => role,
    };
    let (mut found, below) = amounts_beside(matches, label_match);
    keep_stated_column(matches, &mut found);
    if role == AmountRole::Net && add_row_of_net(&found, candidates) {
        return;
    }
    if label_match.words.start == 0 && !below && add_net_and_tax(matches.layout, &found, candidates)
    {
        return;
    }
    let Some((last, cell_of_last)) = found.pop() else { return };
    let mut weight: f32 = match (label_match.field.as_str(), label_match.strong) {
        ("payable", _) => 2.5,
        (_, true) => 6.0,
        (_, false) => 3.0,
    };
    if label_match.words.start > 0 {
        weight -= 2.0;
    }
    if below {
        // `HT   TVA` over a table of rates on a till's paper.
        let table = matches.style.till_sums && matches.layout.row_cells(cell.row).len() >= COLUMNS;
        weight -= if table || matches.heads_column(label_match) { HEADED } else { 1.5 };
    }
    if !last.is_money() {
        weight -= 2.0;
    }
    let position = label_match.cell as f32 / matches.layout.cells.len().max(1) as f32;
    candidates.push(AmountCandidate::new(role, weight + position, &last, cell_of_last));
    // A row that gives net, tax and gross at once.
    if let (AmountRole::Gross, [.., (net, net_cell), (vat, vat_cell)]) = (role, found.as_slice()) {
        for (role, amount, cell) in
            [(AmountRole::Net, net, net_cell), (AmountRole::Vat, vat, vat_cell)]
        {
            candidates.push(AmountCandidate::new(role, 3.0 + position, amount, cell));
        }
    }
}

fn amounts_beside<'a>(
    matches: &LabelMatches<'a>,
    label_match: &LabelMatch,
) -> (Vec<(FoundNumber, &'a TextCell)>, bool) {
    let mut found: Vec<(FoundNumber, &'a TextCell)> = Vec::new();
    for beside in matches.value_candidates(label_match) {
        let below = beside.below;
        if below && !found.is_empty() {
            break;
        }
        let mut words = beside.value_words();
        // `74.50 (includes 12.42 VAT)`: the amount in brackets is another one.
        words.truncate(before_included(&words).unwrap_or(words.len()));
        if matches.style.till_sums {
            words = words.into_iter().map(without_tax_code).collect();
        }
        let whole = words.len();
        let grouped = number::grouped_whole(&words).map(|amount| vec![amount]);
        let amounts: Vec<FoundNumber> = grouped
            .unwrap_or_else(|| matches.layout.numbers_in(&words))
            .into_iter()
            .filter(|amount| !amount.percent)
            .filter(|amount| {
                amount.is_money() || amount.words == (0..whole) || amount.words.end == whole
            })
            .collect();
        found.extend(amounts.into_iter().map(|amount| (amount, beside.cell)));
        if below && !found.is_empty() {
            return (found, true);
        }
    }
    // `VAT 19 v.H.   188.86`: the number in the label's text is no amount, and one ends its row.
    if !found.iter().any(|(amount, _)| amount.is_money()) {
        found.extend(money_right_of(matches, label_match));
    }
    if found.is_empty() {
        found.extend(money_before(matches, label_match));
    }
    // Whole numbers beside amounts are quantities and rates.
    if found.iter().any(|(amount, _)| amount.is_money()) {
        found.retain(|(amount, _)| amount.is_money());
    }
    (found, false)
}

/// Several rates, each in a row of its own: their sum is the VAT.
fn add_sum_of_rates<'a>(matches: &LabelMatches<'a>, candidates: &mut Vec<AmountCandidate<'a>>) {
    let mut rows: Vec<(usize, Decimal, &'a TextCell, Option<&'static str>)> = Vec::new();
    let till = matches.style.till_sums;
    let mut rated = !till;
    for label_match in matches.of_role(FieldRole::TaxAmount) {
        let Some(cell) = matches.cell_of(label_match) else { continue };
        let row = matches.layout.row_cells(cell.row);
        let texts: Vec<&str> =
            row.iter().flat_map(|cell| cell.words.iter().map(String::as_str)).collect();
        let has_rate = matches.layout.numbers_in(&texts).iter().any(|amount| amount.percent);
        let (amounts, below) = amounts_beside(matches, label_match);
        let known = rows.iter().any(|(other, ..)| *other == cell.row);
        // Tills print several taxes (`Tax 1`, `Tax 2`) without their rates, and India the nation's
        // and the state's halves of one.
        let part = texts.first().is_some_and(|text| vocabulary().half_tax.has(&fold_text(text)));
        let is_tax = has_rate || till || part;
        // `km 148` is no tax.
        let money = |amount: &FoundNumber| !till || amount.is_money();
        let last = amounts.last().filter(|(amount, _)| is_tax && !below && money(amount));
        if let Some((amount, _)) = last.filter(|_| !known) {
            rated |= has_rate || part;
            rows.push((cell.row, amount.value, cell, amount.currency()));
        }
    }
    if let [_, .., (_, _, cell, currency)] = rows.as_slice() {
        let all: Decimal = rows.iter().map(|(_, value, ..)| *value).sum();
        // `Total VAT` under the taxes by rate is their sum.
        let whole = rows.iter().map(|(_, value, ..)| *value).find(|one| *one + *one == all);
        let value = whole.filter(|_| rows.len() > 2).unwrap_or(all);
        let (cell, currency) = (*cell, *currency);
        candidates.push(AmountCandidate {
            role: AmountRole::Vat,
            // Only where it adds up; the sum over all rates is more than one rate's.
            weight: if rated { 7.0 } else { 0.5 },
            value,
            currency,
            cell,
        });
    }
}

/// Adds the printed sum of a labelled net amount and a labelled tax as the total, and the printed
/// difference of a labelled net amount and a labelled total as the tax.
fn add_unlabelled_sums<'a>(matches: &LabelMatches<'a>, candidates: &mut Vec<AmountCandidate<'a>>) {
    let labelled = |role: AmountRole| {
        let own = candidates.iter().filter(move |c| c.role == role && c.weight >= 5.0);
        own.map(|c| (c.value, c.cell)).take(MAX_LABELLED).collect::<Vec<_>>()
    };
    let (mut nets, taxes) = (labelled(AmountRole::Net), labelled(AmountRole::Vat));
    let totals = labelled(AmountRole::Gross);
    let before_tax =
        totals.iter().filter(|(_, at)| !taxes.iter().any(|(_, by)| std::ptr::eq(*at, *by)));
    nets.extend(before_tax.copied().collect::<Vec<_>>());
    let mut found = Vec::new();
    for (amount, cell) in matches.layout.amounts() {
        let own = |other: &TextCell| std::ptr::eq(other, cell);
        let total = nets.iter().any(|(net, at)| {
            let mut taxes = taxes.iter();
            !own(at) && taxes.any(|(tax, by)| !own(by) && net + tax == amount.value)
        });
        let tax = nets.iter().any(|(net, at)| {
            let mut totals = totals.iter();
            !own(at) && totals.any(|(total, by)| !own(by) && total - net == amount.value)
        });
        // `Tip 15 %   5.33` is between the sum and the total as well.
        let tax = tax && !is_no_tax(matches, cell);
        for (role, holds) in [(AmountRole::Gross, total), (AmountRole::Vat, tax)] {
            if holds && !amount.value.is_zero() {
                found.push(AmountCandidate::new(role, 0.5, amount, cell));
            }
        }
    }
    // A labelled total that a labelled tax and a printed amount go beyond is the net amount.
    let before = candidates.iter().filter(|c| c.role == AmountRole::Gross && c.weight >= 5.0);
    let before = before.filter(|c| {
        let made = |tax: &Decimal| found.iter().any(|sum| sum.value == c.value + tax);
        taxes.iter().any(|(tax, _)| !tax.is_zero() && made(tax))
    });
    let nets = before.map(|c| AmountCandidate { role: AmountRole::Net, weight: 0.5, ..c.clone() });
    let nets: Vec<AmountCandidate<'a>> = nets.collect();
    candidates.extend(nets);
    candidates.extend(found);
}

fn choose_totals<'a>(
    candidates: &[AmountCandidate<'a>],
    rests: &PrintedRests<'a>,
) -> TotalAmounts<'a> {
    let of = |role: AmountRole| candidates.iter().filter(move |c| c.role == role);
    let mut best: Option<(f32, [&AmountCandidate<'a>; 3])> = None;
    for gross in of(AmountRole::Gross) {
        for net in of(AmountRole::Net) {
            let fits = |vat: &&AmountCandidate<'a>| {
                vat.value.abs() <= half(net.value) && !is_taken_off(vat.value, net.value)
            };
            for vat in of(AmountRole::Vat).filter(fits) {
                let cost = rests.cost_between(net.value + vat.value, gross.value);
                let same = same_but_sign(net.value, vat.value, gross.value).then_some(0.0);
                let Some(cost) = cost.or(same) else { continue };
                let taxed = if vat.value.is_zero() { 0.0 } else { 4.0 };
                let score = gross.weight + net.weight + vat.weight + taxed - cost;
                if best.as_ref().is_none_or(|(other, _)| score > *other) {
                    best = Some((score, [net, vat, gross]));
                }
            }
        }
    }
    let best = best.map(|(score, chosen)| (score, without_charge(chosen, candidates, rests)));
    match best {
        Some((score, [net, vat, gross])) if score >= 7.0 && !gross.value.is_zero() => {
            TotalAmounts {
                net: Some(FoundValue::new(net.value, true, net.cell)),
                vat: Some(FoundValue::new(vat.value, true, vat.cell)),
                gross: Some(FoundValue::new(gross.value, true, gross.cell)),
                adds_up: true,
                taxed: !vat.value.is_zero(),
                currency: gross.currency.or(net.currency).or(vat.currency),
                ..TotalAmounts::default()
            }
        }
        _ => choose_by_label(candidates, rests),
    }
}

/// A tax is at most half of its base.
fn half(net: Decimal) -> Decimal {
    net.abs() / Decimal::TWO
}

/// A reduction of a positive amount is a discount, not a tax.
fn is_taken_off(vat: Decimal, net: Decimal) -> bool {
    vat < Decimal::ZERO && net > Decimal::ZERO
}

/// Some programs print the tax of a credit note with another sign than its net amount.
fn same_but_sign(net: Decimal, vat: Decimal, gross: Decimal) -> bool {
    net.is_sign_negative() && abs_close(net.abs() + vat.abs(), gross.abs(), TOLERANCE)
}

/// Nothing adds up: the best label decides, and it is certain only if no other of its rank
/// contradicts it.
fn choose_by_label<'a>(
    candidates: &[AmountCandidate<'a>],
    rests: &PrintedRests<'a>,
) -> TotalAmounts<'a> {
    let best = |role: AmountRole| {
        let own = candidates.iter().filter(move |c| c.role == role && c.weight >= 1.0);
        own.max_by(|a, b| a.weight.total_cmp(&b.weight))
    };
    let Some(gross) = best(AmountRole::Gross) else {
        return made_total(best(AmountRole::Net), best(AmountRole::Vat));
    };
    let rivals = candidates.iter().filter(|c| {
        c.role == AmountRole::Gross
            && c.value != gross.value
            && c.weight > gross.weight - 2.0
            && !rests.is_rounded(c.value, gross.value)
    });
    let certain = rivals.count() == 0;
    if let Some(tax) = tax_within(candidates, gross, rests.layout).filter(|_| certain) {
        return TotalAmounts {
            net: Some(FoundValue::new(gross.value - tax.value, true, tax.cell)),
            vat: Some(FoundValue::new(tax.value, true, tax.cell)),
            gross: Some(FoundValue::new(gross.value, true, gross.cell)),
            tax_by_rate: true,
            net_is_rest: true,
            taxed: true,
            currency: gross.currency,
            ..TotalAmounts::default()
        };
    }
    // Net and gross without a printed tax, or tax and gross with the net amount elsewhere.
    let net = best(AmountRole::Net).filter(|net| plausible_net(net.value, gross.value));
    let vat = best(AmountRole::Vat).filter(|vat| vat.value.abs() < gross.value.abs());
    let net = match (net, vat) {
        (Some(net), _) => Some(FoundValue::new(net.value, false, net.cell)),
        (None, Some(vat)) => find_printed(rests.layout, gross.value - vat.value)
            .map(|cell| FoundValue::new(gross.value - vat.value, true, cell)),
        (None, None) => None,
    };
    let vat = vat.filter(|vat| {
        net.as_ref().is_none_or(|net| abs_close(net.value + vat.value, gross.value, TOLERANCE))
    });
    let vat_is_known = vat.is_some();
    TotalAmounts {
        vat: vat.map(|vat| FoundValue::new(vat.value, false, vat.cell)),
        net,
        gross: Some(FoundValue::new(gross.value, certain, gross.cell)),
        taxed: vat_is_known,
        currency: gross.currency,
        ..TotalAmounts::default()
    }
}

/// The total was not read: it is the sum of a labelled net amount and tax. It is not printed, which
/// the gate reports.
fn made_total<'a>(
    net: Option<&AmountCandidate<'a>>,
    vat: Option<&AmountCandidate<'a>>,
) -> TotalAmounts<'a> {
    let (Some(net), Some(vat)) = (net.filter(has_strong_label), vat.filter(has_strong_label))
    else {
        return TotalAmounts::default();
    };
    if vat.value.abs() > half(net.value) {
        return TotalAmounts::default();
    }
    TotalAmounts {
        net: Some(FoundValue::new(net.value, false, net.cell)),
        vat: Some(FoundValue::new(vat.value, false, vat.cell)),
        gross: Some(FoundValue::new(net.value + vat.value, false, net.cell)),
        currency: net.currency,
        ..TotalAmounts::default()
    }
}

fn has_strong_label(c: &&AmountCandidate<'_>) -> bool {
    c.weight >= 5.0
}

/// A net amount is at most the gross one and rarely less than two thirds of it.
fn plausible_net(net: Decimal, gross: Decimal) -> bool {
    let (net, gross) = (net.abs(), gross.abs());
    net <= gross && net * Decimal::from(3) >= gross * Decimal::from(2)
}

#[cfg(test)]
mod tests;
