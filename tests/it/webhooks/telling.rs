//! Webhook events: content, recipients, time, signature.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use docmill_core::config::{KindsConfig, ReviewConfig, WebhookEvent};
use docmill_gate::kinds::KindSet;
use docmill_ledger::db::operators::AuditNote;
use docmill_operations::review::{self, AcceptedData, DecidingReviewer};
use docmill_operations::webhooks::{self, WebhookTargetState};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::receiver::{
    OTHER, ReceivedMessage, ReceiverMood, RunningDelivery, SECRET, WebhookReceiver, complete,
    document, execute, fail_again, scalar, target, telling, until_delivered,
};
use crate::support::postgres::TestDatabase;
use crate::support::world::{SOON, until};

pub(super) fn by() -> AuditNote {
    AuditNote { operator: "ann".to_owned(), why: "because".to_owned() }
}

/// HMAC by its definition (RFC 2104), with nothing of what signs.
fn keyed_hash(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x36)).chain_update(text);
    let outer = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x5c));
    outer.chain_update(inner.finalize()).finalize().to_vec()
}

/// Verifies as the specification requires of receivers.
fn is_signed_with(message: &ReceivedMessage, secret: &str) -> bool {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let text = format!("{}.{}.{}", message.id, message.timestamp, message.body);
    let expected = format!("v1,{}", STANDARD.encode(keyed_hash(&key, text.as_bytes())));
    message.signatures.split(' ').any(|signature| signature == expected)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_down_for_an_hour_receives_all_events_in_order_per_document() {
    let database = TestDatabase::create().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(503)).await;
    let config = telling(vec![target("erp", &receiver.url())]);
    let _running = RunningDelivery::start(&database, &config).await;
    let mut known = Vec::new();
    for round in 0..6_u64 {
        database.advance(Duration::from_secs(600 * round)).await;
        let (id, ingestion) = document(&database, "acme").await;
        complete(&database, ingestion).await;
        known.push((id, ingestion));
        // Every existing one has further events.
        for (_, ingestion) in &known {
            fail_again(&database, *ingestion).await;
        }
        let (before, tried) =
            (receiver.received().len(), |count| receiver.received().len() > count);
        until(SOON, || async { tried(before) }).await;
    }
    assert_eq!(receiver.taken().len(), 0);
    let open = "SELECT count(*) FROM webhook_delivery WHERE state IN ('due', 'waiting')";
    let expected: usize = scalar(&database, open).await.parse().unwrap();
    // One completed and one review for each, and two for each failure.
    assert_eq!(expected, 6 + 2 * (6 + 5 + 4 + 3 + 2 + 1));
    database.advance(Duration::from_secs(3600)).await;
    receiver.answer(ReceiverMood::Status(204));
    until(SOON, || async { scalar(&database, open).await == "0" }).await;
    let taken = receiver.taken();
    let ids: BTreeSet<&str> = taken.iter().map(|message| message.id.as_str()).collect();
    assert_eq!((taken.len(), ids.len()), (expected, expected), "each once, and each another one");
    let mut per_document: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for message in &taken {
        per_document.entry(message.document()).or_default().push(message.sequence());
    }
    assert_eq!(per_document.len(), 6);
    for (document, told) in per_document {
        assert!(told.is_sorted(), "{document} was told in the order {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_signed_by_the_specification_with_both_secrets_during_a_rotation() {
    let database = TestDatabase::create().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    let write = |text: &str, seconds: u64| {
        std::fs::write(&file, text).unwrap();
        let then = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(then).unwrap();
    };
    write(SECRET, 1);
    let mut erp = target("erp", &receiver.url());
    (erp.secret, erp.secret_file) = (String::new().into(), file.clone());
    let _running = RunningDelivery::start(&database, &telling(vec![erp])).await;
    for (round, (text, old, new)) in [
        (SECRET.to_owned(), true, false),
        (format!("{OTHER}\n{SECRET}"), true, true),
        (OTHER.to_owned(), false, true),
    ]
    .into_iter()
    .enumerate()
    {
        write(&text, round as u64 + 2);
        let (_, ingestion) = document(&database, "acme").await;
        complete(&database, ingestion).await;
        until(SOON, || async { receiver.taken().len() == round + 1 }).await;
        let message = receiver.taken().pop().unwrap();
        assert_eq!((is_signed_with(&message, SECRET), is_signed_with(&message, OTHER)), (old, new));
        let sent: i64 = message.timestamp.parse().unwrap();
        let now = time::OffsetDateTime::now_utc().unix_timestamp();
        assert!((now - sent).abs() < 60, "the receiver's tolerance is minutes: {sent} at {now}");
        let other = ReceivedMessage { body: message.body.replace("acme", "evil"), ..message };
        assert!(!is_signed_with(&other, SECRET) && !is_signed_with(&other, OTHER));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn outcomes_and_decisions_are_delivered_without_content_by_default() {
    let database = TestDatabase::create().await;
    let thin = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let whole = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let mut config = telling(vec![target("thin", &thin.url()), target("whole", &whole.url())]);
    config.webhooks.targets[1].include_data = true;
    config.web.origin = "https://ops.example.com".to_owned();
    let _running = RunningDelivery::start(&database, &config).await;
    let (id, ingestion) = document(&database, "acme").await;
    complete(&database, ingestion).await;
    until_delivered(&database, 2).await;
    let case = review::load_case(&database.db(), &id.to_string()).await.unwrap();
    let (config, by) = (ReviewConfig::default(), by());
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let ann =
        DecidingReviewer { by, config: &config, kinds: &kinds, take_over: false, effort: None };
    review::accept_document(&database.db(), &case, AcceptedData::Document, &ann).await.unwrap();
    database.advance(config.undo).await;
    for receiver in [&thin, &whole] {
        until(SOON, || async { receiver.taken().len() == 2 }).await;
        let told: Vec<String> = receiver.taken().iter().map(ReceivedMessage::event).collect();
        assert_eq!(told, ["document.completed", "document.accepted"]);
    }
    let message = thin.taken()[0].json();
    let page = format!("https://ops.example.com/ingestions/{ingestion}");
    let expected = json!({
        "document_id": id.to_string(), "ingestion_id": ingestion.to_string(), "tenant": "acme",
        "kind": "invoice", "status": "completed", "reason": null, "needs_human_review": false,
        "review_reasons": [], "sequence": message["data"]["sequence"],
        "links": {
            "page": page,
            "ingestion": format!("https://ops.example.com/api/v1/ingestions/{ingestion}"),
            "result": format!("https://ops.example.com/api/v1/ingestions/{ingestion}/result"),
        },
    });
    assert_eq!(message["data"], expected);
    for message in thin.taken() {
        assert!(!message.body.contains("CONTENTMARK"), "{}", message.body);
    }
    for message in whole.taken() {
        assert_eq!(message.json()["data"]["data"], json!({"total": "CONTENTMARK"}));
    }
    // One event has one id at all targets.
    assert_eq!(thin.taken()[0].id, whole.taken()[0].id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_receives_only_its_tenants_and_events() {
    let database = TestDatabase::create().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let mut erp = target("erp", &receiver.url());
    erp.tenant = "acme".to_owned();
    erp.events = vec![WebhookEvent::Failed, WebhookEvent::ReviewNeeded];
    let _running = RunningDelivery::start(&database, &telling(vec![erp])).await;
    for tenant in ["umbrella", "acme"] {
        let (_, ingestion) = document(&database, tenant).await;
        complete(&database, ingestion).await;
        fail_again(&database, ingestion).await;
    }
    until(SOON, || async { receiver.taken().len() == 2 }).await;
    let written = "SELECT string_agg(event || ' ' || (facts->>'tenant'), ',' ORDER BY id) FROM webhook_delivery";
    let expected = "document.failed acme,document.review_needed acme";
    assert_eq!(scalar(&database, written).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_hangs_keeps_no_other_waiting() {
    let database = TestDatabase::create().await;
    let slow = WebhookReceiver::start(ReceiverMood::Hang).await;
    let quick = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let config = telling(vec![target("slow", &slow.url()), target("quick", &quick.url())]);
    let _running = RunningDelivery::start(&database, &config).await;
    for _ in 0..20 {
        let (_, ingestion) = document(&database, "acme").await;
        complete(&database, ingestion).await;
    }
    until(SOON, || async { quick.taken().len() == 20 }).await;
    assert!(slow.received().len() <= 4, "more at once than webhooks.targets.concurrency");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_answered_gone_receives_nothing_until_enabled_or_moved() {
    let database = TestDatabase::create().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(410)).await;
    let config = telling(vec![target("erp", &receiver.url())]);
    let running = RunningDelivery::start(&database, &config).await;
    let (_, ingestion) = document(&database, "acme").await;
    complete(&database, ingestion).await;
    let disabled = "SELECT disabled_why FROM webhook_target WHERE disabled_at IS NOT NULL";
    until(SOON, || async { !scalar(&database, disabled).await.is_empty() }).await;
    receiver.answer(ReceiverMood::Status(200));
    let (_, next) = document(&database, "acme").await;
    complete(&database, next).await;
    // Every wait is over, and other processes come with the same settings.
    running.stop().await;
    database.advance(Duration::from_secs(3 * 3600)).await;
    let running = RunningDelivery::start(&database, &config).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(receiver.received().len(), 1, "told although it said 410 Gone");
    let db = database.db();
    assert!(webhooks::enable_target(&db, "erp", &by()).await.unwrap());
    until(SOON, || async { receiver.taken().len() == 2 }).await;
    let audit = "SELECT operator || ' ' || action || ' ' || target FROM operator_action";
    assert_eq!(scalar(&database, audit).await, "ann enable webhook:erp");
    running.stop().await;
    execute(&database, "UPDATE webhook_target SET disabled_at = now(), disabled_why = 'gone'")
        .await;
    let elsewhere = format!("http://{}/elsewhere", receiver.address);
    let _running =
        RunningDelivery::start(&database, &telling(vec![target("erp", &elsewhere)])).await;
    assert_eq!(scalar(&database, disabled).await, "", "another address is another chance");
}

pub(super) async fn state_of(database: &TestDatabase, name: &str) -> WebhookTargetState {
    let targets = webhooks::list_targets(&database.db()).await.unwrap();
    targets.into_iter().find(|target| target.name == name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_is_signed_like_the_rest_sent_once_and_to_a_disabled_target_too() {
    let database = TestDatabase::create().await;
    let (receiver, other) = (
        WebhookReceiver::start(ReceiverMood::Status(204)).await,
        WebhookReceiver::start(ReceiverMood::Status(204)).await,
    );
    let config = telling(vec![target("erp", &receiver.url()), target("crm", &other.url())]);
    let _running = RunningDelivery::start(&database, &config).await;
    let _beside = RunningDelivery::start(&database, &config).await;
    execute(&database, "UPDATE webhook_target SET disabled_at = now(), disabled_why = 'gone'")
        .await;
    let db = database.db();
    assert!(!webhooks::ask_test(&db, "nobody", &by()).await.unwrap());
    for (round, (status, problem)) in
        [(204, None), (503, Some("503 Service Unavailable"))].into_iter().enumerate()
    {
        receiver.answer(ReceiverMood::Status(status));
        assert!(webhooks::ask_test(&db, "erp", &by()).await.unwrap());
        let ended = || async { state_of(&database, "erp").await.test_ended_at.is_some() };
        until(SOON, ended).await;
        let state = state_of(&database, "erp").await;
        let answer = (state.test_status, state.test_problem.as_deref());
        assert_eq!(answer, (Some(i32::from(status)), problem));
        assert!(state.test_asked_at <= state.test_ended_at && state.test_ms.is_some());
        assert!(state.disabled_at.is_some() && state.tried_at.is_none(), "a test changes nothing");
        assert_eq!(receiver.received().len(), round + 1, "one delivery a round");
    }
    let messages = receiver.received();
    assert_ne!(messages[0].id, messages[1].id);
    for message in &messages {
        assert!(is_signed_with(message, SECRET) && !is_signed_with(message, OTHER));
        let json = message.json();
        assert_eq!(
            (&json["type"], &json["data"]),
            (&json!("webhook.test"), &json!({"target": "erp"}))
        );
        let at = json["timestamp"].as_str().unwrap();
        time::OffsetDateTime::parse(at, &time::format_description::well_known::Rfc3339).unwrap();
    }
    assert_eq!(other.received().len(), 0);
    let said = "SELECT string_agg(t::text, '') LIKE '%SECRET%' FROM webhook_target t";
    assert_eq!(scalar(&database, said).await, "false");
    let audit =
        "SELECT string_agg(operator || ' ' || action || ' ' || target, ', ') FROM operator_action";
    assert_eq!(scalar(&database, audit).await, "ann test webhook:erp, ann test webhook:erp");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_answer_of_a_target_is_noted_with_its_latency() {
    let database = TestDatabase::create().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let mut config = telling(vec![target("erp", &receiver.url())]);
    config.webhooks.timeout = Duration::from_millis(400);
    let _running = RunningDelivery::start(&database, &config).await;
    assert_eq!(state_of(&database, "erp").await.tried_at, None);
    for (mood, status, least_ms) in [
        (ReceiverMood::Status(200), Some(200), 0),
        (ReceiverMood::Hang, None, 400),
        (ReceiverMood::Status(500), Some(500), 0),
    ] {
        receiver.answer(mood);
        let (_, ingestion) = document(&database, "acme").await;
        complete(&database, ingestion).await;
        let noted = || async {
            let state = state_of(&database, "erp").await;
            state.tried_at.is_some() && state.answer_status == status
        };
        until(SOON, noted).await;
        let answer_ms = state_of(&database, "erp").await.answer_ms.unwrap();
        assert!(answer_ms >= least_ms, "{status:?} in {answer_ms} ms");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_delivered_after_the_undo_period_and_an_undone_one_never() {
    let database = TestDatabase::create().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let running =
        RunningDelivery::start(&database, &telling(vec![target("erp", &receiver.url())])).await;
    let (db, config) = (database.db(), ReviewConfig::default());
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let ann = DecidingReviewer {
        by: by(),
        config: &config,
        kinds: &kinds,
        take_over: false,
        effort: None,
    };
    let accept = async |id: &str| {
        let case = review::load_case(&db, id).await.unwrap();
        review::accept_document(&db, &case, AcceptedData::Document, &ann).await.unwrap();
    };
    let (kept, ingestion) = document(&database, "acme").await;
    complete(&database, ingestion).await;
    let (undone, other) = document(&database, "acme").await;
    complete(&database, other).await;
    until_delivered(&database, 2).await;
    accept(&kept.to_string()).await;
    accept(&undone.to_string()).await;
    // Neither a target that is back nor an operator makes it earlier.
    docmill_ledger::db::lanes::webhooks::hasten_deliveries(&db, "erp").await.unwrap();
    let held = "SELECT id FROM webhook_delivery WHERE event = 'document.accepted' LIMIT 1";
    let held: i64 = scalar(&database, held).await.parse().unwrap();
    docmill_ledger::db::lanes::webhooks::replay_delivery(&db, held).await.unwrap();
    let early = "SELECT count(*) FROM webhook_delivery WHERE event = 'document.accepted'
        AND (due_at < occurred_at + interval '59 seconds' OR tries > 0)";
    assert_eq!(scalar(&database, early).await, "0");
    review::undo_decision(&db, undone.0, &ann.by).await.unwrap();
    database.advance(config.undo + Duration::from_secs(1)).await;
    until(SOON, || async { receiver.taken().len() == 3 }).await;
    running.stop().await;
    let told: Vec<(String, String)> =
        receiver.taken().iter().map(|it| (it.document(), it.event())).collect();
    assert!(told.contains(&(kept.to_string(), "document.accepted".to_owned())), "{told:?}");
    let open = "SELECT count(*) FROM webhook_delivery WHERE state IN ('due', 'waiting')";
    assert_eq!((told.len(), scalar(&database, open).await), (3, "0".to_owned()));
}
