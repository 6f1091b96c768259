//! The form of JSON Schema that every provider's dialect starts from: closed objects that require
//! all their properties, where what was optional may be null.
//!
//! Both sides need it: a provider is asked in this form, and its reply, which has null where a
//! property was optional, is validated in this form. `dialect` has each vendor's subset.

mod closed;
pub(super) mod dialect;
mod examples;
pub mod limits;
pub(super) mod nulls;

pub use closed::close_schema;
pub use nulls::{NumberReader, restore_reply};
