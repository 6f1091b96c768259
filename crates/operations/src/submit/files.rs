//! The documents that paths mean: files, folders, patterns, `s3://` prefixes.
//!
//! They are handed on one by one while the search goes on, so that a folder of any size costs no
//! memory but the names of one folder. A link is followed only if a person named it, hidden files
//! are passed over. Not promised: order across paths that lie in each other; a file found twice is
//! handed on once.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tokio::sync::mpsc;

use crate::folder_walk::{FolderWalk, WalkStep};
use docmill_documents::DocumentFormat;
use docmill_storage::{ObjectEntry, ObjectStore};

/// Enough to know a document by.
const HEAD_BYTES: u64 = 4096;
/// The report of a link: a writer of the folder must not hand in other files of this machine by it.
const LINK: &str = "a link, which is followed only if it is named itself";
/// The report of a prefix without objects.
const EMPTY_PREFIX: &str = "no objects under this prefix";
/// Objects of one listing.
const LIST_PAGE: usize = 1000;

/// Something to hand in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubmitSource {
    /// The path of a local file.
    File(PathBuf),
    /// An object that stays where it is, as `s3://bucket/key`.
    Object(String),
}

/// One step of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchStep {
    /// A document that is to be handed in.
    Found(SubmitSource),
    /// This is not handed in.
    Skipped(SkippedPath),
}

/// Everything that is to be handed in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchResult {
    /// Files, in the order of the paths, within a folder by name.
    pub files: Vec<PathBuf>,
    /// Paths without a file, and files in folders that are no documents.
    pub skipped: Vec<SkippedPath>,
}

/// A path that is not handed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedPath {
    /// The path as it was found.
    pub file: PathBuf,
    /// Why it is not handed in, for people.
    pub problem: String,
    /// Whether the person named this path, rather than a parent folder.
    pub named: bool,
}

/// Searches local paths and waits for the end.
pub async fn find_paths(paths: &[PathBuf]) -> SearchResult {
    let (steps, mut inbox) = mpsc::channel(64);
    let search = async {
        let mut search = SubmitSearch::new(steps, None);
        for path in paths {
            search.search_path(path).await;
        }
    };
    let collect = async {
        let mut found = SearchResult::default();
        while let Some(step) = inbox.recv().await {
            match step {
                SearchStep::Found(SubmitSource::File(file)) => found.files.push(file),
                SearchStep::Found(SubmitSource::Object(_)) => {}
                SearchStep::Skipped(skipped) => found.skipped.push(skipped),
            }
        }
        found
    };
    tokio::join!(search, collect).1
}

/// A search that passes its finds on; it ends early when the receiver is dropped.
pub struct SubmitSearch<'a> {
    steps: mpsc::Sender<SearchStep>,
    /// For `s3://` prefixes; `None` for local files only.
    store: Option<&'a dyn ObjectStore>,
    /// Which files of a folder are meant as well, though they are no documents.
    also: fn(&Path) -> bool,
    /// Fingerprints of what was handed on: 8 bytes each, however long the names.
    seen: HashSet<u64>,
    hasher: RandomState,
}

impl<'a> SubmitSearch<'a> {
    /// A search without finds yet.
    pub fn new(steps: mpsc::Sender<SearchStep>, store: Option<&'a dyn ObjectStore>) -> Self {
        let (also, seen) = ((|_: &Path| false) as fn(&Path) -> bool, HashSet::new());
        Self { steps, store, also, seen, hasher: RandomState::new() }
    }

    /// Files of folders are handed on too that `also` names.
    #[must_use]
    pub fn with_files(mut self, also: fn(&Path) -> bool) -> Self {
        self.also = also;
        self
    }

    /// Hands on what one path means: an existing file or folder before all else, then an
    /// `s3://bucket/prefix` or a pattern of such, then a pattern of `*`, `?` and `[…]`.
    pub async fn search_path(&mut self, path: &Path) {
        match (tokio::fs::metadata(path).await, path.to_str()) {
            (Ok(meta), _) if meta.is_dir() => self.search_folder(path).await,
            (Ok(meta), _) if meta.is_file() => {
                self.send_found(SubmitSource::File(path.to_owned())).await
            }
            (Ok(_), _) => self.skip(path, "neither a file nor a folder", true).await,
            (Err(_), Some(prefix)) if prefix.starts_with("s3://") => {
                self.search_objects(prefix).await
            }
            (Err(error), Some(pattern)) if pattern.contains(['*', '?', '[']) => {
                self.search_pattern(path, pattern, &error).await;
            }
            (Err(error), _) => self.skip(path, error.to_string(), true).await,
        }
    }

    async fn send_found(&mut self, source: SubmitSource) {
        let fingerprint = match &source {
            SubmitSource::File(file) => self.hasher.hash_one(file),
            SubmitSource::Object(name) => self.hasher.hash_one(name),
        };
        if self.seen.insert(fingerprint) {
            self.send_step(SearchStep::Found(source)).await;
        }
    }

