//! The queues and everything that can be done with them, without the protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;

use super::clock::{Clock, Millis};
use super::faults::{Faults, Mischief};
use super::message::{Content, Message};
use super::moves::Moves;
use super::refusal::{Answer, Kind, refuse};
use super::settings::Settings;
use super::shelf::{Depth, Handle, Shelf, Take, Taken};

/// The account that everything belongs to.
pub(super) const ACCOUNT: &str = "000000000000";
const REGION: &str = "us-east-1";

/// Interval between two purges of a queue, as in the service.
const PURGE_INTERVAL: Millis = 60_000;

#[derive(Debug)]
struct Inside {
    shelf: Shelf,
    settings: Arc<Settings>,
    purged_at: Option<Millis>,
}

/// One queue of the broker.
#[derive(Debug)]
pub(super) struct QueueCell {
    pub(super) name: String,
    pub(super) arn: String,
    /// Drawn when the queue is created: handles of an earlier queue of the same name are invalid.
    tag: u64,
    inside: Mutex<Inside>,
    wake: Notify,
}

/// All queues of a server.
#[derive(Debug)]
pub(super) struct Broker {
    pub(super) clock: Clock,
    pub(super) faults: Faults,
    pub(super) moves: Moves,
    queues: RwLock<BTreeMap<String, Arc<QueueCell>>>,
}

impl QueueCell {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.inside().settings)
    }

    /// The handle's text: opaque to clients, of this queue alone.
    pub(super) fn handle_text(&self, handle: Handle) -> String {
        format!("docmill-{:016x}-{:x}-{:016x}", self.tag, handle.id, handle.nonce)
    }

    /// Reads a handle back.
    pub(super) fn handle(&self, text: &str) -> Answer<Handle> {
        let read = || {
            let mut parts = text.strip_prefix("docmill-")?.split('-');
            let mut next = || u64::from_str_radix(parts.next()?, 16).ok();
            let (tag, id, nonce) = (next()?, next()?, next()?);
            (tag == self.tag).then_some(Handle { id, nonce })
        };
        match read() {
            Some(handle) => Ok(handle),
            None => refuse(
                Kind::ReceiptHandleIsInvalid,
                format!("The input receipt handle \"{text}\" is not a valid receipt handle."),
            ),
        }
    }
}

impl Broker {
    pub(super) fn new() -> Self {
        Self {
            clock: Clock::new(),
            faults: Faults::default(),
            moves: Moves::default(),
            queues: RwLock::default(),
        }
    }

