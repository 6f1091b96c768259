//! Counts of a workspace: groups, documents, pages, and the failed documents.

use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};

use super::Workspace;
use super::ledger::{self, DocumentStatus};
use crate::object_ledger::sum_stored_spending;
use crate::objects::engine::to_millis;
use crate::objects::olmocr::{
    LEDGER, LOCKS, RESULTS, all_lock_keys, finished_group, group_in_ledger,
};
use docmill_core::fault::Result;
use docmill_storage::{GetOptions, GetResult};

/// Results that are read at the same time.
const AT_ONCE: usize = 8;
/// The largest result that is read, in bytes.
const MAX_RESULT_BYTES: u64 = 4 << 30;

/// A document that could not be read, or that waits for what was refused to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadDocument {
    /// The path or address by which the index names it.
    pub path: String,
    /// Whether it is to be tried again without being asked for.
    pub waits: bool,
    /// How many times reading it was begun.
    pub tries: u32,
    /// Why it could not be read: a code of our reasons or faults.
    pub reason: String,
    /// Counts and limits, never content.
    pub detail: String,
}

/// Counts of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct WorkspaceStats {
    /// Groups of the index.
    pub groups: usize,
    /// Groups that are finished.
    pub groups_done: usize,
    /// Unfinished groups with a live lock.
    pub groups_in_work: usize,
    /// Documents of the index.
    pub documents: usize,
    /// Documents whose text is in a result.
    pub documents_read: u64,
    /// Pages of these documents.
    pub pages: u64,
    /// Those of them whose content was lost.
    pub pages_lost: u64,
    /// Their texts' code points.
    pub characters: u64,
    /// Tokens that models were given, where a node of olmOCR wrote the result.
    pub input_tokens: u64,
    /// Tokens that models gave back, likewise.
    pub output_tokens: u64,
    /// docmill's spending on it, in billionths of the currency.
    pub cost_nanos: u64,
    /// Calls whose price is not configured, which are not in that.
    pub unpriced_calls: u64,
    /// Documents that were skipped or failed.
    pub unread: Vec<UnreadDocument>,
}

/// The counted fields of a line; a missing one counts as zero.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DolmaLine {
    text: String,
    metadata: DolmaMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct DolmaMetadata {
    pdf_total_pages: u64,
    total_input_tokens: u64,
    total_output_tokens: u64,
    total_fallback_pages: u64,
}

/// Loads the counts; reads every result.
///
/// # Errors
/// Store errors; an index of no use.
pub async fn load_stats(workspace: &Workspace) -> Result<WorkspaceStats> {
    let ((index, _), finished) =
        tokio::try_join!(workspace.load_index(), workspace.finished_groups())?;
    let locked = fresh_locks(workspace).await?;
    let mut stats = WorkspaceStats {
        groups: index.groups.len(),
        groups_done: index.groups.iter().filter(|group| finished.contains(&group.hash)).count(),
        documents: index.groups.iter().map(|group| group.paths.len()).sum(),
        unread: list_unread(workspace, &locked).await?,
        ..WorkspaceStats::default()
    };
    stats.groups_in_work = index
        .groups
        .iter()
        .filter(|group| !finished.contains(&group.hash))
        .filter(|group| all_lock_keys(&group.hash).iter().any(|key| locked.contains(key)))
        .count();
    let spent = sum_stored_spending(workspace.engine.store()).await?;
    (stats.cost_nanos, stats.unpriced_calls) = (spent.cost_nanos, spent.unpriced_calls);
    let results = workspace.engine.list_all(RESULTS).await?;
    let keys = results.into_iter().map(|entry| entry.key);
    let keys = keys.filter(|key| finished_group(key).is_some());
    let mut counted = futures::stream::iter(keys)
        .map(|key| count_result(workspace, key))
        .buffer_unordered(AT_ONCE);
    while let Some(of_one) = counted.try_next().await? {
        stats.documents_read += of_one.documents_read;
        stats.pages += of_one.pages;
        stats.pages_lost += of_one.pages_lost;
        stats.characters += of_one.characters;
        stats.input_tokens += of_one.input_tokens;
        stats.output_tokens += of_one.output_tokens;
    }
    Ok(stats)
}

async fn count_result(workspace: &Workspace, key: String) -> Result<WorkspaceStats> {
    let mut stats = WorkspaceStats::default();
    let what = GetOptions { at_most: MAX_RESULT_BYTES, if_match: None };
    let GetResult::Found(object) = workspace.engine.store().get(&key, what).await? else {
        return Ok(stats);
    };
    let lines = object.bytes.split(|byte| *byte == b'\n');
    for line in lines.filter_map(|line| serde_json::from_slice::<DolmaLine>(line).ok()) {
        stats.documents_read += 1;
        stats.pages += line.metadata.pdf_total_pages;
        stats.pages_lost += line.metadata.total_fallback_pages;
        stats.characters += u64::try_from(line.text.chars().count()).unwrap_or(u64::MAX);
        stats.input_tokens += line.metadata.total_input_tokens;
        stats.output_tokens += line.metadata.total_output_tokens;
    }
    Ok(stats)
}

async fn fresh_locks(workspace: &Workspace) -> Result<BTreeSet<String>> {
    let now = workspace.engine.now().await?;
    let entries = workspace.engine.list_all(LOCKS).await?;
    let timeout = workspace.lock_timeout().as_millis();
    let fresh = entries
        .into_iter()
        .filter(|entry| u128::from(now.saturating_sub(to_millis(entry.modified))) <= timeout);
    Ok(fresh.map(|entry| entry.key).collect())
}

/// Documents without a result that are not simply still to come; `locked` are the fresh locks.
async fn list_unread(
    workspace: &Workspace,
    locked: &BTreeSet<String>,
) -> Result<Vec<UnreadDocument>> {
    let finished = workspace.finished_groups().await?;
    let mut unread = Vec::new();
    for listed in workspace.engine.list_all(LEDGER).await? {
        let Some((entry, _)) = ledger::read_entry(workspace, &listed.key).await? else { continue };
        let Some(group) = group_in_ledger(&listed.key) else { continue };
        let is_over = finished.contains(group);
        let is_in_work = all_lock_keys(group).iter().any(|key| locked.contains(key));
        let crashed = ("crashed".to_owned(), "its worker stopped renewing its lock".to_owned());
        let (waits, (reason, detail)) = match entry.standing {
            DocumentStatus::Refused => (false, (entry.reason, entry.detail)),
            DocumentStatus::Failed => (!is_over, (entry.reason, entry.detail)),
            DocumentStatus::Waiting if !is_over && !entry.reason.is_empty() => {
                (true, (entry.reason, entry.detail))
            }
            DocumentStatus::Begun if !is_over && !is_in_work => (true, crashed),
            _ => continue,
        };
        unread.push(UnreadDocument { path: entry.path, waits, tries: entry.tries, reason, detail });
    }
    Ok(unread)
}
