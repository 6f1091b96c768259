//! A queue in Redis, in the wire formats of redis-work-queue 0.3.0 and 0.1 at once, so that their
//! clients may add to it, work on it and clean it beside us. The two differ in the key of a lease:
//! ours are under both, and either is heeded.
//!
//! Additions to that format: every transition is one script, so that no other process of ours sees
//! a gap between its steps; a lease is compared before anything is done in its name; attempts,
//! times, dead letters and other attributes of a message are in keys that other clients do not
//! read. For them, a delayed or hidden message is a leased one. Re-queued messages go to the end of
//! the queue. Each priority is a queue of its own (`keys`).
//!
//! Not promised: that the others keep to it. A client of theirs may complete what it has lost. The
//! claim in the ledger is what makes a job run once. Redis without `appendfsync always` may forget
//! the last second; the janitor sends such work again.

mod calls;
mod clean;
mod connect;
mod errors;
mod keys;
mod message;
mod scripts;
mod wait;

pub use clean::CleaningDepth as Cleaning;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::Client;
use async_trait::async_trait;
use parking_lot::Mutex;

use self::calls::{RedisCalls, to_lenient_results, to_results};
use self::clean::RedisCleaner;
use self::keys::RedisKeys;
use self::message::{LeasedItems, ceil_millis};
use self::scripts::{ADD, AT_A_TIME, CHANGE, COMPLETE, DEAD, FOREIGN, LEASE};
use self::wait::WorkWaiter;
use super::round_robin::WeightedRoundRobin;
use super::{
    DeadLetter, Delivery, MessageOrigin, MessageQueue, OutgoingMessage, QueueDepth, ReceiptHandle,
};
use docmill_core::config::{ForeignItems, QueueConfig};
use docmill_core::fault::{Error, Result};
use docmill_core::model::Priority;

/// Poll interval while the queue holds only messages for others.
const BESIDE_OTHERS: Duration = Duration::from_millis(250);
/// No limit of its own; longer than anybody asks for.
const MAX_HIDE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The result of one look at every tier.
struct LeaseRound {
    taken: Vec<Delivery>,
    /// When the next of our messages becomes due.
    next_due: Option<Duration>,
    /// Items of others that were left where they are.
    passed_over: usize,
}

/// One queue per priority that is configured.
pub struct RedisQueue {
    client: Client,
    calls: Arc<RedisCalls>,
    waiter: WorkWaiter,
    cleaner: RedisCleaner,
    turns: Mutex<WeightedRoundRobin>,
    visibility: Duration,
    dead_after: Option<u32>,
    leaves_foreign: bool,
}

impl RedisQueue {
    /// Connects; waits up to ten seconds for a server that does not answer.
    ///
    /// # Errors
    /// The server does not answer, refuses us, is older than 6.2, or would evict messages.
    ///   The text names the server and what to check.
    pub async fn connect(config: &QueueConfig) -> Result<Self> {
        let client = connect::build_client(config)?;
        let connection = connect::connect(&client).await?;
        let tiers = config.redis_tiers();
        let keys = |priority| (priority, RedisKeys::for_priority(&config.redis_prefix, priority));
        let turns = WeightedRoundRobin::new(tiers.iter().map(|(_, weight)| *weight));
        let tiers = tiers.into_iter().map(|(priority, _)| keys(priority)).collect();
        let calls = Arc::new(RedisCalls::new(connection, tiers));
        Ok(Self {
            waiter: WorkWaiter::new(client.clone()),
            client,
            cleaner: RedisCleaner::new(Arc::clone(&calls)),
            calls,
            turns: Mutex::new(turns),
            visibility: config.visibility,
            dead_after: config.dead_after(),
            leaves_foreign: config.redis_foreign == ForeignItems::Leave,
        })
    }

    /// Adds an item under an id of the caller's to the normal queue, as `add_item` does: `false`
    /// if there is one with this id, whose data stays.
    ///
    /// # Errors
    /// No answer, or none that can be trusted.
    pub async fn add_item(&self, id: &str, data: &str) -> Result<bool> {
        let keys = self.tier_keys(Priority::Normal)?;
        let mut call = ADD.key(&keys.prefix);
        call.arg(id).arg(data).arg(0).arg("").arg("").arg("");
        Ok(self.calls.run_script::<Vec<u8>>("adding an item", &call).await? == [1])
    }

    /// Puts back what no worker has leased, in every tier; returns how many items.
    ///
    /// # Errors
    /// No answer; what was put back until then is.
    pub async fn clean(&self, depth: Cleaning) -> Result<u64> {
        self.cleaner.clean(depth).await
    }

