//! Scores what was read and extracted against known truth. It runs nothing itself: it is handed
//! what came out.

pub mod eval;
