//! How often workers list, in simulated time.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use docmill_compat::bucket::BucketWorkerOptions;
use docmill_compat::objects::ObjectQueue;
use docmill_compat::objects::engine::{RecordStore, StoreClock};
use docmill_core::model::Priority;
use docmill_pipeline::shutdown::Shutdown;
use docmill_queue::MessageQueue;

use super::{Fake, Manner, Place, terms};
use crate::support::controlled_store::simulated_clock;

/// The settings that come with the program.
fn shipped() -> BucketWorkerOptions {
    let config = docmill_core::config::BucketConfig::default();
    let (each_list, longest_pause) = (config.list_every, config.longest_pause);
    BucketWorkerOptions { each_list, longest_pause, ..terms(false) }
}

/// Runs twenty workers for `minutes` simulated minutes; the listing requests of each.
async fn minutes(place: &Place, convert: &Arc<Fake>, minutes: usize) -> Vec<u64> {
    let stop = Shutdown::default();
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
    stop.request();
    for worker in workers {
        worker.await.unwrap().unwrap();
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn twenty_workers_over_fifty_thousand_markers_list_at_most_120_times_a_minute() {
    let place = Place::simulated();
    for number in 0..50_000 {
        place.add(&format!("{number}"), Priority::Normal).await;
    }
    let convert = Fake::new(Manner::Takes(Duration::from_secs(4)));
    let counts = minutes(&place, &convert, 10).await;
    eprintln!("listing requests a minute: {counts:?}, {} converted", convert.count());
    assert!(counts.iter().all(|count| *count <= 120), "{counts:?}");
    let twice = convert.calls.lock().unwrap().values().filter(|calls| **calls > 1).count();
    assert_eq!(twice, 0);
    assert!(convert.count() > 20 * 4 * 10 * 10, "and they work: {}", convert.count());
}

#[tokio::test(start_paused = true)]
async fn idle_workers_list_less_and_less() {
    let place = Place::simulated();
    let convert = Fake::new(Manner::Well);
    let counts = minutes(&place, &convert, 10).await;
    eprintln!("listing requests a minute: {counts:?}");
    assert!(counts.iter().all(|count| *count <= 120), "{counts:?}");
    assert!(counts.last().unwrap() <= &25, "{counts:?}");
}

/// A receiver with four slots whose jobs take four seconds, and whose metrics are read now and then.
async fn receives(queue: Arc<ObjectQueue>, stop: Shutdown) -> u64 {
    let (mut done, mut read) = (0, tokio::time::Instant::now());
    while !stop.is_requested() {
        if read.elapsed() >= Duration::from_secs(10) {
            read = tokio::time::Instant::now();
            let depth = queue.depth().await.unwrap();
            let all = depth.ready + depth.in_flight + depth.delayed;
            assert!((30_000..60_000).contains(&all), "about what there is: {depth:?}");
        }
        let found = queue.receive(4, Duration::ZERO).await.unwrap();
        done += u64::try_from(found.len()).unwrap();
        tokio::time::sleep(Duration::from_secs(4)).await;
        let receipts: Vec<_> = found.into_iter().map(|delivery| delivery.receipt).collect();
        for answer in queue.acknowledge(&receipts).await {
            answer.unwrap();
        }
    }
    done
}

#[tokio::test(start_paused = true)]
async fn twenty_receivers_of_fifty_thousand_messages_list_at_most_120_times_a_minute() {
    let place = Place::simulated();
    for number in 0..50_000 {
        place.add(&format!("{number}"), Priority::Normal).await;
    }
    let stop = Shutdown::default();
    let each = docmill_core::config::BucketConfig::default().list_every;
    let receivers: Vec<_> = (0..20)
        .map(|_| {
            let engine =
                RecordStore::new(place.store.clone(), StoreClock::with_local(simulated_clock));
            let queue = ObjectQueue::with_engine(engine, Duration::from_secs(120), None)
                .with_list_pace(each);
            tokio::spawn(receives(Arc::new(queue), stop.clone()))
        })
        .collect();
    let mut counts = Vec::new();
    for _ in 0..10 {
        let before = place.store.lists.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(60)).await;
        counts.push(place.store.lists.load(Ordering::SeqCst) - before);
    }
    stop.request();
    let mut done = 0;
    for receiver in receivers {
        done += receiver.await.unwrap();
    }
    eprintln!("listing requests a minute: {counts:?}, {done} received");
    assert!(counts.iter().all(|count| *count <= 120), "{counts:?}");
    assert!(done > 20 * 4 * 10 * 10, "and they work: {done}");
    let distinct = 50_000 - place.store.keys("queue/todo/").len();
    assert!(u64::try_from(distinct).unwrap() <= done, "{distinct} are gone");
}
