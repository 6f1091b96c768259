//! The layout of a BlobForge bucket: the meaning of its keys. Pure; records are in [`records`].
//!
//! The layout of BlobForge 039ba07 (July 2026), below a prefix that the store adds:
//! `store/raw/HASH.pdf`, `store/out/HASH.zip`, `queue/todo/PRIORITY/HASH`,
//! `queue/{processing,failed,dead}/HASH`, `registry/…`. A HASH is the SHA-256 of the document in
//! hex; for the message queue, of the message's body.

pub mod records;

use docmill_core::model::Priority;

/// Everything that waits, of all priorities; keys sort by urgency.
pub(crate) const TODO: &str = "queue/todo/";
/// Locks of what is worked on.
pub(crate) const LOCKS: &str = "queue/processing/";
/// Failed documents, to be retried.
pub const FAILED: &str = "queue/failed/";
/// Prefix of the keys of documents that were given up.
pub const DEAD: &str = "queue/dead/";
/// Prefix of the originals' keys.
pub(crate) const RAW: &str = "store/raw/";
/// Prefix of the results' keys.
pub const OUT: &str = "store/out/";
/// Workers, one object each.
pub const WORKERS: &str = "registry/workers/";
/// Names, tags and sizes of all documents.
pub(crate) const MANIFEST: &str = "registry/manifest.json";
/// Settings that all workers of the bucket share.
pub const SETTINGS: &str = "registry/config.json";

/// Prefix of the keys of markers that wait with this priority.
pub(crate) fn tier_prefix(priority: Priority) -> String {
    format!("{TODO}{}/", priority.blobforge_key())
}

/// The marker of a document that waits.
pub fn todo_key(priority: Priority, hash: &str) -> String {
    format!("{TODO}{}/{hash}", priority.blobforge_key())
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
pub(crate) fn worker_key(id: &str) -> String {
    format!("{WORKERS}{id}.json")
}

/// The hash in a key below `prefix`; `None` for keys of another layout.
pub fn hash_in<'a>(key: &'a str, prefix: &str) -> Option<&'a str> {
    let name = key.strip_prefix(prefix)?;
    is_hash(name).then_some(name)
}

/// The priority and hash in the key of a marker.
pub fn marker_in(key: &str) -> Option<(Priority, &str)> {
    let (tier, hash) = key.strip_prefix(TODO)?.split_once('/')?;
    let priority = Priority::ALL.into_iter().find(|one| one.blobforge_key() == tier)?;
    is_hash(hash).then_some((priority, hash))
}

/// Whether the text is a SHA-256 as the keys write it.
pub fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A start within a priority's listing, so that workers rarely collide at its first entries: one of
/// 256 shards, by the first two digits of the hash.
pub(crate) fn shard_prefix(priority: Priority, number: u8) -> String {
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
        assert!(shard_prefix(Priority::High, 0) < todo_key(Priority::High, &"00".repeat(32)));
        assert!(shard_prefix(Priority::High, 255) < todo_key(Priority::High, &"ff".repeat(32)));
    }
}
