//! The files of kinds, built in or in a folder, before anything is made of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};

use sha2::{Digest, Sha256};

use super::built_in;
use super::labels::LabelTable;
use super::problem::KindProblem;

/// The files every kind has.
pub(super) const FILES: [&str; 5] =
    ["kind.toml", "schema.json", "prompt.md", "rules.toml", "labels.toml"];

/// Largest file that is read; a prompt or table of labels is a hundredth of it.
const MAX_FILE: u64 = 4 << 20;

/// The files that define one kind.
#[derive(Debug, Clone)]
pub(super) struct KindSource {
    /// Name of the folder.
    pub(super) name: String,
    /// The folder; for a built-in kind its name in messages.
    pub(super) folder: PathBuf,
    pub(super) built_in: bool,
    /// Shared by all copies, as the labels are.
    files: Arc<BTreeMap<String, String>>,
    labels: Arc<OnceLock<Arc<LabelTable>>>,
}

impl KindSource {
    pub(super) fn file_text(&self, file: &str) -> &str {
        self.files.get(file).map_or("", String::as_str)
    }

    /// The labels of its own file alone, for kinds that include it. Their problems are reported
    /// where the kind itself is built.
    pub(super) fn own_labels(&self) -> &Arc<LabelTable> {
        self.labels.get_or_init(|| Arc::new(LabelTable::parse(self.file_text("labels.toml"))))
    }

    /// The files of a folder within, by their names in it.
    pub(super) fn folder_files(&self, name: &str) -> BTreeMap<String, String> {
        let prefix = format!("{name}/");
        let within = self.files.iter().filter_map(|(file, text)| {
            Some((file.strip_prefix(&prefix)?.to_owned(), text.clone()))
        });
        within.collect()
    }

    /// Adds every file, with its name and length, to a hash.
    pub(super) fn hash_into(&self, hash: &mut Sha256) {
        for (file, text) in self.files.iter() {
            hash.update(format!("{file} {}\n", text.len()));
            hash.update(text);
        }
    }

    /// All files, by their paths within the folder.
    pub(super) fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Files that lie in no folder.
    pub(super) fn from_files(name: &str, files: BTreeMap<String, String>) -> Self {
        Self {
            name: name.to_owned(),
            folder: PathBuf::from(name),
            built_in: false,
            files: Arc::new(files),
            labels: Arc::default(),
        }
    }

    fn read_folder(folder: &Path, problems: &mut Vec<KindProblem>) -> Option<Self> {
        let before = problems.len();
        let name = folder.file_name().and_then(|name| name.to_str())?.to_owned();
        let mut files = BTreeMap::new();
        for file in FILES {
            if let Some(text) = read_text(&folder.join(file), problems) {
                files.insert(file.to_owned(), text);
            }
        }
        let examples = folder.join("examples");
        if examples.is_dir() {
            for path in list_entries(&examples, problems).into_iter().filter(|path| path.is_file())
            {
                let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
                if let Some(text) = read_text(&path, problems) {
                    files.insert(format!("examples/{name}"), text);
                }
            }
        }
        let whole = problems.len() == before;
        whole.then(|| Self { folder: folder.to_owned(), ..Self::from_files(&name, files) })
    }
}

/// The kinds that ship with the program. Copies share their files and labels, however often they are loaded.
pub(super) fn built_in_sources() -> Vec<KindSource> {
    BUILT_IN.clone()
}

static BUILT_IN: LazyLock<Vec<KindSource>> = LazyLock::new(|| {
    let sources = built_in::KINDS.iter().map(|(name, files)| {
        let texts = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
        KindSource {
            folder: Path::new("config/kinds").join(name),
            built_in: true,
            ..KindSource::from_files(name, texts.collect())
        }
    });
    sources.collect()
});

/// One per folder in `folder`; with `or_itself`, it may be the folder of a kind.
pub(super) fn sources_in_folder(
    folder: &Path,
    or_itself: bool,
    problems: &mut Vec<KindProblem>,
) -> Vec<KindSource> {
    if or_itself && FILES.iter().any(|file| folder.join(file).is_file()) {
        // `.` has no name of its own.
        let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        return KindSource::read_folder(&whole, problems).into_iter().collect();
    }
    let before = problems.len();
    let folders = list_entries(folder, problems).into_iter().filter(|path| path.is_dir());
    let sources: Vec<KindSource> =
        folders.filter_map(|folder| KindSource::read_folder(&folder, problems)).collect();
    if sources.is_empty() && problems.len() == before {
        let text = "holds no folder with the files of a kind".to_owned();
        problems.push(KindProblem { file: folder.to_owned(), line: None, text });
    }
    sources
}

fn list_entries(folder: &Path, problems: &mut Vec<KindProblem>) -> Vec<PathBuf> {
    match std::fs::read_dir(folder) {
        Ok(entries) => {
            let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            // Hidden files are left out.
            paths.retain(|path| {
                path.file_name().is_none_or(|name| !name.to_string_lossy().starts_with('.'))
            });
            paths.sort();
            paths
        }
        Err(error) => {
            let text = format!("cannot be read: {error}");
            problems.push(KindProblem { file: folder.to_owned(), line: None, text });
            Vec::new()
        }
    }
}

fn read_text(path: &Path, problems: &mut Vec<KindProblem>) -> Option<String> {
    let text = match std::fs::metadata(path) {
        Ok(metadata) if metadata.len() > MAX_FILE => {
            Err(format!("has {} bytes, the limit is {MAX_FILE}", metadata.len()))
        }
        Ok(_) => std::fs::read_to_string(path).map_err(|error| error.to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(format!("is missing: a kind has the files {}", FILES.join(", ")))
        }
        Err(error) => Err(error.to_string()),
    };
    match text {
        Ok(text) => Some(text),
        Err(text) => {
            problems.push(KindProblem { file: path.to_owned(), line: None, text });
            None
        }
    }
}