    /// Makes a queue, or finds it if it has the same attributes.
    pub(super) fn create(&self, name: &str, given: &BTreeMap<String, String>) -> Answer<()> {
        if name.is_empty()
            || name.len() > 80
            || !name.chars().all(|c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        {
            return refuse(
                Kind::InvalidParameterValue,
                "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in \
                 length",
            );
        }
        let settings = Settings::new(given)?;
        self.check_redrive(&settings)?;
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = queues.get(name) {
            let shown = there.settings().shown();
            if given.iter().all(|(key, value)| shown.get(key) == Some(value)) {
                return Ok(());
            }
            return refuse(
                Kind::QueueNameExists,
                "A queue already exists with the same name and a different value for an attribute.",
            );
        }
        let cell = QueueCell {
            name: name.to_owned(),
            arn: arn(name),
            tag: fastrand::u64(..),
            inside: Mutex::new(Inside {
                shelf: Shelf::default(),
                settings: Arc::new(settings),
                purged_at: None,
            }),
            wake: Notify::new(),
        };
        queues.insert(name.to_owned(), Arc::new(cell));
        Ok(())
    }

    pub(super) fn set(&self, cell: &QueueCell, given: &BTreeMap<String, String>) -> Answer<()> {
        let mut settings = Settings::clone(&cell.settings());
        settings.set(given)?;
        self.check_redrive(&settings)?;
        cell.inside().settings = Arc::new(settings);
        cell.wake.notify_waiters();
        Ok(())
    }

    fn check_redrive(&self, settings: &Settings) -> Answer<()> {
        match &settings.redrive {
            Some(redrive) if self.by_arn(&redrive.target_arn).is_none() => refuse(
                Kind::InvalidParameterValue,
                "Value for parameter RedrivePolicy is invalid. Reason: Dead letter target does \
                 not exist.",
            ),
            _ => Ok(()),
        }
    }

    pub(super) fn delete_queue(&self, name: &str) {
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = queues.remove(name) {
            cell.wake.notify_waiters();
        }
    }

    pub(super) fn by_name(&self, name: &str) -> Option<Arc<QueueCell>> {
        self.queues.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(super) fn by_arn(&self, arn: &str) -> Option<Arc<QueueCell>> {
        self.by_name(arn.rsplit(':').next()?).filter(|cell| cell.arn == arn)
    }

    /// Whether some queue sends its dead letters there.
    pub(super) fn is_dead_letter_queue(&self, arn: &str) -> bool {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.values().any(|cell| {
            cell.inside().settings.redrive.as_ref().is_some_and(|to| to.target_arn == arn)
        })
    }

    /// Puts a new message into a queue and answers its id.
    pub(super) fn send(&self, cell: &QueueCell, content: Content, delay: Millis) -> String {
        let message = Message::new(Arc::new(content), self.clock.now());
        let id = message.message_id.clone();
        self.put(cell, message, delay);
        id
    }

    /// Puts a message into a queue and wakes a waiting receive.
    pub(super) fn put(&self, cell: &QueueCell, message: Message, delay: Millis) {
        let now = self.clock.now();
        let mischief = self.faults.mischief();
        cell.inside().shelf.put(message, now, now + delay + mischief.delay, &mischief);
        if delay + mischief.delay > 0 {
            // Wakes every waiting receive, to check again at the new time.
            cell.wake.notify_waiters();
        } else {
            cell.wake.notify_one();
        }
    }

    /// Receives, waiting up to `wait` for the first message. Woken by sends, by the end of
    /// hiding and by moves of the clock.
    pub(super) async fn receive(
        &self,
        cell: &QueueCell,
        most: usize,
        visibility: Option<u64>,
        wait: Duration,
    ) -> Answer<Vec<(Handle, Message)>> {
        if self.faults.finds_nothing() {
            return Ok(Vec::new());
        }
        let give_up = tokio::time::Instant::now() + wait;
        loop {
            let woken = cell.wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            let mischief = self.faults.mischief();
            let (taken, next_due) = self.take(cell, most, visibility, &mischief)?;
            for dead in taken.dead {
                self.bury(cell, dead);
            }
            if !taken.received.is_empty() {
                return Ok(taken.received);
            }
            if self.by_name(&cell.name).is_none() {
                return refuse(Kind::QueueDoesNotExist, "The specified queue does not exist.");
            }
            if tokio::time::Instant::now() >= give_up {
                return Ok(Vec::new());
            }
            let due = next_due.map_or(wait, |due| {
                Duration::from_millis(due.saturating_sub(self.clock.now()).max(1))
            });
            let look_again = give_up.min(tokio::time::Instant::now() + due);
            // Either way the next turn checks the queue's messages.
            tokio::select! {
                () = woken => {}
                () = tokio::time::sleep_until(look_again) => {}
            }
        }
    }

    fn take(
        &self,
        cell: &QueueCell,
        most: usize,
        visibility: Option<u64>,
        mischief: &Mischief,
    ) -> Answer<(Taken, Option<Millis>)> {
        let now = self.clock.now();
        let mut inside = cell.inside();
        let Inside { shelf, settings, .. } = &mut *inside;
        shelf.settle_due(now, settings.retention(), mischief);
        let visibility = visibility.unwrap_or_else(|| settings.visibility_seconds()) * 1000;
        let dead_after = settings.redrive.as_ref().map(|redrive| redrive.max_receives);
        let taken = shelf.take(Take { now, most, visibility, dead_after }, mischief)?;
        let next_due = shelf.next_due();
        if shelf.has_ready() {
            cell.wake.notify_one();
        }
        Ok((taken, next_due))
    }

    /// Moves a message that was received too often to the dead-letter queue.
    fn bury(&self, cell: &QueueCell, mut message: Message) {
        let settings = cell.settings();
        let redrive = settings.redrive.as_ref();
        let target = redrive.and_then(|redrive| self.by_arn(&redrive.target_arn));
        let Some(target) = target else { return };
        message.dead_from = Some(cell.arn.clone());
        message.nonce = 0;
        let now = self.clock.now();
        target.inside().shelf.put(message, now, now, &Mischief::default());
        target.wake.notify_one();
    }

    pub(super) fn delete(&self, cell: &QueueCell, handle: &str) -> Answer<()> {
        let handle = cell.handle(handle)?;
        let ignored = self.faults.mischief().ignore_stale_deletes;
        cell.inside().shelf.delete(handle, ignored)
    }

    /// Hides a message for `seconds` from now.
    pub(super) fn change(&self, cell: &QueueCell, handle: &str, seconds: u64) -> Answer<()> {
        let handle = cell.handle(handle)?;
        let now = self.clock.now();
        {
            let mut inside = cell.inside();
            let Inside { shelf, settings, .. } = &mut *inside;
            shelf.settle_due(now, settings.retention(), &self.faults.mischief());
            shelf.change(handle, now, seconds * 1000)?;
        }
        cell.wake.notify_waiters();
        Ok(())
    }

    pub(super) fn purge(&self, cell: &QueueCell) -> Answer<()> {
        let now = self.clock.now();
        let mut inside = cell.inside();
        if inside.purged_at.is_some_and(|at| now < at + PURGE_INTERVAL) {
            return refuse(
                Kind::PurgeQueueInProgress,
                "Only one PurgeQueue operation is allowed every 60 seconds.",
            );
        }
        inside.purged_at = Some(now);
        inside.shelf.clear();
        Ok(())
    }

    pub(super) fn depth(&self, cell: &QueueCell) -> Depth {
        let mut inside = cell.inside();
        let Inside { shelf, settings, .. } = &mut *inside;
        shelf.settle_due(self.clock.now(), settings.retention(), &self.faults.mischief());
        shelf.depth()
    }

    /// Takes visible messages away, for a move task.
    pub(super) fn drain(&self, cell: &QueueCell, most: usize) -> Vec<Message> {
        let mut inside = cell.inside();
        let Inside { shelf, settings, .. } = &mut *inside;
        shelf.settle_due(self.clock.now(), settings.retention(), &self.faults.mischief());
        shelf.drain_ready(most)
    }

    pub(super) fn advance(&self, by: Duration) {
        self.clock.advance(by);
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        for cell in queues.values() {
            cell.wake.notify_waiters();
        }
    }

    /// The names of all queues.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.keys().cloned().collect()
    }
}

/// The name of a queue in policies.
pub(super) fn arn(name: &str) -> String {
    format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{name}")
}
