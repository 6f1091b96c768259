//! The batch lane in Postgres: which questions wait, which batch each is part of, how each was settled.
//!
//! Every step of a batch is written before the next one is taken, so that the next leader continues
//! from there. One row per question decides whether its answer is used or a direct call replaces
//! it: both are written under the condition that neither has happened. The cost is counted when the
//! question enters, at its maximum, and corrected in the statement that settles it.

mod tries;

use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::db::{Db, SqlErrorContext, saturating_bigint, saturating_int};
use docmill_core::fault::Result;
use docmill_core::model::{IngestionId, ModelUsage};

pub use tries::{BatchTry, note_handle, note_input_removed, note_try, renew_try};

/// Where questions of one sort are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchRoute {
    /// The provider, e.g. `openai`.
    pub provider: String,
    /// The configured model.
    pub model: String,
    /// The address of the settings.
    pub place: String,
}

/// When enough questions wait for a batch.
#[derive(Debug, Clone, Copy)]
pub struct GatherTerms {
    /// So many at most, and then at once.
    pub requests: u32,
    /// Never fewer: the vendor refuses smaller batches.
    pub least: u32,
    /// So many bytes at most, and then at once; the fewest questions may have more.
    pub bytes: u64,
    /// Or when the oldest has waited for so long.
    pub oldest: Duration,
    /// How long nothing is put together after the vendor has turned a batch away.
    pub pause: Duration,
}

/// How long batches stay smaller after the vendor has turned one away.
const SMALLER_BATCHES: Duration = Duration::from_secs(6 * 3600);

/// The last batch that a vendor turned away.
#[derive(Debug)]
struct TurnedAwayBatch {
    requests: i32,
    /// Seconds since then.
    age: f64,
}

/// A batch that has not ended.
#[derive(Debug, Clone)]
pub struct OpenBatch {
    /// Ours, known to the vendor.
    pub name: String,
    /// The vendor's name for it, once it is known.
    pub handle: Option<String>,
    /// How many questions it has.
    pub requests: i32,
    /// When they were put together.
    pub created_at: OffsetDateTime,
    /// When it was handed in last, whether or not that arrived.
    pub tried_at: Option<OffsetDateTime>,
    /// Seconds since then.
    pub tried_ago: Option<f64>,
    /// The vendor's name for the file of questions of that try, where the vendor takes files.
    pub input: Option<String>,
    /// Seconds since its questions were put together.
    pub age: f64,
    /// Seconds past the deadline of its first question; negative before it.
    pub overdue: f64,
    /// Whether the vendor was asked to cancel it.
    pub is_cancelled: bool,
    /// How often it was polled.
    pub polls: i32,
}

/// A question of a batch.
#[derive(Debug, Clone)]
pub struct SentQuestion {
    /// The vendor's name for it.
    pub custom_id: String,
    /// Its ingestion.
    pub ingestion_id: Uuid,
    /// Names its objects in the store.
    pub request: String,
    /// Whether its answer is still waited for.
    pub is_waiting: bool,
}

/// The cost of an answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswerCost {
    /// Tokens of the call.
    pub usage: ModelUsage,
    /// Billionths of the currency; `None`: there is no price.
    pub cost_nanos: Option<u64>,
    /// The additional cost of a direct call.
    pub saved_nanos: u64,
}

/// The number of waiting questions, for the metrics.
#[derive(Debug, Clone, Copy, Default)]
pub struct LaneDepth {
    /// Questions that are part of no batch yet.
    pub queued: i64,
    /// Questions of batches that have not ended.
    pub sent: i64,
    /// Seconds that the oldest of all has waited.
    pub oldest: f64,
}

/// A question that is part of no batch yet.
#[derive(Debug)]
struct QueuedQuestion {
    id: Uuid,
    bytes: i64,
    /// Seconds since it was asked.
    age: f64,
}

