//! What this process holds: every received message until its disposition is done.
//!
//! The heartbeat reads it, second deliveries are recognised by it, the dashboard of the embedded
//! mode shows it. A [`Ticket`] is one held message; dropping it forgets the message, whatever
//! happened to the job.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::model::{ClaimToken, IngestionId, Stage};
use crate::pipeline::ClaimRenewer;
use crate::queue::{Delivery, Outgoing, Receipt};

/// Every held message.
#[derive(Debug, Default)]
pub struct Registry {
    next: AtomicU64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    messages: HashMap<u64, Message>,
    by_id: HashMap<IngestionId, u64>,
}

#[derive(Debug)]
struct Message {
    /// The newest receipt of each message that asks for the same ingestion, by message id.
    receipts: Vec<(String, Receipt)>,
    receive_count: u32,
    id: Option<IngestionId>,
    claim: Option<(ClaimToken, ClaimRenewer, Stage)>,
    renewed: Instant,
    /// Tier, tenant and trace of a message that takes this one's place.
    successor: Outgoing,
}

/// A held message; dropping it ends its heartbeat.
#[derive(Debug)]
pub struct Ticket {
    registry: Arc<Registry>,
    key: u64,
}

/// What one heartbeat has to renew.
#[derive(Debug, Default)]
pub struct Due {
    /// Messages, with the key to report back by.
    pub receipts: Vec<(u64, Receipt)>,
    /// Claims, with the same key.
    pub claims: Vec<(u64, IngestionId, ClaimToken)>,
    /// Claims whose stage changed since it was last written.
    pub stages: Vec<(IngestionId, ClaimToken, Stage)>,
    /// When the message was last renewed that has waited longest for it.
    pub oldest: Option<Instant>,
}

impl Registry {
    fn held(&self) -> MutexGuard<'_, Held> {
        // The map stays sound if a holder panicked: every change is one call on it.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a delivery from now on.
    pub fn hold(self: &Arc<Self>, delivery: &Delivery) -> Ticket {
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        let message = Message {
            receipts: vec![(delivery.message_id.clone(), delivery.receipt.clone())],
            receive_count: delivery.receive_count,
            id: None,
            claim: None,
            renewed: delivery.received,
            successor: delivery.successor(String::new()),
        };
        self.held().messages.insert(key, message);
        Ticket { registry: Arc::clone(self), key }
    }

    /// How many messages are held.
    pub fn len(&self) -> usize {
        self.held().messages.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ingestions that are worked on, and their stages.
    pub fn working(&self) -> Vec<(IngestionId, Stage)> {
        let held = self.held();
        let working = |message: &Message| {
            let (_, keeper, _) = message.claim.as_ref()?;
            Some((message.id?, keeper.stage()))
        };
        held.messages.values().filter_map(working).collect()
    }

    /// Everything that was last renewed before `before`.
    pub fn due(&self, before: Instant) -> Due {
        let mut due = Due::default();
        for (key, message) in &mut self.held().messages {
            if let (Some(id), Some((token, keeper, written))) = (message.id, &mut message.claim) {
                let stage = keeper.stage();
                if message.renewed < before {
                    due.claims.push((*key, id, *token));
                    if stage != *written {
                        *written = stage;
                        due.stages.push((id, *token, stage));
                    }
                }
            }
            if message.renewed < before {
                due.receipts.extend(message.receipts.iter().map(|(_, r)| (*key, r.clone())));
                let oldest = due.oldest.map_or(message.renewed, |old| old.min(message.renewed));
                due.oldest = Some(oldest);
            }
        }
        due
    }

    /// The message is hidden again from `since`.
    pub fn extended(&self, key: u64, since: Instant) {
        if let Some(message) = self.held().messages.get_mut(&key) {
            message.renewed = since;
        }
    }

    /// The claim is ours until then.
    pub fn renewed(&self, key: u64, until: Instant) {
        let mut held = self.held();
        let Some(message) = held.messages.get_mut(&key) else { return };
        if message.receipts.is_empty() {
            // Nothing of it is in the queue any more that would tell the time of its renewal.
            message.renewed = Instant::now();
        }
        if let Some((_, keeper, _)) = &mut message.claim {
            keeper.renewed(until);
        }
    }

    /// The claim is somebody else's.
    pub fn lost(&self, key: u64) {
        if let Some((_, keeper, _)) = self.claim_of(&mut self.held(), key) {
            keeper.lost();
        }
    }

    #[expect(clippy::unused_self, reason = "reads as a question to the registry")]
    fn claim_of<'a>(
        &self,
        held: &'a mut Held,
        key: u64,
    ) -> Option<&'a mut (ClaimToken, ClaimRenewer, Stage)> {
        held.messages.get_mut(&key)?.claim.as_mut()
    }
}

