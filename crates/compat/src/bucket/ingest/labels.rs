//! Labels of an original, and the tags derived from its path. Pure.

use std::path::Path;

use crate::bucket::ObjectLabels;

/// S3's limit for user metadata, less the names: bytes once encoded.
const ROOM: usize = 1_800;

/// The folders of the path and the file's name without its extension, then further ones; none
/// twice.
pub(super) fn collect_tags(path: &Path, more: &[String]) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    let folders = path.parent().into_iter().flat_map(Path::components);
    let parts = folders.map(|part| part.as_os_str().to_string_lossy().into_owned());
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    for tag in parts.chain(stem).chain(more.iter().cloned()) {
        if !tag.is_empty() && !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

/// BlobForge's labels: `original-name`, `tags` as a JSON list, `size`. Tags over the limit are
/// dropped from the front (the file's own name is last); the manifest has them all.
pub(super) fn build_labels(name: &str, tags: &[String], size: usize) -> ObjectLabels {
    let name = truncate_name(name.rsplit('/').next().unwrap_or_default());
    let mut tags = tags;
    let mut list = serde_json::json!(tags).to_string();
    while encoded_length(&name) + encoded_length(&list) > ROOM && !tags.is_empty() {
        tags = tags.get(1..).unwrap_or_default();
        list = serde_json::json!(tags).to_string();
    }
    [("original-name", name), ("tags", list), ("size", size.to_string())]
        .into_iter()
        .map(|(label, value)| (label.to_owned(), value))
        .collect()
}

/// As much of a name as fits; at its end, where the extension is.
fn truncate_name(name: &str) -> String {
    let starts = name.char_indices().map(|(at, _)| at);
    starts
        .into_iter()
        .find(|at: &usize| name.get(*at..).is_some_and(|rest| encoded_length(rest) <= ROOM / 2))
        .and_then(|at| name.get(at..))
        .unwrap_or_default()
        .to_owned()
}

/// The length of the text in bytes once it is percent-encoded.
fn encoded_length(text: &str) -> usize {
    text.bytes().map(|byte| if is_unreserved(byte) { 1 } else { 3 }).sum()
}

/// Whether percent-encoding keeps the byte.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_the_folders_and_the_name() {
        let more = ["extra".to_owned(), "a".to_owned()];
        assert_eq!(collect_tags(Path::new("a/b/lorem.pdf"), &more), ["a", "b", "lorem", "extra"]);
        assert_eq!(collect_tags(Path::new("lorem.pdf"), &[]), ["lorem"]);
        assert_eq!(collect_tags(Path::new("a/a/we, \"ird\"\n.pdf"), &[]), ["a", "we, \"ird\"\n"]);
    }

    #[test]
    fn labels_fit_the_buckets_limit() {
        let plain = build_labels("a/lorem.pdf", &["a".to_owned(), "lorem".to_owned()], 7);
        assert_eq!(plain["original-name"], "lorem.pdf");
        assert_eq!((plain["tags"].as_str(), plain["size"].as_str()), ("[\"a\",\"lorem\"]", "7"));
        let folders: Vec<String> = (0..100).map(|n| format!("発票 {n}")).collect();
        let long = build_labels(&format!("{}.pdf", "ä".repeat(1000)), &folders, 1);
        let total: usize = long.values().map(|value| encoded_length(value)).sum();
        assert!(total <= ROOM + 20, "{total}");
        assert!(long["original-name"].ends_with(".pdf") && long["tags"].contains("99"));
    }
}
