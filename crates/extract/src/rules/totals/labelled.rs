//! Amounts beside labels: those of sums, and the one of the day by which to pay them where no total
//! is named. Which are taken is the parent's choice.

use super::{AmountCandidate, AmountRole, gather_amounts};
use crate::rules::label_matches::{LabelMatch, LabelMatches};
use crate::rules::layout::TextCell;
use docmill_formats::notation::date;
use docmill_gate::kinds::FieldRole;

/// The amount due is the total only if no other is printed.
const DUE: f32 = 2.5;

/// The amounts beside the labels of sums and of the day by which to pay.
pub(super) fn labelled_amounts<'a>(matches: &LabelMatches<'a>) -> Vec<AmountCandidate<'a>> {
    let mut candidates = Vec::new();
    let kind = matches.kind;
    for (role, field) in [
        (AmountRole::Net, kind.field_of(FieldRole::NetAmount)),
        (AmountRole::Vat, kind.field_of(FieldRole::TaxAmount)),
        (AmountRole::Gross, kind.field_of(FieldRole::Total)),
        (AmountRole::Gross, "payable"),
    ] {
        for label_match in matches.of_field(field) {
            gather_amounts(matches, label_match, role, &mut candidates);
        }
    }
    for label_match in matches.of_role(FieldRole::DueDate) {
        add_due_amount(matches, label_match, &mut candidates);
    }
    candidates
}

/// `To be paid by 3 May   120.00`: the amount right of the due day is the amount due.
fn add_due_amount<'a>(
    matches: &LabelMatches<'a>,
    label_match: &LabelMatch,
    candidates: &mut Vec<AmountCandidate<'a>>,
) {
    let Some(label) = matches
        .cell_of(label_match)
        .filter(|cell: &&TextCell| !date::find_dates(&cell.joined_text()).is_empty())
    else {
        return;
    };
    let beside = matches.value_candidates(label_match).into_iter();
    let right = beside.filter(|one| !one.inline && !one.below && one.cell.row == label.row);
    let mut amounts = right.filter_map(|one| {
        let amount = matches.layout.numbers_in(&one.value_words()).pop()?;
        (amount.is_money() && !amount.percent).then_some((amount, one.cell))
    });
    if let Some((amount, cell)) = amounts.next_back() {
        candidates.push(AmountCandidate::new(AmountRole::Gross, DUE, &amount, cell));
    }
}
