//! From a received batch to jobs: every delivery gets exactly one answer.
//!
//! All ids of the batch are claimed by one statement, at once. What other bodies ask for is found out
//! by `arrival`, each by itself, and claimed then: neither a slow body nor a slow job holds back
//! others of its batch.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use tracing::Span;

use crate::registry::InFlightMessage;
use crate::runner::{ClaimedJob, RunnerHandle, SlotPermit};
use crate::{DATABASE, MAX_DELAY, QueueBacklog, QueuedJob, arrival, finalize};
use docmill_client::telemetry::spans;
use docmill_core::fault;
use docmill_core::mend::{self, SwitchableMend};
use docmill_core::metrics;
use docmill_core::model::message::MessageBody;
use docmill_core::model::{ClaimedIngestion, IngestionId};
use docmill_core::retry::RetryBackoff;
use docmill_core::work_clock::LinePlace;
use docmill_ledger::{ClaimOutcome, ClaimRelease, ClaimRequest};
use docmill_pipeline::failpoint::{FailureSeam, guard_call};
use docmill_pipeline::{ClaimHandle, claim_handle};
use docmill_queue::Delivery;

/// How long a message is hidden when it could not be claimed.
const TROUBLE: Duration = Duration::from_secs(10);
/// Between two tries to claim a batch while Postgres does not answer.
const CLAIM_WAITS: RetryBackoff =
    RetryBackoff::doubling(Duration::from_millis(200)).up_to(Duration::from_secs(5));
/// A message whose row somebody has locked is hidden so long.
const LOCKED: Duration = Duration::from_secs(5);

/// A message that asks for one ingestion.
struct RequestedIngestion {
    id: IngestionId,
    delivery: Delivery,
    ticket: InFlightMessage,
    /// As it was received: claims that are asked for together may be answered in any order.
    place: LinePlace,
    /// Whether the message holds the id itself, as producers send it.
    named_by_id: bool,
}

/// A message that holds something else than an id.
struct ArrivedBody {
    body: MessageBody,
    delivery: Delivery,
    ticket: InFlightMessage,
    place: LinePlace,
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
    let (mut wanted, mut others) = (Vec::new(), Vec::new());
    for (delivery, ticket) in held {
        let place = LinePlace::take();
        match MessageBody::parse(&delivery.body) {
            MessageBody::Ingestion(id) if ticket.reserve(id) => {
                wanted.push(RequestedIngestion { id, delivery, ticket, place, named_by_id: true });
            }
            // This process works on it already; that job has adopted our receipt.
            MessageBody::Ingestion(_) => metrics::count_delivery("mine"),
            body => others.push(ArrivedBody { body, delivery, ticket, place }),
        }
    }
    let mut slots = VecDeque::from(slots);
    let mut left = slots.split_off(wanted.len().min(slots.len()));
    left.truncate(others.len());
    let others: Vec<_> = others
        .into_iter()
        .map(|arrived| handle_body(&backlog, &runner, arrived, left.pop_front()))
        .collect();
    drop(left);
    let claims = async {
        if !wanted.is_empty() {
            claim_requested(&backlog, &runner, wanted, slots).await;
        }
    };
    tokio::join!(claims, futures::future::join_all(others));
}

/// Finds out what a body asks for, and claims it by itself: however long that takes, the other
/// messages of its batch do not wait for it.
async fn handle_body(
    backlog: &QueueBacklog,
    runner: &RunnerHandle<QueueBacklog>,
    arrived: ArrivedBody,
    slot: Option<SlotPermit>,
) {
    let ArrivedBody { body, delivery, ticket, place } = arrived;
    // Only the event about one object may become a job; nothing else keeps its slot meanwhile.
    let slot = slot.filter(|_| matches!(body, MessageBody::Objects(_)));
    let Some(id) = arrival::resolve_body(backlog, body, &delivery, &ticket).await else { return };
    if !ticket.reserve(id) {
        metrics::count_delivery("mine");
        return;
    }
    let wanted = RequestedIngestion { id, delivery, ticket, place, named_by_id: false };
    claim_requested(backlog, runner, vec![wanted], slot.into_iter().collect()).await;
}

