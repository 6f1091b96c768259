//! Bounds on silent errors: documents that nobody was asked to look at, and that are wrong.
//!
//! Of the documents that the gate passes a few are drawn for a look. Here their decisions become a
//! level of certainty below which a document is flagged, and a bound on the errors above it.
//!
//! - [`evidence`]: how much the looks speak against a share of errors, at whatever moment it is asked.
//! - [`drift`]: whether the share has risen above the bound.
//! - [`level`]: the level that follows from both.
//! - [`fixed`]: the exact bound for a number of looks that was fixed beforehand.
//!
//! Statistics alone: no storage, no clock, no randomness. Not promised: anything about documents that
//! the gate flags, or about a tenant, kind or reader other than that of the looks.

pub mod drift;
pub mod evidence;
pub mod fixed;
pub mod level;
