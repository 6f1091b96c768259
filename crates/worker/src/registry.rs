//! The messages in flight in this process, from their receipt until their disposition is done.
//!
//! The heartbeat reads it, and repeated deliveries are recognised by it. Dropping an
//! [`InFlightMessage`] removes its message, however the job ended.
//!
//! A message is hidden for no longer than its row's lease is known to live: a worker that reaches the
//! queue but not Postgres lets its messages go, and another takes the ingestions over. Before a claim is
//! answered that is one lease from the receipt.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use docmill_core::model::IngestionId;
use docmill_core::regression::{self, FixToggle};
use docmill_queue::{Delivery, OutgoingMessage, ReceiptHandle};

/// How long a release waits for a pending extension.
const MAX_EXTENSION: Duration = Duration::from_secs(10);

/// Every message that is in flight in this process.
#[derive(Debug, Default)]
pub struct MessageRegistry {
    next: AtomicU64,
    held: Mutex<RegistryState>,
    /// Some extensions are over.
    extended: Notify,
    /// The lease of a claim; `None`: messages whose rows have none.
    lease: Option<Duration>,
}

#[derive(Debug, Default)]
struct RegistryState {
    messages: HashMap<u64, HeldMessage>,
    by_id: HashMap<IngestionId, u64>,
}

impl RegistryState {
    /// Removes a message, and frees its ingestion for another.
    fn remove(&mut self, key: u64) {
        let removed = self.messages.remove(&key);
        if let Some(id) = removed.and_then(|message| message.id)
            && self.by_id.get(&id) == Some(&key)
        {
            self.by_id.remove(&id);
        }
    }
}

#[derive(Debug)]
struct HeldMessage {
    /// The newest receipt of each message that asks for the same ingestion, by message id.
    receipts: Vec<(String, ReceiptHandle)>,
    /// An answer about the ingestion, or its end, is under way.
    sealed: bool,
    /// Receipts of other messages received meanwhile: they are released, and answered separately.
    apart: Vec<(String, ReceiptHandle)>,
    receive_count: u32,
    id: Option<IngestionId>,
    renewed: Instant,
    /// Until when the lease of its row is known to live; `None`: it has none.
    lease_until: Option<Instant>,
    /// That time is over.
    is_let_go: bool,
    /// A call that extends it is under way.
    extending: bool,
    /// Tier, tenant and trace of a message that takes this one's place.
    successor: OutgoingMessage,
}

impl HeldMessage {
    /// Until when it may be hidden; `None`: for as long as its job runs.
    fn lease_end(&self) -> Option<Instant> {
        self.lease_until.filter(|_| !regression::is_off(FixToggle::LeaseFate))
    }

    /// Newer receipts of messages that ask for the same ingestion.
    fn adopt(&mut self, newer: Vec<(String, ReceiptHandle)>) {
        for (id, receipt) in newer {
            let is_known = self.receipts.iter().any(|(known, _)| *known == id);
            let receipts = match self.sealed && !is_known {
                true => &mut self.apart,
                false => &mut self.receipts,
            };
            receipts.retain(|(known, _)| *known != id);
            receipts.push((id, receipt));
        }
    }
}

/// A message in flight; dropping it ends its heartbeat.
#[derive(Debug)]
pub struct InFlightMessage {
    registry: Arc<MessageRegistry>,
    key: u64,
}

/// Receipts of a message in flight, taken from it to be disposed of.
#[derive(Debug, PartialEq, Eq)]
pub struct UndisposedReceipts {
    /// Of the messages that share its fate.
    pub meant: Vec<ReceiptHandle>,
    /// Receipts of other messages received while it was sealed: they are released.
    pub apart: Vec<ReceiptHandle>,
}

/// A message that is to be extended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueExtension {
    /// The key to report back by.
    pub key: u64,
    /// The receipt to extend it by.
    pub receipt: ReceiptHandle,
    /// From when its hiding is counted.
    pub renewed: Instant,
    /// It is hidden no longer than until then; `None`: without such a limit.
    pub lease_until: Option<Instant>,
}

