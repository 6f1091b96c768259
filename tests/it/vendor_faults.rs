//! A queue of fifty documents while their vendor limits, cuts or garbles: none ends failed for it.

use std::time::Duration;

use docmill_core::config::{Config, LlmServer};
use docmill_core::model::IngestionId;
use docmill_testkit::models::{Answer, Script, Vendor};

use crate::batches::ask_vendor;
use crate::maintenance::maintenance_of;
use crate::support::documents;
use crate::support::world::{Running, World, until};

const DOCUMENTS: usize = 50;
/// Until all have their outcomes.
const END_TIMEOUT: Duration = Duration::from_secs(180);
/// Google's word for a quota of the day, and the wait that it names.
const DAY_QUOTA: (&str, u64) = ("GenerateRequestsPerDayPerProjectPerModel", 35_640);

/// Tokens of a window that has no room for the prompt of an invoice, however it is divided.
const NARROW_WINDOW_TOKENS: usize = 1_024;
/// The same of a gateway that cuts at a length of its own, no power of two.
const ODD_WINDOW_TOKENS: usize = 900;

/// Faults that come in turn, each so many times, and whether it costs a call of its own: a fence is
/// taken off, and thoughts cost one only where the call may think.
struct VendorFault {
    answer: Answer,
    times: usize,
    costs_call: bool,
}

fn fault(answer: Answer, times: usize) -> VendorFault {
    VendorFault { answer, times, costs_call: true }
}

fn free_fault(answer: Answer, times: usize) -> VendorFault {
    VendorFault { answer, times, costs_call: false }
}

/// Faults that every vendor has: lost connections, cut replies, thinking past the cap, fences.
fn common_faults(streams: bool) -> Vec<VendorFault> {
    let cut = if streams { Answer::StreamCut } else { Answer::CutBody };
    vec![
        fault(Answer::Reset, 3),
        fault(cut, 4),
        free_fault(Answer::Thinks { tokens: 20_000 }, 5),
        free_fault(Answer::Fenced, 5),
    ]
}

/// Limits of a vendor in its own words: of the schema, of money, of calls.
fn limits_of(vendor: Vendor) -> Vec<VendorFault> {
    let unions = "Schemas contains too many parameters with union types (39 parameters with type \
                  arrays or anyOf). (limit: 16 parameters with unions).";
    let states = "The specified schema produces a constraint that has too many states for serving.";
    let spending =
        "You have reached your specified API usage limits. You will regain access on 2099-01-01";
    let minute = || Answer::QuotaSpent {
        id: "GenerateContentInputTokensPerModelPerMinute".to_owned(),
        seconds: 1,
    };
    match vendor {
        Vendor::Openai => vec![
            fault(Answer::told(400, "Invalid schema for response_format 'invoice'."), 1),
            fault(Answer::error(429, "insufficient_quota"), 3),
            fault(Answer::throttled("0.2"), 6),
            fault(Answer::Ends { reason: "error".to_owned() }, 6),
        ],
        Vendor::Anthropic => vec![
            fault(Answer::told(400, unions), 1),
            fault(Answer::told(400, spending), 3),
            fault(Answer::error(529, "overloaded_error"), 6),
        ],
        Vendor::Bedrock => vec![
            fault(Answer::told(400, unions), 1),
            fault(Answer::error(400, "ServiceQuotaExceededException"), 3),
            fault(Answer::error(429, "ThrottlingException"), 6),
        ],
        Vendor::Gemini => vec![fault(Answer::told(400, states), 1), fault(minute(), 6)],
        Vendor::VertexGemini => {
            vec![fault(Answer::told(400, states), 1), fault(minute(), 3), fault(overloaded(), 3)]
        }
        Vendor::VertexClaude => vec![
            fault(Answer::told(400, unions), 1),
            fault(Answer::throttled("0.2"), 6),
            fault(overloaded(), 3),
        ],
    }
}

fn overloaded() -> Answer {
    Answer::status(503)
}

