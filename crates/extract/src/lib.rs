//! From a transcript to structured data.
//!
//! Readers, cheapest certain one first: the XML of an e-invoice ([`einvoice`]), a language model
//! ([`ask::read_by_model`]) or, offline, labels and layout ([`rules`]). A model chooses the kind of
//! document only where cheap signs tie ([`choose_kind`]). A reader reports the document's content;
//! the gate decides whether that is acceptable, and the pipeline about retries across attempts.

pub mod ask;
mod boundaries;
mod calls;
mod cells;
mod choose;
mod combine;
pub mod einvoice;
mod endless;
pub mod journal;
pub mod memory;
mod merge;
pub mod parties;
pub mod parts;
pub mod printed;
pub mod probe;
pub mod prompt;
pub mod reply;
pub mod rules;
pub mod schema;
mod shown_pages;

pub use ask::{CallLimits, ExtractError, IncompleteReason, ModelReading, read_by_model};
pub use boundaries::{ask_boundaries, boundary_identity};
pub use choose::{KindChoice, choice_identity, choose_kind};
pub use combine::{combine_extractions, is_blank};
pub use journal::{CallRoute, RecordedReplies, ReplyJournal, StoredCall};
pub use prompt::ReadingFaults;
pub use shown_pages::{PictureEntry, ShownDocument, ShownPage};

use docmill_core::model::digest::{LengthOrder, sha256_of_parts};
use docmill_gate::kinds::Kind;
use docmill_llm::Llm;

/// The identity of a model's extraction, SHA-256 in hex: over the transcript's identity, provider,
/// model, kind with what it asks, and the version of the prompt's text.
///
/// Limits are left out: stored calls are matched by their whole prompt, so a changed limit repeats
/// only the calls that it changes.
pub fn extraction_identity(transcript_identity: &str, llm: &dyn Llm, kind: &Kind) -> String {
    hash_parts(&[
        "docmill extraction",
        &prompt::VERSION.to_string(),
        transcript_identity,
        llm.provider(),
        llm.model(),
        &kind.name,
        &kind.asked_version,
    ])
}

/// The same where the prompt has a paragraph about a tenant's own companies; an empty one changes
/// nothing.
pub fn identity_with_companies(identity: String, companies: &str) -> String {
    if companies.is_empty() { identity } else { hash_parts(&[&identity, companies]) }
}

/// SHA-256 in hex over the parts of an identity.
fn hash_parts(parts: &[&str]) -> String {
    sha256_of_parts(LengthOrder::BigEndian, parts)
}
