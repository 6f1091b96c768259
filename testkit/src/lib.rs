//! Stand-ins for external services: as strict as the real ones, with faults on request. For tests
//! and benches only; not shipped.

pub mod document_ai;
pub mod document_intelligence;
pub mod ecs_agent;
pub mod graph;
pub mod identity;
pub mod imap;
pub mod mistral_ocr;
pub mod models;
pub mod otlp;
pub mod pictures;
mod served;
pub mod silent_proxy;
pub mod sqs;
pub mod sso_portal;
pub mod textract;

/// The alias used by most tests, which speak its first protocol.
pub use models as openai;
