//! Each check over one extraction. A check answers with the fields at fault; an empty answer is a
//! pass. Null fields fail only where they are required.

use std::str::FromStr;

use rust_decimal::Decimal;
use serde_json::{Map, Value};
use time::{Date, Duration};

use super::Lookups;
use super::ground::Ground;
use crate::kinds::{Check, Form};
use crate::model::{Confidence, Extraction, Transcript};
use crate::notation::{currency, date, vat_id};

/// What is judged.
pub(super) struct Subject<'a> {
    extraction: &'a Extraction,
    pub(super) lookups: &'a Lookups,
    pub(super) ground: Ground<'a>,
    quality: f32,
}

/// Fields at fault; `None` stands for the data as a whole.
pub(super) type Failures = Vec<Option<String>>;

impl<'a> Subject<'a> {
    pub(super) fn new(
        extraction: &'a Extraction,
        transcript: &'a Transcript,
        lookups: &'a Lookups,
    ) -> Self {
        let ground = Ground::new(transcript);
        Self { extraction, lookups, ground, quality: transcript.quality }
    }

    pub(super) fn failures(&self, check: &Check) -> Failures {
        let whole = |failed: bool| if failed { vec![None] } else { Vec::new() };
        match check {
            Check::Required(fields) => self.those(fields, |_, value| is_blank(value)),
            Check::Format(fields, form) => {
                self.those(fields, |_, value| !value.is_null() && !has_form(value, *form))
            }
            Check::Magnitude { fields, digits, decimals } => self
                .those(fields, |_, value| value.is_number() && !is_sane(value, *digits, *decimals)),
            Check::Sum { terms, total, tolerance } => self.sum(terms, total, *tolerance),
            Check::ListSum { list, item, totals, tolerance } => {
                self.list_sum(list, item, totals, *tolerance)
            }
            Check::ListProduct { list, factors, item, tolerance } => {
                self.list_product(list, factors, item, *tolerance)
            }
            Check::Confirmed { terms, total, list, item, tolerance } => {
                let confirmed = self.number(total).is_none()
                    || (self.sum_holds(terms, total, *tolerance) == Some(true))
                    || self.list_confirms(&self.item_numbers(list, item), total, terms, *tolerance);
                if confirmed { Vec::new() } else { vec![Some(total.clone())] }
            }
            Check::DateOrder(fields) => self.date_order(fields),
            Check::DateRange { fields, days_ahead, years_back } => {
                self.those(fields, |_, value| !self.in_range(value, *days_ahead, *years_back))
            }
            Check::Grounded(fields) => self.grounded(fields),
            Check::Complete { list, share } => {
                let rows = self.ground.rows_of_amounts();
                let items = self.items(list).count();
                let few = rows >= FEWEST_ROWS && (items as f64) < share * rows as f64;
                if few { vec![Some(list.clone())] } else { Vec::new() }
            }
            Check::Duplicate => whole(self.lookups.duplicate_of.is_some()),
            Check::NotContradicted(fields) => self.contradicted(fields),
            Check::EinvoiceUsable => self.einvoice_usable(),
            Check::Quality => whole(self.quality < self.lookups.quality_threshold),
            Check::ReaderSucceeded => whole(!self.extraction.successful),
            Check::Confidence(least) => whole(rank(self.extraction.confidence) < rank(*least)),
        }
    }

    fn value(&self, field: &str) -> &Value {
        self.extraction.data.get(field).unwrap_or(&Value::Null)
    }

    fn number(&self, field: &str) -> Option<Decimal> {
        decimal(self.value(field))
    }

    pub(super) fn those(&self, fields: &[String], fails: impl Fn(&str, &Value) -> bool) -> Failures {
        let failed = fields.iter().filter(|field| fails(field, self.value(field)));
        failed.cloned().map(Some).collect()
    }

    fn items(&self, list: &str) -> impl Iterator<Item = &Map<String, Value>> {
        self.value(list).as_array().into_iter().flatten().filter_map(Value::as_object)
    }

    fn item_numbers(&self, list: &str, item: &str) -> Vec<Decimal> {
        self.items(list).filter_map(|row| decimal(row.get(item)?)).collect()
    }

    /// Whether the terms add up; nothing if one of the values is unknown.
    fn sum_holds(&self, terms: &[String], total: &str, tolerance: Decimal) -> Option<bool> {
        let terms: Option<Vec<Decimal>> = terms.iter().map(|field| self.number(field)).collect();
        Some(close(sum(&terms?)?, self.number(total)?, tolerance))
    }

    fn sum(&self, terms: &[String], total: &str, tolerance: Decimal) -> Failures {
        match self.sum_holds(terms, total, tolerance) {
            Some(false) => vec![Some(total.to_owned())],
            _ => Vec::new(),
        }
    }

    fn list_sum(&self, list: &str, item: &str, totals: &[String], tolerance: Decimal) -> Failures {
        let amounts = self.item_numbers(list, item);
        let known: Vec<Decimal> = totals.iter().filter_map(|field| self.number(field)).collect();
        let fits = sum(&amounts)
            .is_some_and(|sum| known.iter().any(|total| close(sum, *total, tolerance)));
        // With one of them unknown, lines without tax would be held against a total with tax.
        if amounts.is_empty() || known.len() < totals.len() || fits {
            return Vec::new();
        }
        vec![Some(list.to_owned())]
    }

