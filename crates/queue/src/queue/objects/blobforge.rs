//! The dialect of a BlobForge bucket: which keys mean what. Pure; records are in [`records`].
//!
//! The layout of BlobForge 039ba07 (July 2026), below a prefix that the store adds:
//! `store/raw/HASH.pdf`, `store/out/HASH.zip`, `queue/todo/PRIORITY/HASH`,
//! `queue/{processing,failed,dead}/HASH`, `registry/…`. A HASH is the SHA-256 of the document in
//! hex; for the queue of messages, of the message's body.

pub mod records;

use serde::{Deserialize, Serialize};

use crate::model;

/// How urgent a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Priority {
    /// Before everything else.
    #[serde(rename = "1_critical")]
    Critical,
    /// Before what is normal.
    #[serde(rename = "2_high")]
    High,
    /// Where nothing is said.
    #[serde(rename = "3_normal")]
    Normal,
    /// After what is normal.
    #[serde(rename = "4_low")]
    Low,
    /// When there is nothing else to do.
    #[serde(rename = "5_background")]
    Background,
}

impl From<model::Priority> for Priority {
    fn from(priority: model::Priority) -> Self {
        match priority {
            model::Priority::Critical => Self::Critical,
            model::Priority::High => Self::High,
            model::Priority::Normal => Self::Normal,
            model::Priority::Low => Self::Low,
            model::Priority::Background => Self::Background,
        }
    }
}

impl From<Priority> for model::Priority {
    fn from(priority: Priority) -> Self {
        match priority {
            Priority::Critical => Self::Critical,
            Priority::High => Self::High,
            Priority::Normal => Self::Normal,
            Priority::Low => Self::Low,
            Priority::Background => Self::Background,
        }
    }
}

impl Priority {
    /// Every priority, most urgent first, which is also the order of their keys.
    pub const ALL: [Self; 5] =
        [Self::Critical, Self::High, Self::Normal, Self::Low, Self::Background];

    /// The word in keys.
    pub fn code(self) -> &'static str {
        match self {
            Self::Critical => "1_critical",
            Self::High => "2_high",
            Self::Normal => "3_normal",
            Self::Low => "4_low",
            Self::Background => "5_background",
        }
    }

    /// By the word in keys, or by that without its number.
    pub fn from_code(code: &str) -> Option<Self> {
        let named = |priority: &Self| {
            let whole = priority.code();
            whole == code || whole.split_once('_').is_some_and(|(_, word)| word == code)
        };
        Self::ALL.into_iter().find(named)
    }
}

/// Everything that waits, of all priorities; keys sort by urgency.
pub const TODO: &str = "queue/todo/";
/// Locks of what is worked on.
pub const LOCKS: &str = "queue/processing/";
/// What failed and is to be tried again.
pub const FAILED: &str = "queue/failed/";
/// What was given up.
pub const DEAD: &str = "queue/dead/";
/// Originals.
pub const RAW: &str = "store/raw/";
/// Results.
pub const OUT: &str = "store/out/";
/// Workers, one object each.
pub const WORKERS: &str = "registry/workers/";
/// Names, tags and sizes of all documents.
pub const MANIFEST: &str = "registry/manifest.json";
/// Settings that all workers of the bucket share.
pub const SETTINGS: &str = "registry/config.json";

/// What waits with this priority.
pub fn tier_prefix(priority: Priority) -> String {
    format!("{TODO}{}/", priority.code())
}

/// The marker of a document that waits.
pub fn todo_key(priority: Priority, hash: &str) -> String {
    format!("{TODO}{}/{hash}", priority.code())
}

/// The lock of a document.
pub fn lock_key(hash: &str) -> String {
    format!("{LOCKS}{hash}")
}

/// The mark of a document that failed.
pub fn failed_key(hash: &str) -> String {
    format!("{FAILED}{hash}")
}

/// The mark of a document that was given up.
pub fn dead_key(hash: &str) -> String {
    format!("{DEAD}{hash}")
}

/// The original of a document: `pdf`, or what else its content is.
pub fn raw_key(hash: &str, extension: &str) -> String {
    format!("{RAW}{hash}.{extension}")
}

/// The result of a document.
pub fn out_key(hash: &str) -> String {
    format!("{OUT}{hash}.zip")
}

/// The registry's record of a worker.
pub fn worker_key(id: &str) -> String {
    format!("{WORKERS}{id}.json")
}

/// The hash in a key below `prefix`; `None` for what is none of the dialect's.
pub fn hash_in<'a>(key: &'a str, prefix: &str) -> Option<&'a str> {
    let name = key.strip_prefix(prefix)?;
    is_hash(name).then_some(name)
}

/// The priority and hash in the key of a marker.
pub fn marker_in(key: &str) -> Option<(Priority, &str)> {
    let (tier, hash) = key.strip_prefix(TODO)?.split_once('/')?;
    let priority = Priority::ALL.into_iter().find(|priority| priority.code() == tier)?;
    is_hash(hash).then_some((priority, hash))
}

/// Whether the text is a SHA-256 as the keys write it.
pub fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Where a listing of a priority may begin, so that workers do not meet at its first entries: one
/// of 256 shards, by the first two digits of the hash.
pub fn shard(priority: Priority, number: u8) -> String {
    format!("{}{number:02x}", tier_prefix(priority))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_documents_are_taken_for_documents() {
        let hash = "ab".repeat(32);
        assert_eq!(marker_in(&todo_key(Priority::Low, &hash)), Some((Priority::Low, &*hash)));
        assert_eq!(hash_in(&lock_key(&hash), LOCKS), Some(&*hash));
        let upper = "AB".repeat(32);
        for key in ["queue/todo/3_normal/readme.txt", "queue/todo/3_normal/", "other", &upper] {
            assert_eq!(marker_in(key), None, "{key}");
            assert_eq!(hash_in(key, ""), None, "{key}");
        }
        assert_eq!(marker_in(&format!("queue/todo/9_later/{hash}")), None);
    }

    #[test]
    fn markers_sort_by_urgency_and_shards_cover_a_priority() {
        let keys: Vec<_> = Priority::ALL.map(|p| todo_key(p, "00")).into();
        assert!(keys.is_sorted());
        assert!(shard(Priority::High, 0) < todo_key(Priority::High, &"00".repeat(32)));
        assert!(shard(Priority::High, 255) < todo_key(Priority::High, &"ff".repeat(32)));
    }

    #[test]
    fn a_priority_has_two_names() {
        for (name, expected) in [
            ("2_high", Some(Priority::High)),
            ("background", Some(Priority::Background)),
            ("urgent", None),
            ("", None),
        ] {
            assert_eq!(Priority::from_code(name), expected, "{name}");
        }
    }
}
