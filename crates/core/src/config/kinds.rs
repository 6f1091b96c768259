//! `[kinds]`: where kinds of documents are defined, and how a document's kind is recognised.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where kinds of documents are defined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KindsConfig {
    /// A folder with one folder per kind, beside the ones built in; of one name, the one in the
    /// folder holds. Empty: only the ones built in.
    pub path: PathBuf,
    /// Whether the kind is recognised from the document where the producer names none.
    pub classify: bool,
    /// Whether a model is asked, in one short call, where a document might be of several kinds. It
    /// needs a model and `classify`.
    pub ask_on_ties: bool,
    /// The kind of documents for which the producer names none, where it is not recognised from the
    /// document: without `classify`, and of e-invoices.
    pub default: String,
}

impl Default for KindsConfig {
    fn default() -> Self {
        Self {
            path: PathBuf::new(),
            classify: true,
            ask_on_ties: true,
            default: "invoice".to_owned(),
        }
    }
}
