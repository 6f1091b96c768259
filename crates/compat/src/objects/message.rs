//! Messages as objects: their JSON, and the content of a receipt. Pure.
//!
//! A message has the key of a BlobForge document's marker, whose fields it extends; BlobForge's own
//! markers can be read too. Times are milliseconds since 1970 by the store's clock.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::blobforge::records::MarkerLock;
use super::blobforge::{TODO, is_hash};
use docmill_core::model::Priority;
use docmill_core::model::digest;
use docmill_queue::ReceiptHandle;

/// How long a lock without an end of its own (BlobForge's) outlives its last heartbeat.
const STALE: u64 = 15 * 60 * 1000;

/// The name of a message: the SHA-256 of its body, in hex.
pub(super) fn name_of(body: &str) -> String {
    digest::sha256_hex(body)
}

/// When anybody may take the lock over. `modified` is when that version was written.
pub(super) fn end_of(lock: &MarkerLock, modified: u64) -> u64 {
    lock.expires_at.unwrap_or(modified.saturating_add(STALE))
}

/// A message that waits: the one authoritative object of it, changed only by If-Match.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct QueuedMessage {
    /// BlobForge's count of failed attempts; never changed here.
    pub(super) retries: u32,
    pub(super) queued_at: u64,
    /// Absent in markers written by BlobForge: they carry only the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<String>,
    /// Invisible before this time, in milliseconds since 1970.
    pub(super) not_before: u64,
    /// Counted when the lock is taken, so that a worker that dies is counted too.
    pub(super) receives: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_received_at: Option<u64>,
    /// How often it was sent. A message sent again after it was received outlives the
    /// acknowledgement of that receive.
    pub(super) sends: u32,
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

impl QueuedMessage {
    pub(super) fn new(body: &str, now: u64, not_before: u64) -> Self {
        let body = Some(body.to_owned());
        Self { queued_at: now, body, not_before, sends: 1, ..Self::default() }
    }
}

/// A message that was given up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct DeadMessage {
    pub(super) error: String,
    /// When it was given up: RFC 3339.
    pub(super) moved_to_dead_at: String,
    pub(super) total_retries: u32,
    pub(super) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<String>,
    pub(super) queued_at: u64,
    pub(super) receives: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_received_at: Option<u64>,
    /// Hidden from other readers before.
    pub(super) not_before: u64,
    /// Of the newest reader.
    pub(super) nonce: String,
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

/// The content of a receipt: message, tier, lock, number of sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectReceipt {
    pub(super) tier: String,
    pub(super) name: String,
    pub(super) nonce: String,
    pub(super) sends: u32,
}

impl ObjectReceipt {
    /// Key of the marker while the message waits.
    pub(super) fn todo_key(&self) -> String {
        format!("{TODO}{}/{}", self.tier, self.name)
    }

    pub(super) fn to_handle(&self) -> ReceiptHandle {
        let Self { tier, name, nonce, sends } = self;
        ReceiptHandle(format!("{tier}/{name}/{nonce}/{sends}"))
    }

    pub(super) fn parse(receipt: &ReceiptHandle) -> Option<Self> {
        let mut parts = receipt.0.split('/');
        let (tier, name, nonce) = (parts.next()?, parts.next()?, parts.next()?);
        let sends = parts.next()?.parse().ok()?;
        let known =
            tier == "dead" || Priority::ALL.iter().any(|known| known.blobforge_key() == tier);
        (known && is_hash(name) && parts.next().is_none()).then(|| Self {
            tier: tier.to_owned(),
            name: name.to_owned(),
            nonce: nonce.to_owned(),
            sends,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_and_locks_of_blobforge_are_understood() {
        let recovered = br#"{"retries":2,"queued_at":7,"recovered_from":"w","last_error":"e"}"#;
        let message: QueuedMessage = serde_json::from_slice(recovered).unwrap();
        assert_eq!((message.retries, message.queued_at, message.body.as_deref()), (2, 7, None));
        let again: Value = serde_json::to_value(&message).unwrap();
        assert_eq!(again["recovered_from"], "w", "fields we do not know survive");
        let lock: MarkerLock = serde_json::from_slice(
            br#"{"worker":"w","started":1,"last_heartbeat":1000,"priority":"p"}"#,
        )
        .unwrap();
        assert_eq!(
            end_of(&lock, 9),
            9 + STALE,
            "its worker's clock may be wrong, the store's is not"
        );
    }

    #[test]
    fn a_receipt_reads_back_and_nonsense_does_not() {
        let ticket = ObjectReceipt {
            tier: Priority::Normal.blobforge_key().to_owned(),
            name: name_of("x"),
            nonce: "n".to_owned(),
            sends: 3,
        };
        assert_eq!(ObjectReceipt::parse(&ticket.to_handle()), Some(ticket));
        for wrong in ["", "3_normal/x/n/1", "3_normal", "../../etc/passwd/1", "a/b/c/d/e"] {
            assert_eq!(ObjectReceipt::parse(&ReceiptHandle(wrong.to_owned())), None, "{wrong}");
        }
    }
}
