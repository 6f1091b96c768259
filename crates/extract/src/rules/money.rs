//! The currency of a document's amounts: beside its label, else the most frequent one, else, for
//! crowns, that of the country of its words. If none is printed, that of the country of its VAT
//! identifiers, accounts, taxes and registers; a guess where these belong to several countries or
//! to one that changed its currency lately.

use super::FoundValue;
use super::characters::is_digits;
use super::label_matches::{LabelMatch, LabelMatches};
use super::layout::TextCell;
use super::supplier::{ends_in_zip_code, is_british_code, is_canadian_code};
use super::vocabulary::{FoldedWords, vocabulary};
use docmill_formats::notation::{account, currency, number, printed_vat_id};
use docmill_gate::kinds::FieldRole;

/// Finds the currency of the document's amounts.
pub(super) fn find_currency(matches: &LabelMatches<'_>) -> Option<FoundValue<&'static str>> {
    labelled_currency(matches)
        .or_else(|| most_frequent_currency(matches))
        .or_else(|| resolve_krone(matches))
        .or_else(|| find_rands(matches))
        .or_else(|| country_currency(matches))
}

/// The currency beside its label.
pub(super) fn labelled_currency(matches: &LabelMatches<'_>) -> Option<FoundValue<&'static str>> {
    let mut labels = matches
        .of_role(FieldRole::Currency)
        .flat_map(|label_match| matches.value_candidates(label_match));
    labels.find_map(|beside| {
        let code = beside.value_words().into_iter().take(2).find_map(currency::exact_currency)?;
        Some(FoundValue::new(code, true, beside.cell))
    })
}

/// Beside amounts or in the headings over them, else, unless it is a word as well, anywhere.
fn most_frequent_currency(matches: &LabelMatches<'_>) -> Option<FoundValue<&'static str>> {
    let of_amounts = matches.layout.cells.iter().enumerate().flat_map(|(index, cell)| {
        let words = cell.all_words();
        let amounts = number::find_numbers(&words, None).into_iter();
        let amounts = amounts.filter_map(|amount| amount.currency());
        // A sign that is also a word is money only alone, as the heading of a column, or beside an
        // amount of money.
        let money = words.len() == 1 || matches.in_cell(index).any(is_of_money);
        let signs = words.iter().filter(|_| money).filter(|word| {
            let word = word.split('(').next().unwrap_or_default();
            currency::is_also_word(word) && currency::iso_code(word).is_none()
        });
        let signs: Vec<&'static str> =
            signs.filter_map(|word| currency::exact_currency(word.split('(').next()?)).collect();
        let headings = words.into_iter().filter_map(currency::bracketed_currency).chain(signs);
        amounts.chain(headings).map(move |code| (code, cell)).collect::<Vec<_>>()
    });
    let plain = matches.layout.cells.iter().enumerate().flat_map(|(index, cell)| {
        // `NASI MUR PEDA`: among other capitals a rare code is a word, but not in `TOTAL CAD`.
        let capitals = cell.words.iter().filter(|word| is_capital_word(word)).count();
        let sum = matches.in_cell(index).any(|label_match| {
            label_match.words.start == 0
                && label_match.words.end + 1 == cell.words.len()
                && label_match.has_role(FieldRole::Total)
        });
        let is_word = move |code: &str| capitals > 1 && !sum && !WIDELY_USED.contains(&code);
        let words = cell.words.iter().filter(move |word| {
            !currency::is_also_word(word) && !currency::exact_currency(word).is_some_and(&is_word)
        });
        // The label of a total counts more than a word of a line.
        let often = if sum { 2 } else { 1 };
        let codes = words.filter_map(|word| currency::exact_currency(word));
        codes.flat_map(move |code| std::iter::repeat_n((code, cell), often))
    });
    most_frequent(of_amounts.chain(plain))
}

/// Whether the field of a label is an amount.
fn is_of_money(label_match: &LabelMatch) -> bool {
    let columns = ["tendered", "change", "column_amount", "column_unit_price"];
    label_match.is_sum() || columns.contains(&label_match.field.as_str())
}

/// Codes that are printed among capitals and are no words.
const WIDELY_USED: [&str; 14] = [
    "EUR", "USD", "GBP", "CHF", "JPY", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "AUD", "NZD",
    "SGD",
];

fn is_capital_word(word: &str) -> bool {
    word.len() >= 3 && word.chars().all(|c| c.is_ascii_uppercase())
}

fn most_frequent<'a>(
    found: impl Iterator<Item = (&'static str, &'a TextCell)>,
) -> Option<FoundValue<&'static str>> {
    let mut counts: Vec<(&'static str, usize, &TextCell)> = Vec::new();
    for (code, cell) in found {
        match counts.iter_mut().find(|(known, ..)| *known == code) {
            Some((_, count, _)) => *count += 1,
            None => counts.push((code, 1, cell)),
        }
    }
    let most = counts.iter().map(|(_, count, _)| *count).max()?;
    let alone = counts.iter().filter(|(_, count, _)| *count == most).count() == 1;
    let (code, _, cell) = counts.into_iter().find(|(_, count, _)| *count == most)?;
    Some(FoundValue::new(code, alone, cell))
}

/// `kr` beside an amount is one of three currencies; the language decides.
fn resolve_krone(matches: &LabelMatches<'_>) -> Option<FoundValue<&'static str>> {
    let cells = &matches.layout.cells;
    let cell = cells.iter().find(|cell| {
        cell.words
            .iter()
            .any(|word: &String| word.trim_matches([':', '.', ',', '-']).eq_ignore_ascii_case("kr"))
    })?;
    // An identifier of the country counts as much as two of its words.
    let country = country_currency(matches);
    let mut ranked = crowns_of_words(matches);
    for (votes, code) in &mut ranked {
        *votes += if country.as_ref().is_some_and(|found| found.value == *code) { 2 } else { 0 };
    }
    ranked.sort_by_key(|(votes, _)| std::cmp::Reverse(*votes));
    match *ranked.as_slice() {
        // Two words of one country and none of the others leave no doubt.
        [(most, code), (next, _), ..] if most > next => {
            let sure = country.is_some_and(|found| found.certain && found.value == code);
            Some(FoundValue::new(code, sure || most > 1 && next == 0, cell))
        }
        _ => None,
    }
}

/// `R 31,846.00`: a letter that is South Africa's money alone before amounts with cents.
fn find_rands(matches: &LabelMatches<'_>) -> Option<FoundValue<&'static str>> {
    let mut marked = matches.layout.cells.iter().filter(|cell: &&TextCell| {
        let words = cell.all_words();
        // A gap may part the letter from the amount.
        let right = matches.layout.next_in_row(cell);
        let parted = words == ["R"]
            && right.is_some_and(|right| {
                let words = right.all_words();
                number::find_numbers(&words, None).iter().any(|amount| amount.is_money())
            });
        if parted {
            return true;
        }
        let amounts = number::find_numbers(&words, None);
        amounts.iter().filter(|amount| amount.is_money()).any(|amount| {
            let before = amount.words.start.checked_sub(1).and_then(|at| words.get(at));
            let first =
                words.get(amount.words.start).map_or("", |word| word.trim_start_matches('*'));
            before == Some(&"R") || first.starts_with('R') && amount.mark.is_none()
        })
    });
    let (first, _) = (marked.next()?, marked.next()?);
    Some(FoundValue::new("ZAR", true, first))
}

/// How many words of each country with crowns the page has.
fn crowns_of_words(matches: &LabelMatches<'_>) -> Vec<(usize, &'static str)> {
    let text: String = matches.layout.cells.iter().map(folded_line).collect();
    let votes = |words: &FoldedWords| {
        words.iter().filter(|word| text.contains(&format!(" {word} "))).count()
    };
    vocabulary().crowns.by_code().map(|(code, words)| (votes(words), code)).collect()
}

/// The crowns of the one country that at least two words on the page are of.
fn worded_crowns(matches: &LabelMatches<'_>) -> Option<&'static str> {
    let mut ranked = crowns_of_words(matches);
    ranked.sort_by_key(|(votes, _)| std::cmp::Reverse(*votes));
    match *ranked.as_slice() {
        [(most, code), (0, _), ..] if most > 1 => Some(code),
        _ => None,
    }
}

/// The meaning of `$` where no code is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DollarSign {
    /// The page names a tax or register of one country alone.
    Of(&'static str),
    /// It names a tax that the United States have not.
    Foreign,
    /// Nothing speaks against the United States.
    Plain,
}

/// The currency that decides the order of day and month: its `$` are those of the country of the
/// tax. On a receipt they are unknown where that tax does not exist in the United States.
pub(super) fn currency_of_days(
    matches: &LabelMatches<'_>,
    code: Option<&'static str>,
) -> Option<&'static str> {
    let Some("USD") = code else { return code };
    match resolve_dollar(matches) {
        DollarSign::Of(own) => Some(own),
        DollarSign::Foreign if matches.style.shop_head => None,
        DollarSign::Foreign | DollarSign::Plain => code,
    }
}

/// The country of a document's `$` or pesos.
pub(super) fn resolve_dollar(matches: &LabelMatches<'_>) -> DollarSign {
    let cells = &matches.layout.cells;
    if cells.iter().any(|cell| {
        cell.words.iter().any(|word: &String| word.contains("USD") || word.contains("US$"))
    }) {
        return DollarSign::Plain;
    }
    let text: String = cells.iter().map(folded_line).collect();
    let has = |word: &str| text.contains(&format!(" {word} "));
    let mut named = vocabulary().dollars.by_code().filter(|(_, words)| words.iter().any(has));
    match (named.next(), named.next()) {
        (Some((code, _)), None) => DollarSign::Of(code),
        (Some(_), Some(_)) => DollarSign::Foreign,
        // A tax on goods and services beside a postal code of Canada's shape.
        _ if has("gst") && has_canadian_code(cells) => DollarSign::Of("CAD"),
        _ if names_new_zealand(cells).is_some() => DollarSign::Of("NZD"),
        _ if vocabulary().foreign_tax.iter().any(has) => DollarSign::Foreign,
        _ => DollarSign::Plain,
    }
}

fn has_canadian_code(cells: &[TextCell]) -> bool {
    cells.iter().any(|cell| {
        cell.words
            .windows(2)
            .any(|pair: &[String]| matches!(pair, [a, b] if is_canadian_code(a, b)))
    })
}

/// Where the tax on goods and services is named, and New Zealand: by a number of its office, the
/// country, or the end of an address in the net. Australia has that tax as well, and another
/// number.
fn names_new_zealand(cells: &[TextCell]) -> Option<&TextCell> {
    let named = |cell: &&TextCell, words: &[&str]| {
        let line = folded_line(cell);
        words.iter().any(|word| line.contains(&format!(" {word} ")))
    };
    cells.iter().find(|cell| named(cell, &["gst"]))?;
    cells.iter().find(|cell| {
        named(cell, &["new zealand", "nz", "nzbn"])
            || cell.words.iter().any(|word| is_inland_revenue_number(word))
    })
}

/// Where a tax is named that Canada alone has among countries with dollars, beside a postal code of
/// its shape.
fn names_canadian_tax(cells: &[TextCell]) -> Option<&TextCell> {
    let (_, taxes) = vocabulary().dollars.by_code().find(|(code, _)| *code == "CAD")?;
    cells
        .iter()
        .find(|cell: &&TextCell| {
            let line = folded_line(cell);
            taxes.iter().any(|tax| line.contains(&format!(" {tax} ")))
        })
        .filter(|_| has_canadian_code(cells))
}

/// Where a tax is named, which is no VAT, beside an address in the United States: a state and a ZIP
/// code.
fn names_state_tax(cells: &[TextCell]) -> Option<&TextCell> {
    cells.iter().find(|cell| ends_in_zip_code(&cell.words))?;
    let taxed = cells.iter().find(|cell| folded_line(cell).contains(" tax "))?;
    (!cells.iter().any(|cell| folded_line(cell).contains(" vat "))).then_some(taxed)
}

/// `118-447-118`, `61-447-118`: a New Zealand tax number.
fn is_inland_revenue_number(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let parts: Vec<&str> = word.split('-').collect();
    matches!(parts.as_slice(), [a, b, c] if (2..=3).contains(&a.len()) && b.len() == 3 && c.len() == 3)
        && parts.iter().all(|part: &&str| is_digits(part))
}

/// The folded words of a cell, each with a space before and behind it.
fn folded_line(cell: &TextCell) -> String {
    let words: Vec<&str> = cell.folded.iter().map(|(word, _)| word.as_str()).collect();
    format!(" {} ", words.join(" "))
}

/// Countries with their code before VAT identifiers and a currency other than the euro.
const OWN_CURRENCIES: [(&str, &str); 11] = [
    ("CH", "CHF"),
    ("CZ", "CZK"),
    ("DK", "DKK"),
    ("GB", "GBP"),
    ("HU", "HUF"),
    ("IS", "ISK"),
    ("NO", "NOK"),
    ("PL", "PLN"),
    ("RO", "RON"),
    ("SE", "SEK"),
    ("UA", "UAH"),
];
const EURO_COUNTRIES: [&str; 23] = [
    "AT", "BE", "BG", "CY", "DE", "EE", "EL", "ES", "FI", "FR", "HR", "IE", "IT", "LT", "LU", "LV",
    "MT", "NL", "PT", "SI", "SK", "XI", "GR",
];

/// Countries that adopted the euro recently: older documents are in other currencies.
const RECENT_EURO: [&str; 2] = ["BG", "HR"];

/// The currency of the one country of all VAT identifiers, else of all accounts, else of the names
/// of taxes and registers. Invoices in a foreign currency print it, so this is certain unless one
/// of these, or the page's words, point to another currency.
fn country_currency(matches: &LabelMatches<'_>) -> Option<FoundValue<&'static str>> {
    let ids = find_identified(matches, |words| printed_vat_id::find_at(words).map(|(id, _)| id));
    let accounts = find_identified(matches, |words| account::find_iban_at(words).map(|(id, _)| id));
    let named = [only_currency(&ids), only_currency(&accounts), taxed_currency(matches)];
    let mut codes: Vec<&str> = named.iter().flatten().map(|found| found.value).collect();
    codes.extend(worded_crowns(matches));
    let found = named.into_iter().flatten().next()?;
    let countries = || ids.iter().chain(&accounts).map(|(country, _)| country.as_str());
    // A name shared by several countries identifies none and contradicts none: it is a doubt.
    let foreign = countries().any(|country| currency_of_country(country) != Some(found.value));
    let recent = countries().any(|country| RECENT_EURO.contains(&country));
    let agree = codes.iter().all(|code| *code == found.value);
    Some(FoundValue { certain: agree && !foreign && !recent, ..found })
}

/// The countries that identifiers or accounts on the pages are of, each with its cell.
fn find_identified<'a>(
    matches: &LabelMatches<'a>,
    begins: impl Fn(&[&str]) -> Option<String>,
) -> Vec<(String, &'a TextCell)> {
    let mut found = Vec::new();
    for cell in &matches.layout.cells {
        let ids =
            (0..cell.words.len()).filter_map(|at| begins(&cell.words_in(at..cell.words.len())));
        let countries = ids.filter_map(|id| id.get(..2).map(str::to_owned));
        let lettered = countries.filter(|code| code.chars().all(|c| c.is_ascii_uppercase()));
        found.extend(lettered.map(|code| (code, cell)));
    }
    found
}

/// The currency of the one country, or of those with the euro, of the taxes and registers on the
/// page; in English that of the country of a postal code beside a tax.
fn taxed_currency(matches: &LabelMatches<'_>) -> Option<FoundValue<&'static str>> {
    let cells = &matches.layout.cells;
    let lines: Vec<String> = cells.iter().map(folded_line).collect();
    let named_at = |words: &FoldedWords| {
        lines
            .iter()
            .position(|line: &String| words.iter().any(|word| line.contains(&format!(" {word} "))))
            .and_then(|at| cells.get(at))
    };
    let taxes = vocabulary().taxed.by_code();
    let mut named = taxes.filter_map(|(code, words)| Some((code, named_at(words)?)));
    let (code, cell) = match (named.next(), named.next()) {
        (Some(_), Some(_)) => return None,
        (Some(found), None) => found,
        (None, _) => [
            ("GBP", names_british_tax(cells)),
            ("NZD", names_new_zealand(cells)),
            ("CAD", names_canadian_tax(cells)),
            ("USD", names_state_tax(cells)),
        ]
        .into_iter()
        .find_map(|(code, cell)| Some((code, cell?)))?,
    };
    Some(FoundValue::new(code, true, cell))
}

/// A postal code of Britain's shape on a page that names VAT.
fn names_british_tax(cells: &[TextCell]) -> Option<&TextCell> {
    cells.iter().find(|cell| folded_line(cell).contains(" vat "))?;
    cells.iter().find(|cell| {
        cell.words.windows(2).any(|pair: &[String]| matches!(pair, [a, b] if is_british_code(a, b)))
    })
}

/// The currency of the countries found, if it is one.
fn only_currency(countries: &[(String, &TextCell)]) -> Option<FoundValue<&'static str>> {
    let known =
        countries.iter().filter_map(|(code, cell)| Some((currency_of_country(code)?, *cell)));
    let known: Vec<(&'static str, &TextCell)> = known.collect();
    let (code, cell) = *known.last()?;
    let one = known.iter().all(|(other, _)| *other == code);
    one.then(|| FoundValue::new(code, true, cell))
}

fn currency_of_country(country: &str) -> Option<&'static str> {
    let own = OWN_CURRENCIES.iter().find(|(code, _)| *code == country);
    own.map(|(_, currency)| *currency)
        .or_else(|| EURO_COUNTRIES.contains(&country).then_some("EUR"))
}

#[cfg(test)]
mod tests {
    use super::super::layout::CellLayout;
    use super::super::layout::tests::transcript;
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    #[test]
    fn the_currency_is_read_from_labels_amounts_and_for_crowns_from_the_language() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        for (drawing, expected) in [
            ("Currency: GBP\nTotal   12.00 EUR\nNet   10.00 EUR", Some("GBP")),
            ("Amount (EUR)\nTotal   12.00", Some("EUR")),
            ("WOODEN KETTLE SDN BHD\nTotal   12.00", None),
            ("WOODEN KETTLE SDN BHD\nTotal   RM 12.00", Some("MYR")),
            ("MMK TOOLS\nItem   Amt(RM)   Tax(RM)\nTotal   12.00", Some("MYR")),
            ("2   XL NASI MUR PEDA   12.00\nTotal   12.00", None),
            ("Item   RM\nTea   12.00", Some("MYR")),
            ("Room RM 12\nTotal   12.00", None),
            ("Item   Price RM(TOTAL)\nTea   12.00", Some("MYR")),
            ("Petrol RON97 sold\nTotal   RM 12.00", Some("MYR")),
            ("ALL ITEMS\nTOP QUALITY\nTotal   12.00", None),
            ("Faktura\nAtt betala   1 250,00 kr\nFörfallodatum   2024-05-01", Some("SEK")),
            ("Faktura\nÅ betale   1 250,00 kr\nMVA 25 %   250,00", Some("NOK")),
            ("Faktura\nAt betale   1.250,00 kr.\nCVR-nr.   12345678", Some("DKK")),
            ("Faktura\nTotal   1 250,00 kr", None),
            ("Faktura\nMoms   12,00 kr\nVAT-nr SE556677889901", Some("SEK")),
            ("Rechnung\nUSt-IdNr. DE123456789\nTotal   12,00", Some("EUR")),
            ("Invoice\nVAT No. GB 123 4567 82\nTotal   12.00", Some("GBP")),
            ("Invoice\nVAT No. GB 123 4567 82\nYour VAT No. DE123456789\nTotal   12.00", None),
            ("Fattura\nIBAN IT60 X054 2811 1010 0000 0123 456\nTotale   12,00", Some("EUR")),
            ("Invoice\nTotal   12.00", None),
            ("Invoice\nMill Lane, Ely CB7 4ZZ\nVAT No 309 9720 79\nTotal   12.00", Some("GBP")),
            ("Invoice\nMill Lane, Ely CB7 4ZZ\nTotal   12.00", None),
            ("Τιμολόγιο\nΑΦΜ 668787873\nΣύνολο   12,00", Some("EUR")),
            ("Τιμολόγιο\nIBAN GR16 0110 1250 0000 0001 2300 695\nΣύνολο   12,00", Some("EUR")),
            ("Faktura\nNIP 111-111-11-11\nRazem   12,00", Some("PLN")),
            ("Faktura\nNIP 111-111-11-11\nP.IVA 08732430122\nRazem   12,00", None),
            ("Tax invoice\nGST   118-447-118\nTotal   12.00", Some("NZD")),
            ("Tax invoice\nGST   1.80\nTotal   12.00", None),
            ("Invoice\nPort Mill, WA 98368\nState Tax   1.80\nTotal   12.00", Some("USD")),
            ("Invoice\nPort Mill, WA 98368-1204\nTotal   12.00", None),
            ("Invoice\nPort Mill, WA 98368\nVAT   1.80\nTotal without tax   12.00", None),
            ("Tax invoice\nAmount KSHS\nTotal KSHS   12.00", Some("KES")),
        ] {
            let layout = CellLayout::new(&transcript(&[drawing]));
            let found = find_currency(&LabelMatches::new(&layout, kinds.get("invoice").unwrap()));
            assert_eq!(found.map(|found| found.value), expected, "{drawing}");
        }
    }

    #[test]
    fn a_dollar_sign_is_that_of_the_country_whose_tax_is_named() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        for (drawing, expected) in [
            ("Sous-total   640,00 $\nTPS 5 %   32,00 $", DollarSign::Of("CAD")),
            ("ABN 44 771 182 044\nTotal   $893.20", DollarSign::Of("AUD")),
            ("RFC: APB044771KX2\nTotal   $21,344.00", DollarSign::Of("MXN")),
            ("GST   $81.20\nTotal   $893.20", DollarSign::Foreign),
            ("NIT 900.447.118-8\nTotal   $ 893.20", DollarSign::Of("COP")),
            ("GST 118-447-118\nTotal   $893.20", DollarSign::Of("NZD")),
            ("GST   $81.20\nTotal   $893.20\nwww.kettle.co.nz", DollarSign::Of("NZD")),
            ("Ship to   Northtown, New Zealand\nTotal   $893.20", DollarSign::Plain),
            ("ABN 44 771 182 044\nGST   $81.20\nAuckland, New Zealand", DollarSign::Of("AUD")),
            ("ABN 44 771 182 044\nCUIT 30-1\nTotal   $893.20", DollarSign::Foreign),
            ("ABN 44 771 182 044\nTotal   USD 893.20", DollarSign::Plain),
            ("Sales tax   $81.20\nTotal   $893.20", DollarSign::Plain),
        ] {
            let layout = CellLayout::new(&transcript(&[drawing]));
            let matches = LabelMatches::new(&layout, kinds.get("invoice").unwrap());
            assert_eq!(resolve_dollar(&matches), expected, "{drawing}");
        }
    }
}
