//! A workspace's worker under the runner: panics and timeouts end one document, a stop drains.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use docmill_compat::objects::engine::StoreClock;
use docmill_compat::objects::olmocr::{WorkspaceFormat, all_lock_keys, ledger_key, result_key};
use docmill_compat::workspace::{
    DocumentStatus, GroupEntry, UnreadDocument, Workspace, WorkspaceOptions, load_stats,
};
use docmill_core::fault::Fault;
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::ObjectStore;

use super::{Desk, Fake, Manner, terms};

#[tokio::test]
async fn a_reader_that_panics_over_one_document_ends_that_document_and_no_other() {
    let (desk, _) = Desk::in_memory().await;
    let groups = desk.populate(6, 3).await;
    let bad = &groups[0].paths[0];
    let reader = Fake::new();
    reader.does(bad, Manner::Panics);
    let tally = desk.work(&reader).await;
    assert_eq!((tally.groups, tally.documents, tally.unread), (2, 5, 1));
    assert_eq!((tally.partial, tally.lost), (2, 0), "two runs left it for another");
    assert_eq!((reader.calls(bad), reader.count()), (3, 8), "those beside it were read once");
    let unread = load_stats(&desk.workspace).await.unwrap().unread;
    assert_eq!((unread[0].path.as_str(), unread[0].reason.as_str()), (bad.as_str(), "internal"));
}

#[tokio::test(start_paused = true)]
async fn a_document_that_takes_too_long_is_left_out_as_timeout_and_its_group_goes_on() {
    let (desk, _) = Desk::in_memory().await;
    let group = desk.populate(3, 3).await.remove(0);
    let reader = Fake::new();
    reader.does(&group.paths[0], Manner::Hangs);
    let mut terms = terms();
    terms.document_time = Duration::from_millis(50);
    let tally = desk.worker(&reader, terms).run(Shutdown::default()).await.unwrap();
    assert_eq!((tally.groups, tally.documents, tally.unread), (1, 2, 1));
    assert_eq!(reader.calls(&group.paths[0]), 1, "another reading would take as long");
    assert_eq!(load_stats(&desk.workspace).await.unwrap().unread[0].reason, "timeout");
}

#[tokio::test(start_paused = true)]
async fn a_document_longer_than_its_time_goes_on_as_often_as_it_takes_and_no_try_counts() {
    let (desk, _) = Desk::in_memory().await;
    let group = desk.populate(3, 3).await.remove(0);
    let reader = Fake::new();
    // More often than a document may be begun.
    reader.does(&group.paths[0], Manner::IsLong(6));
    let mut terms = terms();
    terms.document_time = Duration::from_millis(50);
    let tally = desk.worker(&reader, terms).run(Shutdown::default()).await.unwrap();
    assert_eq!((tally.groups, tally.documents, tally.unread), (1, 3, 0));
    assert_eq!((reader.calls(&group.paths[0]), reader.calls(&group.paths[1])), (7, 1));
}

#[tokio::test]
async fn a_stop_lets_a_group_end_within_the_drain() {
    let (desk, store) = Desk::in_memory().await;
    let groups = desk.populate(2, 1).await;
    let reader = Fake::new();
    for group in &groups {
        reader.does(&group.paths[0], Manner::Takes(Duration::from_millis(300)));
    }
    let mut terms = terms();
    (terms.jobs, terms.drain) = (1, Duration::from_secs(60));
    let stop = Shutdown::default();
    let ask = async {
        while reader.count() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        stop.request();
    };
    let (tally, ()) = tokio::join!(desk.worker(&reader, terms).run(stop.clone()), ask);
    assert_eq!(tally.unwrap().documents, 1, "the one in work ends, the other is not begun");
    assert_eq!(reader.count(), 1);
    assert!(store.keys("worker_locks/").is_empty());
}

#[tokio::test]
async fn a_fault_of_no_document_releases_the_group_uncounted() {
    let (desk, store) = Desk::in_memory().await;
    let group = desk.populate(2, 2).await.remove(0);
    let reader = Fake::new();
    reader.does(&group.paths[1], Manner::Fails(Fault::Unavailable));
    let worker = desk.worker(&reader, terms()).run(Shutdown::default());
    let path = group.paths[1].clone();
    let mend = async {
        // More often than a document may be begun.
        while reader.calls(&path) < 6 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        reader.does(&path, Manner::Well);
    };
    let (tally, ()) = tokio::join!(worker, mend);
    let tally = tally.unwrap();
    assert_eq!((tally.documents, tally.unread, tally.partial), (2, 0, 0));
    assert_eq!(reader.calls(&group.paths[0]), 1);
    assert!(desk.text(&result_key(&group.hash)).await.is_some());
    assert!(store.keys("worker_locks/").is_empty());
}

