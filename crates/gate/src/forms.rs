//! The form that single values must have.

use serde_json::Value;

use super::subject::json_decimal;
use crate::kinds::ValueFormat;
use docmill_formats::notation::{account, currency, date, vat_digits, vat_id};
use rust_decimal::Decimal;

/// Whether a value that is not null has the form.
pub(super) fn has_format(value: &Value, form: ValueFormat) -> bool {
    let text = value.as_str();
    match form {
        ValueFormat::Text => text.is_some_and(|text| !text.trim().is_empty()),
        ValueFormat::Date => text.and_then(date::parse_iso).is_some(),
        ValueFormat::Number => value.is_number(),
        ValueFormat::Currency => text.and_then(currency::iso_code).is_some(),
        // Many print the national number without a country: its form is not ours to know.
        ValueFormat::VatId => text.is_some_and(|text| {
            vat_id::has_valid_form(text) != Some(false)
                && count_digits(text) >= 5
                && count_digits(text) * 2 > count_letters(text)
        }),
        // Values without the form are the business of another rule.
        ValueFormat::VatIdDigits => {
            text.is_none_or(|text| vat_digits::check_digits_hold(text) != Some(false))
        }
        ValueFormat::Iban => text.is_some_and(account::is_iban),
        ValueFormat::Bic => text.is_some_and(account::is_bic),
        ValueFormat::Name => text.is_some_and(is_name),
        ValueFormat::Address => text.is_some_and(is_address),
        ValueFormat::Identifier => text.is_some_and(is_identifier),
    }
}

fn count_digits(text: &str) -> usize {
    text.chars().filter(char::is_ascii_digit).count()
}

fn count_letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphabetic()).count()
}

/// Whether it is certainly an identifier of another sort: a VAT id or an account.
fn is_other_identifier(text: &str) -> bool {
    let vat = vat_id::has_valid_form(text) == Some(true) && count_digits(text) >= 8;
    vat || account::is_iban(text)
}

/// Names may hold digits, but not more than letters; and an address, unlike a name, has a postal
/// code among several words.
fn is_name(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let address = words.len() > 3 && words.iter().any(|word| count_digits(word) >= 4);
    count_letters(text) >= 2
        && count_digits(text) <= count_letters(text)
        && !is_other_identifier(text)
        && !address
        && !is_doubled(text)
}

/// Characters of the shortest text that is doubled beyond doubt.
const MIN_DOUBLED_CHARS: usize = 8;

/// Whether each character stands twice: letters that were drawn twice for bold print.
fn is_doubled(text: &str) -> bool {
    let all: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let pairs = all.chunks(2).all(|pair| matches!(pair, [one, two] if one == two));
    all.len() >= MIN_DOUBLED_CHARS && pairs && all.iter().any(|c| Some(c) != all.first())
}

/// Several words, or a comma: what a street and a city take at least.
fn is_address(text: &str) -> bool {
    let words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    words.count() >= 3 && count_letters(text) >= 4 && !is_other_identifier(text)
}

fn is_identifier(text: &str) -> bool {
    // Some number documents by the day: a date without marks is a number, one with marks is not.
    let is_date = date::parse_iso(text).is_some()
        || date::find_dates(text).iter().any(|found| found.range == (0..text.len()));
    // Nobody numbers documents in whole sentences.
    let words = text.split_whitespace().count();
    count_digits(text) > 0
        && words <= 4
        && !is_date
        && !is_other_identifier(text)
        && !is_doubled(text)
}

/// Whether a number has at most so many digits before and after the mark.
pub(super) fn is_sane(value: &Value, digits: u32, decimals: u32) -> bool {
    let limit = Decimal::from(10_u64.saturating_pow(digits.min(18)));
    json_decimal(value)
        .is_some_and(|value| value.abs() < limit && value.normalize().scale() <= decimals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_told_from_values_of_another_sort() {
        #[rustfmt::skip]
        let table = [
            (ValueFormat::Name,       json!("1&1 Telecom GmbH"),              true),
            (ValueFormat::Name,       json!("Büro 4711"),                     true),
            (ValueFormat::Name,       json!("Hauptstr. 5, 82216 Maisach"),    false),
            (ValueFormat::Name,       json!("DE123456789"),                   false),
            (ValueFormat::Name,       json!("RE-2017-17"),                    false),
            (ValueFormat::Address,    json!("Hauptstr. 5, 82216 Maisach"),    true),
            (ValueFormat::Address,    json!("Korkstein GmbH"),                false),
            (ValueFormat::Identifier, json!("RE-2017/17"),                    true),
            (ValueFormat::Identifier, json!("618205"),                        true),
            (ValueFormat::Identifier, json!("WWKK--22002266--111188"),        false),
            (ValueFormat::Identifier, json!("W WK K--22002266"),              false),
            (ValueFormat::Identifier, json!("112233"),                        true),
            (ValueFormat::Identifier, json!("11111111"),                      true),
            (ValueFormat::Name,       json!("KKoorrkksstteeiinn"),            false),
            (ValueFormat::Identifier, json!("20240102"),                      true),
            (ValueFormat::Identifier, json!("2024-01-02"),                    false),
            (ValueFormat::Identifier, json!("2. Januar 2024"),                false),
            (ValueFormat::Identifier, json!("Korkstein GmbH"),                false),
            (ValueFormat::Identifier, json!("Weg 5, 82216 Bad Neustadt"),     false),
            (ValueFormat::Identifier, json!("DE123456789"),                   false),
            (ValueFormat::Identifier, json!("DE89370400440532013000"),        false),
            (ValueFormat::VatId,      json!("DE 123 456 789"),                true),
            (ValueFormat::VatId,      json!("DE12345678"),                    false),
            (ValueFormat::VatId,      json!("31480752917"),                   true),
            (ValueFormat::VatId,      json!("Rechnung Nr. 47110"),            false),
            (ValueFormat::VatIdDigits, json!("DE136695976"),                  true),
            (ValueFormat::VatIdDigits, json!("DE136695967"),                  false),
            (ValueFormat::VatIdDigits, json!("no identifier"),                true),
            (ValueFormat::Iban,       json!("DE89370400440532013000"),        true),
            (ValueFormat::Iban,       json!(5),                               false),
            (ValueFormat::Bic,        json!("COBADEFFXXX"),                   true),
            (ValueFormat::Bic,        json!("COBADE"),                        false),
        ];
        for (form, value, expected) in table {
            assert_eq!(has_format(&value, form), expected, "{form:?} {value}");
        }
    }
}
