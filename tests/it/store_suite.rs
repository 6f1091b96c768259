//! The store suite: one set of cases, over the folder, memory and S3 (on moto's server).
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use docmill_core::fault::Fault;
use docmill_storage::folder::FolderStore;
use docmill_storage::memory::MemoryStore;
use docmill_storage::{Etag, GetOptions, GetResult, ObjectStore, PutResult};

/// One store of each kind, empty, with what keeps it alive.
struct Subject {
    store: Arc<dyn ObjectStore>,
    _kept: Box<dyn std::any::Any + Send>,
}

async fn folder() -> Subject {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(FolderStore::open(folder.path()).await.unwrap());
    Subject { store, _kept: Box::new(folder) }
}

async fn memory() -> Subject {
    Subject { store: Arc::new(MemoryStore::default()), _kept: Box::new(()) }
}

macro_rules! suite {
    ($($test:ident),* $(,)?) => {
        mod folder_store {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() { let it = super::folder().await; super::$test(it.store.clone()).await; })*
        }
        mod controlled_store {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() { let it = super::memory().await; super::$test(it.store.clone()).await; })*
        }
        mod s3_store {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() { let it = super::s3().await; super::$test(it.store.clone()).await; })*
        }
    };
}

suite!(
    a_written_object_is_read_back_with_its_metadata,
    an_object_that_is_not_there_is_no_error,
    of_sixteen_writers_of_a_new_object_one_wins,
    of_sixteen_writers_over_one_version_one_wins,
    a_stale_version_neither_writes_nor_deletes,
    of_sixteen_conditional_deletes_one_wins,
    every_write_of_other_bytes_is_another_version,
    too_many_bytes_are_refused_with_their_size,
    a_read_of_one_version_never_returns_another,
    odd_keys_are_plain_keys,
    a_listing_is_in_byte_order_and_goes_on_where_it_stopped,
    an_empty_object_is_an_object,
    a_large_object_comes_back_whole,
    the_time_of_a_write_is_now,
);

const ANY: GetOptions = GetOptions { at_most: 1 << 20, if_match: None };

