//! How often a call is repeated, and after what pause.

use std::time::Duration;

/// Pause after the first failure, where the service names none; doubled after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// How often a call is made, and how long a pause may be. A pause is the service's `Retry-After`, or
/// grows from half a second, a quarter of it taken off by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPace {
    /// Calls in all, at least 1.
    pub tries: u32,
    /// A service that wants a longer pause is not asked again.
    pub longest_pause: Duration,
}

impl Default for RetryPace {
    /// Five calls, pauses up to a minute.
    fn default() -> Self {
        Self { tries: 5, longest_pause: Duration::from_secs(60) }
    }
}

impl RetryPace {
    /// The pause after so many failed calls; `None` after the last. `told` is the service's own,
    /// `chance` is 0 to 1.
    pub(super) fn next_pause(
        self,
        failed: u32,
        told: Option<Duration>,
        chance: f64,
    ) -> Option<Duration> {
        if failed >= self.tries {
            return None;
        }
        if let Some(told) = told {
            return (told <= self.longest_pause).then_some(told);
        }
        let doubled = FIRST_PAUSE.saturating_mul(1 << failed.saturating_sub(1).min(16));
        Some(doubled.min(self.longest_pause).mul_f64(1.0 - chance.clamp(0.0, 1.0) / 4.0))
    }
}

/// The pause that a `Retry-After` names in seconds; its other form, a date, is not one that docmill
/// sends.
pub(super) fn read_pause(header: Option<&str>) -> Option<Duration> {
    header?.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_the_services_own_or_doubles_and_ends_with_the_tries() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let pace = RetryPace { tries: 4, longest_pause: Duration::from_secs(60) };
        for (failed, told, chance, pause) in [
            (1, None, 0.0, Some(Duration::from_millis(500))),
            (2, None, 0.0, seconds(1)),
            (3, None, 0.0, seconds(2)),
            (3, None, 1.0, Some(Duration::from_millis(1500))),
            (4, None, 0.0, None),
            (1, seconds(7), 1.0, seconds(7)),
            (1, seconds(60), 0.0, seconds(60)),
            (1, seconds(61), 0.0, None),
            (4, seconds(1), 0.0, None),
        ] {
            assert_eq!(pace.next_pause(failed, told, chance), pause, "{failed} {told:?}");
        }
        let long = RetryPace { tries: u32::MAX, ..pace };
        assert_eq!(long.next_pause(u32::MAX - 1, None, 0.0), seconds(60));
    }

    #[test]
    fn a_pause_is_read_in_seconds_only() {
        assert_eq!(read_pause(Some(" 5 ")), Some(Duration::from_secs(5)));
        for none in [None, Some(""), Some("-1"), Some("Wed, 21 Oct 2026 07:28:00 GMT")] {
            assert_eq!(read_pause(none), None, "{none:?}");
        }
    }
}
