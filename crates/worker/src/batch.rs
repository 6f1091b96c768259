//! From a received batch to jobs: every delivery gets exactly one answer.
//!
//! One statement claims all ids of the batch. `arrival` resolves other bodies one by one, and
//! claims them separately: neither a slow body nor a slow job delays others of its batch.
//! Suspects are answered but not claimed; they are claimed one by one in a turn of their own.
//!
//! If the answer of the statement is lost, the claims are in doubt (`in_doubt`): they may be
//! committed. They are claimed again under the same tokens, so that a committed claim is returned
//! instead of counting as a crash:
//!
//! ```text
//! worker                              ledger
//!   | claim a, b, c (tokens 1, 2, 3) --> | commits a, b; c is leased to another worker
//!   | <-- connection lost                |   in_doubt = true, intake closes
//!   | claim a, b, c (tokens 1, 2, 3) --> | old session still holds the lock of b
//!   | <-- a claimed, b locked, c busy    |   split_unresolved
//!   | start a; hide c                    |   without waiting for b
//!   | claim b (token 2) ---------------> | lock released
//!   | <-- b claimed                      |
//!   | stop meanwhile: release_claim b -> |   give_up_claims
//! ```

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use tracing::Span;

use crate::registry::InFlightMessage;
use crate::runner::{ClaimedJob, RunnerHandle, SlotPermit};
use crate::{CLAIMS, DATABASE, MAX_DELAY, QueueJobSource, QueuedJob, arrival, finalize};
use docmill_client::telemetry::spans;
use docmill_core::fault;
use docmill_core::metrics;
use docmill_core::model::message::MessageBody;
use docmill_core::model::{ClaimedIngestion, IngestionId};
use docmill_core::regression::{self, FixToggle};
use docmill_core::retry::{Jitter, RetryBackoff};
use docmill_core::work_clock::CpuQueuePosition;
use docmill_ledger::{
    ClaimCompany, ClaimOutcome, ClaimRelease, ClaimRequest, LeaseRenewal, LeaseStatus,
};
use docmill_pipeline::failpoint::{FailureSeam, guard_call};
use docmill_pipeline::{ClaimHandle, claim_handle};
use docmill_queue::Delivery;

/// How long a message is hidden when it could not be claimed.
const LEDGER_FAILURE_DELAY: Duration = Duration::from_secs(10);
/// Between two tries to claim a batch while Postgres does not answer.
const CLAIM_WAITS: RetryBackoff = RetryBackoff::doubling(Duration::from_millis(200))
    .up_to(Duration::from_secs(5))
    .with_jitter(Jitter::Quarter);
/// Hide time of a message whose row another worker has claimed, by receive count: most jobs take
/// seconds. Never beyond that claim's lease.
const BUSY_WAITS: RetryBackoff = RetryBackoff::doubling(Duration::from_secs(15));
/// How long a message is hidden while another session has locked its row.
const LOCKED: Duration = Duration::from_secs(5);
/// How long a suspect's message is hidden while this worker is busy: another may be idle.
const SUSPECT_DELAY: Duration = Duration::from_secs(5);
/// How long a message is hidden while a suspect has its turn here.
const TURNED_AWAY_DELAY: Duration = Duration::from_secs(1);
/// How long other work waits for the end of a suspect to be written.
const LONE_END_TIMEOUT: Duration = Duration::from_secs(5);

/// A message that asks for one ingestion.
struct RequestedIngestion {
    id: IngestionId,
    delivery: Delivery,
    ticket: InFlightMessage,
    /// As it was received: claims that are asked for together may be answered in any order.
    place: CpuQueuePosition,
    /// Whether the message holds the id itself, as producers send it.
    named_by_id: bool,
}

/// A message that holds something else than an id.
struct ArrivedBody {
    body: MessageBody,
    delivery: Delivery,
    ticket: InFlightMessage,
    place: CpuQueuePosition,
}

