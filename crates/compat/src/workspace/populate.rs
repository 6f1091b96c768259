//! Adds documents to the index, in groups.
//!
//! A path that is in a group already is skipped, so that populating twice adds nothing. The index
//! is replaced conditionally: concurrent runs lose nothing.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Workspace;
use super::archive::is_archive;
use super::read::WorkspaceReader;
use super::source::{DocumentSources, SourceContent};
use crate::objects::engine::{back_off, contention_error};
use crate::objects::olmocr::INDEX;
use crate::objects::olmocr::index::path_problem;
use docmill_core::fault::{Fault, Result};
use docmill_storage::PutResult;

/// How often the index is written against others.
const TRIES: u32 = 20;
/// Documents whose pages are counted for an average.
const SAMPLE: usize = 100;
/// Pages of a document where none of the sample could be opened; olmOCR's figure.
const AVERAGE_UNKNOWN: u64 = 10;

/// A path that cannot be in an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedPath {
    /// The path as it was given.
    pub path: String,
    /// Why it was refused, for people.
    pub problem: String,
}

/// The added and the skipped documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PopulateReport {
    /// Documents that are new in the index.
    pub added: usize,
    /// Groups that are new in the index.
    pub groups: usize,
    /// Documents that were in a group already.
    pub known: usize,
    /// Paths that were left out.
    pub refused: Vec<RefusedPath>,
}

/// Adds the paths that are in no group yet, in groups of `at_once`, an archive in one of its own;
/// with `dry_run` only lists them.
///
/// # Errors
/// Store errors; an invalid index; transient after too many concurrent changes.
pub async fn populate_workspace(
    workspace: &Workspace,
    paths: &[String],
    at_once: usize,
    dry_run: bool,
) -> Result<PopulateReport> {
    let (good, refused) = validate_paths(paths);
    for turn in 0..TRIES {
        let (mut index, seen) = workspace.load_index().await?;
        let before = index.groups.len();
        let (archives, papers): (Vec<_>, Vec<_>) =
            good.iter().cloned().partition(|path| is_archive(path));
        let added = index.add_paths(papers, at_once) + index.add_paths(archives, 1);
        let mut populated = PopulateReport {
            added,
            groups: index.groups.len().saturating_sub(before),
            known: 0,
            refused: refused.clone(),
        };
        let stands: BTreeSet<&String> =
            index.groups.iter().flat_map(|group| &group.paths).collect();
        populated.refused.extend(good.iter().filter(|path| !stands.contains(path)).map(|path| {
            let problem = "another group has the hash it would get; rename the file".to_owned();
            RefusedPath { path: path.clone(), problem }
        }));
        let left_out = populated.refused.len().saturating_sub(refused.len());
        populated.known = good.len().saturating_sub(added).saturating_sub(left_out);
        if added == 0 || dry_run {
            return Ok(populated);
        }
        let (store, bytes) = (workspace.engine.store(), index.encode()?.into());
        let put = match &seen {
            Some(etag) => store.put_if_match(INDEX, etag, bytes).await?,
            None => store.put_if_absent(INDEX, bytes).await?,
        };
        if let PutResult::Written(_) = put {
            return Ok(populated);
        }
        back_off(turn).await;
    }
    Err(contention_error())
}

/// The valid paths, once each, and the invalid ones.
fn validate_paths(paths: &[String]) -> (BTreeSet<String>, Vec<RefusedPath>) {
    let (mut good, mut refused) = (BTreeSet::new(), Vec::new());
    for path in paths {
        match path_problem(path) {
            None => drop(good.insert(path.clone())),
            Some(why) => refused.push(RefusedPath { path: path.clone(), problem: why.to_owned() }),
        }
    }
    (good, refused)
}

/// How many documents have `pages` pages, by the average of at most 100 that are opened; archives
/// and unreadable documents do not count.
///
/// # Errors
/// Faults other than the documents'.
pub async fn sample_group_size(
    pages: u32,
    paths: &[String],
    sources: &DocumentSources,
    reader: &dyn WorkspaceReader,
) -> Result<usize> {
    let mut sample: Vec<&String> = paths.iter().filter(|path| !is_archive(path)).collect();
    fastrand::shuffle(&mut sample);
    let (mut counted, mut documents) = (0_u32, 0_u32);
    for path in sample.into_iter().take(SAMPLE) {
        let bytes = match sources.fetch(path).await {
            Ok(SourceContent::Bytes(bytes)) => bytes,
            Ok(SourceContent::TooLarge) => continue,
            Err(error) if matches!(error.fault, Fault::Missing | Fault::Rejected) => continue,
            Err(error) => return Err(error),
        };
        if let Some(found) = reader.count_pages(bytes).await? {
            (counted, documents) = (counted.saturating_add(found), documents + 1);
        }
    }
    Ok(group_size(pages, counted, documents))
}

/// olmOCR's rule: pages per group by the average, rounded down, at least one.
fn group_size(pages: u32, counted: u32, documents: u32) -> usize {
    let (pages, counted, documents) = (u64::from(pages), u64::from(counted), u64::from(documents));
    let share = match (documents, counted) {
        (0, _) => pages / AVERAGE_UNKNOWN,
        (_, 0) => pages,
        _ => pages * documents / counted,
    };
    usize::try_from(share.max(1)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_as_many_documents_as_have_the_pages() {
        for (pages, counted, documents, expected) in [
            (500, 100, 100, 500),
            (500, 1000, 100, 50),
            (500, 15, 10, 333),
            (500, 60_000, 100, 1),
            (500, 0, 0, 50),
            (0, 10, 10, 1),
        ] {
            assert_eq!(group_size(pages, counted, documents), expected);
        }
    }
}
