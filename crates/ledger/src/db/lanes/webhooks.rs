//! The outbox of webhooks: targets, due deliveries, the outcome of a try, and deliveries given up.
//!
//! Rows are written by the triggers of the migrations, in the transaction of their event; here they
//! are only taken, settled and read. A delivery is held by moving its due time behind the lease: if
//! its holder dies, it becomes due again.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::db::operators::AuditNote;
use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;

/// Open deliveries of a target are counted up to here; more are shown as "more".
pub const COUNTED: i64 = 10_001;

/// A target of the settings, as it is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRegistration {
    /// Name in the settings.
    pub name: String,
    /// Scheme, host and port of its address.
    pub place: String,
    /// SHA-256 of its whole address.
    pub url_hash: String,
    /// The events that it wants; empty: all.
    pub events: Vec<String>,
    /// Only this tenant's documents; empty: all.
    pub tenant: String,
}

/// A delivery that this process holds until its lease ends.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedWebhookDelivery {
    /// Its row.
    pub id: i64,
    /// The event.
    pub event: String,
    /// The same at every try.
    pub event_id: Uuid,
    /// Rises from event to event of one document.
    pub event_number: i64,
    /// When it happened.
    pub occurred_at: OffsetDateTime,
    /// The event's payload facts.
    pub facts: Value,
    /// Its ingestion, whose data is delivered if the settings say so.
    pub ingestion_id: Option<Uuid>,
    /// Its decision, the same.
    pub revision_id: Option<i64>,
    /// Tries that were begun, this one included.
    pub tries: i32,
}

/// How a try ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryEnd {
    /// Whether it was taken.
    pub delivered: bool,
    /// Until the next try, if it was not.
    pub wait: Duration,
    /// How long it is tried in all.
    pub give_up_after: Duration,
    /// HTTP status of the answer.
    pub status: Option<u16>,
    /// Why it was not taken; never what the target said.
    pub problem: Option<String>,
}

/// The state of a target.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = WebhookTarget)]
pub struct WebhookTargetState {
    /// Name in the settings.
    pub name: String,
    /// Scheme, host and port of its address.
    pub place: String,
    /// The events that it wants; empty: all.
    pub events: Vec<String>,
    /// Only this tenant's documents; empty: all.
    pub tenant: String,
    /// When a process that delivers had it in its settings last.
    #[serde(with = "time::serde::rfc3339")]
    pub seen_at: OffsetDateTime,
    /// Since when nothing is sent to it.
    #[serde(with = "time::serde::rfc3339::option")]
    pub disabled_at: Option<OffsetDateTime>,
    /// Why nothing is sent to it.
    pub disabled_why: String,
    /// Deliveries that have not ended, counted up to 10,001.
    pub open: i64,
    /// Seconds since the oldest of them became open.
    pub oldest_s: Option<f64>,
    /// Deliveries that were given up, counted up to 10,001.
    pub dead: i64,
    /// Since when the oldest open delivery fails; `None`: it was not tried, or there is none.
    #[serde(with = "time::serde::rfc3339::option")]
    pub failing_since: Option<OffsetDateTime>,
    /// How its last try failed.
    pub last_problem: Option<String>,
    /// When a message was last sent to it, to the second.
    #[serde(with = "time::serde::rfc3339::option")]
    pub tried_at: Option<OffsetDateTime>,
    /// HTTP status of that; `None`: no answer.
    pub answer_status: Option<i32>,
    /// Milliseconds until its answer.
    pub answer_ms: Option<i32>,
    /// When a test was last asked for.
    #[serde(with = "time::serde::rfc3339::option")]
    pub test_asked_at: Option<OffsetDateTime>,
    /// When the test was sent; `None`: no process has sent it.
    #[serde(with = "time::serde::rfc3339::option")]
    pub test_ended_at: Option<OffsetDateTime>,
    /// HTTP status of its answer; `None`: no answer.
    pub test_status: Option<i32>,
    /// Why the test was not taken; `None`: it was.
    pub test_problem: Option<String>,
    /// Milliseconds until its answer.
    pub test_ms: Option<i32>,
}