impl MessageRegistry {
    /// For messages of rows with a lease of this length.
    pub fn new(lease: Duration) -> Arc<Self> {
        Arc::new(Self { lease: Some(lease), ..Self::default() })
    }

    fn lock_state(&self) -> MutexGuard<'_, RegistryState> {
        // The map stays sound if a holder panicked: every change is one call on it.
        self.held.lock()
    }

    /// Registers a delivery: from now on its message is in flight.
    pub fn hold(self: &Arc<Self>, delivery: &Delivery) -> InFlightMessage {
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        let message = HeldMessage {
            receipts: vec![(delivery.message_id.clone(), delivery.receipt.clone())],
            sealed: false,
            apart: Vec::new(),
            receive_count: delivery.receive_count,
            id: None,
            renewed: delivery.received,
            lease_until: self.lease.map(|lease| delivery.received + lease),
            is_let_go: false,
            extending: false,
            successor: delivery.to_successor(String::new()),
        };
        self.lock_state().messages.insert(key, message);
        InFlightMessage { registry: Arc::clone(self), key }
    }

    /// How many messages are in flight.
    pub fn len(&self) -> usize {
        self.lock_state().messages.len()
    }

    /// Whether no message is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lets messages go whose row's lease is not known to live at `now`; returns how many are new among
    /// them.
    pub fn let_go_lapsed(&self, now: Instant) -> usize {
        let mut state = self.lock_state();
        let lapsed = state.messages.values_mut().filter(|message| {
            let is_over = message.lease_end().is_some_and(|until| until <= now);
            is_over && !message.is_let_go
        });
        lapsed.map(|message| message.is_let_go = true).count()
    }

    /// Begins the extension of everything that was last extended before `before` and not let go, what
    /// has waited longest first. [`MessageRegistry::end_extensions`] is to follow.
    pub fn due_extensions(&self, before: Instant) -> Vec<DueExtension> {
        let mut due = Vec::new();
        for (key, message) in &mut self.lock_state().messages {
            let held = || message.receipts.iter().chain(&message.apart);
            if message.renewed < before && !message.is_let_go && held().next().is_some() {
                let (key, renewed, lease_until) = (*key, message.renewed, message.lease_end());
                let receipts: Vec<_> = held().map(|(_, receipt)| receipt.clone()).collect();
                message.extending = true;
                let receipts = receipts.into_iter();
                due.extend(receipts.map(|receipt| DueExtension {
                    key,
                    receipt,
                    renewed,
                    lease_until,
                }));
            }
        }
        due.sort_by_key(|due| due.renewed);
        due
    }

    /// The message is hidden again from `since`.
    pub fn note_extended(&self, key: u64, since: Instant) {
        if let Some(message) = self.lock_state().messages.get_mut(&key) {
            message.renewed = since;
            message.extending = false;
        }
        self.extended.notify_waiters();
    }

    /// No call that extends these is under way any more.
    pub fn end_extensions(&self, due: &[DueExtension]) {
        let mut state = self.lock_state();
        for due in due {
            if let Some(message) = state.messages.get_mut(&due.key) {
                message.extending = false;
            }
        }
        drop(state);
        self.extended.notify_waiters();
    }
}

impl InFlightMessage {
    /// Reserves the ingestion for this message. If this process works on it already, returns
    /// `false`, and that job adopts the receipt: only the newest receipt of a message is sure to
    /// work. Another message for the same ingestion is disposed of with it, unless that is sealed.
    pub fn reserve(&self, id: IngestionId) -> bool {
        let mut held = self.registry.lock_state();
        let RegistryState { messages, by_id } = &mut *held;
        let Some(ours) = messages.get(&self.key) else { return false };
        let (receipts, count) = (ours.receipts.clone(), ours.receive_count);
        let other = by_id.get(&id).filter(|other| **other != self.key);
        if let Some(message) = other.and_then(|other| messages.get_mut(other)) {
            message.adopt(receipts);
            message.receive_count = message.receive_count.max(count);
            return false;
        }
        by_id.insert(id, self.key);
        if let Some(message) = messages.get_mut(&self.key) {
            message.id = Some(id);
        }
        true
    }

