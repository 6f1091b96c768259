//! Single values beside labels: identifiers and dates.

use time::Date;

use super::FoundValue;
use super::layout::{CellLayout, TextCell};
use super::spots::{LabelMatch, LabelMatches, ValueCandidate};
use docmill_formats::notation::date::{self, DayMonthOrder};
use docmill_formats::notation::{fold_text, number, vat_id};

/// Folded words between a label and its value.
const BETWEEN: &[&str] = &[
    "", "nr", "no", "n", "num", "number", "nummer", "numero", "is", "id", "ref", "der", "die", "o",
];

/// Folded words after which an identifier is over.
const STOPS: &[&str] = &[
    "vom", "von", "du", "dated", "of", "from", "date", "datum", "le", "del", "de", "den", "for",
    "fur", "pour", "page", "seite", "van", "op", "am", "fecha", "il", "para", "per", "zur", "zum",
];

const LONGEST_IDENTIFIER: usize = 40;

/// How good a place for a value is: how sure the label and how usual the position.
fn candidate_rank(spots: &LabelMatches<'_>, spot: &LabelMatch, beside: &ValueCandidate<'_>) -> f32 {
    let Some(cell) = spots.cell_of(spot) else { return 0.0 };
    let mut rank = if spot.strong { 10.0 } else { 4.0 };
    if spot.words.start == 0 {
        rank += 3.0;
    }
    if beside.below {
        rank -= 1.0;
    }
    if cell.words.len() > 12 {
        rank -= 3.0;
    }
    rank - cell.page.min(5) as f32 - spots.layout.depth_on_page(cell)
}

/// The identifier beside the best of `field`'s labels.
pub(super) fn labelled_identifier(
    spots: &LabelMatches<'_>,
    field: &str,
) -> Option<FoundValue<String>> {
    let mut best: Option<(f32, FoundValue<String>)> = None;
    for spot in spots.of_field(field) {
        // In the middle of a sentence a word such as "invoice" names nothing.
        if !spot.strong && spot.words.start > 1 {
            continue;
        }
        for beside in spots.value_candidates(spot) {
            let Some(value) = read_identifier(&beside.value_words(), beside.inline) else {
                continue;
            };
            let rank = candidate_rank(spots, spot, &beside);
            if best.as_ref().is_none_or(|(other, _)| rank > *other) {
                let marked = beside.value_words().first().is_some_and(|word| word.starts_with('#'));
                let certain = spot.strong || marked || beside.inline;
                best = Some((rank, FoundValue::new(value, certain, beside.cell)));
            }
            break;
        }
    }
    best.map(|(_, found)| found)
}

/// Reads an identifier off the front of `words`.
fn read_identifier(words: &[&str], inline: bool) -> Option<String> {
    let skipped = words.iter().take_while(|word| {
        BETWEEN.contains(&fold_text(word).as_str())
            || (word.starts_with('(') && word.ends_with(')'))
    });
    let words = words.get(skipped.count()..)?;
    let mut taken: Vec<&str> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let rest = words.get(at..)?.join(" ");
        let is_date = date::find_dates(&rest).first().is_some_and(|date| date.range.start == 0);
        if STOPS.contains(&fold_text(word).as_str()) || is_date {
            break;
        }
        taken.push(word);
        let has_digit = taken.iter().any(|word| word.contains(|c: char| c.is_ascii_digit()));
        let joined = words.get(at + 1).is_some_and(|next| matches!(*next, "/" | "-" | "–"))
            || matches!(*word, "/" | "-" | "–");
        if inline && has_digit && !joined {
            break;
        }
        // Running text, unless a short prefix such as `RE` or `INV` stands before the number.
        let prefix = word.len() <= 5 && word.chars().all(|c| c.is_ascii_uppercase() || c == '#');
        if inline && !has_digit && (taken.len() > 1 || !prefix) {
            return None;
        }
    }
    let text = taken.join(" ");
    let trim = |c: char| matches!(c, ':' | ',' | ';' | '#' | '.' | '*' | '"' | '\'');
    let text = text.trim_start_matches(|c| trim(c) || c == ' ').trim_end_matches(trim).trim();
    is_identifier(text, taken.len()).then(|| text.to_owned())
}