fn streams(vendor: Vendor) -> bool {
    !matches!(vendor, Vendor::Gemini | Vendor::VertexGemini)
}

/// Sends fifty documents to a vendor that gives each of its faults in turn before it works.
async fn outlive_every_fault(vendor: Vendor) {
    let mut faults = limits_of(vendor);
    faults.extend(common_faults(streams(vendor)));
    let least: usize = faults.iter().filter(|fault| fault.costs_call).map(|it| it.times).sum();
    let given: usize = faults.iter().map(|fault| fault.times).sum();
    let answers = faults.into_iter().flat_map(|it| std::iter::repeat_n(it.answer, it.times));
    let queue = VendorQueue::open(vendor, Script::of(answers)).await;
    let worker = queue.world.worker().await;
    queue.until_all_complete(&format!("{vendor:?}")).await;
    worker.stop().await;
    let received = queue.received();
    let all = DOCUMENTS + least..=DOCUMENTS + given;
    assert!(all.contains(&received), "{vendor:?}: {received} calls, expected {all:?}");
}

/// Fifty documents of a world whose model speaks a vendor's protocol.
struct VendorQueue {
    world: World,
    ids: Vec<IngestionId>,
}

impl VendorQueue {
    async fn open(vendor: Vendor, script: Script) -> Self {
        let mut world = World::with_model(script.from(vendor)).await;
        ask_vendor(&mut world.config, vendor);
        world.config.llm.stream_above = if streams(vendor) { 0 } else { u32::MAX };
        set_short_waits(&mut world.config);
        let mut ids = Vec::new();
        for number in 0..DOCUMENTS {
            let invoice = documents::invoice(&format!("V-{number}"));
            ids.push(world.insert("a.pdf", invoice).await);
        }
        world.send_all(&ids).await;
        Self { world, ids }
    }

    /// How many calls the vendor received.
    fn received(&self) -> usize {
        self.world.llm.as_ref().map_or(0, |server| server.calls().len())
    }

    /// The vendor answers whole again.
    fn restore_vendor(&self, vendor: Vendor) {
        if let Some(server) = &self.world.llm {
            server.set(Script::default().from(vendor));
        }
    }

    async fn count(&self, condition: &str) -> usize {
        let sql = format!("SELECT count(*)::text FROM docmill.ingestion WHERE {condition}");
        self.world.scalar(&sql).await.parse().unwrap_or_default()
    }

    /// Waits until all have ended, and none failed.
    async fn until_all_complete(&self, case: &str) {
        until(END_TIMEOUT, || async { self.count("status = 'in-progress'").await == 0 }).await;
        self.expect_none_failed(case).await;
        assert_eq!(self.count("status = 'completed'").await, self.ids.len(), "{case}");
    }

    async fn expect_none_failed(&self, case: &str) {
        let failed = "SELECT string_agg(DISTINCT concat_ws(' ', reason, detail), '; ')
                      FROM docmill.ingestion WHERE status = 'failed'";
        assert_eq!(self.world.scalar(failed).await, "", "{case}");
    }
}

