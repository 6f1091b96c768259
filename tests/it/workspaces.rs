//! An olmOCR workspace: each group processed once despite dead workers and wrong clocks, no
//! document lost with its group, and marks of both layouts that real nodes understand.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod archives;
mod documents;
mod places;
mod program;
mod running;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use docmill_compat::objects::engine::StoreClock;
use docmill_compat::objects::olmocr::index::{WorkGroup, WorkIndex};
use docmill_compat::objects::olmocr::{
    INDEX, WorkspaceFormat, all_lock_keys, flag_key, group_hash, ledger_key, result_key,
};
use docmill_compat::workspace::{
    ArchiveLimits, DocumentSources, DocumentStatus, DocumentText, GroupClaim, GroupClaimResult,
    GroupEntry, ReadOutcome, Workspace, WorkspaceOptions, WorkspaceReader, WorkspaceTally,
    WorkspaceWorkerSetup, load_stats, populate_workspace,
};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::work_clock::note_progress;
use docmill_pipeline::ClaimHandle;
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::{GetOptions, GetResult, ObjectStore};
use tempfile::TempDir;

use crate::support::controlled_store::ControlledStore;

/// olmOCR's timeout of a lock.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// A workspace and documents on disk.
struct Desk {
    store: Arc<dyn ObjectStore>,
    workspace: Arc<Workspace>,
    papers: TempDir,
}

impl Desk {
    async fn over(store: Arc<dyn ObjectStore>) -> Self {
        let workspace = open(&store, StoreClock::default(), WorkspaceFormat::Both).await;
        Self { store, workspace, papers: tempfile::tempdir().unwrap() }
    }

    async fn in_memory() -> (Self, Arc<ControlledStore>) {
        let store = Arc::new(ControlledStore::default());
        (Self::over(store.clone()).await, store)
    }

    /// Adds `documents` documents, in groups.
    async fn populate(&self, documents: usize, at_once: usize) -> Vec<WorkGroup> {
        let paths: Vec<String> = (0..documents).map(|number| self.paper(number)).collect();
        populate_workspace(&self.workspace, &paths, at_once, false).await.unwrap();
        self.workspace.load_index().await.unwrap().0.groups
    }

    fn paper(&self, number: usize) -> String {
        let path: PathBuf = self.papers.path().join(format!("p{number}, \"odd\" é.pdf"));
        std::fs::write(&path, format!("paper {number}")).unwrap();
        path.to_str().unwrap().to_owned()
    }

    async fn work(&self, reader: &Arc<Fake>) -> WorkspaceTally {
        self.worker(reader, terms()).run(Shutdown::default()).await.unwrap()
    }

    fn worker(&self, reader: &Arc<Fake>, terms: WorkspaceOptions) -> WorkspaceWorkerSetup {
        let sources = Arc::new(DocumentSources {
            s3: None,
            largest: 1 << 20,
            local: true,
            archives: ArchiveLimits::default(),
        });
        WorkspaceWorkerSetup {
            workspace: self.workspace.clone(),
            reader: reader.clone(),
            sources,
            terms,
        }
    }

    async fn text(&self, key: &str) -> Option<String> {
        match self.store.get(key, GetOptions { at_most: 1 << 24, if_match: None }).await.unwrap() {
            GetResult::Found(object) => Some(String::from_utf8(object.bytes.to_vec()).unwrap()),
            _ => None,
        }
    }