fn is_identifier(text: &str, words: usize) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let all: Vec<&str> = text.split(' ').collect();
    let money = number::find_numbers(&all, None).iter().any(|a| a.percent || a.currency.is_some());
    let decimal = text.contains(',') && number::parse_number(text, None).is_some();
    let compact: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
    let account = compact.len() > 14
        && compact.starts_with(|c: char| c.is_ascii_uppercase())
        && compact.chars().skip(2).all(|c| c.is_ascii_digit())
        && compact.chars().take(2).all(|c| c.is_ascii_uppercase());
    let known = vat_id::find_at(&all).is_some_and(|(id, _)| id.starts_with(char::is_alphabetic));
    digits > 0
        && text.len() <= LONGEST_IDENTIFIER
        && words <= 5
        && !money
        && !decimal
        && !account
        && !(known && compact.len() > 9)
        && !text.contains('@')
}

/// Every date of the document and what they say about the order of day and month.
pub(super) struct DateReader {
    order: DayMonthOrder,
    /// Nothing shows the order, and both are usual in the document's language.
    open: bool,
}

/// Words by which an English document is distinguished from others that write days first.
const ENGLISH: &[&str] = &["the", "of", "and", "invoice", "due", "payment", "amount", "to", "for"];
const OTHERS: &[&str] = &[
    "der", "die", "und", "rechnung", "betrag", "le", "la", "et", "facture", "les", "het", "een",
    "factuur", "en", "el", "fecha", "factura", "di", "fattura", "og", "faktura", "och", "do",
];

impl DateReader {
    pub(super) fn from_layout(layout: &CellLayout, currency: Option<&str>) -> Self {
        let dates: Vec<date::FoundDate> =
            layout.cells.iter().flat_map(|cell| date::find_dates(&cell.joined_text())).collect();
        if let Some(order) = date::infer_order(dates.iter()) {
            return Self { order, open: false };
        }
        let words = layout.cells.iter().flat_map(|cell| cell.folded.iter());
        let (mut english, mut others) = (0, 0);
        for (word, _) in words {
            english += usize::from(ENGLISH.contains(&word.as_str()));
            others += usize::from(OTHERS.contains(&word.as_str()));
        }
        let american = english > others && currency == Some("USD");
        let order = if american { DayMonthOrder::MonthFirst } else { DayMonthOrder::DayFirst };
        Self { order, open: english > others }
    }

    fn resolve_date(&self, found: &date::FoundDate) -> Option<(Date, bool)> {
        let certain = !(self.open && found.slashes && found.is_ambiguous());
        Some((found.date_under(self.order)?, certain))
    }

    /// The first date of a text that begins within its first `reach` bytes.
    fn first_date(&self, text: &str, reach: usize) -> Option<(Date, bool)> {
        let found = date::find_dates(text);
        self.resolve_date(found.first().filter(|date| date.range.start <= reach)?)
    }
}

/// The date beside the best of `field`'s labels; `number` is the field of the document's number.
pub(super) fn labelled_date(
    spots: &LabelMatches<'_>,
    calendar: &DateReader,
    field: &str,
    number: &str,
) -> Option<FoundValue<Date>> {
    let mut best: Option<(f32, FoundValue<Date>)> = None;
    for spot in spots.of_field(field) {
        let heads_column = !spot.strong && spots.heads_column(spot);
        for beside in spots.value_candidates(spot).into_iter().filter(|_| !heads_column) {
            let reach = if beside.inline { 14 } else { 24 };
            let words = beside.value_words().join(" ");
            let Some((date, certain)) = calendar.first_date(&words, reach) else { continue };
            let rank = candidate_rank(spots, spot, &beside) + context_rank(spots, spot, number);
            if best.as_ref().is_none_or(|(other, _)| rank > *other) {
                let certain = certain && (spot.strong || rank > 4.0);
                best = Some((rank, FoundValue::new(date, certain, beside.cell)));
            }
            break;
        }
    }
    best.map(|(_, found)| found)
}