fn none() -> BTreeMap<String, String> {
    BTreeMap::new()
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

async fn read(store: &dyn ObjectStore, key: &str) -> Option<String> {
    match store.get(key, ANY).await.unwrap() {
        GetResult::Found(object) => Some(String::from_utf8(object.bytes.to_vec()).unwrap()),
        GetResult::Missing => None,
        other => panic!("{other:?}"),
    }
}

async fn a_written_object_is_read_back_with_its_metadata(store: Arc<dyn ObjectStore>) {
    let metadata = BTreeMap::from([
        ("original-name".to_owned(), "we ird näme $(id);&#.pdf".to_owned()),
        ("tags".to_owned(), "[\"a b\", \"ü\"]".to_owned()),
        ("size".to_owned(), "4".to_owned()),
    ]);
    let etag = store.put("documents/a.pdf", bytes("text"), &metadata).await.unwrap();
    let meta = store.head("documents/a.pdf").await.unwrap().unwrap();
    assert_eq!((meta.size, &meta.etag, &meta.metadata), (4, &etag, &metadata));
    assert_eq!(read(&*store, "documents/a.pdf").await.as_deref(), Some("text"));
    let etag = store.put("documents/a.pdf", bytes("other"), &none()).await.unwrap();
    let meta = store.head("documents/a.pdf").await.unwrap().unwrap();
    assert_eq!((meta.etag, meta.metadata), (etag, none()), "metadata belongs to one version");
}

async fn an_object_that_is_not_there_is_no_error(store: Arc<dyn ObjectStore>) {
    store.put("a/b/c", bytes("x"), &none()).await.unwrap();
    for key in ["nothing", "a", "a/b", "a/b/d"] {
        assert!(store.head(key).await.unwrap().is_none(), "{key}");
        assert!(matches!(store.get(key, ANY).await.unwrap(), GetResult::Missing), "{key}");
        store.delete(key).await.unwrap();
        let any = Etag("\"0\"".to_owned());
        assert!(!store.delete_if_match(key, &any).await.unwrap(), "{key}");
    }
    let any = Etag("\"0\"".to_owned());
    assert_eq!(store.put_if_match("nothing", &any, bytes("x")).await.unwrap(), PutResult::Refused);
    assert!(store.list("nothing/", None, 10).await.unwrap().is_empty());
    assert!(store.head("a/b/c").await.unwrap().is_some());
}

/// Runs sixteen writers at once and returns those whose write succeeded.
async fn race<F, R>(store: &Arc<dyn ObjectStore>, each: F) -> Vec<usize>
where
    F: Fn(Arc<dyn ObjectStore>, usize) -> R,
    R: Future<Output = bool> + Send + 'static,
{
    let writers: Vec<_> =
        (0..16).map(|number| tokio::spawn(each(Arc::clone(store), number))).collect();
    let mut winners = Vec::new();
    for (number, writer) in writers.into_iter().enumerate() {
        if writer.await.unwrap() {
            winners.push(number);
        }
    }
    winners
}

async fn of_sixteen_writers_of_a_new_object_one_wins(store: Arc<dyn ObjectStore>) {
    for round in 0..3 {
        let winners = race(&store, move |store, number| async move {
            let (key, text) = (format!("race/{round}"), bytes(&number.to_string()));
            matches!(store.put_if_absent(&key, text).await.unwrap(), PutResult::Written(_))
        })
        .await;
        assert_eq!(winners.len(), 1, "{winners:?}");
        let kept = read(&*store, &format!("race/{round}")).await.unwrap();
        assert_eq!(kept, winners[0].to_string(), "the winner's bytes are kept");
    }
}

async fn of_sixteen_writers_over_one_version_one_wins(store: Arc<dyn ObjectStore>) {
    let first = store.put("race", bytes("first"), &none()).await.unwrap();
    let winners = race(&store, move |store, number| {
        let first = first.clone();
        async move {
            let put = store.put_if_match("race", &first, bytes(&number.to_string())).await.unwrap();
            matches!(put, PutResult::Written(_))
        }
    })
    .await;
    assert_eq!(winners.len(), 1, "{winners:?}");
    assert_eq!(read(&*store, "race").await.unwrap(), winners[0].to_string());
}

async fn a_stale_version_neither_writes_nor_deletes(store: Arc<dyn ObjectStore>) {
    let PutResult::Written(first) = store.put_if_absent("k", bytes("1")).await.unwrap() else {
        panic!("nothing was there");
    };
    let PutResult::Written(second) = store.put_if_match("k", &first, bytes("2")).await.unwrap()
    else {
        panic!("the version was right");
    };
    assert_eq!(store.put_if_match("k", &first, bytes("3")).await.unwrap(), PutResult::Refused);
    assert_eq!(store.put_if_absent("k", bytes("4")).await.unwrap(), PutResult::Refused);
    assert!(!store.delete_if_match("k", &first).await.unwrap());
    assert_eq!(read(&*store, "k").await.as_deref(), Some("2"));
    assert!(store.delete_if_match("k", &second).await.unwrap());
    assert_eq!(read(&*store, "k").await, None);
    assert!(!store.delete_if_match("k", &second).await.unwrap(), "it is gone");
}

async fn of_sixteen_conditional_deletes_one_wins(store: Arc<dyn ObjectStore>) {
    let etag = store.put("k", bytes("1"), &none()).await.unwrap();
    let winners = race(&store, move |store, _| {
        let etag = etag.clone();
        async move { store.delete_if_match("k", &etag).await.unwrap() }
    })
    .await;
    // S3 answers a conditional delete of a missing object with success, so a loser may get `true`.
    assert!(!winners.is_empty());
    assert_eq!(read(&*store, "k").await, None);
}

async fn every_write_of_other_bytes_is_another_version(store: Arc<dyn ObjectStore>) {
    let mut seen = BTreeSet::new();
    for number in 0..8 {
        let etag = store.put("k", bytes(&number.to_string()), &none()).await.unwrap();
        assert_eq!(store.head("k").await.unwrap().unwrap().etag, etag);
        assert!(seen.insert(etag.0));
    }
}

async fn too_many_bytes_are_refused_with_their_size(store: Arc<dyn ObjectStore>) {
    store.put("k", bytes("12345"), &none()).await.unwrap();
    let get = |at_most| GetOptions { at_most, if_match: None };
    assert!(matches!(store.get("k", get(4)).await.unwrap(), GetResult::TooLarge { size: 5 }));
    assert!(matches!(store.get("k", get(5)).await.unwrap(), GetResult::Found(_)));
}

async fn a_read_of_one_version_never_returns_another(store: Arc<dyn ObjectStore>) {
    let first = store.put("k", bytes("1"), &none()).await.unwrap();
    let get = GetOptions { at_most: 10, if_match: Some(first) };
    assert!(matches!(store.get("k", get.clone()).await.unwrap(), GetResult::Found(_)));
    store.put("k", bytes("2"), &none()).await.unwrap();
    assert!(matches!(store.get("k", get).await.unwrap(), GetResult::Changed));
}

const ODD: [&str; 7] = [
    "documents/we ird näme $(id);&#.pdf",
    "documents/red+flower.jpg",
    "documents/100%25.pdf",
    "documents/a=b?c=d.pdf",
    "documents/.hidden",
    "documents/发票/2026.pdf",
    "documents/~'\"!*(){}[]<>|`^.pdf",
];

async fn odd_keys_are_plain_keys(store: Arc<dyn ObjectStore>) {
    for key in ODD {
        store.put(key, bytes(key), &none()).await.unwrap();
    }
    let mut expected: Vec<_> = ODD.iter().map(|key| (*key).to_owned()).collect();
    expected.sort();
    let listed = store.list("documents/", None, 100).await.unwrap();
    assert_eq!(listed.into_iter().map(|entry| entry.key).collect::<Vec<_>>(), expected);
    for key in ODD {
        assert_eq!(read(&*store, key).await.as_deref(), Some(key));
        store.delete(key).await.unwrap();
        assert_eq!(read(&*store, key).await, None);
    }
}

async fn a_listing_is_in_byte_order_and_goes_on_where_it_stopped(store: Arc<dyn ObjectStore>) {
    let keys = ["a-b", "a.b", "a/b", "a/b-c", "a/b.c/d", "a/c", "a0", "b/a", "B/a", "q/1/x"];
    for key in keys {
        store.put(key, bytes(key), &none()).await.unwrap();
    }
    let mut sorted: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    sorted.sort();
    for prefix in ["", "a", "a/", "a/b", "B", "q/1/", "none"] {
        let expected: Vec<_> =
            sorted.iter().filter(|key| key.starts_with(prefix)).cloned().collect();
        for page in [1, 3, 100] {
            let mut found: Vec<String> = Vec::new();
            loop {
                let after = found.last().cloned();
                let entries = store.list(prefix, after.as_deref(), page).await.unwrap();
                assert!(entries.len() <= page);
                assert!(entries.iter().all(|entry| entry.size == entry.key.len() as u64));
                if entries.is_empty() {
                    break;
                }
                found.extend(entries.into_iter().map(|entry| entry.key));
            }
            assert_eq!(found, expected, "{prefix} by {page}");
        }
    }
    let after_a_key_that_is_not_there = store.list("", Some("a/b/zzz"), 1).await.unwrap();
    assert_eq!(after_a_key_that_is_not_there[0].key, "a/c");
}

async fn an_empty_object_is_an_object(store: Arc<dyn ObjectStore>) {
    store.put("k", Bytes::new(), &none()).await.unwrap();
    assert_eq!(store.head("k").await.unwrap().unwrap().size, 0);
    let get = GetOptions { at_most: 0, if_match: None };
    assert!(matches!(store.get("k", get).await.unwrap(), GetResult::Found(_)));
    assert_eq!(store.put_if_absent("k", bytes("x")).await.unwrap(), PutResult::Refused);
}

async fn a_large_object_comes_back_whole(store: Arc<dyn ObjectStore>) {
    let large: Bytes = (0..6_000_000_u32).map(|n| n.to_le_bytes()[0]).collect::<Vec<_>>().into();
    store.put("k", large.clone(), &none()).await.unwrap();
    let get = GetOptions { at_most: 6_000_000, if_match: None };
    let GetResult::Found(object) = store.get("k", get).await.unwrap() else { panic!("not found") };
    assert_eq!(object.bytes, large);
}

async fn the_time_of_a_write_is_now(store: Arc<dyn ObjectStore>) {
    store.put("k", bytes("x"), &none()).await.unwrap();
    let listed = store.list("k", None, 1).await.unwrap();
    for time in [store.head("k").await.unwrap().unwrap().modified, listed[0].modified] {
        let apart = SystemTime::now().duration_since(time).unwrap_or_else(|early| early.duration());
        assert!(apart < Duration::from_secs(60), "{apart:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_leaves_the_folder_is_refused_by_every_operation() {
    let subject = folder().await;
    let store = &subject.store;
    for key in ["../escaped", "/etc/passwd", "a//b", "s3://other/key", ""] {
        let etag = Etag("e".to_owned());
        let faults = [
            store.head(key).await.unwrap_err().fault,
            store.get(key, ANY).await.unwrap_err().fault,
            store.put(key, bytes("x"), &none()).await.unwrap_err().fault,
            store.put_if_absent(key, bytes("x")).await.unwrap_err().fault,
            store.put_if_match(key, &etag, bytes("x")).await.unwrap_err().fault,
            store.delete(key).await.unwrap_err().fault,
            store.delete_if_match(key, &etag).await.unwrap_err().fault,
        ];
        assert!(faults.iter().all(|fault| *fault == Fault::Rejected), "{key}: {faults:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_below_another_is_refused_rather_than_lost() {
    let subject = folder().await;
    subject.store.put("a", bytes("x"), &none()).await.unwrap();
    let below = subject.store.put("a/b", bytes("x"), &none()).await.unwrap_err();
    assert_eq!(below.fault, Fault::Rejected);
    subject.store.put("c/d", bytes("x"), &none()).await.unwrap();
    let above = subject.store.put_if_absent("c", bytes("x")).await.unwrap_err();
    assert_eq!(above.fault, Fault::Rejected);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_openings_of_one_folder_exclude_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (
        FolderStore::open(folder.path()).await.unwrap(),
        FolderStore::open(folder.path()).await.unwrap(),
    );
    let mut etag = a.put("counter", bytes("0"), &none()).await.unwrap();
    let add = |store: FolderStore| async move {
        for _ in 0..20 {
            loop {
                let GetResult::Found(now) = store.get("counter", ANY).await.unwrap() else {
                    panic!("the counter is gone");
                };
                let count: u32 = String::from_utf8_lossy(&now.bytes).parse().unwrap();
                let next = bytes(&(count + 1).to_string());
                let put = store.put_if_match("counter", &now.etag, next).await.unwrap();
                if matches!(put, PutResult::Written(_)) {
                    break;
                }
            }
        }
    };
    let both = tokio::join!(tokio::spawn(add(a.clone())), tokio::spawn(add(b)));
    both.0.unwrap();
    both.1.unwrap();
    etag = a.put_if_match("counter", &etag, bytes("x")).await.map(|_| etag).unwrap();
    assert_eq!(read(&a, "counter").await.as_deref(), Some("40"), "{etag:?}");
}

pub(crate) mod moto;

async fn s3() -> Subject {
    let (server, store) = moto::store().await;
    Subject { store: Arc::new(store), _kept: Box::new(server) }
}
