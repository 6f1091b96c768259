//! Hooks: asked before and after the reading, over real HTTP; what they may do to a document, and that
//! none of their failures ends one.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::time::Duration;

use docmill_client::webhook::{parse_secrets, sign_message};
use docmill_core::config::{Config, HookConfig, HookFailure, HookMoment};
use docmill_core::model::IngestionId;
use docmill_core::model::digest::sha256_hex;
use docmill_operations::inspect::load_histories;
use docmill_storage::s3::S3Store;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::receiver::{ReceivedMessage, ReceiverMood, SECRET, WebhookReceiver};
use crate::support::documents;
use crate::support::moto::Moto;
use crate::support::process::{Process, docmill};
use crate::support::world::{SOON, World, s3_client, until};

/// Tries while a hook is down: more would make an hour of the wait if it doubled.
const OUTAGE_TRIES: usize = 5;
/// The longest wait between two of them: `retry.unavailable_delay`, a quarter more, and some seconds.
const MAX_OUTAGE_WAIT: Duration = Duration::from_secs(80);

/// A hook at this address.
fn hook(name: &str, at: HookMoment, url: &str) -> HookConfig {
    HookConfig {
        name: name.to_owned(),
        at,
        url: url.to_owned().into(),
        secret: SECRET.to_owned().into(),
        secret_file: std::path::PathBuf::new(),
        tenant: String::new(),
        kinds: Vec::new(),
        on_failure: HookFailure::Defer,
        include_original: false,
        include_data: false,
    }
}

/// Settings with these hooks, and leave to reach this machine.
fn with_hooks(config: &mut Config, services: Vec<HookConfig>) {
    config.webhooks.allow_http = true;
    config.webhooks.allowed_networks = vec!["127.0.0.0/8".parse().unwrap()];
    config.hooks.timeout = Duration::from_secs(1);
    config.hooks.services = services;
}

fn answering(answer: &Value) -> ReceiverMood {
    ReceiverMood::Answer(answer.to_string())
}

/// The end of an ingestion: status, kind, reasons for review, detail and fields of hooks.
async fn end_of(world: &World, id: IngestionId) -> String {
    let columns = "concat_ws(' ', status, reason, kind, array_to_string(review_reasons, ','),
        needs_human_review, detail, hooks)";
    world.column(id, columns).await.unwrap()
}

async fn has_ended(world: &World, id: IngestionId) -> bool {
    world.column(id, "status").await.as_deref() != Some("in-progress")
}

