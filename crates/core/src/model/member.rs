//! Documents found in others, as a page process lists them.

use serde::{Deserialize, Serialize};

/// One of the documents found in another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberFacts {
    /// Its name there, for display only; `None`: it has none.
    pub name: Option<String>,
    /// Its size in bytes.
    pub bytes: u64,
}
