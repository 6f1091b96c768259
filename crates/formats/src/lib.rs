//! How numbers, dates, currencies and identifiers are written, XML from strangers, e-invoices among
//! it, codes that order payments, and EDN. Pure: text or bytes in, values out. What they mean for a document is for others to say.

pub mod edn;
pub mod einvoice;
pub mod notation;
pub mod payment_code;
pub mod xml;
