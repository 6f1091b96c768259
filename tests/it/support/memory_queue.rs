//! A queue in memory for tests: the semantics of the real ones (hiding, counts, delays, dead
//! letters, stale receipts), verified by the suite of all queues, and failures on request.
//!
//! Its clock is tokio's, so that paused time works, plus the sum of [`MemoryQueue::advance`].
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use docmill_core::fault::{Error, Fault, Result};
use docmill_queue::{
    DeadLetter, Delivery, MessageQueue, OutgoingMessage, QueueDepth, ReceiptHandle,
};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The calls with failures on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Call {
    Receive,
    Extend,
    Acknowledge,
    Hide,
    Send,
    Depth,
}

#[derive(Debug, Clone)]
struct Item {
    message_id: String,
    message: OutgoingMessage,
    sent_at: SystemTime,
    first_received_at: Option<SystemTime>,
    count: u32,
    visible_at: Instant,
    /// Hidden because it was received, not because it was sent with a delay.
    received: bool,
    /// From when the longest time of hiding counts.
    taken_at: Instant,
}

type Shelf = BTreeMap<u64, Item>;

#[derive(Debug)]
struct Inside {
    live: Shelf,
    dead: Shelf,
    last: u64,
    ahead: Duration,
    failures: BTreeMap<Call, (u32, Fault)>,
    duplicates: u32,
    calls: BTreeMap<Call, u64>,
}

/// A queue in memory.
#[derive(Debug)]
pub(crate) struct MemoryQueue {
    visibility: Duration,
    dead_after: Option<u32>,
    longest: Duration,
    inside: Mutex<Inside>,
    wake: Notify,
}

/// The longest a message may be hidden, as on SQS.
const MAX_VISIBILITY: Duration = Duration::from_secs(12 * 3600);

impl MemoryQueue {
    /// Deliveries stay hidden for `visibility`; after `dead_after` receives a message is dead.
    pub(crate) fn new(visibility: Duration, dead_after: Option<u32>) -> Self {
        let inside = Inside {
            live: Shelf::new(),
            dead: Shelf::new(),
            last: 0,
            ahead: Duration::ZERO,
            failures: BTreeMap::new(),
            duplicates: 0,
            calls: BTreeMap::new(),
        };
        let (inside, wake) = (Mutex::new(inside), Notify::new());
        Self { visibility, dead_after, longest: MAX_VISIBILITY, inside, wake }
    }

    /// With another limit than twelve hours to how long a message may be hidden from its receive on.
    pub(crate) fn with_longest(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// The receipt is no longer good, and its message is there for everybody.
    pub(crate) fn expire(&self, receipt: &ReceiptHandle) {
        let mut inside = self.inside();
        let now = inside.now();
        if let Ok(item) = of_receipt(&mut inside.live, receipt) {
            item.visible_at = now;
        }
        drop(inside);
        self.wake.notify_waiters();
    }

    /// Moves this queue's clock forward; what becomes visible wakes waiting receives.
    pub(crate) fn advance(&self, by: Duration) {
        self.inside().ahead += by;
        self.wake.notify_waiters();
    }

    /// The next `times` calls of this kind fail this way; nothing is done. Of the calls with
    /// results per entry each entry counts as one.
    pub(crate) fn fail(&self, call: Call, times: u32, fault: Fault) {
        self.inside().failures.insert(call, (times, fault));
    }

    /// The next `times` received messages are delivered a second time, with receipts of their own.
    pub(crate) fn duplicate(&self, times: u32) {
        self.inside().duplicates = times;
    }

    /// How often this was called.
    pub(crate) fn calls(&self, call: Call) -> u64 {
        self.inside().calls.get(&call).copied().unwrap_or_default()
    }

    /// The bodies of all live messages, hidden ones included.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.inside().live.values().map(|item| item.message.body.clone()).collect()
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap()
    }

