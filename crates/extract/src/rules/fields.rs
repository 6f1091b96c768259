//! Single values beside labels: identifiers.

use super::FoundValue;
use super::characters::{count_digits, has_digit, is_digits};
use super::label_matches::{LabelMatch, LabelMatches, ValueCandidate};
use super::supplier::has_postal_code;
use super::vocabulary::vocabulary;
use docmill_formats::notation::account::begins_with_iban_country;
use docmill_formats::notation::{date, fold_text, number, printed_vat_id};

const MAX_IDENTIFIER: usize = 40;

/// How good a place for a value is: how sure the label and how usual the position.
fn candidate_rank(
    matches: &LabelMatches<'_>,
    label_match: &LabelMatch,
    beside: &ValueCandidate<'_>,
) -> f32 {
    let Some(cell) = matches.cell_of(label_match) else { return 0.0 };
    let mut rank = if label_match.strong { 10.0 } else { 4.0 };
    if label_match.words.start == 0 {
        rank += 3.0;
    }
    if beside.below {
        rank -= 1.0;
    }
    if cell.words.len() > 12 {
        rank -= 3.0;
    }
    rank - cell.page.min(5) as f32 - matches.layout.depth_on_page(cell)
}

/// The identifier beside the best of `field`'s labels.
pub(super) fn labelled_identifier(
    matches: &LabelMatches<'_>,
    field: &str,
) -> Option<FoundValue<String>> {
    let mut best: Option<(f32, FoundValue<String>)> = None;
    for label_match in matches.of_field(field) {
        for beside in matches.value_candidates(label_match) {
            let Some(value) = read_identifier(&beside.value_words(), beside.inline) else {
                continue;
            };
            let rank = candidate_rank(matches, label_match, &beside);
            if best.as_ref().is_none_or(|(other, _)| rank > *other) {
                let marked = beside.value_words().first().is_some_and(|word| word.starts_with('#'));
                let certain = label_match.strong || marked || beside.inline;
                best = Some((rank, FoundValue::new(value, certain, beside.cell)));
            }
            break;
        }
    }
    best.map(|(_, found)| found)
}

/// Whether a folded word may be between a label and its value: only marks, or `no.`
pub(super) fn is_before_value(folded: &str) -> bool {
    let words = vocabulary();
    folded.is_empty() || words.number_mark.has(folded) || words.before_value.has(folded)
}

/// Reads an identifier off the front of `words`.
pub(super) fn read_identifier(words: &[&str], inline: bool) -> Option<String> {
    let skipped = words.iter().take_while(|word| {
        // Folded, `č.` is the letter of a series.
        is_before_value(&fold_text(word))
            || matches!(**word, "č." | "č" | "Č." | "čís.")
            || (word.starts_with('(') && word.ends_with(')'))
    });
    let words = words.get(skipped.count()..)?;
    let mut taken: Vec<&str> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let rest = words.get(at..)?.join(" ");
        // `FV 12/03/2024`: numbered by the month, behind a series.
        let of_series = at > 0 && word.contains('/') && taken.last().is_some_and(|w| is_series(w));
        let is_date =
            !of_series && date::find_dates(&rest).first().is_some_and(|date| date.range.start == 0);
        if vocabulary().after_value.has(&fold_text(word)) || is_date {
            break;
        }
        taken.push(word);
        let has_digit = taken.iter().any(|word| has_digit(word));
        let joined = is_joined(words.get(at + 1..).unwrap_or_default())
            || matches!(*word, "/" | "-" | "–")
            || words.get(at + 1).is_some_and(|next| is_group_after(word, next))
            || is_last_group(&taken, words.get(at + 1).copied());
        if inline && has_digit && !joined {
            break;
        }
        // Running text, unless a short prefix such as `RE` or `INV` precedes the number.
        let prefix = is_series(word) || *word == "#";
        if inline && !has_digit && (taken.len() > 1 || !prefix) {
            return None;
        }
    }
    let text = taken.join(" ");
    let text =
        text.trim_start_matches(|c| is_edge_mark(c) || c == ' ').trim_end_matches(is_separator);
    let text = without_abbreviation(text);
    is_identifier(text, taken.len()).then(|| text.to_owned())
}

/// `318 / 08.03.2025`: the day has its own place.
fn is_separator(c: char) -> bool {
    is_edge_mark(c) || matches!(c, ' ' | '/' | '–')
}

fn is_edge_mark(c: char) -> bool {
    matches!(c, ':' | ',' | ';' | '#' | '.' | '*' | '"' | '\'')
}

/// `wydr.184503`: a point alone parts the end of the label from the number.
fn without_abbreviation(text: &str) -> &str {
    let glued = text.split_once('.').filter(|(front, number)| {
        front.chars().count() > 2
            && front.chars().all(char::is_lowercase)
            && number.len() > 2
            && is_digits(number)
    });
    glued.map_or(text, |(_, number)| number)
}

/// Whether a number goes on behind a mark of its own: `118 - 204`, but not `118 - Northtown, 3
/// May`.
fn is_joined(next: &[&str]) -> bool {
    let [mark, part, ..] = next else { return false };
    matches!(*mark, "/" | "-" | "–") && has_digit(part)
}

