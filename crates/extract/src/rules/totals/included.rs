//! Unlabelled tax: in brackets behind the total, or as a printed rate's share. The parent chooses
//! among the amounts.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::charges::is_no_tax;
use super::open_parts::is_usual_within;
use super::{AmountCandidate, AmountRole, MAX_LABELLED, half};
use crate::rules::abs_close;
use crate::rules::characters::has_digit;
use crate::rules::label_matches::LabelMatches;
use crate::rules::layout::{CellLayout, TextCell};
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::fold_text;
use docmill_gate::kinds::FieldRole;

/// A tax stated as included in the labelled total.
const INCLUDED: f32 = 5.0;

/// The product of a rate is a tax, but a label is better.
const BY_RATE: f32 = 2.0;

const CENT: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

/// No rate of a tax on sales is higher.
const MAX_RATE: Decimal = Decimal::from_parts(30, 0, 0, false, 0);

/// Where brackets open behind an amount with the included tax: `74.50 (includes`, `9 (inkl.`.
pub(super) fn before_included(words: &[&str]) -> Option<usize> {
    let at = words.iter().position(|word| {
        word.strip_prefix('(').is_some_and(|word| vocabulary().including.has(&fold_text(word)))
    })?;
    let mut before = words.get(..at)?.iter();
    before.any(|word| has_digit(word)).then_some(at)
}

/// `Total 74.50 (includes 12.42 VAT)`: the amount in the brackets is the tax.
pub(super) fn add_included_tax<'a>(
    matches: &LabelMatches<'a>,
    candidates: &mut Vec<AmountCandidate<'a>>,
) {
    for cell in &matches.layout.cells {
        let words = cell.all_words();
        let Some(from) = before_included(&words) else { continue };
        let Some(inside) = words.get(from + 1..) else { continue };
        let words: Vec<&str> =
            inside.iter().map(|word| word.trim_end_matches([')', '.'])).collect();
        let named = matches.in_cell(cell.index).any(|label_match| {
            label_match.has_role(FieldRole::TaxAmount) && label_match.words.start > from
        });
        let mut found = matches.layout.numbers_in(&words).into_iter();
        let tax = found.find(|amount| amount.is_money()).filter(|_| named);
        if let Some(tax) = tax {
            candidates.push(AmountCandidate::new(AmountRole::Vat, INCLUDED, &tax, cell));
        }
    }
}

/// The labelled tax within the total: a printed rate makes it of the total, as shops print it with
/// sums before shipping, or a usual rate does and the page states that it is included.
pub(super) fn tax_within<'c, 'a>(
    candidates: &'c [AmountCandidate<'a>],
    total: &AmountCandidate<'a>,
    layout: &CellLayout,
) -> Option<&'c AmountCandidate<'a>> {
    let gross = total.value;
    let taxes = candidates.iter().filter(|c| c.role == AmountRole::Vat && c.weight >= LABELLED);
    let within = |rate: &Decimal, tax: Decimal| {
        abs_close(gross * *rate / (Decimal::ONE_HUNDRED + *rate), tax, CENT)
    };
    let rates = printed_rates(layout);
    let said = |c: &AmountCandidate<'_>| {
        before_included(&c.cell.all_words()).is_some()
            || layout.row_cells(c.cell.row).iter().any(states_inclusion)
    };
    let usual = |c: &AmountCandidate<'_>| {
        is_usual_within(gross, c.value)
            && [c.cell, total.cell].into_iter().any(|cell| states_within(layout, cell))
    };
    let mut own = taxes.filter(|c| c.value > Decimal::ZERO && c.value <= half(gross));
    own.find(|c| said(c) || usual(c) || rates.iter().any(|rate| within(rate, c.value)))
}

/// `GST content   104.28`, `Total (incl. GST)   799.50`
fn states_within(layout: &CellLayout, amount: &TextCell) -> bool {
    layout.row_cells(amount.row).iter().any(|cell| {
        let words = cell.all_words();
        vocabulary().within.is_within(&fold_text(&words.join(" ")))
    })
}

/// `Total includes GST of   61.50`
fn states_inclusion(cell: &TextCell) -> bool {
    let mut pairs = cell.folded.windows(2);
    pairs.any(|pair| match pair {
        [(total, _), (verb, _)] => total == "total" && vocabulary().includes.has(verb),
        _ => false,
    })
}

/// A tax beside its label, anywhere in its text.
const LABELLED: f32 = 3.0;

/// Two printed amounts that make a labelled total, the smaller a printed rate's share of the
/// larger: net and tax, whatever their names.
pub(super) fn add_sums_by_rate<'a>(
    matches: &LabelMatches<'a>,
    candidates: &mut Vec<AmountCandidate<'a>>,
) {
    let layout = matches.layout;
    let rates: Vec<Decimal> = printed_rates(layout);
    let totals = candidates.iter().filter(|c| c.role == AmountRole::Gross && c.weight >= 2.0);
    let totals: Vec<Decimal> = totals.map(|c| c.value).take(MAX_LABELLED).collect();
    if rates.is_empty() || totals.is_empty() {
        return;
    }
    let mut printed: BTreeMap<Decimal, (&'a TextCell, Option<&'static str>)> = BTreeMap::new();
    for (amount, cell) in layout.amounts() {
        printed.entry(amount.value).or_insert((cell, amount.currency()));
    }
    let mut found = Vec::new();
    // `Tip 15 %` is a share of the sum as well.
    let taxes = printed
        .iter()
        .filter(|(tax, (cell, _))| **tax > Decimal::ZERO && !is_no_tax(matches, cell));
    for (tax, (cell, currency)) in taxes {
        for total in &totals {
            let net = *total - *tax;
            let Some((net_cell, net_currency)) = printed.get(&net) else { continue };
            let by_rate = rates.iter().any(|rate| {
                abs_close(net * *rate / Decimal::ONE_HUNDRED, *tax, CENT) && *tax <= half(net)
            });
            if by_rate {
                for (role, value, cell, currency) in [
                    (AmountRole::Net, net, *net_cell, *net_currency),
                    (AmountRole::Vat, *tax, *cell, *currency),
                ] {
                    found.push(AmountCandidate { role, weight: BY_RATE, value, currency, cell });
                }
            }
        }
    }
    candidates.extend(found);
}

/// The percentages on the page that can be rates of a tax.
fn printed_rates(layout: &CellLayout) -> Vec<Decimal> {
    let cells = layout.cells.iter().flat_map(|cell| {
        let words = cell.all_words();
        layout.numbers_in(&words)
    });
    let rates = cells.filter(|one| one.percent).map(|one| one.value);
    let mut rates: Vec<Decimal> =
        rates.filter(|rate| *rate > Decimal::ZERO && *rate <= MAX_RATE).collect();
    rates.sort_unstable();
    rates.dedup();
    rates
}
