//! The leader of the batch lane, a real process, killed before and after every step of a batch, at
//! each vendor, and frozen until its lead expires: each request is in one batch at the vendor, each
//! document has one outcome, no answer is paid for twice.
//!
//! One batch goes through all steps: the next leader continues where the dead one stopped. After a
//! step the state is that before the next one, so leaders are killed only after each;
//! `scripts/batch_kills.sh` kills them before each as well.

use std::time::Duration;

use docmill_core::model::IngestionId;
use docmill_testkit::models::{BatchPlan, Vendor};

use crate::batches::{BatchWorld, LEAD};
use crate::failpoints::{send_signal, worker_that_fails};
use crate::support::process::Process;
use crate::support::world::{SOON, until};

/// The steps of a batch until its documents continue, in order; each is executed by the leader
/// after the one killed at the step before.
const STEPS: [&str; 16] = [
    "batch_lead",
    "batch_gather",
    "batch_try",
    "batch_find",
    "batch_upload",
    "batch_fence",
    "batch_remove",
    "batch_create",
    "batch_handle",
    "batch_poll",
    "batch_fetch",
    "batch_answer",
    "batch_settle",
    "batch_leave",
    "batch_end",
    "batch_wake",
];
/// Those of batches whose deadline passed. A vendor that has cancelled a batch is not asked again, and what
/// it keeps is removed once: so two.
const LATE_POINTS: [&[&str]; 2] = [
    &["batch_cancel.before", "batch_cancel.after", "batch_discard.before"],
    &["batch_late.after", "batch_discard.after"],
];

/// The queue still answers the poll of a killed process: a message sent before its poll of a second
/// ends would be hidden for minutes.
const DEAD_POLL: Duration = Duration::from_millis(1500);

/// Whether a vendor's files of questions are a try's own, so that they are taken from it.
fn has_files_of_tries(vendor: Vendor) -> bool {
    matches!(vendor, Vendor::Openai | Vendor::Gemini)
}

/// After each of the steps that this vendor has, and before it if that is asked for.
fn points_of(vendor: Vendor) -> Vec<String> {
    let sides: &[&str] =
        if std::env::var_os("BATCH_KILLS").is_some() { &["before", "after"] } else { &["after"] };
    let steps = STEPS.iter().filter(|step| **step != "batch_remove" || has_files_of_tries(vendor));
    steps.flat_map(|step| sides.iter().map(move |side| format!("{step}.{side}"))).collect()
}

/// A lane whose leaders are processes.
struct LedLane {
    lane: BatchWorld,
    settings: Vec<(&'static str, String)>,
}

impl LedLane {
    async fn new(vendor: Vendor) -> Self {
        let lane = BatchWorld::new(vendor).await;
        let mut settings = lane.process_settings(vendor);
        // All that waits goes at once, and its documents are another worker's.
        settings.extend([("LLM__BATCH__GATHER", "0s"), ("JANITOR__ENABLED", "false")].map(own));
        Self { lane, settings }
    }

    /// A leader that fails at a failpoint; no other leads before its lead expires.
    async fn fail_leader(&self, plan: &str) -> Process {
        let settings: Vec<(&str, &str)> =
            self.settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let process = worker_that_fails(&self.lane.world, &settings, plan).await;
        self.lane.world.pass(LEAD).await;
        process
    }

