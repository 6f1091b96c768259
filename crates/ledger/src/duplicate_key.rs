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

use std::collections::HashSet;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;

use docmill_core::model::digest;

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
        let (name, number_letters) = (fold_supplier(supplier), fold_number(number));
        if name.is_empty() || number_letters.is_empty() {
            return None;
        }
        let current = digest::sha256_hex(format!("{name}\n{number_letters}"));
        let undated = digest::sha256_hex(format!("{name}\n{}", fold_digits(&fold(number))));
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

fn fold_earlier(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// Letters and digits in lower case, without accents, those that look alike as one.
fn fold(text: &str) -> String {
    let letters = text.nfkd().flat_map(char::to_lowercase).nfkd();
    let kept = letters.filter(|c| c.is_alphanumeric()).map(look_alike);
    kept.collect::<String>().replace('ß', "ss")
}

/// A number without noughts in front of its parts: `RE 0051` is `RE 51`.
fn fold_number(number: &str) -> String {
    let parts = number.split(|c: char| !c.is_alphanumeric()).map(|part| fold_digits(&fold(part)));
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

/// The name's words without the legal form at their end.
pub(crate) fn fold_supplier(supplier: &str) -> String {
    // Compatible forms first: what was a letter with its accent is a word's part then.
    let supplier: String = supplier.nfkc().collect();
    let words =
        supplier.split(|c: char| !c.is_alphanumeric() && !JOINING_MARKS.contains(&c)).map(fold);
    let mut words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
    while let Some(length) = form_length(&words) {
        words.truncate(words.len() - length);
    }
    words.concat()
}

/// How many words at the end are a legal form, behind one that is not.
fn form_length(words: &[String]) -> Option<usize> {
    let longest = MAX_FORM_WORDS.min(words.len().saturating_sub(1));
    (1..=longest).rev().find(|length| {
        let end = words.get(words.len() - length..).unwrap_or_default();
        FORMS.contains(&end.concat())
    })
}

/// Marks within a word: `S.p.A.`, a combining accent.
const JOINING_MARKS: [char; 6] = ['.', '\'', '\u{2019}', '\u{300}', '\u{301}', '\u{308}'];

/// Words of a legal form, at most.
const MAX_FORM_WORDS: usize = 4;

/// Legal forms as they are written; their spellings with dots and blanks fold to the same.
static FORMS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let words = LEGAL_FORMS.split_whitespace().map(fold);
    words.chain(LONG_FORMS.iter().map(|form| fold(form))).collect()
});

const LEGAL_FORMS: &str = "\
    GmbH gGmbH mbH GesmbH AG KG KGaA OHG oHG GbR UG haftungsbeschränkt PartG PartGmbB mbB eK eKfm eKfr \
    eU eG eV SE Co Cie Ltd Limited LLC LLP LP PLC Inc Incorporated Corp Corporation Company Pty Pte Pvt \
    Bhd SA SAS SASU SARL EURL SCI SNC SCA SCS SRL SRLS SpA Sapa SAGL SL SLU SAU SLP Lda Ltda EIRELI \
    SAdeCV SdeRLdeCV NV BV BVBA VOF CV VZW ASBL CommV AB ASA AS ApS IS KS Oy Oyj Tmi SPZOO SPK SPJ Kft Zrt \
    Nyrt Bt sro as vos doo jdoo dd DOOEL EOOD OOD EAD AD ООД ЕООД АД ЕАД ООО ЗАО ПАО ОАО ТОВ ΑΕ ΕΠΕ ΙΚΕ ΟΕ ΕΕ \
    OÜ MTÜ UAB MB SIA ehf hf AŞ FZE FZCO WLL PJSC PSC";

const LONG_FORMS: [&str; 9] = [
    "Aktiengesellschaft",
    "Gesellschaft mit beschränkter Haftung",
    "Kommanditgesellschaft",
    "Aktiebolag",
    "spol s r.o.",
    "Sp. z o.o.",
    "Société anonyme",
    "und Co",
    "and Co",
];

/// The Latin letter that looks like this one, mostly as a capital.
fn look_alike(letter: char) -> char {
    match letter {
        'а' | 'α' => 'a',
        'в' | 'β' => 'b',
        'с' | 'ϲ' => 'c',
        'ԁ' | 'đ' | 'ð' => 'd',
        'е' | 'ε' => 'e',
        'ɡ' => 'g',
        'н' | 'һ' | 'η' => 'h',
        'і' | 'ι' | 'ı' | 'ӏ' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ł' => 'l',
        'м' | 'μ' => 'm',
        'ν' => 'n',
        'о' | 'ο' | 'ø' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'ү' | 'υ' => 'y',
        'ζ' => 'z',
        'ς' => 'σ',
        other => other,
    }
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
}