/// How a target answered a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetAnswer {
    /// HTTP status; `None`: no answer.
    pub status: Option<u16>,
    /// Why the message was not taken; never what the target said.
    pub problem: Option<String>,
    /// Until the answer, or until none came.
    pub latency: Duration,
}

impl TargetAnswer {
    fn latency_ms(&self) -> i32 {
        i32::try_from(self.latency.as_millis()).unwrap_or(i32::MAX)
    }
}

/// A delivery as operators see it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub struct DeliveryRow {
    /// Its number, by which it is replayed.
    pub id: i64,
    /// Its target.
    pub target: String,
    /// The event.
    pub event: String,
    /// Its id at the target (`webhook-id`).
    pub event_id: Uuid,
    /// Id of the document.
    pub document_id: Uuid,
    /// Id of the ingestion.
    pub ingestion_id: Option<Uuid>,
    /// When it happened.
    #[serde(with = "time::serde::rfc3339")]
    pub occurred_at: OffsetDateTime,
    /// `due`, `waiting`, `delivered` or `dead`.
    pub state: String,
    /// Since when it is open, or when it ended.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
    /// Tries that were begun.
    pub tries: i32,
    /// When it is tried next.
    #[serde(with = "time::serde::rfc3339::option")]
    pub due_at: Option<OffsetDateTime>,
    /// HTTP status of the last answer.
    pub last_status: Option<i32>,
    /// Why the last try failed.
    pub last_problem: Option<String>,
}

/// Which deliveries are meant.
#[derive(Debug, Clone, Default)]
pub struct DeliveryQuery {
    /// Only of this target.
    pub target: String,
    /// Only those that were given up, else those that have not ended.
    pub dead: bool,
    /// Only those behind this one.
    pub after: Option<DeliverySlot>,
}

/// The position of a delivery in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliverySlot {
    /// Since when it is open, or given up.
    pub since: OffsetDateTime,
    /// Its number.
    pub id: i64,
}

/// Registers a target, or says that it is still there. One that said 410 Gone is tried again if its
/// address is another one now.
///
/// # Errors
/// No answer from Postgres.
pub async fn register_target(db: &Db, target: &WebhookRegistration) -> Result<()> {
    sqlx::query!(
        "INSERT INTO webhook_target AS t (name, place, url_hash, events, tenant)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (name) DO UPDATE SET
             place = $2, url_hash = $3, events = $4, tenant = $5, seen_at = docmill_now(),
             disabled_at = CASE WHEN t.url_hash = $3 THEN t.disabled_at END,
             disabled_why = CASE WHEN t.url_hash = $3 THEN t.disabled_why ELSE '' END",
        target.name,
        target.place,
        target.url_hash,
        &target.events,
        target.tenant,
    )
    .execute(db.pool())
    .await
    .context("registering a webhook target")?;
    Ok(())
}

/// Takes up to `limit` deliveries of a target that are due, oldest first, for as long as `lease`.
///
/// # Errors
/// No answer from Postgres.
pub async fn claim_deliveries(
    db: &Db,
    target: &str,
    token: Uuid,
    limit: u32,
    lease: Duration,
) -> Result<Vec<ClaimedWebhookDelivery>> {
    sqlx::query_as!(
        ClaimedWebhookDelivery,
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), taken AS MATERIALIZED (
    SELECT w.id FROM webhook_delivery w
    WHERE w.target = $1 AND w.state = 'due' AND w.due_at <= (SELECT now FROM clock)
      AND NOT EXISTS (
        SELECT 1 FROM webhook_target t WHERE t.name = $1 AND t.disabled_at IS NOT NULL)
    ORDER BY w.due_at, w.id LIMIT $3 FOR UPDATE SKIP LOCKED
)
UPDATE webhook_delivery w SET
    lease_token = $2, due_at = c.now + make_interval(secs => $4), tries = w.tries + 1,
    last_tried_at = c.now
FROM taken x, clock c WHERE w.id = x.id
RETURNING w.id, w.event, w.event_id, w.event_number, w.occurred_at, w.facts, w.ingestion_id,
    w.revision_id, w.tries
"#,
        target,
        token,
        i64::from(limit),
        lease.as_secs_f64(),
    )
    .fetch_all(db.pool())
    .await
    .context("looking for webhooks that are due")
}