impl GatherTerms {
    /// The terms after a batch of so many questions was turned away: nothing during the pause, then
    /// at most half as many. `None`: nothing is put together now.
    fn after_turned_away(self, last: &TurnedAwayBatch) -> Option<Self> {
        let half = u32::try_from(last.requests / 2).unwrap_or(0).max(self.least).max(1);
        let is_over = last.age >= self.pause.as_secs_f64();
        is_over.then(|| Self { requests: self.requests.min(half), ..self })
    }

    /// Those of the questions, oldest first, that go together now; `None`: not yet.
    fn choose_questions(self, waiting: &[QueuedQuestion]) -> Option<Vec<Uuid>> {
        let least = usize::try_from(self.least).unwrap_or(usize::MAX).max(1);
        let is_late = waiting.iter().any(|question| question.age >= self.oldest.as_secs_f64());
        let mut is_full = waiting.len() >= usize::try_from(self.requests).unwrap_or(usize::MAX);
        let (mut bytes, mut ids) = (0_u64, Vec::new());
        for question in waiting {
            bytes = bytes.saturating_add(u64::try_from(question.bytes).unwrap_or(0));
            if bytes > self.bytes && ids.len() >= least {
                is_full = true;
                break;
            }
            ids.push(question.id);
        }
        (ids.len() >= least && (is_late || is_full)).then_some(ids)
    }
}

/// Puts waiting questions together as a batch of this name, if it is time to; `None`: not yet.
///
/// # Errors
/// No answer from Postgres; then nothing was put together, or the batch is found as an open one.
pub async fn gather_batch(
    db: &Db,
    route: &BatchRoute,
    terms: GatherTerms,
    name: &str,
) -> Result<Option<u32>> {
    const DOING: &str = "putting a batch together";
    let Some(terms) = reduce_terms(db, route, terms).await? else { return Ok(None) };
    let mut transaction = db.pool().begin().await.context(DOING)?;
    let waiting = sqlx::query_as!(
        QueuedQuestion,
        r#"SELECT id, bytes, extract(epoch FROM (SELECT docmill_now()) - asked_at)::float8 AS "age!"
        FROM batch_request
        WHERE state = 'queued' AND provider = $1 AND model = $2 AND place = $3
          AND deadline_at > (SELECT docmill_now())
        ORDER BY asked_at LIMIT $4 FOR UPDATE SKIP LOCKED"#,
        route.provider,
        route.model,
        route.place,
        i64::from(terms.requests),
    )
    .fetch_all(&mut transaction)
    .await
    .context(DOING)?;
    let Some(ids) = terms.choose_questions(&waiting) else {
        transaction.rollback().await.context(DOING)?;
        return Ok(None);
    };
    let custom: Vec<String> = (0..ids.len()).map(|number| format!("{name}-{number}")).collect();
    let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    sqlx::query!(
        "INSERT INTO batch (name, provider, model, place, requests, deadline_at)
         SELECT $1, $2, $3, $4, $5, min(r.deadline_at) FROM batch_request r WHERE r.id = ANY ($6)",
        name,
        route.provider,
        route.model,
        route.place,
        saturating_int(count),
        &ids,
    )
    .execute(&mut transaction)
    .await
    .context(DOING)?;
    sqlx::query!(
        "UPDATE batch_request r SET state = 'sent', batch = $1, custom_id = n.custom
         FROM unnest($2::uuid[], $3::text[]) AS n (id, custom) WHERE r.id = n.id",
        name,
        &ids,
        &custom,
    )
    .execute(&mut transaction)
    .await
    .context(DOING)?;
    transaction.commit().await.context(DOING)?;
    Ok(Some(count))
}

