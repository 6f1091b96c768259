//! VAT identification numbers by country: their form, not whether they are in use.
//!
//! Forms as in the VIES FAQ of the European Commission, plus Switzerland, Norway, the United
//! Kingdom and Northern Ireland. No check digits: many a sound test or sample number has none.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

/// Country prefix and the form of what follows, without separators.
const FORMS: &[(&str, &str)] = &[
    ("AT", r"U\d{8}"),
    ("BE", r"[01]?\d{9}"),
    ("BG", r"\d{9,10}"),
    ("CY", r"\d{8}[A-Z]"),
    ("CZ", r"\d{8,10}"),
    ("DE", r"\d{9}"),
    ("DK", r"\d{8}"),
    ("EE", r"\d{9}"),
    ("EU", r"\d{9}"),
    ("EL", r"\d{9}"),
    ("GR", r"\d{9}"),
    ("ES", r"[A-Z0-9]\d{7}[A-Z0-9]"),
    ("FI", r"\d{8}"),
    ("FR", r"[A-HJ-NP-Z0-9]{2}\d{9}"),
    ("GB", r"(\d{9}|\d{12}|GD\d{3}|HA\d{3})"),
    ("XI", r"(\d{9}|\d{12}|GD\d{3}|HA\d{3})"),
    ("HR", r"\d{11}"),
    ("HU", r"\d{8}"),
    ("IE", r"(\d{7}[A-W][A-I]?|\d[A-Z+*]\d{5}[A-W])"),
    ("IT", r"\d{11}"),
    ("LT", r"(\d{9}|\d{12})"),
    ("LU", r"\d{8}"),
    ("LV", r"\d{11}"),
    ("MT", r"\d{8}"),
    ("NL", r"\d{9}B\d{2}"),
    ("NO", r"\d{9}(MVA)?"),
    ("PL", r"\d{10}"),
    ("PT", r"\d{9}"),
    ("RO", r"\d{2,10}"),
    ("SE", r"\d{12}"),
    ("SI", r"\d{8}"),
    ("SK", r"\d{10}"),
    ("CHE", r"\d{9}(MWST|TVA|IVA)?"),
];

/// Digits are those of ASCII: the classes of Unicode make the expressions many times as large, and no
/// identifier is written in others.
static COMPILED: LazyLock<Vec<(&'static str, Regex)>> = LazyLock::new(|| {
    let compiled = FORMS.iter().map(|(country, form)| {
        let whole = RegexBuilder::new(&format!("^{country}{form}$")).unicode(false).build();
        whole.map(|regex| (*country, regex))
    });
    compiled.filter_map(Result::ok).collect()
});

/// Upper case, without separators.
pub fn normalise_vat_id(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '+' | '*'));
    letters.flat_map(char::to_uppercase).collect()
}

/// Whether `text` has the form of its country's identifier; none for a country we know no form of.
pub fn has_valid_form(text: &str) -> Option<bool> {
    let id = normalise_vat_id(text);
    let mut known = COMPILED.iter().filter(|(country, _)| id.starts_with(country)).peekable();
    known.peek()?;
    Some(known.any(|(_, form)| form.is_match(&id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_checked_by_their_countrys_form() {
        for (text, expected) in [
            ("DE136695976", Some(true)),
            ("DE 481 305 765", Some(true)),
            ("DE12345678", Some(false)),
            ("NL8641.72.503.B.01", Some(true)),
            ("FR48618402754", Some(true)),
            ("ESA46209177", Some(true)),
            ("BE0641725967", Some(true)),
            ("NO123456789MVA", Some(true)),
            ("CHE-123.456.789 MWST", Some(true)),
            ("31480752917", None),
        ] {
            assert_eq!(has_valid_form(text), expected, "{text}");
        }
    }
}