/// Answers every delivery; starts a job, on one of the slots, for each claimed ingestion.
pub async fn handle_batch(
    source: Arc<QueueJobSource>,
    runner: RunnerHandle<QueueJobSource>,
    deliveries: Vec<Delivery>,
    slots: Vec<SlotPermit>,
) {
    // All of them enter the registry first: the heartbeat counts from the receipt.
    let held: Vec<(Delivery, InFlightMessage)> = deliveries
        .into_iter()
        .map(|delivery| {
            let ticket = source.registry.hold(&delivery);
            (delivery, ticket)
        })
        .collect();
    if runner.is_stopping() {
        let releases = held.iter().map(|(_, ticket)| source.release(ticket));
        futures::future::join_all(releases).await;
        return;
    }
    let (mut wanted, mut others) = (Vec::new(), Vec::new());
    for (delivery, ticket) in held {
        let place = CpuQueuePosition::take();
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
        .map(|arrived| handle_body(&source, &runner, arrived, left.pop_front()))
        .collect();
    drop(left);
    let claims = async {
        if !wanted.is_empty() {
            claim_requested(&source, &runner, wanted, slots).await;
        }
    };
    tokio::join!(claims, futures::future::join_all(others));
}

/// Resolves one body and claims its ingestion, independently of the other messages of the batch.
async fn handle_body(
    source: &QueueJobSource,
    runner: &RunnerHandle<QueueJobSource>,
    arrived: ArrivedBody,
    slot: Option<SlotPermit>,
) {
    let ArrivedBody { body, delivery, ticket, place } = arrived;
    // Only an event about one object may become a job; other bodies free their slot.
    let slot = slot.filter(|_| matches!(body, MessageBody::Objects(_)));
    let Some(id) = arrival::resolve_body(source, body, &delivery, &ticket).await else { return };
    if !ticket.reserve(id) {
        metrics::count_delivery("mine");
        return;
    }
    let wanted = RequestedIngestion { id, delivery, ticket, place, named_by_id: false };
    claim_requested(source, runner, vec![wanted], slot.into_iter().collect()).await;
}

async fn claim_requested(
    source: &QueueJobSource,
    runner: &RunnerHandle<QueueJobSource>,
    wanted: Vec<RequestedIngestion>,
    slots: VecDeque<SlotPermit>,
) {
    // Deliveries after this point may be news; they do not share these answers.
    wanted.iter().for_each(|wanted| wanted.ticket.seal());
    let Some(wanted) = park_paused(source, wanted).await else { return };
    let Some(claiming) = source.in_hand.begin_claiming() else {
        return hide_all(source, wanted, "turned_away", TURNED_AWAY_DELAY).await;
    };
    let asked = wanted.iter().map(|wanted| ClaimRequest::with_fresh_token(wanted.id)).collect();
    let pending = PendingClaims { wanted, asked, slots, in_doubt: false };
    let suspects = claim_batch(source, runner, pending).await;
    drop(claiming);
    if !suspects.wanted.is_empty() {
        take_suspects(source, runner, suspects).await;
    }
}

/// Suspects that were received together.
#[derive(Default)]
struct SuspectBatch {
    wanted: Vec<RequestedIngestion>,
    /// How long ago the first of them was accused.
    accused_for: Duration,
    /// For the job of the first.
    slot: Option<SlotPermit>,
}

impl SuspectBatch {
    fn merge(mut self, other: Self) -> Self {
        self.wanted.extend(other.wanted);
        self.accused_for = self.accused_for.max(other.accused_for);
        self.slot = self.slot.or(other.slot);
        self
    }
}

/// Works on suspects, and on nothing beside them; or leaves them to others for a while. Each is alone at
/// first; groups grow with the number that this worker has survived ([`lone_turn`](crate::lone_turn)).
async fn take_suspects(
    source: &QueueJobSource,
    runner: &RunnerHandle<QueueJobSource>,
    suspects: SuspectBatch,
) {
    let SuspectBatch { mut wanted, accused_for, mut slot } = suspects;
    let gate = &source.intake_gate;
    if let Some(turn) = source.in_hand.take_turn(accused_for, runner.is_work_done(), gate) {
        turn.wait_until_empty(runner).await;
        while !runner.is_stopping() && !turn.is_paused() && (slot.is_some() || turn.has_time()) {
            let Some(first) = wanted.pop() else { return };
            let mut group = vec![first];
            let mut slots = VecDeque::from([match slot.take() {
                Some(slot) => slot,
                None => runner.acquire_closed_slot().await,
            }]);
            while group.len() < turn.group_size()
                && let Some(slot) = runner.try_acquire_closed_slot()
                && let Some(next) = wanted.pop()
            {
                slots.push_back(slot);
                group.push(next);
            }
            let size = group.len();
            claim_suspects(source, runner, group, slots).await;
            runner.wait_until_work_done().await;
            turn.note_survived(size);
            if !settle_survivors(source, runner).await {
                break;
            }
        }
    }
    drop(slot);
    let delay = if runner.is_stopping() { Duration::ZERO } else { SUSPECT_DELAY };
    hide_all(source, wanted, "suspect", delay).await;
}

/// Waits until the ends of suspects are written; until then a death would count against them. `false`: an
/// end takes long, perhaps for a locked row, and the row says now that the document was survived.
async fn settle_survivors(source: &QueueJobSource, runner: &RunnerHandle<QueueJobSource>) -> bool {
    while tokio::time::timeout(LONE_END_TIMEOUT, runner.wait_until_idle()).await.is_err() {
        let unwritten = runner.unwritten_claims();
        let renewals: Vec<LeaseRenewal> = unwritten.iter().map(survivor_renewal).collect();
        match source.ledger.renew_leases(&renewals, source.terms.lease).await {
            Ok(answers) if !answers.contains(&LeaseStatus::Locked) => return false,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(error = %error, "the outcome of a suspect is not written yet")
            }
        }
    }
    true
}

