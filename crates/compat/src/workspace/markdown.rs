//! Results as Markdown, in files named after the documents, as written by olmOCR's `--markdown`.
//! Documents whose names differ only in bucket or extension share a file; the last one read wins.

use std::collections::BTreeMap;

use super::Workspace;
use super::archive::split_member;
use crate::objects::olmocr::MARKDOWN;
use docmill_core::fault::Result;

/// Writes the Markdown of the document at `path`.
///
/// # Errors
/// Store errors.
pub(super) async fn write_markdown(
    workspace: &Workspace,
    path: &str,
    markdown: String,
) -> Result<()> {
    let key = markdown_key(path);
    workspace.engine.store().put(&key, markdown.into(), &BTreeMap::new()).await.map(drop)
}

/// Source: `get_markdown_path` of olmOCR 0.4.27.
fn markdown_key(path: &str) -> String {
    let unpacked;
    let inside = match (split_member(path), path.strip_prefix("s3://")) {
        (Some((archive, member)), _) => {
            let name = archive.rsplit('/').next().unwrap_or_default();
            let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
            unpacked = format!("{}/{member}", stem.strip_suffix(".tar").unwrap_or(stem));
            unpacked.as_str()
        }
        (None, Some(object)) => object.split_once('/').map_or("", |(_, key)| key),
        (None, None) => path,
    };
    let parts: Vec<&str> =
        inside.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect();
    let (name, folders) = parts.split_last().unwrap_or((&"", &[]));
    // A name that only begins with a full stop has no ending.
    let stem = match name.trim_start_matches('.').rsplit_once('.') {
        Some((_, ending)) => name.get(..name.len() - ending.len() - 1).unwrap_or(name),
        None => name,
    };
    let folders: String = folders.iter().map(|folder| format!("{folder}/")).collect();
    format!("{MARKDOWN}{folders}{stem}.md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_as_olmocr_names_it() {
        for (path, expected) in [
            ("s3://papers/2026/a b.pdf", "markdown/2026/a b.md"),
            ("/srv/in, é/a.tar.pdf", "markdown/srv/in, é/a.tar.md"),
            ("/srv/../etc/./a", "markdown/srv/etc/a.md"),
            ("/srv/.hidden", "markdown/srv/.hidden.md"),
            ("s3://papers/a.PDF", "markdown/a.md"),
            ("s3://papers/2026/may.tar.gz::in/a.pdf", "markdown/may/in/a.md"),
            ("/srv/may.tgz::../../a.pdf", "markdown/may/a.md"),
            ("/srv/may.tgz::/etc/a.pdf", "markdown/may/etc/a.md"),
        ] {
            assert_eq!(markdown_key(path), expected, "{path}");
        }
    }
}
