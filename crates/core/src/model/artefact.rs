//! A row's reference to an artefact in the store.

use serde::{Deserialize, Serialize};

/// Where an artefact lies and which content identity it was made for (invariant 8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtefactRef {
    /// Key in the store.
    pub path: String,
    /// SHA-256, in hex, over everything that determines the artefact: input hash, provider or
    /// model, options, versions of prompt, kind and format. Never over the time or the claim.
    pub identity: String,
}

/// A file that was made on the way to an artefact, kept for people to view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    /// Key in the store.
    pub path: String,
    /// SHA-256 of its bytes, in hex.
    pub sha256: String,
}
