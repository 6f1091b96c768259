//! `registry/manifest.json`: what every document of the bucket is called.
//!
//! One JSON object, changed in batches by If-Match, so that of two who add at once neither loses
//! an entry. It can be made anew from the originals' labels, which know one name of each. A file
//! that is no manifest is put aside under a name of its own before a new one takes its place.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Bucket, stamp};
use crate::fault::{Error, Fault, Result};
use crate::queue::objects::blobforge::{MANIFEST, RAW, is_hash};
use crate::queue::objects::engine::{back_off, contended};
use crate::store::{Etag, Fetch, Get, Put};

/// How often a change is tried; BlobForge tries as often.
const TRIES: u32 = 10;
/// A larger manifest is not read: about four million names.
const LARGEST: u64 = 1 << 30;

/// The whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Of the form; 1.
    pub version: u32,
    /// RFC 3339, UTC.
    #[serde(default)]
    pub updated_at: String,
    /// By hash.
    pub entries: BTreeMap<String, Entry>,
    /// Fields of others.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Default for Manifest {
    fn default() -> Self {
        let (entries, rest) = (BTreeMap::new(), Map::new());
        Self { version: 1, updated_at: String::new(), entries, rest }
    }
}

/// One document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// Every path it was handed in by.
    pub paths: Vec<String>,
    /// Bytes.
    pub size: u64,
    /// Labels.
    pub tags: Vec<String>,
    /// RFC 3339, UTC.
    pub ingested_at: String,
    /// The folder or repository it came from.
    pub source: String,
    /// Fields of others.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Entry {
    /// Takes over what another entry of the same document knows besides. Whether that was anything.
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

/// What [`Manifest::rebuild`] did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rebuilt {
    /// Documents with an original.
    pub documents: usize,
    /// Of these, how many the manifest did not know.
    pub added: usize,
    /// Entries without an original, which go.
    pub removed: usize,
    /// Where a file that was no manifest lies now.
    pub put_aside: Option<String>,
}

/// How [`Manifest::rebuild`] goes about it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rebuilding {
    /// Only say what would change.
    pub dry_run: bool,
}

/// What lies under the manifest's name.
enum Read {
    Nothing,
    Whole(Box<Manifest>, Etag),
    Broken(Bytes, Etag),
}

impl Manifest {
    /// Reads it; an empty one if there is none.
    ///
    /// # Errors
    /// The store's; rejected if what lies there is no manifest: `manifest --rebuild` mends that.
    pub async fn load(bucket: &Bucket) -> Result<Self> {
        match read(bucket).await? {
            Read::Nothing => Ok(Self::default()),
            Read::Whole(manifest, _) => Ok(*manifest),
            Read::Broken(..) => {
                let text = "registry/manifest.json is no manifest: `docmill bucket manifest \
                            --rebuild` puts it aside and makes a new one";
                Err(Error::new(Fault::Rejected, text))
            }
        }
    }