    fn tier_keys(&self, priority: Priority) -> Result<&RedisKeys> {
        let offered: Vec<Priority> =
            self.calls.tiers().iter().map(|(priority, _)| *priority).collect();
        let found = priority.nearest_among(&offered).and_then(|at| self.calls.tiers().get(at));
        found.map(|(_, keys)| keys).ok_or_else(|| Error::internal("no tier is configured"))
    }

    /// Leases from every tier in turn until `max` are found.
    async fn lease_items(&self, max: usize) -> Result<LeaseRound> {
        let order = self.turns.lock().next_round();
        let mut taken = Vec::new();
        let (mut next_due, mut passed_over): (Option<Duration>, usize) = (None, 0);
        for tier in order {
            let Some((priority, keys)) = self.calls.tiers().get(tier) else { continue };
            if taken.len() >= max {
                break;
            }
            let (received, token) = (Instant::now(), uuid::Uuid::new_v4().simple().to_string());
            let mut call = LEASE.key(&keys.prefix);
            call.arg(max - taken.len()).arg(ceil_millis(self.visibility));
            call.arg(self.dead_after.unwrap_or(0)).arg(&token);
            let answer = self.calls.run_script::<LeasedItems>("leasing from Redis", &call).await;
            let leased = match answer {
                Ok(leased) => leased,
                // Messages leased from another tier are hidden: they have to be handed over.
                Err(_) if !taken.is_empty() => break,
                Err(error) => return Err(error),
            };
            let due = leased.next_due;
            next_due = next_due.into_iter().chain(due).min();
            passed_over += leased.passed_over;
            taken.extend(leased.into_deliveries(tier, &token, received, Some(*priority)));
        }
        Ok(LeaseRound { taken, next_due, passed_over })
    }

    async fn send_to(&self, keys: &RedisKeys, messages: &[&OutgoingMessage]) -> Result<()> {
        let mut call = ADD.key(&keys.prefix);
        for message in messages {
            // Drawn before the first try: a repetition finds its own item and adds nothing.
            call.arg(uuid::Uuid::new_v4().to_string()).arg(&message.body);
            call.arg(ceil_millis(message.delay));
            call.arg(message.tenant.as_deref().unwrap_or_default());
            call.arg(message.traceparent.as_deref().unwrap_or_default());
            call.arg(message.origin.map(MessageOrigin::to_text).unwrap_or_default());
        }
        self.calls.run_script_retried::<Vec<u8>>("adding to Redis", &call).await.map(drop)
    }
}

