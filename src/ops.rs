//! What operators do; each function returns a report and prints nothing.

pub mod dead;
pub mod inspect;
pub mod janitor;
pub mod retry;
pub mod sending;
pub mod submit;