/// Writes down how a try ended and makes the next delivery of the document due. Returns the state
/// from now on; `None` if the delivery is not held by `token` any more, and nothing is written.
///
/// # Errors
/// No answer from Postgres.
pub async fn settle_delivery(
    db: &Db,
    delivery: i64,
    token: Uuid,
    end: &DeliveryEnd,
) -> Result<Option<String>> {
    sqlx::query_scalar!(
        r#"SELECT settle_webhook_delivery($1, $2, $3, make_interval(secs => $4),
             make_interval(secs => $5), $6, $7)"#,
        delivery,
        token,
        end.delivered,
        end.wait.as_secs_f64(),
        end.give_up_after.as_secs_f64(),
        end.status.map(i32::from),
        end.problem,
    )
    .fetch_one(db.pool())
    .await
    .context("writing down how a webhook ended")
}

/// Makes due at once what waits for its next try: the target is back. As few as were tried one by one
/// while it was away.
///
/// # Errors
/// No answer from Postgres.
pub async fn hasten_deliveries(db: &Db, target: &str) -> Result<()> {
    sqlx::query!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), held AS MATERIALIZED (
    SELECT w.id FROM webhook_delivery w
    WHERE w.target = $1 AND w.state = 'due' AND w.due_at > (SELECT now FROM clock)
      AND w.lease_token IS NULL
      -- What can still be undone waits for that.
      AND (w.not_before IS NULL OR w.not_before <= (SELECT now FROM clock))
    ORDER BY w.due_at, w.id LIMIT 10000 FOR UPDATE SKIP LOCKED
)
UPDATE webhook_delivery w SET due_at = c.now FROM held h, clock c WHERE w.id = h.id
"#,
        target,
    )
    .execute(db.pool())
    .await
    .context("hastening webhooks")?;
    Ok(())
}

/// Sends nothing to this target from now on.
///
/// # Errors
/// No answer from Postgres.
pub async fn disable_target(db: &Db, name: &str, why: &str) -> Result<()> {
    sqlx::query!(
        "UPDATE webhook_target SET disabled_at = docmill_now(), disabled_why = $2
         WHERE name = $1 AND disabled_at IS NULL",
        name,
        why,
    )
    .execute(db.pool())
    .await
    .context("disabling a webhook target")?;
    Ok(())
}

