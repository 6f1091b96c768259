//! Work that leaves the service and comes back: provider batches and webhook deliveries.

pub mod batches;
pub mod webhooks;