    fn each<T>(
        &self,
        call: Call,
        entries: &[T],
        mut work: impl FnMut(&mut Inside, &T) -> Result<()>,
    ) -> Vec<Result<()>> {
        let mut inside = self.inside();
        *inside.calls.entry(call).or_default() += 1;
        let results = entries
            .iter()
            .map(|entry| inside.scripted(call).and_then(|()| work(&mut inside, entry)))
            .collect();
        drop(inside);
        self.wake.notify_waiters();
        results
    }

    fn hide_one(&self, inside: &mut Inside, receipt: &ReceiptHandle, time: Duration) -> Result<()> {
        let visible_at = inside.now() + time;
        let item = of_receipt(&mut inside.live, receipt)?;
        item.visible_at = visible_at.min(item.taken_at + self.longest);
        Ok(())
    }
}

impl Inside {
    fn now(&self) -> Instant {
        Instant::now() + self.ahead
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now() + self.ahead
    }

    fn scripted(&mut self, call: Call) -> Result<()> {
        match self.failures.get_mut(&call) {
            Some((left, fault)) if *left > 0 => {
                *left -= 1;
                Err(Error::new(*fault, "the memory queue was told to fail"))
            }
            _ => Ok(()),
        }
    }

    fn put(&mut self, message: &OutgoingMessage) {
        self.last += 1;
        let item = Item {
            message_id: format!("memory-{}", self.last),
            message: message.clone(),
            sent_at: self.wall(),
            first_received_at: None,
            count: 0,
            visible_at: self.now() + message.delay,
            received: false,
            taken_at: self.now(),
        };
        self.live.insert(self.last, item);
    }

    fn bury(&mut self, dead_after: Option<u32>) {
        let now = self.now();
        let Some(limit) = dead_after else { return };
        let ids: Vec<u64> = self
            .live
            .iter()
            .filter(|(_, item)| item.visible_at <= now && item.count >= limit)
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            let item = self.live.remove(&id).unwrap();
            self.dead.insert(id, item);
        }
    }

    fn take(&mut self, dead: bool, max: usize, hidden: Duration) -> Vec<Delivery> {
        let (now, wall, received) = (self.now(), self.wall(), Instant::now().into_std());
        let shelf = if dead { &mut self.dead } else { &mut self.live };
        let mut twins = Vec::new();
        let mut deliveries = Vec::new();
        let mut due: Vec<_> = shelf.iter_mut().filter(|(_, item)| item.visible_at <= now).collect();
        due.sort_by_key(|(_, item)| item.message.priority);
        for (id, item) in due.into_iter().take(max) {
            item.count += 1;
            item.first_received_at.get_or_insert(wall);
            item.received = true;
            if self.duplicates > 0 {
                self.duplicates -= 1;
                twins.push(item.clone());
            }
            (item.taken_at, item.visible_at) = (now, now + hidden);
            deliveries.push(Delivery {
                message_id: item.message_id.clone(),
                body: item.message.body.clone(),
                receipt: ReceiptHandle(format!("{id}:{}", item.count)),
                receive_count: item.count,
                sent_at: Some(item.sent_at),
                first_received_at: item.first_received_at,
                received,
                priority: Some(item.message.priority),
                tenant: item.message.tenant.clone(),
                traceparent: item.message.traceparent.clone(),
                origin: item.message.origin,
            });
        }
        for twin in twins {
            self.last += 1;
            self.live.insert(self.last, twin);
        }
        deliveries
    }
}

/// The message of a receipt, if the receipt is of its last receive.
fn of_receipt<'a>(shelf: &'a mut Shelf, receipt: &ReceiptHandle) -> Result<&'a mut Item> {
    let read = receipt
        .0
        .split_once(':')
        .and_then(|(id, count)| Some((id.parse::<u64>().ok()?, count.parse::<u32>().ok()?)));
    let missing = || Error::new(Fault::Missing, "the receipt is no longer good");
    let (id, count) = read.ok_or_else(missing)?;
    shelf.get_mut(&id).filter(|item| item.count == count).ok_or_else(missing)
}

/// Deletes; what is gone already is a success.
fn delete(shelf: &mut Shelf, receipt: &ReceiptHandle) -> Result<()> {
    let id = receipt.0.split_once(':').and_then(|(id, _)| id.parse().ok());
    if id.is_some_and(|id| !shelf.contains_key(&id)) {
        return Ok(());
    }
    of_receipt(shelf, receipt)?;
    shelf.remove(&id.unwrap());
    Ok(())
}