    /// Lines that add up to the total, or with the tax to the total. A single line that repeats
    /// the total says nothing new, but is printed twice: that is a confirmation too.
    fn list_confirms(
        &self,
        amounts: &[Decimal],
        total: &str,
        terms: &[String],
        tolerance: Decimal,
    ) -> bool {
        let (Some(total), Some(lines)) = (self.number(total), sum(amounts)) else { return false };
        let with_tax = terms.iter().filter_map(|field| self.number(field));
        let mut sums = with_tax.filter_map(|term| lines.checked_add(term)).chain([lines]);
        !amounts.is_empty() && sums.any(|sum| close(sum, total, tolerance))
    }

    fn list_product(
        &self,
        list: &str,
        factors: &[String],
        item: &str,
        tolerance: Decimal,
    ) -> Failures {
        let fails = |row: &Map<String, Value>| {
            let amount = row.get(item).and_then(decimal)?;
            let mut product = Decimal::ONE;
            for factor in factors {
                product = product.checked_mul(decimal(row.get(factor)?)?)?;
            }
            // A printed unit price is rounded: the error grows with the quantity.
            let most = factors.first().and_then(|field| decimal(row.get(field)?))?.abs();
            let slack = most.checked_mul(HALF_A_CENT)?.checked_add(tolerance)?;
            Some(!close(product.abs(), amount.abs(), slack))
        };
        let failed = self.items(list).enumerate().filter(|(_, row)| fails(row) == Some(true));
        failed.map(|(index, _)| Some(format!("{list}[{index}]"))).collect()
    }

    fn date(&self, field: &str) -> Option<Date> {
        date::parse_iso(self.value(field).as_str()?)
    }

    fn date_order(&self, fields: &[String]) -> Failures {
        let known: Vec<(&String, Date)> =
            fields.iter().filter_map(|field| Some((field, self.date(field)?))).collect();
        let wrong = known.windows(2).filter_map(|pair| match pair {
            [(_, earlier), (field, later)] if later < earlier => Some(Some((*field).clone())),
            _ => None,
        });
        wrong.collect()
    }

    fn in_range(&self, value: &Value, days_ahead: i64, years_back: i64) -> bool {
        let Some(date) = value.as_str().and_then(date::parse_iso) else { return true };
        let today = self.lookups.today;
        let last = today.checked_add(Duration::days(days_ahead)).unwrap_or(Date::MAX);
        let first = today.checked_sub(Duration::days(years_back * 366)).unwrap_or(Date::MIN);
        (first..=last).contains(&date)
    }

    fn grounded(&self, fields: &[String]) -> Failures {
        let mut failures = Vec::new();
        for field in fields {
            match field.split_once('.') {
                None => {
                    if !self.ground.holds(self.value(field)) {
                        failures.push(Some(field.clone()));
                    }
                }
                Some((list, item)) => {
                    for (index, row) in self.items(list).enumerate() {
                        if !row.get(item).is_none_or(|value| self.ground.holds(value)) {
                            failures.push(Some(format!("{list}[{index}].{item}")));
                        }
                    }
                }
            }
        }
        failures
    }
}

/// Below so many rows the count says nothing.
const FEWEST_ROWS: usize = 8;

const HALF_A_CENT: Decimal = Decimal::from_parts(5, 0, 0, false, 3);

fn rank(confidence: Confidence) -> u8 {
    match confidence {
        Confidence::Low => 0,
        Confidence::Medium => 1,
        Confidence::High => 2,
    }
}

fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// A JSON number as the decimal it was written as.
pub(super) fn decimal(value: &Value) -> Option<Decimal> {
    let text = value.as_number()?.to_string();
    Decimal::from_str(&text).or_else(|_| Decimal::from_scientific(&text)).ok()
}

fn sum(values: &[Decimal]) -> Option<Decimal> {
    values.iter().try_fold(Decimal::ZERO, |sum, value| sum.checked_add(*value))
}

fn close(a: Decimal, b: Decimal, tolerance: Decimal) -> bool {
    a.checked_sub(b).is_some_and(|difference| difference.abs() <= tolerance)
}

fn has_form(value: &Value, form: Form) -> bool {
    let text = value.as_str();
    match form {
        Form::Text => text.is_some_and(|text| !text.trim().is_empty()),
        Form::Date => text.and_then(date::parse_iso).is_some(),
        Form::Number => value.is_number(),
        Form::Currency => text.and_then(currency::code).is_some(),
        // Many print the national number without a country: its form is not ours to know.
        Form::VatId => text.is_some_and(|text| {
            let digits = text.chars().filter(char::is_ascii_digit).count();
            vat_id::is_valid(text) != Some(false) && digits >= 5
        }),
    }
}

fn is_sane(value: &Value, digits: u32, decimals: u32) -> bool {
    let limit = Decimal::from(10_u64.saturating_pow(digits.min(18)));
    decimal(value).is_some_and(|value| value.abs() < limit && value.normalize().scale() <= decimals)
}