/// A short prefix such as `RE`, `INV` or `FV`.
fn is_series(word: &str) -> bool {
    let word = word.trim_start_matches('#');
    // `ΤΠΥ-Α 1184`: a kind of document and its series.
    let parts =
        word.split('-').all(|part| !part.is_empty() && part.chars().all(char::is_uppercase));
    (1..=5).contains(&word.chars().count()) && parts
}

/// `2024 0017 7741`, `W240 3391`: digits that are printed in groups are one number.
fn is_group_after(word: &str, next: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && is_digits(text);
    let word = word.trim_start_matches('#');
    let lettered =
        word.len() <= 4 && digits(word.trim_start_matches(|c: char| c.is_ascii_uppercase()));
    let groups = if digits(word) { 2..=4 } else { 4..=4 };
    (digits(word) || lettered) && digits(next) && groups.contains(&next.len())
}

/// Digits of the last group of a number, behind others that are no shorter than three.
const LAST_GROUP: std::ops::RangeInclusive<usize> = 5..=6;

/// `710 2266 10944`: the last group may be longer behind two groups or more, or behind one with a
/// leading zero.
fn is_last_group(taken: &[&str], next: Option<&str>) -> bool {
    let long = taken.first().is_some_and(|word| word.len() >= 4 && word.starts_with('0'));
    let groups = taken.iter().all(|word| word.len() >= 3 && is_digits(word));
    let groups = groups && (taken.len() > 1 || long);
    groups && next.is_some_and(|next| LAST_GROUP.contains(&next.len()) && is_digits(next))
}

/// A town with its postal code, as in the column beside a heading: `Leeds LS1 4AB`.
fn is_town(text: &str) -> bool {
    // `FEYO 7718`: a series in capitals before its number.
    if let Some((series, number)) = text.split_once(' ')
        && is_series(series)
        && is_digits(number)
    {
        return false;
    }
    let named = text.split(' ').any(|word| {
        word.chars().count() >= 4 && has_only_letters(word) && !is_before_value(&fold_text(word))
    });
    named && has_postal_code(text)
}

fn has_only_letters(word: &str) -> bool {
    word.chars().all(char::is_alphabetic)
}

fn is_identifier(text: &str, words: usize) -> bool {
    let digits = count_digits(text);
    let all: Vec<&str> = text.split(' ').collect();
    let money =
        number::find_numbers(&all, None).iter().any(|a| a.percent || a.currency().is_some());
    let decimal = text.contains(',') && number::parse_number(text, None).is_some();
    let compact: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
    let account = compact.len() > 14
        && begins_with_iban_country(&compact)
        && compact.chars().skip(2).all(|c| c.is_ascii_digit());
    let known = (0..all.len())
        .filter_map(|at| printed_vat_id::find_at(all.get(at..)?))
        .any(|(id, _)| id.starts_with(char::is_alphabetic));
    digits > 0
        && text.len() <= MAX_IDENTIFIER
        && words <= 5
        && !money
        && !is_town(text)
        && !decimal
        && !account
        && !(known && compact.len() > 9)
        && !text.contains('@')
}

#[cfg(test)]
mod tests {
    use super::super::layout::CellLayout;
    use super::super::layout::tests::transcript;
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    fn with_matches<T>(drawing: &str, read: impl Fn(&LabelMatches<'_>) -> T) -> T {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let layout = CellLayout::new(&transcript(&[drawing]));
        read(&LabelMatches::new(&layout, kinds.get("invoice").unwrap()))
    }

    #[test]
    fn invoice_numbers_are_read_from_all_usual_places() {
        for (drawing, expected) in [
            ("Invoice Number:    58207346", Some("58207346")),
            ("Rechnung # RE-20160912/318 vom 12.09.2016", Some("RE-20160912/318")),
            ("Handelsrechnung (380) Nr. 618205 vom 05.03.2018", Some("618205")),
            ("Facture n° 2023174506", Some("2023174506")),
            ("Numéro de facture:   027416 / 39052", Some("027416 / 39052")),
            ("Rechnung    Seite 1\nRechnungsnr.   40075218   Kundennr.   58663", Some("40075218")),
            ("Invoice No : # QTN_2017", Some("QTN_2017")),
            ("Rechnungsnummer   Rechnungsdatum\n7204418365        18.02.2022", Some("7204418365")),
            ("Rechnungsnummer   Rechnungsdatum\nRE 17             18.02.2022", Some("RE 17")),
            ("Invoice Number   Leeds LS1 4AB\nINV-7            United Kingdom", Some("INV-7")),
            ("Rechnungsnummer: 2024 0017 7741", Some("2024 0017 7741")),
            ("Facture n° 0412 118837", Some("0412 118837")),
            ("Faktura nr wydr.184503", Some("184503")),
            ("Rechnungsnr.: 710 2266 10944", Some("710 2266 10944")),
            ("Faktura nr FV 12/03/2024", Some("FV 12/03/2024")),
            ("Factura no   FEYO 7718", Some("FEYO 7718")),
            ("Rechnung vom 12.09.2016", None),
            ("Rechnung über 12,50 EUR", None),
            ("We send this invoice to 3 people", None),
            ("Kundennummer   4711", None),
        ] {
            let found =
                with_matches(drawing, |matches| labelled_identifier(matches, "invoice_number"));
            assert_eq!(found.map(|f| f.value).as_deref(), expected, "{drawing}");
        }
    }
}