/// Says in the row that the work is over.
fn survivor_renewal(claim: &ClaimHandle) -> LeaseRenewal {
    LeaseRenewal {
        id: claim.id,
        token: claim.token,
        new_stage: None,
        has_progress: true,
        is_over: true,
    }
}

/// Claims and starts a group of suspects.
async fn claim_suspects(
    source: &QueueJobSource,
    runner: &RunnerHandle<QueueJobSource>,
    wanted: Vec<RequestedIngestion>,
    slots: VecDeque<SlotPermit>,
) {
    let company = if wanted.len() == 1 { ClaimCompany::Nobody } else { ClaimCompany::Suspects };
    let asked = wanted.iter().map(|wanted| ClaimRequest::within(wanted.id, company)).collect();
    let pending = PendingClaims { wanted, asked, slots, in_doubt: false };
    // None is refused as a suspect to one that has nothing else in hand.
    let _none = claim_batch(source, runner, pending).await;
}

/// Leaves messages to other workers for a while.
async fn hide_all(
    source: &QueueJobSource,
    wanted: Vec<RequestedIngestion>,
    answer: &'static str,
    delay: Duration,
) {
    let hidden = wanted.iter().map(|wanted| {
        metrics::count_delivery(answer);
        let after = if delay.is_zero() { delay } else { add_jitter(delay) };
        source.hide(&wanted.ticket, Some(wanted.id), after)
    });
    futures::future::join_all(hidden).await;
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
    /// Messages whose claims were not requested.
    fn unasked(wanted: Vec<RequestedIngestion>) -> Self {
        Self { wanted, asked: Vec::new(), slots: VecDeque::new(), in_doubt: false }
    }

    /// Splits off locked rows while the claims are in doubt; they keep their slots and are claimed
    /// again. All other messages are answered now.
    fn split_unresolved(self, answers: Vec<ClaimOutcome>) -> (Self, AnsweredClaims) {
        let Self { wanted, asked, mut slots, in_doubt } = self;
        let mut unresolved = Self { in_doubt, ..Self::unasked(Vec::new()) };
        let mut answered = Vec::new();
        for ((wanted, asked), answer) in wanted.into_iter().zip(asked).zip(answers) {
            if in_doubt && is_locked(&answer) {
                unresolved.wanted.push(wanted);
                unresolved.asked.push(asked);
            } else {
                answered.push((wanted, answer));
            }
        }
        unresolved.slots = slots.split_off(slots.len().saturating_sub(unresolved.wanted.len()));
        (unresolved, AnsweredClaims { answered, slots })
    }
}

