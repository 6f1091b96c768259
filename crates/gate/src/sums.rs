//! Amounts against each other: totals, payments, lines. Exact decimals, all comparisons within a
//! tolerance that the rule names.
//!
//! An unknown amount fails nothing. Sums that do not come out are taken for sound where the page
//! itself explains the rest, because allowances and charges are printed but have no field.

use docmill_core::model::{PageNote, PageText};
use rust_decimal::Decimal;
use serde_json::{Map, Value};

use super::checks::FailedFields;
use super::subject::{GateSubject, json_decimal};
use crate::kinds::{CashRounding, FieldRole, PaymentWords, RoundingMode, RuleCheck};

/// A list and the totals to which its amounts have to add up.
pub(super) struct ListSumRule<'a> {
    pub(super) list: &'a str,
    pub(super) item: &'a str,
    pub(super) totals: &'a [String],
    pub(super) tolerance: Decimal,
    pub(super) per_item: Decimal,
    pub(super) charges: &'a [String],
    pub(super) sums: &'a [String],
    pub(super) plus: &'a [String],
    pub(super) minus: &'a [String],
}

impl<'a> ListSumRule<'a> {
    /// The rule of a check of this sort; `None` for one of another.
    pub(super) fn of_check(check: &'a RuleCheck) -> Option<Self> {
        let RuleCheck::ListSum {
            list,
            item,
            totals,
            tolerance,
            per_item,
            charges,
            sums,
            plus,
            minus,
        } = check
        else {
            return None;
        };
        let (tolerance, per_item) = (*tolerance, *per_item);
        Some(Self { list, item, totals, tolerance, per_item, charges, sums, plus, minus })
    }
}

/// Terms and the total to which they have to add up.
pub(super) struct SumRule<'a> {
    pub(super) terms: &'a [String],
    pub(super) plus: &'a [String],
    pub(super) minus: &'a [String],
    pub(super) total: &'a str,
    pub(super) tolerance: Decimal,
    pub(super) charges: &'a [String],
    pub(super) rounding: Option<&'a CashRounding>,
}

impl<'a> SumRule<'a> {
    /// A rule that adds up terms only, with no charges or rounding.
    pub(super) fn of_terms(terms: &'a [String], total: &'a str, tolerance: Decimal) -> Self {
        Self { terms, plus: &[], minus: &[], total, tolerance, charges: &[], rounding: None }
    }
}

const HALF_A_CENT: Decimal = Decimal::from_parts(5, 0, 0, false, 3);
/// No country's value added tax is higher (Hungary, 27 %).
pub(super) const MAX_RATE: Decimal = Decimal::from_parts(27, 0, 0, false, 0);
/// The kind of documents whose amounts are returned.
const CREDIT_NOTE: &str = "credit_note";
/// Amounts tried beside words for payments.
const MAX_PAID: usize = 20;
/// Pairs of net and tax that are combined.
const MAX_PAIRS: usize = 40;

pub(super) fn checked_sum(values: &[Decimal]) -> Option<Decimal> {
    values.iter().try_fold(Decimal::ZERO, |sum, value| sum.checked_add(*value))
}

pub(super) fn is_close(a: Decimal, b: Decimal, tolerance: Decimal) -> bool {
    a.checked_sub(b).is_some_and(|difference| difference.abs() <= tolerance)
}

/// `rate` percent of the amount.
pub(super) fn share_of(amount: Decimal, rate: Decimal) -> Option<Decimal> {
    amount.checked_mul(rate)?.checked_div(Decimal::ONE_HUNDRED)
}

/// Whether `total` is `made`, rounded to a multiple of `unit`.
fn is_rounded(made: Decimal, total: Decimal, unit: Decimal, mode: RoundingMode) -> bool {
    let whole = total.checked_rem(unit).is_some_and(|rest| rest.is_zero());
    let (made, total) = (made.abs(), total.abs());
    let Some(added) = total.checked_sub(made) else { return false };
    whole
        && match mode {
            RoundingMode::Nearest => added.abs().saturating_mul(Decimal::TWO) <= unit,
            RoundingMode::Up => added >= Decimal::ZERO && added < unit,
            RoundingMode::Down => added <= Decimal::ZERO && -added < unit,
        }
}

