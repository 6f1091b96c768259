//! Currencies: the alphabetic codes of ISO 4217 and the signs that stand for them.
//!
//! A code names one currency alone, a sign may be that of several: what was printed is kept as a
//! [`CurrencyMark`], so that nobody takes one for the other.

/// Active alphabetic codes of ISO 4217 (funds and metals left out), in alphabetical order.
const CODES: &[&str] = &[
    "AED", "AFN", "ALL", "AMD", "AOA", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT", "BGN",
    "BHD", "BIF", "BMD", "BND", "BOB", "BRL", "BSD", "BTN", "BWP", "BYN", "BZD", "CAD", "CDF",
    "CHF", "CLP", "CNY", "COP", "CRC", "CUP", "CVE", "CZK", "DJF", "DKK", "DOP", "DZD", "EGP",
    "ERN", "ETB", "EUR", "FJD", "FKP", "GBP", "GEL", "GHS", "GIP", "GMD", "GNF", "GTQ", "GYD",
    "HKD", "HNL", "HTG", "HUF", "IDR", "ILS", "INR", "IQD", "IRR", "ISK", "JMD", "JOD", "JPY",
    "KES", "KGS", "KHR", "KMF", "KPW", "KRW", "KWD", "KYD", "KZT", "LAK", "LBP", "LKR", "LRD",
    "LSL", "LYD", "MAD", "MDL", "MGA", "MKD", "MMK", "MNT", "MOP", "MRU", "MUR", "MVR", "MWK",
    "MXN", "MYR", "MZN", "NAD", "NGN", "NIO", "NOK", "NPR", "NZD", "OMR", "PAB", "PEN", "PGK",
    "PHP", "PKR", "PLN", "PYG", "QAR", "RON", "RSD", "RUB", "RWF", "SAR", "SBD", "SCR", "SDG",
    "SEK", "SGD", "SHP", "SLE", "SOS", "SRD", "SSP", "STN", "SVC", "SYP", "SZL", "THB", "TJS",
    "TMT", "TND", "TOP", "TRY", "TTD", "TWD", "TZS", "UAH", "UGX", "USD", "UYU", "UZS", "VED",
    "VES", "VND", "VUV", "WST", "XAF", "XCD", "XCG", "XOF", "XPF", "YER", "ZAR", "ZMW", "ZWG",
];

/// Signs and words; `kr` is not among them, three currencies share it.
const SIGNS: &[(&str, &str)] = &[
    ("US$", "USD"),
    ("AU$", "AUD"),
    ("CA$", "CAD"),
    ("NZ$", "NZD"),
    ("MX$", "MXN"),
    ("S$", "SGD"),
    ("A$", "AUD"),
    ("C$", "CAD"),
    ("HK$", "HKD"),
    ("R$", "BRL"),
    ("€", "EUR"),
    ("$", "USD"),
    ("£", "GBP"),
    ("₹", "INR"),
    ("¥", "JPY"),
    ("₺", "TRY"),
    ("₽", "RUB"),
    ("₴", "UAH"),
    ("грн.", "UAH"),
    ("грн", "UAH"),
    ("₪", "ILS"),
    ("₩", "KRW"),
    ("zł", "PLN"),
    ("Kč", "CZK"),
    ("Ft", "HUF"),
    ("Rs.", "INR"),
    ("Rs", "INR"),
    ("Euros", "EUR"),
    ("Euro", "EUR"),
    ("euros", "EUR"),
    ("euro", "EUR"),
    ("Fr.", "CHF"),
    ("lei", "RON"),
    ("Lei", "RON"),
    ("LEI", "RON"),
    ("лв.", "BGN"),
    ("лв", "BGN"),
    ("TL", "TRY"),
    ("RM", "MYR"),
    ("KShs", "KES"),
    ("KSHS", "KES"),
    ("Kshs", "KES"),
    ("KSh", "KES"),
    ("Ksh", "KES"),
    ("TSh", "TZS"),
    ("USh", "UGX"),
    ("₦", "NGN"),
    ("₱", "PHP"),
    ("฿", "THB"),
    ("₫", "VND"),
    ("₸", "KZT"),
    ("₾", "GEL"),
    ("GH₵", "GHS"),
    ("Eur", "EUR"),
];

/// Bytes of the longest of them, and more than a code has: most words are longer, and none.
const MAX_SIGN_BYTES: usize = 7;

/// With which bytes signs begin, and with which they end: most words have neither, and need not be
/// compared with each of them.
const SIGN_EDGES: ([bool; 256], [bool; 256]) = sign_edges();

