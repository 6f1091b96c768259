//! The messages of one queue. No clock, no network, no waiting: every operation takes the time
//! and costs O(log n).

use std::collections::{BTreeMap, BTreeSet};

use super::clock::Millis;
use super::faults::Mischief;
use super::message::{Message, Place};
use super::refusal::{Answer, Kind, refuse};

/// The longest a message may stay hidden after its receive.
const MAX_VISIBILITY_MS: Millis = 12 * 3600 * 1000;

/// More than this in flight is refused, as by the service.
const MAX_IN_FLIGHT: usize = 120_000;

/// The content of a receipt handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Handle {
    pub(super) id: u64,
    pub(super) nonce: u64,
}

/// The parameters of a receive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Take {
    pub(super) now: Millis,
    pub(super) most: usize,
    pub(super) visibility: Millis,
    /// Messages received this often already are dead.
    pub(super) dead_after: Option<u32>,
}

/// The result of a receive.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) received: Vec<(Handle, Message)>,
    pub(super) dead: Vec<Message>,
}

/// Message counts by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Messages that can be received now.
    pub ready: usize,
    /// Messages that are received and hidden.
    pub in_flight: usize,
    /// Sent with a delay that still runs.
    pub delayed: usize,
}

/// The messages of one queue.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// By an id that grows with every message put here.
    messages: BTreeMap<u64, Message>,
    ready: BTreeSet<(u64, u64)>,
    hidden: BTreeSet<(Millis, u64)>,
    in_flight: usize,
    last: u64,
}

impl Shelf {
    /// Puts a message on the shelf, visible at `visible_at`.
    pub(super) fn put(
        &mut self,
        mut message: Message,
        now: Millis,
        visible_at: Millis,
        mischief: &Mischief,
    ) {
        self.last += 1;
        let delayed = visible_at > now;
        message.place =
            if delayed { Place::Delayed(visible_at) } else { Place::Ready(mischief.order(now)) };
        self.settle(self.last, message.place);
        self.messages.insert(self.last, message);
    }

    /// Makes visible what is due and drops what was kept longer than `retention`.
    pub(super) fn settle_due(&mut self, now: Millis, retention: Millis, mischief: &Mischief) {
        while let Some(&(due, id)) = self.hidden.first() {
            if due > now {
                break;
            }
            self.move_to(id, Place::Ready(mischief.order(due)));
        }
        while let Some((&id, message)) = self.messages.first_key_value() {
            if message.sent_at.saturating_add(retention) > now {
                break;
            }
            self.remove(id);
        }
    }

    /// When the next hidden message becomes visible.
    pub(super) fn next_due(&self) -> Option<Millis> {
        self.hidden.first().map(|(due, _)| *due)
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Hands out visible messages, dead ones aside.
    pub(super) fn take(&mut self, take: Take, mischief: &Mischief) -> Answer<Taken> {
        if self.in_flight >= MAX_IN_FLIGHT {
            return refuse(Kind::OverLimit, "Too many messages in flight.");
        }
        let mut taken = Taken::default();
        while taken.received.len() < take.most {
            let Some(&(_, id)) = self.ready.first() else { break };
            let count = self.messages.get(&id).map_or(0, |message| message.receive_count);
            if take.dead_after.is_some_and(|limit| count >= limit) {
                taken.dead.extend(self.remove(id));
                continue;
            }
            // Hidden for no time is visible again at once, but not to this same receive.
            self.move_to(id, Place::InFlight(take.now + take.visibility));
            let Some(message) = self.messages.get_mut(&id) else { continue };
            message.receive_count += 1;
            message.first_received_at.get_or_insert(take.now);
            message.received_at = take.now;
            message.nonce = mischief.nonce();
            let handle = Handle { id, nonce: message.nonce };
            taken.received.push((handle, message.clone()));
        }
        for (_, message) in &taken.received {
            if mischief.duplicates() {
                let order = mischief.order(take.now);
                self.put_twin(message.clone(), order);
            }
        }
        Ok(taken)
    }

    /// A second copy, as the service's replicas sometimes hand out: same id, own handles.
    fn put_twin(&mut self, mut twin: Message, order: u64) {
        self.last += 1;
        twin.place = Place::Ready(order);
        self.settle(self.last, twin.place);
        self.messages.insert(self.last, twin);
    }

    /// Deletes by handle. Deleting what is gone already succeeds.
    pub(super) fn delete(&mut self, handle: Handle, stale_is_ignored: bool) -> Answer<()> {
        match self.messages.get(&handle.id) {
            None => Ok(()),
            Some(message) if message.nonce == handle.nonce => {
                self.remove(handle.id);
                Ok(())
            }
            Some(_) if stale_is_ignored => Ok(()),
            Some(_) => refuse(
                Kind::ReceiptHandleIsInvalid,
                "The receipt handle has expired: the message was received again.",
            ),
        }
    }

    /// Hides a message that is in flight until `now + visibility`.
    pub(super) fn change(&mut self, handle: Handle, now: Millis, visibility: Millis) -> Answer<()> {
        let Some(message) = self.messages.get(&handle.id).filter(|m| m.nonce == handle.nonce)
        else {
            return refuse(
                Kind::InvalidParameterValue,
                "Value for parameter ReceiptHandle is invalid. Reason: Message does not exist or \
                 is not available for visibility timeout change.",
            );
        };
        if !matches!(message.place, Place::InFlight(_)) {
            return refuse(Kind::MessageNotInflight, "The message is not in flight.");
        }
        if now + visibility > message.received_at + MAX_VISIBILITY_MS {
            return refuse(
                Kind::InvalidParameterValue,
                "Value for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout \
                 for the message is beyond the limit [43200 seconds].",
            );
        }
        self.move_to(handle.id, Place::InFlight(now + visibility));
        Ok(())
    }

    /// Removes up to `most` visible messages, for a move task.
    pub(super) fn drain_ready(&mut self, most: usize) -> Vec<Message> {
        let ids: Vec<u64> = self.ready.iter().take(most).map(|(_, id)| *id).collect();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    pub(super) fn clear(&mut self) {
        *self = Self { last: self.last, ..Self::default() };
    }

    pub(super) fn depth(&self) -> Depth {
        let delayed = self.hidden.len() - self.in_flight;
        Depth { ready: self.ready.len(), in_flight: self.in_flight, delayed }
    }

    fn move_to(&mut self, id: u64, place: Place) {
        let Some(message) = self.messages.get_mut(&id) else { return };
        let old = std::mem::replace(&mut message.place, place);
        self.unsettle(id, old);
        self.settle(id, place);
    }

    fn remove(&mut self, id: u64) -> Option<Message> {
        let message = self.messages.remove(&id)?;
        self.unsettle(id, message.place);
        Some(message)
    }

    fn settle(&mut self, id: u64, place: Place) {
        match place {
            Place::Ready(order) => self.ready.insert((order, id)),
            Place::Delayed(until) => self.hidden.insert((until, id)),
            Place::InFlight(until) => {
                self.in_flight += 1;
                self.hidden.insert((until, id))
            }
        };
    }

    fn unsettle(&mut self, id: u64, place: Place) {
        match place {
            Place::Ready(order) => self.ready.remove(&(order, id)),
            Place::Delayed(until) => self.hidden.remove(&(until, id)),
            Place::InFlight(until) => {
                self.in_flight -= 1;
                self.hidden.remove(&(until, id))
            }
        };
    }
}