    async fn lines(&self, hash: &str) -> Vec<serde_json::Value> {
        let text = self.text(&result_key(hash)).await.unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    async fn put(&self, key: &str) {
        self.store.put(key, Bytes::new(), &BTreeMap::new()).await.unwrap();
    }
}

async fn open(
    store: &Arc<dyn ObjectStore>,
    clock: StoreClock,
    format: WorkspaceFormat,
) -> Arc<Workspace> {
    Arc::new(Workspace::open(store.clone(), clock, format, TIMEOUT).await.unwrap())
}

fn terms() -> WorkspaceOptions {
    WorkspaceOptions {
        jobs: 4,
        tries: 3,
        page_error_rate: 0.004,
        retry_pause: Duration::from_millis(10),
        poll_interval: Duration::from_millis(20),
        leave_locked: false,
        document_time: Duration::from_secs(60),
        drain: Duration::ZERO,
    }
}

fn ours(claimed: GroupClaimResult) -> GroupClaim {
    match claimed {
        GroupClaimResult::Ours(claim) => claim,
        other => panic!("{other:?}"),
    }
}

/// The fake reader's behaviour for a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Well,
    Fails(Fault),
    Refuses,
    Empty,
    LosesPages(usize),
    Panics,
    Hangs,
    /// The reading takes this long.
    Takes(Duration),
    /// This many readings store progress and time out, the next ends.
    IsLong(u32),
}

/// A counting reader that follows the plan for each document.
#[derive(Default)]
struct Fake {
    manners: Mutex<BTreeMap<String, Manner>>,
    calls: Mutex<BTreeMap<String, u32>>,
}

impl Fake {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn does(&self, path: &str, manner: Manner) {
        self.manners.lock().unwrap().insert(path.to_owned(), manner);
    }

    fn calls(&self, path: &str) -> u32 {
        self.calls.lock().unwrap().get(path).copied().unwrap_or_default()
    }

    fn count(&self) -> u32 {
        self.calls.lock().unwrap().values().sum()
    }
}

#[async_trait]
impl WorkspaceReader for Fake {
    async fn count_pages(&self, bytes: Bytes) -> Result<Option<u32>> {
        Ok((!bytes.is_empty()).then_some(4))
    }

    async fn read_document(
        &self,
        path: &str,
        bytes: Bytes,
        _: &ClaimHandle,
    ) -> Result<ReadOutcome> {
        *self.calls.lock().unwrap().entry(path.to_owned()).or_default() += 1;
        let manner = self.manners.lock().unwrap().get(path).copied().unwrap_or(Manner::Well);
        let mut text = DocumentText {
            pages: vec![(1, String::from_utf8(bytes.to_vec()).unwrap())],
            ..DocumentText::default()
        };
        match manner {
            Manner::Well => {}
            Manner::Fails(fault) => return Err(Error::new(fault, "told to fail")),
            Manner::Refuses => {
                let (code, detail) = ("encrypted".to_owned(), "told to refuse".to_owned());
                return Ok(ReadOutcome::Refused { code, detail });
            }
            Manner::Empty => return Ok(ReadOutcome::Empty),
            Manner::LosesPages(lost) => text.lost = lost,
            Manner::Panics => panic!("told to panic"),
            Manner::Hangs => std::future::pending().await,
            Manner::Takes(time) => tokio::time::sleep(time).await,
            Manner::IsLong(readings) if self.calls(path) <= readings => {
                note_progress();
                std::future::pending().await
            }
            Manner::IsLong(_) => {}
        }
        Ok(ReadOutcome::Whole(Box::new(text)))
    }
}

#[tokio::test]
async fn every_group_ends_with_a_result_a_flag_and_no_lock() {
    let (desk, store) = Desk::in_memory().await;
    let groups = desk.populate(7, 3).await;
    assert_eq!(groups.len(), 3);
    let reader = Fake::new();
    let tally = desk.work(&reader).await;
    assert_eq!((tally.groups, tally.documents, reader.count()), (3, 7, 7));
    for group in &groups {
        assert_eq!(desk.text(&flag_key(&group.hash)).await.as_deref(), Some(""));
        let lines = desk.lines(&group.hash).await;
        let named: Vec<_> = lines.iter().map(|line| &line["metadata"]["Source-File"]).collect();
        assert_eq!(named, group.paths.iter().collect::<Vec<_>>(), "in the group's order");
    }
    let left: Vec<_> = store.keys("");
    assert!(left.iter().all(|key| !key.starts_with("worker_locks/")), "{left:?}");
    assert!(left.iter().all(|key| !key.starts_with("document_ledger/")), "{left:?}");
    let stats = load_stats(&desk.workspace).await.unwrap();
    assert_eq!((stats.groups_done, stats.documents_read, stats.pages), (3, 7, 7));
    assert_eq!(desk.work(&reader).await, WorkspaceTally::default(), "nothing is left");
}

