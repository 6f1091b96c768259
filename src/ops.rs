//! What operators do; each function returns a report and prints nothing.

pub mod inspect;
pub mod retry;
pub mod submit;
