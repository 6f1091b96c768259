//! What single values must look like.

use serde_json::Value;

use super::subject::decimal;
use crate::kinds::Form;
use crate::notation::{account, currency, date, vat_digits, vat_id};
use rust_decimal::Decimal;

/// Whether a value that is not null has the form.
pub(super) fn holds(value: &Value, form: Form) -> bool {
    let text = value.as_str();
    match form {
        Form::Text => text.is_some_and(|text| !text.trim().is_empty()),
        Form::Date => text.and_then(date::parse_iso).is_some(),
        Form::Number => value.is_number(),
        Form::Currency => text.and_then(currency::code).is_some(),
        // Many print the national number without a country: its form is not ours to know.
        Form::VatId => text.is_some_and(|text| {
            vat_id::is_valid(text) != Some(false)
                && digits(text) >= 5
                && digits(text) * 2 > letters(text)
        }),
        // What has not even the form is another rule's to say.
        Form::VatIdDigits => text.is_none_or(|text| vat_digits::hold(text) != Some(false)),
        Form::Iban => text.is_some_and(account::is_iban),
        Form::Bic => text.is_some_and(account::is_bic),
        Form::Name => text.is_some_and(is_name),
        Form::Address => text.is_some_and(is_address),
        Form::Identifier => text.is_some_and(is_identifier),
    }
}

fn digits(text: &str) -> usize {
    text.chars().filter(char::is_ascii_digit).count()
}

fn letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphabetic()).count()
}

/// Whether it is certainly an identifier of another sort: a VAT id or an account.
fn is_other_identifier(text: &str) -> bool {
    let vat = vat_id::is_valid(text) == Some(true) && digits(text) >= 8;
    vat || account::is_iban(text)
}

/// Names may hold digits, but not more than letters; and an address, unlike a name, has a postal
/// code among several words.
fn is_name(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let address = words.len() > 3 && words.iter().any(|word| digits(word) >= 4);
    letters(text) >= 2 && digits(text) <= letters(text) && !is_other_identifier(text) && !address
}

/// Several words, or a comma: what a street and a city take at least.
fn is_address(text: &str) -> bool {
    let words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    words.count() >= 3 && letters(text) >= 4 && !is_other_identifier(text)
}

fn is_identifier(text: &str) -> bool {
    // Some number documents by the day: a date without marks is a number, one with marks is not.
    let is_date = date::parse_iso(text).is_some()
        || date::find(text).iter().any(|found| found.range == (0..text.len()));
    // Nobody numbers documents in whole sentences.
    let words = text.split_whitespace().count();
    digits(text) > 0 && words <= 4 && !is_date && !is_other_identifier(text)
}

/// Whether a number has at most so many digits before and after the mark.
pub(super) fn is_sane(value: &Value, digits: u32, decimals: u32) -> bool {
    let limit = Decimal::from(10_u64.saturating_pow(digits.min(18)));
    decimal(value).is_some_and(|value| value.abs() < limit && value.normalize().scale() <= decimals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_told_from_values_of_another_sort() {
        #[rustfmt::skip]
        let table = [
            (Form::Name,       json!("1&1 Telecom GmbH"),              true),
            (Form::Name,       json!("Büro 4711"),                     true),
            (Form::Name,       json!("Hauptstr. 5, 80333 München"),    false),
            (Form::Name,       json!("DE123456789"),                   false),
            (Form::Name,       json!("RE-2017-17"),                    false),
            (Form::Address,    json!("Hauptstr. 5, 80333 München"),    true),
            (Form::Address,    json!("Lieferant GmbH"),                false),
            (Form::Identifier, json!("RE-2017/17"),                    true),
            (Form::Identifier, json!("471102"),                        true),
            (Form::Identifier, json!("20240102"),                      true),
            (Form::Identifier, json!("2024-01-02"),                    false),
            (Form::Identifier, json!("2. Januar 2024"),                false),
            (Form::Identifier, json!("Lieferant GmbH"),                false),
            (Form::Identifier, json!("Weg 5, 80333 Bad Neustadt"),     false),
            (Form::Identifier, json!("DE123456789"),                   false),
            (Form::Identifier, json!("DE89370400440532013000"),        false),
            (Form::VatId,      json!("DE 123 456 789"),                true),
            (Form::VatId,      json!("DE12345678"),                    false),
            (Form::VatId,      json!("29670869006"),                   true),
            (Form::VatId,      json!("Rechnung Nr. 47110"),            false),
            (Form::VatIdDigits, json!("DE136695976"),                  true),
            (Form::VatIdDigits, json!("DE136695967"),                  false),
            (Form::VatIdDigits, json!("no identifier"),                true),
            (Form::Iban,       json!("DE89370400440532013000"),        true),
            (Form::Iban,       json!(5),                               false),
            (Form::Bic,        json!("COBADEFFXXX"),                   true),
            (Form::Bic,        json!("COBADE"),                        false),
        ];
        for (form, value, expected) in table {
            assert_eq!(holds(&value, form), expected, "{form:?} {value}");
        }
    }
}
