//! The key under which an invoice is found again, however supplier and number are spelled.
//!
//! An invoice that is sent twice is spelled twice: once by the XML and once by the page, or with a dot
//! more on purpose. So a key is made of letters and digits alone, without accents, with letters that
//! look alike taken for one, and without the supplier's legal form. Numbers that differ only in where
//! they are divided (`1-11` and `11-1`) share a key: a look too many is cheaper than a payment. Noughts
//! in front of a number do not count. A number is one of its year, as many begin anew with each, and a
//! credit note may have an invoice's.
//!
//! Keys are hashes, because both parts come from outside and a B-tree refuses long values; they are
//! made here and not in SQL, because `lower` depends on the database's locale. Not promised: names
//! in another script or order, transcribed umlauts, misspellings.

use uuid::Uuid;

use docmill_core::model::digest;
use docmill_formats::notation::party_name::{fold_letters, name_key};

/// The kind of documents that may have an invoice's number.
const CREDIT_NOTE: &str = "credit_note";

/// The keys of one invoice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateKeys {
    /// The key that is recorded.
    pub current: String,
    /// The key that releases before this form recorded for the same spelling; finds their rows.
    pub earlier: String,
    /// The key that the release before this one recorded.
    undated: String,
}

impl DuplicateKeys {
    /// `None` if supplier or number has no letter and no digit.
    pub fn new(supplier: &str, number: &str) -> Option<Self> {
        let (name, number_letters) = (name_key(supplier), fold_number(number));
        if name.is_empty() || number_letters.is_empty() {
            return None;
        }
        let current = digest::sha256_hex(format!("{name}\n{number_letters}"));
        let undated = digest::sha256_hex(format!("{name}\n{}", fold_digits(&fold_letters(number))));
        let (name, number) = (fold_earlier(supplier), fold_earlier(number));
        let earlier = digest::sha256_hex(format!("{name}\n{number}"));
        Some(Self { current, earlier, undated })
    }

    /// The keys of a document of this kind by the year of its day of issue (`YYYY-MM-DD`), if that is
    /// known. The earlier key is that of the release before, without both.
    #[must_use]
    pub fn of_issue(self, issued: Option<&str>, kind: &str) -> Self {
        let year = issued.and_then(|day| day.get(..4)).unwrap_or_default();
        let sort = if kind == CREDIT_NOTE { kind } else { "" };
        let current = digest::sha256_hex(format!("{}\n{year}\n{sort}", self.current));
        Self { current, earlier: self.undated.clone(), undated: self.undated }
    }

    /// Whether a row with this key is of the same invoice.
    pub(super) fn contain(&self, key: &str) -> bool {
        key == self.current || key == self.earlier
    }
}

/// Results of one key and tenant that are compared: there may be any number of the same supplier, day and
/// total.
pub(crate) const MAX_COMPARED: i64 = 50;

/// Characters of a number that another supplier is not likely to give on the same day for the same
/// total.
const MIN_NEAR_NUMBER_CHARS: usize = 3;

/// The facts of a result by which near duplicates are found.
#[derive(Debug, Clone, Copy, Default)]
pub struct PaymentFacts<'a> {
    /// The supplier's name.
    pub supplier: Option<&'a str>,
    /// The document's number.
    pub number: Option<&'a str>,
    /// The day of issue, `YYYY-MM-DD`.
    pub issued: Option<&'a str>,
    /// The total, as a decimal number.
    pub total: Option<&'a str>,
    /// Name of the kind.
    pub kind: &'a str,
}

/// The keys of a result that a near duplicate shares: of the same supplier under another number, or of
/// the same number under another spelling of the supplier. Both with the day and the total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NearKeys {
    /// Of supplier, day and total.
    pub amount: Option<Uuid>,
    /// Of number, day and total.
    pub number: Option<Uuid>,
}

impl NearKeys {
    /// `None` if neither is known.
    pub fn new(facts: &PaymentFacts<'_>) -> Option<Self> {
        let total = facts.total.and_then(plain_amount)?;
        let (day, sort) = (facts.issued?, if facts.kind == CREDIT_NOTE { facts.kind } else { "" });
        let rest = format!("{day}\n{total}\n{sort}");
        let supplier = facts.supplier.map(name_key).filter(|name| !name.is_empty());
        let number = facts.number.map(fold_number);
        let number = number.filter(|number| number.chars().count() >= MIN_NEAR_NUMBER_CHARS);
        let amount = supplier.map(|name| short_key(&format!("supplier\n{name}\n{rest}")));
        let number = number.map(|number| short_key(&format!("number\n{number}\n{rest}")));
        (amount.is_some() || number.is_some()).then_some(Self { amount, number })
    }