impl GateSubject<'_> {
    /// Whether the terms add up; `None` if one of the values is unknown. Fields of `plus` and `minus`
    /// count where they are known.
    pub(super) fn sum_holds(&self, rule: &SumRule<'_>) -> Option<bool> {
        let terms: Option<Vec<Decimal>> =
            rule.terms.iter().map(|field| self.field_number(field)).collect();
        let mut all = terms?;
        all.extend(rule.plus.iter().filter_map(|field| self.field_number(field)));
        all.extend(
            rule.minus.iter().filter_map(|field| self.field_number(field)).map(|value| -value),
        );
        let (made, total) = (checked_sum(&all)?, self.field_number(rule.total)?);
        Some(is_close(made, total, rule.tolerance) || self.sum_explained(made, total, rule))
    }

    /// The unknown terms, where the known ones do not make the total without them, alone or with a
    /// printed charge.
    pub(super) fn sum_gap(&self, rule: &SumRule<'_>) -> FailedFields {
        let SumRule { terms, total, tolerance, charges, .. } = *rule;
        let known: Vec<Decimal> =
            terms.iter().filter_map(|field| self.field_number(field)).collect();
        let unknown = terms.iter().filter(|field| self.field_number(field).is_none());
        let made = if known.is_empty() { None } else { checked_sum(&known) };
        match (made, self.field_number(total)) {
            (Some(made), Some(total))
                if !is_close(made, total, tolerance)
                    && !total
                        .checked_sub(made)
                        .is_some_and(|rest| self.ground.printed_beside(rest, charges)) =>
            {
                unknown.map(|field| Some(field.clone())).collect()
            }
            _ => FailedFields::new(),
        }
    }

    /// Whether the page or the currency explains the difference between total and sum.
    fn sum_explained(&self, made: Decimal, total: Decimal, rule: &SumRule<'_>) -> bool {
        let Some(rest) = total.checked_sub(made) else { return false };
        if self.is_cash_rounded(made, total, rule) || self.ground.printed_beside(rest, rule.charges)
        {
            return true;
        }
        // All amounts printed beside one of the words, such as a tax by rate.
        let mut sums = rule.charges.iter().map(|word| {
            let numbers = self.ground.numbers_beside(std::slice::from_ref(word));
            checked_sum(&numbers.collect::<Vec<_>>())
        });
        if sums.any(|sum| sum == Some(rest.abs())) {
            return true;
        }
        // A printed charge, with rounding after it.
        let mut charges = self.ground.numbers_beside(rule.charges);
        charges.any(|charge| {
            let charged = made.checked_add(charge);
            charged.is_some_and(|charged| self.is_cash_rounded(charged, total, rule))
        })
    }

    /// Whether the total is the sum, rounded as cash of the document's currency is.
    fn is_cash_rounded(&self, made: Decimal, total: Decimal, rule: &SumRule<'_>) -> bool {
        rule.rounding.is_some_and(|rounding| {
            let currency = self.field_value(&rounding.currency).as_str();
            let unit = currency.and_then(|code| rounding.to.get(code));
            unit.is_some_and(|unit| is_rounded(made, total, *unit, rounding.mode))
        })
    }

    /// Whether a printed payment and the total make another printed amount: then the total is only
    /// the rest that was left to pay.
    pub(super) fn is_after_payment(
        &self,
        total: &str,
        words: &[String],
        tolerance: Decimal,
    ) -> bool {
        let Some(total) = self.field_number(total).map(|it| it.abs()) else { return false };
        let paid = self.ground.numbers_beside(words);
        paid.filter(|paid| *paid > tolerance && *paid != total).any(|paid| {
            let before = total.checked_add(paid);
            // Where they are one half each, either may be meant.
            before.is_some_and(|before| !self.ground.number_places(before).is_empty())
        })
    }

    /// Whether a payment is printed beside one of `words`, and what it leaves of the total is printed
    /// too, while all of the total is said to be due.
    pub(super) fn is_payment_left_out(
        &self,
        total: &str,
        due: &str,
        words: &[String],
        tolerance: Decimal,
    ) -> bool {
        let amounts = self.field_number(total).zip(self.field_number(due));
        let Some((total, _)) = amounts.filter(|(total, due)| is_close(*total, *due, tolerance))
        else {
            return false;
        };
        let mut paid = self.ground.numbers_beside(words).filter(|paid| *paid > tolerance);
        paid.any(|paid| {
            let rest = total.abs().checked_sub(paid).filter(|rest| *rest >= Decimal::ZERO);
            rest.is_some_and(|rest| !self.ground.number_places(rest).is_empty())
        })
    }

    /// The fields whose amount is below that of the field before.
    pub(super) fn amount_order(&self, fields: &[String], tolerance: Decimal) -> FailedFields {
        let known: Vec<(&String, Decimal)> = fields
            .iter()
            .filter_map(|field| Some((field, self.field_number(field)?.abs())))
            .collect();
        let falls = known.windows(2).filter_map(|pair| match pair {
            [(_, before), (field, after)] if *after + tolerance < *before => {
                Some(Some((*field).clone()))
            }
            _ => None,
        });
        falls.collect()
    }

    pub(super) fn list_sum_holds(&self, rule: &ListSumRule<'_>) -> bool {
        let (amounts, known) = self.list_and_totals(rule);
        let (Some(lines), false) = (checked_sum(&amounts), amounts.is_empty() || known.is_empty())
        else {
            return true;
        };
        self.list_makes_total(rule) || self.list_sum_explained(lines, &amounts, &known, rule)
    }

    /// The amounts of the list, and the totals that are known.
    fn list_and_totals(&self, rule: &ListSumRule<'_>) -> (Vec<Decimal>, Vec<Decimal>) {
        let known = rule.totals.iter().filter_map(|field| self.field_number(field)).collect();
        (self.item_numbers(rule.list, rule.item), known)
    }

    /// Whether the lines make a total, alone or with charges and without allowances.
    pub(super) fn list_makes_total(&self, rule: &ListSumRule<'_>) -> bool {
        let (amounts, known) = self.list_and_totals(rule);
        let Some(lines) = checked_sum(&amounts).filter(|_| !amounts.is_empty()) else {
            return false;
        };
        let rounding = rule.per_item.checked_mul(Decimal::from(amounts.len()));
        let slack = rounding.unwrap_or_default() + rule.tolerance;
        let made = [Some(lines), self.with_adjustments(lines, rule)].into_iter().flatten();
        made.into_iter().any(|sum| known.iter().any(|total| is_close(sum, *total, slack)))
    }

    /// The sum of the lines with the charges and without the allowances that were read.
    fn with_adjustments(&self, lines: Decimal, rule: &ListSumRule<'_>) -> Option<Decimal> {
        lines.checked_add(self.field_sum(rule.plus)?)?.checked_sub(self.field_sum(rule.minus)?)
    }

    /// The sum of all values of these fields.
    fn field_sum(&self, fields: &[String]) -> Option<Decimal> {
        let values = fields.iter().flat_map(|field| self.named_values(field));
        let numbers: Vec<Decimal> = values.filter_map(|(_, it)| json_decimal(it)).collect();
        checked_sum(&numbers)
    }

    /// Whether the page explains the difference between lines and total: their sum is printed beside
    /// them, or the rest is an allowance or charge; or the lines are not more than a total, and the
    /// pages show none that the list lacks and hide no cells; or they are more by a printed amount that is none of them.
    fn list_sum_explained(
        &self,
        lines: Decimal,
        amounts: &[Decimal],
        totals: &[Decimal],
        rule: &ListSumRule<'_>,
    ) -> bool {
        let rows = self.number_rows();
        if self.ground.printed_beside(lines, rule.sums) {
            return true;
        }
        let all: Vec<Decimal> = self.extraction.data.values().filter_map(json_decimal).collect();
        let mut has_too_much = true;
        for rest in totals.iter().filter_map(|total| lines.abs().checked_sub(total.abs())) {
            has_too_much &= rest > Decimal::ZERO;
            if self.ground.printed_beside(rest, rule.charges) {
                return true;
            }
        }
        // A sum of lines among the lines, a carry-over or an amount of another line's text: the list
        // has an entry that is none.
        let hide_cells = |page: &PageText| page.notes.contains(&PageNote::HiddenCells);
        !has_too_much
            && !self.transcript.pages.iter().any(hide_cells)
            && rows.show_no_more_than(amounts, &all)
    }

    /// Whether lines of these amounts add up to the total, with or without the tax. A single line that
    /// repeats the total is a confirmation too, since the amount is printed twice.
    pub(super) fn list_confirms(
        &self,
        amounts: &[Decimal],
        total: &str,
        terms: &[String],
        tolerance: Decimal,
    ) -> bool {
        let (Some(total), Some(lines)) = (self.field_number(total), checked_sum(amounts)) else {
            return false;
        };
        let with_tax = terms.iter().filter_map(|field| self.field_number(field));
        let mut sums = with_tax.filter_map(|term| lines.checked_add(term)).chain([lines]);
        !amounts.is_empty() && sums.any(|sum| is_close(sum, total, tolerance))
    }

    /// Whether any other amounts make the total of a check `confirmed`; `None` for another check, or if
    /// the total is not known.
    pub(super) fn total_confirmed(&self, check: &RuleCheck) -> Option<bool> {
        let RuleCheck::Confirmed { terms, total, list, item, tolerance, charges, payment } = check
        else {
            return None;
        };
        self.field_number(total)?;
        let sums = SumRule { charges, ..SumRule::of_terms(terms, total, *tolerance) };
        Some(
            self.sum_holds(&sums) == Some(true)
                || self.list_confirms(&self.item_numbers(list, item), total, terms, *tolerance)
                || self.page_confirms(total, *tolerance)
                || self.payment_confirms(total, payment),
        )
    }

    /// The amounts that a check `confirmed` holds for: the total, and the terms where they make it.
    pub(super) fn confirmed_fields<'c>(&self, check: &'c RuleCheck) -> Vec<&'c String> {
        let RuleCheck::Confirmed { terms, total, tolerance, .. } = check else { return Vec::new() };
        if self.total_confirmed(check) != Some(true) {
            return Vec::new();
        }
        let made = self.sum_holds(&SumRule::of_terms(terms, total, *tolerance)) == Some(true);
        terms.iter().filter(|_| made).chain([total]).collect()
    }

    /// Whether the payment less the change is the total, or the total is printed once more where a card
    /// was charged.
    fn payment_confirms(&self, total: &str, words: &PaymentWords) -> bool {
        let Some(total) = self.field_number(total).map(|it| it.abs()) else { return false };
        let change: Vec<Decimal> =
            self.ground.numbers_named(&words.change).take(MAX_PAID).collect();
        let mut given = self.ground.numbers_named(&words.given).take(MAX_PAID);
        let paid = given.any(|given| {
            let mut back = change.iter().filter_map(|back| given.checked_sub(*back));
            back.any(|paid| paid == total)
        });
        paid || self.ground.number_places(total).len() > 1
            && self.ground.numbers_named(&words.charged).any(|amount| amount == total)
    }

    /// The page's own figures make the total: the column over it, net and tax by the printed rates, or
    /// the rows that are lines beyond doubt.
    pub(super) fn page_confirms(&self, total: &str, tolerance: Decimal) -> bool {
        let Some(total) = self.field_number(total) else { return false };
        let rows = self.number_rows();
        if rows.column_makes(total) {
            return true;
        }
        let total = total.abs();
        let lines = rows.product_amounts();
        if !lines.is_empty()
            && checked_sum(&lines).is_some_and(|it| is_close(it.abs(), total, tolerance))
        {
            return true;
        }
        let gross: Vec<Decimal> = rows
            .net_and_tax_pairs(MAX_RATE)
            .into_iter()
            .take(MAX_PAIRS)
            .filter_map(|(net, tax)| net.checked_add(tax))
            .collect();
        gross.iter().enumerate().any(|(at, one)| {
            let mut pairs = gross.iter().skip(at + 1).filter_map(|two| one.checked_add(*two));
            is_close(*one, total, tolerance) || pairs.any(|it| is_close(it, total, tolerance))
        })
    }

    pub(super) fn list_product(
        &self,
        list: &str,
        factors: &[String],
        item: &str,
        tolerance: Decimal,
    ) -> FailedFields {
        let mut failed = FailedFields::new();
        for (index, row) in self.list_items(list).enumerate() {
            if self.product_holds(row, factors, item, tolerance) == Some(false) {
                failed.push(Some(format!("{list}[{index}]")));
            }
        }
        failed
    }

    /// Whether the factors of an entry make its amount; `None` if one of them is unknown.
    fn product_holds(
        &self,
        row: &Map<String, Value>,
        factors: &[String],
        item: &str,
        tolerance: Decimal,
    ) -> Option<bool> {
        let amount = row.get(item).and_then(json_decimal)?;
        let factors: Option<Vec<Decimal>> =
            factors.iter().map(|factor| json_decimal(row.get(factor)?)).collect();
        let factors = factors?;
        let product = factors
            .iter()
            .try_fold(Decimal::ONE, |product, factor| product.checked_mul(*factor))?;
        // A printed unit price is rounded: the error grows with the quantity.
        let slack = factors.first()?.abs().checked_mul(HALF_A_CENT)?.checked_add(tolerance)?;
        // A base quantity, a discount or charge in the row is the document's own.
        Some(
            self.product_explains(product.abs(), amount.abs(), slack)
                || self.is_priced_by_tens(product.abs(), amount.abs(), slack)
                || self.number_rows().explain_amount(&factors, amount, slack),
        )
    }

    /// Whether the price is for ten, a hundred or a thousand, and that number is printed.
    fn is_priced_by_tens(&self, product: Decimal, amount: Decimal, slack: Decimal) -> bool {
        let mut bases = [10, 100, 1_000].map(Decimal::from).into_iter();
        bases.any(|base| {
            let made = product.checked_div(base);
            made.is_some_and(|made| is_close(made, amount, slack))
                && !self.ground.value_places(&Value::from(base.to_string())).is_empty()
        })
    }

    /// Amounts printed only with the opposite sign, and a total whose sign no line has. Amounts of
    /// credit notes are unsigned in our data.
    pub(super) fn amounts_of_other_sign(&self, fields: &[String]) -> FailedFields {
        if self.kind.name == CREDIT_NOTE {
            return FailedFields::new();
        }
        let sign_of_lines = self.sign_of_lines();
        let total = self.field_value(self.kind.field_of(FieldRole::Total));
        self.fields_where(fields, |value| {
            let amount = json_decimal(value).filter(|amount| !amount.is_zero());
            amount.is_some_and(|amount| {
                let other = sign_of_lines.is_some_and(|it| it != amount.is_sign_negative());
                self.number_rows().contradict_sign(amount) || value == total && other
            })
        })
    }

    /// Whether all printed line amounts are negative, or all positive; `None`: mixed.
    fn sign_of_lines(&self) -> Option<bool> {
        let lines = self.item_numbers(self.kind.field_of(FieldRole::Lines), "amount");
        let mut signs = lines.iter().filter(|it| !it.is_zero()).map(Decimal::is_sign_negative);
        let first = signs.next().filter(|_| !self.lookups.einvoice.is_used())?;
        signs.all(|it| it == first).then_some(first)
    }

    /// Whether the amount is the product, or differs from it by a printed percentage: the tax of a
    /// gross amount or a discount.
    fn product_explains(&self, product: Decimal, amount: Decimal, slack: Decimal) -> bool {
        let shares = self.ground.percentages.iter().filter_map(|rate| share_of(product, *rate));
        let mut with_share = shares
            .flat_map(|share| [product.checked_add(share), product.checked_sub(share)])
            .flatten();
        is_close(product, amount, slack) || with_share.any(|it| is_close(it, amount, slack))
    }
}
