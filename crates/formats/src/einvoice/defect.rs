//! The reasons why the XML of an e-invoice is not used. The caller decides the consequence for its
//! document.

use serde::{Deserialize, Serialize};

use super::edifact::EdifactError;
use crate::xml::XmlError;
use docmill_core::model::OutcomeReason;

/// Why an XML is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum EinvoiceDefect {
    /// It cannot be taken out of its document.
    #[error("the attached e-invoice cannot be taken out of the document")]
    Attachment,
    /// The XML cannot be parsed.
    #[error(transparent)]
    Xml(#[from] XmlError),
    /// The EDIFACT file cannot be read.
    #[error(transparent)]
    Edifact(#[from] EdifactError),
    /// Its root is none of the formats that are read.
    #[error("not an e-invoice in a format that is read")]
    NotAnInvoice,
    /// One file with several invoices, which are a document each.
    #[error("a file with several invoices: send each by itself")]
    Batch,
    /// It lacks number, date, currency, seller or total.
    #[error("the e-invoice lacks number, date, currency, seller or total")]
    Incomplete,
    /// The document carries several that say different things.
    #[error("the document carries several e-invoices that say different things")]
    Several,
}

impl EinvoiceDefect {
    /// The stable word: what a person sees behind the name of the rule.
    pub fn code(self) -> &'static str {
        match self {
            Self::Attachment => "attachment",
            Self::Xml(error) => error.code(),
            Self::Edifact(error) => error.code(),
            Self::NotAnInvoice => "no_invoice",
            Self::Batch => "batch",
            Self::Incomplete => "incomplete",
            Self::Several => "several",
        }
    }

    /// The outcome of a document that consists of this XML alone.
    pub fn outcome_reason(self) -> OutcomeReason {
        match self {
            Self::NotAnInvoice | Self::Batch => OutcomeReason::UnsupportedType,
            Self::Xml(XmlError::TooLarge) => OutcomeReason::TooLarge,
            Self::Edifact(error) => error.outcome_reason(),
            _ => OutcomeReason::Corrupt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_defect_has_its_word_and_its_end() {
        for (defect, code, reason) in [
            (EinvoiceDefect::Attachment, "attachment", OutcomeReason::Corrupt),
            (EinvoiceDefect::Xml(XmlError::Encoding), "encoding", OutcomeReason::Corrupt),
            (EinvoiceDefect::Xml(XmlError::Malformed), "malformed", OutcomeReason::Corrupt),
            (EinvoiceDefect::Xml(XmlError::Entities), "entities", OutcomeReason::Corrupt),
            (EinvoiceDefect::Xml(XmlError::TooLarge), "too_large", OutcomeReason::TooLarge),
            (EinvoiceDefect::Edifact(EdifactError::Characters), "encoding", OutcomeReason::Corrupt),
            (EinvoiceDefect::Edifact(EdifactError::CutOff), "malformed", OutcomeReason::Corrupt),
            (EinvoiceDefect::Edifact(EdifactError::TooLarge), "too_large", OutcomeReason::TooLarge),
            (EinvoiceDefect::NotAnInvoice, "no_invoice", OutcomeReason::UnsupportedType),
            (EinvoiceDefect::Batch, "batch", OutcomeReason::UnsupportedType),
            (EinvoiceDefect::Incomplete, "incomplete", OutcomeReason::Corrupt),
            (EinvoiceDefect::Several, "several", OutcomeReason::Corrupt),
        ] {
            assert_eq!((defect.code(), defect.outcome_reason()), (code, reason), "{defect}");
        }
    }
}
