//! The batch lane against stand-ins of the vendors: one outcome per document, and no answer paid
//! for twice, despite lost replies, killed leaders, late or missing answers.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use docmill::app::App;
use docmill_core::config::{BedrockBatchConfig, Config, LlmProvider, LlmServer};
use docmill_core::model::IngestionId;
use docmill_operations::batches::{BatchCollector, BatchPassReport};
use docmill_testkit::models::{BatchPlan, Script, Server, Vendor};

use crate::chain::without_supplier;
use crate::costs::prices;
use crate::llm::vendors::federation_at;
use crate::maintenance::maintenance_of;
use crate::support::documents;
use crate::support::process::Process;
use crate::support::world::{Running, SOON, World, until};

const VENDORS: [Vendor; 4] = [Vendor::Openai, Vendor::Anthropic, Vendor::Bedrock, Vendor::Gemini];
/// Maximum duration of a lead, and of the wait for a submission to appear.
pub(crate) const LEAD: Duration = Duration::from_secs(301);

/// Bedrock batches through a stand-in at this address.
fn bedrock_terms(address: &str) -> BedrockBatchConfig {
    BedrockBatchConfig {
        role_arn: "arn:aws:iam::123456789012:role/batches".to_owned(),
        bucket: "questions".to_owned(),
        least_requests: 1,
        access_key_id: "AKIATEST".to_owned(),
        secret_access_key: "secret".to_owned().into(),
        endpoint: address.to_owned(),
        s3_endpoint: format!("{address}/s3"),
        ..BedrockBatchConfig::default()
    }
}

/// Settings under which the model of a world is asked in the protocol of this vendor.
pub(crate) fn ask_vendor(config: &mut Config, vendor: Vendor) {
    config.llm.provider = match vendor {
        Vendor::Openai => LlmProvider::Openai,
        Vendor::Anthropic => LlmProvider::Anthropic,
        Vendor::Bedrock => LlmProvider::Bedrock,
        Vendor::Gemini => LlmProvider::Gemini,
        Vendor::VertexGemini | Vendor::VertexClaude => LlmProvider::Vertex,
    };
    config.llm.region = "us-east-1".to_owned();
    config.llm.server = LlmServer::Openai;
    config.llm.api_key = match vendor {
        Vendor::VertexGemini | Vendor::VertexClaude => federation_at(&config.llm.base_url).into(),
        _ => "key".to_owned().into(),
    };
    match vendor {
        Vendor::VertexGemini => config.llm.model = "model-1".to_owned(),
        Vendor::VertexClaude => config.llm.model = "claude-model-1".to_owned(),
        _ => {}
    }
}

/// A world whose model is asked in batches.
pub(crate) struct BatchWorld {
    pub(crate) world: World,
    pub(crate) config: Config,
}

impl BatchWorld {
    pub(crate) async fn new(vendor: Vendor) -> Self {
        Self::with_script(vendor, Script::default()).await
    }

    async fn with_script(vendor: Vendor, script: Script) -> Self {
        let world = World::with_model(Script { vendor, ..script }).await;
        let mut config = world.config.clone();
        ask_vendor(&mut config, vendor);
        config.llm.batch.bedrock = bedrock_terms(&config.llm.base_url);
        config.llm.batch.enabled = true;
        config.llm.batch.gather = Duration::ZERO;
        config.llm.batch.poll = Duration::from_secs(1);
        config.cost = prices("0");
        Self { world, config }
    }

    pub(crate) fn model(&self) -> &Server {
        self.world.llm.as_ref().unwrap()
    }

    pub(crate) async fn worker(&self) -> Running {
        let config = self.config.clone();
        self.world.worker_with(|now| *now = config).await
    }

    /// The settings that make a worker process lead this lane, and send messages.
    pub(crate) fn process_settings(&self, vendor: Vendor) -> Vec<(&'static str, String)> {
        let address = self.model().base_url();
        let provider = match vendor {
            Vendor::Openai => "openai",
            Vendor::Anthropic => "anthropic",
            Vendor::Bedrock => "bedrock",
            Vendor::Gemini => "gemini",
            Vendor::VertexGemini | Vendor::VertexClaude => "vertex",
        };
        let settings = [
            ("RETRY__CRASH_ATTEMPTS", "100"),
            ("JANITOR__ENABLED", "true"),
            ("JANITOR__INTERVAL", "1s"),
            ("LLM__PROVIDER", provider),
            ("LLM__SERVER", "openai"),
            ("LLM__API_KEY", "key"),
            ("LLM__BATCH__ENABLED", "true"),
            ("LLM__BATCH__GATHER", "1s"),
            ("LLM__BATCH__POLL", "100ms"),
            ("LLM__REGION", "us-east-1"),
            ("LLM__BATCH__BEDROCK__ROLE_ARN", "arn:aws:iam::123456789012:role/batches"),
            ("LLM__BATCH__BEDROCK__BUCKET", "questions"),
            ("LLM__BATCH__BEDROCK__LEAST_REQUESTS", "1"),
            ("LLM__BATCH__BEDROCK__ENDPOINT", &address),
            ("LLM__BATCH__BEDROCK__S3_ENDPOINT", &format!("{address}/s3")),
        ];
        settings.map(|(key, value)| (key, value.to_owned())).to_vec()
    }

