//! Reports on a bucket; nothing here changes anything.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use serde::Serialize;

use super::manifest::{BucketManifest, ManifestEntry};
use super::registry::{RegisteredWorker, list_workers};
use super::{BlobForgeBucket, BucketState};
use crate::objects::blobforge::records::{
    DeadMarker, FailedMarker, MarkerLock, QueueMarker, RecordedFailure,
};
use crate::objects::blobforge::{
    DEAD, FAILED, LOCKS, OUT, TODO, dead_key, failed_key, hash_in, is_hash, lock_key, marker_in,
    tier_prefix,
};
use crate::objects::engine::UnreadableStreak;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::Priority;
use docmill_storage::ObjectEntry;

/// How many documents are in each state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BucketCounts {
    /// Documents that wait, by the name of their priority.
    pub todo: BTreeMap<&'static str, u64>,
    /// Documents that a worker has locked.
    pub processing: u64,
    /// Failed documents that are to be tried again.
    pub failed: u64,
    /// Documents that were given up.
    pub dead: u64,
    /// Documents that have a result.
    pub done: u64,
}

/// Counts documents by state.
///
/// # Errors
/// Store errors.
pub async fn count_states(bucket: &BlobForgeBucket) -> Result<BucketCounts> {
    let (todo, locks, failed, dead, out) = tokio::try_join!(
        bucket.queue.list_markers(),
        bucket.queue.list_locks(),
        bucket.queue.list_named(FAILED),
        bucket.queue.count_dead(),
        bucket.engine.list_all(OUT),
    )?;
    let mut standing = BucketCounts::default();
    for (priority, hash) in todo.iter().filter_map(|entry| marker_in(&entry.key)) {
        let waits = u64::from(!locks.contains_key(hash));
        *standing.todo.entry(priority.blobforge_key()).or_default() += waits;
    }
    (standing.processing, standing.failed) = (count_of(locks.len()), count_of(failed.len()));
    standing.dead = dead;
    standing.done = count_of(out.iter().filter(|e| hash_in_result_key(&e.key).is_some()).count());
    Ok(standing)
}

fn count_of(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// The hash in the key of a result.
fn hash_in_result_key(key: &str) -> Option<&str> {
    key.strip_prefix(OUT)?.strip_suffix(".zip").filter(|hash| is_hash(hash))
}

/// A document that is worked on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunningDocument {
    /// SHA-256 of the document's bytes, in hex.
    pub hash: String,
    /// The id of the worker that has the lock.
    pub worker: String,
    /// The number of this run, from 1.
    pub run: u32,
    /// The stage that the work has reached.
    pub stage: String,
    /// Seconds since it was taken.
    pub elapsed_seconds: u64,
    /// Seconds since its lock was renewed, by the store's clock.
    pub renewed_seconds_ago: u64,
}

/// Counts, workers and what they do.
#[derive(Debug, Clone, Serialize)]
pub struct BucketDashboard {
    /// How many documents are in each state.
    pub standing: BucketCounts,
    /// The registered workers, and the age of their last heartbeat in seconds.
    pub workers: Vec<(RegisteredWorker, u64)>,
    /// The documents that are worked on.
    pub running: Vec<RunningDocument>,
    /// Of the first hundred documents that wait, how many were put back, by why or by the worker
    /// that they were taken from.
    pub put_back: BTreeMap<String, u64>,
}

/// Markers that the dashboard reads.
const SAMPLED: usize = 100;
/// Markers that are read at the same time.
const AT_ONCE: usize = 16;

/// Loads everything that the dashboard shows.
///
/// # Errors
/// Store errors.
pub async fn load_dashboard(bucket: &BlobForgeBucket) -> Result<BucketDashboard> {
    let (standing, workers) = tokio::try_join!(count_states(bucket), list_workers(bucket))?;
    let mut running = Vec::new();
    for (hash, entry) in bucket.queue.list_locks().await? {
        let Some(lock) = bucket.engine.read::<MarkerLock>(&entry.key).await? else { continue };
        let run = lock.value.run_count();
        let progress = lock.value.progress.unwrap_or_default();
        running.push(RunningDocument {
            hash,
            worker: lock.value.worker,
            run,
            stage: progress.stage,
            elapsed_seconds: progress.elapsed_seconds,
            renewed_seconds_ago: bucket.age_by_store(entry.modified).await?.as_secs(),
        });
    }
    let waiting = bucket.queue.list_first().await?.markers.into_iter().take(SAMPLED).collect();
    let mut put_back = BTreeMap::new();
    for why in read_put_back(bucket, waiting).await?.into_iter().flatten() {
        *put_back.entry(why).or_default() += 1;
    }
    let workers = workers
        .into_iter()
        .map(|(worker, age): (RegisteredWorker, Duration)| (worker, age.as_secs()))
        .collect();
    Ok(BucketDashboard { standing, workers, running, put_back })
}

