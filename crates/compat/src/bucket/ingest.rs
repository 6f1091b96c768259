//! Ingestion of files, folders and Git repositories.
//!
//! Writes the original, then the marker, then the manifest. The next run completes an interrupted
//! one: a document in any state is not queued again, but its name is added to the manifest. Of a
//! Git LFS file only the pointer is read, which holds the hash; the content is fetched only if the
//! bucket lacks it.

mod files;
mod git;
mod labels;
mod pointer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Serialize;

use self::files::{IngestContent, IngestFile, find_files};
pub use self::git::IngestSource;
use super::manifest::{BucketManifest, ManifestEntry};
use super::{BlobForgeBucket, BucketState, format_rfc3339};
use crate::objects::blobforge::records::{DocumentHistory, QueueMarker};
use crate::objects::blobforge::{raw_key, todo_key};
use docmill_core::fault::Result;
use docmill_core::model::Priority;
use docmill_documents::DocumentFormat;

/// Documents handed in between two changes of the manifest.
const BATCH: usize = 50;
/// Documents handed in at the same time.
const AT_ONCE: usize = 8;

/// The problem reported for a pointer whose content is not fetched.
const UNTRUSTED: &str = "a pointer of Git LFS: its content is fetched as the settings of its \
                         repository say, which may run programs; give the repository's address, run \
                         `git lfs pull` yourself, or say --trust-folders";

/// Options for handing documents in.
#[derive(Debug, Clone)]
pub struct IngestOptions {
    /// The priority of the documents.
    pub priority: Priority,
    /// Labels beside those of their paths.
    pub tags: Vec<String>,
    /// Everything that can be read, not only PDFs; BlobForge's own workers read those only.
    pub any_format: bool,
    /// List only.
    pub dry_run: bool,
    /// Larger files are refused; bytes.
    pub largest: u64,
    /// The Git program, with Git LFS.
    pub git: PathBuf,
    /// Whether to fetch Git LFS content for pointers in any working tree. Its settings control the
    /// fetch and may run programs: only for trusted trees. Otherwise only for own clones.
    pub trusts_folders: bool,
}

/// The result of handing one file in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IngestStatus {
    /// The file's document waits now (or would).
    Queued,
    /// The same bytes were handed in before.
    Known,
    /// Not ingested; `problem` has the reason.
    Refused,
}

/// One line of the report.
#[derive(Debug, Clone, Serialize)]
pub struct IngestedFile {
    /// Relative to what was named.
    pub path: String,
    /// The result of handing the file in.
    pub fate: IngestStatus,
    /// SHA-256 of its bytes, in hex.
    pub hash: Option<String>,
    /// The state it had before.
    pub state: Option<BucketState>,
    /// Its content was fetched from Git LFS.
    pub fetched: bool,
    /// Why nothing was done, for people.
    pub problem: Option<String>,
}

/// The report of one ingest.
#[derive(Debug, Clone, Default, Serialize)]
pub struct IngestReport {
    /// One line for each file that was found.
    pub files: Vec<IngestedFile>,
}

/// Ingests everything at a place. Calls `seen` with the number of files done.
///
/// # Errors
/// The bucket does not answer, or the repository cannot be cloned. Problems of single files are in
/// the report.
pub async fn ingest_all(
    bucket: &BlobForgeBucket,
    place: &IngestSource,
    how: &IngestOptions,
    seen: &(dyn Fn(usize, usize) + Sync),
) -> Result<IngestReport> {
    // The folder of a clone is removed when this is dropped.
    let checkout = git::open_source(place, &how.git).await?;
    // A clone's settings are those that it was cloned with.
    let trusts_folders = how.trusts_folders || checkout.is_clone();
    let how = &IngestOptions { trusts_folders, ..how.clone() };
    let found = find_files(&checkout.roots, how.any_format).await;
    let mut report = IngestReport::default();
    report
        .files
        .extend(found.refused.into_iter().map(|(path, problem)| refused_file(path, problem)));
    let count = found.files.len();
    for batch in found.files.chunks(BATCH) {
        let work: Vec<_> =
            batch.iter().map(|file| ingest_file(bucket, file, how, &checkout).boxed()).collect();
        let handed: Vec<(IngestedFile, Option<ManifestEntry>)> =
            stream::iter(work).buffered(AT_ONCE).try_collect().await?;
        let mut entries: BTreeMap<String, ManifestEntry> = BTreeMap::new();
        for (line, entry) in handed {
            if let (Some(hash), Some(entry)) = (&line.hash, entry) {
                let known = entries.entry(hash.clone()).or_insert_with(|| entry.clone());
                known.paths.extend(entry.paths.iter().cloned());
                known.paths.sort();
                known.paths.dedup();
            }
            report.files.push(line);
        }
        if !how.dry_run {
            BucketManifest::add(bucket, &entries).await?;
        }
        seen(report.files.len(), count);
    }
    Ok(report)
}

