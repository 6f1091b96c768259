//! Whether a value is the known one, by the type of what is known: numbers to the cent, dates as
//! dates, identifiers by their letters and digits, names and addresses loosely.

use serde_json::Value;

use docmill_formats::notation::{date, fold_text};

/// Half a cent, with a margin for binary fractions.
const CENT: f64 = 0.005 + 1e-9;

/// Share of an address's words that have to be there.
const ADDRESS: f64 = 0.7;

/// A known word of at least so many letters may be several words that lost their spaces.
const JOINED_WORD: usize = 6;

/// Least similarity of two names or descriptions.
const NAME: f64 = 0.6;

/// Whether `given` is `known`. A known value is never the same as null.
pub(super) fn same_value(field: &str, known: &Value, given: &Value) -> bool {
    match (known, given) {
        (Value::Number(known), Value::Number(given)) => match (known.as_f64(), given.as_f64()) {
            (Some(known), Some(given)) => (known - given).abs() < CENT,
            _ => false,
        },
        (Value::String(known), Value::String(given)) => same_text(field, known, given),
        (Value::Bool(known), Value::Bool(given)) => known == given,
        _ => false,
    }
}

fn same_text(field: &str, known: &str, given: &str) -> bool {
    if let Some(known) = date::parse_iso(known) {
        return date::parse_iso(given) == Some(known);
    }
    if compact(known) == compact(given) {
        return true;
    }
    if field.ends_with("address") {
        return share_of_words(known, given) >= ADDRESS;
    }
    let endings = ["number", "_id", "currency", "iban", "bic"];
    let exact = endings.iter().any(|ending| field.ends_with(ending));
    if field.ends_with("_id") {
        return without_tax(&compact(known)) == without_tax(&compact(given));
    }
    !exact && text_similarity(known, given) >= NAME
}

/// A Swiss or Norwegian identifier without the name of the tax, which some print behind it: it is the same number.
fn without_tax(id: &str) -> &str {
    const TAXES: [(&str, &[&str]); 2] = [("che", &["mwst", "tva", "iva"]), ("no", &["mva"])];
    let taxes = TAXES.iter().filter(|(country, _)| id.starts_with(country));
    let mut ends = taxes.flat_map(|(_, taxes)| taxes.iter());
    ends.find_map(|tax| id.strip_suffix(tax)).unwrap_or(id)
}

/// Share of the known text's words, longer than two letters, that are in the other.
fn share_of_words(known: &str, given: &str) -> f64 {
    let given = fold_text(given);
    let given: Vec<&str> = given.split(' ').collect();
    let known = fold_text(known);
    let words: Vec<&str> = known.split(' ').filter(|word| word.len() > 2).collect();
    if words.is_empty() {
        return 0.0;
    }
    // Data sets lose the spaces between words.
    let joined = given.concat();
    let found = words.iter().filter(|word| {
        given.contains(*word) || (word.chars().count() >= JOINED_WORD && joined.contains(**word))
    });
    found.count() as f64 / words.len() as f64
}

/// Folded, without spaces.
fn compact(text: &str) -> String {
    fold_text(text).replace(' ', "")
}

/// 0..1: words in common, over the words of the shorter text; at least half of the longer text's
/// words have to be among them.
pub(super) fn text_similarity(a: &str, b: &str) -> f64 {
    let (a, b) = (fold_text(a), fold_text(b));
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split(' ').collect(), b.split(' ').collect());
    let mut rest = b.clone();
    let mut common = 0;
    for word in &a {
        if let Some(at) = rest.iter().position(|other| other == word) {
            rest.swap_remove(at);
            common += 1;
        }
    }
    let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
    if common == 0 || common * 2 < long.min(short * 2) {
        return common as f64 / long.max(1) as f64;
    }
    common as f64 / short.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_compared_by_their_type() {
        #[rustfmt::skip]
        let table = [
            ("total", json!(10.0), json!(10), true),
            ("total", json!(10.0), json!(10.004), true),
            ("total", json!(10.0), json!(10.01), false),
            ("total", json!(10.0), json!("10.0"), false),
            ("total", json!(10.0), json!(null), false),
            ("invoice_date", json!("2024-01-02"), json!("2024-01-02"), true),
            ("invoice_date", json!("2024-01-02"), json!("2024-02-01"), false),
            ("invoice_number", json!("RE 17/4"), json!("re17-4"), true),
            ("invoice_number", json!("RE 17/4"), json!("RE 17"), false),
            ("supplier_vat_id", json!("NL8641.72.503.B.01"), json!("NL864172503B01"), true),
            ("supplier_vat_id", json!("CHE-123.456.789"), json!("CHE-123.456.789 TVA"), true),
            ("supplier_vat_id", json!("CHE-123.456.789"), json!("CHE-123.456.780 TVA"), false),
            ("iban", json!("DE89 3704 0044 0532 0130 00"), json!("DE89370400440532013000"), true),
            ("iban", json!("DE89 3704 0044 0532 0130 00"), json!("DE89370400440532013001"), false),
            ("supplier_name", json!("Au gros chêne"), json!("Au gros chêne SARL"), true),
            ("supplier_name", json!("Korkstein GmbH"), json!("Pacht GmbH"), false),
            ("supplier_address", json!("Singel 85, 4611 PK Steenberg, NL"), json!("Singel 85, 4611 PK Steenberg"), true),
            ("supplier_address", json!("Singel 85, 4611 PK Steenberg, NL"), json!("Singel 85"), false),
            ("supplier_address", json!("2817WestCedarAvenue, Boise,ID"), json!("2817 West Cedar Avenue, Boise, ID"), true),
        ];
        for (field, known, given, expected) in table {
            assert_eq!(same_value(field, &known, &given), expected, "{field}: {known} {given}");
        }
    }
}