/// Claims and starts; unresolved claims are repeated beside the running work. Returns the suspects,
/// which are to be claimed alone.
async fn claim_batch(
    source: &QueueJobSource,
    runner: &RunnerHandle<QueueJobSource>,
    mut pending: PendingClaims,
) -> SuspectBatch {
    let (answers, claiming) = match claim_until_answered(source, runner, &mut pending).await {
        Ok(answered) => answered,
        Err(error) => {
            give_up_claims(source, pending, &error).await;
            return SuspectBatch::default();
        }
    };
    let (unresolved, answered) = pending.split_unresolved(answers);
    let again = async {
        match unresolved.wanted.is_empty() {
            true => SuspectBatch::default(),
            false => Box::pin(claim_batch(source, runner, unresolved)).await,
        }
    };
    let (found, later) = tokio::join!(answer_claims(source, runner, answered, claiming), again);
    found.merge(later)
}

/// The ledger's answers, and the slots for the claimed ingestions.
struct AnsweredClaims {
    answered: Vec<(RequestedIngestion, ClaimOutcome)>,
    slots: VecDeque<SlotPermit>,
}

/// Starts the claimed ingestions, and answers the other messages but those of suspects.
async fn answer_claims(
    source: &QueueJobSource,
    runner: &RunnerHandle<QueueJobSource>,
    answers: AnsweredClaims,
    claiming: Range<Instant>,
) -> SuspectBatch {
    let AnsweredClaims { answered, mut slots } = answers;
    // Only first deliveries of ids sent by producers show whether the database is the right one.
    let is_news = |wanted: &RequestedIngestion| wanted.delivery.receive_count <= 1;
    let sent = || answered.iter().filter(|(wanted, _)| wanted.named_by_id && is_news(wanted));
    let unknown = sent().filter(|(_, answer)| matches!(answer, ClaimOutcome::Unknown)).count();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    source.pauses.count_unknown(count(sent().count()), count(unknown), &source.intake_gate);
    let (mut ours, mut others, mut unstarted) = (Vec::new(), Vec::new(), Vec::new());
    let mut suspects = SuspectBatch::default();
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
                    Some(slot) => ours.push(start_job(source, runner, taken, slot)),
                    // More than was asked for.
                    None => unstarted.push(release_delivery(source, taken)),
                }
            }
            ClaimOutcome::Suspect(accused_for) => {
                suspects.accused_for = suspects.accused_for.max(accused_for);
                suspects.wanted.push(wanted);
            }
            answer => others.push(answer_without_work(source, wanted, answer)),
        }
    }
    suspects.slot = slots.pop_front().filter(|_| !suspects.wanted.is_empty());
    drop(slots);
    let (ours, others) = (futures::future::join_all(ours), futures::future::join_all(others));
    tokio::join!(ours, others, futures::future::join_all(unstarted));
    suspects
}

