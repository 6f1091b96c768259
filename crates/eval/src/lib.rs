//! Scores what was read and extracted against known truth. It runs nothing itself: it is handed
//! what came out.

pub mod eval;

#[cfg(test)]
use docmill_core::config;
use docmill_core::model;
use docmill_formats::notation;
use docmill_gate::{gate, kinds};
