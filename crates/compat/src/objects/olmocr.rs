//! The layout of an olmOCR workspace: object names, and names of work groups.
//!
//! olmOCR changed its layout once. Up to 0.2 a group is done when its result exists, and its lock
//! is named like the result; from 0.3 there are separate flags and locks. The two versions do not
//! see each other's marks. docmill reads both and writes both, unless configured otherwise.
//! olmOCR's locks and flags are empty: it checks only their existence and age. Pure: no I/O here.

pub mod archive;
pub mod index;

use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

use super::engine::LockRecord;
use docmill_core::model::digest;

/// Every group and its documents.
pub const INDEX: &str = "work_index_list.csv.zstd";
/// Locks of both layouts.
pub(crate) const LOCKS: &str = "worker_locks/";
/// Marks of the newer layout.
pub(crate) const FLAGS: &str = "done_flags/";
/// Results of both layouts.
pub(crate) const RESULTS: &str = "results/";
/// Results as Markdown, in files named after the documents.
pub(crate) const MARKDOWN: &str = "markdown/";
/// The status of each document; docmill's own, unknown to olmOCR.
pub const LEDGER: &str = "document_ledger/";

/// Whose marks are written. Both are always read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WorkspaceFormat {
    /// olmOCR 0.3 and later: flags, locks of their own.
    Newer,
    /// olmOCR before 0.3: the result is the mark.
    Older,
    /// Both, so that nodes of either version respect docmill's locks and flags.
    #[default]
    Both,
}

impl WorkspaceFormat {
    /// The locks acquired for a group.
    pub fn lock_keys(self, hash: &str) -> Vec<String> {
        match self {
            Self::Newer => vec![newer_lock_key(hash)],
            Self::Older => vec![older_lock_key(hash)],
            Self::Both => all_lock_keys(hash).to_vec(),
        }
    }

    /// Whether a flag is written beside the result.
    pub(crate) fn has_flags(self) -> bool {
        self != Self::Older
    }
}

/// The content of docmill's locks; olmOCR's are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkspaceLock {
    /// Name of the worker that holds the lock.
    pub worker: String,
    /// Different each time the lock is taken.
    pub nonce: String,
    /// Milliseconds since 1970, by the store's clock, of the last renewal.
    pub renewed: u64,
}

impl LockRecord for WorkspaceLock {
    fn nonce(&self) -> &str {
        &self.nonce
    }
}

/// The locks of a group in both layouts.
pub fn all_lock_keys(hash: &str) -> [String; 2] {
    [newer_lock_key(hash), older_lock_key(hash)]
}

fn newer_lock_key(hash: &str) -> String {
    format!("{LOCKS}worker_{hash}.lock")
}

fn older_lock_key(hash: &str) -> String {
    format!("{LOCKS}output_{hash}.jsonl")
}

/// The flag of a finished group.
pub fn flag_key(hash: &str) -> String {
    format!("{FLAGS}done_{hash}.flag")
}

/// The result of a group.
pub fn result_key(hash: &str) -> String {
    format!("{RESULTS}output_{hash}.jsonl")
}

/// The prefix of the entries about a group's documents.
pub(crate) fn ledger_prefix(hash: &str) -> String {
    format!("{LEDGER}{hash}/")
}

/// The key of the entry about one document of a group.
pub fn ledger_key(hash: &str, path: &str) -> String {
    format!("{LEDGER}{hash}/{}.json", sha1_hex(path.as_bytes()))
}

/// The group that a key of [`LEDGER`] belongs to.
pub fn group_in_ledger(key: &str) -> Option<&str> {
    key.strip_prefix(LEDGER)?.split_once('/').map(|(hash, _)| hash)
}

/// The group whose flag or result this is.
pub fn finished_group(key: &str) -> Option<&str> {
    let flag = key.strip_prefix(FLAGS).and_then(|name| name.strip_prefix("done_"));
    let result = key.strip_prefix(RESULTS).and_then(|name| name.strip_prefix("output_"));
    match flag {
        Some(name) => name.strip_suffix(".flag"),
        None => result?.strip_suffix(".jsonl"),
    }
}

/// The group whose lock this is, in either layout.
pub(crate) fn locked_group(key: &str) -> Option<&str> {
    let name = key.strip_prefix(LOCKS)?;
    let newer = name.strip_prefix("worker_").and_then(|name| name.strip_suffix(".lock"));
    newer.or_else(|| name.strip_prefix("output_")?.strip_suffix(".jsonl"))
}

/// The name of a group: SHA-1 over its sorted paths, nothing between them. That two groups can get
/// one name (`a.pdf`, `b.pdf` and `a.pdfb.pdf`) is olmOCR's; see [`index::WorkIndex::add_paths`].
pub fn group_hash(paths: &[String]) -> String {
    let mut sorted: Vec<&String> = paths.iter().collect();
    sorted.sort();
    let mut hasher = Sha1::new();
    for path in sorted {
        hasher.update(path.as_bytes());
    }
    digest::encode_hex(hasher.finalize())
}

/// SHA-1 in lower-case hex.
pub(crate) fn sha1_hex(bytes: &[u8]) -> String {
    digest::encode_hex(Sha1::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(paths: &[&str]) -> String {
        group_hash(&paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn groups_are_named_as_olmocr_names_them() {
        for (paths, expected) in [
            (vec!["a.pdf"], "0e6c2a272c5caa03847715d5d91e5d99fb877a81"),
            (vec!["é.pdf"], "27829118cdbb66fcbfb271cff51b44567cded9e1"),
            (vec![], "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            (vec!["z", "😀", "\u{FFFD}"], "6203eb0bc5d1c22f043fae5233e0a05803c5170a"),
            (vec!["b,c.pdf", "d\"q.pdf"], "40fc51e0264a566a1a9274d4c92d4861fcedcbf1"),
            (vec!["b.pdf", "a.pdf"], "aa560a3d19fcb1444ca0db64b4c6b8174f085422"),
            (vec!["a.pdfb.pdf"], "aa560a3d19fcb1444ca0db64b4c6b8174f085422"),
        ] {
            assert_eq!(hash(&paths), expected, "{paths:?}");
        }
    }

    #[test]
    fn a_mark_of_either_layout_names_its_group() {
        for (key, expected) in [
            (flag_key("ab"), Some("ab")),
            (result_key("ab"), Some("ab")),
            ("results/ab.jsonl".to_owned(), None),
            ("done_flags/done_ab.txt".to_owned(), None),
            (all_lock_keys("ab")[1].clone(), None),
        ] {
            assert_eq!(finished_group(&key), expected, "{key}");
        }
        assert_eq!(group_in_ledger(&ledger_key("ab", "a.pdf")), Some("ab"));
    }

    #[test]
    fn both_layouts_locks_are_taken_by_default() {
        assert_eq!(WorkspaceFormat::default().lock_keys("h"), all_lock_keys("h"));
        assert_eq!(WorkspaceFormat::Newer.lock_keys("h"), ["worker_locks/worker_h.lock"]);
        assert_eq!(WorkspaceFormat::Older.lock_keys("h"), ["worker_locks/output_h.jsonl"]);
    }
}
