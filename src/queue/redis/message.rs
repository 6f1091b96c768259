//! Items as the scripts tell of them, and what a receipt holds.

use std::time::{Duration, Instant, SystemTime};

use ::redis::{FromRedisValue, ParsingError, Value};

use crate::model::Priority;
use crate::queue::{Delivery, Receipt};

/// Which item, from which tier, leased under which token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) tier: usize,
    pub(super) token: String,
    pub(super) id: String,
}

impl Ticket {
    /// `TIER:TOKEN:ID`; an id may hold colons.
    pub(super) fn receipt(&self) -> Receipt {
        Receipt(format!("{}:{}:{}", self.tier, self.token, self.id))
    }

    pub(super) fn of(receipt: &Receipt) -> Option<Self> {
        let mut parts = receipt.0.splitn(3, ':');
        let tier = parts.next()?.parse().ok()?;
        let (token, id) = (parts.next()?, parts.next()?);
        Some(Self { tier, token: token.to_owned(), id: id.to_owned() })
    }
}

/// id, data, receives, sent, first received, tenant, traceparent.
type Row = (Vec<u8>, Vec<u8>, u32, String, String, String, String);

/// What `lease.lua` and `dead.lua` answer.
#[derive(Debug, Default)]
pub(super) struct Leased {
    /// Until something of ours becomes due.
    pub(super) next_due: Option<Duration>,
    rows: Vec<Row>,
}

impl FromRedisValue for Leased {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let mut leased = Self::default();
        let Value::Array(parts) = value else {
            return Err("the script answered no list".into());
        };
        for part in parts {
            match part {
                Value::Int(ms) => {
                    leased.next_due = u64::try_from(ms).ok().map(Duration::from_millis)
                }
                row => leased.rows.push(Row::from_redis_value(row)?),
            }
        }
        Ok(leased)
    }
}

impl Leased {
    /// As deliveries. An id that is no text cannot be named in a receipt: such an item comes back
    /// by itself, and in the end is dead.
    pub(super) fn deliveries(
        self,
        tier: usize,
        token: &str,
        received: Instant,
        priority: Option<Priority>,
    ) -> Vec<Delivery> {
        let delivery = |row: Row| {
            let (id, data, receive_count, sent, first, tenant, traceparent) = row;
            let Ok(id) = String::from_utf8(id) else {
                tracing::error!("an item in Redis has an id that is not UTF-8; it is left alone");
                return None;
            };
            let ticket = Ticket { tier, token: token.to_owned(), id: id.clone() };
            Some(Delivery {
                message_id: id,
                // What is no text is no body of ours either, and goes into quarantine as such.
                body: String::from_utf8_lossy(&data).into_owned(),
                receipt: ticket.receipt(),
                receive_count,
                sent_at: time_of(&sent),
                first_received_at: time_of(&first),
                received,
                priority,
                tenant: some(tenant),
                traceparent: some(traceparent),
            })
        };
        self.rows.into_iter().filter_map(delivery).collect()
    }
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn time_of(millis: &str) -> Option<SystemTime> {
    let millis: u64 = millis.parse().ok()?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_millis(millis))
}

/// Whole milliseconds, rounded up: nothing becomes visible earlier than asked for.
pub(super) fn millis(duration: Duration) -> u64 {
    let whole =
        duration.as_millis() + u128::from(!duration.subsec_nanos().is_multiple_of(1_000_000));
    u64::try_from(whole).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_reads_back_whatever_the_id_and_nonsense_does_not() {
        for id in ["7f", "a:b:c", "", "ü 1"] {
            let ticket = Ticket { tier: 2, token: "t".to_owned(), id: id.to_owned() };
            assert_eq!(Ticket::of(&ticket.receipt()), Some(ticket));
        }
        for wrong in ["", "1", "1:t", "x:t:id"] {
            assert_eq!(Ticket::of(&Receipt(wrong.to_owned())), None, "{wrong}");
        }
    }

    #[test]
    fn a_part_of_a_millisecond_is_a_millisecond() {
        assert_eq!(millis(Duration::from_micros(1_500)), 2);
        assert_eq!(millis(Duration::from_millis(20)), 20);
        assert_eq!(millis(Duration::ZERO), 0);
    }
}
