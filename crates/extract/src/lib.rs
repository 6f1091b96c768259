//! From a transcript to structured data: from the XML of an e-invoice, by rules, by a model. Whether
//! the data is right is for the gate to say.

pub mod extract;

#[cfg(test)]
use docmill_core::config;
use docmill_core::{fault, metrics, model};
use docmill_formats::{notation, xml};
use docmill_gate::kinds;
use docmill_llm::llm;
