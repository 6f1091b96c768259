//! Stand-ins for the services docmill talks to: strict where the real ones are strict, able to
//! misbehave on request. For tests and benches only; nothing here is shipped.

pub mod document_ai;
pub mod openai;
pub mod otlp;
pub mod pictures;
pub mod sqs;
pub mod textract;