/// Sends to this target again; `false` if it was not disabled.
///
/// # Errors
/// No answer from Postgres.
pub async fn enable_target(db: &Db, name: &str, by: &AuditNote) -> Result<bool> {
    let done = sqlx::query!(
        r#"
WITH held AS MATERIALIZED (
    SELECT t.name, jsonb_build_object('disabled_at', t.disabled_at, 'why', t.disabled_why) AS before
    FROM webhook_target t WHERE t.name = $1 AND t.disabled_at IS NOT NULL FOR UPDATE
), audited AS (
    INSERT INTO operator_action (operator, action, target, why, before)
    SELECT $2, 'enable', 'webhook:' || h.name, $3, h.before FROM held h
)
UPDATE webhook_target t SET disabled_at = NULL, disabled_why = '' FROM held h WHERE t.name = h.name
"#,
        name,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("enabling a webhook target")?;
    Ok(done.rows_affected() > 0)
}

/// Writes how a target answered, once a second at most, and each time that the status is another.
///
/// # Errors
/// No answer from Postgres.
pub async fn note_answer(db: &Db, target: &str, answer: &TargetAnswer) -> Result<()> {
    sqlx::query!(
        "UPDATE webhook_target SET tried_at = docmill_now(), answer_status = $2,
             answer_problem = $3, answer_ms = $4
         WHERE name = $1 AND (tried_at IS NULL
             OR tried_at < (SELECT docmill_now()) - interval '1 second'
             OR answer_status IS DISTINCT FROM $2)",
        target,
        answer.status.map(i32::from),
        answer.problem,
        answer.latency_ms(),
    )
    .execute(db.pool())
    .await
    .context("noting the answer of a webhook target")?;
    Ok(())
}

/// Asks for a test of a target, sent by a process that delivers to it; `false` if there is no target of
/// this name.
///
/// # Errors
/// No answer from Postgres.
pub async fn ask_test(db: &Db, target: &str, by: &AuditNote) -> Result<bool> {
    let done = sqlx::query!(
        "WITH asked AS (
             UPDATE webhook_target SET test_id = gen_random_uuid(), test_asked_at = docmill_now(),
                 test_ended_at = NULL, test_status = NULL, test_problem = NULL, test_ms = NULL
             WHERE name = $1 RETURNING name)
         INSERT INTO operator_action (operator, action, target, why)
         SELECT $2, 'test', 'webhook:' || a.name, $3 FROM asked a",
        target,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("asking for a test of a webhook target")?;
    Ok(done.rows_affected() > 0)
}

/// Takes the tests of these targets that are to be sent: name and id. A test is sent once at most.
///
/// # Errors
/// No answer from Postgres.
pub async fn take_tests(db: &Db, targets: &[String]) -> Result<Vec<(String, Uuid)>> {
    let taken = sqlx::query!(
        r#"WITH held AS MATERIALIZED (
             SELECT name, test_id FROM webhook_target
             WHERE name = ANY ($1) AND test_id IS NOT NULL FOR UPDATE SKIP LOCKED)
         UPDATE webhook_target t SET test_id = NULL FROM held h WHERE t.name = h.name
         RETURNING h.name AS "name!", h.test_id AS "id!""#,
        targets,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for tests of webhook targets")?;
    Ok(taken.into_iter().map(|row| (row.name, row.id)).collect())
}

/// Writes how a test ended, unless another one was asked for meanwhile.
///
/// # Errors
/// No answer from Postgres.
pub async fn end_test(db: &Db, target: &str, answer: &TargetAnswer) -> Result<()> {
    sqlx::query!(
        "UPDATE webhook_target SET test_ended_at = docmill_now(), test_status = $2,
             test_problem = $3, test_ms = $4 WHERE name = $1 AND test_id IS NULL",
        target,
        answer.status.map(i32::from),
        answer.problem,
        answer.latency_ms(),
    )
    .execute(db.pool())
    .await
    .context("writing down a test of a webhook target")?;
    Ok(())
}

/// The data that a delivery is about: what was decided, else what the ingestion read; `None` if
/// there is none.
///
/// # Errors
/// No answer from Postgres.
pub async fn load_event_data(db: &Db, of: &ClaimedWebhookDelivery) -> Result<Option<Value>> {
    let found = sqlx::query_scalar!(
        r#"SELECT CASE WHEN $2::bigint IS NOT NULL
             THEN (SELECT r.data_after FROM document_revision r WHERE r.id = $2)
             ELSE (SELECT i.structured_data FROM ingestion i
                   WHERE i.id = $1 AND i.valid_structured_data) END"#,
        of.ingestion_id,
        of.revision_id,
    )
    .fetch_one(db.pool())
    .await;
    found.context("reading the data of a webhook")
}

/// Every target that is registered, by name.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_targets(db: &Db) -> Result<Vec<WebhookTargetState>> {
    sqlx::query_as!(
        WebhookTargetState,
        r#"
SELECT t.name, t.place, t.events, t.tenant, t.seen_at, t.disabled_at, t.disabled_why,
    (SELECT count(*) FROM (SELECT 1 FROM webhook_delivery w
        WHERE w.target = t.name AND w.state IN ('due', 'waiting')
        -- In an index's order: else the whole table is read for a target that has nothing open.
        ORDER BY w.target, w.open_since, w.id LIMIT $1) AS o) AS "open!",
    extract(epoch FROM docmill_now() - oldest.open_since)::float8 AS "oldest_s?",
    (SELECT count(*) FROM (SELECT 1 FROM webhook_delivery w
        WHERE w.target = t.name AND w.state = 'dead'
        ORDER BY w.target, w.ended_at, w.id LIMIT $1) AS x) AS "dead!",
    CASE WHEN oldest.tries > 0 THEN oldest.open_since END AS "failing_since?",
    CASE WHEN oldest.tries > 0 THEN oldest.last_problem END AS "last_problem?",
    t.tried_at, t.answer_status, t.answer_ms, t.test_asked_at, t.test_ended_at, t.test_status,
    t.test_problem, t.test_ms
FROM webhook_target t
LEFT JOIN LATERAL (
    SELECT w.open_since, w.tries, w.last_problem FROM webhook_delivery w
    WHERE w.target = t.name AND w.state IN ('due', 'waiting')
    ORDER BY w.target, w.open_since, w.id LIMIT 1
) AS oldest ON true
ORDER BY t.name
"#,
        COUNTED,
    )
    .fetch_all(db.pool())
    .await
    .context("listing webhook targets")
}