    /// The questions of all batches that the vendor has, and how many documents have ended how.
    async fn assert_one_outcome(&self, ids: &[IngestionId], booked: &str) {
        self.lane.assert_paid_once(ids, booked).await;
        let batches = self.lane.model().batches();
        let asked: usize = batches.iter().map(|batch| batch.custom_ids.len()).sum();
        assert_eq!(asked, ids.len(), "each question is in one batch");
        let open = "SELECT count(*)::text FROM docmill.batch WHERE state <> 'ended'";
        assert_eq!(self.lane.world.scalar(open).await, "0", "a batch is left open");
    }
}

fn own((key, value): (&'static str, &str)) -> (&'static str, String) {
    (key, value.to_owned())
}

/// One batch that is answered, whose second question is not, and two that are late.
async fn kill_at_every_step(vendor: Vendor) {
    let led = LedLane::new(vendor).await;
    let lane = &led.lane;
    let worker = lane.worker().await;
    let answered = lane.submit_waiting(3).await;
    lane.model().plan_batches(BatchPlan { expired: vec![1], ..BatchPlan::default() });
    for point in points_of(vendor) {
        led.fail_leader(&format!("{point}=kill")).await;
    }
    let collector = lane.collector("a").await;
    lane.finish(&collector, &answered).await;
    tokio::time::sleep(DEAD_POLL).await;

    lane.model().plan_batches(BatchPlan { held: true, ..BatchPlan::default() });
    let mut ids = answered;
    for points in LATE_POINTS {
        let late = lane.submit_low(&format!("L-{}", ids.len())).await;
        until(SOON, || async { lane.world.attempts(late).await == ["batched"] }).await;
        lane.pass(&collector).await;
        lane.world.pass(lane.config.llm.batch.deadline).await;
        for point in points {
            led.fail_leader(&format!("{point}=kill")).await;
        }
        lane.finish(&collector, &[late]).await;
        tokio::time::sleep(DEAD_POLL).await;
        ids.push(late);
    }
    worker.stop().await;
    assert!(lane.model().batches().iter().skip(1).all(|late| late.cancelled), "{vendor:?}");
    led.assert_one_outcome(&ids, "5 2 0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_killed_at_every_step_of_a_batch_of_openai_pays_for_nothing_twice() {
    Box::pin(kill_at_every_step(Vendor::Openai)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_killed_at_every_step_of_a_batch_of_anthropic_pays_for_nothing_twice() {
    Box::pin(kill_at_every_step(Vendor::Anthropic)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_killed_at_every_step_of_a_batch_of_bedrock_pays_for_nothing_twice() {
    Box::pin(kill_at_every_step(Vendor::Bedrock)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_killed_at_every_step_of_a_batch_of_gemini_pays_for_nothing_twice() {
    Box::pin(kill_at_every_step(Vendor::Gemini)).await;
}

/// A leader freezes at the point until another has submitted the batch, and then continues.
async fn stand_still(vendor: Vendor, point: &str) -> LedLane {
    let led = LedLane::new(vendor).await;
    let lane = &led.lane;
    let worker = lane.worker().await;
    let ids = lane.submit_waiting(2).await;
    lane.model().plan_batches(BatchPlan { held: true, ..BatchPlan::default() });
    let mut still = led.fail_leader(&format!("{point}=stop")).await;
    let second = lane.collector("second").await;
    while lane.model().batches().is_empty() {
        lane.pass(&second).await;
        lane.world.pass(Duration::from_secs(60)).await;
    }
    send_signal(&still, "-CONT");
    let told = ["by another worker", "is handed in", "made twice", "fault="];
    // Anthropic's API cannot identify two tries as one.
    if vendor == Vendor::Anthropic && point == "batch_fence.after" {
        until(SOON, || async { lane.model().batches().get(1).is_some_and(|it| it.cancelled) })
            .await;
    } else {
        until(SOON, || async { told.iter().any(|word| still.log().contains(word)) }).await;
    }
    still.kill();
    lane.model().plan_batches(BatchPlan::default());
    lane.finish(&second, &ids).await;
    worker.stop().await;
    lane.assert_paid_once(&ids, "2 2 0").await;
    led
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_stood_still_before_the_fence_hands_nothing_in_beside_its_successor() {
    for vendor in [Vendor::Openai, Vendor::Anthropic, Vendor::Bedrock, Vendor::Gemini] {
        let led = Box::pin(stand_still(vendor, "batch_fence.before")).await;
        assert_eq!(led.lane.model().batches().len(), 1, "{vendor:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_a_leader_frozen_behind_the_fence_is_refused_or_cancelled_at_once() {
    for vendor in [Vendor::Openai, Vendor::Anthropic, Vendor::Bedrock, Vendor::Gemini] {
        let led = Box::pin(stand_still(vendor, "batch_fence.after")).await;
        let batches = led.lane.model().batches();
        let expected = if vendor == Vendor::Anthropic { 2 } else { 1 };
        assert_eq!(batches.len(), expected, "{vendor:?}");
        assert!(batches.iter().skip(1).all(|batch| batch.cancelled), "{vendor:?}");
    }
}
