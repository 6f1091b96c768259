//! In which order a document writes day and month: what its dates show, else what its language and
//! currency make usual.

use time::Date;

use crate::extract::rules::layout::CellLayout;
use docmill_formats::notation::date::{self, DayMonthOrder};

/// Every date of the document and what they say about the order of day and month.
pub(in super::super) struct DateReader {
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
    pub(in super::super) fn from_layout(layout: &CellLayout, currency: Option<&str>) -> Self {
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

    pub(super) fn resolve_date(&self, found: &date::FoundDate) -> Option<(Date, bool)> {
        let certain = !(self.open && found.slashes && found.is_ambiguous());
        Some((found.date_under(self.order)?, certain))
    }
}
