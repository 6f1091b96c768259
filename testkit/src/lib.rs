//! Stand-ins for the services docmill talks to: strict where the real ones are strict, able to
//! misbehave on request. For tests and benches only; nothing here is shipped.

pub mod document_ai;
pub mod ecs_agent;
pub mod models;
pub mod otlp;
pub mod pictures;
mod served;
pub mod silent_proxy;
pub mod sqs;
pub mod textract;

/// The name under which most tests know it: they have it speak the first of its protocols.
pub use models as openai;