    async fn skip(&self, file: &Path, problem: impl Into<String>, named: bool) {
        let skipped = SkippedPath { file: file.to_owned(), problem: problem.into(), named };
        self.send_step(SearchStep::Skipped(skipped)).await;
    }

    async fn send_step(&self, step: SearchStep) {
        // The receiver is gone: the caller of the search has failed and reports it.
        self.steps.send(step).await.ok();
    }

    async fn search_pattern(&mut self, path: &Path, pattern: &str, missing: &std::io::Error) {
        let matches = match glob::glob(pattern) {
            Ok(matches) => matches,
            // An invalid pattern was meant as a name.
            Err(_) => return self.skip(path, missing.to_string(), true).await,
        };
        let mut any = false;
        for file in matches {
            any = true;
            match file {
                Ok(file) if file.is_symlink() => self.skip(&file, LINK, false).await,
                Ok(file) if file.is_dir() => Box::pin(self.search_folder(&file)).await,
                Ok(file) => self.send_found(SubmitSource::File(file)).await,
                Err(error) => {
                    let (file, why) =
                        (error.path().to_owned(), std::io::Error::from(error).to_string());
                    self.skip(&file, why, false).await;
                }
            }
        }
        if !any {
            self.skip(path, "no file matches this pattern", true).await;
        }
    }

    /// A prefix as it is written; a pattern only if no object lies under it.
    async fn search_objects(&mut self, named: &str) {
        let Some(store) = self.store else {
            return self.skip(Path::new(named), "there is no bucket here", true).await;
        };
        let pattern = ObjectPattern::parse(named);
        let found = match (self.list_objects(store, named, None).await, &pattern) {
            (Ok(false), Some(wanted)) => {
                self.list_objects(store, wanted.prefix, pattern.as_ref()).await
            }
            (found, _) => found,
        };
        let what = if pattern.is_some() { "no object matches this pattern" } else { EMPTY_PREFIX };
        match found {
            Ok(true) => {}
            Ok(false) => self.skip(Path::new(named), what, true).await,
            Err(error) => self.skip(Path::new(named), error.to_string(), true).await,
        }
    }

    /// Hands on what lies under the prefix and fits; whether there was anything.
    async fn list_objects(
        &mut self,
        store: &dyn ObjectStore,
        prefix: &str,
        pattern: Option<&ObjectPattern<'_>>,
    ) -> docmill_core::fault::Result<bool> {
        let (mut after, mut any) = (None::<String>, false);
        while !self.steps.is_closed() {
            let page = store.list(prefix, after.as_deref(), LIST_PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            for ObjectEntry { key, size, .. } in page {
                // "Folders" that consoles make are empty objects.
                let fits = pattern.is_none_or(|pattern| pattern.matches(&key));
                if size > 0 && !key.ends_with('/') && fits {
                    any = true;
                    self.send_found(SubmitSource::Object(key)).await;
                }
            }
        }
        Ok(any)
    }

    async fn search_folder(&mut self, root: &Path) {
        let (mut walk, mut any) = (FolderWalk::new(root), false);
        while let Some(step) = walk.next_step().await {
            match step {
                WalkStep::File(path) => any |= self.add_if_document(path).await,
                WalkStep::Link(path) => self.skip(&path, LINK, false).await,
                WalkStep::Unreadable(folder, error) => {
                    self.skip(&folder, error.to_string(), folder == root).await;
                }
            }
        }
        if !any {
            self.skip(root, "no documents in this folder", true).await;
        }
    }

    /// A file of a folder is handed in if it looks like a document.
    async fn add_if_document(&mut self, path: PathBuf) -> bool {
        let why = match read_prefix(&path).await {
            Ok(bytes) if (self.also)(&path) || looks_like_document(&path, &bytes) => {
                self.send_found(SubmitSource::File(path)).await;
                return true;
            }
            Ok(bytes) if bytes.is_empty() => "empty".to_owned(),
            Ok(_) => "not a document".to_owned(),
            Err(error) => error.to_string(),
        };
        self.skip(&path, why, false).await;
        false
    }
}

/// Text has no signature: a file of a folder is one only if its name agrees.
fn looks_like_document(path: &Path, bytes: &[u8]) -> bool {
    const TEXT_ENDINGS: [&str; 4] = ["txt", "csv", "tsv", "text"];
    let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
    if TEXT_ENDINGS.iter().any(|known| ending == *known) {
        return DocumentFormat::sniff(bytes).is_some();
    }
    DocumentFormat::sniff_signed(bytes).is_some() || docmill_documents::may_be_container(bytes)
}

/// A pattern of keys: `*` and `?` stay within one folder, `**` does not.
struct ObjectPattern<'a> {
    /// The text before the first wildcard: all listed keys begin with it.
    prefix: &'a str,
    pattern: glob::Pattern,
}

