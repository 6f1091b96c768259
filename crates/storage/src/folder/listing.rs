//! Listing in byte order of the keys, without reading more of the tree than the answer needs.
//!
//! A directory sorts as its name followed by `/`, which is where its keys belong among the files
//! beside it (`a.b` comes before `a/b`, though `a` comes before `a.b`).

use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::paths;
use crate::ObjectEntry;

/// The request.
pub(super) struct ListQuery<'a> {
    pub(super) prefix: &'a str,
    pub(super) after: Option<&'a str>,
    pub(super) max: usize,
}

/// Collects the entries below `dir`, whose keys begin with `base` (empty, or ending in `/`).
pub(super) fn collect_entries(
    dir: &Path,
    base: &str,
    wanted: &ListQuery<'_>,
    found: &mut Vec<ObjectEntry>,
) -> io::Result<()> {
    for (key, is_dir) in sorted_names(dir, base)? {
        if found.len() >= wanted.max {
            return Ok(());
        }
        if !may_hold(&key, is_dir, wanted) {
            continue;
        }
        let path = dir.join(paths::encode(last_segment(&key)));
        if is_dir {
            collect_entries(&path, &key, wanted, found)?;
        } else if let Some(entry) = entry_of(&path, key)? {
            found.push(entry);
        }
    }
    Ok(())
}

/// Whether a file of this key, or any key below this directory, is asked for.
fn may_hold(key: &str, is_dir: bool, wanted: &ListQuery<'_>) -> bool {
    let prefixed = key.starts_with(wanted.prefix) || (is_dir && wanted.prefix.starts_with(key));
    let later = wanted.after.is_none_or(|after| key > after || (is_dir && after.starts_with(key)));
    prefixed && later
}

/// Keys of the files and directories in `dir`, those of directories with a trailing `/`, in order.
/// A directory that has gone meanwhile is empty; links are skipped.
fn sorted_names(dir: &Path, base: &str) -> io::Result<Vec<(String, bool)>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some(segment) = paths::decode(&entry.file_name()) else { continue };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => names.push((format!("{base}{segment}/"), true)),
            Ok(kind) if kind.is_file() => names.push((format!("{base}{segment}"), false)),
            _ => {}
        }
    }
    names.sort();
    Ok(names)
}

fn last_segment(key: &str) -> &str {
    key.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// The entry, unless the file has gone meanwhile.
fn entry_of(path: &Path, key: String) -> io::Result<Option<ObjectEntry>> {
    match std::fs::metadata(path) {
        Ok(meta) => {
            let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            Ok(Some(ObjectEntry { key, size: meta.len(), modified }))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
