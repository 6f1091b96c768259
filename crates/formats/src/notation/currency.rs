//! Currencies: the alphabetic codes of ISO 4217 and the signs that stand for them.

/// Active alphabetic codes of ISO 4217 (funds and metals left out).
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

/// What may stand around a currency.
const EDGES: [char; 5] = ['(', ')', ':', '[', ']'];

/// Codes and signs that documents print as words and names as well: `ALL ITEMS`, `TOP`, a Malaysian
/// `SDN BHD`, an Italian `DOP`, room `RM 12`. They stand for money only beside an amount.
const WORDS: &[&str] = &[
    "ALL", "AMD", "BAM", "BHD", "BOB", "COP", "CUP", "DOP", "GEL", "LAK", "MAD", "MOP", "NAD",
    "PEN", "PHP", "RON", "SOS", "TOP", "TRY", "RM", "lei", "Lei", "LEI", "TL",
];

/// Whether a word that is a currency is also another word.
pub fn is_also_word(word: &str) -> bool {
    WORDS.contains(&word.trim_matches(EDGES))
}

/// The code, if `code` is one of ISO 4217.
pub fn iso_code(code: &str) -> Option<&'static str> {
    CODES.iter().copied().find(|known| *known == code)
}

/// The code a whole word stands for, such as `EUR`, `€` or `US$`.
pub fn exact_currency(word: &str) -> Option<&'static str> {
    let word = word.trim_matches(EDGES);
    iso_code(word).or_else(|| SIGNS.iter().find(|(sign, _)| *sign == word).map(|(_, code)| *code))
}

/// The currency that a heading names in brackets: `Amt(RM)`, `Total(EUR)`, `(RM)`. Words in brackets
/// that are currencies stand for money.
pub fn bracketed_currency(word: &str) -> Option<&'static str> {
    let (_, inside) = word.trim_end_matches([':', '.']).strip_suffix(')')?.rsplit_once('(')?;
    exact_currency(inside)
}

/// Takes a currency off the front or the back of a number such as `EUR12,50` or `12.50€`.
pub(super) fn strip_currency(word: &str) -> Option<(&'static str, &str)> {
    // Most words hold no number, most numbers no currency: said before some 200 comparisons.
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let bare = edge(word.chars().next()) && edge(word.chars().next_back());
    if bare || !word.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let ends_in_digit = |rest: &str| rest.ends_with(|c: char| c.is_ascii_digit() || c == ')');
    let starts_right =
        |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '−' | '('));
    let signs = SIGNS.iter().map(|(sign, code)| (*sign, *code));
    let codes = CODES.iter().map(|code| (*code, *code));
    signs.chain(codes).find_map(|(sign, code)| {
        let front = word.strip_prefix(sign).filter(|rest| starts_right(rest));
        let back = || word.strip_suffix(sign).filter(|rest| ends_in_digit(rest));
        let rest = front.or_else(back)?;
        (!is_also_word(sign) || has_cents(rest)).then_some((code, rest))
    })
}

/// Whether a text ends in two decimals.
pub(super) fn has_cents(text: &str) -> bool {
    let decimals = text.rsplit_once([',', '.']).map(|(_, decimals)| decimals);
    decimals.is_some_and(|it| it.len() == 2 && it.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_and_codes_stand_for_their_currency() {
        for (word, expected) in [
            ("€", Some("EUR")),
            ("EUR", Some("EUR")),
            ("(US$)", Some("USD")),
            ("EURO-Palette", None),
        ] {
            assert_eq!(exact_currency(word), expected, "{word}");
        }
        assert_eq!(bracketed_currency("Amt(RM):"), Some("MYR"));
        assert_eq!((bracketed_currency("RM"), bracketed_currency("Tax(6%)")), (None, None));
        assert_eq!(strip_currency("RON95"), None, "petrol");
        assert_eq!(strip_currency("US$12"), Some(("USD", "12")));
        assert_eq!(strip_currency("12,50€"), Some(("EUR", "12,50")));
        assert_eq!(strip_currency("EURO"), None);
        assert_eq!(strip_currency("RM12.50"), Some(("MYR", "12.50")));
        assert_eq!(
            (strip_currency("TOP10"), strip_currency("12PEN")),
            (None, None),
            "a word, a number"
        );
        assert_eq!((iso_code("EUR"), iso_code("XYZ"), iso_code("eur")), (Some("EUR"), None, None));
    }
}
