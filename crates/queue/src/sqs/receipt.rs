//! Receipts that remember when their message was received.
//!
//! SQS refuses to hide a message beyond twelve hours from its receive (it does not shorten the
//! request). So the time of the receive travels with the handle, and the tier that it was received
//! from: `MILLISECONDS:LINE:HANDLE`, counted from the connection of this queue by the monotonic
//! clock and the suspended time. A receipt is valid only within its process.

use std::time::{Duration, Instant};

use super::super::ReceiptHandle;
use docmill_core::suspension::suspended_time;

/// The longest SQS hides a message, counted from its receive (API reference,
/// `ChangeMessageVisibility`).
pub(super) const MAX_HIDE: Duration = Duration::from_secs(12 * 3600);

/// The epoch of this queue's receipts.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReceiptClock {
    epoch: Instant,
    /// How long the machine had been suspended by then.
    suspended: Duration,
}

impl ReceiptClock {
    pub(super) fn new() -> Self {
        Self { epoch: Instant::now(), suspended: suspended_time() }
    }

    /// Makes the receipt of a message received (at the earliest) at `received`.
    pub(super) fn seal_receipt(
        self,
        handle: &str,
        line: usize,
        received: Instant,
    ) -> ReceiptHandle {
        let since = self.time_since(received, suspended_time()).as_millis();
        ReceiptHandle(format!("{since}:{line}:{handle}"))
    }

    /// How long the message may stay hidden from `now` on, at most `wish`, in whole seconds
    /// rounded up; `None` if its twelve hours are over.
    pub(super) fn allowed_seconds(
        self,
        receipt: &ReceiptHandle,
        wish: Duration,
        now: Instant,
    ) -> Option<i32> {
        self.seconds_left(receipt, wish, self.time_since(now, suspended_time()))
    }

    /// Time since the epoch at `now`, if the machine was suspended for so long by then.
    fn time_since(self, now: Instant, suspended: Duration) -> Duration {
        now.saturating_duration_since(self.epoch) + suspended.saturating_sub(self.suspended)
    }

    /// As [`ReceiptClock::allowed_seconds`], `now` after the epoch.
    fn seconds_left(self, receipt: &ReceiptHandle, wish: Duration, now: Duration) -> Option<i32> {
        let left = match open_receipt(receipt).since {
            Some(since) => {
                MAX_HIDE.checked_sub(now.saturating_sub(since)).filter(|left| left.as_secs() > 0)?
            }
            None => MAX_HIDE,
        };
        // The rest of the twelve hours is rounded down, a request within it up.
        Some(ceil_seconds(wish).min(i32::try_from(left.as_secs()).unwrap_or(i32::MAX)))
    }
}

/// The service's own handle.
pub(super) fn handle_of(receipt: &ReceiptHandle) -> &str {
    open_receipt(receipt).handle
}

/// The tier it was received from; a receipt of another form is of the first.
pub(super) fn tier_of(receipt: &ReceiptHandle) -> usize {
    open_receipt(receipt).line
}

/// A receipt taken apart.
struct OpenedReceipt<'a> {
    since: Option<Duration>,
    line: usize,
    handle: &'a str,
}

fn open_receipt(receipt: &ReceiptHandle) -> OpenedReceipt<'_> {
    let mut parts = receipt.0.splitn(3, ':');
    let mut read = || {
        let since = Duration::from_millis(parts.next()?.parse().ok()?);
        Some((since, parts.next()?.parse().ok()?, parts.next()?))
    };
    match read() {
        Some((since, line, handle)) => OpenedReceipt { since: Some(since), line, handle },
        None => OpenedReceipt { since: None, line: 0, handle: &receipt.0 },
    }
}

/// Whole seconds, rounded up: nothing becomes visible earlier than asked for.
pub(super) fn ceil_seconds(duration: Duration) -> i32 {
    let whole = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i32::try_from(whole).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hide_is_cut_to_the_rest_of_twelve_hours() {
        let stamp = ReceiptClock::new();
        let receipt = stamp.seal_receipt("h:1", 2, stamp.epoch + Duration::from_secs(100));
        let at = |elapsed: u64| stamp.epoch + Duration::from_secs(100 + elapsed);
        #[rustfmt::skip]
        let table = [
            // elapsed   wish                            expected
            (0,          Duration::ZERO,                 Some(0)),
            (0,          Duration::from_millis(1),       Some(1)),
            (0,          Duration::from_millis(90_000),  Some(90)),
            (0,          MAX_HIDE,                        Some(43_200)),
            (0,          MAX_HIDE * 2,                    Some(43_200)),
            (3_600,      MAX_HIDE,                        Some(39_600)),
            (43_199,     Duration::from_secs(120),       Some(1)),
            (43_200,     Duration::from_secs(120),       None),
            (99_999,     Duration::ZERO,                 None),
        ];
        for (elapsed, wish, expected) in table {
            assert_eq!(
                stamp.allowed_seconds(&receipt, wish, at(elapsed)),
                expected,
                "{elapsed} {wish:?}"
            );
        }
        assert_eq!((tier_of(&receipt), handle_of(&receipt)), (2, "h:1"));
    }

    #[test]
    fn the_twelve_hours_go_on_while_the_machine_is_suspended() {
        let stamp = ReceiptClock::new();
        let receipt = stamp.seal_receipt("h", 0, stamp.epoch);
        let hour = Duration::from_secs(3600);
        let left = |awake: Duration, asleep: Duration| {
            let now = stamp.time_since(stamp.epoch + awake, stamp.suspended + asleep);
            stamp.seconds_left(&receipt, MAX_HIDE, now)
        };
        assert_eq!(left(hour, hour * 2), Some(9 * 3600));
        assert_eq!(left(hour, hour * 11), None);
    }

    #[test]
    fn a_receipt_of_other_make_is_used_as_it_is() {
        let stamp = ReceiptClock::new();
        let foreign = ReceiptHandle("AQEB+x/y==".to_owned());
        assert_eq!(handle_of(&foreign), "AQEB+x/y==");
        assert_eq!(stamp.allowed_seconds(&foreign, MAX_HIDE, Instant::now()), Some(43_200));
    }
}
