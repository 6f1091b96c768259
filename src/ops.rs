//! What operators do; each function returns a report and prints nothing.

pub mod bucket;
pub mod dashboard;
pub mod dead;
pub mod doctor;
pub mod erase;
pub mod inspect;
pub mod janitor;
pub mod object_pipeline;
pub mod process;
pub mod retry;
pub mod sending;
pub mod submit;
pub mod workspace;