    /// The lease of its row is known to live until then: a claim or a renewal was answered.
    pub fn note_lease(&self, until: Instant) {
        if let Some(message) = self.registry.lock_state().messages.get_mut(&self.key) {
            message.lease_until = Some(until);
            message.is_let_go = false;
        }
    }

    /// From now on an answer about the ingestion, or its end, is under way. A message that arrives
    /// later may have been sent after that (an operator reopened the ingestion), so it is handled
    /// separately.
    pub fn seal(&self) {
        if regression::is_off(FixToggle::MessageSeal) {
            return;
        }
        if let Some(message) = self.registry.lock_state().messages.get_mut(&self.key) {
            message.sealed = true;
        }
    }

    /// Reserved by this process: every message for the ingestion is disposed of with this one.
    pub fn unseal(&self) {
        if let Some(message) = self.registry.lock_state().messages.get_mut(&self.key) {
            message.sealed = false;
            let apart = std::mem::take(&mut message.apart);
            message.adopt(apart);
        }
    }

    /// Takes all receipts to be disposed of. `None`: there are none, and in the same step the
    /// message leaves the registry. A receipt adopted after that would stay hidden until its
    /// timeout.
    pub fn take_all_or_end(&self) -> Option<UndisposedReceipts> {
        let mut held = self.registry.lock_state();
        let message = held.messages.get_mut(&self.key)?;
        let (meant, apart) =
            (std::mem::take(&mut message.receipts), std::mem::take(&mut message.apart));
        if meant.is_empty() && apart.is_empty() {
            held.remove(self.key);
            return None;
        }
        let bare = |receipts: Vec<(String, ReceiptHandle)>| {
            receipts.into_iter().map(|(_, receipt)| receipt).collect()
        };
        Some(UndisposedReceipts { meant: bare(meant), apart: bare(apart) })
    }

    /// Takes the receipts to be disposed of; later adopted ones are taken by the next call.
    pub fn take_receipts(&self) -> Vec<ReceiptHandle> {
        let mut held = self.registry.lock_state();
        let message = held.messages.get_mut(&self.key);
        let receipts = message.map(|message| std::mem::take(&mut message.receipts));
        receipts.unwrap_or_default().into_iter().map(|(_, receipt)| receipt).collect()
    }

    /// Waits briefly until no call that extends the message is under way. Otherwise the queue may
    /// apply the extension after a later release, and hide a message that should be visible.
    pub async fn wait_until_extended(&self) {
        let extended = async {
            loop {
                let changed = self.registry.extended.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if !self.is_extending() {
                    return;
                }
                changed.await;
            }
        };
        let _late = tokio::time::timeout(MAX_EXTENSION, extended).await;
    }

    fn is_extending(&self) -> bool {
        let held = self.registry.lock_state();
        held.messages.get(&self.key).is_some_and(|message| message.extending)
    }

    /// A message that may take this one's place.
    pub fn replacement_message(&self, body: String) -> OutgoingMessage {
        let held = self.registry.lock_state();
        let carried = held.messages.get(&self.key).map(|message| message.successor.clone());
        OutgoingMessage { body, ..carried.unwrap_or_default() }
    }

    /// Ends the heartbeat of the message, and frees its ingestion for another.
    pub fn stop_heartbeat(&self) {
        self.registry.lock_state().remove(self.key);
    }

    /// How often the message was received.
    pub fn receive_count(&self) -> u32 {
        self.registry
            .lock_state()
            .messages
            .get(&self.key)
            .map_or(1, |message| message.receive_count)
    }
}