/// The terms of the next batch at this place, by whether one was turned away there lately.
async fn reduce_terms(
    db: &Db,
    route: &BatchRoute,
    terms: GatherTerms,
) -> Result<Option<GatherTerms>> {
    let last = sqlx::query_as!(
        TurnedAwayBatch,
        r#"WITH clock AS MATERIALIZED (SELECT docmill_now() AS now)
        SELECT b.requests, extract(epoch FROM c.now - b.ended_at)::float8 AS "age!"
        FROM batch b CROSS JOIN clock c
        WHERE b.was_turned_away AND b.provider = $1 AND b.model = $2 AND b.place = $3
          AND b.ended_at > c.now - make_interval(secs => $4)
        ORDER BY b.ended_at DESC LIMIT 1"#,
        route.provider,
        route.model,
        route.place,
        SMALLER_BATCHES.as_secs_f64(),
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for batches that were turned away")?;
    Ok(match last {
        Some(last) => terms.after_turned_away(&last),
        None => Some(terms),
    })
}

/// Ends a batch that the vendor turned away; its questions wait again. How many those are.
///
/// # Errors
/// No answer from Postgres.
pub async fn put_back(db: &Db, name: &str, detail: &str) -> Result<u64> {
    let waiting = sqlx::query_scalar!(
        r#"
WITH turned AS (
    UPDATE batch SET state = 'ended', ended_at = docmill_now(), detail = $2, was_turned_away = true
    WHERE name = $1 AND state <> 'ended'
    RETURNING name
), back AS (
    UPDATE batch_request r SET state = 'queued', batch = NULL, custom_id = NULL
    FROM turned t WHERE r.batch = t.name AND r.state = 'sent'
    RETURNING r.id
)
SELECT count(*) AS "count!" FROM back
"#,
        name,
        detail,
    )
    .fetch_one(db.pool())
    .await
    .context("putting back the questions of a batch")?;
    Ok(u64::try_from(waiting).unwrap_or(0))
}

/// The open batches of this provider that are due for a poll.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_due(db: &Db, route: &BatchRoute) -> Result<Vec<OpenBatch>> {
    sqlx::query_as!(
        OpenBatch,
        r#"WITH clock AS MATERIALIZED (SELECT docmill_now() AS now)
        SELECT b.name, CASE WHEN b.state = 'submitted' THEN b.handle END AS handle, b.requests,
            b.created_at, b.tried_at,
            extract(epoch FROM c.now - b.tried_at)::float8 AS tried_ago, b.input,
            extract(epoch FROM c.now - b.created_at)::float8 AS "age!",
            extract(epoch FROM c.now - b.deadline_at)::float8 AS "overdue!",
            b.cancelled_at IS NOT NULL AS "is_cancelled!", b.polls
        FROM batch b CROSS JOIN clock c
        WHERE b.state <> 'ended' AND b.provider = $1 AND b.model = $2 AND b.place = $3
          AND (b.due_at <= c.now OR (b.deadline_at <= c.now AND b.cancelled_at IS NULL))
        ORDER BY b.created_at LIMIT 100"#,
        route.provider,
        route.model,
        route.place,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for open batches")
}

/// The questions of a batch.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_requests(db: &Db, name: &str) -> Result<Vec<SentQuestion>> {
    sqlx::query_as!(
        SentQuestion,
        r#"SELECT custom_id AS "custom_id!", ingestion_id, request, state = 'sent' AS "is_waiting!"
        FROM batch_request WHERE batch = $1 ORDER BY asked_at, id"#,
        name,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for the questions of a batch")
}

/// The vendor's names of all batches that are known by theirs.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_handles(db: &Db, route: &BatchRoute) -> Result<Vec<String>> {
    sqlx::query_scalar!(
        r#"SELECT handle AS "handle!" FROM batch
        WHERE provider = $1 AND place = $2 AND handle IS NOT NULL"#,
        route.provider,
        route.place,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for known batches")
}

/// Looks at a batch again after this time; `detail`: what the trouble is, if there is any.
///
/// # Errors
/// No answer from Postgres.
pub async fn postpone_batch(
    db: &Db,
    name: &str,
    wait: Duration,
    detail: Option<&str>,
) -> Result<()> {
    sqlx::query!(
        "UPDATE batch SET due_at = docmill_now() + make_interval(secs => $2), polls = polls + 1,
             detail = $3
         WHERE name = $1 AND state <> 'ended'",
        name,
        wait.as_secs_f64(),
        detail,
    )
    .execute(db.pool())
    .await
    .context("putting a batch off")?;
    Ok(())
}

/// Writes down that the vendor was asked to cancel a batch.
///
/// # Errors
/// No answer from Postgres.
pub async fn note_cancel(db: &Db, name: &str) -> Result<()> {
    sqlx::query!("UPDATE batch SET cancelled_at = docmill_now() WHERE name = $1", name)
        .execute(db.pool())
        .await
        .context("writing down that a batch was cancelled")?;
    Ok(())
}

/// Ends a batch, whose questions are all settled.
///
/// # Errors
/// No answer from Postgres.
pub async fn end_batch(db: &Db, name: &str, detail: &str) -> Result<()> {
    sqlx::query!(
        "UPDATE batch SET state = 'ended', ended_at = docmill_now(), detail = $2
         WHERE name = $1 AND state <> 'ended'",
        name,
        detail,
    )
    .execute(db.pool())
    .await
    .context("ending a batch")?;
    Ok(())
}

/// Settles a question: its answer is stored, and costs this. `false`: it was settled before, and
/// nothing is written.
///
/// # Errors
/// No answer from Postgres.
pub async fn settle_answer(db: &Db, custom_id: &str, cost: &AnswerCost) -> Result<bool> {
    let done = sqlx::query_scalar!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), settled AS (
    UPDATE batch_request r SET state = 'answered', settled_at = c.now
    FROM clock c WHERE r.custom_id = $1 AND r.state = 'sent'
    RETURNING r.ingestion_id, r.claims, r.day, r.provider, r.model, r.reserved_nanos
), booked AS (
    UPDATE spending s SET
        calls = s.calls + 1, batch_calls = s.batch_calls + 1,
        input_tokens = s.input_tokens + $2, cache_read_tokens = s.cache_read_tokens + $3,
        cache_write_tokens = s.cache_write_tokens + $4, output_tokens = s.output_tokens + $5,
        cost_nanos = s.cost_nanos - t.reserved_nanos + $6, saved_nanos = s.saved_nanos + $7,
        unpriced_calls = s.unpriced_calls + $8
    FROM settled t
    WHERE s.ingestion_id = t.ingestion_id AND s.claims = t.claims AND s.day = t.day
      AND s.provider = t.provider AND s.model = t.model
)
SELECT count(*) AS "count!" FROM settled
"#,
        custom_id,
        saturating_bigint(cost.usage.input),
        saturating_bigint(cost.usage.cache_read),
        saturating_bigint(cost.usage.cache_write),
        saturating_bigint(cost.usage.output),
        saturating_bigint(cost.cost_nanos.unwrap_or(0)),
        saturating_bigint(cost.saved_nanos),
        i64::from(cost.cost_nanos.is_none()),
    )
    .fetch_one(db.pool())
    .await
    .context("settling a question of a batch")?;
    Ok(done > 0)
}

