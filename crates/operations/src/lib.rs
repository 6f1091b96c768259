//! What operators do; each function returns a report and prints nothing.
//!
//! Commands know this layer and not the one of the database below it; what needs no more than one
//! statement is offered here as it is.

pub mod batches;
pub mod dashboard;
pub mod dead;
pub mod doctor;
mod erasable_keys;
pub mod erase;
pub mod folder_walk;
pub mod inspect;
pub mod janitor;
pub mod moving;
pub mod page_drawing;
pub mod process;
pub mod retry;
pub mod review;
pub mod sending;
pub mod submit;
pub mod tenant_shares;
pub mod webhooks;

pub use docmill_ledger::db::Db;
