//! `registry/manifest.json`: the names of the bucket's documents.
//!
//! One JSON object, changed in batches by If-Match, so that concurrent additions lose no entry. It
//! can be rebuilt from the originals' labels, which hold one name each. An invalid file is moved
//! aside under a name of its own before a new one replaces it.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{BlobForgeBucket, format_rfc3339};
use crate::objects::blobforge::{DEAD, FAILED, LOCKS, MANIFEST, OUT, RAW, TODO, is_hash};
use crate::objects::engine::{back_off, contention_error};
use docmill_core::fault::{Error, Fault, Result};
use docmill_storage::{Etag, GetOptions, GetResult, PutResult};

/// How often a change is tried; BlobForge tries as often.
const TRIES: u32 = 10;
/// A larger manifest is not read: about four million names.
const MAX_MANIFEST_BYTES: u64 = 1 << 30;

/// The manifest as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BucketManifest {
    /// The version of the format; 1.
    pub version: u32,
    /// When it was last changed; RFC 3339, UTC.
    #[serde(default)]
    pub updated_at: String,
    /// One entry per document, by the SHA-256 of its bytes in hex.
    pub entries: BTreeMap<String, ManifestEntry>,
    /// Fields of other programs, kept.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Default for BucketManifest {
    fn default() -> Self {
        let (entries, rest) = (BTreeMap::new(), Map::new());
        Self { version: 1, updated_at: String::new(), entries, rest }
    }
}

/// One document of the manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ManifestEntry {
    /// Every path it was handed in by.
    pub paths: Vec<String>,
    /// The size of the original in bytes.
    pub size: u64,
    /// The tags of the document.
    pub tags: Vec<String>,
    /// When it was handed in; RFC 3339, UTC.
    pub ingested_at: String,
    /// The folder or repository it came from.
    pub source: String,
    /// Fields of other programs, kept.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl ManifestEntry {
    /// Merges another entry of the same document; returns whether it added anything.
    fn merge(&mut self, other: &Self) -> bool {
        let before = self.clone();
        for path in &other.paths {
            if !self.paths.contains(path) {
                self.paths.push(path.clone());
            }
        }
        for tag in &other.tags {
            if !self.tags.contains(tag) {
                self.tags.push(tag.clone());
            }
        }
        if self.size == 0 {
            self.size = other.size;
        }
        *self != before
    }
}

/// What [`BucketManifest::rebuild`] did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RebuildReport {
    /// Documents with an original.
    pub documents: usize,
    /// New entries among these.
    pub added: usize,
    /// Entries without an original, which go.
    pub removed: usize,
    /// The key to which a file that was no manifest was moved.
    pub put_aside: Option<String>,
    /// Documents with an original only, by hash: never queued, or their markers are lost. A retry
    /// queues them.
    pub unmarked: Vec<String>,
}

/// Options of [`BucketManifest::rebuild`].
#[derive(Debug, Clone, Copy, Default)]
pub struct RebuildOptions {
    /// Dry run.
    pub dry_run: bool,
}

/// The object stored under the manifest's name.
enum ManifestRead {
    Nothing,
    Whole(Box<BucketManifest>, Etag),
    Broken(Bytes, Etag),
}

impl BucketManifest {
    /// Loads the manifest; an empty one if there is none.
    ///
    /// # Errors
    /// Store errors; rejected if the file is invalid: `manifest --rebuild` repairs that.
    pub async fn load(bucket: &BlobForgeBucket) -> Result<Self> {
        match read_manifest(bucket).await? {
            ManifestRead::Nothing => Ok(Self::default()),
            ManifestRead::Whole(manifest, _) => Ok(*manifest),
            ManifestRead::Broken(..) => {
                let text = "registry/manifest.json is no manifest: `docmill bucket manifest \
                            --rebuild` puts it aside and makes a new one";
                Err(Error::new(Fault::Rejected, text))
            }
        }
    }

    /// Adds documents, and new paths and tags of known ones.
    ///
    /// # Errors
    /// Store errors; transient after too many concurrent changes. Adding twice has no effect.
    pub(super) async fn add(
        bucket: &BlobForgeBucket,
        new: &BTreeMap<String, ManifestEntry>,
    ) -> Result<()> {
        update_manifest(bucket, |manifest| {
            let mut changed = false;
            for (hash, entry) in new {
                changed |= match manifest.entries.get_mut(hash) {
                    Some(known) => known.merge(entry),
                    None => manifest.entries.insert(hash.clone(), entry.clone()).is_none(),
                };
            }
            changed
        })
        .await
        .map(drop)
    }

    /// Takes a document out.
    ///
    /// # Errors
    /// As [`BucketManifest::add`].
    pub(super) async fn remove_entry(bucket: &BlobForgeBucket, hash: &str) -> Result<()> {
        update_manifest(bucket, |manifest| manifest.entries.remove(hash).is_some()).await.map(drop)
    }