    /// Adds documents, and paths and tags of those it knows.
    ///
    /// # Errors
    /// The store's; transient if too many change it at once. A second try adds nothing twice.
    pub(super) async fn add(bucket: &Bucket, new: &BTreeMap<String, Entry>) -> Result<()> {
        change(bucket, |manifest| {
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
    /// As [`Manifest::add`].
    pub(super) async fn forget(bucket: &Bucket, hash: &str) -> Result<()> {
        change(bucket, |manifest| manifest.entries.remove(hash).is_some()).await.map(drop)
    }

    /// Makes it anew: one entry for every original, what was known of it kept.
    ///
    /// # Errors
    /// The store's.
    pub async fn rebuild(bucket: &Bucket, how: Rebuilding) -> Result<Rebuilt> {
        let known = match read(bucket).await? {
            Read::Whole(manifest, _) => manifest.entries,
            Read::Nothing | Read::Broken(..) => BTreeMap::new(),
        };
        let originals = originals(bucket).await?;
        let lacks = |hash: &&String| !originals.contains_key(*hash);
        let mut rebuilt = Rebuilt {
            documents: originals.len(),
            added: originals.keys().filter(|hash| !known.contains_key(*hash)).count(),
            removed: known.keys().filter(lacks).count(),
            put_aside: None,
        };
        if how.dry_run {
            return Ok(rebuilt);
        }
        // What was handed in while the originals were looked at stays: only what was known before
        // and has no original goes.
        rebuilt.put_aside = change(bucket, |manifest| {
            let before = manifest.entries.clone();
            manifest
                .entries
                .retain(|hash, _| originals.contains_key(hash) || !known.contains_key(hash));
            for (hash, entry) in &originals {
                let known = manifest.entries.entry(hash.clone()).or_insert_with(|| entry.clone());
                // A label knows a name, the manifest a path: the name adds nothing to that.
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

async fn read(bucket: &Bucket) -> Result<Read> {
    let what = Get { at_most: LARGEST, if_match: None };
    Ok(match bucket.engine.store().get(MANIFEST, what).await? {
        Fetch::Missing | Fetch::Changed => Read::Nothing,
        Fetch::Found(object) => match serde_json::from_slice::<Manifest>(&object.bytes) {
            Ok(manifest) => Read::Whole(Box::new(manifest), object.etag),
            Err(_) => Read::Broken(object.bytes, object.etag),
        },
        Fetch::TooLarge { size } => {
            let text = format!("registry/manifest.json has {size} bytes, {LARGEST} are read");
            return Err(Error::new(Fault::Rejected, text));
        }
    })
}

/// Changes the manifest as often as it takes to meet nobody; `false` from `make` leaves it as it
/// is. Returns where a file that was no manifest was put.
async fn change<F>(bucket: &Bucket, make: F) -> Result<Option<String>>
where
    F: Fn(&mut Manifest) -> bool + Send,
{
    let mut put_aside = None;
    for turn in 0..TRIES {
        let (mut manifest, etag, broken) = match read(bucket).await? {
            Read::Nothing => (Manifest::default(), None, false),
            Read::Whole(manifest, etag) => (*manifest, Some(etag), false),
            Read::Broken(bytes, etag) => {
                put_aside = Some(keep_broken(bucket, bytes).await?);
                (Manifest::default(), Some(etag), true)
            }
        };
        if !make(&mut manifest) && !broken {
            return Ok(put_aside);
        }
        manifest.updated_at = stamp(bucket.engine.now().await?);
        let bytes = serde_json::to_vec(&manifest)
            .map_err(|error| Error::internal("the manifest has no JSON").because(error))?;
        let store = bucket.engine.store();
        let put = match &etag {
            None => store.put_if_absent(MANIFEST, bytes.into()).await?,
            Some(etag) => store.put_if_match(MANIFEST, etag, bytes.into()).await?,
        };
        if put != Put::Refused {
            return Ok(put_aside);
        }
        back_off(turn + 2).await;
    }
    Err(contended())
}

async fn keep_broken(bucket: &Bucket, bytes: Bytes) -> Result<String> {
    let at = bucket.engine.now().await?;
    let key = format!("registry/manifest.broken-{at}.json");
    bucket.engine.store().put_if_absent(&key, bytes).await?;
    tracing::warn!(key, "registry/manifest.json is no manifest and was put aside");
    Ok(key)
}

/// What the labels of the originals say.
async fn originals(bucket: &Bucket) -> Result<BTreeMap<String, Entry>> {
    let mut all = BTreeMap::new();
    for listed in bucket.engine.list_all(RAW).await? {
        let name = listed.key.strip_prefix(RAW).unwrap_or_default();
        let hash = name.split_once('.').map_or(name, |(hash, _)| hash);
        if !is_hash(hash) {
            continue;
        }
        let Some(meta) = bucket.engine.store().head(&listed.key).await? else { continue };
        let label = |name: &str| meta.metadata.get(name).cloned().unwrap_or_default();
        let entry = Entry {
            paths: Some(label("original-name"))
                .filter(|name| !name.is_empty())
                .into_iter()
                .collect(),
            size: meta.size,
            tags: serde_json::from_str(&label("tags")).unwrap_or_default(),
            ingested_at: stamp(crate::queue::objects::engine::millis(meta.modified)),
            source: String::new(),
            rest: Map::new(),
        };
        all.insert(hash.to_owned(), entry);
    }
    Ok(all)
}
