//! A model of how ingestions are claimed, renewed and recorded and their messages disposed of, with
//! a checker that visits every reachable state.
//!
//! Claims and retries are decided by the product's own pure functions (`decide_claim`,
//! `decide_retry`). The steps around them are modelled, each with the name of the product's
//! function. docs/explanation/reliability.md lists the model's scope. Not promised: properties of
//! code that the steps do not cover; the simulation of the real code tests those.
#![expect(clippy::indexing_slicing, reason = "places are numbered by this crate, never by input")]

pub mod checker;
pub mod neighbours;
pub mod protocol;
pub mod queue_steps;
pub mod row_rules;
pub mod state;
pub mod worker_steps;
