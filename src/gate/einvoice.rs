//! Rules about e-invoices: whether the one that a document carries was of use, and whether it says
//! what the pages say.

use serde_json::Value;

use super::checks::{Failures, Subject};
use super::ground::Ground;
use crate::notation::date;

/// What is known of the XML in a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Einvoice {
    /// There is none, or it was not asked for.
    #[default]
    Absent,
    /// It was read, and the document has pages beside it.
    Attached,
    /// The document is nothing else.
    Document,
    /// It was of no use, for this reason, and another reader took its place.
    Unusable(&'static str),
}

impl Subject<'_> {
    /// The reason stands where rules about fields name the field.
    pub(super) fn einvoice_usable(&self) -> Failures {
        match self.lookups.einvoice {
            Einvoice::Unusable(reason) => vec![Some(reason.to_owned())],
            _ => Vec::new(),
        }
    }

    /// Values that the pages do not print although they print something of the sort. Pages without
    /// a text layer, and a document without pages, contradict nothing.
    pub(super) fn contradicted(&self, fields: &[String]) -> Failures {
        if self.lookups.einvoice != Einvoice::Attached {
            return Vec::new();
        }
        let says_otherwise = |value: &Value| {
            prints_its_like(&self.ground, value) && !self.ground.holds(value)
        };
        self.those(fields, |_, value| says_otherwise(value))
    }
}

fn prints_its_like(ground: &Ground<'_>, value: &Value) -> bool {
    match value {
        Value::Number(_) => ground.prints_numbers(),
        Value::String(text) if date::parse_iso(text).is_some() => ground.prints_dates(),
        // A page with text but without any amount is no invoice page: a letter, a cover.
        Value::String(_) => ground.prints_numbers(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::macros::date;

    use super::*;
    use crate::config::KindsConfig;
    use crate::gate::{Lookups, judge};
    use crate::kinds::Kinds;
    use crate::model::{
        BoundingBox, Confidence, Extraction, Line, PageText, Reader, Transcript, Usage, Word,
    };

    fn page(text: &str) -> Transcript {
        let word = |text: &str| Word {
            text: text.to_owned(),
            bounding_box: BoundingBox::default(),
            confidence: 1.0,
        };
        let lines = text.lines().map(|line| Line { words: line.split(' ').map(word).collect() });
        Transcript {
            format: Transcript::FORMAT,
            sha256: String::new(),
            provider: String::new(),
            pages: vec![PageText::native(1, (595.0, 842.0), 1.0, lines.collect())],
            quality: 1.0,
        }
    }

    fn reasons(text: &str, reader: Reader, einvoice: Einvoice) -> Vec<String> {
        let data = json!({
            "supplier_name": "Papier GmbH", "supplier_address": null, "supplier_vat_id": null,
            "invoice_number": "RE-17", "invoice_date": "2026-03-05", "due_date": null,
            "currency": "EUR", "line_items": null,
            "subtotal": 100, "vat_amount": 19, "total": 119,
        });
        let extraction = Extraction {
            reader,
            model: None,
            kind: "invoice".to_owned(),
            data: data.as_object().unwrap().clone(),
            successful: true,
            confidence: Confidence::High,
            missing_fields: Vec::new(),
            evidence: Vec::new(),
            usage: Usage::default(),
        };
        let today = date!(2026 - 03 - 20);
        let lookups = Lookups { duplicate_of: None, today, quality_threshold: 0.7, einvoice };
        let kinds = Kinds::load(&KindsConfig::default()).unwrap();
        let verdict = judge(&extraction, &page(text), kinds.get("invoice").unwrap(), &lookups);
        assert!(!verdict.refused());
        verdict.review_reasons()
    }

    #[test]
    fn an_e_invoice_is_held_against_what_its_pages_print() {
        let attached = |text: &str| reasons(text, Reader::Einvoice, Einvoice::Attached);
        let against = |field: &str| vec![format!("einvoice_contradicts_page:{field}")];
        let same = "Rechnung RE-17 vom 5. März 2026\nSumme 119,00 EUR";
        assert_eq!(attached(same), Vec::<String>::new());
        assert_eq!(attached(&same.replace("119", "190")), against("total"));
        assert_eq!(attached(&same.replace("RE-17", "RE-71")), against("invoice_number"));
        assert_eq!(attached(&same.replace("5. März", "6. März")), against("invoice_date"));
        // Nothing of the sort is printed: a picture, a letter, an amount without its date.
        for silent in ["", "Please find the invoice attached", "RE-17 119,00 EUR"] {
            assert_eq!(attached(silent), Vec::<String>::new(), "{silent}");
        }
    }

    #[test]
    fn xml_that_is_all_there_is_contradicts_nothing() {
        let values = "GrandTotalAmount 1.19E2 ID RE-71 IssueDate 20260305";
        assert!(reasons(values, Reader::Einvoice, Einvoice::Document).is_empty());
    }

    #[test]
    fn an_e_invoice_of_no_use_is_said_to_be_whoever_read_instead() {
        let text = "Papier GmbH RE-17 2026-03-05 100,00 19,00 119,00";
        for reader in [Reader::Llm, Reader::Rules] {
            let unusable = Einvoice::Unusable("entities");
            assert_eq!(reasons(text, reader, unusable), ["einvoice_unusable:entities"]);
            assert!(reasons(text, reader, Einvoice::Absent).is_empty());
        }
    }
}