#[expect(
    clippy::indexing_slicing,
    reason = "a constant that does not compile if it is out of range"
)]
const fn sign_edges() -> ([bool; 256], [bool; 256]) {
    let (mut first, mut last, mut at) = ([false; 256], [false; 256], 0);
    while at < SIGNS.len() {
        let sign = SIGNS[at].0.as_bytes();
        first[sign[0] as usize] = true;
        last[sign[sign.len() - 1] as usize] = true;
        at += 1;
    }
    (first, last)
}

/// Whether the text begins, and whether it ends, as a sign or a code may.
fn currency_edges(text: &str) -> (bool, bool) {
    let bytes = text.as_bytes();
    let (first, last) = &SIGN_EDGES;
    (
        is_edge(first, bytes.first()) || is_code(bytes.first_chunk()),
        is_edge(last, bytes.last()) || is_code(bytes.last_chunk()),
    )
}

fn is_edge(edges: &[bool; 256], byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| edges.get(usize::from(*byte)).copied().unwrap_or(false))
}

fn is_code(three: Option<&[u8; 3]>) -> bool {
    three.is_some_and(|three| three.iter().all(u8::is_ascii_uppercase))
}

/// Signs of several currencies, the one that is mostly meant first, where there is one.
const SHARED: &[(&str, &[&str])] = &[
    (
        "$",
        &[
            "USD", "AUD", "CAD", "NZD", "HKD", "SGD", "MXN", "TWD", "BSD", "BBD", "JMD", "FJD",
            "ARS", "CLP", "COP",
        ],
    ),
    ("kr", &["SEK", "NOK", "DKK", "ISK"]),
    ("£", &["GBP", "EGP", "FKP", "GIP", "SHP"]),
    ("¥", &["JPY", "CNY"]),
];

/// A currency as it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CurrencyMark {
    /// A code of ISO 4217, which names one currency alone.
    Code(&'static str),
    /// A sign or word, which may be that of several currencies.
    Sign(&'static str),
}

impl CurrencyMark {
    /// The currency that a whole word is, such as `EUR`, `€`, `US$` or `kr`.
    pub fn from_word(word: &str) -> Option<Self> {
        let word = word.trim_matches(EDGES);
        if word.len() > MAX_SIGN_BYTES {
            return None;
        }
        iso_code(word).map(Self::Code).or_else(|| {
            let lone = word.trim_end_matches('.').eq_ignore_ascii_case("kr").then_some("kr");
            let may_be = currency_edges(word) == (true, true);
            let sign = SIGNS.iter().find(|(sign, _)| may_be && *sign == word);
            let sign = sign.map(|(sign, _)| *sign);
            sign.or(lone).map(Self::Sign)
        })
    }

    /// The code of the currency that is meant, of several the one that mostly is. Of crowns none is.
    pub fn usual_code(self) -> Option<&'static str> {
        match self {
            Self::Code(code) => Some(code),
            Self::Sign(sign) => SIGNS.iter().find(|(own, _)| *own == sign).map(|(_, code)| *code),
        }
    }

    /// Whether the currency of this code may be meant.
    pub fn may_mean(self, code: &str) -> bool {
        match self {
            Self::Code(own) => own == code,
            Self::Sign(sign) => match SHARED.iter().find(|(own, _)| *own == sign) {
                Some((_, codes)) => codes.contains(&code),
                None => self.usual_code() == Some(code),
            },
        }
    }
}

/// Signs that may surround a currency.
const EDGES: [char; 5] = ['(', ')', ':', '[', ']'];

/// Codes and signs that documents print as words and names as well: `ALL ITEMS`, `TOP`, a Malaysian
/// `SDN BHD`, an Italian `DOP`, room `RM 12`. They stand for money only beside an amount.
const WORDS: &[&str] = &[
    "ALL", "AMD", "BAM", "BHD", "BOB", "COP", "CUP", "DOP", "GEL", "LAK", "MAD", "MOP", "NAD",
    "PEN", "PHP", "RON", "SOS", "TOP", "TRY", "KGS", "RM", "lei", "Lei", "LEI", "TL",
];

/// Whether a word that is a currency is also another word.
pub fn is_also_word(word: &str) -> bool {
    WORDS.contains(&word.trim_matches(EDGES))
}

/// The code, if `code` is one of ISO 4217.
pub fn iso_code(code: &str) -> Option<&'static str> {
    let at = CODES.binary_search(&code).ok()?;
    CODES.get(at).copied()
}

/// The code of a whole word, such as `EUR`, `€` or `US$`.
pub fn exact_currency(word: &str) -> Option<&'static str> {
    CurrencyMark::from_word(word)?.usual_code()
}

/// The currency that a heading names in brackets: `Amt(RM)`, `Total(EUR)`, `(RM)`. Words in brackets
/// that are currencies stand for money.
pub fn bracketed_currency(word: &str) -> Option<&'static str> {
    let (_, inside) = word.trim_end_matches([':', '.']).strip_suffix(')')?.rsplit_once('(')?;
    exact_currency(inside)
}

