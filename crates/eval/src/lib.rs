//! Scores what was read and extracted against known truth. It runs nothing itself: it is handed
//! the result.

pub mod eval;
