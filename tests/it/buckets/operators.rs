//! Operators' changes.

use std::collections::BTreeMap;
use std::time::Duration;

use docmill_compat::bucket::{
    self as bucket, BucketAction, BucketClaimResult, BucketManifest, BucketSettings, BucketState,
    RebuildOptions, SweepOptions, sweep_bucket,
};
use docmill_compat::object_ledger::OWN_FOLDER;
use docmill_compat::objects::blobforge::{dead_key, lock_key, out_key, raw_key, todo_key};
use docmill_core::fault::Fault;
use docmill_core::model::{DocumentId, IngestionId, Priority};
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::{GetOptions, GetResult, ObjectStore as _, keys};
use docmill_worker::runner::JobEnd;

use super::{ABANDONED, Fake, Manner, Place, until};

async fn dead(place: &Place) -> String {
    let hash = place.add("dead", Priority::High).await;
    let convert = Fake::new(Manner::Refuses);
    place.work_once(&convert).await;
    hash
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_gives_a_dead_document_one_more_run_or_with_reset_all_of_them() {
    let settings = BucketSettings::default();
    for (reset, expected) in [(false, 1), (true, 3)] {
        let place = Place::new();
        let hash = dead(&place).await;
        let to = reset.then_some(Priority::Critical);
        let done =
            bucket::retry_document(&place.bucket, &settings, &hash, to, reset).await.unwrap();
        assert_eq!(done.change, BucketAction::Queued);
        let priority = if reset { Priority::Critical } else { Priority::High };
        assert_eq!(place.marks(), [todo_key(priority, &hash)]);
        let convert = Fake::new(Manner::Fails(Fault::Internal));
        for _ in 0..5 {
            place.work_once(&convert).await;
            let at_once = SweepOptions { at_once: true, dry_run: false };
            sweep_bucket(&place.bucket, &settings, at_once).await.unwrap();
        }
        // Refused in its first run, so that two were left.
        let left = if reset { expected } else { 2 };
        assert_eq!(convert.calls(&hash), left);
        let history = place.store.json(&dead_key(&hash))["history"].clone();
        assert_eq!(history.as_array().unwrap().len(), 1 + left as usize, "it is all remembered");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_without_failure_is_not_retried_and_one_in_work_is_left_alone() {
    let place = Place::new();
    let hash = place.add("fine", Priority::Normal).await;
    let settings = BucketSettings::default();
    let retry = || bucket::retry_document(&place.bucket, &settings, &hash, None, true);
    assert_eq!(retry().await.unwrap().change, BucketAction::Nothing);
    place.claim("w", &hash).await;
    let before = place.store.json(&lock_key(&hash));
    assert_eq!(retry().await.unwrap().change, BucketAction::Busy);
    let moved = bucket::reprioritize_document(&place.bucket, &hash, Priority::Low).await.unwrap();
    assert_eq!(moved.change, BucketAction::Busy);
    let removed = bucket::remove_document(&place.bucket, &hash, false).await.unwrap();
    assert_eq!(removed.change, BucketAction::Busy);
    assert_eq!(place.store.json(&lock_key(&hash)), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_document_is_moved_with_its_record() {
    let place = Place::new();
    let hash = place.add("moved", Priority::Normal).await;
    place.claim("dead", &hash).await;
    place.store.age(&lock_key(&hash), ABANDONED);
    sweep_bucket(&place.bucket, &BucketSettings::default(), SweepOptions::default()).await.unwrap();
    let done =
        bucket::reprioritize_document(&place.bucket, &hash, Priority::Critical).await.unwrap();
    assert_eq!(done.change, BucketAction::Moved);
    let key = todo_key(Priority::Critical, &hash);
    assert_eq!(place.marks(), std::slice::from_ref(&key));
    assert_eq!(place.store.json(&key)["retries"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_stops_a_cancelled_ingestion() {
    let place = Place::new();
    let hash = place.add("unwanted", Priority::Normal).await;
    BucketSettings::set(&place.bucket, "heartbeat_interval", 1).await.unwrap();
    let (convert, stop) = (Fake::new(Manner::Hangs), Shutdown::default());
    let working = tokio::spawn(place.work(convert.clone(), false).run(stop.clone()));
    until("it is in work", || convert.count() == 1).await;
    let asked = bucket::cancel_document(&place.bucket, &hash).await.unwrap();
    assert_eq!(asked.change, BucketAction::Asked);
    until("it is given up", || place.marks() == [dead_key(&hash)]).await;
    assert_eq!(place.store.json(&dead_key(&hash))["reason"], "cancelled");
    stop.request();
    assert_eq!(working.await.unwrap().unwrap().cancelled, 1);
    let waiting = place.add("waiting", Priority::Low).await;
    let done = bucket::cancel_document(&place.bucket, &waiting).await.unwrap();
    assert_eq!(done.change, BucketAction::Cancelled);
    assert_eq!(
        bucket::cancel_document(&place.bucket, &waiting).await.unwrap().change,
        BucketAction::Nothing
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_document_is_dead_however_its_run_ends_without_a_result() {
    for end in ["it fails", "it is put back", "its worker dies", "a janitor dies over it as well"] {
        let place = Place::new();
        let hash = place.add("unwanted", Priority::Normal).await;
        let mut claim = place.claim("w", &hash).await;
        let asked = bucket::cancel_document(&place.bucket, &hash).await.unwrap();
        assert_eq!(asked.change, BucketAction::Asked, "{end}");
        let withdrawn = match end {
            "it fails" => claim.fail(&place.bucket, "transient: an end", 3).await.unwrap(),
            "it is put back" => claim.return_document(&place.bucket, "signal").await.unwrap(),
            _ => {
                let settings = BucketSettings::default();
                if end == "a janitor dies over it as well" {
                    place.store.age(&lock_key(&hash), ABANDONED);
                    // It has taken the lock over, and writes nothing more.
                    place.store.dies_after(Some(1));
                    let sweep = sweep_bucket(&place.bucket, &settings, SweepOptions::default());
                    let has_lock = || place.store.json(&lock_key(&hash))["worker"] == "janitor";
                    tokio::select! {
                        _ = sweep => panic!("it outlives its store"),
                        () = until("the janitor has the lock", has_lock) => {}
                    }
                    place.store.dies_after(None);
                }
                place.store.age(&lock_key(&hash), ABANDONED);
                let swept = sweep_bucket(&place.bucket, &settings, SweepOptions::default()).await;
                assert_eq!(swept.unwrap().acts[0].act, "dead", "{end}");
                JobEnd::Cancelled
            }
        };
        assert_eq!(withdrawn, JobEnd::Cancelled, "{end}");
        assert_eq!(place.marks(), [dead_key(&hash)], "{end}");
        assert_eq!(place.store.json(&dead_key(&hash))["reason"], "cancelled", "{end}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_removal_takes_the_document_from_its_worker() {
    let place = Place::new();
    let hash = place.add("secret", Priority::Normal).await;
    BucketManifest::rebuild(&place.bucket, Default::default()).await.unwrap();
    let mut claim = place.claim("w", &hash).await;
    let removed = bucket::remove_document(&place.bucket, &hash, true).await.unwrap();
    assert_eq!(removed.change, BucketAction::Removed);
    claim.publish(&place.bucket, "zip".into()).await.unwrap();
    let left: Vec<_> = place.store.keys("").into_iter().filter(|key| key.contains(&hash)).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(BucketManifest::load(&place.bucket).await.unwrap().entries.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_janitors_dry_run_lists_its_actions_and_changes_nothing() {
    let place = Place::new();
    for text in ["a", "b"] {
        let hash = place.add(text, Priority::Normal).await;
        place.claim("dead", &hash).await;
        place.store.age(&lock_key(&hash), ABANDONED);
    }
    let before: Vec<_> = place.marks().iter().map(|key| place.store.json(key)).collect();
    let how = SweepOptions { dry_run: true, at_once: true };
    let would = sweep_bucket(&place.bucket, &BucketSettings::default(), how).await.unwrap();
    let after: Vec<_> = place.marks().iter().map(|key| place.store.json(key)).collect();
    assert_eq!(after, before);
    let done = sweep_bucket(&place.bucket, &BucketSettings::default(), SweepOptions::default())
        .await
        .unwrap();
    assert_eq!(would.acts, done.acts);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_state_is_counted_and_listed() {
    let place = Place::new();
    let failing = place.add("fails", Priority::High).await;
    place.work_once(&Fake::new(Manner::Fails(Fault::Transient))).await;
    let done = place.add("done", Priority::High).await;
    place.work_once(&Fake::new(Manner::Well)).await;
    let dead = dead(&place).await;
    let working = place.add("working", Priority::Normal).await;
    place.claim("w", &working).await;
    let waiting = place.add("waiting", Priority::Low).await;
    let standing = bucket::count_states(&place.bucket).await.unwrap();
    assert_eq!(standing.todo.get("4_low"), Some(&1));
    let counts = (standing.processing, standing.failed, standing.dead, standing.done);
    assert_eq!(counts, (1, 1, 1, 1));
    for (hash, state) in [
        (failing, BucketState::Failed),
        (done, BucketState::Done),
        (dead, BucketState::Dead),
        (working, BucketState::Processing),
        (waiting, BucketState::Todo),
    ] {
        let listed = bucket::list_documents(&place.bucket, Some(state), None, 10).await.unwrap();
        assert!(listed.iter().any(|document| document.hash == hash), "{state:?}");
        assert_eq!(
            bucket::find_document(&place.bucket, &hash, false).await.unwrap().state,
            Some(state)
        );
    }
    let board = bucket::load_dashboard(&place.bucket).await.unwrap();
    assert_eq!((board.running.len(), board.running[0].worker.as_str()), (1, "w"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_was_put_back_shows_the_reason_everywhere() {
    let place = Place::new();
    let hash = place.add("put back", Priority::Normal).await;
    place.add("fresh", Priority::High).await;
    let mut claim = place.claim("w", &hash).await;
    claim.return_document(&place.bucket, Fault::Denied.code()).await.unwrap();
    let shown = bucket::find_document(&place.bucket, &hash, false).await.unwrap();
    assert_eq!((shown.put_back.as_deref(), shown.runs), (Some("denied"), 0));
    let listed = bucket::list_documents(&place.bucket, None, None, 10).await.unwrap();
    let whys: Vec<_> = listed.iter().map(|one| (one.hash == hash, &one.put_back)).collect();
    assert_eq!(whys, [(false, &None), (true, &Some("denied".to_owned()))]);
    let board = bucket::load_dashboard(&place.bucket).await.unwrap();
    assert_eq!(board.put_back, BTreeMap::from([("denied".to_owned(), 1)]));
    place.claim("w", &hash).await;
    let shown = bucket::find_document(&place.bucket, &hash, false).await.unwrap();
    assert_eq!(shown.put_back, None, "it is in work again");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unqueued_original_is_listed_and_a_retry_queues_it_in_its_format() {
    let place = Place::new();
    let marked = place.add("marked", Priority::Normal).await;
    let done = place.add("done", Priority::Critical).await;
    place.store.put(&out_key(&done), "zip".into(), &Default::default()).await.unwrap();
    place.store.delete(&todo_key(Priority::Critical, &done)).await.unwrap();
    let hash = "ab".repeat(32);
    let raw = raw_key(&hash, "png");
    place.store.put(&raw, "an original".into(), &Default::default()).await.unwrap();
    let rebuilt =
        BucketManifest::rebuild(&place.bucket, RebuildOptions { dry_run: true }).await.unwrap();
    assert_eq!(rebuilt.unmarked, std::slice::from_ref(&hash));
    assert_eq!(bucket::find_document(&place.bucket, &hash, false).await.unwrap().state, None);
    let settings = BucketSettings::default();
    let retry =
        async |hash| bucket::retry_document(&place.bucket, &settings, hash, None, false).await;
    assert_eq!(retry(&hash).await.unwrap().change, BucketAction::Queued);
    for other in [&marked, &done, &"cd".repeat(32), &hash] {
        assert_eq!(retry(other).await.unwrap().change, BucketAction::Nothing, "{other}");
    }
    let claim = place.claim("w", &hash).await;
    assert_eq!((claim.run, claim.extension.as_str()), (1, "png"));
    let rebuilt = BucketManifest::rebuild(&place.bucket, RebuildOptions::default()).await.unwrap();
    assert!(rebuilt.unmarked.is_empty());
}

/// An operator's command, killed after `writes` writes; whether it was killed.
async fn killed_after<T>(place: &Place, writes: u32, command: impl Future<Output = T>) -> bool {
    place.store.dies_after(Some(writes));
    // Simulated: as long as anything still happens, no time passes.
    let ended = tokio::time::timeout(Duration::from_secs(60), command).await.is_ok();
    place.store.dies_after(None);
    !ended
}

#[tokio::test(start_paused = true)]
async fn an_operators_command_that_is_killed_counts_no_run() {
    for writes in 0.. {
        let place = Place::simulated();
        let hash = place.add("moved", Priority::Normal).await;
        // The clock is asked before.
        place.bucket.probe().await.unwrap();
        sweep_bucket(&place.bucket, &BucketSettings::default(), SweepOptions::default())
            .await
            .unwrap();
        let moving = bucket::reprioritize_document(&place.bucket, &hash, Priority::High);
        let was_killed = killed_after(&place, writes, moving).await;
        tokio::time::sleep(ABANDONED).await;
        sweep_bucket(&place.bucket, &BucketSettings::default(), SweepOptions::default())
            .await
            .unwrap();
        let markers = place.marks();
        assert!(!markers.is_empty() && !markers.contains(&lock_key(&hash)), "after {writes}");
        let claim = match place.try_claim("w", &hash, Priority::High).await {
            BucketClaimResult::Ours(claim) => claim,
            _ => Box::new(place.claim("w", &hash).await),
        };
        assert_eq!(claim.run, 1, "after {writes} writes");
        if !was_killed {
            assert!(writes > 3, "it was killed at {writes} different writes");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_is_killed_at_any_write_is_ended_by_the_janitor() {
    let settings = BucketSettings::default();
    for writes in 1.. {
        let place = Place::simulated();
        let hash = place.add("secret", Priority::Normal).await;
        place.work_once(&Fake::new(Manner::Well)).await;
        keep_artefacts(&place, &hash).await;
        BucketManifest::rebuild(&place.bucket, Default::default()).await.unwrap();
        let removing = bucket::remove_document(&place.bucket, &hash, false);
        let was_killed = killed_after(&place, writes, removing).await;
        tokio::time::sleep(ABANDONED).await;
        let swept = sweep_bucket(&place.bucket, &settings, SweepOptions::default()).await.unwrap();
        let acts: Vec<_> = swept.acts.iter().map(|act| act.act).collect();
        assert_eq!(acts, if was_killed { vec!["removed"] } else { vec![] }, "after {writes}");
        let is_left = |key: &String| key.contains(&hash) || key.starts_with(OWN_FOLDER);
        let left: Vec<_> = place.store.keys("").into_iter().filter(is_left).collect();
        assert!(left.iter().all(|key| key.contains("spending")), "after {writes}: {left:?}");
        assert!(BucketManifest::load(&place.bucket).await.unwrap().entries.is_empty());
        if !was_killed {
            assert!(writes > 8, "it was killed at {writes} different writes");
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_others_survive_and_bad_ones_are_refused() {
    let place = Place::new();
    let theirs = "{\"max_retries\": 5, \"s3_supports_conditional_writes\": true}";
    let key = "registry/config.json";
    use docmill_storage::ObjectStore as _;
    place.store.put(key, theirs.into(), &Default::default()).await.unwrap();
    BucketSettings::set(&place.bucket, "heartbeat_interval", 30).await.unwrap();
    let stored = place.store.json(key);
    assert_eq!(stored["max_retries"], 5);
    assert_eq!(stored["s3_supports_conditional_writes"], true);
    for (name, value) in [("max_retries", 0), ("heartbeat_interval", 10_000), ("colour", 1)] {
        BucketSettings::set(&place.bucket, name, value).await.unwrap_err();
    }
    assert_eq!(place.store.json(key), stored);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_do_not_parse_are_refused_and_never_written_over() {
    let key = "registry/config.json";
    for broken in
        ["{\"max_retries\": 5,}", "{\"max_retries\": \"5\"}", "{\"max_retries\": 5.5}", ""]
    {
        let place = Place::new();
        place.store.put(key, broken.into(), &Default::default()).await.unwrap();
        let refused = BucketSettings::load(&place.bucket).await.unwrap_err();
        assert_eq!(refused.fault, Fault::Misconfigured, "{broken}");
        assert!(refused.context.contains("line 1 column"), "{broken}: {refused}");
        BucketSettings::set(&place.bucket, "heartbeat_interval", 30).await.unwrap_err();
        let what = GetOptions { at_most: 1000, if_match: None };
        let GetResult::Found(kept) = place.store.get(key, what).await.unwrap() else { panic!() };
        assert_eq!(kept.bytes, broken.as_bytes());
    }
}

/// Leaves what an earlier run has kept of a document: its record, a finished page, a transcript.
async fn keep_artefacts(place: &Place, hash: &str) -> Vec<String> {
    let id = IngestionId::first_for_document(DocumentId::from_content(hash, ""));
    let kept =
        [keys::attempt_record_key(id), keys::page_part_key(id, 1, 1), keys::transcription_key(id)];
    let kept = kept.map(|key| format!("{OWN_FOLDER}{key}"));
    for key in &kept {
        place.store.put(key, "{}".into(), &Default::default()).await.unwrap();
    }
    kept.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn artefacts_go_with_their_result_or_document_only() {
    let place = Place::new();
    for (priority, how) in ["published", "found done", "mended", "removed", "refused"]
        .into_iter()
        .enumerate()
        .map(|(at, how)| (Priority::ALL[at], how))
    {
        let hash = place.add(how, priority).await;
        let kept = keep_artefacts(&place, &hash).await;
        match how {
            "published" => {
                place.work_once(&Fake::new(Manner::Well)).await;
            }
            // A worker died after it had published and before it had cleared up.
            "found done" => {
                place.store.put(&out_key(&hash), "zip".into(), &Default::default()).await.unwrap();
                let again = place.try_claim("w", &hash, priority).await;
                assert!(matches!(again, BucketClaimResult::Settled), "{again:?}");
            }
            "mended" => {
                let claimed = place.try_claim("w", &hash, priority).await;
                assert!(matches!(claimed, BucketClaimResult::Ours(_)), "{claimed:?}");
                place.store.put(&out_key(&hash), "zip".into(), &Default::default()).await.unwrap();
                place.store.age(&lock_key(&hash), ABANDONED);
                let swept = sweep_bucket(
                    &place.bucket,
                    &BucketSettings::default(),
                    SweepOptions::default(),
                )
                .await;
                assert_eq!(swept.unwrap().acts[0].act, "finished");
            }
            "removed" => {
                bucket::remove_document(&place.bucket, &hash, false).await.unwrap();
            }
            _ => {
                place.work_once(&Fake::new(Manner::Refuses)).await;
            }
        }
        let left = place.store.keys(OWN_FOLDER);
        let expected = match how {
            "refused" => kept,
            "removed" => Vec::new(),
            // A finished page of a run that was killed is not looked for: it goes when it is old.
            _ => kept.get(1).cloned().into_iter().collect(),
        };
        assert_eq!(left, expected, "{how}");
        for key in left {
            place.store.delete(&key).await.unwrap();
        }
    }
}
