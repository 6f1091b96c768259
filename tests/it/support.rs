//! What the integration tests share.

pub(crate) mod documents;
pub(crate) mod flaky;
pub(crate) mod postgres;
pub(crate) mod world;