impl Drop for InFlightMessage {
    fn drop(&mut self) {
        self.stop_heartbeat();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(message: &str, receipt: &str) -> Delivery {
        Delivery {
            message_id: message.into(),
            body: String::new(),
            receipt: ReceiptHandle(receipt.into()),
            receive_count: 1,
            sent_at: None,
            first_received_at: None,
            received: Instant::now(),
            priority: None,
            tenant: None,
            traceparent: None,
            origin: None,
        }
    }

    #[test]
    fn a_second_delivery_of_a_held_ingestion_hands_over_its_newer_receipt() {
        let registry = Arc::new(MessageRegistry::default());
        let id = IngestionId::random();
        let first = registry.hold(&delivery("m", "old"));
        assert!(first.reserve(id));
        let again = registry.hold(&delivery("m", "new"));
        assert!(!again.reserve(id));
        drop(again);
        let other = registry.hold(&delivery("n", "another message"));
        assert!(!other.reserve(id));
        drop(other);
        let both = [ReceiptHandle("new".into()), ReceiptHandle("another message".into())];
        assert_eq!(first.take_receipts(), both);
        assert_eq!(first.take_receipts(), [], "each is disposed of once");
        assert_eq!(registry.len(), 1);
        drop(first);
        assert!(registry.is_empty());
        assert!(registry.hold(&delivery("m", "next")).reserve(id), "free again once it is done");
    }

    #[test]
    fn a_message_is_let_go_with_the_lease_of_its_row_and_kept_again_once_that_is_renewed() {
        let (lease, s) = (Duration::from_secs(60), Duration::from_secs);
        let registry = MessageRegistry::new(lease);
        let delivery = delivery("m", "r");
        let (received, ticket) = (delivery.received, registry.hold(&delivery));
        let due = || registry.due_extensions(received + s(3600)).len();
        assert_eq!((registry.let_go_lapsed(received + s(59)), due()), (0, 1), "not claimed yet");
        ticket.note_lease(received + s(90));
        assert_eq!((registry.let_go_lapsed(received + s(89)), due()), (0, 1));
        assert_eq!((registry.let_go_lapsed(received + s(90)), due()), (1, 0), "no renewal");
        assert_eq!(registry.let_go_lapsed(received + s(91)), 0, "counted once");
        ticket.note_lease(received + s(200));
        assert_eq!((registry.let_go_lapsed(received + s(150)), due()), (0, 1), "nobody took it");
    }

    #[test]
    fn a_message_received_while_an_end_is_written_is_handled_separately() {
        let registry = Arc::new(MessageRegistry::default());
        let id = IngestionId::random();
        let first = registry.hold(&delivery("m", "old"));
        assert!(first.reserve(id));
        first.seal();
        let (again, fresh) = (delivery("m", "newer"), delivery("n", "sent after the end"));
        for delivery in [&again, &fresh] {
            assert!(!registry.hold(delivery).reserve(id));
        }
        let receipts = |handle: &str| vec![ReceiptHandle(handle.into())];
        let (meant, apart) = (receipts("newer"), receipts("sent after the end"));
        assert_eq!(first.take_all_or_end(), Some(UndisposedReceipts { meant, apart }));

        assert!(!registry.hold(&delivery("o", "before the work")).reserve(id));
        first.unseal();
        let (meant, apart) = (receipts("before the work"), Vec::new());
        assert_eq!(first.take_all_or_end(), Some(UndisposedReceipts { meant, apart }));
    }

    #[test]
    fn a_message_after_the_last_take_of_receipts_is_not_adopted_by_the_ended_job() {
        let registry = Arc::new(MessageRegistry::default());
        let id = IngestionId::random();
        let ended = registry.hold(&delivery("m", "released"));
        assert!(ended.reserve(id));
        assert!(ended.take_all_or_end().is_some());
        assert_eq!(ended.take_all_or_end(), None);
        let again = registry.hold(&delivery("m", "at once again"));
        assert!(
            again.reserve(id),
            "it is its own to answer, although the other is not dropped yet"
        );
        drop(ended);
        assert!(!registry.hold(&delivery("m", "once more")).reserve(id), "it holds the ingestion");
    }
}