async fn claim_requested(
    backlog: &QueueBacklog,
    runner: &RunnerHandle<QueueBacklog>,
    wanted: Vec<RequestedIngestion>,
    slots: VecDeque<SlotPermit>,
) {
    // Whatever the answers are, they are about the time at which they are asked for.
    wanted.iter().for_each(|wanted| wanted.ticket.seal());
    let Some(wanted) = park_paused(backlog, wanted).await else { return };
    let asked = wanted.iter().map(|wanted| ClaimRequest::with_fresh_token(wanted.id)).collect();
    claim_batch(backlog, runner, PendingClaims { wanted, asked, slots, in_doubt: false }).await;
}

/// Claims that are being asked for, each under its own token.
struct PendingClaims {
    wanted: Vec<RequestedIngestion>,
    asked: Vec<ClaimRequest>,
    /// For the jobs that are to come of them.
    slots: VecDeque<SlotPermit>,
    /// Whether they may have been made by a statement whose answer was lost.
    in_doubt: bool,
}

impl PendingClaims {
    /// Messages whose claims were never asked for.
    fn unasked(wanted: Vec<RequestedIngestion>) -> Self {
        Self { wanted, asked: Vec::new(), slots: VecDeque::new(), in_doubt: false }
    }

    /// What is in doubt and cannot be told yet is asked for again, and keeps its slots; everything
    /// else is answered. The rows of others are no reason for it to wait.
    fn split_untold(self, answers: Vec<ClaimOutcome>) -> (Self, AnsweredClaims) {
        let Self { wanted, asked, mut slots, in_doubt } = self;
        let mut untold = Self { in_doubt, ..Self::unasked(Vec::new()) };
        let mut answered = Vec::new();
        for ((wanted, asked), answer) in wanted.into_iter().zip(asked).zip(answers) {
            if in_doubt && is_locked(&answer) {
                untold.wanted.push(wanted);
                untold.asked.push(asked);
            } else {
                answered.push((wanted, answer));
            }
        }
        untold.slots = slots.split_off(slots.len().saturating_sub(untold.wanted.len()));
        (untold, AnsweredClaims { answered, slots })
    }
}

/// Claims and starts; what is untold is claimed again beside the work that goes on.
async fn claim_batch(
    backlog: &QueueBacklog,
    runner: &RunnerHandle<QueueBacklog>,
    mut pending: PendingClaims,
) {
    let (answers, claiming) = match claim_until_answered(backlog, runner, &mut pending).await {
        Ok(answered) => answered,
        Err(error) => return give_up_claims(backlog, pending, &error).await,
    };
    let (untold, answered) = pending.split_untold(answers);
    let again = async {
        if !untold.wanted.is_empty() {
            Box::pin(claim_batch(backlog, runner, untold)).await;
        }
    };
    tokio::join!(answer_claims(backlog, runner, answered, claiming), again);
}

/// What the ledger said of messages, and the slots for those that it gave us.
struct AnsweredClaims {
    answered: Vec<(RequestedIngestion, ClaimOutcome)>,
    slots: VecDeque<SlotPermit>,
}