/// The date beside a title such as "Invoice", where letters are dated.
pub(super) fn date_of_title(
    spots: &LabelMatches<'_>,
    calendar: &DateReader,
    number: &str,
) -> Option<FoundValue<Date>> {
    let titles = spots.of_field(number).filter(|spot| !spot.strong && spot.words.start == 0);
    titles.into_iter().find_map(|spot| {
        let beside = spots.value_candidates(spot);
        beside.into_iter().filter(|beside| !beside.below).find_map(|beside| {
            let text = beside.value_words().join(" ");
            let (date, certain) = calendar.first_date(&text, if beside.inline { 6 } else { 0 })?;
            Some(FoundValue::new(date, certain, beside.cell))
        })
    })
}

/// What else stands in the cell of a weak label: `Invoice 12 of 3 May` is about the invoice, `as
/// per order 7 of 1 May` is not.
fn context_rank(spots: &LabelMatches<'_>, spot: &LabelMatch, number: &str) -> f32 {
    if spot.strong {
        return 0.0;
    }
    let near = |field: &str| {
        let mut same = spots.in_cell(spot.cell);
        same.any(|other| other.field == field && other.words.start < spot.words.start)
    };
    match (near(number), near("other")) {
        (_, true) => -8.0,
        (true, _) => 4.0,
        _ if spot.words.start > 2 => -4.0,
        _ => 0.0,
    }
}

/// The first date near the top of the first page that no other label claims: letters are dated so.
pub(super) fn unlabelled_date(
    spots: &LabelMatches<'_>,
    calendar: &DateReader,
    others: &[&str],
) -> Option<FoundValue<Date>> {
    let claimed: Vec<*const TextCell> = spots
        .all
        .iter()
        .filter(|spot| {
            let field = spot.field.as_str();
            matches!(field, "other" | "customer") || others.contains(&field)
        })
        .filter_map(|spot| spots.value_candidates(spot).into_iter().next())
        .map(|beside| std::ptr::from_ref(beside.cell))
        .collect();
    let first_page = spots.layout.cells.iter().take_while(|cell| cell.page == 0);
    let free = first_page.filter(|cell| {
        spots.layout.depth_on_page(cell) < 0.6 && !claimed.contains(&std::ptr::from_ref(*cell))
    });
    let mut fallback = None;
    for cell in free {
        let text = cell.joined_text();
        let dates = date::find_dates(&text);
        let [only] = dates.as_slice() else { continue };
        let Some((date, certain)) = calendar.resolve_date(only) else { continue };
        let after = text.get(only.range.end..).filter(|rest| !is_time(rest)).unwrap_or_default();
        let before = text.get(..only.range.start).unwrap_or_default();
        let alone = before.trim().len() + after.trim().len() <= 2;
        let dated = before.len() < 30 && after.len() <= 2;
        if alone {
            return Some(FoundValue::new(
                date,
                certain && spots.layout.depth_on_page(cell) < 0.5,
                cell,
            ));
        }
        if dated && fallback.is_none() {
            fallback = Some(FoundValue::new(date, false, cell));
        }
    }
    fallback
}