#[async_trait]
impl MessageQueue for RedisQueue {
    fn describe(&self) -> String {
        let prefix = self.calls.tiers().iter().map(|(_, keys)| keys.prefix.as_str());
        let prefixes: Vec<&str> = prefix.collect();
        format!("Redis queue {} at {}", prefixes.join(", "), connect::server_address(&self.client))
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>> {
        let deadline = Instant::now() + wait;
        loop {
            let LeaseRound { taken, next_due, passed_over } = self.lease_items(max.max(1)).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            if !taken.is_empty() || left.is_zero() {
                return Ok(taken);
            }
            if passed_over > 0 {
                // The queue is not empty, so that nothing can be waited for.
                let pause = next_due.unwrap_or(BESIDE_OTHERS).min(BESIDE_OTHERS).min(left);
                tokio::time::sleep(pause.max(Duration::from_millis(1))).await;
                continue;
            }
            self.waiter.wait_for_work(self.calls.tiers(), left, next_due).await?;
        }
    }

    async fn extend_visibility(
        &self,
        receipts: &[ReceiptHandle],
        visibility: Duration,
    ) -> Vec<Result<()>> {
        to_results(
            self.calls
                .run_over_receipts("renewing leases", receipts.iter(), true, |keys: &RedisKeys| {
                    let mut call = CHANGE.key(&keys.prefix);
                    call.arg(ceil_millis(visibility)).arg("renew");
                    call
                })
                .await,
        )
    }

    async fn acknowledge(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        to_results(
            self.calls
                .run_over_receipts("completing items", receipts.iter(), true, |keys: &RedisKeys| {
                    COMPLETE.key(&keys.prefix)
                })
                .await,
        )
    }

    async fn try_acknowledge(&self, receipts: &[ReceiptHandle]) -> Vec<Result<bool>> {
        // Not repeated: after a lost answer, "gone already" would not show who deleted it.
        let answers = self
            .calls
            .run_over_receipts("completing items", receipts.iter(), false, |keys: &RedisKeys| {
                COMPLETE.key(&keys.prefix)
            })
            .await;
        answers.into_iter().map(|answer| answer.map(|done| done == Some(1))).collect()
    }

    async fn hide(&self, receipts: &[(ReceiptHandle, Duration)]) -> Vec<Result<()>> {
        let mut answers = Vec::with_capacity(receipts.len());
        // Mostly all of a batch are hidden for the same time.
        for run in receipts.chunk_by(|(_, one), (_, next)| one == next) {
            let time = run.first().map_or(Duration::ZERO, |(_, time)| (*time).min(MAX_HIDE));
            let these = run.iter().map(|(receipt, _)| receipt);
            answers.extend(to_lenient_results(
                self.calls
                    .run_over_receipts("giving items back", these, true, |keys: &RedisKeys| {
                        let mut call = CHANGE.key(&keys.prefix);
                        call.arg(ceil_millis(time)).arg("hide");
                        call
                    })
                    .await,
            ));
        }
        answers
    }

    async fn send(&self, messages: &[OutgoingMessage]) -> Vec<Result<()>> {
        let mut results: Vec<Result<()>> = messages.iter().map(|_| Ok(())).collect();
        for priority in Priority::ALL {
            let mut here: Vec<(&OutgoingMessage, &mut Result<()>)> = messages
                .iter()
                .zip(&mut results)
                .filter(|(message, _)| message.priority == priority)
                .collect();
            for part in here.chunks_mut(AT_A_TIME) {
                let batch: Vec<&OutgoingMessage> =
                    part.iter().map(|(message, _)| *message).collect();
                let sent = match self.tier_keys(priority) {
                    Ok(keys) => self.send_to(keys, &batch).await,
                    Err(error) => Err(error),
                };
                if let Err(error) = sent {
                    for (_, result) in part {
                        **result = Err(Error::new(error.fault, error.context.clone()));
                    }
                }
            }
        }
        results
    }

    async fn depth(&self) -> Result<QueueDepth> {
        let mut depth = QueueDepth { dead: Some(0), ..QueueDepth::default() };
        for (_, keys) in self.calls.tiers() {
            let mut asked = ::redis::pipe();
            asked.llen(keys.queue_key()).llen(keys.processing_key());
            asked.zcount(keys.late_key(), millis_now(), "+inf").zcard(keys.dead_key());
            let (ready, processing, late, dead): (u64, u64, u64, u64) =
                self.calls.run_pipeline("asking Redis for its depth", &asked).await?;
            let mut counted = FOREIGN.key(&keys.prefix);
            counted.arg("count");
            let foreign: u64 = self.calls.run_script("counting items of others", &counted).await?;
            depth.ready += ready.saturating_sub(foreign);
            depth.in_flight += processing.saturating_sub(late);
            depth.delayed += late;
            depth.dead = depth.dead.map(|sum| sum + dead);
        }
        Ok(depth)
    }

    fn leaves_foreign(&self) -> bool {
        self.leaves_foreign
    }

    async fn leave_to_others(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        let these = receipts.iter();
        to_lenient_results(
            self.calls
                .run_over_receipts("leaving items to others", these, true, |keys: &RedisKeys| {
                    let mut call = FOREIGN.key(&keys.prefix);
                    call.arg("leave");
                    call
                })
                .await,
        )
    }

    fn longest_hide(&self) -> Duration {
        MAX_HIDE
    }

    async fn receives_before_dead(&self) -> Result<Option<u32>> {
        Ok(self.dead_after)
    }

    async fn receive_dead(&self, max: usize, hidden: Duration) -> Result<Vec<DeadLetter>> {
        let mut letters = Vec::new();
        for (tier, (priority, keys)) in self.calls.tiers().iter().enumerate() {
            let most = max.saturating_sub(letters.len()).min(AT_A_TIME);
            if most == 0 {
                break;
            }
            let (received, token) = (Instant::now(), uuid::Uuid::new_v4().simple().to_string());
            let mut call = DEAD.key(&keys.prefix);
            call.arg("take").arg(most).arg(ceil_millis(hidden)).arg(&token);
            let found = self.calls.run_script::<LeasedItems>("reading dead letters", &call).await?;
            let found = found.into_deliveries(tier, &token, received, Some(*priority));
            letters.extend(found.into_iter().map(|delivery| DeadLetter { delivery }));
        }
        Ok(letters)
    }

    async fn acknowledge_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        to_results(
            self.calls
                .run_over_receipts(
                    "deleting dead letters",
                    receipts.iter(),
                    true,
                    |keys: &RedisKeys| {
                        let mut call = DEAD.key(&keys.prefix);
                        call.arg("forget");
                        call
                    },
                )
                .await,
        )
    }

    async fn release_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        to_lenient_results(
            self.calls
                .run_over_receipts(
                    "releasing dead letters",
                    receipts.iter(),
                    true,
                    |keys: &RedisKeys| {
                        let mut call = DEAD.key(&keys.prefix);
                        call.arg("release");
                        call
                    },
                )
                .await,
        )
    }

    async fn run_maintenance(&self) -> Result<u64> {
        self.cleaner.run_maintenance().await
    }
}

/// Milliseconds since 1970 by our clock; used for counts only.
fn millis_now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, ceil_millis)
}
