//! Each check over one extraction. A check answers with the fields at fault; an empty answer is a
//! pass. Null fields fail only where they are required.

use serde_json::Value;
use time::{Date, Duration};

use super::forms;
use super::subject::Subject;
use super::sums::{ListSum, Sum};
use super::tax::TaxByRate;
use crate::kinds::Check;
use crate::model::Confidence;
use crate::notation::date;

/// Fields at fault; `None` stands for the data as a whole.
pub(super) type Failures = Vec<Option<String>>;

fn whole(failed: bool) -> Failures {
    if failed { vec![None] } else { Vec::new() }
}

fn one(failed: bool, field: &str) -> Failures {
    if failed { vec![Some(field.to_owned())] } else { Vec::new() }
}

impl Subject<'_> {
    /// What fails the check. The score's own is not among them: it is not known yet.
    pub(super) fn failures(&self, check: &Check) -> Failures {
        match check {
            Check::Required(fields) => self.those(fields, is_blank),
            Check::Format(fields, form) => {
                self.those(fields, |value| !value.is_null() && !forms::holds(value, *form))
            }
            Check::Magnitude { fields, digits, decimals } => self.those(fields, |value| {
                value.is_number() && !forms::is_sane(value, *digits, *decimals)
            }),
            Check::DateOrder(fields) => self.date_order(fields),
            Check::DateRange { fields, days_ahead, years_back } => {
                self.those(fields, |value| !self.in_range(value, *days_ahead, *years_back))
            }
            Check::Grounded(fields) => self.those(fields, |value| !self.ground.holds(value)),
            Check::GroundedWords { fields, share } => self.those(fields, |value| {
                value.as_str().is_some_and(|text| !self.ground.holds_words(text, *share))
            }),
            Check::CurrencyPrinted(fields) => self.those(fields, |value| {
                value.as_str().is_some_and(|code| !self.ground.shows_currency(code))
            }),
            Check::Legible { fields, least } => self.those(fields, |value| {
                let places = self.ground.places(value).into_iter();
                places.map(|place| place.confidence).reduce(f32::max).is_some_and(|it| it < *least)
            }),
            Check::NoInstructions { .. } => whole(self.instructions > 0),
            Check::Complete { list, share } => self.complete(list, *share),
            Check::NotContradicted(fields) => self.contradicted(fields),
            Check::EinvoiceUsable => self.einvoice_usable(),
            Check::Duplicate => whole(self.lookups.duplicate_of.is_some()),
            Check::Quality => whole(self.transcript.quality < self.lookups.quality_threshold),
            Check::ReaderSucceeded => whole(!self.extraction.successful),
            Check::Confidence(least) => whole(rank(self.extraction.confidence) < rank(*least)),
            Check::Score { .. } => Vec::new(),
            amounts => self.amounts(amounts),
        }
    }

    fn amounts(&self, check: &Check) -> Failures {
        match check {
            Check::Sum { terms, plus, minus, total, tolerance, charges, rounding } => {
                let (tolerance, rounding) = (*tolerance, rounding.as_ref());
                let rule = Sum { terms, plus, minus, total, tolerance, charges, rounding };
                one(self.sum_holds(&rule) == Some(false), total)
            }
            Check::NoGap { terms, total, tolerance } => self.gap(terms, total, *tolerance),
            Check::TaxRate { net, tax, most, tolerance } => {
                one(!self.tax_rate_holds(net, tax, *most, *tolerance), tax)
            }
            Check::TaxByRate { net, tax, words, most, tolerance, list, per_item } => {
                let (most, tolerance, per_item) = (*most, *tolerance, *per_item);
                let list = list.as_deref();
                let rule = TaxByRate { net, tax, words, most, tolerance, list, per_item };
                one(!self.tax_by_rate_holds(&rule), tax)
            }
            Check::BeforePayment { total, words, tolerance } => {
                one(self.is_after_payment(total, words, *tolerance), total)
            }
            Check::AmountOrder { fields, tolerance } => self.amount_order(fields, *tolerance),
            Check::ListSum { list, item, totals, tolerance, per_item, charges, sums } => {
                let (tolerance, per_item) = (*tolerance, *per_item);
                let rule = ListSum { list, item, totals, tolerance, per_item, charges, sums };
                one(!self.list_sum_holds(&rule), list)
            }
            Check::ListProduct { list, factors, item, tolerance } => {
                self.list_product(list, factors, item, *tolerance)
            }
            Check::Confirmed { terms, total, list, item, tolerance } => {
                let confirmed = self.number(total).is_none()
                    || self.sum_holds(&Sum::plain(terms, total, *tolerance)) == Some(true)
                    || self.list_confirms(&self.item_numbers(list, item), total, terms, *tolerance)
                    || self.page_confirms(total, *tolerance);
                one(!confirmed, total)
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn those(&self, fields: &[String], fails: impl Fn(&Value) -> bool) -> Failures {
        let values = fields.iter().flat_map(|field| self.values(field));
        values.filter(|(_, value)| fails(value)).map(|(name, _)| Some(name)).collect()
    }

    /// A list has at least as many items as rows that are lines beyond doubt, and a share of those
    /// that look like one. An unknown list is another rule's to require.
    fn complete(&self, list: &str, share: f64) -> Failures {
        if self.value(list).is_null() {
            return Vec::new();
        }
        let rows = self.rows();
        let (items, alike) = (self.items(list).count(), rows.of_amounts());
        let few = alike >= FEWEST_ROWS && (items as f64) < share * alike as f64;
        let none = items == 0 && alike > 0;
        one(none || few || items < rows.of_products().len(), list)
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
}

/// Below so many rows their count says nothing.
const FEWEST_ROWS: usize = 8;

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