/// Starts what is ours, and answers the other messages.
async fn answer_claims(
    backlog: &QueueBacklog,
    runner: &RunnerHandle<QueueBacklog>,
    answers: AnsweredClaims,
    claiming: Range<Instant>,
) {
    let AnsweredClaims { answered, mut slots } = answers;
    // Only ids that producers sent say whether it is the right database, each of them once.
    let is_news = |wanted: &RequestedIngestion| wanted.delivery.receive_count <= 1;
    let sent = || answered.iter().filter(|(wanted, _)| wanted.named_by_id && is_news(wanted));
    let unknown = sent().filter(|(_, answer)| matches!(answer, ClaimOutcome::Unknown)).count();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    backlog.pauses.count_unknown(count(sent().count()), count(unknown), &backlog.intake_gate);
    let (mut ours, mut others, mut unstarted) = (Vec::new(), Vec::new(), Vec::new());
    for (wanted, answer) in answered {
        match answer {
            ClaimOutcome::Claimed(claimed) => {
                let RequestedIngestion { delivery, ticket, place, .. } = wanted;
                let taken = ClaimedDelivery {
                    claimed: *claimed,
                    delivery,
                    ticket,
                    place,
                    claiming: claiming.clone(),
                };
                match slots.pop_front() {
                    Some(slot) => ours.push(start_job(backlog, runner, taken, slot)),
                    // More than was asked for.
                    None => unstarted.push(release_delivery(backlog, taken)),
                }
            }
            answer => others.push(answer_without_work(backlog, wanted, answer)),
        }
    }
    drop(slots);
    let (ours, others) = (futures::future::join_all(ours), futures::future::join_all(others));
    tokio::join!(ours, others, futures::future::join_all(unstarted));
}

/// Asks for the claims until they are answered, always under the same tokens: those that were made
/// although the answer was lost are taken up, and not taken for a crash of ours once their lease is
/// over. Meanwhile the messages stay ours, and intake is closed while the ledger does not answer.
/// Given up at a stop, or when the ledger refuses them and there is no doubt. Returns the answers, in
/// the order of the claims, and from when to when they were asked for.
async fn claim_until_answered(
    backlog: &QueueBacklog,
    runner: &RunnerHandle<QueueBacklog>,
    pending: &mut PendingClaims,
) -> fault::Result<(Vec<ClaimOutcome>, Range<Instant>)> {
    let (begun, mut failed) = (Instant::now(), 0);
    loop {
        // Not dropped at a stop: the statement has its own limit, and its answer is worth it.
        let claiming = backlog.ledger.claim_with_tokens(&pending.asked, &backlog.terms);
        let error = match guard_call(FailureSeam::Claim, claiming).await {
            // A locked row may have our claim already.
            Ok(answers) if pending.in_doubt && answers.iter().all(is_locked) => {
                fault::Error::transient("a row that may be claimed is locked by another session")
            }
            Ok(answers) => return Ok((answers, begun..Instant::now())),
            Err(error) => {
                backlog.intake_gate.close(DATABASE);
                pending.in_doubt |= error.fault == fault::Fault::Unavailable
                    && !mend::is_taken_out(SwitchableMend::ClaimRepeat);
                error
            }
        };
        let count = pending.asked.len();
        tracing::warn!(error = %error, messages = count, "claiming {count} ingestions failed");
        if !pending.in_doubt || runner.is_stopping() {
            return Err(error);
        }
        tokio::select! {
            () = runner.wait_until_stopping() => {}
            () = CLAIM_WAITS.sleep(failed) => {}
        }
        failed += 1;
    }
}

fn is_locked(answer: &ClaimOutcome) -> bool {
    matches!(answer, ClaimOutcome::Locked)
}