    /// Whether a result with these keys is a near duplicate.
    pub(super) fn meet(&self, other: &Self) -> bool {
        (self.amount.is_some() && self.amount == other.amount)
            || (self.number.is_some() && self.number == other.number)
    }
}

/// An amount without noughts at its end; none of nothing, or of a power of ten.
fn plain_amount(text: &str) -> Option<String> {
    let sign = text.trim_start_matches('-');
    let is_plain = sign.chars().all(|c| c.is_ascii_digit() || c == '.');
    let digits =
        if sign.contains('.') { sign.trim_end_matches('0').trim_end_matches('.') } else { sign };
    let is_something = digits.chars().any(|c| matches!(c, '1'..='9'));
    let minus = if text.starts_with('-') { "-" } else { "" };
    (is_plain && is_something).then(|| format!("{minus}{digits}"))
}

fn short_key(text: &str) -> Uuid {
    let hash = digest::sha256_hex(text);
    let half = hash.get(..32).and_then(|half| u128::from_str_radix(half, 16).ok());
    Uuid::from_u128(half.unwrap_or_default())
}

fn fold_earlier(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// A number without noughts in front of its parts: `RE 0051` is `RE 51`.
fn fold_number(number: &str) -> String {
    let parts =
        number.split(|c: char| !c.is_alphanumeric()).map(|part| fold_digits(&fold_letters(part)));
    let mut kept = String::new();
    for part in parts {
        for run in part.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
            let run = String::from_utf8_lossy(run);
            let digits = run.starts_with(|c: char| c.is_ascii_digit());
            let rest = if digits { run.trim_start_matches('0') } else { &run };
            // A nought alone is a number.
            kept.push_str(if rest.is_empty() { "0" } else { rest });
        }
    }
    kept
}

