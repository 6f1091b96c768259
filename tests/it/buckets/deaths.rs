//! Workers that are killed between any two of their writes.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use docmill_compat::bucket::BucketWorkerSetup;
use docmill_compat::objects::blobforge::{dead_key, out_key};
use docmill_core::fault::Fault;
use docmill_core::model::Priority;
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::{GetOptions, GetResult, ObjectStore};
use docmill_worker::runner::JobEnd;

use super::{Fake, Manner, Place};

/// A worker under the first free name of a machine called `w`.
fn worker(place: &Place, convert: &std::sync::Arc<Fake>) -> BucketWorkerSetup {
    let mut work = place.work(convert.clone(), true);
    work.terms.name = Some("w".to_owned());
    work.terms.jobs = 1;
    work
}

/// The state that a worker of the same name finds after one was killed after `writes`; whether it
/// was killed.
async fn killed_after(writes: u32, place: &Place, convert: &std::sync::Arc<Fake>) -> bool {
    place.store.dies_after(Some(writes));
    let first = worker(place, convert).run(Shutdown::default());
    // Simulated: as long as anything still happens, no time passes.
    let ended = tokio::time::timeout(Duration::from_secs(60), first).await.is_ok();
    place.store.dies_after(None);
    // Its process is no more, so that its name is free.
    place.store.delete("registry/workers/w-0.json").await.unwrap();
    worker(place, convert).run(Shutdown::default()).await.unwrap();
    !ended
}

#[tokio::test(start_paused = true)]
async fn the_leftovers_of_a_worker_killed_at_any_write_are_repaired_at_once() {
    let mut writes = 0;
    loop {
        let place = Place::simulated();
        let left = place.add("left by an earlier one", Priority::Normal).await;
        let fresh = place.add("fresh", Priority::High).await;
        place.claim("w-0", &left).await;
        let convert = Fake::new(Manner::Well);
        let was_killed = killed_after(writes, &place, &convert).await;
        assert_eq!(place.marks(), [""; 0], "killed after {writes} writes");
        for hash in [&left, &fresh] {
            assert!(place.store.head(&out_key(hash)).await.unwrap().is_some(), "after {writes}");
        }
        if !was_killed {
            break;
        }
        writes += 1;
    }
    assert!(writes > 15, "it was killed at {writes} different writes");
}

#[tokio::test]
async fn of_two_results_the_first_is_kept() {
    let place = Place::new();
    let hash = place.add("twice", Priority::Normal).await;
    let mut claim = place.claim("second", &hash).await;
    // By a worker that was frozen until this one took over.
    place.store.put(&out_key(&hash), "first".into(), &Default::default()).await.unwrap();
    assert_eq!(claim.publish(&place.bucket, "second".into()).await.unwrap(), JobEnd::Done);
    let kept = place
        .store
        .get(&out_key(&hash), GetOptions { at_most: 100, if_match: None })
        .await
        .unwrap();
    assert!(matches!(kept, GetResult::Found(object) if &object.bytes[..] == b"first"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_noted_once_at_whichever_write_its_worker_is_killed() {
    let mut writes = 0;
    loop {
        let place = Place::simulated();
        let bad = place.add("bad", Priority::Normal).await;
        for _ in 0..2 {
            place.claim("w-0", &bad).await;
            place.store.delete(&docmill_compat::objects::blobforge::lock_key(&bad)).await.unwrap();
        }
        let convert = Fake::new(Manner::Fails(Fault::Transient));
        let was_killed = killed_after(writes, &place, &convert).await;
        assert_eq!(place.marks(), [dead_key(&bad)], "killed after {writes} writes");
        let runs = place.store.json(&dead_key(&bad))["total_retries"].clone();
        assert_eq!(runs, 3, "killed after {writes} writes");
        assert!(convert.calls(&bad) <= 1, "its third run was its last");
        if !was_killed {
            break;
        }
        writes += 1;
    }
    assert!(writes > 5, "it was killed at {writes} different writes");
}
