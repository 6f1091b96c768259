//! Each check over one extraction. A check answers with the fields at fault; an empty answer is a
//! pass. Null fields fail only where they are required.

use rust_decimal::Decimal;
use serde_json::Value;
use time::{Date, Duration};

use super::forms;
use super::subject::{GateSubject, json_decimal};
use super::sums::{ListSumRule, SumRule};
use super::tax::{TaxBreakdownRule, TaxByRateRule};
use crate::kinds::{FieldRole, RuleCheck};
use docmill_core::model::{ExtractionMethod, StatedConfidence};
use docmill_formats::notation::date;

/// Fields at fault; `None` is the data as a whole.
pub(super) type FailedFields = Vec<Option<String>>;

fn fail_whole(failed: bool) -> FailedFields {
    if failed { vec![None] } else { Vec::new() }
}

fn fail_field(failed: bool, field: &str) -> FailedFields {
    if failed { vec![Some(field.to_owned())] } else { Vec::new() }
}

impl GateSubject<'_> {
    /// The fields that fail the check. The score's own check is left out: the score is not known
    /// yet.
    pub(super) fn failed_fields(&self, check: &RuleCheck) -> FailedFields {
        match check {
            RuleCheck::Required(fields) => self.fields_where(fields, is_blank),
            RuleCheck::Format(fields, form) => self
                .fields_where(fields, |value| !value.is_null() && !forms::has_format(value, *form)),
            RuleCheck::Magnitude { fields, digits, decimals, currency, digits_in } => {
                let code = currency.as_ref().and_then(|field| self.field_value(field).as_str());
                let digits = code.and_then(|code| digits_in.get(code)).unwrap_or(digits);
                self.fields_where(fields, |value| {
                    value.is_number() && !forms::is_sane(value, *digits, *decimals)
                })
            }
            RuleCheck::PrintedSign(fields) => self.amounts_of_other_sign(fields),
            RuleCheck::DateOrder(fields) => self.date_order(fields),
            RuleCheck::DateRange { fields, days_ahead, years_back } => self
                .fields_where(fields, |value| {
                    !self.is_date_in_range(value, *days_ahead, *years_back)
                }),
            RuleCheck::Grounded { fields, sums, rest_of } => self.fields_where(fields, |value| {
                !self.ground.contains_value(value)
                    && !self.is_printed_sum(value, sums)
                    && !self.is_rest_of(value, rest_of)
            }),
            RuleCheck::GroundedWords { fields, share } => self.fields_where(fields, |value| {
                value.as_str().is_some_and(|text| !self.ground.holds_words(text, *share))
            }),
            RuleCheck::CurrencyPrinted(fields) => self.fields_where(fields, |value| {
                value.as_str().is_some_and(|it| self.denies_currency(it))
            }),
            RuleCheck::Legible { fields, least } => self.fields_where(fields, |value| {
                let places = self.ground.value_places(value).into_iter();
                places.map(|place| place.confidence).reduce(f32::max).is_some_and(|it| it < *least)
            }),
            RuleCheck::Certain { fields, least } => self.uncertain_fields(fields, *least),
            RuleCheck::NoInstructions { .. } => fail_whole(self.instructions > 0),
            RuleCheck::Complete { list, share } => self.list_completeness(list, *share),
            RuleCheck::NotContradicted { fields, sums, rest_of } => {
                self.contradicted_fields(fields, sums, rest_of)
            }
            RuleCheck::DateBeside { fields, words } => self.dates_of_other_day(fields, words),
            RuleCheck::EinvoiceSeen => fail_whole(self.einvoice_unseen()),
            RuleCheck::EinvoiceUsable => self.einvoice_usable(),
            RuleCheck::EinvoiceRules(severity) => self.broken_einvoice_rules(*severity),
            RuleCheck::PaymentCode(fields) => self.fields_against_codes(fields),
            RuleCheck::PaymentCodeUsable => self.code_defects(),
            RuleCheck::PaymentCodePrinted(fields) => self.fields_in_code_alone(fields),
            RuleCheck::NotOwnCompany(fields) => self.fields_of_own_company(fields),
            RuleCheck::AddressedToUs(fields) => self.fields_of_other_buyer(fields),
            RuleCheck::Duplicate => fail_whole(self.lookups.duplicate_of.is_some()),
            RuleCheck::Quality => {
                fail_whole(self.transcript.quality < self.lookups.quality_threshold)
            }
            RuleCheck::ReaderSucceeded => fail_whole(!self.extraction.successful),
            RuleCheck::Confidence(least) => {
                fail_whole(confidence_rank(self.extraction.confidence) < confidence_rank(*least))
            }
            RuleCheck::Score { .. } => Vec::new(),
            history if history.asks_for_history() => self.failed_history(history),
            amounts => self.failed_amounts(amounts),
        }
    }

    /// Whether the pages do not print this currency, or print the total only in another one.
    fn denies_currency(&self, code: &str) -> bool {
        let total = self.field_number(self.kind.field_of(FieldRole::Total));
        !self.ground.shows_currency(code)
            || total.is_some_and(|total| self.ground.prices_otherwise(total, code))
    }

    fn failed_amounts(&self, check: &RuleCheck) -> FailedFields {
        match check {
            RuleCheck::Sum { terms, plus, minus, total, tolerance, charges, rounding } => {
                let (tolerance, rounding) = (*tolerance, rounding.as_ref());
                let rule = SumRule { terms, plus, minus, total, tolerance, charges, rounding };
                fail_field(self.sum_holds(&rule) == Some(false), total)
            }
            RuleCheck::NoGap { terms, total, tolerance, charges } => {
                self.sum_gap(&SumRule { charges, ..SumRule::of_terms(terms, total, *tolerance) })
            }
            RuleCheck::TaxRate { net, tax, most, tolerance } => {
                fail_field(!self.tax_rate_holds(net, tax, *most, *tolerance), tax)
            }
            RuleCheck::TaxByRate { net, tax, words, most, tolerance, list, per_item } => {
                let (most, tolerance, per_item) = (*most, *tolerance, *per_item);
                let list = list.as_deref();
                let rule = TaxByRateRule { net, tax, words, most, tolerance, list, per_item };
                fail_field(!self.tax_by_rate_holds(&rule), tax)
            }
            RuleCheck::BeforePayment { total, words, tolerance } => {
                fail_field(self.is_after_payment(total, words, *tolerance), total)
            }
            RuleCheck::PaymentInData { total, due, words, tolerance } => {
                fail_field(self.is_payment_left_out(total, due, words, *tolerance), due)
            }
            RuleCheck::OneTotal { total, tolerance } => {
                fail_field(self.prints_other_total(total, *tolerance), total)
            }
            RuleCheck::PartsInData { list, total, words, tolerance } => {
                fail_field(self.prints_parts_of_payment(list, total, words, *tolerance), list)
            }
            RuleCheck::AmountOrder { fields, tolerance } => self.amount_order(fields, *tolerance),
            RuleCheck::ListSum { list, .. } => {
                let rule = ListSumRule::of_check(check);
                fail_field(rule.is_some_and(|rule| !self.list_sum_holds(&rule)), list)
            }
            RuleCheck::TaxBreakdown { .. } => {
                let rule = TaxBreakdownRule::of_check(check);
                rule.map(|rule| self.tax_breakdown_faults(&rule)).unwrap_or_default()
            }
            RuleCheck::ListProduct { list, factors, item, tolerance } => {
                self.list_product(list, factors, item, *tolerance)
            }
            RuleCheck::Confirmed { total, .. } => {
                fail_field(self.total_confirmed(check) == Some(false), total)
            }
            _ => Vec::new(),
        }
    }

    fn uncertain_fields(&self, fields: &[String], least: f32) -> FailedFields {
        let certainties = self.extraction.certainties.iter();
        let low = certainties.filter(|one| fields.contains(&one.field) && one.certainty < least);
        low.map(|one| Some(one.field.clone())).collect()
    }

    pub(super) fn fields_where(
        &self,
        fields: &[String],
        fails: impl Fn(&Value) -> bool,
    ) -> FailedFields {
        let values = fields.iter().flat_map(|field| self.named_values(field));
        values.filter(|(_, value)| fails(value)).map(|(name, _)| Some(name)).collect()
    }

    /// Whether a number is what the values of one of these columns make, all printed. Of a single one it
    /// says no more than that the number itself is.
    pub(super) fn is_printed_sum(&self, value: &Value, columns: &[String]) -> bool {
        let Some(wanted) = json_decimal(value) else { return false };
        columns.iter().any(|column| {
            let parts = self.named_values(column).into_iter();
            let mut all = parts
                .map(|(_, part)| json_decimal(part).filter(|_| self.ground.contains_value(part)));
            all.try_fold(Decimal::ZERO, |sum, part| sum.checked_add(part?)) == Some(wanted)
        })
    }

    /// Whether a number is what the second of two printed fields leaves of the first.
    pub(super) fn is_rest_of(&self, value: &Value, fields: &[String]) -> bool {
        let [whole, part] = fields else { return false };
        let rest = self.printed_number(whole).zip(self.printed_number(part));
        let rest = rest.and_then(|(whole, part)| whole.checked_sub(part));
        rest.is_some() && rest == json_decimal(value)
    }

    fn printed_number(&self, field: &str) -> Option<Decimal> {
        let is_printed = self.ground.contains_value(self.field_value(field));
        self.field_number(field).filter(|_| is_printed)
    }

    /// A list has at least as many items with an amount as rows that are lines beyond doubt, and a share
    /// of those that look like one. A list of an e-invoice that makes a total is complete: it is not read off
    /// the rows, which may show charges as lines. An unknown list is another rule's to require, but for the rows beyond
    /// doubt that a model passed over.
    fn list_completeness(&self, list: &str, share: f64) -> FailedFields {
        let sums = self.kind.rules.iter().filter_map(|rule| ListSumRule::of_check(&rule.check));
        let own: Vec<ListSumRule<'_>> = sums.filter(|rule| rule.list == list).collect();
        let is_stated = self.lookups.einvoice.is_used();
        let is_whole = is_stated && own.iter().any(|rule| self.list_makes_total(rule));
        // In dialects without null, an empty list means that the model found none.
        let is_null = self.field_value(list).is_null();
        let is_unknown = is_null && self.extraction.reader != ExtractionMethod::Llm;
        if is_unknown || is_whole {
            return Vec::new();
        }
        let rows = self.number_rows();
        let items = match own.first() {
            Some(rule) => self.item_numbers(list, rule.item).len(),
            None => self.list_items(list).count(),
        };
        let alike = rows.count_amount_rows();
        let few = alike >= MIN_ROWS && (items as f64) < share * alike as f64;
        let none = items == 0 && alike > 0;
        let is_short = (none || few) && !is_null;
        fail_field(is_short || items < rows.product_amounts().len(), list)
    }

    fn date_order(&self, fields: &[String]) -> FailedFields {
        let known: Vec<(&String, Date)> =
            fields.iter().filter_map(|field| Some((field, self.field_date(field)?))).collect();
        let wrong = known.windows(2).filter_map(|pair| match pair {
            [(_, earlier), (field, later)] if later < earlier => Some(Some((*field).clone())),
            _ => None,
        });
        wrong.collect()
    }

    fn is_date_in_range(&self, value: &Value, days_ahead: i64, years_back: i64) -> bool {
        let Some(date) = value.as_str().and_then(date::parse_iso) else { return true };
        let today = self.lookups.today;
        let last = today.checked_add(Duration::days(days_ahead)).unwrap_or(Date::MAX);
        let first = today.checked_sub(Duration::days(years_back * 366)).unwrap_or(Date::MIN);
        (first..=last).contains(&date)
    }
}

/// Below this number of rows their count is no evidence.
const MIN_ROWS: usize = 8;

fn confidence_rank(confidence: StatedConfidence) -> u8 {
    match confidence {
        StatedConfidence::Low => 0,
        StatedConfidence::Medium => 1,
        StatedConfidence::High => 2,
    }
}

fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}
