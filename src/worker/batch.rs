//! From a received batch to jobs: every delivery gets exactly one answer.
//!
//! Bodies that ask for several things are fanned out, one message each, and then acknowledged.
//! All ingestions of the batch are claimed by one statement. One slow job never holds back others
//! of its batch: each runs on its own and the batch is forgotten.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::OwnedSemaphorePermit;

use crate::fault;
use crate::ledger::{Claim, Quarantined, Registration};
use crate::metrics;
use crate::model::message::{Body, ObjectCreated};
use crate::model::{DocumentId, IngestionId};
use crate::pipeline::claim_handle;
use crate::queue::{Delivery, Outgoing};
use crate::store::keys;
use crate::telemetry::spans;
use crate::worker::pauses::Door;
use crate::worker::registry::Ticket;
use crate::worker::{Context, job};

/// How long a message is hidden when something it needs did not answer.
const TROUBLE: Duration = Duration::from_secs(10);
/// One statement may take so long.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(20);
/// A body kept in quarantine is cut to this.
const QUARANTINED_BYTES: usize = 64 << 10;

/// A message that asks for one ingestion.
struct Wanted {
    id: IngestionId,
    delivery: Delivery,
    ticket: Ticket,
}

/// Answers every delivery; starts a job, with one of the slots, for each claimed ingestion.
pub async fn take(
    context: Arc<Context>,
    deliveries: Vec<Delivery>,
    slots: Vec<OwnedSemaphorePermit>,
) {
    // Held first, all of them: the heartbeat counts from the receipt.
    let held: Vec<(Delivery, Ticket)> = deliveries
        .into_iter()
        .map(|delivery| {
            let ticket = context.registry.hold(&delivery);
            (delivery, ticket)
        })
        .collect();
    if context.stop_intake.is_cancelled() {
        let releases = held.iter().map(|(_, ticket)| context.release(ticket));
        futures::future::join_all(releases).await;
        return;
    }
    let answers = held.into_iter().map(|(delivery, ticket)| wanted(&context, delivery, ticket));
    let wanted: Vec<Wanted> =
        futures::future::join_all(answers).await.into_iter().flatten().collect();
    if !wanted.is_empty() {
        claim(&context, wanted, slots.into()).await;
    }
}

/// Reads the body; everything but a single ingestion that nobody here has is answered at once.
async fn wanted(context: &Context, delivery: Delivery, ticket: Ticket) -> Option<Wanted> {
    let id = match Body::parse(&delivery.body) {
        Body::Ingestion(id) => id,
        Body::Group(ids) => {
            fan_out(context, &ticket, ids).await;
            return None;
        }
        Body::Objects(objects) => match register(context, objects).await {
            Ok(ids) => match ids.as_slice() {
                [] => {
                    no_work(context, &ticket, "not_allowed").await;
                    return None;
                }
                [id] => *id,
                _ => {
                    fan_out(context, &ticket, ids).await;
                    return None;
                }
            },
            Err(error) => {
                trouble(context, &ticket, &error).await;
                return None;
            }
        },
        Body::NoWork(what) => {
            no_work(context, &ticket, what).await;
            return None;
        }
        Body::Malformed(why) => {
            quarantine(context, &delivery, &ticket, ("malformed", why)).await;
            return None;
        }
    };
    if ticket.reserve(id) {
        return Some(Wanted { id, delivery, ticket });
    }
    // This process works on it already; that job has adopted our receipt.
    metrics::delivery("mine");
    None
}

/// Registers the objects that may be ours; the others need no work.
async fn register(
    context: &Context,
    objects: Vec<ObjectCreated>,
) -> fault::Result<Vec<IngestionId>> {
    let ours: Vec<Registration> = objects
        .into_iter()
        .filter(|object| is_allowed(context, object))
        .map(registration)
        .collect();
    if ours.is_empty() {
        return Ok(Vec::new());
    }
    context.ledger.register(&ours).await
}

fn is_allowed(context: &Context, object: &ObjectCreated) -> bool {
    !keys::is_own_artefact(&object.key)
        && context.settings.allowed.iter().any(|allowed| {
            allowed.bucket == object.bucket && object.key.starts_with(&allowed.prefix)
        })
}

