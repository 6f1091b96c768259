//! Ingest: folders, odd names, Git LFS, and the manifest.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use docmill_compat::bucket::{
    self as bucket, BucketManifest, BucketState, IngestOptions, IngestReport, IngestSource as From,
    IngestStatus, RebuildOptions,
};
use docmill_compat::objects::blobforge::{
    dead_key, failed_key, lock_key, out_key, raw_key, todo_key,
};
use docmill_core::fault::Fault;
use docmill_core::model::Priority;
use docmill_storage::ObjectStore;
use tempfile::TempDir;

use super::{Place, hash_of};

fn terms() -> IngestOptions {
    IngestOptions {
        priority: Priority::Normal,
        tags: Vec::new(),
        any_format: false,
        dry_run: false,
        largest: 1 << 20,
        git: PathBuf::from("git"),
        trusts_folders: false,
    }
}

async fn hand_in(place: &Place, folder: &Path) -> IngestReport {
    hand_in_as(place, folder, &terms()).await
}

async fn hand_in_as(place: &Place, folder: &Path, how: &IngestOptions) -> IngestReport {
    let from = From::Local(folder.to_owned());
    bucket::ingest_all(&place.bucket, &from, how, &|_, _| {}).await.unwrap()
}

fn folder(names: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("%PDF-{name}")).unwrap();
    }
    dir
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_paths_survive_the_way_into_the_bucket() {
    let place = Place::new();
    let part = "a long folder's name, with \"quotes\"";
    let long = format!("{}/x.pdf", vec![part; 1000 / part.len()].join("/"));
    let names = ["line\nbreak,comma \"quoted\".pdf", "a+b/100%.pdf", "発票/näme.pdf", &long];
    let dir = folder(&names);
    let report = hand_in(&place, dir.path()).await;
    assert_eq!(report.files.len(), 4);
    assert!(report.files.iter().all(|file| file.fate == IngestStatus::Queued), "{report:?}");
    let manifest = BucketManifest::load(&place.bucket).await.unwrap();
    for name in names {
        let hash = hash_of(format!("%PDF-{name}").as_bytes());
        assert_eq!(manifest.entries[&hash].paths, [name]);
        let found = bucket::find_document(&place.bucket, name, true).await.unwrap();
        assert_eq!((found.hash, found.state), (hash, Some(BucketState::Todo)));
    }
    let hash = hash_of("%PDF-a+b/100%.pdf".as_bytes());
    assert_eq!(manifest.entries[&hash].tags, ["a+b", "100%"]);
    let labels = place.store.head(&raw_key(&hash, "pdf")).await.unwrap().unwrap().metadata;
    assert_eq!(labels["original-name"], "100%.pdf");
    assert_eq!(labels["tags"], "[\"a+b\",\"100%\"]");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_in_any_state_is_not_queued_again() {
    let states = ["todo", "processing", "failed", "dead", "done"];
    let place = Place::new();
    let names: Vec<String> = states.iter().map(|state| format!("{state}.pdf")).collect();
    let dir = folder(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for state in states {
        let hash = hash_of(format!("%PDF-{state}.pdf").as_bytes());
        let key = match state {
            "todo" => todo_key(Priority::Background, &hash),
            "processing" => lock_key(&hash),
            "failed" => failed_key(&hash),
            "dead" => dead_key(&hash),
            _ => out_key(&hash),
        };
        place.store.put(&key, "{}".into(), &Default::default()).await.unwrap();
    }
    let before = place.marks();
    let report = hand_in(&place, dir.path()).await;
    for file in &report.files {
        assert_eq!(file.fate, IngestStatus::Known, "{file:?}");
        assert_eq!(format!("{}.pdf", file.state.unwrap().code()), file.path);
    }
    assert_eq!(place.marks(), before);
    assert!(place.store.keys("store/raw/").is_empty());
    assert_eq!(BucketManifest::load(&place.bucket).await.unwrap().entries.len(), 5, "but named");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_under_two_paths_are_one_document_with_two_paths() {
    let place = Place::new();
    let dir = folder(&["a/x.pdf"]);
    std::fs::copy(dir.path().join("a/x.pdf"), dir.path().join("y.pdf")).unwrap();
    hand_in(&place, dir.path()).await;
    let again = folder(&["a/x.pdf"]);
    std::fs::rename(again.path().join("a/x.pdf"), again.path().join("z.pdf")).unwrap();
    hand_in(&place, again.path()).await;
    let manifest = BucketManifest::load(&place.bucket).await.unwrap();
    let entries: Vec<_> = manifest.entries.values().collect();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].paths, ["a/x.pdf", "y.pdf", "z.pdf"]);
    assert_eq!(place.marks().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_ingests_at_once_lose_no_entry() {
    let place = Place::new();
    let names = |side: &str| (0..120).map(|n| format!("{side}/{n}.pdf")).collect::<Vec<_>>();
    let dirs = ["left", "right", "third"].map(|side| {
        let names = names(side);
        folder(&names.iter().map(String::as_str).collect::<Vec<_>>())
    });
    let all: Vec<_> = dirs
        .iter()
        .map(|dir| {
            let (bucket, path) = (place.bucket.clone(), dir.path().to_owned());
            tokio::spawn(async move {
                bucket::ingest_all(&bucket, &From::Local(path), &terms(), &|_, _| {}).await.unwrap()
            })
        })
        .collect();
    for one in all {
        assert_eq!(one.await.unwrap().files.len(), 120);
    }
    assert_eq!(BucketManifest::load(&place.bucket).await.unwrap().entries.len(), 360);
    assert_eq!(place.marks().len(), 360);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_manifest_is_moved_aside_and_rebuilt() {
    let place = Place::new();
    let dir = folder(&["old/a.pdf", "old/b.pdf"]);
    hand_in(&place, dir.path()).await;
    let manifest = "registry/manifest.json";
    place.store.put(manifest, "{\"version\": 1, \"entr".into(), &Default::default()).await.unwrap();
    let refused = BucketManifest::load(&place.bucket).await.unwrap_err();
    assert_eq!(refused.fault, Fault::Rejected);
    assert!(refused.context.contains("manifest --rebuild"), "{refused}");
    let dry =
        BucketManifest::rebuild(&place.bucket, RebuildOptions { dry_run: true }).await.unwrap();
    assert_eq!((dry.documents, dry.added, dry.put_aside), (2, 2, None));
    // Handing in goes on meanwhile: what it adds is not lost by the rebuild.
    let more = folder(&["new/c.pdf"]);
    hand_in(&place, more.path()).await;
    let aside = place.store.keys("registry/manifest.broken-");
    assert_eq!(aside.len(), 1, "kept for whoever wants to mend it");
    BucketManifest::rebuild(&place.bucket, RebuildOptions::default()).await.unwrap();
    let entries = BucketManifest::load(&place.bucket).await.unwrap().entries;
    let mut names: Vec<_> = entries.values().flat_map(|entry| entry.paths.clone()).collect();
    names.sort();
    assert_eq!(names, ["a.pdf", "b.pdf", "new/c.pdf"], "labels know names, not paths");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_drops_entries_without_an_original_and_keeps_paths() {
    let place = Place::new();
    let dir = folder(&["deep/a.pdf", "deep/b.pdf"]);
    hand_in(&place, dir.path()).await;
    let hash = hash_of("%PDF-deep/b.pdf".as_bytes());
    place.store.delete(&raw_key(&hash, "pdf")).await.unwrap();
    let rebuilt = BucketManifest::rebuild(&place.bucket, RebuildOptions::default()).await.unwrap();
    assert_eq!((rebuilt.documents, rebuilt.added, rebuilt.removed), (1, 0, 1));
    let entries = BucketManifest::load(&place.bucket).await.unwrap().entries;
    let paths: Vec<_> = entries.values().flat_map(|entry| entry.paths.clone()).collect();
    assert_eq!(paths, ["deep/a.pdf"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_hands_nothing_in() {
    let place = Place::new();
    let dir = folder(&["a.pdf"]);
    let how = IngestOptions { dry_run: true, ..terms() };
    let report = hand_in_as(&place, dir.path(), &how).await;
    assert_eq!(report.files[0].fate, IngestStatus::Queued);
    assert!(place.store.keys("").is_empty());
}

/// A repository's working tree with pointers, and a counting `git` with `lfs smudge`.
struct Lfs {
    dir: TempDir,
}

impl Lfs {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for part in ["tree", "contents"] {
            std::fs::create_dir(dir.path().join(part)).unwrap();
        }
        let at = dir.path().display();
        let script = format!(
            "#!/bin/sh\n\
             [ \"$1 $2\" = \"lfs smudge\" ] || exit 1\n\
             [ -z \"$GIT_LFS_SKIP_SMUDGE\" ] || exec cat\n\
             oid=$(sed -n 's/^oid sha256://p')\n\
             echo \"$oid\" >> '{at}/fetched'\n\
             exec cat '{at}/contents/'\"$oid\"\n"
        );
        std::fs::write(dir.path().join("git"), script).unwrap();
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(dir.path().join("git"), executable).unwrap();
        Self { dir }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn add(&self, name: &str, content: &str) -> String {
        let hash = hash_of(content.as_bytes());
        let size = content.len();
        let version = "version https://git-lfs.github.com/spec/v1";
        let pointer = format!("{version}\noid sha256:{hash}\nsize {size}\n");
        std::fs::write(self.at("tree").join(name), pointer).unwrap();
        std::fs::write(self.at("contents").join(&hash), content).unwrap();
        hash
    }

    fn fetched(&self) -> usize {
        std::fs::read_to_string(self.at("fetched")).unwrap_or_default().lines().count()
    }

    fn how(&self) -> IngestOptions {
        IngestOptions { git: self.at("git"), trusts_folders: true, ..terms() }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_hundred_pointers_only_the_ten_unknown_are_fetched() {
    let (place, lfs) = (Place::new(), Lfs::new());
    for number in 0..100 {
        let hash = lfs.add(&format!("we, ird *{number}\n.pdf"), &format!("%PDF-{number}"));
        if number < 90 {
            let key = if number % 2 == 0 { out_key(&hash) } else { raw_key(&hash, "pdf") };
            place.store.put(&key, "x".into(), &Default::default()).await.unwrap();
        }
    }
    let report = hand_in_as(&place, &lfs.at("tree"), &lfs.how()).await;
    assert_eq!((report.files.len(), lfs.fetched()), (100, 10));
    assert_eq!(report.files.iter().filter(|file| file.fetched).count(), 10);
    assert!(report.files.iter().all(|file| file.problem.is_none()));
    assert_eq!(place.marks().len(), 55, "with an original but without a mark: it waits as well");
    let again = hand_in_as(&place, &lfs.at("tree"), &lfs.how()).await;
    assert!(again.files.iter().all(|file| file.fate == IngestStatus::Known));
    assert_eq!(lfs.fetched(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pointer_in_an_untrusted_folder_runs_no_program() {
    let (place, lfs) = (Place::new(), Lfs::new());
    lfs.add("a.pdf", "%PDF-1");
    let how = IngestOptions { trusts_folders: false, ..lfs.how() };
    let report = hand_in_as(&place, &lfs.at("tree"), &how).await;
    assert_eq!(report.files[0].fate, IngestStatus::Refused);
    assert!(report.files[0].problem.as_deref().unwrap().contains("--trust-folders"));
    assert_eq!(lfs.fetched(), 0, "what the repository's settings name was run");
    assert!(place.store.keys("raw").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_does_not_match_its_pointer_is_refused() {
    let (place, lfs) = (Place::new(), Lfs::new());
    let hash = lfs.add("a.pdf", "%PDF-right");
    std::fs::write(lfs.at("contents").join(&hash), "%PDF-wrong").unwrap();
    lfs.add("b.pdf", "no pdf");
    lfs.add("c.pdf", &format!("%PDF-{}", "x".repeat(200)));
    let how = IngestOptions { largest: 200, ..lfs.how() };
    let report = hand_in_as(&place, &lfs.at("tree"), &how).await;
    let problems: Vec<_> =
        report.files.iter().map(|file| file.problem.clone().unwrap_or_default()).collect();
    assert!(problems[0].contains("pointer names"), "{problems:?}");
    assert!(problems[1].contains("no pdf"), "{problems:?}");
    assert!(problems[2].contains("limits.document_bytes is 200"), "{problems:?}");
    assert!(place.store.keys("store/").is_empty() && place.marks().is_empty());
    assert_eq!(lfs.fetched(), 2, "what is too large is not fetched");
}
