//! Amounts of a page that read as its total or as what is to be paid, and are not: another total, and the
//! equal or several parts of a payment that a sentence states.

use rust_decimal::Decimal;

use super::einvoice::{PAYABLE, holds_amount};
use super::subject::GateSubject;
use super::sums::{checked_sum, is_close, share_of};
use crate::kinds::FieldRole;
use docmill_core::model::TextLine;
use docmill_formats::notation::fold_text;
use docmill_formats::notation::number::{self, DecimalSeparator};

/// Parts in which an invoice is paid at most.
const MAX_PARTS: u32 = 60;

impl GateSubject<'_> {
    /// Whether a line is a label of the total, or of the amount to pay, and an amount that the data do not
    /// have; and neither a printed number nor a printed percentage is the difference. Of less than the total only
    /// an amount to pay counts: groups of lines have totals of their own.
    pub(super) fn prints_other_total(&self, field: &str, tolerance: Decimal) -> bool {
        let Some(total) = self.field_number(field).map(|it| it.abs()) else { return false };
        let mark = self.decimal_mark();
        let lines = self.transcript.pages.iter().flat_map(|page| &page.lines);
        let mut labelled = lines.filter_map(|line| self.labelled_total(line, field, mark));
        labelled.any(|(amount, is_payable)| {
            (is_payable || amount > total)
                && !self.extraction.data.values().any(|it| holds_amount(it, amount))
                && !self.is_difference_printed(amount, total, tolerance)
        })
    }

    /// The amount of a line that has nothing else but a label, and whether that is what is to be paid.
    fn labelled_total(
        &self,
        line: &TextLine,
        field: &str,
        mark: Option<DecimalSeparator>,
    ) -> Option<(Decimal, bool)> {
        let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
        let amounts = number::find_numbers(&words, mark);
        let [amount] = amounts.as_slice() else { return None };
        let before = words.get(..amount.words.start)?.join(" ");
        let folded = fold_text(&before);
        let folded: Vec<&str> = folded.split(' ').collect();
        let hits = self.kind.labels.labels_at(&folded).into_iter();
        let hit = hits.max_by_key(|hit| hit.length)?;
        let is_payable = hit.field == PAYABLE;
        let currency = self.field_value(self.kind.field_of(FieldRole::Currency)).as_str();
        let is_other_money =
            amount.mark.zip(currency).is_some_and(|(mark, code)| !mark.may_mean(code));
        let is_whole = hit.length == folded.len() && amount.words.end == words.len();
        let is_total = hit.strong && (is_payable || hit.field == field);
        (is_whole && is_total && amount.is_money() && !is_other_money)
            .then(|| (amount.value.abs().normalize(), is_payable))
    }

    fn is_difference_printed(&self, one: Decimal, other: Decimal, tolerance: Decimal) -> bool {
        let rest = one.saturating_sub(other).abs();
        rest <= tolerance
            || !self.ground.number_places(rest).is_empty()
            || self.ground.percentages.iter().any(|rate| {
                [one, other].iter().any(|whole| {
                    share_of(*whole, *rate).is_some_and(|share| is_close(share, rest, tolerance))
                })
            })
    }

    /// Whether a line with one of `words` states parts that together are the total, and `list` has none.
    pub(super) fn prints_parts_of_payment(
        &self,
        list: &str,
        field: &str,
        words: &[String],
        tolerance: Decimal,
    ) -> bool {
        let Some(total) = self.field_number(field).map(|it| it.abs()) else { return false };
        let mut parts = self.ground.amounts_named(words);
        self.list_items(list).next().is_none()
            && parts.any(|amounts| {
                let amounts: Vec<Decimal> =
                    amounts.iter().copied().filter(|it| *it < total).collect();
                let several = checked_sum(&amounts).filter(|_| amounts.len() > 1);
                several.is_some_and(|sum| is_close(sum, total, tolerance))
                    || amounts.iter().any(|part| is_part(*part, total, tolerance))
            })
    }
}

/// Whether a number of equal parts makes the total.
fn is_part(part: Decimal, total: Decimal, tolerance: Decimal) -> bool {
    let count = total.checked_div(part).map(|count| count.round());
    count.filter(|count| (Decimal::TWO..=Decimal::from(MAX_PARTS)).contains(count)).is_some_and(
        |count| {
            is_close(part.saturating_mul(count), total, tolerance.min(count / Decimal::ONE_HUNDRED))
        },
    )
}
