//! The objects of the queue: their keys, their JSON, and what a receipt holds. Pure.
//!
//! The layout is that of a BlobForge bucket (`queue/{todo/PRIORITY,processing,failed,dead}/NAME`);
//! its own fields keep their names and meaning, ours are added, and fields we do not know survive
//! a rewrite. Times are milliseconds since 1970.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::model::Priority;
use crate::queue::Receipt;

/// Priorities, most urgent first.
pub(super) const TIERS: [&str; 5] = ["1_critical", "2_high", "3_normal", "4_low", "5_background"];
/// Where messages are put that nobody said anything about.
pub(super) const NORMAL: &str = "3_normal";
pub(super) const LOCKS: &str = "queue/processing/";
pub(super) const DEAD: &str = "queue/dead/";
/// How long a lock without an end of its own (BlobForge's) outlives its last heartbeat.
const STALE: u64 = 15 * 60 * 1000;

/// The name of a message: the SHA-256 of its body, in hex.
pub(super) fn name_of(body: &str) -> String {
    Sha256::digest(body.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The tier of a priority.
pub(super) fn tier_of(priority: Priority) -> &'static str {
    let ranked = Priority::ALL.into_iter().zip(TIERS);
    ranked.filter(|(one, _)| *one == priority).map(|(_, tier)| tier).next().unwrap_or(NORMAL)
}

/// The priority of a tier.
pub(super) fn priority_of(tier: &str) -> Option<Priority> {
    let mut ranked = Priority::ALL.into_iter().zip(TIERS);
    ranked.find(|(_, one)| *one == tier).map(|(priority, _)| priority)
}

pub(super) fn tier_prefix(tier: &str) -> String {
    format!("queue/todo/{tier}/")
}

pub(super) fn todo_key(tier: &str, name: &str) -> String {
    format!("queue/todo/{tier}/{name}")
}

pub(super) fn lock_key(name: &str) -> String {
    format!("{LOCKS}{name}")
}

pub(super) fn dead_key(name: &str) -> String {
    format!("{DEAD}{name}")
}

/// The name in a key below `prefix`; `None` for what is no message.
pub(super) fn name_in<'a>(key: &'a str, prefix: &str) -> Option<&'a str> {
    let name = key.strip_prefix(prefix)?;
    let hex = name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    (hex && name.len() == 64).then_some(name)
}

/// A message that waits: the one authoritative object of it, changed only by If-Match.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Marker {
    /// BlobForge's count of failed attempts; not ours to change.
    pub(super) retries: u32,
    pub(super) queued_at: u64,
    /// Absent in markers written by BlobForge: the name is all they say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<String>,
    /// Invisible before.
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

impl Marker {
    pub(super) fn new(body: &str, now: u64, not_before: u64) -> Self {
        let body = Some(body.to_owned());
        Self { queued_at: now, body, not_before, sends: 1, ..Self::default() }
    }
}

/// The right to work on a message until `expires_at`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Lock {
    pub(super) worker: String,
    pub(super) started: u64,
    pub(super) last_heartbeat: u64,
    pub(super) priority: String,
    pub(super) retries: u32,
    /// Different for every receive.
    pub(super) nonce: String,
    pub(super) lock_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

impl Lock {
    /// When anybody may take it over. `modified` is when the object was written.
    pub(super) fn end(&self, modified: u64) -> u64 {
        let beat = if self.last_heartbeat > 0 { self.last_heartbeat } else { modified };
        self.expires_at.unwrap_or(beat.saturating_add(STALE))
    }
}

/// A message that was given up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Dead {
    pub(super) error: String,
    /// RFC 3339.
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

/// Reads any of the forms; what is empty (BlobForge's new markers) or no JSON is the default.
pub(super) fn read<T: DeserializeOwned + Default>(bytes: &[u8]) -> T {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// What a receipt says: which message, from which tier, under which lock, sent how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) tier: String,
    pub(super) name: String,
    pub(super) nonce: String,
    pub(super) sends: u32,
}

impl Ticket {
    pub(super) fn receipt(&self) -> Receipt {
        let Self { tier, name, nonce, sends } = self;
        Receipt(format!("{tier}/{name}/{nonce}/{sends}"))
    }

    pub(super) fn of(receipt: &Receipt) -> Option<Self> {
        let mut parts = receipt.0.split('/');
        let (tier, name, nonce) = (parts.next()?, parts.next()?, parts.next()?);
        let sends = parts.next()?.parse().ok()?;
        let known = tier == "dead" || TIERS.contains(&tier);
        (known && name_in(name, "").is_some() && parts.next().is_none()).then(|| Self {
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
        assert_eq!(read::<Marker>(b""), Marker::default());
        assert_eq!(read::<Marker>(b"not json"), Marker::default());
        let recovered = br#"{"retries":2,"queued_at":7,"recovered_from":"w","last_error":"e"}"#;
        let marker: Marker = read(recovered);
        assert_eq!((marker.retries, marker.queued_at, marker.body.as_deref()), (2, 7, None));
        let again: Value = serde_json::to_value(&marker).unwrap();
        assert_eq!(again["recovered_from"], "w", "fields we do not know survive");
        let lock: Lock =
            read(br#"{"worker":"w","started":1,"last_heartbeat":1000,"priority":"p"}"#);
        assert_eq!(lock.end(9), 1000 + STALE);
        assert_eq!(read::<Lock>(b"").end(9), 9 + STALE);
    }

    #[test]
    fn a_receipt_reads_back_and_nonsense_does_not() {
        let ticket =
            Ticket { tier: NORMAL.to_owned(), name: name_of("x"), nonce: "n".to_owned(), sends: 3 };
        assert_eq!(Ticket::of(&ticket.receipt()), Some(ticket));
        for wrong in ["", "3_normal/x/n/1", "3_normal", "../../etc/passwd/1", "a/b/c/d/e"] {
            assert_eq!(Ticket::of(&Receipt(wrong.to_owned())), None, "{wrong}");
        }
    }

    #[test]
    fn only_names_of_messages_are_taken_for_messages() {
        let name = name_of("x");
        assert_eq!(name_in(&todo_key(NORMAL, &name), &tier_prefix(NORMAL)), Some(name.as_str()));
        for key in ["queue/todo/3_normal/readme.txt", "queue/todo/3_normal/", "other"] {
            assert_eq!(name_in(key, &tier_prefix(NORMAL)), None, "{key}");
        }
    }
}