/// Takes a currency off the front or the back of a number such as `EUR12,50` or `12.50€`.
pub(super) fn strip_currency(word: &str) -> Option<(CurrencyMark, &str)> {
    // Most words hold no number, most numbers no currency: tested before some 200 comparisons.
    let is_bare = word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(|c: char| c.is_ascii_digit());
    if is_bare
        || !word.contains(|c: char| c.is_ascii_digit())
        || currency_edges(word) == (false, false)
    {
        return None;
    }
    let signs = SIGNS.iter().map(|(sign, _)| (*sign, CurrencyMark::Sign(sign)));
    let codes = CODES.iter().map(|code| (*code, CurrencyMark::Code(code)));
    signs.chain(codes).find_map(|(sign, mark)| {
        let front = word.strip_prefix(sign).filter(|rest| {
            rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '−' | '('))
        });
        let rest = front.or_else(|| {
            let rest = word.strip_suffix(sign)?;
            rest.ends_with(|c: char| c.is_ascii_digit() || c == ')').then_some(rest)
        })?;
        (!is_also_word(sign) || has_cents(rest)).then_some((mark, rest))
    })
}

/// Whether a text ends in two decimals.
pub(super) fn has_cents(text: &str) -> bool {
    let decimals = text.rsplit_once([',', '.']).map(|(_, decimals)| decimals);
    decimals.is_some_and(|it| it.len() == 2 && it.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::CurrencyMark::{Code, Sign};
    use super::*;

    #[test]
    fn every_sign_is_found() {
        for (sign, _) in SIGNS {
            assert_eq!(CurrencyMark::from_word(&format!("({sign})")), Some(Sign(sign)), "{sign}");
        }
    }

    #[test]
    fn every_code_is_found() {
        assert!(CODES.iter().all(|code| iso_code(code) == Some(code)));
        assert_eq!(iso_code("XXX"), None);
    }

    #[test]
    fn a_code_means_one_currency_and_a_sign_any_that_shares_it() {
        #[rustfmt::skip]
        let table = [
            // printed, is usually, may be, cannot be
            ("SEK",  Some("SEK"), "SEK", "NOK"),
            ("kr",   None,        "NOK", "EUR"),
            ("Kr.",  None,        "SEK", "USD"),
            ("$",    Some("USD"), "CAD", "EUR"),
            ("US$",  Some("USD"), "USD", "CAD"),
            ("CAD",  Some("CAD"), "CAD", "USD"),
            ("£",    Some("GBP"), "EGP", "EUR"),
            ("¥",    Some("JPY"), "CNY", "USD"),
            ("CNY",  Some("CNY"), "CNY", "JPY"),
            ("Euro", Some("EUR"), "EUR", "GBP"),
        ];
        for (word, usual, possible, impossible) in table {
            let mark = CurrencyMark::from_word(word).unwrap();
            let said = (mark.usual_code(), mark.may_mean(possible), mark.may_mean(impossible));
            assert_eq!(said, (usual, true, false), "{word}");
        }
        assert_eq!(CurrencyMark::from_word("Kran"), None);
    }

    #[test]
    #[rustfmt::skip]
    fn signs_and_codes_stand_for_their_currency() {
        for (word, expected) in [
            ("€", Some("EUR")),
            ("грн.", Some("UAH")),
            ("EUR", Some("EUR")),
            ("(US$)", Some("USD")),
            ("EURO-Palette", None),
        ] {
            assert_eq!(exact_currency(word), expected, "{word}");
        }
        assert_eq!(bracketed_currency("Amt(RM):"), Some("MYR"));
        assert_eq!((bracketed_currency("RM"), bracketed_currency("Tax(6%)")), (None, None));
        assert_eq!(strip_currency("RON95"), None, "petrol");
        assert_eq!(strip_currency("US$12"), Some((Sign("US$"), "12")));
        assert_eq!(strip_currency("12,50€"), Some((Sign("€"), "12,50")));
        assert_eq!(strip_currency("SEK12"), Some((Code("SEK"), "12")));
        assert_eq!(strip_currency("(12,50)€"), Some((Sign("€"), "(12,50)")));
        assert_eq!((strip_currency("EURO"), strip_currency("12x€")), (None, None));
        assert_eq!(strip_currency("RM12.50"), Some((Sign("RM"), "12.50")));
        assert_eq!((strip_currency("TOP10"), strip_currency("12PEN"), strip_currency("RON1.234")), (None, None, None), "a word, a number");
        assert_eq!((iso_code("EUR"), iso_code("XYZ"), iso_code("eur")), (Some("EUR"), None, None));
    }
}
