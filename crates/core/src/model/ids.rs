//! Identifiers as types of their own, so that no bare UUID travels through the code.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new random identifier (UUID version 4).
            pub fn random() -> Self {
                Self(Uuid::new_v4())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::from_str(text).map(Self)
            }
        }
    };
}

id! {
    /// One document's way to structured data: the row in `ingestion`, the body of the message.
    IngestionId
}
id! {
    /// Bytes in the object store and a row in `document`.
    DocumentId
}
id! {
    /// The proof of a claim. Random, so that it stays unique even if a claim's commit is lost in a
    /// crash of Postgres (claims run with `synchronous_commit = off`).
    ClaimToken
}

/// Namespace of the UUIDv5 identifiers derived from S3 events.
const OBJECT_NAMESPACE: Uuid = Uuid::from_u128(0x8d9f_5b0e_2f64_5a0c_9d0a_6d5c_0b5e_7a11);

impl DocumentId {
    /// The document with this content (SHA-256 in hex) of this tenant: the same however often and
    /// from wherever it is submitted.
    pub fn from_content(sha256: &str, tenant: &str) -> Self {
        Self(Uuid::new_v5(&OBJECT_NAMESPACE, format!("content\n{tenant}\n{sha256}").as_bytes()))
    }

    /// The document that has this name at its source, for the tenant that it belongs to (empty: none).
    pub fn from_identity(name: &str, tenant: &str) -> Self {
        Self(Uuid::new_v5(&OBJECT_NAMESPACE, format!("named\n{tenant}\n{name}").as_bytes()))
    }

    /// The child at this position of what an ingestion read: the same however often the ingestion is tried,
    /// another one once the original (SHA-256 in hex) is another.
    pub fn of_child(parent: IngestionId, sha256: &str, position: u32) -> Self {
        let name = format!("child\n{parent}\n{sha256}\n{position}");
        Self(Uuid::new_v5(&OBJECT_NAMESPACE, name.as_bytes()))
    }

    /// The document that lies at `key` in `bucket`: the same for every event about that object.
    pub fn from_object(bucket: &str, key: &str) -> Self {
        Self(Uuid::new_v5(&OBJECT_NAMESPACE, format!("document\n{bucket}\n{key}").as_bytes()))
    }
}

impl IngestionId {
    /// The first ingestion of a submitted document; further ones are random.
    pub fn first_for_document(document: DocumentId) -> Self {
        Self(Uuid::new_v5(&OBJECT_NAMESPACE, format!("first\n{document}").as_bytes()))
    }

    /// The ingestion of one version of an object: the same for every repetition of its event.
    ///
    /// `version` is the version id or, in a bucket without versions, the ETag; `sequencer`
    /// distinguishes two uploads of the same bytes.
    pub fn from_object_version(bucket: &str, key: &str, version: &str, sequencer: &str) -> Self {
        let name = format!("ingestion\n{bucket}\n{key}\n{version}\n{sequencer}");
        Self(Uuid::new_v5(&OBJECT_NAMESPACE, name.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_event_always_names_the_same_ingestion() {
        let one = IngestionId::from_object_version("b", "k", "v", "1");
        assert_eq!(one, IngestionId::from_object_version("b", "k", "v", "1"));
        assert_ne!(one, IngestionId::from_object_version("b", "k", "v", "2"));
        assert_ne!(one, IngestionId::from_object_version("b", "k", "w", "1"));
        assert_ne!(DocumentId::from_object("b", "k").0, one.0);
        let child = DocumentId::of_child(one, "ab", 1);
        assert_eq!(child, DocumentId::of_child(one, "ab", 1));
        assert_ne!(child, DocumentId::of_child(one, "ab", 2));
        assert_ne!(child, DocumentId::of_child(one, "cd", 1));
    }
}