/// Writes down what an answer costs whose place a direct call has taken: once, however often it is
/// read. `false`: it was written down before, or the question is not such a one.
///
/// # Errors
/// No answer from Postgres.
pub async fn note_late_answer(db: &Db, custom_id: &str, cost: &AnswerCost) -> Result<bool> {
    let done = sqlx::query_scalar!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), late AS (
    UPDATE batch_request r SET late_at = c.now
    FROM clock c WHERE r.custom_id = $1 AND r.state = 'direct' AND r.late_at IS NULL
    RETURNING r.ingestion_id, r.claims, r.day, r.provider, r.model
), booked AS (
    UPDATE spending s SET
        calls = s.calls + 1, batch_calls = s.batch_calls + 1, late_calls = s.late_calls + 1,
        input_tokens = s.input_tokens + $2, cache_read_tokens = s.cache_read_tokens + $3,
        cache_write_tokens = s.cache_write_tokens + $4, output_tokens = s.output_tokens + $5,
        cost_nanos = s.cost_nanos + $6, unpriced_calls = s.unpriced_calls + $7
    FROM late t
    WHERE s.ingestion_id = t.ingestion_id AND s.claims = t.claims AND s.day = t.day
      AND s.provider = t.provider AND s.model = t.model
)
SELECT count(*) AS "count!" FROM late
"#,
        custom_id,
        saturating_bigint(cost.usage.input),
        saturating_bigint(cost.usage.cache_read),
        saturating_bigint(cost.usage.cache_write),
        saturating_bigint(cost.usage.output),
        saturating_bigint(cost.cost_nanos.unwrap_or(0)),
        i64::from(cost.cost_nanos.is_none()),
    )
    .fetch_one(db.pool())
    .await
    .context("writing down a late answer of a batch")?;
    Ok(done > 0)
}