/// The messages come back in a while, at a stop at once; claims that may have been made are taken
/// back.
async fn give_up_claims(backlog: &QueueBacklog, pending: PendingClaims, error: &fault::Error) {
    let PendingClaims { wanted, asked, in_doubt, .. } = pending;
    tracing::warn!(error = %error, "the messages of a batch are given back: {error}");
    let hidden = wanted.iter().map(|wanted| {
        metrics::count_delivery("trouble");
        let after = if in_doubt { Duration::ZERO } else { add_jitter(TROUBLE) };
        backlog.hide(&wanted.ticket, Some(wanted.id), after)
    });
    let taken_back = asked.iter().filter(|_| in_doubt).map(|asked| async move {
        let (claim, _renewer) = claim_handle::claim_pair(
            asked.id,
            asked.token,
            (Instant::now() + backlog.terms.lease).into_std(),
        );
        let stopped = unstarted_release(&claim);
        finalize::write_release(backlog.ledger.as_ref(), &claim, &stopped).await;
    });
    tokio::join!(futures::future::join_all(hidden), futures::future::join_all(taken_back));
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
    let parked = match backlog.ledger.park(&ids, &backlog.pause_terms, MAX_DELAY).await {
        Ok(parked) => parked,
        Err(error) => {
            backlog.intake_gate.close(DATABASE);
            give_up_claims(backlog, PendingClaims::unasked(wanted), &error).await;
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
    place: LinePlace,
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
    taken.ticket.unseal();
    let ClaimedIngestion { id, token, lease_until, .. } = taken.claimed;
    let (claim, renewer) = claim_handle::claim_pair(id, token, lease_until);
    if backlog.acknowledges_early() && !try_delete_early(backlog, &taken.ticket).await {
        return release_unstarted(backlog, &claim).await;
    }
    let trace = job_span(backlog, &taken);
    let ClaimedDelivery { claimed, ticket, place, claiming, .. } = taken;
    let log = tracing::info_span!(
        "job",
        ingestion.id = %claimed.id,
        document.id = %claimed.document.id,
        ingestion.attempt = claimed.attempt,
    );
    let since = claiming.start;
    let job = QueuedJob { claimed, ticket };
    runner.start_job(ClaimedJob { job, claim, renewer, since, place, trace, log }, slot);
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

/// A claim without a slot to work on it: given back, and its message as well.
async fn release_delivery(backlog: &QueueBacklog, taken: ClaimedDelivery) {
    let ClaimedIngestion { id, token, lease_until, .. } = taken.claimed;
    tracing::error!(ingestion.id = %id, "{id} has no slot");
    let (claim, _renewer) = claim_handle::claim_pair(id, token, lease_until);
    let stopped = unstarted_release(&claim);
    finalize::write_release(backlog.ledger.as_ref(), &claim, &stopped).await;
    backlog.release(&taken.ticket).await;
}

/// How a claim is given back on which no work was begun.
fn unstarted_release(claim: &ClaimHandle) -> ClaimRelease {
    ClaimRelease {
        fault: fault::Fault::Interrupted,
        counted: false,
        after: Duration::ZERO,
        stage: claim.stage(),
        detail: "the worker was stopped".to_owned(),
    }
}

/// The message is another's, or still there: the claim is released without a trace of work.
async fn release_unstarted(backlog: &QueueBacklog, claim: &ClaimHandle) {
    let how = unstarted_release(claim);
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
    let (asked, answered) = (claiming.start.into_std(), claiming.end.into_std());
    spans::add_past_span(&span, "receive", delivery.received, asked);
    spans::add_past_span(&span, "claim", asked, answered);
    span
}

async fn answer_without_work(
    backlog: &QueueBacklog,
    wanted: RequestedIngestion,
    answer: ClaimOutcome,
) {
    let RequestedIngestion { id, delivery, ticket, .. } = wanted;
    match answer {
        ClaimOutcome::Busy(remaining) => {
            metrics::count_delivery("busy");
            backlog.hide(&ticket, Some(id), add_jitter(remaining)).await;
        }
        ClaimOutcome::Locked => {
            metrics::count_delivery("locked");
            backlog.hide(&ticket, Some(id), add_jitter(LOCKED)).await;
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
        ClaimOutcome::Unknown => {
            tracing::info!(ingestion.id = %id, "ingestion {id} is not in the database yet");
            arrival::wait_for(backlog, &delivery, &ticket, "unknown_ingestion").await;
        }
        ClaimOutcome::Claimed(_) => {}
    }
}

pub(super) fn add_jitter(delay: Duration) -> Duration {
    delay.mul_f64(1.0 + fastrand::f64() / 10.0) + Duration::from_millis(fastrand::u64(0..250))
}