/// Why each of these markers' documents was put back, or the worker that it was taken from.
async fn read_put_back(
    bucket: &BlobForgeBucket,
    markers: Vec<ObjectEntry>,
) -> Result<Vec<Option<String>>> {
    let mut streak = UnreadableStreak::default();
    let mut reads = stream::iter(markers)
        .map(|entry| async move {
            // BlobForge's own markers are empty.
            let read = match entry.size {
                0 => Ok(None),
                _ => bucket.engine.read::<QueueMarker>(&entry.key).await,
            };
            (entry.key, read)
        })
        .buffered(AT_ONCE);
    let mut all = Vec::new();
    while let Some((key, read)) = reads.next().await {
        all.push(match read {
            Ok(seen) => seen.and_then(|seen| seen.value.recovered_from),
            Err(error) if streak.passes_over(&error) => {
                tracing::warn!(key, error = %error, "a marker cannot be read: {error}");
                None
            }
            Err(error) => return Err(error),
        });
    }
    Ok(all)
}

/// A document as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedDocument {
    /// SHA-256 of the document's bytes, in hex.
    pub hash: String,
    /// The state of the document.
    pub state: BucketState,
    /// The name of its priority, if it waits.
    pub priority: Option<&'static str>,
    /// Its paths, from the manifest.
    pub paths: Vec<String>,
    /// If it waits: why it was put back, or the worker that it was taken from.
    pub put_back: Option<String>,
}

/// Documents of one state, or of all, up to `limit` of each; of one priority if one is named.
///
/// # Errors
/// Store errors.
pub async fn list_documents(
    bucket: &BlobForgeBucket,
    state: Option<BucketState>,
    priority: Option<Priority>,
    limit: usize,
) -> Result<Vec<ListedDocument>> {
    let names = load_names(bucket).await?;
    let named =
        |hash: &str| names.entries.get(hash).map(|entry| entry.paths.clone()).unwrap_or_default();
    let mut all = Vec::new();
    for each in BucketState::ALL.into_iter().filter(|each| state.is_none_or(|state| state == *each))
    {
        let prefix = match (each, priority) {
            (BucketState::Todo, Some(priority)) => tier_prefix(priority),
            (BucketState::Todo, None) => TODO.to_owned(),
            (_, Some(_)) => continue,
            (BucketState::Processing, None) => LOCKS.to_owned(),
            (BucketState::Failed, None) => FAILED.to_owned(),
            (BucketState::Dead, None) => DEAD.to_owned(),
            (BucketState::Done, None) => OUT.to_owned(),
        };
        let entries = bucket.engine.store().list(&prefix, None, limit).await?;
        let put_back = match each {
            BucketState::Todo => read_put_back(bucket, entries.clone()).await?,
            _ => vec![None; entries.len()],
        };
        for (entry, put_back) in entries.into_iter().zip(put_back) {
            let found = match each {
                BucketState::Todo => {
                    marker_in(&entry.key).map(|(p, hash)| (Some(p.blobforge_key()), hash))
                }
                BucketState::Done => hash_in_result_key(&entry.key).map(|hash| (None, hash)),
                _ => hash_in(&entry.key, &prefix).map(|hash| (None, hash)),
            };
            let Some((priority, hash)) = found else { continue };
            let (hash, paths) = (hash.to_owned(), named(hash));
            all.push(ListedDocument { hash, state: each, priority, paths, put_back });
        }
    }
    Ok(all)
}

/// The manifest for its names; an invalid one has none.
async fn load_names(bucket: &BlobForgeBucket) -> Result<BucketManifest> {
    match BucketManifest::load(bucket).await {
        Err(error) if error.fault == Fault::Rejected => {
            tracing::warn!(error = %error, "documents are shown without names: {error}");
            Ok(BucketManifest::default())
        }
        other => other,
    }
}

/// All that is known of a document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DocumentDetails {
    /// SHA-256 of the document's bytes, in hex.
    pub hash: String,
    /// Its state; `None`: at most an original without markers.
    pub state: Option<BucketState>,
    /// Its entry in the manifest, if it has one.
    pub entry: Option<ManifestEntry>,
    /// The name of its priority, if it waits.
    pub priority: Option<&'static str>,
    /// How many runs the document has had.
    pub runs: u32,
    /// The id of the worker that has it, if it is worked on.
    pub worker: Option<String>,
    /// The reason why it is dead, or its last failure.
    pub reason: Option<String>,
    /// If it waits: why it was put back, or the worker that it was taken from.
    pub put_back: Option<String>,
    /// Its failures, oldest first.
    pub history: Vec<RecordedFailure>,
}

