//! From a transcript to structured data.
//!
//! Readers, cheapest certain one first: the XML of an e-invoice ([`einvoice`]), a language model
//! ([`ask()`]) or, offline, labels and layout
//! ([`rules`]). What kind of document it is a model says only where cheap signs tie ([`choose()`]).
//! A reader reports what is on the document; whether that is acceptable is the gate's
//! to say. Nothing here decides about retries across attempts.

pub mod ask;
mod calls;
mod choose;
mod combine;
pub mod einvoice;
pub mod journal;
mod merge;
pub mod parts;
pub mod prompt;
pub mod reply;
pub mod rules;
pub mod schema;

use sha2::{Digest, Sha256};

pub use ask::{Ending, ExtractError, Terms, ask};
pub use choose::{Choice, choice_identity, choose};
pub use combine::combined;
pub use journal::{Journal, Replies, StoredCall};

use crate::kinds::Kind;
use crate::llm::Llm;

/// The identity of what a model makes of a transcript, SHA-256 in hex: over the transcript's
/// identity, provider, model, kind with its version, and the version of our own prompt text.
///
/// Limits are left out on purpose: stored calls are matched by their whole prompt, so a changed
/// limit asks again only what it changes.
pub fn identity(transcript_identity: &str, llm: &dyn Llm, kind: &Kind) -> String {
    hash(&[
        "docmill extraction",
        &prompt::VERSION.to_string(),
        transcript_identity,
        llm.provider(),
        llm.model(),
        &kind.name,
        &kind.version,
    ])
}

/// SHA-256 in hex over parts that cannot run into each other.
fn hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_hash_do_not_run_into_each_other() {
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_eq!(hash(&[]).len(), 64);
    }
}