    /// A document that may wait.
    pub(crate) async fn submit_low(&self, number: &str) -> IngestionId {
        let id = self.world.insert("invoice.pdf", documents::invoice(number)).await;
        let low = format!("UPDATE docmill.ingestion SET priority = 'low' WHERE id = '{id}'");
        self.world.execute(&low).await;
        self.world.send(id.to_string()).await;
        id
    }

    /// Submits `count` documents, all waiting in the lane.
    pub(crate) async fn submit_waiting(&self, count: usize) -> Vec<IngestionId> {
        let mut ids = Vec::new();
        for number in 0..count {
            ids.push(self.submit_low(&format!("B-{number}")).await);
        }
        for id in &ids {
            until(SOON, || async { self.world.attempts(*id).await == ["batched"] }).await;
        }
        ids
    }

    pub(crate) async fn collector(&self, holder: &str) -> BatchCollector {
        let app = App::new(self.config.clone());
        let services = Box::pin(app.pipeline_services()).await.unwrap();
        let parts = self.world.parts().await;
        app.batch_collector(&parts, &services, holder.to_owned()).unwrap()
    }

    /// Lets what waits for a look at the vendor be due, and looks.
    pub(crate) async fn pass(&self, collector: &BatchCollector) -> BatchPassReport {
        self.world.pass(Duration::from_secs(20)).await;
        collector.run_pass_as_leader().await.unwrap().unwrap()
    }