/// Up to `limit` deliveries, those first that have been open or dead for longest.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_deliveries(
    db: &Db,
    wanted: &DeliveryQuery,
    limit: u32,
) -> Result<Vec<DeliveryRow>> {
    let (after, after_id) = (wanted.after.map(|it| it.since), wanted.after.map(|it| it.id));
    if wanted.dead {
        return sqlx::query_as!(
            DeliveryRow,
            r#"SELECT id, target, event, event_id, document_id, ingestion_id, occurred_at, state,
                 ended_at AS "since!", tries, due_at, last_status, last_problem
             FROM webhook_delivery
             WHERE target = $1 AND state = 'dead'
               AND ($3::timestamptz IS NULL OR (ended_at, id) > ($3, $4::bigint))
             ORDER BY target, ended_at, id LIMIT $2"#,
            wanted.target,
            i64::from(limit),
            after,
            after_id,
        )
        .fetch_all(db.pool())
        .await
        .context("listing webhooks that were given up");
    }
    sqlx::query_as!(
        DeliveryRow,
        r#"SELECT id, target, event, event_id, document_id, ingestion_id, occurred_at, state,
             open_since AS "since!", tries, due_at, last_status, last_problem
         FROM webhook_delivery
         WHERE target = $1 AND state IN ('due', 'waiting')
           AND ($3::timestamptz IS NULL OR (open_since, id) > ($3, $4::bigint))
         ORDER BY target, open_since, id LIMIT $2"#,
        wanted.target,
        i64::from(limit),
        after,
        after_id,
    )
    .fetch_all(db.pool())
    .await
    .context("listing webhooks that have not ended")
}

