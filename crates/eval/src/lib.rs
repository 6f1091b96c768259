//! Scores what was read and extracted against known truth. It runs nothing itself: it is given
//! the results.

pub mod eval;