fn refused_file(path: String, problem: String) -> IngestedFile {
    let (fate, problem) = (IngestStatus::Refused, Some(problem));
    IngestedFile { path, fate, hash: None, state: None, fetched: false, problem }
}

/// Ingests one file, and returns its manifest entry.
async fn ingest_file(
    bucket: &BlobForgeBucket,
    file: &IngestFile,
    how: &IngestOptions,
    checkout: &git::SourceCheckout,
) -> Result<(IngestedFile, Option<ManifestEntry>)> {
    let content = match files::read_content(&file.path, how.largest).await {
        Ok(content) => content,
        Err(problem) => return Ok((refused_file(file.name.clone(), problem), None)),
    };
    let (hash, size) = match &content {
        IngestContent::Here { hash, bytes, .. } => {
            (hash.clone(), u64::try_from(bytes.len()).unwrap_or(u64::MAX))
        }
        IngestContent::Elsewhere(pointer) => (pointer.hash.clone(), pointer.size),
    };
    let tags = labels::collect_tags(Path::new(&file.name), &how.tags);
    let entry = ManifestEntry {
        paths: vec![file.name.clone()],
        size,
        tags: tags.clone(),
        ingested_at: format_rfc3339(bucket.engine.now().await?),
        source: checkout.source.clone(),
        rest: serde_json::Map::new(),
    };
    let mut line = IngestedFile {
        path: file.name.clone(),
        fate: IngestStatus::Known,
        hash: Some(hash.clone()),
        state: bucket.state(&hash).await?,
        fetched: false,
        problem: None,
    };
    if line.state.is_some() || how.dry_run {
        line.fate = if line.state.is_some() { IngestStatus::Known } else { IngestStatus::Queued };
        return Ok((line, Some(entry)));
    }
    let extension = match store_original(bucket, file, content, &tags, how).await? {
        Ok((extension, fetched)) => {
            line.fetched = fetched;
            extension
        }
        Err(problem) => return Ok((refused_file(file.name.clone(), problem), None)),
    };
    let extension = Some(extension).filter(|extension| extension != "pdf");
    let past = DocumentHistory { extension, ..DocumentHistory::default() };
    let queued_at = bucket.engine.now().await?;
    let marker = QueueMarker { queued_at, past, ..QueueMarker::default() };
    // A concurrent ingestion may have created it: it waits all the same.
    bucket.engine.create(&todo_key(how.priority, &hash), &marker).await?;
    line.fate = IngestStatus::Queued;
    Ok((line, Some(entry)))
}

/// Stores the original unless it exists. Returns the extension of its key and whether the content
/// was fetched; the inner error is the file's problem.
async fn store_original(
    bucket: &BlobForgeBucket,
    file: &IngestFile,
    content: IngestContent,
    tags: &[String],
    how: &IngestOptions,
) -> Result<std::result::Result<(String, bool), String>> {
    let (hash, extension) = match &content {
        IngestContent::Here { hash, extension, .. } => (hash.clone(), extension.clone()),
        IngestContent::Elsewhere(pointer) => (pointer.hash.clone(), file.extension()),
    };
    let key = raw_key(&hash, &extension);
    if bucket.engine.exists(&key).await? {
        return Ok(Ok((extension, false)));
    }
    let (bytes, fetched) = match content {
        IngestContent::Here { bytes, .. } => (bytes, false),
        IngestContent::Elsewhere(_) if !how.trusts_folders => {
            return Ok(Err(UNTRUSTED.to_owned()));
        }
        IngestContent::Elsewhere(pointer) => {
            match pointer.fetch(&how.git, &file.path, how.largest).await {
                Ok(bytes) => (bytes, true),
                Err(problem) => return Ok(Err(problem)),
            }
        }
    };
    if !matches_extension(&bytes, &extension) {
        return Ok(Err(format!("its content is no {extension}")));
    }
    let labels = labels::build_labels(&file.name, tags, bytes.len());
    bucket.engine.store().put(&key, bytes, &labels).await?;
    Ok(Ok((extension, fetched)))
}

fn matches_extension(bytes: &Bytes, extension: &str) -> bool {
    let found = DocumentFormat::sniff_signed(bytes).map(DocumentFormat::code);
    extension != "pdf" && found.is_some() || found == Some("pdf")
}