/// Claims under the same tokens until the ledger answers. Claims that were committed although the
/// answer was lost are returned again, and do not count as crashes after their lease. Meanwhile the
/// messages stay in flight, and intake is closed while the ledger does not answer. Gives up at a
/// stop, or when the ledger refuses and nothing is in doubt. Returns the answers in the order of
/// the claims, and the time span of the call.
async fn claim_until_answered(
    source: &QueueJobSource,
    runner: &RunnerHandle<QueueJobSource>,
    pending: &mut PendingClaims,
) -> fault::Result<(Vec<ClaimOutcome>, Range<Instant>)> {
    let (begun, mut failed) = (Instant::now(), 0);
    loop {
        // Not dropped at a stop: the statement has its own limit, and its answer is worth it.
        let claiming = source.ledger.claim_with_tokens(&pending.asked, &source.terms);
        let error = match guard_call(FailureSeam::Claim, claiming).await {
            // A locked row may have our claim already.
            Ok(answers) if pending.in_doubt && answers.iter().all(is_locked) => {
                fault::Error::transient("a row with a claim in doubt is locked by another session")
            }
            Ok(answers) => {
                source.intake_gate.open(CLAIMS);
                return Ok((answers, begun..Instant::now()));
            }
            Err(error) => {
                pause_after_refusal(source, &error);
                pending.in_doubt |= error.fault == fault::Fault::Unavailable
                    && !regression::is_off(FixToggle::ClaimRepeat);
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

/// Pauses intake after a failed claim: until Postgres answers; where it did answer, by a refusal of the
/// statement, longer each time until a claim succeeds. Reading succeeds meanwhile and proves nothing.
fn pause_after_refusal(source: &QueueJobSource, error: &fault::Error) {
    if matches!(error.fault, fault::Fault::Unavailable | fault::Fault::Transient) {
        source.intake_gate.close(DATABASE);
    } else {
        source.intake_gate.close_with_backoff(CLAIMS);
    }
}

fn is_locked(answer: &ClaimOutcome) -> bool {
    matches!(answer, ClaimOutcome::Locked)
}

/// The messages come back in a while, at a stop at once; claims that may have been made are taken
/// back.
async fn give_up_claims(source: &QueueJobSource, pending: PendingClaims, error: &fault::Error) {
    let PendingClaims { wanted, asked, in_doubt, .. } = pending;
    tracing::warn!(error = %error, "releasing the messages of a batch: {error}");
    let hidden = wanted.iter().map(|wanted| {
        metrics::count_delivery("trouble");
        let after = if in_doubt { Duration::ZERO } else { add_jitter(LEDGER_FAILURE_DELAY) };
        source.hide(&wanted.ticket, Some(wanted.id), after)
    });
    let taken_back = asked.iter().filter(|_| in_doubt).map(|asked| async move {
        let (claim, _renewer) = claim_handle::claim_pair(
            asked.id,
            asked.token,
            (Instant::now() + source.terms.lease).into_std(),
        );
        let stopped = unstarted_release(&claim);
        finalize::write_release(source.ledger.as_ref(), &claim, &stopped).await;
    });
    tokio::join!(futures::future::join_all(hidden), futures::future::join_all(taken_back));
}

/// Parks ingestions held back by a pause: they wait without a message until it is lifted. Returns
/// the others; `None`: none left, or the ledger did not answer.
async fn park_paused(
    source: &QueueJobSource,
    wanted: Vec<RequestedIngestion>,
) -> Option<Vec<RequestedIngestion>> {
    if !source.pauses.is_partly_paused() {
        return Some(wanted);
    }
    let ids: Vec<IngestionId> = wanted.iter().map(|wanted| wanted.id).collect();
    let parked = match source.ledger.park(&ids, &source.pause_terms, MAX_DELAY).await {
        Ok(parked) => parked,
        Err(error) => {
            pause_after_refusal(source, &error);
            give_up_claims(source, PendingClaims::unasked(wanted), &error).await;
            return None;
        }
    };
    let (held, free): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|wanted| parked.contains(&wanted.id));
    let answers = held.iter().map(|held| {
        metrics::count_delivery("parked");
        metrics::count_disposition("park");
        source.acknowledge(&held.ticket)
    });
    futures::future::join_all(answers).await;
    (!free.is_empty()).then_some(free)
}

/// A claimed ingestion, and the message that named it.
struct ClaimedDelivery {
    claimed: ClaimedIngestion,
    delivery: Delivery,
    ticket: InFlightMessage,
    place: CpuQueuePosition,
    /// When the claim was asked for, and when it was answered.
    claiming: Range<Instant>,
}

/// Starts the job; with `queue.acknowledge = "early"` the message goes first, and only who deleted
/// it works.
async fn start_job(
    source: &QueueJobSource,
    runner: &RunnerHandle<QueueJobSource>,
    taken: ClaimedDelivery,
    slot: SlotPermit,
) {
    let sent_at = taken.delivery.sent_at;
    if let Some(waited) = sent_at.and_then(|sent| SystemTime::now().duration_since(sent).ok()) {
        metrics::queue_wait(waited);
    }
    taken.ticket.unseal();
    taken.ticket.note_lease((taken.claiming.start + source.terms.lease).into_std());
    let ClaimedIngestion { id, token, lease_until, .. } = taken.claimed;
    let (claim, renewer) = claim_handle::claim_pair(id, token, lease_until);
    if source.acknowledges_early() && !try_delete_early(source, &taken.ticket).await {
        return release_unstarted(source, &claim).await;
    }
    let trace = job_span(source, &taken);
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
async fn try_delete_early(source: &QueueJobSource, ticket: &InFlightMessage) -> bool {
    let receipts = ticket.take_receipts();
    let answers = source.queue.try_acknowledge(&receipts).await;
    let won = !answers.is_empty() && answers.iter().all(|answer| matches!(answer, Ok(true)));
    if won {
        metrics::count_disposition("acknowledge");
    }
    won
}

/// A claim without a slot to work on it: given back, and its message as well.
async fn release_delivery(source: &QueueJobSource, taken: ClaimedDelivery) {
    let ClaimedIngestion { id, token, lease_until, .. } = taken.claimed;
    tracing::error!(ingestion.id = %id, "no slot for {id}: claim released");
    let (claim, _renewer) = claim_handle::claim_pair(id, token, lease_until);
    let stopped = unstarted_release(&claim);
    finalize::write_release(source.ledger.as_ref(), &claim, &stopped).await;
    source.release(&taken.ticket).await;
}

/// The release of a claim without any work.
fn unstarted_release(claim: &ClaimHandle) -> ClaimRelease {
    ClaimRelease {
        fault: fault::Fault::Interrupted,
        counted: false,
        is_shared: false,
        after: Duration::ZERO,
        stage: claim.stage(),
        detail: "the worker was stopped".to_owned(),
    }
}

/// The message was deleted by another worker, or still exists: releases the claim without counting
/// an attempt.
async fn release_unstarted(source: &QueueJobSource, claim: &ClaimHandle) {
    let how = unstarted_release(claim);
    finalize::write_release(source.ledger.as_ref(), claim, &how).await;
    metrics::count_delivery("claimed");
    metrics::count_disposition("leave");
    let id = claim.id;
    tracing::warn!(
        ingestion.id = %id,
        "early acknowledgement of {id} failed: job not started"
    );
}

/// The span of the job, with what was done for its whole batch.
fn job_span(source: &QueueJobSource, taken: &ClaimedDelivery) -> Span {
    let ClaimedDelivery { claimed, delivery, claiming, .. } = taken;
    let message = spans::TracedMessage {
        from: &source.destination,
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
    source: &QueueJobSource,
    wanted: RequestedIngestion,
    answer: ClaimOutcome,
) {
    let RequestedIngestion { id, delivery, ticket, .. } = wanted;
    match answer {
        ClaimOutcome::Busy(remaining) => {
            metrics::count_delivery("busy");
            let wait = busy_wait(remaining, delivery.receive_count);
            source.hide(&ticket, Some(id), add_jitter(wait)).await;
        }
        ClaimOutcome::Locked => {
            metrics::count_delivery("locked");
            source.hide(&ticket, Some(id), add_jitter(LOCKED)).await;
        }
        ClaimOutcome::NotDue(wait) => {
            metrics::count_delivery("not_due");
            source.hide(&ticket, Some(id), wait).await;
        }
        ClaimOutcome::Exhausted => {
            metrics::count_delivery("exhausted");
            tracing::error!(ingestion.id = %id, "ingestion {id} failed: workers died on it alone");
            source.acknowledge(&ticket).await;
        }
        ClaimOutcome::Terminal(status) => {
            metrics::count_delivery("terminal");
            tracing::debug!(ingestion.id = %id, status = status.code(), "ingestion {id} already ended");
            source.acknowledge(&ticket).await;
        }
        ClaimOutcome::Unknown => {
            tracing::info!(ingestion.id = %id, "ingestion {id} is not in the database yet");
            arrival::wait_for(source, &delivery, &ticket, "unknown_ingestion").await;
        }
        ClaimOutcome::Claimed(_) | ClaimOutcome::Suspect(_) => {}
    }
}

fn busy_wait(lease_left: Duration, receives: u32) -> Duration {
    BUSY_WAITS.wait_after(receives.saturating_sub(1)).min(lease_left)
}

pub(super) fn add_jitter(delay: Duration) -> Duration {
    delay.mul_f64(1.0 + fastrand::f64() / 10.0) + Duration::from_millis(fastrand::u64(0..250))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_row_at_work_comes_back_soon_then_seldom_and_never_after_the_lease() {
        let s = Duration::from_secs;
        for (left, receives, expected) in
            [(300, 1, 15), (300, 2, 30), (300, 5, 240), (300, 6, 300), (300, 1000, 300), (4, 1, 4)]
        {
            assert_eq!(busy_wait(s(left), receives), s(expected), "{left} s, {receives} receives");
        }
    }
}