#[tokio::test]
async fn a_refusal_of_one_document_delays_neither_its_group_nor_others() {
    let (desk, _) = Desk::in_memory().await;
    let groups = desk.populate(6, 2).await;
    let reader = Fake::new();
    let path = groups[0].paths[0].clone();
    reader.does(&path, Manner::Fails(Fault::Denied));
    let terms = WorkspaceOptions { jobs: 1, ..terms() };
    let worker = desk.worker(&reader, terms).run(Shutdown::default());
    let mend = async {
        let others =
            || groups.iter().flat_map(|group| &group.paths).filter(|other| **other != path);
        while reader.calls(&path) < 6 || others().any(|other| reader.calls(other) == 0) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(reader.calls(&groups[0].paths[1]), 1, "the one beside it is read");
        reader.does(&path, Manner::Well);
    };
    let (tally, ()) = tokio::join!(worker, mend);
    let tally = tally.unwrap();
    assert_eq!((tally.documents, tally.unread, tally.partial), (6, 0, 0));
}

#[tokio::test]
async fn deferred_documents_and_those_of_dead_workers_are_listed() {
    let (desk, store) = Desk::in_memory().await;
    let groups = desk.populate(4, 2).await;
    let (denied, left) = (groups[0].paths[0].clone(), groups[1].paths[1].clone());
    let reader = Fake::new();
    reader.does(&denied, Manner::Fails(Fault::Denied));
    reader.does(&left, Manner::Hangs);
    let stop = Shutdown::default();
    let working = tokio::spawn(desk.worker(&reader, terms()).run(stop.clone()));
    while reader.calls(&denied) < 3 || reader.calls(&left) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let named = async || {
        let unread = load_stats(&desk.workspace).await.unwrap().unread;
        let line = |one: UnreadDocument| (one.path, one.reason, one.waits, one.tries);
        unread.into_iter().map(line).collect::<BTreeSet<_>>()
    };
    // Between two runs; in a run its reading has begun.
    let waits = (denied, "denied".to_owned(), true, 0);
    let shown = async {
        while named().await != BTreeSet::from([waits.clone()]) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), shown).await.unwrap();
    // The process dies.
    working.abort();
    working.await.unwrap_err();
    for lock in store.keys("worker_locks/") {
        store.age(&lock, Duration::from_secs(3600));
    }
    let crashed = (left, "crashed".to_owned(), true, 1);
    assert!(named().await.contains(&crashed), "{:?}", named().await);
}

#[tokio::test]
async fn an_interrupted_run_gives_back_no_try_of_a_document_that_it_did_not_begin() {
    let (desk, _) = Desk::in_memory().await;
    let group = desk.populate(2, 2).await.remove(0);
    let (first, second) = (&group.paths[0], &group.paths[1]);
    let begun = GroupEntry {
        path: second.clone(),
        standing: DocumentStatus::Begun,
        tries: 1,
        ..GroupEntry::default()
    };
    let json = serde_json::to_vec(&begun).unwrap();
    let key = ledger_key(&group.hash, second);
    desk.store.put(&key, json.into(), &BTreeMap::new()).await.unwrap();
    let reader = Fake::new();
    reader.does(first, Manner::Hangs);
    let stop = Shutdown::default();
    let working = tokio::spawn(desk.worker(&reader, terms()).run(stop.clone()));
    while reader.calls(first) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.request();
    working.await.unwrap().unwrap();
    let entry = async |path| {
        let text = desk.text(&ledger_key(&group.hash, path)).await.unwrap();
        serde_json::from_str::<GroupEntry>(&text).unwrap()
    };
    assert_eq!(entry(second).await, begun, "its worker died over it");
    let own = entry(first).await;
    assert_eq!((own.standing, own.tries), (DocumentStatus::Waiting, 0));
}

#[tokio::test]
async fn the_locks_of_a_group_in_work_are_renewed_and_their_loss_ends_the_work() {
    let (mut desk, store) = Desk::in_memory().await;
    let shared: Arc<dyn ObjectStore> = store.clone();
    let timeout = Duration::from_secs(3);
    let workspace =
        Workspace::open(shared, StoreClock::default(), WorkspaceFormat::Both, timeout).await;
    desk.workspace = Arc::new(workspace.unwrap());
    let group = desk.populate(1, 1).await.remove(0);
    let reader = Fake::new();
    reader.does(&group.paths[0], Manner::Hangs);
    let mut terms = terms();
    terms.poll_interval = Duration::from_secs(60);
    let worker = desk.worker(&reader, terms).open().await.unwrap();
    let (monitor, stop) = (worker.monitor(), Shutdown::default());
    let working = tokio::spawn(worker.run(stop.clone()));
    while reader.count() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let [first, _] = all_lock_keys(&group.hash);
    let etag = desk.store.head(&first).await.unwrap().unwrap().etag;
    tokio::time::sleep(timeout + Duration::from_secs(1)).await;
    assert_eq!(monitor.running_jobs().len(), 1, "longer than a lock lasts");
    assert_ne!(desk.store.head(&first).await.unwrap().unwrap().etag, etag, "it was renewed");
    // As olmOCR takes a lock.
    desk.put(&first).await;
    while !monitor.running_jobs().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.request();
    let tally = working.await.unwrap().unwrap();
    assert_eq!((tally.lost, tally.groups, reader.count()), (1, 0, 1));
    assert!(desk.text(&first).await.is_some(), "theirs is left alone");
    assert!(desk.text(&result_key(&group.hash)).await.is_none());
}