/// Leaves one question of a batch to a direct call, unless it is settled; whether it was not.
///
/// # Errors
/// No answer from Postgres.
pub async fn leave_request(db: &Db, custom_id: &str, why: &str) -> Result<bool> {
    let ids = sqlx::query_scalar!("SELECT id FROM batch_request WHERE custom_id = $1", custom_id)
        .fetch_all(db.pool())
        .await
        .context("looking for a question of a batch")?;
    Ok(leave_to_direct(db, &ids, why).await? > 0)
}

/// Leaves to direct calls what is not settled of a batch; how many questions that were.
///
/// # Errors
/// No answer from Postgres.
pub async fn leave_rest(db: &Db, name: &str, why: &str) -> Result<u64> {
    let ids = sqlx::query_scalar!(
        "SELECT id FROM batch_request WHERE batch = $1 AND state = 'sent'",
        name
    )
    .fetch_all(db.pool())
    .await
    .context("looking for the rest of a batch")?;
    leave_to_direct(db, &ids, why).await
}

/// Leaves to direct calls what waits for longer than it may: part of no batch at its deadline, or
/// without an answer `grace` after it. How many questions that were.
///
/// # Errors
/// No answer from Postgres.
pub async fn leave_overdue(db: &Db, grace: Duration) -> Result<u64> {
    let ids = sqlx::query_scalar!(
        "WITH clock AS MATERIALIZED (SELECT docmill_now() AS now)
         SELECT r.id FROM batch_request r
         WHERE r.state IN ('queued', 'sent') AND r.deadline_at <= (SELECT now FROM clock)
           AND (r.state = 'queued'
             OR r.deadline_at <= (SELECT now FROM clock) - make_interval(secs => $1))
         ORDER BY r.deadline_at LIMIT 10000",
        grace.as_secs_f64(),
    )
    .fetch_all(db.pool())
    .await
    .context("looking for questions whose time is over")?;
    leave_to_direct(db, &ids, "the deadline passed").await
}

/// Their reserved cost is given back.
pub(in crate::db) async fn leave_to_direct(db: &Db, ids: &[Uuid], why: &str) -> Result<u64> {
    if ids.is_empty() {
        return Ok(0);
    }
    let left = sqlx::query_scalar!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), held AS MATERIALIZED (
    SELECT r.id FROM batch_request r
    WHERE r.id = ANY ($1) AND r.state IN ('queued', 'sent') ORDER BY r.id FOR UPDATE
), gone AS (
    UPDATE batch_request r SET state = 'direct', settled_at = c.now, detail = $2
    FROM held h, clock c WHERE r.id = h.id
    RETURNING r.ingestion_id, r.claims, r.day, r.provider, r.model, r.reserved_nanos
), given AS (
    SELECT ingestion_id, claims, day, provider, model, sum(reserved_nanos)::bigint AS nanos
    FROM gone GROUP BY ingestion_id, claims, day, provider, model
), booked AS (
    UPDATE spending s SET cost_nanos = s.cost_nanos - g.nanos
    FROM given g
    WHERE s.ingestion_id = g.ingestion_id AND s.claims = g.claims AND s.day = g.day
      AND s.provider = g.provider AND s.model = g.model
)
SELECT count(*) AS "count!" FROM gone
"#,
        ids,
        why,
    )
    .fetch_one(db.pool())
    .await
    .context("leaving questions of a batch to direct calls")?;
    Ok(u64::try_from(left).unwrap_or(0))
}

