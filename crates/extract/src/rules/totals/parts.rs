//! Taxes of which one sale bears two, each in a named row: the halves of India's, federal and
//! provincial in Canada. Both together are the tax; either name may be alone on other pages.

use super::{AmountCandidate, AmountRole, amounts_beside};
use crate::rules::label_matches::{LabelMatch, LabelMatches};
use crate::rules::vocabulary::vocabulary;
use docmill_gate::kinds::FieldRole;

/// Two taxes are as good as the labels of both: better than one of them.
const BOTH: f32 = 7.0;

/// Rows from the first of two taxes to the second.
const MAX_ROWS_BETWEEN: usize = 2;

/// Parts of taxes that are looked at.
const MAX_PARTS: usize = 60;

/// A tax that is one of two.
pub(in super::super) struct TaxPart<'s> {
    /// Its name, without a rate glued to it.
    pub(in super::super) name: &'static str,
    pub(in super::super) row: usize,
    label_match: &'s LabelMatch,
}

/// The taxes with a counterpart on the document.
pub(in super::super) fn tax_parts<'s>(matches: &'s LabelMatches<'_>) -> Vec<TaxPart<'s>> {
    let named = matches.of_role(FieldRole::TaxAmount).filter_map(|label_match| {
        let cell = matches.cell_of(label_match)?;
        let words = cell.folded.iter().filter(|(_, at)| label_match.words.contains(at));
        let names: Vec<&'static str> = words.filter_map(|(text, _)| name_of(text)).collect();
        let [name] = names.as_slice() else { return None };
        Some(TaxPart { name, row: cell.row, label_match })
    });
    let all: Vec<TaxPart<'s>> = named.take(MAX_PARTS).collect();
    // `GST/PST` names both and is the amount of neither.
    let alone =
        |part: &TaxPart<'_>| !all.iter().any(|one| one.row == part.row && one.name != part.name);
    let paired = |part: &TaxPart<'_>| all.iter().any(|one| are_pair(one.name, part.name));
    let kept: Vec<bool> = all.iter().map(|part| alone(part) && paired(part)).collect();
    all.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(part, _)| part).collect()
}

/// `cgst9`: programs glue the rate to the name.
fn name_of(folded: &str) -> Option<&'static str> {
    let plain = folded.trim_end_matches(|c: char| c.is_ascii_digit());
    let paired = vocabulary().tax_pair.iter().flat_map(|pair| pair.split(' '));
    vocabulary().half_tax.iter().chain(paired).find(|name| *name == plain)
}

fn are_pair(one: &str, other: &str) -> bool {
    let words = vocabulary();
    let is_pair = |first: &str, second: &str| words.tax_pair.has(&format!("{first} {second}"));
    let halves = one != other && words.half_tax.has(one) && words.half_tax.has(other);
    halves || is_pair(one, other) || is_pair(other, one)
}

/// Adds the sums of two consecutive taxes.
pub(super) fn add_pairs_of_taxes<'a>(
    matches: &LabelMatches<'a>,
    candidates: &mut Vec<AmountCandidate<'a>>,
) {
    let parts = tax_parts(matches);
    for pair in parts.windows(2) {
        let [one, other] = pair else { continue };
        let near = other.row > one.row && other.row - one.row <= MAX_ROWS_BETWEEN;
        if !near || !are_pair(one.name, other.name) {
            continue;
        }
        let amount = |part: &TaxPart<'_>| {
            let (mut found, below) = amounts_beside(matches, part.label_match);
            found.pop().filter(|(amount, _)| !below && amount.is_money())
        };
        if let Some(((first, _), (second, cell))) = amount(one).zip(amount(other)) {
            candidates.push(AmountCandidate {
                role: AmountRole::Vat,
                weight: BOTH,
                value: first.value + second.value,
                currency: second.currency(),
                cell,
            });
        }
    }
}