/// Letters that look like digits as digits.
fn fold_digits(folded: &str) -> String {
    folded
        .chars()
        .map(|letter| match letter {
            'o' => '0',
            'i' | 'l' => '1',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(supplier: &str, number: &str) -> Option<String> {
        DuplicateKeys::new(supplier, number).map(|keys| keys.current)
    }

    #[test]
    fn an_invoice_has_one_key_however_its_supplier_and_number_are_spelled() {
        let first = key("Müller GmbH", "RE-2024/17");
        assert_eq!(first.as_ref().map(String::len), Some(64));
        #[rustfmt::skip]
        let table = [
            ("MÜLLER  gmbh ",                    "re-2024/17"),
            ("Müller GmbH.",                     "RE-2024/17."),
            ("Müller",                           "RE 2024 17"),
            ("Müller G.m.b.H.",                  "RE2024/17"),
            ("Müller G. m. b. H.",               "RE\u{2011}2024\u{2044}17"),
            ("Müller GmbH & Co. KG",             "RE\u{a0}2024\u{a0}17"),
            ("Müller GmbH und Co KG",            "#RE-2024/17"),
            ("Mu\u{308}ller GmbH",               "RE-2024/17"),
            ("Muller, GmbH",                     "RE_2024_17"),
            ("Müller Aktiengesellschaft",        "ＲＥ－２０２４／１７"),
            ("Müller UG (haftungsbeschränkt)",   "RE-2O24/17"),
            ("Müller Gesellschaft mit beschränkter Haftung", "RE-2024/l7"),
            ("„Müller“ S.p.A.",                  "RE–2024–17"),
            ("Müller Sp. z o.o.",                "RЕ-2024/17"),
            ("Мüller GmbH",                      "RE-2024/17\u{200b}"),
            ("Müller GmbH",                      "RE-2024/0017"),
            ("Müller ООО",                       "RE-2024/17"),
        ];
        for (supplier, number) in table {
            assert_eq!(key(supplier, number), first, "{supplier}, {number}");
        }
        assert_eq!(key("АСМЕ", "Α-1"), key("ACME", "A-1"), "Cyrillic, Greek");
        assert_eq!(key("Straße AG", "1"), key("STRASSE", "1"));
    }

    #[test]
    fn different_invoices_have_different_keys() {
        let first = key("Müller GmbH", "RE-2024/17");
        #[rustfmt::skip]
        let table = [
            ("Müller GmbH",     "RE-2024/171"),
            ("Müller GmbH",     "RE-2024/18"),
            ("Müller GmbH",     "RE-2023/17"),
            ("Müller GmbH",     "GS-2024/17"),
            ("Möller GmbH",     "RE-2024/17"),
            ("Müller Bau GmbH", "RE-2024/17"),
            ("Müllerag",        "RE-2024/17"),
        ];
        for (supplier, number) in table {
            assert_ne!(key(supplier, number), first, "{supplier}, {number}");
        }
        assert_ne!(key("AG", "1"), key("AB", "1"), "a name that is nothing but a form is a name");
        assert_ne!(key("a1", "1"), key("a", "11"), "where the supplier ends is told");
    }

    #[test]
    fn a_number_is_one_of_its_year_and_of_its_sort() {
        let keys = DuplicateKeys::new("Müller", "12").unwrap();
        let first = keys.clone().of_issue(Some("2023-03-15"), "invoice");
        for (issued, kind, same) in [
            (Some("2023-12-31"), "invoice", true),
            (Some("2023-12-31"), "receipt", true),
            (Some("2025-02-18"), "invoice", false),
            (Some("2023-03-15"), "credit_note", false),
            (None, "invoice", false),
        ] {
            let other = keys.clone().of_issue(issued, kind);
            assert_eq!(other.current == first.current, same, "{issued:?} {kind}");
            assert!(other.contain(&keys.current), "a row of the release before is found");
        }
        assert_eq!(key("Müller", "RE 0051"), key("Müller", "RE 51"));
        assert_ne!(key("Müller", "RE 0"), key("Müller", "RE 1"));
        assert_ne!(key("Müller", "RE 510"), key("Müller", "RE 51"));
    }

    #[test]
    fn nothing_is_found_by_a_supplier_or_a_number_without_letters_and_digits() {
        for (supplier, number) in [(" ", "1"), ("x", "\u{a0}"), ("x", "-/-"), ("&", "1")] {
            assert_eq!(key(supplier, number), None, "{supplier}, {number}");
        }
    }

    #[test]
    fn keys_of_earlier_releases_for_the_same_spelling_are_found() {
        let keys = DuplicateKeys::new("Müller  GmbH", "RE 2026/01").unwrap();
        assert_eq!(keys.earlier, digest::sha256_hex("müllergmbh\nre2026/01"));
        let plain = DuplicateKeys::new("acme", "r24").unwrap();
        assert_eq!(plain.current, plain.earlier, "of a plain spelling nothing has changed");
    }

    #[test]
    fn a_near_duplicate_shares_day_and_total_and_either_supplier_or_number() {
        let first = PaymentFacts {
            supplier: Some("Müller GmbH"),
            number: Some("RE-2024/17"),
            issued: Some("2024-03-15"),
            total: Some("119.00"),
            kind: "invoice",
        };
        let keys = NearKeys::new(&first).unwrap();
        for (other, near) in [
            (PaymentFacts { number: Some("RE-2024/71"), ..first }, true),
            (PaymentFacts { number: None, total: Some("119"), ..first }, true),
            (PaymentFacts { supplier: Some("Mueller GmbH"), ..first }, true),
            (PaymentFacts { supplier: Some("MÜLLER G.m.b.H."), number: Some("1"), ..first }, true),
            (PaymentFacts { supplier: None, ..first }, true),
            (PaymentFacts { issued: Some("2025-03-15"), ..first }, false),
            (PaymentFacts { total: Some("119.01"), ..first }, false),
            (PaymentFacts { kind: "credit_note", ..first }, false),
            (PaymentFacts { kind: "receipt", ..first }, true),
            (PaymentFacts { supplier: Some("Möller GmbH"), number: Some("RE-1"), ..first }, false),
        ] {
            let other = NearKeys::new(&other).unwrap();
            assert_eq!(keys.meet(&other), near, "{other:?}");
        }
        for unknown in [
            PaymentFacts { issued: None, ..first },
            PaymentFacts { total: None, ..first },
            PaymentFacts { total: Some("0.00"), ..first },
            PaymentFacts { total: Some("1e3"), ..first },
            PaymentFacts { supplier: Some("&"), number: Some("12"), ..first },
        ] {
            assert_eq!(NearKeys::new(&unknown), None, "{unknown:?}");
        }
    }
}