/// Makes due what waits for no question any more: maintenance sends its message next. Asked again and
/// again, so that nothing depends on the moment at which an answer came.
///
/// # Errors
/// No answer from Postgres.
pub async fn wake_answered(db: &Db, limit: u32) -> Result<Vec<IngestionId>> {
    let woken = sqlx::query_scalar!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), ready AS MATERIALIZED (
    SELECT DISTINCT r.ingestion_id FROM batch_request r JOIN ingestion i ON i.id = r.ingestion_id
    WHERE r.state IN ('answered', 'direct') AND r.seen_at IS NULL
      AND i.status = 'in-progress' AND i.lease_expires_at IS NULL
      AND i.next_attempt_at > (SELECT now FROM clock)
      AND NOT EXISTS (SELECT 1 FROM batch_request o
        WHERE o.ingestion_id = r.ingestion_id AND o.state IN ('queued', 'sent'))
    LIMIT $1
), held AS MATERIALIZED (
    SELECT i.id FROM ingestion i JOIN ready r ON r.ingestion_id = i.id
    WHERE i.status = 'in-progress' AND i.lease_expires_at IS NULL
    ORDER BY i.id FOR NO KEY UPDATE OF i SKIP LOCKED
)
UPDATE ingestion i SET
    next_attempt_at = c.now, updated_at = c.now,
    -- What a pause holds back is sent when that is lifted.
    parked_until = CASE WHEN i.parked_by IS NULL THEN c.now ELSE i.parked_until END
FROM held h, clock c WHERE i.id = h.id
RETURNING i.id
"#,
        i64::from(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("waking the answered ingestions")?;
    Ok(woken.into_iter().map(IngestionId).collect())
}

/// Takes note of what ended otherwise, and removes what was settled, or ended, long ago.
///
/// # Errors
/// No answer from Postgres.
pub async fn clean_lane(db: &Db, age: Duration) -> Result<()> {
    const DOING: &str = "removing old questions of batches";
    sqlx::query!(
        "UPDATE batch_request r SET seen_at = docmill_now() FROM ingestion i
         WHERE i.id = r.ingestion_id AND i.status <> 'in-progress'
           AND r.state IN ('answered', 'direct') AND r.seen_at IS NULL",
    )
    .execute(db.pool())
    .await
    .context(DOING)?;
    sqlx::query!(
        "DELETE FROM batch_request WHERE id = ANY (ARRAY(
             SELECT id FROM batch_request
             WHERE settled_at < (SELECT docmill_now()) - make_interval(secs => $1)
               AND (state IN ('used', 'direct') OR seen_at IS NOT NULL)
             ORDER BY settled_at LIMIT 5000))",
        age.as_secs_f64(),
    )
    .execute(db.pool())
    .await
    .context(DOING)?;
    sqlx::query!(
        "DELETE FROM batch b
         WHERE b.ended_at < (SELECT docmill_now()) - make_interval(secs => $1)
           AND NOT EXISTS (SELECT 1 FROM batch_request r WHERE r.batch = b.name)",
        age.as_secs_f64(),
    )
    .execute(db.pool())
    .await
    .context(DOING)?;
    Ok(())
}

/// The current depth of the lane.
///
/// # Errors
/// No answer from Postgres.
pub async fn lane_depth(db: &Db) -> Result<LaneDepth> {
    sqlx::query_as!(
        LaneDepth,
        r#"SELECT count(*) FILTER (WHERE state = 'queued') AS "queued!",
            count(*) FILTER (WHERE state = 'sent') AS "sent!",
            COALESCE(extract(epoch FROM (SELECT docmill_now()) - min(asked_at)), 0)::float8
                AS "oldest!"
        FROM batch_request WHERE state IN ('queued', 'sent')"#,
    )
    .fetch_one(db.pool())
    .await
    .context("counting the batch lane")
}