/// A document that a worker with one hook has worked on: its id, and the questions that were asked.
async fn ask_about(
    world: &World,
    moment: HookMoment,
    answer: &Value,
) -> (IngestionId, Vec<ReceivedMessage>) {
    let receiver = WebhookReceiver::start(answering(answer)).await;
    let url = receiver.url();
    let worker = world.worker_with(|config| with_hooks(config, vec![hook("erp", moment, &url)]));
    let worker = worker.await;
    let id = world.submit("a.pdf", documents::invoice("H-1")).await;
    until(SOON, || async { has_ended(world, id).await }).await;
    world.until_empty().await;
    worker.stop().await;
    (id, receiver.received())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_before_the_reading_lets_a_document_go_on_stops_it_or_names_its_kind() {
    let world = World::new().await;
    let fields = json!({"mailbox": "ap", "score": 0.25});
    for (answer, expected) in [
        (json!({"answer": "continue"}), "completed invoice"),
        (
            json!({"answer": "stop", "reason": "not_ours"}),
            "failed gate_refused hook:erp:not_ours t stopped by hook erp: not_ours",
        ),
        (json!({"answer": "add", "kind": "contract", "fields": fields}), "contract"),
    ] {
        let (id, asked) = ask_about(&world, HookMoment::Before, &answer).await;
        let end = end_of(&world, id).await;
        assert!(end.contains(expected), "{answer}: {end}");
        assert_eq!(asked.len(), 1, "{answer}");
        let stopped = answer["answer"] == "stop";
        let transcript = world.column(id, "transcription_file_path").await;
        assert_eq!(transcript.is_none(), stopped, "no page is read of one that is stopped");
        let shown = load_histories(&world.database.db(), &id.to_string()).await.unwrap();
        let added = shown[0].hooks.clone();
        assert_eq!(added, answer.get("fields").map(|fields| json!({ "erp": fields })));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_signed_and_has_facts_of_the_document_but_nothing_of_its_content() {
    let world = World::new().await;
    let (id, asked) = ask_about(&world, HookMoment::Before, &json!({"answer": "continue"})).await;
    let question = &asked[0];
    let secrets = parse_secrets(SECRET).unwrap();
    let timestamp = question.timestamp.parse().unwrap();
    let signed = sign_message(&secrets, &question.id, timestamp, &question.body).unwrap();
    assert_eq!(question.signatures, signed);
    let content = documents::invoice("H-1");
    let told = question.json();
    assert_eq!(told["type"], "hook.before");
    let data = &told["data"];
    assert_eq!(data["hook"], "erp");
    assert_eq!(data["ingestion_id"], id.to_string());
    assert_eq!(data["size"], content.len());
    assert_eq!(data["sha256"], sha256_hex(&content));
    assert_eq!(data["page_count"], 1);
    assert_eq!(
        (&data["tenant"], &data["kind"], &data["data"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert!(!question.body.contains("H-1"), "{}", question.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_after_the_reading_flags_a_result_stops_it_or_adds_fields_beside_its_data() {
    let world = World::new().await;
    for (answer, expected) in [
        (
            json!({"answer": "add", "flags": ["new_supplier"], "fields": {"centre": "4711"}}),
            ["completed invoice", "hook:erp:new_supplier t", "{\"erp\": {\"centre\": \"4711\"}}"],
        ),
        (
            json!({"answer": "stop", "reason": "closed_year"}),
            ["failed gate_refused invoice", "hook:erp:closed_year t", "hook erp: closed_year"],
        ),
    ] {
        let (id, asked) = ask_about(&world, HookMoment::After, &answer).await;
        let end = end_of(&world, id).await;
        assert!(expected.iter().all(|part| end.contains(part)), "{answer}: {end}");
        let number = world.column(id, "structured_data ->> 'invoice_number'").await;
        assert_eq!(number.as_deref(), Some("H-1"), "the data is kept, and no field of it changed");
        let data = &asked[0].json()["data"];
        assert_eq!((&data["status"], &data["kind"]), (&json!("completed"), &json!("invoice")));
        assert!(data.get("data").is_none(), "only by a setting");
    }
}

/// Answers that no hook should give.
fn hostile(own: &str) -> Vec<(&'static str, ReceiverMood)> {
    vec![
        ("an error", ReceiverMood::Status(500)),
        ("no such page", ReceiverMood::Status(404)),
        ("no right", ReceiverMood::Status(401)),
        ("an empty answer", ReceiverMood::Status(200)),
        ("a redirect", ReceiverMood::Redirect(own.to_owned())),
        ("no answer", ReceiverMood::Hang),
        ("an answer without end", ReceiverMood::Endless),
        ("a page", ReceiverMood::Answer("<html>SECRETMARK</html>".to_owned())),
        ("a kind that is none", answering(&json!({"answer": "add", "kind": "SECRETMARK"}))),
        ("a reason in words", answering(&json!({"answer": "stop", "reason": "SECRET MARK"}))),
        ("a long one", ReceiverMood::Answer(format!("{{}}{}", " ".repeat(65 << 10)))),
    ]
}

/// Whether it passes by itself.
fn is_outage(case: &str) -> bool {
    ["an error", "no answer"].contains(&case)
}

/// Seconds until the next attempt.
async fn wait_of(world: &World, id: IngestionId) -> u64 {
    let seconds = "ceil(extract(epoch FROM next_attempt_at - docmill.docmill_now()))::bigint";
    world.column(id, seconds).await.unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_goes_on_soon_after_its_hook_is_back_however_long_that_was_down() {
    let world = World::new().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(503)).await;
    let url = receiver.url();
    let id = world.submit("a.pdf", documents::invoice("H-1")).await;
    for tries in 1..=OUTAGE_TRIES {
        let before = hook("erp", HookMoment::Before, &url);
        let worker = world.worker_with(|config| with_hooks(config, vec![before])).await;
        until(SOON, || async { world.attempts(id).await.len() == tries }).await;
        worker.stop().await;
        let wait = wait_of(&world, id).await;
        assert!(wait <= MAX_OUTAGE_WAIT.as_secs(), "{wait} s after {tries} tries");
        world.pass(MAX_OUTAGE_WAIT).await;
    }
    receiver.answer(answering(&json!({"answer": "continue"})));
    let before = hook("erp", HookMoment::Before, &url);
    let worker = world.worker_with(|config| with_hooks(config, vec![before])).await;
    world.until(id, "status", "completed").await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_before_the_reading_may_fetch_the_original_from_its_bucket_for_some_minutes() {
    let moto = Moto::start().await;
    let mut world = World::new().await;
    let s3 = s3_client(&moto.endpoint());
    s3.create_bucket().bucket("documents").send().await.unwrap();
    world.store = Arc::new(S3Store::with_client(s3, "documents"));
    let receiver = WebhookReceiver::start(answering(&json!({"answer": "continue"}))).await;
    let plain = hook("plain", HookMoment::Before, &receiver.url());
    let shown =
        HookConfig { include_original: true, ..hook("shown", HookMoment::Before, &receiver.url()) };
    let worker = world.worker_with(|config| with_hooks(config, vec![plain, shown])).await;
    let id = world.submit("a.pdf", documents::invoice("H-1")).await;
    world.until(id, "status", "completed").await;
    worker.stop().await;
    let [without, with] = receiver.received().try_into().unwrap();
    assert!(without.json()["data"].get("original").is_none(), "only by a setting");
    let told = with.json();
    let original = &told["data"]["original"];
    let url = original["url"].as_str().unwrap();
    let bytes = reqwest::get(url).await.unwrap().bytes().await.unwrap();
    assert_eq!(bytes, documents::invoice("H-1"));
    assert!(url.contains("X-Amz-Expires=900"), "a quarter of an hour");
    let time = |value: &Value| OffsetDateTime::parse(value.as_str().unwrap(), &Rfc3339).unwrap();
    let good_for = time(&original["expires_at"]) - time(&told["timestamp"]);
    assert!(good_for <= time::Duration::minutes(15), "{good_for}");
    assert!(!world.column(id, "detail").await.unwrap_or_default().contains("X-Amz"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_of_a_hook_and_no_lack_of_one_ends_a_document() {
    let world = World::new().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Hang).await;
    let url = receiver.url();
    let mut waiting = Vec::new();
    for (case, mood) in hostile(&url) {
        receiver.answer(mood);
        let before = hook("erp", HookMoment::Before, &url);
        let worker = world.worker_with(|config| with_hooks(config, vec![before])).await;
        let id = world.submit("a.pdf", documents::invoice("H-1")).await;
        until(SOON, || async { !world.attempts(id).await.is_empty() }).await;
        worker.stop().await;
        let outcome = if is_outage(case) { "throttled" } else { "denied" };
        assert_eq!(world.attempts(id).await, [outcome], "{case}");
        assert_eq!(world.column(id, "attempt_count").await.unwrap(), "0", "{case}: uncounted");
        let said = world.column(id, "detail").await.unwrap();
        assert!(said.starts_with("hook `erp`: "), "{case}: {said}");
        assert!(!said.contains("SECRET"), "{case}: {said}");
        waiting.push(id);
    }
    receiver.answer(answering(&json!({"answer": "continue"})));
    // Longer than `retry.max_deferral`: a document waits as long as its hook is down.
    world.pass(Duration::from_secs(9 * 3600)).await;
    let before = hook("erp", HookMoment::Before, &url);
    let worker = world.worker_with(|config| with_hooks(config, vec![before])).await;
    for id in waiting {
        world.until(id, "status", "completed").await;
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_goes_on_without_a_hook_that_may_be_missed() {
    let world = World::new().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(500)).await;
    let url = receiver.url();
    let [before, after] = [("spam", HookMoment::Before), ("erp", HookMoment::After)]
        .map(|(name, at)| HookConfig { on_failure: HookFailure::Continue, ..hook(name, at, &url) });
    let worker = world.worker_with(|config| with_hooks(config, vec![before, after])).await;
    let id = world.submit("a.pdf", documents::invoice("H-1")).await;
    world.until(id, "status", "completed").await;
    let end = end_of(&world, id).await;
    assert!(end.contains("without hook spam, erp"), "{end}");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_whose_name_leads_into_the_own_network_is_not_asked() {
    let world = World::new().await;
    let receiver = WebhookReceiver::start(answering(&json!({"answer": "continue"}))).await;
    let url = format!("http://localhost:{}/", receiver.address.port());
    let before = hook("erp", HookMoment::Before, &url);
    let worker = world
        .worker_with(|config| {
            with_hooks(config, vec![before]);
            config.webhooks.allowed_networks.clear();
        })
        .await;
    let id = world.submit("a.pdf", documents::invoice("H-1")).await;
    until(SOON, || async { !world.attempts(id).await.is_empty() }).await;
    worker.stop().await;
    let said = world.column(id, "detail").await.unwrap();
    assert!(said.contains("is no address of the Internet"), "{said}");
    assert!(receiver.received().is_empty());
}

/// A worker that dies at a failpoint, with a hook before the reading and one after; the ids of the
/// questions by hook, once another has ended the document.
async fn ids_over_a_death(point: &str) -> [Vec<String>; 2] {
    let world = World::new().await;
    let receiver = WebhookReceiver::start(answering(&json!({"answer": "continue"}))).await;
    let file = world.logs.path().join("hooks.toml");
    let mut text =
        "[webhooks]\nallow_http = true\nallowed_networks = [\"127.0.0.0/8\"]\n".to_owned();
    for at in ["before", "after"] {
        text += &format!(
            "[[hooks.services]]\nname = \"{at}\"\nat = \"{at}\"\nurl = \"{}\"\nsecret = \"{SECRET}\"\n",
            receiver.url()
        );
    }
    std::fs::write(&file, text).unwrap();
    let id = world.submit("a.pdf", documents::invoice("H-1")).await;
    let mut command = docmill(&world, &["worker"], &[]);
    command.arg("--config").arg(&file).env("DOCMILL_FAILPOINTS", format!("{point}=kill@1"));
    let mut first = Process::spawn(command, "warn,docmill=info", world.logs.path());
    assert!(!first.ended(SOON).await.success(), "{point}");
    let _second = Process::worker_with(&world, &file, &[]);
    world.pass_until(|| async { has_ended(&world, id).await }).await;
    assert!(end_of(&world, id).await.starts_with("completed"), "{point}");
    ["before", "after"].map(|name| {
        let asked = receiver.received().into_iter();
        asked.filter(|it| it.json()["data"]["hook"] == name).map(|it| it.id).collect()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_is_asked_again_only_if_its_answer_was_not_stored_and_then_under_the_same_id() {
    for (point, times) in
        [("artefact.before", 2), ("artefact.after", 1), ("result.before", 1), ("result.after", 1)]
    {
        let [before, after] = ids_over_a_death(point).await;
        assert_eq!((before.len(), after.len()), (times, 1), "{point}");
        assert!(before.iter().all(|id| *id == before[0]), "{point}: {before:?}");
        assert_ne!(before[0], after[0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingestion_that_is_opened_again_is_asked_about_anew() {
    let world = World::new().await;
    let stop = json!({"answer": "stop", "reason": "not_ours"});
    let (id, asked) = ask_about(&world, HookMoment::Before, &stop).await;
    let output = docmill(&world, &["retry", &id.to_string()], &[]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let receiver = WebhookReceiver::start(answering(&json!({"answer": "continue"}))).await;
    let url = receiver.url();
    let before = hook("erp", HookMoment::Before, &url);
    let worker = world.worker_with(|config| with_hooks(config, vec![before])).await;
    world.until(id, "status", "completed").await;
    worker.stop().await;
    let again = receiver.received();
    assert_eq!(again.len(), 1);
    assert_ne!(again[0].id, asked[0].id, "a receiver that knows the first takes it for another");
}