#[async_trait]
impl MessageQueue for MemoryQueue {
    fn describe(&self) -> String {
        "queue in memory".to_owned()
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>> {
        let give_up = Instant::now() + wait;
        {
            let mut inside = self.inside();
            *inside.calls.entry(Call::Receive).or_default() += 1;
            inside.scripted(Call::Receive)?;
        }
        loop {
            let woken = self.wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            let look_again = {
                let mut inside = self.inside();
                inside.bury(self.dead_after);
                let found = inside.take(false, max, self.visibility);
                if !found.is_empty() || Instant::now() >= give_up {
                    return Ok(found);
                }
                let next = inside.live.values().map(|item| item.visible_at).min();
                next.map_or(give_up, |next| (next - inside.ahead).min(give_up))
            };
            tokio::select! {
                () = woken => {}
                () = tokio::time::sleep_until(look_again) => {}
            }
        }
    }

    async fn extend_visibility(
        &self,
        receipts: &[ReceiptHandle],
        visibility: Duration,
    ) -> Vec<Result<()>> {
        self.each(Call::Extend, receipts, |inside, receipt| {
            let now = inside.now();
            let item = of_receipt(&mut inside.live, receipt)?;
            if item.visible_at <= now {
                return Err(Error::new(Fault::Missing, "the receipt has expired"));
            }
            self.hide_one(inside, receipt, visibility)
        })
    }

    async fn acknowledge(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        self.each(Call::Acknowledge, receipts, |inside, receipt| delete(&mut inside.live, receipt))
    }

    async fn hide(&self, receipts: &[(ReceiptHandle, Duration)]) -> Vec<Result<()>> {
        self.each(Call::Hide, receipts, |inside, (receipt, time)| {
            match self.hide_one(inside, receipt, *time) {
                Err(error) if error.fault == Fault::Missing => Ok(()),
                other => other,
            }
        })
    }

    async fn send(&self, messages: &[OutgoingMessage]) -> Vec<Result<()>> {
        self.each(Call::Send, messages, |inside, message| {
            inside.put(message);
            Ok(())
        })
    }

    async fn depth(&self) -> Result<QueueDepth> {
        let mut inside = self.inside();
        *inside.calls.entry(Call::Depth).or_default() += 1;
        inside.scripted(Call::Depth)?;
        inside.bury(self.dead_after);
        let now = inside.now();
        let count = |hidden: bool, received: Option<bool>| {
            let chosen = inside.live.values().filter(|item| {
                (item.visible_at > now) == hidden && received.is_none_or(|is| item.received == is)
            });
            u64::try_from(chosen.count()).unwrap()
        };
        Ok(QueueDepth {
            ready: count(false, None),
            in_flight: count(true, Some(true)),
            delayed: count(true, Some(false)),
            dead: self.dead_after.map(|_| u64::try_from(inside.dead.len()).unwrap()),
        })
    }

    fn longest_hide(&self) -> Duration {
        self.longest
    }

    async fn receives_before_dead(&self) -> Result<Option<u32>> {
        Ok(self.dead_after)
    }

    async fn receive_dead(&self, max: usize, hidden: Duration) -> Result<Vec<DeadLetter>> {
        let mut inside = self.inside();
        inside.bury(self.dead_after);
        let found = inside.take(true, max, hidden);
        Ok(found.into_iter().map(|delivery| DeadLetter { delivery }).collect())
    }

    async fn acknowledge_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        let mut inside = self.inside();
        receipts.iter().map(|receipt| delete(&mut inside.dead, receipt)).collect()
    }

    async fn release_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        let mut inside = self.inside();
        let now = inside.now();
        for receipt in receipts {
            if let Ok(item) = of_receipt(&mut inside.dead, receipt) {
                item.visible_at = now;
            }
        }
        receipts.iter().map(|_| Ok(())).collect()
    }

    async fn run_maintenance(&self) -> Result<u64> {
        Ok(0)
    }
}