    /// Makes passes until these documents have ended.
    pub(crate) async fn finish(&self, collector: &BatchCollector, ids: &[IngestionId]) {
        for _pass in 0..60 {
            if self.open().await == 0 {
                break;
            }
            self.pass(collector).await;
            maintenance_of(&self.world).run_pass(false).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        for id in ids {
            self.world.until(*id, "status", "completed").await;
        }
    }

    pub(crate) async fn open(&self) -> usize {
        let sql = "SELECT count(*)::text FROM docmill.ingestion WHERE status = 'in-progress'";
        self.world.scalar(sql).await.parse().unwrap()
    }

    /// Each document has one outcome, no prompt was answered twice, and this was booked: calls, those
    /// of them in batches, late ones.
    pub(crate) async fn assert_paid_once(&self, ids: &[IngestionId], booked: &str) {
        for id in ids {
            let ends = self.world.attempts(*id).await;
            let done = ends.iter().filter(|end| *end == "completed").count();
            assert_eq!(done, 1, "{ends:?}");
        }
        assert_eq!(self.model().completed_twice(), Vec::<String>::new(), "paid for twice");
        let sql = "SELECT concat_ws(' ', sum(calls), sum(batch_calls), sum(late_calls)) \
                   FROM docmill.spending";
        assert_eq!(self.world.scalar(sql).await, booked, "calls, in batches, late");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_requests_go_in_one_batch_at_half_price_and_others_at_once() {
    let lane = BatchWorld::new(Vendor::Openai).await;
    let worker = lane.worker().await;
    let now = lane.world.submit("invoice.pdf", documents::invoice("N-1")).await;
    lane.world.until(now, "status", "completed").await;
    let ids = lane.submit_waiting(3).await;
    assert_eq!(lane.world.column(ids[0], "attempt_count").await.unwrap(), "0");
    assert_eq!(lane.world.column(ids[0], "deferred_since").await, None, "no streak of failures");
    assert_eq!(lane.model().calls().len(), 1, "nothing is asked for what may wait");
    let reserved = "SELECT (sum(cost_nanos) FILTER (WHERE calls = 0) > 0)::text \
                    FROM docmill.spending";
    assert_eq!(lane.world.scalar(reserved).await, "true", "the budget counts what is asked");
    let collector = lane.collector("a").await;
    assert_eq!(lane.pass(&collector).await.gathered, 1);
    assert!(lane.collector("b").await.run_pass_as_leader().await.unwrap().is_none(), "one leads");
    lane.finish(&collector, &ids).await;
    worker.stop().await;
    assert_eq!(lane.model().batches().len(), 1);
    assert_eq!(lane.model().batches()[0].custom_ids.len(), 3);
    lane.assert_paid_once(&[&ids[..], &[now]].concat(), "4 3 0").await;
    let exact = "SELECT bool_and(cost_nanos = (input_tokens * 1000 + output_tokens * 10000) / 2 \
                 AND saved_nanos = cost_nanos AND cost_nanos > 0)::text \
                 FROM docmill.spending WHERE batch_calls > 0";
    assert_eq!(lane.world.scalar(exact).await, "true", "half of it is saved");
    assert_eq!(lane.world.column(ids[0], "attempt_count").await.unwrap(), "1");
    assert_eq!(lane.model().kept_files(), 0, "nothing stays at the vendor's");
    let left = lane.world.store.list(&format!("ingestions/{}/batch/", ids[0]), None, 9).await;
    assert!(left.unwrap().is_empty(), "nor in the store");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_stays_at_any_vendor_once_a_batch_has_ended() {
    for vendor in VENDORS {
        let lane = BatchWorld::new(vendor).await;
        let worker = lane.worker().await;
        let ids = lane.submit_waiting(2).await;
        let collector = lane.collector("a").await;
        lane.finish(&collector, &ids).await;
        worker.stop().await;
        lane.assert_paid_once(&ids, "2 2 0").await;
        assert_eq!(lane.model().kept_files(), 0, "{vendor:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fewer_questions_than_the_vendor_takes_are_not_handed_in_and_asked_directly_in_the_end() {
    let mut lane = BatchWorld::new(Vendor::Bedrock).await;
    lane.config.llm.batch.bedrock.least_requests = 3;
    let worker = lane.worker().await;
    let two = lane.submit_waiting(2).await;
    let collector = lane.collector("a").await;
    assert_eq!(lane.pass(&collector).await.gathered, 0, "two are too few");
    let third = lane.submit_low("T-1").await;
    until(SOON, || async { lane.world.attempts(third).await == ["batched"] }).await;
    assert_eq!(lane.pass(&collector).await.gathered, 1, "three are enough");
    let ids = [&two[..], &[third]].concat();
    lane.finish(&collector, &ids).await;
    let late = lane.submit_low("L-1").await;
    until(SOON, || async { lane.world.attempts(late).await == ["batched"] }).await;
    lane.pass(&collector).await;
    lane.world.pass(lane.config.llm.batch.deadline).await;
    lane.finish(&collector, &[late]).await;
    worker.stop().await;
    assert_eq!(lane.model().batches().len(), 1);
    lane.assert_paid_once(&[&ids[..], &[late]].concat(), "4 3 0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_submission_was_not_answered_is_found_again_and_never_handed_in_twice() {
    for vendor in VENDORS {
        let lane = BatchWorld::new(vendor).await;
        let worker = lane.worker().await;
        let ids = lane.submit_waiting(2).await;
        let lost = BatchPlan { lost: 1, held: true, ..BatchPlan::default() };
        lane.model().plan_batches(lost);
        let first = lane.collector("first").await;
        assert_eq!(lane.pass(&first).await.failed, 1, "{vendor:?}: the reply is lost");
        // The leader dies with it. One vendor does not list who submitted a batch.
        lane.world.pass(LEAD).await;
        let second = lane.collector("second").await;
        for _look in 0..3 {
            lane.pass(&second).await;
        }
        lane.model().plan_batches(BatchPlan::default());
        lane.finish(&second, &ids).await;
        worker.stop().await;
        assert_eq!(lane.model().batches().len(), 1, "{vendor:?}: handed in once");
        lane.assert_paid_once(&ids, "2 2 0").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_did_not_arrive_is_handed_in_again_only_once_that_is_certain() {
    for vendor in VENDORS {
        let lane = BatchWorld::new(vendor).await;
        let worker = lane.worker().await;
        let ids = lane.submit_waiting(2).await;
        lane.model().plan_batches(BatchPlan { refused: 1, ..BatchPlan::default() });
        let collector = lane.collector("a").await;
        assert_eq!(lane.pass(&collector).await.failed, 1);
        lane.pass(&collector).await;
        assert!(lane.model().batches().is_empty(), "{vendor:?}: it may still show up");
        lane.world.pass(LEAD).await;
        lane.finish(&collector, &ids).await;
        worker.stop().await;
        assert_eq!(lane.model().batches().len(), 1, "{vendor:?}");
        lane.assert_paid_once(&ids, "2 2 0").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_read_twice_are_used_and_paid_for_once() {
    for vendor in VENDORS {
        let lane = BatchWorld::new(vendor).await;
        let worker = lane.worker().await;
        let ids = lane.submit_waiting(3).await;
        lane.model().plan_batches(BatchPlan { broken: 2, ..BatchPlan::default() });
        let collector = lane.collector("a").await;
        lane.finish(&collector, &ids).await;
        worker.stop().await;
        lane.assert_paid_once(&ids, "3 3 0").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_its_batch_leaves_open_is_asked_directly_and_the_others_are_not() {
    for vendor in VENDORS {
        let lane = BatchWorld::new(vendor).await;
        let worker = lane.worker().await;
        let ids = lane.submit_waiting(3).await;
        lane.model().plan_batches(BatchPlan { expired: vec![1], ..BatchPlan::default() });
        let collector = lane.collector("a").await;
        lane.finish(&collector, &ids).await;
        worker.stop().await;
        lane.assert_paid_once(&ids, "3 2 0").await;
        let open = "SELECT (sum(cost_nanos) < 1000000000)::text FROM docmill.spending";
        assert_eq!(lane.world.scalar(open).await, "true", "what was reserved is given back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_batch_fails_whole_each_of_its_documents_is_read_by_one_direct_call() {
    for vendor in VENDORS {
        let lane = BatchWorld::new(vendor).await;
        let worker = lane.worker().await;
        let ids = lane.submit_waiting(3).await;
        lane.model().plan_batches(BatchPlan { fails: true, ..BatchPlan::default() });
        let collector = lane.collector("a").await;
        lane.finish(&collector, &ids).await;
        worker.stop().await;
        assert_eq!(lane.model().batches().len(), 1, "{vendor:?}: it is not handed in again");
        lane.assert_paid_once(&ids, "3 0 0").await;
        let open = "SELECT (sum(cost_nanos) < 1000000000)::text FROM docmill.spending";
        assert_eq!(lane.world.scalar(open).await, "true", "what was reserved is given back");
        let left = "SELECT count(*)::text FROM docmill.batch WHERE state <> 'ended'";
        assert_eq!(lane.world.scalar(left).await, "0", "{vendor:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_of_a_batch_that_the_vendor_turns_away_wait_for_smaller_batches_at_half_price() {
    let lane = BatchWorld::new(Vendor::Openai).await;
    let worker = lane.worker().await;
    let ids = lane.submit_waiting(4).await;
    lane.model().plan_batches(BatchPlan { turned_away: 1, ..BatchPlan::default() });
    let collector = lane.collector("a").await;
    lane.finish(&collector, &ids).await;
    worker.stop().await;
    let sizes: Vec<usize> =
        lane.model().batches().iter().map(|batch| batch.custom_ids.len()).collect();
    assert_eq!(sizes, [4, 2, 2], "whole, then by halves");
    lane.assert_paid_once(&ids, "4 4 0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_model_of_a_chain_has_a_batch_of_its_own_and_where_one_fails_only_that_one_is_asked_again()
 {
    for (fails, booked) in [(false, "2 2 0"), (true, "2 1 0")] {
        let vendor = Vendor::Openai;
        let mut lane = BatchWorld::with_script(vendor, Script::function(without_supplier)).await;
        let stronger = Server::start(Script { vendor, ..Script::default() }).await.unwrap();
        stronger.plan_batches(BatchPlan { fails, ..BatchPlan::default() });
        let address = stronger.base_url();
        let text = format!("model = 'stronger'\nbase_url = '{address}'\napi_key = 'key'");
        lane.config.llm.chain = vec![toml::from_str(&text).unwrap()];
        let worker = lane.worker().await;
        let ids = lane.submit_waiting(1).await;
        let collector = lane.collector("a").await;
        lane.finish(&collector, &ids).await;
        worker.stop().await;
        assert_eq!(lane.world.attempts(ids[0]).await, ["batched", "batched", "completed"]);
        let model = lane.world.column(ids[0], "extraction_model").await;
        assert_eq!(model.as_deref(), Some("stronger"));
        let handed_in = [lane.model().batches().len(), stronger.batches().len()];
        assert_eq!(handed_in, [1, 1], "one for each model");
        // A batch that fails whole answers nothing.
        let answered = [lane.model().calls().len(), stronger.calls().len()];
        assert_eq!(answered, [1, 1], "each answers once, in its batch or directly");
        assert_eq!(stronger.completed_twice(), Vec::<String>::new());
        lane.assert_paid_once(&ids, booked).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_past_its_deadline_is_cancelled_and_its_documents_are_read_by_direct_calls() {
    for vendor in VENDORS {
        let lane = BatchWorld::new(vendor).await;
        let worker = lane.worker().await;
        let ids = lane.submit_waiting(2).await;
        lane.model().plan_batches(BatchPlan { held: true, ..BatchPlan::default() });
        let collector = lane.collector("a").await;
        lane.pass(&collector).await;
        lane.pass(&collector).await;
        assert_eq!(lane.open().await, 2, "they wait");
        lane.world.pass(lane.config.llm.batch.deadline).await;
        lane.finish(&collector, &ids).await;
        worker.stop().await;
        assert!(lane.model().batches()[0].cancelled, "{vendor:?}");
        lane.assert_paid_once(&ids, "2 0 0").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_after_the_direct_call_overwrites_nothing_and_is_counted_as_paid_twice() {
    let lane = BatchWorld::new(Vendor::Openai).await;
    let worker = lane.worker().await;
    let ids = lane.submit_waiting(1).await;
    // It neither ends by itself nor when cancelled.
    lane.model().plan_batches(BatchPlan { held: true, deaf: true, ..BatchPlan::default() });
    let collector = lane.collector("a").await;
    lane.pass(&collector).await;
    let terms = lane.config.llm.batch.clone();
    lane.world.pass(terms.deadline + terms.grace).await;
    lane.finish(&collector, &ids).await;
    let written = "xmin::text || updated_at::text || structured_data::text";
    let before = lane.world.column(ids[0], written).await;
    lane.model().plan_batches(BatchPlan { deaf: true, ..BatchPlan::default() });
    for _look in 0..40 {
        lane.pass(&collector).await;
    }
    worker.stop().await;
    assert_eq!(lane.world.column(ids[0], written).await, before, "the late answer changed the row");
    let booked = "SELECT concat_ws(' ', sum(calls), sum(batch_calls), sum(late_calls)) \
                  FROM docmill.spending";
    assert_eq!(lane.world.scalar(booked).await, "2 1 1", "once, however often it is read");
    let open = "SELECT count(*)::text FROM docmill.batch WHERE state <> 'ended'";
    assert_eq!(lane.world.scalar(open).await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_killed_at_random_points_of_the_lane_lose_no_document_and_pay_for_none_twice() {
    for vendor in VENDORS {
        let lane = BatchWorld::new(vendor).await;
        let mut ids = Vec::new();
        for number in 0..4 {
            ids.push(lane.submit_low(&format!("K-{number}")).await);
        }
        let own = lane.process_settings(vendor);
        let more = [("CLAIM__LEASE", "3s"), ("QUEUE__VISIBILITY", "3s")];
        let settings: Vec<(&str, &str)> =
            own.iter().map(|(key, value)| (*key, value.as_str())).chain(more).collect();
        let (mut kills, mut submissions_lost) = (0_u64, 0);
        while lane.open().await > 0 {
            assert!(kills < 100, "it does not come to an end");
            if kills % 4 == 0 {
                submissions_lost += 1;
                lane.model().plan_batches(BatchPlan { lost: 1, broken: 1, ..BatchPlan::default() });
            }
            let mut worker = Process::worker(&lane.world, &settings);
            // Longer from life to life: where the machine is slow, a start takes a second by itself.
            let life = Duration::from_millis(1000 + 100 * kills + fastrand::u64(..1500));
            // The first ends with its first batch, however fast the machine is.
            let handed_in = || kills == 0 && !lane.model().batches().is_empty();
            let _over = tokio::time::timeout(life, async {
                while lane.open().await > 0 && !handed_in() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            })
            .await;
            worker.kill();
            kills += 1;
            lane.world.pass(LEAD).await;
        }
        assert!(submissions_lost > 0 && kills > 1, "{kills} kills");
        for id in &ids {
            assert_eq!(lane.world.column(*id, "status").await.unwrap(), "completed");
        }
        assert_eq!(lane.model().completed_twice(), Vec::<String>::new(), "{vendor:?} {kills}");
        let asked: usize = lane.model().batches().iter().map(|it| it.custom_ids.len()).sum();
        assert_eq!(asked, 4, "{vendor:?}: each question is in one batch");
    }
}