fn registration(object: ObjectCreated) -> Registration {
    let ObjectCreated { bucket, key, version, etag, sequencer, size } = object;
    let revision = version.as_deref().or(etag.as_deref()).unwrap_or_default();
    let order = sequencer.as_deref().unwrap_or_default();
    // A bucket that tells of uploads tells of those of `submit` too: what it registers, or will
    // in a moment, is the same document and the same ingestion.
    let (document, ingestion) = match keys::submitted(&key) {
        Some(document) => (document, IngestionId::first_of(document)),
        None => (
            DocumentId::of_object(&bucket, &key),
            IngestionId::of_object(&bucket, &key, revision, order),
        ),
    };
    Registration {
        document,
        ingestion,
        file_path: format!("s3://{bucket}/{key}"),
        original_name: key.rsplit('/').next().unwrap_or(&key).to_owned(),
        etag,
        size,
        sequencer,
    }
}

/// Sends one message each and then acknowledges: a crash in between sends some of them twice,
/// which is harmless, and never none.
async fn fan_out(context: &Context, ticket: &Ticket, ids: Vec<IngestionId>) {
    let messages: Vec<Outgoing> = ids.iter().map(|id| ticket.successor(id.to_string())).collect();
    let answers = context.queue.send(&messages).await;
    if let Some(error) = answers.into_iter().find_map(Result::err) {
        trouble(context, ticket, &error).await;
        return;
    }
    metrics::delivery("fanned_out");
    context.acknowledge(ticket).await;
}

async fn no_work(context: &Context, ticket: &Ticket, what: &'static str) {
    metrics::delivery("no_work");
    tracing::debug!(what, "a message that asks for nothing: {what}");
    context.acknowledge(ticket).await;
}

/// Keeps a copy, then deletes; without the copy the message stays.
async fn quarantine(
    context: &Context,
    delivery: &Delivery,
    ticket: &Ticket,
    (reason, why): (&'static str, &'static str),
) {
    let mut body = delivery.body.clone();
    let mut end = body.len().min(QUARANTINED_BYTES);
    while !body.is_char_boundary(end) {
        end -= 1;
    }
    body.truncate(end);
    let message = Quarantined {
        message_id: delivery.message_id.clone(),
        body,
        reason: reason.to_owned(),
        receive_count: delivery.receive_count,
    };
    if let Err(error) = context.ledger.quarantine(&message).await {
        trouble(context, ticket, &error).await;
        return;
    }
    metrics::delivery(reason);
    metrics::quarantined(reason);
    let id = &delivery.message_id;
    tracing::warn!(message.id = %id, reason, why, "message {id} put into quarantine: {why}");
    context.acknowledge(ticket).await;
}

/// Something the message needs did not answer: it comes back in a while.
async fn trouble(context: &Context, ticket: &Ticket, error: &fault::Error) {
    metrics::delivery("trouble");
    tracing::warn!(error = %error, "a message could not be looked at: {error}");
    if context.ledger.now().await.is_err() {
        context.pauses.close(Door::Database);
    }
    context.hide(ticket, None, jittered(TROUBLE)).await;
}

async fn claim(
    context: &Arc<Context>,
    wanted: Vec<Wanted>,
    mut slots: VecDeque<OwnedSemaphorePermit>,
) {
    let ids: Vec<IngestionId> = wanted.iter().map(|wanted| wanted.id).collect();
    let asked_at = Instant::now();
    let asked = context.ledger.claim(&ids, &context.settings.terms);
    let answers = match tokio::time::timeout(CLAIM_TIMEOUT, asked).await {
        Ok(Ok(answers)) => answers,
        Ok(Err(error)) => return put_back(context, wanted, &error).await,
        Err(_) => {
            let error = fault::Error::transient("claiming took too long");
            return put_back(context, wanted, &error).await;
        }
    };
    let claiming = (asked_at, Instant::now());
    let unknown = answers.iter().filter(|answer| matches!(answer, Claim::Unknown)).count();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    context.pauses.count_unknown(count(answers.len()), count(unknown));
    let mut others = Vec::new();
    for (wanted, answer) in wanted.into_iter().zip(answers) {
        match answer {
            Claim::Claimed(claimed) => {
                let Some(slot) = slots.pop_front() else {
                    // Cannot happen: no more is received than there are slots.
                    tracing::error!(ingestion.id = %wanted.id, "{} has no slot", wanted.id);
                    continue;
                };
                start(context, wanted, (*claimed, slot), claiming);
            }
            answer => others.push(answer_without_work(context, wanted, answer)),
        }
    }
    drop(slots);
    futures::future::join_all(others).await;
}

