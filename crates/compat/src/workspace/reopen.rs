//! Reopens finished groups for their failed documents; the texts of the others are kept.
//!
//! Each step is repeatable: after a crash the group is either still finished, with its failed
//! documents in the ledger, or open.

use std::collections::{BTreeMap, BTreeSet};

use super::Workspace;
use super::archive::split_member;
use super::claim::GroupClaim;
use super::ledger::{DocumentStatus, GroupEntry, GroupLedger};
use crate::objects::olmocr::index::WorkGroup;
use crate::objects::olmocr::{LEDGER, flag_key, group_in_ledger, result_key};
use docmill_core::fault::Result;
use docmill_storage::{GetOptions, GetResult};

/// The largest result that is read, in bytes.
const MAX_RESULT_BYTES: u64 = 4 << 30;

/// Reopens every finished group with failed documents; returns their paths. Locked groups are
/// skipped.
///
/// # Errors
/// Store errors, an invalid index.
pub async fn reopen_groups(workspace: &Workspace, dry_run: bool) -> Result<Vec<String>> {
    let listed = workspace.engine.list_all(LEDGER).await?;
    let touched: BTreeSet<&str> =
        listed.iter().filter_map(|entry| group_in_ledger(&entry.key)).collect();
    let (index, finished) = (workspace.load_index().await?.0, workspace.finished_groups().await?);
    let worker = format!("docmill-{}", uuid::Uuid::new_v4());
    let mut opened = Vec::new();
    for group in index.groups {
        if !touched.contains(group.hash.as_str()) || !finished.contains(&group.hash) {
            continue;
        }
        if dry_run {
            let known = GroupLedger::load(workspace, &group.hash).await?;
            opened.extend(unread_paths(&known));
            continue;
        }
        let Ok(mut claim) = workspace.lock_group(&worker, &group.hash).await? else { continue };
        let done = reopen_group(workspace, &group, &mut claim).await;
        workspace.try_release_locks(&mut claim).await;
        opened.extend(done?);
    }
    Ok(opened)
}

fn unread_paths(known: &GroupLedger) -> Vec<String> {
    known.entries().filter(|entry| entry.is_unread()).map(|entry| entry.path.clone()).collect()
}

async fn reopen_group(
    workspace: &Workspace,
    group: &WorkGroup,
    claim: &mut GroupClaim,
) -> Result<Vec<String>> {
    let mut known = GroupLedger::load(workspace, &group.hash).await?;
    let unread = unread_paths(&known);
    if unread.is_empty() {
        return Ok(unread);
    }
    for (path, line) in lines_of(workspace, &group.hash).await? {
        let source = split_member(&path).map_or(path.as_str(), |(archive, _)| archive);
        let before = known.entry_for(&path);
        if before.standing == DocumentStatus::Read
            || !group.paths.iter().any(|named| *named == source || *named == path)
        {
            continue;
        }
        let entry = GroupEntry { standing: DocumentStatus::Read, line: Some(line), ..before };
        if !known.save(workspace, entry).await? {
            return Ok(Vec::new());
        }
    }
    if !workspace.renew_locks(claim).await? {
        return Ok(Vec::new());
    }
    workspace.engine.delete(&result_key(&group.hash)).await?;
    workspace.engine.delete(&flag_key(&group.hash)).await?;
    known.remove(workspace, GroupEntry::is_unread).await?;
    Ok(unread)
}

/// The lines of a group's result by path; empty if there is no result.
async fn lines_of(workspace: &Workspace, hash: &str) -> Result<BTreeMap<String, String>> {
    let what = GetOptions { at_most: MAX_RESULT_BYTES, if_match: None };
    let GetResult::Found(object) = workspace.engine.store().get(&result_key(hash), what).await?
    else {
        return Ok(BTreeMap::new());
    };
    let text = String::from_utf8_lossy(&object.bytes);
    Ok(text.split('\n').filter_map(|line| Some((source_path(line)?, line.to_owned()))).collect())
}

/// The document's path in a line of a result.
fn source_path(line: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    value.pointer("/metadata/Source-File")?.as_str().map(str::to_owned)
}
