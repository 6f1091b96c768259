//! Kinds of documents as data, and the gate: the deterministic verdict on what was extracted.
//! Needs no network, no model and no page, so that its rules are tried in seconds.

pub mod gate;
pub mod kinds;