#[tokio::test]
async fn a_second_populate_adds_nothing_and_two_at_once_lose_nothing() {
    let (desk, _) = Desk::in_memory().await;
    let names =
        |from: usize, to: usize| (from..to).map(|n| format!("/p/{n}.pdf")).collect::<Vec<_>>();
    // An index that is there is replaced, none is made.
    populate_workspace(&desk.workspace, &names(0, 1), 7, false).await.unwrap();
    let (first, second) = (names(0, 40), names(20, 60));
    let both = tokio::join!(
        populate_workspace(&desk.workspace, &first, 7, false),
        populate_workspace(&desk.workspace, &second, 7, false)
    );
    assert_eq!(both.0.unwrap().added + both.1.unwrap().added, 59);
    let before = desk.store.head(INDEX).await.unwrap().unwrap().etag;
    let again = populate_workspace(&desk.workspace, &names(0, 60), 3, false).await.unwrap();
    assert_eq!((again.added, again.known, again.groups), (0, 60, 0));
    assert_eq!(desk.store.head(INDEX).await.unwrap().unwrap().etag, before, "not even written");
    let (index, _) = desk.workspace.load_index().await.unwrap();
    let mut all: Vec<_> = index.groups.iter().flat_map(|group| group.paths.clone()).collect();
    all.sort();
    let mut expected = names(0, 60);
    expected.sort();
    assert_eq!(all, expected, "each once");
}

#[tokio::test]
async fn a_lock_of_either_layout_keeps_us_away_until_it_is_stale() {
    for which in 0..2 {
        let (desk, store) = Desk::in_memory().await;
        let group = desk.populate(1, 1).await.remove(0);
        let theirs = all_lock_keys(&group.hash)[which].clone();
        desk.put(&theirs).await;
        let claimed = desk.workspace.claim_group("w", &group).await.unwrap();
        assert!(matches!(claimed, GroupClaimResult::Busy(left) if left <= TIMEOUT), "{claimed:?}");
        store.age(&theirs, TIMEOUT - Duration::from_secs(5));
        assert!(matches!(
            desk.workspace.claim_group("w", &group).await.unwrap(),
            GroupClaimResult::Busy(_)
        ));
        store.age(&theirs, Duration::from_secs(10));
        let mut claim = ours(desk.workspace.claim_group("w", &group).await.unwrap());
        assert!(desk.workspace.renew_locks(&mut claim).await.unwrap());
        desk.workspace.release_locks(&mut claim).await.unwrap();
        assert!(store.keys("worker_locks/").is_empty());
    }
}

#[tokio::test]
async fn a_worker_that_writes_one_layout_minds_the_locks_of_the_other() {
    for (format, theirs) in [(WorkspaceFormat::Newer, 1), (WorkspaceFormat::Older, 0)] {
        let (desk, store) = Desk::in_memory().await;
        let group = desk.populate(1, 1).await.remove(0);
        desk.put(&all_lock_keys(&group.hash)[theirs]).await;
        let workspace = open(&desk.store, StoreClock::default(), format).await;
        let claimed = workspace.claim_group("w", &group).await.unwrap();
        assert!(matches!(claimed, GroupClaimResult::Busy(_)), "{format:?}: {claimed:?}");
        assert_eq!(store.keys("worker_locks/").len(), 1, "nothing of ours is left");
    }
}

#[tokio::test]
async fn of_twenty_that_take_one_group_one_has_it() {
    let (desk, _) = Desk::in_memory().await;
    let group = desk.populate(1, 1).await.remove(0);
    let tries = (0..20).map(|_| desk.workspace.claim_group("w", &group));
    let all = futures::future::try_join_all(tries).await.unwrap();
    assert_eq!(all.iter().filter(|one| matches!(one, GroupClaimResult::Ours(_))).count(), 1);
}

