//! A model of how ingestions are claimed, renewed, recorded and their messages disposed of, and a
//! checker that visits every state that it can reach.
//!
//! What a claim finds and what follows a failure is decided by the product's own pure functions
//! (`decide_claim`, `decide_retry`); the steps around them are written down here once more, each with
//! the function of the product that it stands for. docs/explanation/reliability.md says what is modelled and what
//! is not. Not promised: anything about the code that the steps do not say; that is what the
//! simulation of the real code is for.
#![expect(clippy::indexing_slicing, reason = "places are numbered by this crate, never by input")]

pub mod checker;
pub mod protocol;
pub mod queue_steps;
pub mod row_rules;
pub mod state;
pub mod worker_steps;
