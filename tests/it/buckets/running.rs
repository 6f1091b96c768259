//! A bucket's worker under the runner: panics and timeouts end one document, a stop drains.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use docmill_compat::bucket::{
    BucketSettings, ConversionOutput, ConversionResult, DocumentConverter, OriginalDocument,
};
use docmill_compat::objects::blobforge::{failed_key, lock_key, out_key, todo_key};
use docmill_core::fault::Result;
use docmill_core::model::Priority;
use docmill_core::work_clock::note_progress;
use docmill_pipeline::ClaimHandle;
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::ObjectStore;

use super::{Fake, Manner, Place, until};

/// Converts each document by its name.
struct ByName;

#[async_trait]
impl DocumentConverter for ByName {
    async fn convert(
        &self,
        original: &OriginalDocument,
        claim: &ClaimHandle,
    ) -> Result<ConversionResult> {
        match original.name.as_str() {
            "panics.pdf" => panic!("told to panic"),
            "hangs.pdf" => std::future::pending().await,
            _ => {}
        }
        assert!(!claim.is_lost());
        Ok(ConversionResult::Whole(ConversionOutput {
            markdown: original.name.clone(),
            ..ConversionOutput::default()
        }))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_converter_that_panics_or_hangs_over_one_document_ends_its_run_and_no_other() {
    let place = Place::new();
    BucketSettings::set(&place.bucket, "conversion_timeout", 1).await.unwrap();
    let panics = place.add("panics", Priority::Critical).await;
    let hangs = place.add("hangs", Priority::Critical).await;
    let mut good = Vec::new();
    for number in 0..20 {
        good.push(place.add(&format!("{number}"), Priority::Normal).await);
    }
    let stats = place.work(Arc::new(ByName), true).run(Shutdown::default()).await.unwrap();
    assert_eq!((stats.done, stats.failed, stats.lost), (20, 2, 0));
    for hash in good {
        assert!(place.store.head(&out_key(&hash)).await.unwrap().is_some());
    }
    assert_eq!(place.marks().len(), 2, "a mark each, and no lock: {:?}", place.marks());
    for (hash, expected) in [(panics, "internal: panicked"), (hangs, "timeout: ")] {
        let failed = place.store.json(&failed_key(&hash));
        let error = failed["error"].as_str().unwrap();
        assert!(error.starts_with(expected), "{error}");
        assert_eq!(failed["retries"], 0, "its first run");
    }
}

/// Keeps something each time and takes too long, until the last.
struct Long(AtomicU32);

#[async_trait]
impl DocumentConverter for Long {
    async fn convert(&self, _: &OriginalDocument, _: &ClaimHandle) -> Result<ConversionResult> {
        if self.0.fetch_add(1, Ordering::SeqCst) < 4 {
            note_progress();
            std::future::pending().await
        }
        Ok(ConversionResult::Whole(ConversionOutput::default()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_longer_than_a_conversion_may_work_goes_on_as_often_as_it_takes() {
    let place = Place::new();
    BucketSettings::set(&place.bucket, "conversion_timeout", 1).await.unwrap();
    BucketSettings::set(&place.bucket, "max_retries", 1).await.unwrap();
    let hash = place.add("long", Priority::Normal).await;
    let convert = Arc::new(Long(AtomicU32::new(0)));
    let stop = Shutdown::default();
    let done = async {
        until("it is done", || place.store.keys("").contains(&out_key(&hash))).await;
        stop.request();
    };
    let (stats, ()) = tokio::join!(place.work(convert, false).run(stop.clone()), done);
    let stats = stats.unwrap();
    assert_eq!((stats.done, stats.given_back, stats.failed, stats.dead), (1, 4, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_panics_every_time_is_dead_after_its_last_run() {
    let place = Place::new();
    let hash = place.add("panics", Priority::Normal).await;
    BucketSettings::set(&place.bucket, "max_retries", 1).await.unwrap();
    let stats = place.work(Arc::new(ByName), true).run(Shutdown::default()).await.unwrap();
    assert_eq!((stats.dead, stats.failed), (1, 0), "{hash}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_a_document_end_within_the_drain_and_puts_it_back_after_it() {
    for (drain, ends) in [(Duration::from_secs(60), true), (Duration::from_millis(50), false)] {
        let place = Place::new();
        let hash = place.add("slow", Priority::Normal).await;
        let convert = Fake::new(Manner::Takes(Duration::from_millis(1500)));
        let stop = Shutdown::default();
        let mut work = place.work(convert.clone(), false);
        // One at a time, so that the second can only begin after the stop.
        (work.terms.jobs, work.terms.drain) = (1, drain);
        let working = tokio::spawn(work.run(stop.clone()));
        until("it was begun", || convert.count() == 1).await;
        place.add("late", Priority::Normal).await;
        stop.request();
        let stats = working.await.unwrap().unwrap();
        assert_eq!((stats.done, stats.given_back), (u64::from(ends), u64::from(!ends)));
        assert_eq!(convert.count(), 1, "nothing is begun after a stop");
        assert_eq!(place.store.head(&out_key(&hash)).await.unwrap().is_some(), ends);
        assert!(place.store.head(&lock_key(&hash)).await.unwrap().is_none());
        if !ends {
            let marker = place.store.json(&todo_key(Priority::Normal, &hash));
            assert_eq!(marker["retries"], 0, "its run does not count");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lock_of_a_document_in_work_is_renewed_and_its_loss_ends_the_work() {
    let place = Place::new();
    BucketSettings::set(&place.bucket, "heartbeat_interval", 1).await.unwrap();
    let hash = place.add("hangs", Priority::Normal).await;
    let stop = Shutdown::default();
    let worker = place.work(Arc::new(ByName), false).open().await.unwrap();
    let monitor = worker.monitor();
    let working = tokio::spawn(worker.run(stop.clone()));
    until("it is in work", || monitor.running_jobs().len() == 1).await;
    let beats = || place.store.json(&lock_key(&hash))["last_heartbeat"].as_u64().unwrap();
    let first = beats();
    until("its lock is renewed", || beats() > first).await;
    // Another worker took it over as abandoned.
    let theirs = serde_json::json!({"worker": "theirs", "started": 1, "last_heartbeat": 1});
    let nothing = Default::default();
    place.store.put(&lock_key(&hash), theirs.to_string().into(), &nothing).await.unwrap();
    until("the work ends", || monitor.running_jobs().is_empty()).await;
    stop.request();
    let stats = working.await.unwrap().unwrap();
    assert_eq!(stats.lost, 1);
    assert_eq!(place.store.json(&lock_key(&hash)), theirs, "it is left alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn outside_its_run_windows_a_worker_takes_nothing_and_inside_everything() {
    // Exactly one of the two windows is open, except at the minute's end.
    let second = chrono::Timelike::num_seconds_from_midnight(&chrono::Local::now().time());
    let from = format!("{:02}:{:02}", second / 3600, second / 60 % 60);
    let is_before_noon = second < 12 * 3600;
    let far = if is_before_noon { "18:00" } else { "06:00" };
    for (window, done) in [(format!("{far}-{from}"), 0), (format!("{from}-{far}"), 1)] {
        let place = Place::new();
        place.add("document", Priority::Normal).await;
        let mut work = place.work(Arc::new(ByName), true);
        work.terms.windows = window.parse().unwrap();
        let stats = work.run(Shutdown::default()).await.unwrap();
        assert_eq!(stats.done, done, "{window}");
        assert_eq!(place.marks().len() as u64, 1 - done, "{window}: it waits, or is done");
    }
}