impl Ticket {
    /// Reserves the ingestion for this message. If this process works on it already, that job
    /// adopts our receipt (of one message the newest is the one that is sure to work; another
    /// message for the same ingestion shares its fate) and `false` returns.
    pub fn reserve(&self, id: IngestionId) -> bool {
        let mut held = self.registry.held();
        let Held { messages, by_id } = &mut *held;
        let Some(ours) = messages.get(&self.key) else { return false };
        let (receipts, count) = (ours.receipts.clone(), ours.receive_count);
        let other = by_id.get(&id).filter(|other| **other != self.key);
        if let Some(message) = other.and_then(|other| messages.get_mut(other)) {
            message.receipts.retain(|(id, _)| receipts.iter().all(|(new, _)| new != id));
            message.receipts.extend(receipts);
            message.receive_count = message.receive_count.max(count);
            return false;
        }
        by_id.insert(id, self.key);
        if let Some(message) = messages.get_mut(&self.key) {
            message.id = Some(id);
        }
        true
    }

    /// The reserved ingestion is claimed.
    pub fn claimed(&self, token: ClaimToken, keeper: ClaimRenewer) {
        if let Some(message) = self.registry.held().messages.get_mut(&self.key) {
            message.claim = Some((token, keeper, Stage::Claimed));
        }
    }

    /// The claim is over, written down or lost: only the message is left to be disposed of.
    pub fn settled(&self) {
        if let Some(message) = self.registry.held().messages.get_mut(&self.key) {
            message.claim = None;
        }
    }

    /// Takes the receipts to be disposed of; what is adopted meanwhile is there the next time.
    pub fn take_receipts(&self) -> Vec<Receipt> {
        let mut held = self.registry.held();
        let message = held.messages.get_mut(&self.key);
        let receipts = message.map(|message| std::mem::take(&mut message.receipts));
        receipts.unwrap_or_default().into_iter().map(|(_, receipt)| receipt).collect()
    }

    /// A message that may take this one's place.
    pub fn successor(&self, body: String) -> Outgoing {
        let held = self.registry.held();
        let carried = held.messages.get(&self.key).map(|message| message.successor.clone());
        Outgoing { body, ..carried.unwrap_or_default() }
    }

    /// How often the message was received.
    pub fn receive_count(&self) -> u32 {
        self.registry.held().messages.get(&self.key).map_or(1, |message| message.receive_count)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut held = self.registry.held();
        let removed = held.messages.remove(&self.key);
        if let Some(id) = removed.and_then(|message| message.id)
            && held.by_id.get(&id) == Some(&self.key)
        {
            held.by_id.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(message: &str, receipt: &str) -> Delivery {
        Delivery {
            message_id: message.into(),
            body: String::new(),
            receipt: Receipt(receipt.into()),
            receive_count: 1,
            sent_at: None,
            first_received_at: None,
            received: Instant::now(),
            priority: None,
            tenant: None,
            traceparent: None,
        }
    }

    #[test]
    fn a_second_delivery_of_a_held_ingestion_hands_over_its_newer_receipt() {
        let registry = Arc::new(Registry::default());
        let id = IngestionId::random();
        let first = registry.hold(&delivery("m", "old"));
        assert!(first.reserve(id));
        let again = registry.hold(&delivery("m", "new"));
        assert!(!again.reserve(id));
        drop(again);
        let other = registry.hold(&delivery("n", "another message"));
        assert!(!other.reserve(id));
        drop(other);
        let both = [Receipt("new".into()), Receipt("another message".into())];
        assert_eq!(first.take_receipts(), both);
        assert_eq!(first.take_receipts(), [], "each is disposed of once");
        assert_eq!(registry.len(), 1);
        drop(first);
        assert!(registry.is_empty());
        assert!(registry.hold(&delivery("m", "next")).reserve(id), "free again once it is done");
    }
}
