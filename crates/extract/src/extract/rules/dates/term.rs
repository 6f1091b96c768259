//! Terms of payment in sentences: the day that lies as many days after that of issue as the page counts is
//! the one by which to pay, whatever stands beside it, and so is the day behind `by` on a line about paying.

use crate::extract::rules::layout::CellLayout;
use docmill_formats::notation::fold_text;

/// Folded words for days.
const DAYS: [&str; 34] = [
    "days",
    "day",
    "tage",
    "tagen",
    "tg",
    "jours",
    "giorni",
    "gg",
    "dias",
    "dagen",
    "dni",
    "dnu",
    "dana",
    "pv",
    "paivaa",
    "dagar",
    "dage",
    "dager",
    "napon",
    "nap",
    "napos",
    "zile",
    "дни",
    "дена",
    "ημερες",
    "ημερων",
    "gun",
    "paeva",
    "dienu",
    "dienas",
    "dienos",
    "hari",
    "dn",
    "cal",
];

/// Terms that are looked for: less is a time of delivery, more a contract's.
const TERMS: std::ops::RangeInclusive<i64> = 5..=120;

/// The numbers of days that the page counts outside of its rows with amounts.
pub(super) fn count_days(layout: &CellLayout) -> Vec<i64> {
    let cells = layout.cells.iter().filter(|cell| !layout.is_on_amount_row(cell));
    let counted = cells.flat_map(|cell| {
        cell.folded.windows(2).filter_map(|pair| match pair {
            [(number, _), (word, _)] if DAYS.contains(&word.as_str()) => number.parse().ok(),
            _ => None,
        })
    });
    counted.filter(|days| TERMS.contains(days)).collect()
}

/// Folded words between what is asked for and the day by which it is.
const BY: [&str; 29] = [
    "by",
    "before",
    "until",
    "bis",
    "vor",
    "au",
    "avant",
    "pour",
    "entro",
    "antes",
    "ate",
    "voor",
    "tegen",
    "uiterlijk",
    "do",
    "senest",
    "innen",
    "fore",
    "senast",
    "iki",
    "lidz",
    "kuni",
    "εως",
    "μεχρι",
    "viimeistaan",
    "pana",
    "najkasneje",
    "najpozneje",
    "najkasnije",
];

/// Folded words that may stand between them and the day: `bis zum`, `avant le`.
const ARTICLES: [&str; 12] =
    ["the", "zum", "spatestens", "le", "il", "del", "el", "o", "dnia", "den", "dne", "la"];

/// How folded words begin that ask for money.
const PAYING: [&str; 30] = [
    "pay",
    "settle",
    "transfer",
    "remit",
    "zahl",
    "bezahl",
    "uberweis",
    "einzahl",
    "begleich",
    "regl",
    "virement",
    "paie",
    "verse",
    "pagar",
    "pagamento",
    "pago",
    "abonar",
    "saldar",
    "betal",
    "voldoen",
    "overmaken",
    "zaplat",
    "platn",
    "uhrad",
    "plat",
    "maks",
    "apmok",
    "fizet",
    "tasu",
    "πληρω",
];

/// Whether a line asks for money, and a word such as `by` stands right before the day that begins behind
/// `before`.
pub(super) fn is_to_pay_by(before: &str, line: &str) -> bool {
    let folded = fold_text(before);
    let mut words = folded.split(' ').rev().skip_while(|word| ARTICLES.contains(word));
    let by = words.next().is_some_and(|word| BY.contains(&word));
    // `1 May to 3 May`, `from 1 May until 3 May`: the end of a period.
    let period = words.next().is_some_and(|word| word.contains(|c: char| c.is_ascii_digit()));
    let asks = || {
        let line = fold_text(line);
        line.split(' ').any(|word| PAYING.iter().any(|front| word.starts_with(front)))
    };
    by && !period && asks()
}
