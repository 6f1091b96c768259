//! From a received batch to jobs: every delivery gets exactly one answer.
//!
//! Bodies that ask for several things are fanned out, one message each, and then acknowledged.
//! All ingestions of the batch are claimed by one statement. One slow job never holds back others
//! of its batch: each runs on its own and the batch is forgotten.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tracing::Span;

use crate::pipeline::{ClaimHandle, claim_handle};
use crate::runner::{ClaimedJob, RunnerHandle, SlotPermit};
use crate::worker::registry::InFlightMessage;
use crate::worker::{DATABASE, LONGEST_DELAY, PARK_TIMEOUT, QueueBacklog, QueuedJob, finalize};
use docmill_client::telemetry::spans;
use docmill_core::fault;
use docmill_core::metrics;
use docmill_core::model::message::{MessageBody, ObjectCreated};
use docmill_core::model::{ClaimedIngestion, DocumentId, IngestionId};
use docmill_core::retry::with_deadline;
use docmill_ledger::ledger::{ClaimOutcome, ClaimRelease, ObjectRegistration, QuarantinedMessage};
use docmill_queue::queue::{Delivery, OutgoingMessage};
use docmill_storage::store::keys;

/// How long a message is hidden when something it needs did not answer.
const TROUBLE: Duration = Duration::from_secs(10);
/// One statement may take so long.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(20);
/// A body kept in quarantine is cut to this.
const QUARANTINED_BYTES: usize = 64 << 10;

/// A message that asks for one ingestion.
struct RequestedIngestion {
    id: IngestionId,
    delivery: Delivery,
    ticket: InFlightMessage,
}

/// Answers every delivery; starts a job, on one of the slots, for each claimed ingestion.
pub async fn handle_batch(
    backlog: Arc<QueueBacklog>,
    runner: RunnerHandle<QueueBacklog>,
    deliveries: Vec<Delivery>,
    slots: Vec<SlotPermit>,
) {
    // All of them enter the registry first: the heartbeat counts from the receipt.
    let held: Vec<(Delivery, InFlightMessage)> = deliveries
        .into_iter()
        .map(|delivery| {
            let ticket = backlog.registry.hold(&delivery);
            (delivery, ticket)
        })
        .collect();
    if runner.is_stopping() {
        let releases = held.iter().map(|(_, ticket)| backlog.release(ticket));
        futures::future::join_all(releases).await;
        return;
    }
    let answers =
        held.into_iter().map(|(delivery, ticket)| parse_request(&backlog, delivery, ticket));
    let wanted: Vec<RequestedIngestion> =
        futures::future::join_all(answers).await.into_iter().flatten().collect();
    if !wanted.is_empty() {
        claim_requested(&backlog, &runner, wanted, slots.into()).await;
    }
}

/// Reads the body; everything but a single ingestion that nobody here has is answered at once.
async fn parse_request(
    backlog: &QueueBacklog,
    delivery: Delivery,
    ticket: InFlightMessage,
) -> Option<RequestedIngestion> {
    let id = match MessageBody::parse(&delivery.body) {
        MessageBody::Ingestion(id) => id,
        MessageBody::Group(ids) => {
            fan_out(backlog, &ticket, ids).await;
            return None;
        }
        MessageBody::Objects(objects) => match register_allowed(backlog, objects).await {
            Ok(ids) => match ids.as_slice() {
                [] => {
                    acknowledge_without_work(backlog, &ticket, "not_allowed").await;
                    return None;
                }
                [id] => *id,
                _ => {
                    fan_out(backlog, &ticket, ids).await;
                    return None;
                }
            },
            Err(error) => {
                hide_after_error(backlog, &ticket, &error).await;
                return None;
            }
        },
        MessageBody::NoWork(what) => {
            acknowledge_without_work(backlog, &ticket, what).await;
            return None;
        }
        MessageBody::Malformed(why) => {
            quarantine_delivery(backlog, &delivery, &ticket, "malformed", why).await;
            return None;
        }
    };
    if ticket.reserve(id) {
        return Some(RequestedIngestion { id, delivery, ticket });
    }
    // This process works on it already; that job has adopted our receipt.
    metrics::count_delivery("mine");
    None
}

/// Registers the objects that may be ours; the others need no work.
async fn register_allowed(
    backlog: &QueueBacklog,
    objects: Vec<ObjectCreated>,
) -> fault::Result<Vec<IngestionId>> {
    let ours: Vec<ObjectRegistration> = objects
        .into_iter()
        .filter(|object| is_allowed(backlog, object))
        .map(build_registration)
        .collect();
    if ours.is_empty() {
        return Ok(Vec::new());
    }
    backlog.ledger.register_objects(&ours).await
}