impl<'a> ObjectPattern<'a> {
    /// `None` if there is no wildcard, one in the name of the bucket, or an invalid pattern.
    fn parse(named: &'a str) -> Option<Self> {
        let bucket = named.find("://").map_or(0, |at| at + 3);
        let key = bucket + named.get(bucket..)?.find('/')? + 1;
        let wildcard = named.find(['*', '?', '[']).filter(|at| *at >= key)?;
        let pattern = glob::Pattern::new(named).ok()?;
        Some(Self { prefix: named.get(..wildcard)?, pattern })
    }

    fn matches(&self, key: &str) -> bool {
        let how = glob::MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: false,
        };
        self.pattern.matches_with(key, how)
    }
}

async fn read_prefix(path: &Path) -> std::io::Result<Vec<u8>> {
    use tokio::io::AsyncReadExt;
    let mut bytes = Vec::new();
    // A file in the listing may be a link by now.
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let file = tokio::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).await?;
    file.take(HEAD_BYTES).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_of_keys_lists_what_stands_before_its_first_wildcard() {
        let parse = ObjectPattern::parse;
        let pdfs = parse("s3://papers/in/*.pdf").unwrap();
        assert_eq!(pdfs.prefix, "s3://papers/in/");
        assert!(pdfs.matches("s3://papers/in/a.pdf") && !pdfs.matches("s3://papers/in/a.PDF"));
        assert!(!pdfs.matches("s3://papers/in/b/a.pdf"), "another folder");
        let all = parse("s3://papers/**/a?.pdf").unwrap();
        assert_eq!(all.prefix, "s3://papers/");
        assert!(all.matches("s3://papers/in/b/a1.pdf"));
        for none in ["s3://papers/in/", "s3://pap*/in/", "s3://papers", "s3://papers/[a"] {
            assert!(parse(none).is_none(), "{none}");
        }
    }

    #[tokio::test]
    async fn a_folder_gives_its_documents_and_names_what_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("b/c")).unwrap();
        std::fs::create_dir_all(at("empty")).unwrap();
        for (name, bytes) in [
            ("z.pdf", "%PDF-1.7"),
            ("b/c/we ird näme $(id);&#.pdf", "%PDF-1.7"),
            ("notes.txt", "hello\0"),
            ("nothing.pdf", ""),
            (".hidden.pdf", "%PDF-1.7"),
        ] {
            std::fs::write(at(name), bytes).unwrap();
        }
        std::os::unix::fs::symlink(dir.path(), at("b/loop")).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("secret.pdf"), "%PDF-1.7").unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("secret.pdf"), at("b/secret.pdf"))
            .unwrap();
        let paths = [dir.path().to_owned(), at("z.pdf"), at("empty"), at("gone.pdf")];
        let found = find_paths(&paths).await;
        assert_eq!(found.files, [at("z.pdf"), at("b/c/we ird näme $(id);&#.pdf")]);
        let skipped: Vec<_> =
            found.skipped.iter().map(|skip| (skip.file.clone(), skip.named)).collect();
        let expected = [
            (at("notes.txt"), false),
            (at("nothing.pdf"), false),
            (at("b/loop"), false),
            (at("b/secret.pdf"), false),
            (at("empty"), true),
            (at("gone.pdf"), true),
        ];
        assert_eq!(skipped, expected);
    }

    #[tokio::test]
    async fn a_link_is_followed_only_where_it_is_named_itself() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| dir.path().join(name);
        std::fs::write(elsewhere.path().join("secret.pdf"), "%PDF-1.7").unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("secret.pdf"), at("a.pdf")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), at("folder")).unwrap();
        for place in [dir.path().to_owned(), at("*.pdf"), at("fol*")] {
            let found = find_paths(std::slice::from_ref(&place)).await;
            assert!(found.files.is_empty(), "{place:?}: {:?}", found.files);
            let told = found.skipped.iter().any(|skip| skip.problem.contains("a link"));
            assert!(told, "{place:?}: {:?}", found.skipped);
        }
        assert_eq!(find_paths(&[at("a.pdf")]).await.files, [at("a.pdf")]);
    }

    #[tokio::test]
    async fn a_pattern_means_the_files_that_match_it_and_a_name_with_its_signs_itself() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["a1.pdf", "a2.pdf", "b[1].pdf", "b1.pdf"] {
            std::fs::write(at(name), "%PDF-1.7").unwrap();
        }
        let found = find_paths(&[at("a?.pdf"), at("b[1].pdf"), at("x*.pdf"), at("[.pdf")]).await;
        assert_eq!(found.files, [at("a1.pdf"), at("a2.pdf"), at("b[1].pdf")]);
        let skipped: Vec<_> = found.skipped.iter().map(|skip| skip.problem.as_str()).collect();
        assert_eq!(skipped[0], "no file matches this pattern");
        assert!(skipped[1].contains("No such file"), "{skipped:?}");
    }
}
