//! From a transcript to structured data: from the XML of an e-invoice, by rules, by a model.
//! Whether the data is right is for the gate to say.

pub mod extract;
