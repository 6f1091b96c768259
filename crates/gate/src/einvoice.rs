//! Rules about e-invoices: whether the one that a document carries was of use, and whether it says
//! what the pages say.

use serde_json::Value;

use super::checks::FailedFields;
use super::ground::PrintedValues;
use super::subject::GateSubject;
use docmill_formats::notation::{account, date};

/// The state of the XML in a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EinvoiceState {
    /// There is none, or it was not asked for.
    #[default]
    Absent,
    /// It was read, and the document has pages beside it.
    Attached {
        /// Whether one of them shows what is not in its text: a picture, letters drawn as shapes.
        show_more: bool,
    },
    /// The document is nothing else.
    Document,
    /// It was of no use, for this reason, and another reader took its place.
    Unusable(&'static str),
}

impl GateSubject<'_> {
    /// The reason stands where rules about fields name the field.
    pub(super) fn einvoice_usable(&self) -> FailedFields {
        match self.lookups.einvoice {
            EinvoiceState::Unusable(reason) => vec![Some(reason.to_owned())],
            _ => Vec::new(),
        }
    }

    /// Whether a person sees a page that nobody held the XML against: one that shows more than its
    /// text, or pages that print no number at all.
    pub(super) fn einvoice_unseen(&self) -> bool {
        let EinvoiceState::Attached { show_more } = self.lookups.einvoice else { return false };
        show_more || !self.ground.prints_numbers()
    }

    /// Values that the pages do not print although they print something of the sort. Pages without
    /// a text layer ([`GateSubject::einvoice_unseen`]), and a document without pages, contradict nothing.
    pub(super) fn contradicted_fields(&self, fields: &[String]) -> FailedFields {
        if !matches!(self.lookups.einvoice, EinvoiceState::Attached { .. }) {
            return Vec::new();
        }
        self.fields_where(fields, |value| {
            let printed = match value.as_str().filter(|text| account::is_iban(text)) {
                Some(_) => self.prints_account(),
                None => prints_same_type(&self.ground, value),
            };
            printed && !self.ground.contains_value(value)
        })
    }
}

impl GateSubject<'_> {
    /// Whether any account is printed. Many a page names none where the XML does.
    fn prints_account(&self) -> bool {
        let mut lines = self.transcript.pages.iter().flat_map(|page| &page.lines);
        lines.any(|line| {
            let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
            (0..words.len())
                .any(|at| account::find_iban_at(words.get(at..).unwrap_or_default()).is_some())
        })
    }
}

fn prints_same_type(ground: &PrintedValues, value: &Value) -> bool {
    match value {
        Value::Number(_) => ground.prints_numbers(),
        Value::String(text) if date::parse_iso(text).is_some() => ground.prints_dates(),
        // A page with text but without any amount is no invoice page: a letter, a cover.
        Value::String(_) => ground.prints_numbers(),
        _ => false,
    }
}
