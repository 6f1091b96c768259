//! A client of docmill's interface for programs (`/api/v1`), for software that hands documents in and
//! reads what came of them. It stands alone: nothing else of docmill is needed to use it.

pub mod api;