fn is_allowed(backlog: &QueueBacklog, object: &ObjectCreated) -> bool {
    !keys::is_own_artefact(&object.key)
        && backlog.allowed.iter().any(|allowed| {
            allowed.bucket == object.bucket && object.key.starts_with(&allowed.prefix)
        })
}

fn build_registration(object: ObjectCreated) -> ObjectRegistration {
    let ObjectCreated { bucket, key, version, etag, sequencer, size } = object;
    let revision = version.as_deref().or(etag.as_deref()).unwrap_or_default();
    let order = sequencer.as_deref().unwrap_or_default();
    // A bucket that announces uploads announces those of `submit` too: what it registers, or will
    // in a moment, is the same document and the same ingestion.
    let (document, ingestion) = match keys::submitted_document(&key) {
        Some(document) => (document, IngestionId::first_for_document(document)),
        None => (
            DocumentId::from_object(&bucket, &key),
            IngestionId::from_object_version(&bucket, &key, revision, order),
        ),
    };
    ObjectRegistration {
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
async fn fan_out(backlog: &QueueBacklog, ticket: &InFlightMessage, ids: Vec<IngestionId>) {
    let messages: Vec<OutgoingMessage> =
        ids.iter().map(|id| ticket.replacement_message(id.to_string())).collect();
    let answers = backlog.queue.send(&messages).await;
    if let Some(error) = answers.into_iter().find_map(Result::err) {
        hide_after_error(backlog, ticket, &error).await;
        return;
    }
    metrics::count_delivery("fanned_out");
    backlog.acknowledge(ticket).await;
}

async fn acknowledge_without_work(
    backlog: &QueueBacklog,
    ticket: &InFlightMessage,
    what: &'static str,
) {
    metrics::count_delivery("no_work");
    tracing::debug!(what, "a message that asks for nothing: {what}");
    backlog.acknowledge(ticket).await;
}

/// Keeps a copy, then deletes; without the copy the message stays.
async fn quarantine_delivery(
    backlog: &QueueBacklog,
    delivery: &Delivery,
    ticket: &InFlightMessage,
    reason: &'static str,
    why: &'static str,
) {
    let mut body = delivery.body.clone();
    let mut end = body.len().min(QUARANTINED_BYTES);
    while !body.is_char_boundary(end) {
        end -= 1;
    }
    body.truncate(end);
    let message = QuarantinedMessage {
        message_id: delivery.message_id.clone(),
        body,
        reason: reason.to_owned(),
        receive_count: delivery.receive_count,
    };
    if let Err(error) = backlog.ledger.quarantine_message(&message).await {
        hide_after_error(backlog, ticket, &error).await;
        return;
    }
    metrics::count_delivery(reason);
    metrics::count_quarantined(reason);
    let id = &delivery.message_id;
    tracing::warn!(message.id = %id, reason, why, "message {id} put into quarantine: {why}");
    backlog.acknowledge(ticket).await;
}

/// Something the message needs did not answer: it comes back in a while.
async fn hide_after_error(backlog: &QueueBacklog, ticket: &InFlightMessage, error: &fault::Error) {
    metrics::count_delivery("trouble");
    tracing::warn!(error = %error, "a message could not be looked at: {error}");
    if backlog.ledger.current_time().await.is_err() {
        backlog.intake_gate.close(DATABASE);
    }
    backlog.hide(ticket, None, add_jitter(TROUBLE)).await;
}

async fn claim_requested(
    backlog: &QueueBacklog,
    runner: &RunnerHandle<QueueBacklog>,
    wanted: Vec<RequestedIngestion>,
    mut slots: VecDeque<SlotPermit>,
) {
    let Some(wanted) = park_paused(backlog, wanted).await else { return };
    let ids: Vec<IngestionId> = wanted.iter().map(|wanted| wanted.id).collect();
    let asked_at = Instant::now();
    let asked = backlog.ledger.claim(&ids, &backlog.terms);
    let answers = match tokio::time::timeout(CLAIM_TIMEOUT, asked).await {
        Ok(Ok(answers)) => answers,
        Ok(Err(error)) => return hide_requested(backlog, wanted, &error).await,
        Err(_) => {
            let error = fault::Error::transient("claiming took too long");
            return hide_requested(backlog, wanted, &error).await;
        }
    };
    let claiming = asked_at..Instant::now();
    let unknown = answers.iter().filter(|answer| matches!(answer, ClaimOutcome::Unknown)).count();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    backlog.pauses.count_unknown(count(answers.len()), count(unknown), &backlog.intake_gate);
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    for (wanted, answer) in wanted.into_iter().zip(answers) {
        match answer {
            ClaimOutcome::Claimed(claimed) => {
                let Some(slot) = slots.pop_front() else {
                    // Cannot happen: no more is received than there are slots.
                    tracing::error!(ingestion.id = %wanted.id, "{} has no slot", wanted.id);
                    continue;
                };
                let RequestedIngestion { delivery, ticket, .. } = wanted;
                let taken = ClaimedDelivery {
                    claimed: *claimed,
                    delivery,
                    ticket,
                    claiming: claiming.clone(),
                };
                ours.push(start_job(backlog, runner, taken, slot));
            }
            answer => others.push(answer_without_work(backlog, wanted, answer)),
        }
    }
    drop(slots);
    tokio::join!(futures::future::join_all(ours), futures::future::join_all(others));
}

/// What a pause holds back is not claimed: it waits without a message until the pause is lifted.
/// Returns the others; `None`: there are none, or nothing could be asked.
async fn park_paused(
    backlog: &QueueBacklog,
    wanted: Vec<RequestedIngestion>,
) -> Option<Vec<RequestedIngestion>> {
    if !backlog.pauses.is_partly_paused() {
        return Some(wanted);
    }
    let ids: Vec<IngestionId> = wanted.iter().map(|wanted| wanted.id).collect();
    let asked = backlog.ledger.park(&ids, &backlog.pause_terms, LONGEST_DELAY);
    let late = || fault::Error::transient("asking what is paused took too long");
    let parked = match with_deadline(PARK_TIMEOUT, asked, late).await {
        Ok(parked) => parked,
        Err(error) => {
            let hidden = wanted.iter().map(|it| hide_after_error(backlog, &it.ticket, &error));
            futures::future::join_all(hidden).await;
            return None;
        }
    };
    let (held, free): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|wanted| parked.contains(&wanted.id));
    let answers = held.iter().map(|held| {
        metrics::count_delivery("parked");
        metrics::count_disposition("park");
        backlog.acknowledge(&held.ticket)
    });
    futures::future::join_all(answers).await;
    (!free.is_empty()).then_some(free)
}

/// An ingestion that is ours, and the message that named it.
struct ClaimedDelivery {
    claimed: ClaimedIngestion,
    delivery: Delivery,
    ticket: InFlightMessage,
    /// When the claim was asked for, and when it was answered.
    claiming: Range<Instant>,
}

/// Starts the job; with `queue.acknowledge = "early"` the message goes first, and only who deleted
/// it works.
async fn start_job(
    backlog: &QueueBacklog,
    runner: &RunnerHandle<QueueBacklog>,
    taken: ClaimedDelivery,
    slot: SlotPermit,
) {
    let sent_at = taken.delivery.sent_at;
    if let Some(waited) = sent_at.and_then(|sent| SystemTime::now().duration_since(sent).ok()) {
        metrics::queue_wait(waited);
    }
    let ClaimedIngestion { id, token, lease_until, .. } = taken.claimed;
    let (claim, renewer) = claim_handle::claim_pair(id, token, lease_until);
    if backlog.acknowledges_early() && !try_delete_early(backlog, &taken.ticket).await {
        return release_unstarted(backlog, &claim).await;
    }
    let trace = job_span(backlog, &taken);
    let ClaimedDelivery { claimed, ticket, claiming, .. } = taken;
    let log = tracing::info_span!(
        "job",
        ingestion.id = %claimed.id,
        document.id = %claimed.document.id,
        ingestion.attempt = claimed.attempt,
    );
    let since = claiming.start.into();
    let job = QueuedJob { claimed, ticket };
    runner.start_job(ClaimedJob { job, claim, renewer, since, trace, log }, slot);
}

/// Whether the message is deleted, and was so by us.
async fn try_delete_early(backlog: &QueueBacklog, ticket: &InFlightMessage) -> bool {
    let receipts = ticket.take_receipts();
    let answers = backlog.queue.try_acknowledge(&receipts).await;
    let won = !answers.is_empty() && answers.iter().all(|answer| matches!(answer, Ok(true)));
    if won {
        metrics::count_disposition("acknowledge");
    }
    won
}

/// The message is another's, or still there: the claim is released without a trace of work.
async fn release_unstarted(backlog: &QueueBacklog, claim: &ClaimHandle) {
    let how = ClaimRelease {
        fault: fault::Fault::Interrupted,
        counted: false,
        after: Duration::ZERO,
        stage: claim.stage(),
        detail: "the worker was stopped".to_owned(),
    };
    finalize::write_release(backlog.ledger.as_ref(), claim, &how).await;
    metrics::count_delivery("claimed");
    metrics::count_disposition("leave");
    let id = claim.id;
    tracing::warn!(
        ingestion.id = %id,
        "the message of {id} could not be deleted before the work, which is left alone"
    );
}

/// The span of the job, with what was done for its whole batch.
fn job_span(backlog: &QueueBacklog, taken: &ClaimedDelivery) -> Span {
    let ClaimedDelivery { claimed, delivery, claiming, .. } = taken;
    let message = spans::TracedMessage {
        from: &backlog.destination,
        id: &delivery.message_id,
        receive_count: delivery.receive_count,
        traceparent: delivery.traceparent.as_deref(),
    };
    let work = spans::TracedAttempt {
        ingestion: claimed.id,
        document: &claimed.document.id,
        attempt: claimed.attempt,
    };
    let span = spans::process_span(message, work);
    spans::add_past_span(&span, "receive", delivery.received, claiming.start);
    spans::add_past_span(&span, "claim", claiming.start, claiming.end);
    span
}

async fn hide_requested(
    backlog: &QueueBacklog,
    wanted: Vec<RequestedIngestion>,
    error: &fault::Error,
) {
    let count = wanted.len();
    tracing::warn!(error = %error, messages = count, "claiming {count} ingestions failed");
    backlog.intake_gate.close(DATABASE);
    let hidden = wanted.iter().map(|wanted| {
        metrics::count_delivery("trouble");
        backlog.hide(&wanted.ticket, Some(wanted.id), add_jitter(TROUBLE))
    });
    futures::future::join_all(hidden).await;
}

async fn answer_without_work(
    backlog: &QueueBacklog,
    wanted: RequestedIngestion,
    answer: ClaimOutcome,
) {
    let RequestedIngestion { id, delivery, ticket } = wanted;
    match answer {
        ClaimOutcome::Busy(remaining) => {
            metrics::count_delivery("busy");
            backlog.hide(&ticket, Some(id), add_jitter(remaining)).await;
        }
        ClaimOutcome::NotDue(wait) => {
            metrics::count_delivery("not_due");
            backlog.hide(&ticket, Some(id), wait).await;
        }
        ClaimOutcome::Exhausted => {
            metrics::count_delivery("exhausted");
            tracing::error!(ingestion.id = %id, "ingestion {id} given up: crashed");
            backlog.acknowledge(&ticket).await;
        }
        ClaimOutcome::Terminal(status) => {
            metrics::count_delivery("terminal");
            tracing::debug!(ingestion.id = %id, status = status.code(), "{id} is done already");
            backlog.acknowledge(&ticket).await;
        }
        ClaimOutcome::Unknown => handle_unknown(backlog, id, &delivery, &ticket).await,
        ClaimOutcome::Claimed(_) => {}
    }
}

/// The row may still be on its way (a producer that sends before it commits), or never come.
async fn handle_unknown(
    backlog: &QueueBacklog,
    id: IngestionId,
    delivery: &Delivery,
    ticket: &InFlightMessage,
) {
    let settings = &backlog.config.queue;
    let age = delivery.sent_at.and_then(|sent| SystemTime::now().duration_since(sent).ok());
    let is_old = age.is_some_and(|age| age >= settings.unknown_age);
    if is_old && delivery.receive_count >= settings.unknown_receives {
        let why = "no such ingestion after many receives";
        return quarantine_delivery(backlog, delivery, ticket, "unknown_ingestion", why).await;
    }
    metrics::count_delivery("unknown");
    let growing = Duration::from_secs(5) * (1 << delivery.receive_count.saturating_sub(1).min(7));
    let delay = growing.min(Duration::from_secs(600));
    tracing::info!(ingestion.id = %id, "ingestion {id} is not in the database yet");
    // Never replaced by a fresh message: its age is what ends the waiting.
    backlog.hide(ticket, None, add_jitter(delay)).await;
}

fn add_jitter(delay: Duration) -> Duration {
    delay.mul_f64(1.0 + fastrand::f64() / 10.0) + Duration::from_millis(fastrand::u64(0..250))
}
