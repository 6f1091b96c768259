//! From a transcript to structured data.

pub mod rules;