/// The deliveries of one document, oldest first.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_of_document(db: &Db, document: Uuid, limit: u32) -> Result<Vec<DeliveryRow>> {
    sqlx::query_as!(
        DeliveryRow,
        r#"SELECT id, target, event, event_id, document_id, ingestion_id, occurred_at, state,
             COALESCE(ended_at, open_since) AS "since!", tries, due_at, last_status, last_problem
         FROM webhook_delivery WHERE document_id = $1 ORDER BY id LIMIT $2"#,
        document,
        i64::from(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("listing the webhooks of a document")
}

/// Makes one delivery open again; `false` if it is gone, or is being sent at this moment.
///
/// # Errors
/// No answer from Postgres.
pub async fn replay_delivery(db: &Db, delivery: i64) -> Result<bool> {
    let done = sqlx::query_scalar!("SELECT replay_webhook_delivery($1)", delivery)
        .fetch_one(db.pool())
        .await
        .context("replaying a webhook")?;
    Ok(done.unwrap_or_default())
}

/// Notes in the audit that deliveries of a target are replayed.
///
/// # Errors
/// No answer from Postgres.
pub async fn audit_replay(db: &Db, target: &str, ids: &[i64], by: &AuditNote) -> Result<()> {
    sqlx::query!(
        "INSERT INTO operator_action (operator, action, target, why, before)
         VALUES ($1, 'replay', 'webhook:' || $2, $3, jsonb_build_object('deliveries', $4::bigint[]))",
        by.operator,
        target,
        by.why,
        ids,
    )
    .execute(db.pool())
    .await
    .context("noting the replay of webhooks")?;
    Ok(())
}

/// Up to `limit` deliveries that have been open for longer than `age` and that no process sends: of
/// targets that are disabled, or in no settings any more.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_stale(db: &Db, age: Duration, limit: u32) -> Result<Vec<i64>> {
    sqlx::query_scalar!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
)
SELECT w.id FROM webhook_target t CROSS JOIN LATERAL (
    SELECT o.id FROM webhook_delivery o
    WHERE o.target = t.name AND o.state IN ('due', 'waiting')
      AND o.open_since < (SELECT now FROM clock) - make_interval(secs => $1)
    ORDER BY o.open_since, o.id LIMIT $2) AS w
WHERE t.disabled_at IS NOT NULL
   OR t.seen_at < (SELECT now FROM clock) - make_interval(secs => $1)
LIMIT $2
"#,
        age.as_secs_f64(),
        i64::from(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("listing abandoned webhook deliveries")
}

/// Ends a delivery as dead; `false` if it has ended, or is being sent at this moment.
///
/// # Errors
/// No answer from Postgres.
pub async fn give_up_delivery(db: &Db, delivery: i64) -> Result<bool> {
    let problem = "its target is disabled, or in no settings any more";
    let done = sqlx::query_scalar!("SELECT give_up_webhook_delivery($1, $2)", delivery, problem)
        .fetch_one(db.pool())
        .await
        .context("giving a webhook up")?;
    Ok(done.unwrap_or_default())
}

/// Removes targets that have been in no settings for 30 days, after which nothing is written for
/// them, and `age`, after which their deliveries are given up.
///
/// # Errors
/// No answer from Postgres.
pub async fn forget_targets(db: &Db, age: Duration) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM webhook_target t
         WHERE t.seen_at < (SELECT docmill_now()) - make_interval(secs => $1) - interval '30 days'
           AND NOT EXISTS (SELECT 1 FROM webhook_delivery w
             WHERE w.target = t.name AND w.state IN ('due', 'waiting'))",
        age.as_secs_f64(),
    )
    .execute(db.pool())
    .await
    .context("forgetting webhook targets")?;
    Ok(done.rows_affected())
}

/// Deletes up to `batch` deliveries that ended longer ago than `age`.
///
/// # Errors
/// No answer from Postgres.
pub async fn delete_ended(db: &Db, age: Duration, batch: u32) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM webhook_delivery WHERE id IN (
             SELECT id FROM webhook_delivery
             WHERE ended_at < (SELECT docmill_now()) - make_interval(secs => $1)
             ORDER BY ended_at LIMIT $2)",
        age.as_secs_f64(),
        i64::from(batch),
    )
    .execute(db.pool())
    .await
    .context("deleting old webhooks")?;
    Ok(done.rows_affected())
}