/// Whether a text is the time of a day, as tills print it behind the date.
fn is_time(text: &str) -> bool {
    let text = fold_text(text);
    let words: Vec<&str> = text.split(' ').collect();
    let clock = |word: &&str| word.len() <= 2 && word.chars().all(|c| c.is_ascii_digit());
    let digits = words.iter().take_while(|word| clock(word)).count();
    let rest = words.get(digits..).unwrap_or_default();
    (2..=3).contains(&digits) && matches!(rest, [] | ["am" | "pm" | "uhr" | "h" | "hrs"])
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::transcript;
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    fn with_spots<T>(drawing: &str, read: impl Fn(&LabelMatches<'_>) -> T) -> T {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let layout = CellLayout::new(&transcript(&[drawing]));
        read(&LabelMatches::new(&layout, &kinds.get("invoice").unwrap().labels))
    }

    #[test]
    fn invoice_numbers_are_read_from_all_usual_places() {
        for (drawing, expected) in [
            ("Invoice Number:    42183017", Some("42183017")),
            ("Rechnung # RE-20140703/502 vom 03.07.2014", Some("RE-20140703/502")),
            ("Handelsrechnung (380) Nr. 471102 vom 05.03.2018", Some("471102")),
            ("Facture n° 2022089083", Some("2022089083")),
            ("Numéro de facture:   018304 / 28865", Some("018304 / 28865")),
            ("Rechnung    Seite 1\nRechnungsnr.   30064443   Kundennr.   47774", Some("30064443")),
            ("Invoice No : # BLR_2015", Some("BLR_2015")),
            ("Rechnungsnummer   Rechnungsdatum\n1234567890        25.01.2021", Some("1234567890")),
            ("Rechnungsnummer   Rechnungsdatum\nRE 17             25.01.2021", Some("RE 17")),
            ("Rechnung vom 03.07.2014", None),
            ("Rechnung über 12,50 EUR", None),
            ("We send this invoice to 3 people", None),
            ("Kundennummer   4711", None),
        ] {
            let found = with_spots(drawing, |spots| labelled_identifier(spots, "invoice_number"));
            assert_eq!(found.map(|f| f.value).as_deref(), expected, "{drawing}");
        }
    }

    #[test]
    fn dates_are_read_beside_their_labels() {
        for (drawing, field, expected) in [
            ("Invoice Date:   August 3 , 2014", "invoice_date", Some("2014-08-03")),
            ("Rechnung # A1 vom 03.07.2014", "invoice_date", Some("2014-07-03")),
            ("Rechnung gemäß Bestellung vom 01.03.2018.", "invoice_date", None),
            (
                "Zahlbar innerhalb 30 Tagen netto bis 04.04.2013, 3% Skonto",
                "due_date",
                Some("2013-04-04"),
            ),
            ("Fecha de vencimiento\n12/05/2021", "due_date", Some("2021-05-12")),
            ("Order date: 1.2.2020   Delivery date: 3.2.2020", "invoice_date", None),
        ] {
            let found = with_spots(drawing, |spots| {
                labelled_date(
                    spots,
                    &DateReader::from_layout(spots.layout, None),
                    field,
                    "invoice_number",
                )
            });
            let found = found.filter(|found| found.certain).map(|found| date::to_iso(found.value));
            assert_eq!(found.as_deref(), expected, "{drawing}");
        }
    }

    #[test]
    fn a_date_without_a_label_stands_alone_or_before_a_time() {
        for (drawing, expected) in [
            ("Corner Shop\n22 Mar 2018 18:24\nTea   2.00", Some("2018-03-22")),
            ("Corner Shop\n#0101 03/05/2018 20:24:10\nTea   2.00", Some("2018-05-03")),
            ("Corner Shop\n22 Mar 2018 to Friday\nTea   2.00", None),
            ("Corner Shop\nOrder date: 22 Mar 2018\nTea   2.00", None),
        ] {
            let found = with_spots(drawing, |spots| {
                unlabelled_date(spots, &DateReader::from_layout(spots.layout, None), &[])
            });
            assert_eq!(found.map(|f| date::to_iso(f.value)).as_deref(), expected, "{drawing}");
        }
    }

    #[test]
    fn an_english_date_of_either_order_is_not_certain() {
        let drawing = "Invoice date: 11/03/2017 payment of the amount due";
        let found = with_spots(drawing, |spots| {
            let calendar = DateReader::from_layout(spots.layout, None);
            labelled_date(spots, &calendar, "invoice_date", "invoice_number")
        });
        assert!(!found.unwrap().certain);
    }
}
