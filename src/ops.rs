//! What operators do; each function returns a report and prints nothing.

pub mod dead;
pub mod janitor;