#[tokio::test]
async fn a_worker_presumed_dead_neither_keeps_nor_removes_the_new_workers_locks() {
    let (desk, store) = Desk::in_memory().await;
    let group = desk.populate(1, 1).await.remove(0);
    let mut zombie = ours(desk.workspace.claim_group("zombie", &group).await.unwrap());
    for key in all_lock_keys(&group.hash) {
        store.age(&key, TIMEOUT + Duration::from_secs(1));
    }
    let mut heir = ours(desk.workspace.claim_group("heir", &group).await.unwrap());
    assert!(!desk.workspace.renew_locks(&mut zombie).await.unwrap());
    desk.workspace.release_locks(&mut zombie).await.unwrap();
    assert_eq!(store.keys("worker_locks/").len(), 2, "the heir's");
    assert!(desk.workspace.renew_locks(&mut heir).await.unwrap());
}

#[tokio::test]
async fn a_node_that_overwrites_our_lock_as_olmocr_does_is_noticed() {
    let (desk, _) = Desk::in_memory().await;
    let group = desk.populate(1, 1).await.remove(0);
    let mut claim = ours(desk.workspace.claim_group("w", &group).await.unwrap());
    desk.put(&all_lock_keys(&group.hash)[0]).await;
    assert!(!desk.workspace.renew_locks(&mut claim).await.unwrap());
}

#[tokio::test]
async fn a_clock_two_hours_off_neither_steals_nor_loses_a_lock() {
    let clocks: [fn() -> SystemTime; 2] = [
        || SystemTime::now() + Duration::from_secs(7200),
        || SystemTime::now() - Duration::from_secs(7200),
    ];
    for clock in clocks {
        let (desk, store) = Desk::in_memory().await;
        let group = desk.populate(1, 1).await.remove(0);
        let shared: Arc<dyn ObjectStore> = store.clone();
        let off = open(&shared, StoreClock::with_local(clock), WorkspaceFormat::Both).await;
        let mut claim = ours(desk.workspace.claim_group("right", &group).await.unwrap());
        assert!(matches!(off.claim_group("off", &group).await.unwrap(), GroupClaimResult::Busy(_)));
        desk.workspace.release_locks(&mut claim).await.unwrap();
        desk.put(&all_lock_keys(&group.hash)[0]).await;
        store.age(&all_lock_keys(&group.hash)[0], TIMEOUT + Duration::from_secs(5));
        ours(off.claim_group("off", &group).await.unwrap());
        assert!(matches!(
            desk.workspace.claim_group("right", &group).await.unwrap(),
            GroupClaimResult::Busy(_)
        ));
    }
}

#[tokio::test]
async fn a_group_done_in_either_layout_is_not_repeated() {
    let (desk, _) = Desk::in_memory().await;
    let groups = desk.populate(3, 1).await;
    desk.put(&flag_key(&groups[0].hash)).await;
    desk.put(&result_key(&groups[1].hash)).await;
    let reader = Fake::new();
    assert_eq!(desk.work(&reader).await.groups, 1);
    assert_eq!(reader.count(), 1);
    let claimed = desk.workspace.claim_group("w", &groups[1]).await.unwrap();
    assert!(matches!(claimed, GroupClaimResult::Done));
    assert!(desk.text(&flag_key(&groups[1].hash)).await.is_some(), "newer nodes see it too");
}

#[tokio::test]
async fn a_group_that_was_finished_while_its_lock_was_taken_is_not_done_again() {
    let (desk, store) = Desk::in_memory().await;
    let group = desk.populate(1, 1).await.remove(0);
    let [lock, _] = all_lock_keys(&group.hash);
    store.follow(&lock, &flag_key(&group.hash));
    let claimed = desk.workspace.claim_group("late", &group).await.unwrap();
    assert!(matches!(claimed, GroupClaimResult::Done), "{claimed:?}");
    assert_eq!(store.keys("worker_locks/"), [""; 0]);
}

