//! Items in the scripts' answers, and the contents of a receipt.
//!
//! Redis stores an id and an item's data as bytes, docmill as text. Bytes that are not UTF-8 are
//! written without loss: an id in hex, data as a `data:` address, which is no known body and goes
//! into quarantine complete.

use std::time::{Duration, Instant, SystemTime};

use ::redis::{FromRedisValue, ParsingError, Value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{Delivery, MessageOrigin, ReceiptHandle};
use docmill_core::model::Priority;
use docmill_core::model::digest::{decode_hex, encode_hex};

/// Which item, from which tier, leased under which token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RedisReceipt {
    pub(super) tier: usize,
    pub(super) token: String,
    pub(super) id: Vec<u8>,
}

impl RedisReceipt {
    /// `TIER:TOKEN:t:ID`, or `TIER:TOKEN:x:HEX` if the id is no text; an id may hold colons.
    pub(super) fn to_handle(&self) -> ReceiptHandle {
        let (how, id) = match std::str::from_utf8(&self.id) {
            Ok(text) => ('t', text.to_owned()),
            Err(_) => ('x', encode_hex(&self.id)),
        };
        ReceiptHandle(format!("{}:{}:{how}:{id}", self.tier, self.token))
    }

    pub(super) fn parse(receipt: &ReceiptHandle) -> Option<Self> {
        let mut parts = receipt.0.splitn(4, ':');
        let tier = parts.next()?.parse().ok()?;
        let token = parts.next()?.to_owned();
        let id = match (parts.next()?, parts.next()?) {
            ("t", text) => text.as_bytes().to_vec(),
            ("x", digits) => decode_hex(digits)?,
            _ => return None,
        };
        Some(Self { tier, token, id })
    }
}

/// An item's data as a body.
fn body_of(data: Vec<u8>) -> String {
    match String::from_utf8(data) {
        Ok(text) if !text.contains('\0') => text,
        // Not text that Postgres could keep whole.
        Ok(text) => encode_bytes(text.as_bytes()),
        Err(wrong) => encode_bytes(wrong.as_bytes()),
    }
}

fn encode_bytes(data: &[u8]) -> String {
    format!("data:application/octet-stream;base64,{}", STANDARD.encode(data))
}

/// id, data, receives, sent, first received, tenant, traceparent, origin.
type LeasedRow = (Vec<u8>, Vec<u8>, u32, String, String, String, String, String);

/// What `lease.lua` and `dead.lua` answer.
#[derive(Debug, Default)]
pub(super) struct LeasedItems {
    /// Until something of ours becomes due.
    pub(super) next_due: Option<Duration>,
    /// Items of others that were left where they are.
    pub(super) passed_over: usize,
    rows: Vec<LeasedRow>,
}

impl FromRedisValue for LeasedItems {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let mut leased = Self::default();
        let Value::Array(parts) = value else {
            return Err("the script answered no list".into());
        };
        let mut numbers = Vec::new();
        for part in parts {
            match part {
                Value::Int(number) => numbers.push(number),
                row => leased.rows.push(LeasedRow::from_redis_value(row)?),
            }
        }
        if let [due, passed] = numbers[..] {
            leased.next_due = u64::try_from(due).ok().map(Duration::from_millis);
            leased.passed_over = usize::try_from(passed).unwrap_or_default();
        }
        Ok(leased)
    }
}

impl LeasedItems {
    /// Makes deliveries of the leased items.
    pub(super) fn into_deliveries(
        self,
        tier: usize,
        token: &str,
        received: Instant,
        priority: Option<Priority>,
    ) -> Vec<Delivery> {
        self.rows
            .into_iter()
            .map(|row| {
                let (id, data, receive_count, sent, first, tenant, traceparent, origin) = row;
                let message_id = match std::str::from_utf8(&id) {
                    Ok(text) => text.to_owned(),
                    Err(_) => encode_hex(&id),
                };
                Delivery {
                    message_id,
                    body: body_of(data),
                    receipt: RedisReceipt { tier, token: token.to_owned(), id }.to_handle(),
                    receive_count,
                    sent_at: time_of(&sent),
                    first_received_at: time_of(&first),
                    received,
                    priority,
                    tenant: non_empty(tenant),
                    traceparent: non_empty(traceparent),
                    origin: MessageOrigin::from_text(&origin),
                }
            })
            .collect()
    }
}

fn non_empty(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn time_of(millis: &str) -> Option<SystemTime> {
    let millis: u64 = millis.parse().ok()?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_millis(millis))
}

/// Whole milliseconds, rounded up: nothing becomes visible earlier than asked for.
pub(super) fn ceil_millis(duration: Duration) -> u64 {
    let whole =
        duration.as_millis() + u128::from(!duration.subsec_nanos().is_multiple_of(1_000_000));
    u64::try_from(whole).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_of_any_id_reads_back_and_nonsense_does_not() {
        for id in [&b"7f"[..], b"a:b:c", b"", "ü 1".as_bytes(), b"\xff\x00:", b"t:"] {
            let ticket = RedisReceipt { tier: 2, token: "t".to_owned(), id: id.to_vec() };
            assert_eq!(RedisReceipt::parse(&ticket.to_handle()), Some(ticket));
        }
        for wrong in ["", "1", "1:t", "1:t:id", "x:t:t:id", "1:t:x:f", "1:t:x:fg", "1:t:y:ff"] {
            assert_eq!(RedisReceipt::parse(&ReceiptHandle(wrong.to_owned())), None, "{wrong}");
        }
    }

    #[test]
    fn data_that_is_no_text_keeps_every_byte() {
        assert_eq!(body_of("ü".into()), "ü");
        assert_eq!(body_of(vec![0xff, 0]), "data:application/octet-stream;base64,/wA=");
        assert_eq!(body_of(vec![b'a', 0]), "data:application/octet-stream;base64,YQA=");
    }

    #[test]
    fn a_part_of_a_millisecond_is_a_millisecond() {
        assert_eq!(ceil_millis(Duration::from_micros(1_500)), 2);
        assert_eq!(ceil_millis(Duration::from_millis(20)), 20);
        assert_eq!(ceil_millis(Duration::ZERO), 0);
    }
}
