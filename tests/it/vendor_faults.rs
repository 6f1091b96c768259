//! A queue of fifty documents while their vendor limits, cuts or garbles: none ends failed for it.

use std::time::Duration;

use docmill_testkit::models::{Answer, Script, Vendor};

use crate::batches::ask_vendor;
use crate::support::documents;
use crate::support::world::{World, until};

const DOCUMENTS: usize = 50;
/// Until all have their outcomes.
const END_TIMEOUT: Duration = Duration::from_secs(180);

/// A per-minute quota in Google's words.
fn minute_quota() -> Answer {
    let id = "GenerateContentInputTokensPerModelPerMinute".to_owned();
    Answer::QuotaSpent { id, seconds: 1 }
}

/// Anthropic's limit of spending, which is a 400.
fn spending_limit() -> Answer {
    let words =
        "You have reached your specified API usage limits. You will regain access on 2099-01-01";
    Answer::told(400, words)
}

/// Sends fifty documents to a vendor whose first `calls` replies are the fault.
async fn outlive(vendor: Vendor, fault: Answer, calls: usize) {
    let case = format!("{vendor:?}: {fault:?}");
    let script = Script::of(std::iter::repeat_n(fault, calls));
    let received = calls_until_all_complete(&case, vendor, script).await;
    // A fence costs no further call.
    let has_arrived = if calls > DOCUMENTS { received == DOCUMENTS } else { received > DOCUMENTS };
    assert!(has_arrived, "{case}: {received} calls");
}

/// Sends fifty documents to a vendor; the calls that it received until all were completed.
async fn calls_until_all_complete(case: &str, vendor: Vendor, script: Script) -> usize {
    let mut world = World::with_model(script.from(vendor)).await;
    ask_vendor(&mut world.config, vendor);
    world.config.retry.unavailable_delay = Duration::from_secs(1);
    world.config.retry.base_delay = Duration::from_secs(1);
    world.config.throttle.open_for = Duration::from_secs(1);
    let mut ids = Vec::new();
    for number in 0..DOCUMENTS {
        let invoice = documents::invoice(&format!("V-{number}"));
        ids.push(world.insert("a.pdf", invoice).await);
    }
    world.send_all(&ids).await;
    let worker = world.worker().await;
    let ended = "SELECT count(*)::text FROM docmill.ingestion WHERE status <> 'in-progress'";
    let all = DOCUMENTS.to_string();
    until(END_TIMEOUT, || async { world.scalar(ended).await == all }).await;
    worker.stop().await;
    let failed = "SELECT string_agg(DISTINCT concat_ws(' ', reason, detail), '; ')
                  FROM docmill.ingestion WHERE status = 'failed'";
    assert_eq!(world.scalar(failed).await, "", "{case}");
    world.llm.as_ref().map_or(0, |server| server.calls().len())
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_queued_documents_outlive_a_spent_quota() {
    outlive(Vendor::Openai, Answer::error(429, "insufficient_quota"), 6).await;
    outlive(Vendor::Anthropic, spending_limit(), 6).await;
    outlive(Vendor::Gemini, minute_quota(), 12).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_queued_documents_outlive_an_overloaded_vendor() {
    outlive(Vendor::Anthropic, Answer::error(529, "overloaded_error"), 12).await;
    outlive(Vendor::Bedrock, Answer::throttled("0.2"), 12).await;
    outlive(Vendor::Bedrock, Answer::Reset, 8).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_queued_documents_outlive_replies_without_a_whole_answer() {
    for vendor in [Vendor::Openai, Vendor::Anthropic] {
        let script = Script::function(|_| Answer::Thinks { tokens: 1_000_000 });
        let received = calls_until_all_complete("thoughts", vendor, script).await;
        assert_eq!(received, 2 * DOCUMENTS, "each document again, with less thinking");
    }
    outlive(Vendor::Anthropic, Answer::Fenced, 1_000).await;
    outlive(Vendor::Gemini, Answer::CutBody, 8).await;
}
