//! What the integration tests share.

pub(crate) mod memory_queue;
pub(crate) mod moto;
pub(crate) mod postgres;
pub(crate) mod sqs;
