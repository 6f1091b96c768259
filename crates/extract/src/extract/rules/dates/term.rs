//! Terms of payment in days: the day that lies as many days after that of issue as the page counts is the
//! one by which to pay, whatever stands beside it.

use crate::extract::rules::layout::CellLayout;

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