    /// Rebuilds it: one entry for every original, keeping known data.
    ///
    /// # Errors
    /// Store errors.
    pub async fn rebuild(bucket: &BlobForgeBucket, how: RebuildOptions) -> Result<RebuildReport> {
        let known = match read_manifest(bucket).await? {
            ManifestRead::Whole(manifest, _) => manifest.entries,
            ManifestRead::Nothing | ManifestRead::Broken(..) => BTreeMap::new(),
        };
        let originals = list_originals(bucket).await?;
        let mut rebuilt = RebuildReport {
            documents: originals.len(),
            added: originals.keys().filter(|hash| !known.contains_key(*hash)).count(),
            removed: known.keys().filter(|hash: &&String| !originals.contains_key(*hash)).count(),
            put_aside: None,
            unmarked: find_unmarked(bucket, originals.keys()).await?,
        };
        if how.dry_run {
            return Ok(rebuilt);
        }
        // Entries added during the listing stay: only older ones without an original are removed.
        rebuilt.put_aside = update_manifest(bucket, |manifest| {
            let before = manifest.entries.clone();
            manifest
                .entries
                .retain(|hash, _| originals.contains_key(hash) || !known.contains_key(hash));
            for (hash, entry) in &originals {
                let known = manifest.entries.entry(hash.clone()).or_insert_with(|| entry.clone());
                // Labels hold a name, the manifest a path: the name adds nothing to that.
                if known.paths.is_empty() {
                    known.merge(entry);
                }
            }
            manifest.entries != before
        })
        .await?;
        Ok(rebuilt)
    }
}

async fn read_manifest(bucket: &BlobForgeBucket) -> Result<ManifestRead> {
    let what = GetOptions { at_most: MAX_MANIFEST_BYTES, if_match: None };
    Ok(match bucket.engine.store().get(MANIFEST, what).await? {
        GetResult::Missing | GetResult::Changed => ManifestRead::Nothing,
        GetResult::Found(object) => match serde_json::from_slice::<BucketManifest>(&object.bytes) {
            Ok(manifest) => ManifestRead::Whole(Box::new(manifest), object.etag),
            Err(_) => ManifestRead::Broken(object.bytes, object.etag),
        },
        GetResult::TooLarge { size } => {
            let text =
                format!("registry/manifest.json has {size} bytes, {MAX_MANIFEST_BYTES} are read");
            return Err(Error::new(Fault::Rejected, text));
        }
    })
}

/// Changes the manifest, with retries after concurrent changes; `false` from `make` leaves it
/// unchanged. Returns the key of an invalid file that was moved aside.
async fn update_manifest<F>(bucket: &BlobForgeBucket, make: F) -> Result<Option<String>>
where
    F: Fn(&mut BucketManifest) -> bool + Send,
{
    let mut put_aside = None;
    for turn in 0..TRIES {
        let (mut manifest, etag, broken) = match read_manifest(bucket).await? {
            ManifestRead::Nothing => (BucketManifest::default(), None, false),
            ManifestRead::Whole(manifest, etag) => (*manifest, Some(etag), false),
            ManifestRead::Broken(bytes, etag) => {
                put_aside = Some(preserve_broken(bucket, bytes).await?);
                (BucketManifest::default(), Some(etag), true)
            }
        };
        if !make(&mut manifest) && !broken {
            return Ok(put_aside);
        }
        manifest.updated_at = format_rfc3339(bucket.engine.now().await?);
        let bytes = serde_json::to_vec(&manifest)
            .map_err(|error| Error::internal("cannot serialise the manifest").with_source(error))?;
        let store = bucket.engine.store();
        let put = match &etag {
            None => store.put_if_absent(MANIFEST, bytes.into()).await?,
            Some(etag) => store.put_if_match(MANIFEST, etag, bytes.into()).await?,
        };
        if put != PutResult::Refused {
            return Ok(put_aside);
        }
        back_off(turn + 2).await;
    }
    Err(contention_error())
}

async fn preserve_broken(bucket: &BlobForgeBucket, bytes: Bytes) -> Result<String> {
    let at = bucket.engine.now().await?;
    let key = format!("registry/manifest.broken-{at}.json");
    bucket.engine.store().put_if_absent(&key, bytes).await?;
    tracing::warn!(key, "registry/manifest.json is invalid and was moved aside");
    Ok(key)
}

/// Of these documents those that are in no state.
async fn find_unmarked(
    bucket: &BlobForgeBucket,
    hashes: impl Iterator<Item = &String>,
) -> Result<Vec<String>> {
    let marks = [TODO, LOCKS, FAILED, DEAD, OUT].map(|prefix| bucket.engine.list_all(prefix));
    let marked: HashSet<String> = futures::future::try_join_all(marks)
        .await?
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.key.rsplit('/').next()?.get(..64)?.to_owned()))
        .collect();
    let mut unmarked = Vec::new();
    for hash in hashes.filter(|hash| !marked.contains(*hash)) {
        // It may have gone from one state to another between the listings.
        if bucket.state(hash).await?.is_none() {
            unmarked.push(hash.clone());
        }
    }
    Ok(unmarked)
}

/// Lists the originals by their labels.
async fn list_originals(bucket: &BlobForgeBucket) -> Result<BTreeMap<String, ManifestEntry>> {
    let mut all = BTreeMap::new();
    for listed in bucket.engine.list_all(RAW).await? {
        let name = listed.key.strip_prefix(RAW).unwrap_or_default();
        let hash = name.split_once('.').map_or(name, |(hash, _)| hash);
        if !is_hash(hash) {
            continue;
        }
        let Some(meta) = bucket.engine.store().head(&listed.key).await? else { continue };
        let label = |name: &str| meta.metadata.get(name).cloned().unwrap_or_default();
        let entry = ManifestEntry {
            paths: Some(label("original-name"))
                .filter(|name| !name.is_empty())
                .into_iter()
                .collect(),
            size: meta.size,
            tags: serde_json::from_str(&label("tags")).unwrap_or_default(),
            ingested_at: format_rfc3339(crate::objects::engine::to_millis(meta.modified)),
            source: String::new(),
            rest: Map::new(),
        };
        all.insert(hash.to_owned(), entry);
    }
    Ok(all)
}
