//! The status of each document of a group, so that a failed one is not lost with its group, and a
//! read one is not read again.
//!
//! Written by the owner of the group's lock, conditionally each time. Entries of read documents are
//! removed once their group's result exists.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::read::artefact_id;
use crate::object_ledger::remove_artefacts;
use crate::objects::olmocr::{ledger_key, ledger_prefix, sha1_hex};
use docmill_core::fault::{Error, Result};
use docmill_storage::{Etag, GetOptions, GetResult, ObjectStore, PutResult};

/// The largest entry in bytes; it contains a document's whole text.
const MAX_LEDGER_BYTES: u64 = 256 << 20;

/// The status of a document in its group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentStatus {
    /// It waits to be read.
    #[default]
    Waiting,
    /// Being read; or its worker died over it.
    Begun,
    /// Read; the line is in the entry.
    Read,
    /// Read to the end, and nothing is on it.
    Empty,
    /// The document itself is at fault.
    Refused,
    /// Reading it failed; it is tried again until its tries are used up.
    Failed,
}

/// The entry about one document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupEntry {
    /// The path or address by which the index names it.
    pub path: String,
    /// How far its reading is.
    pub standing: DocumentStatus,
    /// How many times reading it was begun.
    pub tries: u32,
    /// Why it was not read, by our table of reasons or faults.
    pub reason: String,
    /// Counts and limits, never content.
    pub detail: String,
    /// Its line of the result, without a line break.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

impl GroupEntry {
    /// Whether it is final, with `most` tries per document.
    pub fn is_settled(&self, most: u32) -> bool {
        match self.standing {
            DocumentStatus::Read | DocumentStatus::Empty | DocumentStatus::Refused => true,
            DocumentStatus::Begun | DocumentStatus::Failed => self.tries >= most,
            DocumentStatus::Waiting => false,
        }
    }

    /// Whether its text is missing from the result though there may be some.
    pub(crate) fn is_unread(&self) -> bool {
        matches!(
            self.standing,
            DocumentStatus::Refused | DocumentStatus::Failed | DocumentStatus::Begun
        )
    }
}

/// The entries of one group, as they were read or written last.
#[derive(Debug, Default)]
pub(super) struct GroupLedger {
    hash: String,
    entries: BTreeMap<String, (GroupEntry, Etag)>,
    /// The documents that were begun through this ledger, and not ended.
    begun_here: BTreeSet<String>,
}

impl GroupLedger {
    /// Reads what is known of a group.
    pub(super) async fn load(workspace: &Workspace, hash: &str) -> Result<Self> {
        let mut known = Self { hash: hash.to_owned(), ..Self::default() };
        for listed in workspace.engine.list_all(&ledger_prefix(hash)).await? {
            if let Some((entry, etag)) = read_entry(workspace, &listed.key).await? {
                known.entries.insert(entry.path.clone(), (entry, etag));
            }
        }
        Ok(known)
    }

    /// The entry about a document; a waiting one if there is none.
    pub(super) fn entry_for(&self, path: &str) -> GroupEntry {
        self.entries.get(path).map_or_else(
            || GroupEntry { path: path.to_owned(), ..GroupEntry::default() },
            |(entry, _)| entry.clone(),
        )
    }

    /// The entries of all documents.
    pub(super) fn entries(&self) -> impl Iterator<Item = &GroupEntry> {
        self.entries.values().map(|(entry, _)| entry)
    }

    /// The entries of the documents that are in work; what another worker died over is not.
    pub(super) fn begun_here(&self) -> impl Iterator<Item = &GroupEntry> {
        self.begun_here.iter().filter_map(|path| self.entries.get(path)).map(|(entry, _)| entry)
    }

    /// Writes an entry; `false` after a concurrent write.
    pub(super) async fn save(&mut self, workspace: &Workspace, entry: GroupEntry) -> Result<bool> {
        let key = ledger_key(&self.hash, &entry.path);
        let json = serde_json::to_vec(&entry).map_err(|error| {
            Error::internal("cannot serialise a ledger entry").with_source(error)
        })?;
        let store = workspace.engine.store();
        let put = match self.entries.get(&entry.path) {
            Some((_, etag)) => store.put_if_match(&key, etag, json.into()).await?,
            None => store.put_if_absent(&key, json.into()).await?,
        };
        let PutResult::Written(etag) = put else { return Ok(false) };
        if matches!(entry.standing, DocumentStatus::Read | DocumentStatus::Empty) {
            forget_artefacts(store, &entry.path).await;
        }
        match entry.standing {
            DocumentStatus::Begun => self.begun_here.insert(entry.path.clone()),
            _ => self.begun_here.remove(&entry.path),
        };
        self.entries.insert(entry.path.clone(), (entry, etag));
        Ok(true)
    }

    /// Removes the entries that `which` names.
    pub(super) async fn remove(
        &mut self,
        workspace: &Workspace,
        which: impl Fn(&GroupEntry) -> bool,
    ) -> Result<()> {
        let paths: Vec<String> =
            self.entries().filter(|entry| which(entry)).map(|entry| entry.path.clone()).collect();
        for path in paths {
            workspace.engine.delete(&ledger_key(&self.hash, &path)).await?;
            self.entries.remove(&path);
        }
        Ok(())
    }
}

/// Deletes a document's artefacts once its text is in the ledger. Leftovers are deleted by age.
async fn forget_artefacts(store: &dyn ObjectStore, path: &str) {
    if let Err(error) = remove_artefacts(store, artefact_id(path)).await {
        let document = sha1_hex(path.as_bytes());
        tracing::warn!(document, error = %error, "artefacts were not deleted: {error}");
    }
}

/// One entry; invalid JSON counts as none.
pub(super) async fn read_entry(
    workspace: &Workspace,
    key: &str,
) -> Result<Option<(GroupEntry, Etag)>> {
    let what = GetOptions { at_most: MAX_LEDGER_BYTES, if_match: None };
    match workspace.engine.store().get(key, what).await? {
        GetResult::Found(object) => {
            let entry = serde_json::from_slice::<GroupEntry>(&object.bytes).ok();
            Ok(entry.map(|entry| (entry, object.etag)))
        }
        GetResult::Missing | GetResult::Changed => Ok(None),
        GetResult::TooLarge { .. } => Err(Error::internal("an entry of the ledger is too large")),
    }
}