/// Looks a document up by its hash, or the beginning of it, or by a path it was handed in by.
///
/// # Errors
/// Store errors; missing if there is none, rejected if there are several.
pub async fn find_document(
    bucket: &BlobForgeBucket,
    name: &str,
    by_path: bool,
) -> Result<DocumentDetails> {
    let hash = match by_path {
        false if is_hash(name) => name.to_owned(),
        false => find_unique(&BucketManifest::load(bucket).await?, name, |hash, _| {
            hash.starts_with(name)
        })?,
        true => find_unique(&BucketManifest::load(bucket).await?, name, |_, entry| {
            entry.paths.iter().any(|path| path == name)
        })?,
    };
    let entry = load_names(bucket).await?.entries.remove(&hash);
    let (lock, failed, dead) = (lock_key(&hash), failed_key(&hash), dead_key(&hash));
    let (state, markers, lock, failed, dead) = tokio::try_join!(
        bucket.state(&hash),
        bucket.find_markers(&hash),
        bucket.engine.read::<MarkerLock>(&lock),
        bucket.engine.read::<FailedMarker>(&failed),
        bucket.engine.read::<DeadMarker>(&dead),
    )?;
    if state.is_none() && entry.is_none() && bucket.find_extension(&hash).await?.is_none() {
        let text = "the bucket does not know this document: name a path by --path, or look for \
                    it with `docmill bucket search`";
        return Err(Error::new(Fault::Missing, text));
    }
    let marker: Option<(Priority, QueueMarker)> =
        markers.into_iter().next().map(|(priority, seen)| (priority, seen.value));
    let (failed, dead) = (failed.map(|f| f.value), dead.map(|d| d.value));
    let counted = marker.as_ref().map(|(_, marker)| marker.retries);
    let runs = counted.or(failed.as_ref().map(FailedMarker::run_count));
    let marked = marker.as_ref().and_then(|(_, marker)| marker.last_error.clone());
    let waiting = marker.as_ref().filter(|_| state == Some(BucketState::Todo));
    let put_back = waiting.and_then(|(_, marker)| marker.recovered_from.clone());
    Ok(DocumentDetails {
        state,
        entry,
        put_back,
        priority: marker.as_ref().map(|(priority, _)| priority.blobforge_key()),
        runs: runs.or(dead.as_ref().map(|dead| dead.total_retries)).unwrap_or_default(),
        worker: lock.map(|lock| lock.value.worker),
        reason: dead
            .as_ref()
            .map(|dead| dead.reason.clone())
            .or(failed.as_ref().map(|failed| failed.error.clone()))
            .or(marked),
        history: [
            marker.map(|(_, marker)| marker.past.history),
            failed.map(|failed| failed.past.history),
            dead.map(|dead| dead.past.history),
        ]
        .into_iter()
        .flatten()
        .max_by_key(Vec::len)
        .unwrap_or_default(),
        hash,
    })
}

/// The only document of the manifest that is meant.
fn find_unique(
    manifest: &BucketManifest,
    name: &str,
    is_meant: impl Fn(&str, &ManifestEntry) -> bool,
) -> Result<String> {
    let meant = manifest.entries.iter().filter(|(hash, entry)| is_meant(hash, entry));
    let mut meant = meant.map(|(hash, _)| hash.clone());
    match (meant.next(), meant.next()) {
        (Some(hash), None) => Ok(hash),
        (None, _) => {
            let text = "no such document in the manifest: try `docmill bucket search`";
            Err(Error::new(Fault::Missing, text))
        }
        (Some(_), Some(_)) if name.is_empty() => {
            Err(Error::new(Fault::Rejected, "give a hash, a hash prefix, or a path"))
        }
        (Some(_), Some(_)) => {
            let text = "ambiguous: give more of the hash, or the whole path";
            Err(Error::new(Fault::Rejected, text))
        }
    }
}

/// Documents whose path or tag contains every word of the query, in any case.
///
/// # Errors
/// Store errors.
pub async fn search_manifest(
    bucket: &BlobForgeBucket,
    query: &str,
    limit: usize,
) -> Result<Vec<(String, ManifestEntry)>> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let manifest = BucketManifest::load(bucket).await?;
    let entries = manifest.entries.into_iter();
    Ok(entries.filter(|(_, entry)| contains_words(entry, &words)).take(limit).collect())
}

/// Whether each word is in one of the entry's paths or tags.
fn contains_words(entry: &ManifestEntry, words: &[String]) -> bool {
    let texts: Vec<String> =
        entry.paths.iter().chain(&entry.tags).map(|text| text.to_lowercase()).collect();
    words.iter().all(|word| texts.iter().any(|text| text.contains(word)))
}