/// Waits of seconds where operators have minutes.
fn set_short_waits(config: &mut Config) {
    config.retry.unavailable_delay = Duration::from_secs(1);
    config.retry.base_delay = Duration::from_secs(1);
    config.throttle.open_for = Duration::from_secs(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_queued_documents_outlive_every_fault_of_openai_and_anthropic() {
    outlive_every_fault(Vendor::Openai).await;
    outlive_every_fault(Vendor::Anthropic).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_queued_documents_outlive_every_fault_of_bedrock_and_gemini() {
    outlive_every_fault(Vendor::Bedrock).await;
    outlive_every_fault(Vendor::Gemini).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_queued_documents_outlive_every_fault_of_vertex_ai() {
    outlive_every_fault(Vendor::VertexGemini).await;
    outlive_every_fault(Vendor::VertexClaude).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_queued_documents_outlive_replies_without_a_whole_answer() {
    for vendor in [Vendor::Openai, Vendor::Anthropic] {
        let script = Script::function(|_| Answer::Thinks { tokens: 1_000_000 });
        let queue = VendorQueue::open(vendor, script).await;
        let worker = queue.world.worker().await;
        queue.until_all_complete("thoughts").await;
        worker.stop().await;
        assert_eq!(queue.received(), 2 * DOCUMENTS, "each document again, with less thinking");
    }
}

/// The worker of the next day: the pause of a provider is in the memory of the one before.
async fn worker_of_the_next_day(queue: &VendorQueue, before: Running) -> Running {
    before.stop().await;
    queue.world.pass(Duration::from_secs(DAY_QUOTA.1 + 3_600)).await;
    let worker = queue.world.worker().await;
    maintenance_of(&queue.world).run_pass(false).await;
    worker
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_queued_documents_wait_for_the_next_day_of_a_quota() {
    let (id, seconds) = DAY_QUOTA;
    for vendor in [Vendor::Gemini, Vendor::VertexGemini] {
        let spent = Answer::QuotaSpent { id: id.to_owned(), seconds };
        let queue = VendorQueue::open(vendor, Script::always(spent)).await;
        let worker = queue.world.worker().await;
        let waits = "status = 'in-progress' AND next_attempt_at > docmill.docmill_now()
                     + interval '9 hours'";
        until(END_TIMEOUT, || async { queue.count(waits).await == DOCUMENTS }).await;
        let asked = queue.received();
        assert!(asked <= 20, "{vendor:?}: {asked} calls of ten slots before the pause");
        queue.restore_vendor(vendor);
        let worker = worker_of_the_next_day(&queue, worker).await;
        queue.until_all_complete(&format!("{vendor:?}")).await;
        worker.stop().await;
    }
}

/// Sends fifty documents to a server that shortens their prompts to so many tokens without a word, and
/// replies about the rest.
async fn outwait_shortened_prompts(vendor: Vendor, server: LlmServer, window: usize) {
    let case = format!("{vendor:?} {server:?}");
    let cutting = Script { window: Some(window), ..Script::default() };
    let mut queue = VendorQueue::open(vendor, cutting).await;
    queue.world.config.llm.server = server;
    let worker = queue.world.worker().await;
    until(END_TIMEOUT, || async { worker.monitor.open_failure().is_some() }).await;
    queue.expect_none_failed(&case).await;
    assert_eq!(
        queue.count("status = 'completed'").await,
        0,
        "{case}: a reply about a part is used"
    );
    queue.restore_vendor(vendor);
    queue.until_all_complete(&case).await;
    worker.stop().await;
    let numbers = "SELECT count(DISTINCT structured_data->>'invoice_number')::text
                   FROM docmill.ingestion WHERE structured_data->>'invoice_number' LIKE 'V-%'";
    assert_eq!(queue.world.scalar(numbers).await, DOCUMENTS.to_string(), "{case}");
    let outcomes = "SELECT string_agg(DISTINCT outcome, ' ' ORDER BY outcome) FROM docmill.attempt";
    assert_eq!(queue.world.scalar(outcomes).await, "completed misconfigured", "{case}");
    let booked = "SELECT sum(calls)::text FROM docmill.spending";
    let paid = queue.received().to_string();
    assert_eq!(
        queue.world.scalar(booked).await,
        paid,
        "{case}: shortened prompts are paid for too"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_queued_documents_wait_for_a_window_that_has_room_for_their_prompt() {
    outwait_shortened_prompts(Vendor::Openai, LlmServer::Ollama, NARROW_WINDOW_TOKENS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_queued_documents_wait_while_any_server_shortens_their_prompts_to_any_length() {
    outwait_shortened_prompts(Vendor::Openai, LlmServer::Other, ODD_WINDOW_TOKENS).await;
    outwait_shortened_prompts(Vendor::Anthropic, LlmServer::Other, ODD_WINDOW_TOKENS).await;
}
