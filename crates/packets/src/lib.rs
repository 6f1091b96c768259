//! Several documents in one file: where one ends and the next begins.
//!
//! [`PageSigns`] are read from each page by itself. [`judge_packet`] weighs them at each boundary
//! between two pages, from both sides, and abstains: a boundary that is neither a certain cut nor a
//! certain join leaves the whole file to a person, with the cuts as a proposal. [`find_separators`]
//! cuts at sheets made for that. Pure functions over transcripts; not promised: that a document
//! whose pages name nothing is told from the one before it.

mod boundary;
mod boundary_sign;
mod judgement;
mod page_count;
mod separators;
mod signs;
mod words;

pub use boundary::{Boundary, BoundaryVerdict};
pub use boundary_sign::BoundarySign;
pub use judgement::{PacketJudgement, judge_packet};
pub use page_count::lacks_pages;
pub use separators::{SeparatorCodes, find_separators};
pub use signs::PageSigns;
