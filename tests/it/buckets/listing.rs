//! How often workers list, in simulated time.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use docmill::ops::bucket::Terms;
use docmill::queue::objects::blobforge::Priority;
use docmill::shutdown::Stop;

use super::{Fake, Manner, Place, terms};
use crate::support::memory_store::MemoryStore;

/// The settings that come with the program.
fn shipped() -> Terms {
    let config = docmill::config::BucketConfig::default();
    let (each_list, longest_pause) = (config.list_every, config.longest_pause);
    Terms { each_list, longest_pause, ..terms(false) }
}

/// Runs twenty workers for so many simulated minutes; listing requests in each of them.
async fn minutes(place: &Place, convert: &Arc<Fake>, minutes: usize) -> Vec<u64> {
    let stop = Stop::default();
    let workers: Vec<_> = (0..20)
        .map(|_| {
            let mut work = place.work(convert.clone(), false);
            work.terms = shipped();
            tokio::spawn(work.run(stop.clone()))
        })
        .collect();
    let mut counts = Vec::new();
    for _ in 0..minutes {
        let before = place.store.lists.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(60)).await;
        counts.push(place.store.lists.load(Ordering::SeqCst) - before);
    }
    stop.ask();
    for worker in workers {
        worker.await.unwrap().unwrap();
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn twenty_workers_over_fifty_thousand_markers_list_at_most_120_times_a_minute() {
    let place = Place::over(MemoryStore::simulated());
    for number in 0..50_000 {
        place.add(&format!("{number}"), Priority::Normal).await;
    }
    let convert = Fake::new(Manner::Takes(Duration::from_secs(4)));
    let counts = minutes(&place, &convert, 10).await;
    println!("listing requests a minute: {counts:?}, {} converted", convert.count());
    assert!(counts.iter().all(|count| *count <= 120), "{counts:?}");
    let twice = convert.calls.lock().unwrap().values().filter(|calls| **calls > 1).count();
    assert_eq!(twice, 0);
    assert!(convert.count() > 20 * 4 * 10 * 10, "and they work: {}", convert.count());
}

#[tokio::test(start_paused = true)]
async fn idle_workers_list_less_and_less() {
    let place = Place::over(MemoryStore::simulated());
    let convert = Fake::new(Manner::Well);
    let counts = minutes(&place, &convert, 10).await;
    println!("listing requests a minute: {counts:?}");
    assert!(counts.iter().all(|count| *count <= 120), "{counts:?}");
    assert!(counts.last().unwrap() <= &25, "{counts:?}");
}
