//! The outbox: what is given up, replayed and kept, and what it costs where there is much of it.

use std::sync::Arc;
use std::time::Duration;

use docmill_core::config::Config;
use docmill_ledger::db::Db;
use docmill_ledger::db::lanes::webhooks as rows;
use docmill_operations::webhooks::{self, DeliveryQuery};
use sqlx::Executor as _;

use super::receiver::{
    ReceiverMood, RunningDelivery, WebhookReceiver, complete, document, execute, fail_again,
    scalar, target, telling, until_delivered,
};
use super::telling::by;
use crate::maintenance::{maintenance_over, memory_queue};
use crate::support::postgres::TestDatabase;
use crate::support::row_reads::rows_read_by;
use crate::support::world::{SOON, until};

const STATES: &str =
    "SELECT string_agg(event || ' ' || state, ', ' ORDER BY id) FROM webhook_delivery";

fn dead_of(target: &str) -> DeliveryQuery {
    DeliveryQuery { target: target.to_owned(), dead: true, after: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_deliveries_are_listed_and_replayed_with_their_id_on_request() {
    let database = TestDatabase::create().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(500)).await;
    let mut config = telling(vec![target("erp", &receiver.url())]);
    config.webhooks.give_up_after = Duration::from_secs(2 * 24 * 3600);
    let _running = RunningDelivery::start(&database, &config).await;
    let (_, ingestion) = document(&database, "acme").await;
    complete(&database, ingestion).await;
    let noted = "SELECT count(*) FROM webhook_delivery WHERE lease_token IS NULL AND tries = 1";
    until(SOON, || async { scalar(&database, noted).await == "1" }).await;
    // A day later: what comes now is not given up with the first.
    database.advance(Duration::from_secs(24 * 3600)).await;
    fail_again(&database, ingestion).await;
    // As long as it is tried, what comes after it waits.
    let tried = "SELECT count(*) FROM webhook_delivery WHERE lease_token IS NULL AND tries = 2";
    until(SOON, || async { scalar(&database, tried).await == "1" }).await;
    let waiting = "document.completed due, document.failed waiting, document.review_needed waiting";
    assert_eq!(scalar(&database, STATES).await, waiting);
    database.advance(Duration::from_secs(2 * 24 * 3600 + 60)).await;
    until(SOON, || async { scalar(&database, STATES).await.contains("completed dead") }).await;
    // The next one is being tried, too: a failure noted after the leap would wait from then on.
    let next = "SELECT count(*) FROM webhook_delivery
        WHERE event = 'document.failed' AND lease_token IS NULL AND tries = 1";
    until(SOON, || async { scalar(&database, next).await == "1" }).await;
    // Later messages are delivered, with a gap in their numbers.
    receiver.answer(ReceiverMood::Status(200));
    database.advance(Duration::from_secs(2 * 24 * 3600 + 7200)).await;
    until(SOON, || async { receiver.taken().len() == 2 }).await;
    let dead = webhooks::list_deliveries(&database.db(), &dead_of("erp"), 10).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead.first().unwrap().last_problem.as_deref(), Some("500 Internal Server Error"));
    // Deliveries are recorded shortly afterwards.
    let told = || async {
        let targets = webhooks::list_targets(&database.db()).await.unwrap();
        targets.first().map(|target| (target.open, target.dead)) == Some((0, 1))
    };
    until(SOON, told).await;
    let done = webhooks::replay_dead(&database.db(), "erp", &by()).await.unwrap();
    assert_eq!((done.replayed.len(), done.left.len()), (1, 0));
    until(SOON, || async { receiver.taken().len() == 3 }).await;
    let (tries, replayed) = (receiver.received(), receiver.taken().pop().unwrap());
    assert_eq!(
        (replayed.event().as_str(), &replayed.id),
        ("document.completed", &tries.first().unwrap().id)
    );
    // Delivered messages can be sent again too.
    let delivered =
        scalar(&database, "SELECT max(id) FROM webhook_delivery").await.parse().unwrap();
    webhooks::replay_deliveries(&database.db(), &[delivered], &by()).await.unwrap();
    until(SOON, || async { receiver.taken().len() == 4 }).await;
    let audit = "SELECT count(*) FROM operator_action WHERE action = 'replay' AND operator = 'ann'";
    assert_eq!(scalar(&database, audit).await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_selected_delivery_is_sent_once_more_and_no_other() {
    let database = TestDatabase::create().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let config = telling(vec![target("erp", &receiver.url())]);
    let _running = RunningDelivery::start(&database, &config).await;
    for _ in 0..3 {
        let (_, ingestion) = document(&database, "acme").await;
        complete(&database, ingestion).await;
    }
    until_delivered(&database, 3).await;
    let first: i64 =
        scalar(&database, "SELECT min(id) FROM webhook_delivery").await.parse().unwrap();
    let chosen = [first + 2, first, first + 2, first + 9];
    let done = webhooks::replay_deliveries(&database.db(), &chosen, &by()).await.unwrap();
    assert_eq!((done.replayed, done.left), (vec![first, first + 2], vec![first + 9]));
    until_delivered(&database, 3).await;
    let events = "SELECT string_agg(event_id::text, ',' ORDER BY id) FROM webhook_delivery";
    let events = scalar(&database, events).await;
    let taken = receiver.taken();
    let times = |event: &str| taken.iter().filter(|message| message.id == event).count();
    assert_eq!(events.split(',').map(times).collect::<Vec<_>>(), [2, 1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rolled_back_events_are_not_delivered_and_none_are_written_without_targets() {
    let database = TestDatabase::create().await;
    let (_, unheard) = document(&database, "acme").await;
    complete(&database, unheard).await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let _running =
        RunningDelivery::start(&database, &telling(vec![target("erp", &receiver.url())])).await;
    let (_, undone) = document(&database, "acme").await;
    let mut session = database.pool().begin().await.unwrap();
    let sql = format!(
        "UPDATE ingestion SET status = 'completed', completed_at = docmill_now(), valid_structured_data = true, structured_data = '{{}}' WHERE id = '{undone}'"
    );
    session.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
    let inside: i64 = sqlx::query_scalar("SELECT count(*) FROM webhook_delivery")
        .fetch_one(&mut *session)
        .await
        .unwrap();
    assert_eq!(inside, 1, "it is written in the transaction of what it tells");
    session.rollback().await.unwrap();
    let (_, kept) = document(&database, "acme").await;
    complete(&database, kept).await;
    until(SOON, || async { !receiver.taken().is_empty() }).await;
    assert_eq!(scalar(&database, "SELECT count(*) FROM webhook_delivery").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_beside_the_next_write_leaves_no_delivery_waiting() {
    let database = TestDatabase::create().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let config = telling(vec![target("erp", &receiver.url())]);
    let _running = RunningDelivery::start(&database, &config).await;
    let (_, ingestion) = document(&database, "acme").await;
    // Each of these is written while its predecessor is being delivered.
    for _ in 0..40 {
        complete(&database, ingestion).await;
        fail_again(&database, ingestion).await;
        let again = format!(
            "UPDATE ingestion SET status = 'in-progress', reason = NULL, completed_at = NULL,
                 valid_structured_data = NULL, needs_human_review = false, review_reasons = '{{}}'
             WHERE id = '{ingestion}'"
        );
        execute(&database, &again).await;
    }
    let open = "SELECT count(*) FROM webhook_delivery WHERE state IN ('due', 'waiting')";
    until(SOON, || async { scalar(&database, open).await == "0" }).await;
    let told: Vec<i64> =
        receiver.taken().iter().map(super::receiver::ReceivedMessage::sequence).collect();
    assert!(told.is_sorted() && told.len() >= 120, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_janitor_fails_unsent_messages_and_deletes_old_rows() {
    let database = TestDatabase::create().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let config = telling(vec![target("erp", &receiver.url())]);
    let running = RunningDelivery::start(&database, &config).await;
    let (_, told) = document(&database, "acme").await;
    complete(&database, told).await;
    until(SOON, || async { scalar(&database, STATES).await == "document.completed delivered" })
        .await;
    running.stop().await;
    let (_, untold) = document(&database, "acme").await;
    complete(&database, untold).await;
    let day = Duration::from_secs(24 * 3600);
    let pass = async || {
        let maintenance = maintenance_over(database.db(), memory_queue(), &Config::default());
        assert_eq!(maintenance.run_pass(false).await.failed, []);
    };
    database.advance(4 * day).await;
    pass().await;
    assert_eq!(
        scalar(&database, STATES).await,
        "document.completed delivered, document.completed due"
    );
    database.advance(6 * day).await;
    pass().await;
    assert_eq!(
        scalar(&database, STATES).await,
        "document.completed delivered, document.completed dead"
    );
    database.advance(31 * day).await;
    pass().await;
    assert_eq!(scalar(&database, STATES).await, "document.completed dead");
    assert_eq!(scalar(&database, "SELECT count(*) FROM webhook_target").await, "1");
    database.advance(40 * day).await;
    pass().await;
    assert_eq!(scalar(&database, "SELECT count(*) FROM webhook_target").await, "0");
    assert_eq!(scalar(&database, STATES).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn delivering_reads_few_rows_of_tens_of_thousands_that_ended_or_wait() {
    let database = TestDatabase::create().await;
    let fill = "
        INSERT INTO webhook_target (name, place, url_hash) VALUES ('erp', 'https://erp', 'x'), ('idle', 'https://idle', 'y');
        INSERT INTO document (id, file_path) SELECT md5('d' || n)::uuid, 'x' FROM generate_series(1, 20000) n;
        INSERT INTO webhook_delivery (target, document_id, event, event_id, event_number, occurred_at,
            facts, state, due_at, open_since, ended_at)
        SELECT 'erp', md5('d' || n)::uuid, 'document.completed', gen_random_uuid(), n, now(), '{}',
            s.state, CASE WHEN s.state = 'due' THEN now() + interval '1 hour' END, now(),
            CASE WHEN s.state IN ('delivered', 'dead') THEN now() END
        FROM generate_series(1, 20000) n,
            unnest(ARRAY['delivered', 'due', 'waiting']) AS s (state);
        VACUUM ANALYZE";
    for statement in fill.split(';') {
        execute(&database, statement).await;
    }
    let read = rows_read_by(&database, |db: Db| async move {
        for target in ["erp", "idle"] {
            let lease = Duration::from_secs(60);
            let found = rows::claim_deliveries(&db, target, uuid::Uuid::new_v4(), 4, lease).await;
            assert_eq!(found.unwrap(), []);
            for dead in [true, false] {
                let wanted = DeliveryQuery { target: target.to_owned(), dead, after: None };
                webhooks::list_deliveries(&db, &wanted, 50).await.unwrap();
            }
        }
        assert_eq!(
            rows::find_stale(&db, Duration::from_secs(3600), 100).await.unwrap(),
            [0_i64; 0]
        );
        rows::delete_ended(&db, Duration::from_secs(3600), 100).await.unwrap();
        let targets = webhooks::list_targets(&db).await.unwrap();
        assert_eq!(targets.first().unwrap().open, webhooks::COUNTED);
    })
    .await;
    let [walked, fetched] = *read.get("webhook_delivery").unwrap();
    assert_eq!(walked, 0, "the outbox was walked through");
    assert!(fetched < 12_000, "{fetched} rows were fetched: more than are counted and shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_that_deliver_tell_everything_once() {
    let database = TestDatabase::create().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let config = Arc::new(telling(vec![target("erp", &receiver.url())]));
    let _one = RunningDelivery::start(&database, &config).await;
    let _other = RunningDelivery::start(&database, &config).await;
    for _ in 0..30 {
        let (_, ingestion) = document(&database, "acme").await;
        complete(&database, ingestion).await;
    }
    let open = "SELECT count(*) FROM webhook_delivery WHERE state <> 'delivered'";
    until(SOON, || async { scalar(&database, open).await == "0" }).await;
    assert_eq!(receiver.received().len(), 30);
}