#[tokio::test]
async fn a_dead_workers_leftovers_of_a_finished_group_go_with_its_abandoned_locks() {
    let (desk, store) = Desk::in_memory().await;
    let groups = desk.populate(2, 1).await;
    for group in &groups {
        drop(ours(desk.workspace.claim_group("dead", group).await.unwrap()));
        desk.put(&result_key(&group.hash)).await;
        let entry = GroupEntry {
            path: group.paths[0].clone(),
            standing: DocumentStatus::Read,
            ..GroupEntry::default()
        };
        let entry = serde_json::to_vec(&entry).unwrap();
        let key = ledger_key(&group.hash, &group.paths[0]);
        desk.store.put(&key, entry.into(), &BTreeMap::new()).await.unwrap();
    }
    for lock in all_lock_keys(&groups[0].hash) {
        store.age(&lock, TIMEOUT + Duration::from_secs(1));
    }
    // One whose opening again was begun: its lines are nowhere else.
    store.delete(&result_key(&groups[1].hash)).await.unwrap();
    desk.put(&flag_key(&groups[1].hash)).await;
    let reader = Fake::new();
    assert_eq!((desk.work(&reader).await.groups, reader.count()), (0, 0));
    let mut held = all_lock_keys(&groups[1].hash).to_vec();
    held.sort();
    assert_eq!(store.keys("worker_locks/"), held, "its worker may live");
    let key = ledger_key(&groups[1].hash, &groups[1].paths[0]);
    assert_eq!(store.keys("document_ledger/"), std::slice::from_ref(&key));
    for lock in held {
        store.age(&lock, TIMEOUT + Duration::from_secs(1));
    }
    desk.work(&reader).await;
    assert_eq!(store.keys("worker_locks/"), [""; 0]);
    assert_eq!(store.keys("document_ledger/"), [key]);
}

#[tokio::test]
async fn each_format_writes_its_own_marks() {
    for (format, flags) in
        [(WorkspaceFormat::Newer, 1), (WorkspaceFormat::Older, 0), (WorkspaceFormat::Both, 1)]
    {
        let (mut desk, store) = Desk::in_memory().await;
        let shared: Arc<dyn ObjectStore> = store.clone();
        desk.workspace = open(&shared, StoreClock::default(), format).await;
        let group = desk.populate(1, 1).await.remove(0);
        let mut claim = ours(desk.workspace.claim_group("w", &group).await.unwrap());
        assert_eq!(store.keys("worker_locks/"), {
            let mut keys = format.lock_keys(&group.hash);
            keys.sort();
            keys
        });
        desk.workspace.release_locks(&mut claim).await.unwrap();
        desk.work(&Fake::new()).await;
        assert_eq!(store.keys("done_flags/").len(), flags, "{format:?}");
        assert_eq!(store.keys("results/").len(), 1, "{format:?}");
    }
}

#[tokio::test]
async fn a_store_without_conditions_is_refused_with_the_reason() {
    let store = Arc::new(ControlledStore::default());
    store.lenient.store(true, std::sync::atomic::Ordering::SeqCst);
    let opened =
        Workspace::open(store, StoreClock::default(), WorkspaceFormat::Both, TIMEOUT).await;
    let error = opened.err().expect("refused");
    assert!(error.context.contains("If-None-Match"), "{}", error.context);
}

#[tokio::test]
async fn a_torn_index_stops_the_worker_and_is_not_overwritten() {
    let (desk, _) = Desk::in_memory().await;
    desk.populate(2, 1).await;
    let good = WorkIndex { groups: vec![WorkGroup { hash: group_hash(&[]), paths: vec![] }] }
        .encode()
        .unwrap();
    let torn = Bytes::from(good[..good.len() - 2].to_vec());
    desk.store.put(INDEX, torn.clone(), &BTreeMap::new()).await.unwrap();
    let work = desk.worker(&Fake::new(), terms()).run(Shutdown::default()).await;
    assert!(work.unwrap_err().context.contains("torn"));
    let more = populate_workspace(&desk.workspace, &["/a.pdf".to_owned()], 1, false).await;
    assert!(more.unwrap_err().context.contains("torn"));
    let size = desk.store.head(INDEX).await.unwrap().unwrap().size;
    assert_eq!(size, torn.len() as u64, "left as it was");
}
