//! One message: content, checksums, and state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use md5::{Digest as _, Md5};
use serde_json::{Map, Value, json};

use super::clock::Millis;
use super::refusal::{Answer, Kind, refuse};

/// The sender's content; validated.
#[derive(Debug, Clone)]
pub(super) struct Content {
    pub(super) body: String,
    pub(super) body_md5: String,
    /// `MessageAttributes` as they came.
    pub(super) attributes: Map<String, Value>,
    pub(super) attributes_md5: Option<String>,
    /// `AWSTraceHeader` and `MessageGroupId`, where given.
    pub(super) system: BTreeMap<String, String>,
}

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Visible; the number is its place in the order of delivery.
    Ready(u64),
    /// Sent with a delay.
    Delayed(Millis),
    /// Received and hidden until this time.
    InFlight(Millis),
}

/// One message of a queue.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) message_id: String,
    pub(super) content: Arc<Content>,
    pub(super) sent_at: Millis,
    pub(super) first_received_at: Option<Millis>,
    pub(super) received_at: Millis,
    pub(super) receive_count: u32,
    /// Drawn at each receive; zero before the first.
    pub(super) nonce: u64,
    /// The queue it was dead-lettered from.
    pub(super) dead_from: Option<String>,
    pub(super) place: Place,
}

impl Message {
    pub(super) fn new(content: Arc<Content>, now: Millis) -> Self {
        Self {
            message_id: uuid::Uuid::new_v4().to_string(),
            content,
            sent_at: now,
            first_received_at: None,
            received_at: 0,
            receive_count: 0,
            nonce: 0,
            dead_from: None,
            place: Place::Ready(now),
        }
    }

    /// The message as `ReceiveMessage` shows it.
    pub(super) fn shown(&self, handle: &str, wanted: &Wanted) -> Value {
        let mut shown = json!({
            "MessageId": self.message_id,
            "ReceiptHandle": handle,
            "MD5OfBody": self.content.body_md5,
            "Body": self.content.body,
        });
        let mut system = Map::new();
        for (name, value) in self.system_attributes() {
            if wanted.system(&name) {
                system.insert(name, Value::String(value));
            }
        }
        let own = self.content.attributes.iter().filter(|(name, _)| wanted.own(name));
        let own: Map<String, Value> = own.map(|(n, v)| (n.clone(), v.clone())).collect();
        if let Some(object) = shown.as_object_mut() {
            if !system.is_empty() {
                object.insert("Attributes".to_owned(), Value::Object(system));
            }
            if !own.is_empty() {
                let md5 = attributes_md5(&own).unwrap_or_default();
                object.insert("MD5OfMessageAttributes".to_owned(), Value::String(md5));
                object.insert("MessageAttributes".to_owned(), Value::Object(own));
            }
        }
        shown
    }

    fn system_attributes(&self) -> BTreeMap<String, String> {
        let mut all = self.content.system.clone();
        let more = [
            ("SenderId", Some("AIDASTANDIN".to_owned())),
            ("SentTimestamp", Some(self.sent_at.to_string())),
            ("ApproximateReceiveCount", Some(self.receive_count.to_string())),
            (
                "ApproximateFirstReceiveTimestamp",
                self.first_received_at.map(|first| first.to_string()),
            ),
            ("DeadLetterQueueSourceArn", self.dead_from.clone()),
        ];
        all.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        all
    }
}

/// Which attributes a receiver asked for: nothing that was not asked for is shown.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    system: BTreeSet<String>,
    own: BTreeSet<String>,
}

impl Wanted {
    pub(super) fn new(
        system: impl IntoIterator<Item = String>,
        own: impl IntoIterator<Item = String>,
    ) -> Self {
        Self { system: system.into_iter().collect(), own: own.into_iter().collect() }
    }

    fn system(&self, name: &str) -> bool {
        self.system.contains("All") || self.system.contains(name)
    }

    fn own(&self, name: &str) -> bool {
        self.own.contains("All")
            || self.own.contains(".*")
            || self.own.contains(name)
            || self.own.iter().any(|wanted: &String| {
                wanted.strip_suffix(".*").is_some_and(|prefix| name.starts_with(prefix))
            })
    }
}

impl Content {
    /// Checks what a sender gave us against the service's rules, `limit` in bytes.
    pub(super) fn new(
        body: String,
        attributes: Map<String, Value>,
        system: BTreeMap<String, String>,
        limit: usize,
    ) -> Answer<Self> {
        if body.is_empty() {
            return refuse(
                Kind::MissingParameter,
                "The request must contain the parameter MessageBody.",
            );
        }
        if !body.chars().all(allowed) {
            return refuse(
                Kind::InvalidMessageContents,
                "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 \
                 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF",
            );
        }
        if attributes.len() > 10 {
            return refuse(
                Kind::InvalidParameterValue,
                "Number of message attributes exceeds the allowed maximum [10].",
            );
        }
        let attributes_md5 = attributes_md5(&attributes);
        if !attributes.is_empty() && attributes_md5.is_none() {
            return refuse(
                Kind::InvalidParameterValue,
                "A message attribute needs a DataType and a non-empty value of that type.",
            );
        }
        let body_md5 = hex(&Md5::digest(body.as_bytes()));
        let content = Self { body, body_md5, attributes, attributes_md5, system };
        if content.size() > limit {
            return refuse(
                Kind::InvalidParameterValue,
                format!(
                    "One or more parameters are invalid. Reason: Message must be shorter than {limit} bytes."
                ),
            );
        }
        Ok(content)
    }

    /// Bytes of body, attribute names, types and values: what the limits count.
    pub(super) fn size(&self) -> usize {
        let own: usize = self
            .attributes
            .iter()
            .map(|(name, value)| {
                let parts = attribute_parts(value);
                name.len() + parts.map_or(0, |(kind, _, bytes)| kind.len() + bytes.len())
            })
            .sum();
        self.body.len() + own
    }
}

/// The characters of XML 1.0, which is what the service takes.
fn allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Data type, transport byte of the checksum (1 text, 2 binary) and value of an attribute.
fn attribute_parts(value: &Value) -> Option<(&str, u8, Vec<u8>)> {
    let kind = value.get("DataType")?.as_str()?;
    if kind.starts_with("Binary") {
        let text = value.get("BinaryValue")?.as_str()?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
        return Some((kind, 2, bytes)).filter(|(_, _, bytes)| !bytes.is_empty());
    }
    let text = value.get("StringValue")?.as_str()?;
    let known = kind.starts_with("String") || kind.starts_with("Number");
    (known && !text.is_empty()).then(|| (kind, 1, text.as_bytes().to_vec()))
}

/// The checksum over message attributes, as the developer guide defines it: names in order, each of
/// name, type and value preceded by its length (4 bytes, big-endian), the value by its transport
/// byte. `None` if there are none, or one is malformed.
fn attributes_md5(attributes: &Map<String, Value>) -> Option<String> {
    if attributes.is_empty() {
        return None;
    }
    let sorted: BTreeMap<&String, &Value> = attributes.iter().collect();
    let mut digest = Md5::new();
    for (name, value) in sorted {
        let (kind, transport, bytes) = attribute_parts(value)?;
        for part in [name.as_bytes(), kind.as_bytes()] {
            digest.update(u32::try_from(part.len()).ok()?.to_be_bytes());
            digest.update(part);
        }
        digest.update([transport]);
        digest.update(u32::try_from(bytes.len()).ok()?.to_be_bytes());
        digest.update(&bytes);
    }
    Some(hex(&digest.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [hex_digit(byte >> 4), hex_digit(byte & 15)]).collect()
}

fn hex_digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or_default()
}
