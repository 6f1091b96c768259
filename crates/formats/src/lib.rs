//! Notations of numbers, dates, currencies and identifiers; untrusted XML, e-invoices among it;
//! payment codes; EDN. Pure functions from text or bytes to values. Their meaning for a document is
//! decided elsewhere.

pub mod edn;
pub mod einvoice;
pub mod einvoice_answer;
pub mod notation;
pub mod payment_code;
pub mod xml;
mod xml_output;