fn start(
    context: &Arc<Context>,
    wanted: Wanted,
    (claimed, slot): (crate::model::Claimed, OwnedSemaphorePermit),
    claiming: (Instant, Instant),
) {
    metrics::delivery("claimed");
    if let Some(waited) =
        wanted.delivery.sent_at.and_then(|sent| SystemTime::now().duration_since(sent).ok())
    {
        metrics::queue_wait(waited);
    }
    context.note_receipt(&wanted.delivery);
    let (hold, keeper) = claim_handle::pair(claimed.id, claimed.token, claimed.lease_until);
    wanted.ticket.claimed(claimed.token, keeper);
    let trace = trace(context, &wanted.delivery, &claimed, claiming);
    let message = (wanted.ticket, trace);
    context.jobs.spawn(job::run(Arc::clone(context), claimed, hold, message, slot));
}

/// The span of the job, with what was done for its whole batch.
fn trace(
    context: &Context,
    delivery: &Delivery,
    claimed: &crate::model::Claimed,
    (asked, answered): (Instant, Instant),
) -> tracing::Span {
    let message = spans::Message {
        from: &context.settings.destination,
        id: &delivery.message_id,
        receive_count: delivery.receive_count,
        traceparent: delivery.traceparent.as_deref(),
    };
    let span = spans::process(message, claimed);
    spans::past(&span, "receive", (delivery.received, asked));
    spans::past(&span, "claim", (asked, answered));
    span
}

async fn put_back(context: &Context, wanted: Vec<Wanted>, error: &fault::Error) {
    let count = wanted.len();
    tracing::warn!(error = %error, messages = count, "claiming {count} ingestions failed");
    context.pauses.close(Door::Database);
    let hidden = wanted.iter().map(|wanted| {
        metrics::delivery("trouble");
        context.hide(&wanted.ticket, Some(wanted.id), jittered(TROUBLE))
    });
    futures::future::join_all(hidden).await;
}

async fn answer_without_work(context: &Context, wanted: Wanted, answer: Claim) {
    let Wanted { id, delivery, ticket } = wanted;
    match answer {
        Claim::Busy(remaining) => {
            metrics::delivery("busy");
            context.hide(&ticket, Some(id), jittered(remaining)).await;
        }
        Claim::NotDue(wait) => {
            metrics::delivery("not_due");
            context.hide(&ticket, Some(id), wait).await;
        }
        Claim::Exhausted => {
            metrics::delivery("exhausted");
            tracing::error!(ingestion.id = %id, "ingestion {id} given up: crashed");
            context.acknowledge(&ticket).await;
        }
        Claim::Terminal(status) => {
            metrics::delivery("terminal");
            tracing::debug!(ingestion.id = %id, status = status.code(), "{id} is done already");
            context.acknowledge(&ticket).await;
        }
        Claim::Unknown => unknown(context, id, &delivery, &ticket).await,
        Claim::Claimed(_) => {}
    }
}

/// The row may still be on its way (a producer that sends before it commits), or never come.
async fn unknown(context: &Context, id: IngestionId, delivery: &Delivery, ticket: &Ticket) {
    let settings = &context.settings;
    let age = delivery.sent_at.and_then(|sent| SystemTime::now().duration_since(sent).ok());
    let is_old = age.is_some_and(|age| age >= settings.unknown_age);
    if is_old && delivery.receive_count >= settings.unknown_receives {
        let why = "no such ingestion after many receives";
        return quarantine(context, delivery, ticket, ("unknown_ingestion", why)).await;
    }
    metrics::delivery("unknown");
    let growing = Duration::from_secs(5) * (1 << delivery.receive_count.saturating_sub(1).min(7));
    let delay = growing.min(Duration::from_secs(600));
    tracing::info!(ingestion.id = %id, "ingestion {id} is not in the database yet");
    // Never replaced by a fresh message: its age is what ends the waiting.
    context.hide(ticket, None, jittered(delay)).await;
}

fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(1.0 + fastrand::f64() / 10.0) + Duration::from_millis(fastrand::u64(0..250))
}
