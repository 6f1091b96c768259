//! Crashes, zombies, janitors, signals and wrong clocks.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use docmill_compat::bucket::{
    BlobForgeBucket, BucketClaimResult, BucketSettings, LockRenewal, MarkerCandidate, SweepOptions,
    WorkerIdentity, WorkerRegistration, claim_document, sweep_bucket,
};
use docmill_compat::objects::ObjectQueue;
use docmill_compat::objects::blobforge::{dead_key, failed_key, lock_key, out_key, todo_key};
use docmill_compat::objects::engine::{RecordStore, StoreClock};
use docmill_core::fault::Fault;
use docmill_core::model::Priority;
use docmill_pipeline::shutdown::Shutdown;
use docmill_queue::{MessageQueue, OutgoingMessage};
use docmill_storage::ObjectStore;
use docmill_worker::runner::JobEnd;
use serde_json::json;

use crate::support::controlled_store::ControlledStore;

use super::{ABANDONED, Fake, Manner, Place, terms, until};

const AT_ONCE: SweepOptions = SweepOptions { dry_run: false, at_once: true };

async fn sweep(place: &Place) -> Vec<(String, u32)> {
    let swept = sweep_bucket(&place.bucket, &BucketSettings::default(), AT_ONCE).await.unwrap();
    swept.acts.into_iter().map(|act| (act.act.to_owned(), act.runs)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_always_fails_is_begun_exactly_three_times_and_then_dead() {
    let place = Place::new();
    let hash = place.add("bad", Priority::High).await;
    let convert = Fake::new(Manner::Fails(Fault::Transient));
    for _ in 0..8 {
        place.work_once(&convert).await;
        sweep(&place).await;
    }
    assert_eq!(convert.calls(&hash), 3);
    assert_eq!(place.marks(), [dead_key(&hash)]);
    let dead = place.store.json(&dead_key(&hash));
    assert_eq!(dead["total_retries"], 3);
    assert_eq!(dead["reason"], "exceeded_max_retries");
    assert_eq!(dead["priority"], "2_high", "its own priority is kept");
    let runs: Vec<_> = dead["history"].as_array().unwrap().iter().map(|f| &f["run"]).collect();
    assert_eq!(runs, [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_document_is_not_begun_again_before_its_pause_is_over() {
    let place = Place::new();
    let hash = place.add("bad", Priority::Normal).await;
    let convert = Fake::new(Manner::Fails(Fault::Transient));
    for _ in 0..3 {
        place.work_once(&convert).await;
        sweep_bucket(&place.bucket, &BucketSettings::default(), SweepOptions::default())
            .await
            .unwrap();
    }
    assert_eq!(convert.calls(&hash), 1);
    assert_eq!(place.marks(), [failed_key(&hash)]);
    place.store.age(&failed_key(&hash), Duration::from_secs(61));
    sweep_bucket(&place.bucket, &BucketSettings::default(), SweepOptions::default()).await.unwrap();
    assert_eq!(place.marks(), [todo_key(Priority::Normal, &hash)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_kills_its_workers_is_dead_after_three_runs() {
    let place = Place::new();
    let hash = place.add("poison", Priority::Normal).await;
    for run in 1..=3 {
        let claim = place.claim("victim", &hash).await;
        assert_eq!(claim.run, run);
        // The worker dies: its lock is no longer renewed.
        place.store.age(&lock_key(&hash), ABANDONED);
        let expected = if run < 3 { "queued" } else { "dead" };
        assert_eq!(sweep(&place).await, [(expected.to_owned(), run)]);
    }
    assert_eq!(place.marks(), [dead_key(&hash)]);
    assert_eq!(place.store.json(&dead_key(&hash))["error"], "its worker stopped renewing its lock");
}

#[tokio::test]
async fn a_store_that_fails_while_runs_are_begun_costs_a_document_none_of_its_runs() {
    let place = Place::new();
    let hash = place.add("unlucky", Priority::Normal).await;
    for _ in 0..5 {
        // The lock is taken and the run counted; then the lock cannot be written.
        place.store.refuse_writes(&lock_key(&hash), 1, 1);
        let (who, settings) = (WorkerIdentity::new("w"), BucketSettings::default());
        let candidate = MarkerCandidate { priority: Priority::Normal, hash: hash.clone() };
        assert!(claim_document(&place.bucket, &who, &settings, &candidate).await.is_err());
        assert_eq!(place.marks(), [todo_key(Priority::Normal, &hash)]);
    }
    assert_eq!(place.claim("w", &hash).await.run, 1);
}

#[tokio::test(start_paused = true)]
async fn a_result_outlasts_a_store_that_takes_nothing_for_minutes() {
    let place = Place::simulated();
    let hash = place.add("done", Priority::Normal).await;
    place.store.refuse_writes("store/out/", 0, 10);
    let began = tokio::time::Instant::now();
    let convert = Fake::new(Manner::Well);
    place.work_once(&convert).await;
    assert!(began.elapsed() > Duration::from_secs(120), "{:?}", began.elapsed());
    assert_eq!(convert.calls(&hash), 1);
    assert_eq!((place.marks(), place.store.keys("store/out/")), (vec![], vec![out_key(&hash)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zombies_heartbeat_cannot_take_its_lock_back() {
    let place = Place::new();
    let hash = place.add("contested", Priority::Normal).await;
    let mut zombie = place.claim("w-a", &hash).await;
    assert_eq!(zombie.renew(&place.bucket, "converting").await.unwrap(), LockRenewal::Ours);
    place.store.age(&lock_key(&hash), ABANDONED);
    sweep(&place).await;
    let mut heir = place.claim("w-b", &hash).await;
    assert_eq!(heir.run, 2);
    let before = place.store.json(&lock_key(&hash));
    assert_eq!(zombie.renew(&place.bucket, "converting").await.unwrap(), LockRenewal::Lost);
    assert_eq!(place.store.json(&lock_key(&hash)), before);
    assert_eq!(before["worker"], "w-b");
    assert_eq!(heir.renew(&place.bucket, "converting").await.unwrap(), LockRenewal::Ours);
}

#[tokio::test(flavor = "multi_thread")]
async fn ending_a_document_after_a_takeover_changes_nothing() {
    let place = Place::new();
    let hash = place.add("contested", Priority::Normal).await;
    let mut zombies = Vec::new();
    for _ in 0..2 {
        zombies.push(place.claim("zombie", &hash).await);
        place.store.age(&lock_key(&hash), ABANDONED);
        sweep(&place).await;
    }
    let mut heir = place.claim("heir", &hash).await;
    let (before, everything) = (place.store.json(&lock_key(&hash)), place.store.keys(""));
    for zombie in &mut zombies {
        let bucket = &place.bucket;
        assert_eq!(zombie.publish(bucket, "zip".into()).await.unwrap(), JobEnd::Lost);
        assert_eq!(zombie.fail(bucket, "error", 3).await.unwrap(), JobEnd::Lost);
        assert_eq!(zombie.fail(bucket, "error", 1).await.unwrap(), JobEnd::Lost);
        assert_eq!(zombie.refuse(bucket, "corrupt", "").await.unwrap(), JobEnd::Lost);
        assert_eq!(zombie.return_document(bucket, "signal").await.unwrap(), JobEnd::Lost);
        assert_eq!(zombie.withdraw(bucket).await.unwrap(), JobEnd::Lost);
    }
    assert_eq!(place.store.keys(""), everything);
    assert_eq!(place.store.json(&lock_key(&hash)), before);
    assert_eq!(heir.publish(&place.bucket, "zip".into()).await.unwrap(), JobEnd::Done);
    assert!(place.marks().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_janitors_at_once_count_once() {
    let place = Place::new();
    for number in 0..20 {
        let hash = place.add(&format!("{number}"), Priority::Normal).await;
        place.claim("dead", &hash).await;
        place.store.age(&lock_key(&hash), ABANDONED);
    }
    let janitor = || {
        let bucket = place.bucket.clone();
        let sweep = async move {
            sweep_bucket(&bucket, &BucketSettings::default(), AT_ONCE).await.unwrap()
        };
        tokio::spawn(sweep)
    };
    let (one, other) = tokio::join!(janitor(), janitor());
    let acts: Vec<_> = [one.unwrap().acts, other.unwrap().acts].concat();
    let distinct: BTreeSet<_> = acts.iter().map(|act| &act.hash).collect();
    assert_eq!((acts.len(), distinct.len()), (20, 20), "each acted upon by one");
    let markers = place.marks();
    assert_eq!(markers.len(), 20, "a marker each, and no lock: {markers:?}");
    for marker in markers {
        assert_eq!(place.store.json(&marker)["retries"], 1, "{marker}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_renewed_after_the_listing_is_left_alone() {
    let place = Place::new();
    let hash = place.add("slow", Priority::Normal).await;
    let mut claim = place.claim("slow", &hash).await;
    place.store.age(&lock_key(&hash), ABANDONED);
    claim.renew(&place.bucket, "converting").await.unwrap();
    assert!(sweep(&place).await.is_empty());
    assert_eq!(claim.renew(&place.bucket, "converting").await.unwrap(), LockRenewal::Ours);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_listing_converts_nothing_twice() {
    let place = Place::new();
    let hash = place.add("once", Priority::Normal).await;
    let marker = todo_key(Priority::Normal, &hash);
    let mut first = place.claim("first", &hash).await;
    assert!(matches!(
        place.try_claim("second", &hash, Priority::Normal).await,
        BucketClaimResult::Busy
    ));
    first.publish(&place.bucket, "zip".into()).await.unwrap();
    let late = place.try_claim("late", &hash, Priority::Normal).await;
    assert!(matches!(late, BucketClaimResult::Settled), "its marker is gone");
    // BlobForge's ingest, or a worker that died after publishing, leaves a marker.
    place.store.put(&marker, "".into(), &std::collections::BTreeMap::new()).await.unwrap();
    let late = place.try_claim("late", &hash, Priority::Normal).await;
    assert!(matches!(late, BucketClaimResult::Settled), "its result is there");
    assert!(place.marks().is_empty(), "marker and lock are gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_after_publishing_costs_no_second_conversion() {
    let place = Place::new();
    let hash = place.add("published", Priority::Normal).await;
    place.claim("dead", &hash).await;
    place.store.put(&out_key(&hash), "zip".into(), &Default::default()).await.unwrap();
    place.store.age(&lock_key(&hash), ABANDONED);
    assert_eq!(sweep(&place).await, [("finished".to_owned(), 0)]);
    assert!(place.marks().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn blobforges_leftovers_are_counted() {
    let place = Place::new();
    let hash = place.add("theirs", Priority::High).await;
    let lock = json!({"worker": "theirs", "started": 1, "last_heartbeat": 1,
                      "priority": "2_high", "retries": 1});
    let nothing = Default::default();
    place.store.put(&lock_key(&hash), lock.to_string().into(), &nothing).await.unwrap();
    place.store.age(&lock_key(&hash), ABANDONED);
    assert_eq!(sweep(&place).await, [("queued".to_owned(), 2)], "its marker counted nothing");
    // Theirs leave the marker of a failed document as it was.
    let failed = json!({"error": "e", "worker": "theirs", "timestamp": 1, "retries": 2});
    place.store.put(&failed_key(&hash), failed.to_string().into(), &nothing).await.unwrap();
    let taken = place.try_claim("ours", &hash, Priority::High).await;
    assert!(matches!(taken, BucketClaimResult::Settled), "it was begun three times: {taken:?}");
    assert_eq!(place.marks(), [dead_key(&hash)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_releases_running_documents_uncounted() {
    let place = Place::new();
    let hash = place.add("long", Priority::Normal).await;
    let (convert, stop) = (Fake::new(Manner::Hangs), Shutdown::default());
    let working = tokio::spawn(place.work(convert.clone(), false).run(stop.clone()));
    until("it is in work", || convert.count() == 1).await;
    stop.request();
    assert_eq!(working.await.unwrap().unwrap().given_back, 1);
    assert_eq!(place.marks(), [todo_key(Priority::Normal, &hash)]);
    let marker = place.store.json(&todo_key(Priority::Normal, &hash));
    assert_eq!(
        (&marker["retries"], &marker["recovered_from"]),
        (&json!(0), &json!("graceful_shutdown"))
    );
    convert.does(Manner::Well);
    assert_eq!(place.work_once(&convert).await.done, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_dependencies_are_not_counted() {
    let place = Place::new();
    let hash = place.add("unlucky", Priority::Normal).await;
    let (convert, stop) = (Fake::new(Manner::Fails(Fault::Unavailable)), Shutdown::default());
    let working = tokio::spawn(place.work(convert.clone(), false).run(stop.clone()));
    until("it was begun", || convert.count() == 1).await;
    let marker = todo_key(Priority::Normal, &hash);
    until("it was put back", || place.marks() == [marker.clone()]).await;
    assert_eq!(place.store.json(&marker)["retries"], 0);
    stop.request();
    working.await.unwrap().unwrap();
    assert_eq!(convert.count(), 1, "the worker passes it over for a while");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_one_document_defers_it_and_delays_no_other() {
    let spent = Fault::OverBudget(Duration::from_secs(7200));
    for fault in [Fault::Denied, Fault::Misconfigured, Fault::Unavailable, spent] {
        let place = Place::simulated();
        let refused = place.add("refused", Priority::Critical).await;
        let convert = Fake::new(Manner::Well);
        convert.refuses(&refused, fault);
        let stop = Shutdown::default();
        let mut work = place.work(convert.clone(), true);
        work.terms.each_list = Duration::from_secs(1);
        let working = tokio::spawn(work.run(stop.clone()));
        until("it was put back", || convert.calls(&refused) == 1).await;
        let began = tokio::time::Instant::now();
        for number in 0..20 {
            place.add(&format!("good {number}"), Priority::Normal).await;
        }
        until("the others are done", || convert.count() == 21).await;
        assert!(began.elapsed() < Duration::from_secs(10), "{fault:?}: {:?}", began.elapsed());
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let most = if fault == spent { 1 } else { 10 };
        assert!(convert.calls(&refused) <= most, "{fault:?}: {}", convert.calls(&refused));
        convert.refused.lock().unwrap().clear();
        let stats = working.await.unwrap().unwrap();
        assert_eq!(
            (stats.done, stats.failed, stats.dead),
            (21, 0, 0),
            "{fault:?}: it waits for that one"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_worker_waits_for_a_dependency_of_every_document() {
    let place = Place::simulated();
    for number in 0..200 {
        place.add(&format!("{number}"), Priority::Normal).await;
    }
    let (convert, stop) = (Fake::new(Manner::Fails(Fault::Unavailable)), Shutdown::default());
    *convert.outage.lock().unwrap() = Some("the model".to_owned());
    let working = tokio::spawn(place.work(convert.clone(), false).run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(convert.count() <= 4 * 10, "{} were begun in vain", convert.count());
    stop.request();
    working.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_at_fault_is_given_up_at_once() {
    let place = Place::new();
    let hash = place.add("locked", Priority::Normal).await;
    let convert = Fake::new(Manner::Refuses);
    assert_eq!(place.work_once(&convert).await.dead, 1);
    assert_eq!(place.store.json(&dead_key(&hash))["reason"], "encrypted");
    assert_eq!(convert.calls(&hash), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_original_that_does_not_match_its_hash_is_given_up() {
    let place = Place::new();
    let hash = place.add("good", Priority::Normal).await;
    let raw = format!("store/raw/{hash}.pdf");
    place.store.put(&raw, "%PDF other".into(), &Default::default()).await.unwrap();
    let convert = Fake::new(Manner::Well);
    place.work_once(&convert).await;
    assert_eq!(convert.count(), 0);
    assert_eq!(place.store.json(&dead_key(&hash))["reason"], "corrupt");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_repairs_only_its_own_leftovers_at_its_start() {
    let place = Place::new();
    let (mine, others) =
        (place.add("mine", Priority::Normal).await, place.add("others", Priority::Normal).await);
    place.claim("w-0", &mine).await;
    place.claim("w-1", &others).await;
    let convert = Fake::new(Manner::Well);
    let mut work = place.work(convert.clone(), true);
    work.terms.name = Some("w".to_owned());
    let tally = work.run(Shutdown::default()).await.unwrap();
    assert_eq!((tally.done, convert.calls(&mine)), (1, 1));
    let kept = [lock_key(&others), todo_key(Priority::Normal, &others)];
    assert_eq!(place.marks(), kept, "it may still run elsewhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_on_one_machine_have_two_names() {
    let place = Place::new();
    let settings = BucketSettings::default();
    let take = || WorkerRegistration::register(&place.bucket, None, &settings);
    let (one, other) = tokio::join!(take(), take());
    let (mut one, other) = (one.unwrap(), other.unwrap());
    assert_ne!(one.identity().id, other.identity().id);
    let freed = one.identity().id.clone();
    one.unregister(&place.bucket, &Default::default()).await.unwrap();
    assert_eq!(take().await.unwrap().identity().id, freed, "a seat that was given up is free");
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_workers_convert_each_of_two_thousand_documents_once() {
    let place = Place::new();
    for number in 0..2_000 {
        place.add(&format!("{number}"), Priority::ALL[number % 5]).await;
    }
    let convert = Fake::new(Manner::Well);
    let workers: Vec<_> = (0..20)
        .map(|_| tokio::spawn(place.work(convert.clone(), true).run(Shutdown::default())))
        .collect();
    let mut done = 0;
    for worker in workers {
        done += worker.await.unwrap().unwrap().done;
    }
    assert_eq!((done, convert.count()), (2_000, 2_000));
    assert!(convert.calls.lock().unwrap().values().all(|calls| *calls == 1));
    assert_eq!(place.store.keys("store/out/").len(), 2_000);
    assert!(place.marks().is_empty());
}

fn two_hours_fast() -> SystemTime {
    SystemTime::now() + Duration::from_secs(7200)
}

fn two_hours_slow() -> SystemTime {
    SystemTime::now() - Duration::from_secs(7200)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_two_hours_off_neither_steals_a_lock_nor_keeps_one() {
    for clock in [two_hours_fast, two_hours_slow] {
        let place = Place::new();
        let hash = place.add("contested", Priority::Normal).await;
        let off =
            Arc::new(BlobForgeBucket::new(place.store.clone(), StoreClock::with_local(clock)));
        let theirs = Place { store: place.store.clone(), bucket: off };
        place.claim("right", &hash).await;
        assert!(sweep(&theirs).await.is_empty(), "a live lock of a worker whose clock is right");
        place.store.age(&lock_key(&hash), ABANDONED);
        assert_eq!(sweep(&theirs).await.len(), 1);
        theirs.claim("off", &hash).await;
        assert!(sweep(&place).await.is_empty(), "a live lock of a worker whose clock is off");
        place.store.age(&lock_key(&hash), ABANDONED);
        assert_eq!(sweep(&place).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_two_hours_off_neither_steals_a_message_nor_sees_it_early() {
    for clock in [two_hours_fast, two_hours_slow] {
        let place = Place::new();
        let hour = Duration::from_secs(3600);
        let queue = |clock| {
            let engine = RecordStore::new(place.store.clone(), StoreClock::with_local(clock));
            ObjectQueue::with_engine(engine, hour, None)
        };
        let (off, right) = (queue(clock), queue(SystemTime::now));
        for (sender, receiver) in [(&off, &right), (&right, &off)] {
            let later = OutgoingMessage {
                delay: hour,
                ..OutgoingMessage::from_body(uuid::Uuid::new_v4().to_string())
            };
            sender.send(&[later]).await.pop().unwrap().unwrap();
            assert!(receiver.receive(1, Duration::ZERO).await.unwrap().is_empty(), "an hour early");
            sender.send(&[OutgoingMessage::from_body("now")]).await.pop().unwrap().unwrap();
            let taken = sender.receive(1, Duration::ZERO).await.unwrap().pop().unwrap();
            assert!(receiver.receive(1, Duration::ZERO).await.unwrap().is_empty(), "it is locked");
            sender.acknowledge(&[taken.receipt]).await.pop().unwrap().unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_is_given_up_at_a_time_of_the_stores_clock() {
    let store = Arc::new(ControlledStore::simulated());
    let queue = ObjectQueue::new(store.clone(), Duration::from_secs(3600), Some(0));
    queue.send(&[OutgoingMessage::from_body("deadly")]).await.pop().unwrap().unwrap();
    assert!(queue.receive(1, Duration::ZERO).await.unwrap().is_empty(), "it is given up");
    let dead = store.keys("queue/dead/").pop().unwrap();
    let at = store.json(&dead)["moved_to_dead_at"].as_str().unwrap().to_owned();
    assert!(at.starts_with("1970-01-12T13:46:"), "{at} is another clock's");
    assert!(store.keys("queue/todo/").is_empty() && store.keys("queue/processing/").is_empty());
}

/// Larger than any record: three MiB, as by a faulty producer.
fn oversized() -> bytes::Bytes {
    vec![b'x'; 3 << 20].into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_marker_that_cannot_be_read_keeps_no_other_document_waiting() {
    let place = Place::new();
    let bad = place.add("bad", Priority::Critical).await;
    let marker = todo_key(Priority::Critical, &bad);
    place.store.put(&marker, oversized(), &Default::default()).await.unwrap();
    let (convert, stop) = (Fake::new(Manner::Well), Shutdown::default());
    let working = tokio::spawn(place.work(convert.clone(), false).run(stop.clone()));
    for number in 0..3 {
        let good = place.add(&format!("good {number}"), Priority::Normal).await;
        until("it is done", || place.store.keys("store/out/").contains(&out_key(&good))).await;
    }
    stop.request();
    working.await.unwrap().unwrap();
    assert_eq!(place.marks(), std::slice::from_ref(&marker), "it stays, and nobody has it locked");
    let shown =
        docmill_compat::bucket::find_document(&place.bucket, &bad, false).await.unwrap_err();
    assert!(shown.context.contains(&marker), "{shown}");
}

#[tokio::test]
async fn the_janitor_goes_on_behind_a_mark_that_cannot_be_read() {
    let place = Place::new();
    for number in 0..5 {
        let hash = place.add(&format!("{number}"), Priority::Normal).await;
        place.claim("dead", &hash).await;
        place.store.age(&lock_key(&hash), ABANDONED);
    }
    let first = place.store.keys("queue/processing/").remove(0);
    place.store.put(&first, oversized(), &Default::default()).await.unwrap();
    place.store.age(&first, ABANDONED);
    let queued = vec![("queued".to_owned(), 1); 4];
    assert_eq!(sweep(&place).await, queued);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_be_read_keeps_no_other_waiting_and_is_not_read_at_every_look() {
    let store = Arc::new(ControlledStore::simulated());
    let queue = ObjectQueue::new(store.clone(), Duration::from_secs(3600), None);
    let marker = todo_key(Priority::Critical, &"ab".repeat(32));
    store.put(&marker, oversized(), &Default::default()).await.unwrap();
    for body in ["one", "two", "three"] {
        queue.send(&[OutgoingMessage::from_body(body)]).await.pop().unwrap().unwrap();
        let taken = queue.receive(1, Duration::ZERO).await.unwrap().pop().unwrap();
        assert_eq!(taken.body, body);
        queue.acknowledge(&[taken.receipt]).await.pop().unwrap().unwrap();
    }
    assert_eq!(queue.depth().await.unwrap().ready, 0);
    let before = store.reads.load(std::sync::atomic::Ordering::SeqCst);
    for _ in 0..10 {
        assert!(queue.receive(1, Duration::ZERO).await.unwrap().is_empty());
    }
    assert_eq!(store.reads.load(std::sync::atomic::Ordering::SeqCst), before);
    assert_eq!(store.keys("queue/"), [marker]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_the_store_answers_with_a_failure_for_ever_keeps_no_other_waiting() {
    let store = Arc::new(ControlledStore::simulated());
    let queue = ObjectQueue::new(store.clone(), Duration::from_secs(3600), None);
    let marker = todo_key(Priority::Critical, &"ab".repeat(32));
    store.put(&marker, bytes::Bytes::new(), &Default::default()).await.unwrap();
    store.fail_reads_of(&marker);
    for body in ["one", "two", "three"] {
        queue.send(&[OutgoingMessage::from_body(body)]).await.pop().unwrap().unwrap();
        let taken = queue.receive(1, Duration::ZERO).await.unwrap().pop().unwrap();
        assert_eq!(taken.body, body);
        queue.acknowledge(&[taken.receipt]).await.pop().unwrap().unwrap();
    }
    assert_eq!(store.keys("queue/"), [marker]);
}

/// A document that failed, marked so now.
async fn mark_failed(place: &Place, text: &str) {
    let hash = place.add(text, Priority::Normal).await;
    place.store.delete(&todo_key(Priority::Normal, &hash)).await.unwrap();
    let failed = json!({"error": "transient", "worker": "w", "retries": 0}).to_string();
    place.store.put(&failed_key(&hash), failed.into(), &Default::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_long_pass_of_the_janitor_costs_its_worker_no_registration() {
    let place = Place::simulated();
    BucketSettings::set(&place.bucket, "heartbeat_interval", 10).await.unwrap();
    BucketSettings::set(&place.bucket, "stale_timeout_minutes", 1).await.unwrap();
    for number in 0..50 {
        mark_failed(&place, &number.to_string()).await;
    }
    tokio::time::sleep(Duration::from_secs(120)).await;
    let (convert, stop) = (Fake::new(Manner::Hangs), Shutdown::default());
    let mut work = place.work(convert, false);
    (work.terms.name, work.terms.each_list) = (Some("w".to_owned()), Duration::from_secs(3600));
    let working = tokio::spawn(work.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(5)).await;
    // A document takes the janitor several seconds, and a pass longer than a registration lasts.
    place.store.reads_take(Duration::from_secs(2));
    let seat = "registry/workers/w-0.json";
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let age = place.store.age_of(seat);
        assert!(age < Duration::from_secs(30), "said that it lives {age:?} ago");
    }
    let mended = place.store.keys("queue/todo/").len();
    assert!(mended > 5, "{mended} of 50 within five minutes");
    stop.request();
    working.await.unwrap().unwrap();
    place.store.reads_take(Duration::ZERO);
    assert_eq!(place.store.json(seat)["status"], "stopped");
    assert!(place.store.keys("queue/processing/").is_empty(), "the pass ended between documents");
}

#[tokio::test(start_paused = true)]
async fn a_failed_document_whose_pause_is_not_over_costs_the_janitor_no_request() {
    let place = Place::simulated();
    let settings = BucketSettings::default();
    // The clock is asked once.
    sweep_bucket(&place.bucket, &settings, SweepOptions::default()).await.unwrap();
    for number in 0..50 {
        mark_failed(&place, &number.to_string()).await;
    }
    let before = place.store.reads.load(std::sync::atomic::Ordering::SeqCst);
    sweep_bucket(&place.bucket, &settings, SweepOptions::default()).await.unwrap();
    assert_eq!(place.store.reads.load(std::sync::atomic::Ordering::SeqCst), before);
    assert_eq!(place.store.keys("queue/failed/").len(), 50);
}

#[tokio::test(start_paused = true)]
async fn each_dead_letter_is_read_once_in_a_reading_however_many_there_are() {
    let store = Arc::new(ControlledStore::simulated());
    let queue = ObjectQueue::new(store.clone(), Duration::from_secs(3600), Some(0));
    for number in 0..300 {
        let message = OutgoingMessage::from_body(number.to_string());
        queue.send(&[message]).await.pop().unwrap().unwrap();
    }
    assert!(queue.receive(300, Duration::ZERO).await.unwrap().is_empty(), "they are given up");
    let gets = || store.reads.load(std::sync::atomic::Ordering::SeqCst);
    let hidden = Duration::from_secs(30);
    for reading in 0..2 {
        let (before, mut receipts, mut seen) = (gets(), Vec::new(), BTreeSet::new());
        loop {
            let letters = queue.receive_dead(10, hidden).await.unwrap();
            if letters.is_empty() {
                break;
            }
            for letter in letters {
                assert!(seen.insert(letter.delivery.message_id), "it comes a second time");
                receipts.push(letter.delivery.receipt);
            }
        }
        assert_eq!((seen.len(), gets() - before), (300, 300), "reading {reading}");
        // Released letters become visible again, from the first.
        for released in queue.release_dead(&receipts).await {
            released.unwrap();
        }
    }
}

#[tokio::test]
async fn a_bucket_that_ignores_conditions_is_refused_with_the_reason() {
    let place = Place::new();
    docmill_storage::conditions::check_conditional_writes(&*place.store, "").await.unwrap();
    place.store.lenient.store(true, std::sync::atomic::Ordering::SeqCst);
    let refused =
        docmill_storage::conditions::check_conditional_writes(&*place.store, "").await.unwrap_err();
    assert!(refused.context.contains("If-None-Match"), "{refused}");
    assert!(place.store.keys("").is_empty(), "the probe is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversion_that_takes_too_long_is_a_failure() {
    let place = Place::new();
    let hash = place.add("endless", Priority::Normal).await;
    BucketSettings::set(&place.bucket, "conversion_timeout", 1).await.unwrap();
    let convert = Fake::new(Manner::Hangs);
    let work = docmill_compat::bucket::BucketWorkerSetup {
        bucket: place.bucket.clone(),
        convert,
        terms: terms(true),
    };
    assert_eq!(work.run(Shutdown::default()).await.unwrap().failed, 1);
    let error = place.store.json(&failed_key(&hash))["error"].clone();
    assert!(error.as_str().unwrap().starts_with("timeout"), "{error}");
}
