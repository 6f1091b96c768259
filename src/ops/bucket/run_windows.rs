//! The hours of the day at which a worker of a bucket takes documents, by this machine's local time,
//! as BlobForge's `--run-window` has them. What is in work goes on after its window.

use std::str::FromStr;
use std::time::Duration;

use chrono::{Local, NaiveTime, Timelike as _};

/// Seconds of a day; a day with another hour more or less is taken as one of these.
const DAY: u32 = 24 * 3600;

/// Hours of every day; none: all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunWindows(Vec<DailyWindow>);

/// From a second of the day to another, which may be the next day's; the same: the whole day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DailyWindow {
    from: u32,
    to: u32,
}

impl RunWindows {
    /// Several texts, each with windows.
    pub fn joined(all: &[Self]) -> Self {
        Self(all.iter().flat_map(|windows| windows.0.iter().copied()).collect())
    }

    /// How long no document may be taken, as the clock on the wall is now; `None`: one may.
    pub fn closed_for(&self) -> Option<Duration> {
        self.closed_at(Local::now().time().num_seconds_from_midnight())
    }

    fn closed_at(&self, second: u32) -> Option<Duration> {
        if self.0.iter().any(|window| window.contains(second)) {
            return None;
        }
        let until = |window: &DailyWindow| (window.from + DAY - second) % DAY;
        let first = self.0.iter().map(until).min()?;
        Some(Duration::from_secs(u64::from(first)))
    }
}

impl DailyWindow {
    fn contains(self, second: u32) -> bool {
        if self.from < self.to {
            (self.from..self.to).contains(&second)
        } else {
            second >= self.from || second < self.to
        }
    }
}

impl FromStr for RunWindows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let windows: Option<Vec<DailyWindow>> = text.split(',').map(parse_window).collect();
        windows.map(Self).ok_or_else(|| {
            format!("`{text}` is no run window: HH:MM-HH:MM, several separated by commas")
        })
    }
}

fn parse_window(text: &str) -> Option<DailyWindow> {
    let (from, to) = text.trim().split_once('-')?;
    let second = |time: &str| {
        let time = NaiveTime::parse_from_str(time.trim(), "%H:%M").ok()?;
        Some(time.num_seconds_from_midnight())
    };
    Some(DailyWindow { from: second(from)?, to: second(to)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_taken_within_the_windows_and_the_next_one_is_waited_for_outside() {
        let hours = |hours: u32| hours * 3600;
        #[rustfmt::skip]
        let table: [(&str, u32, Option<u32>); 10] = [
            ("06:00-08:00",             hours(6),      None),
            ("06:00-08:00",             hours(8) - 1,  None),
            ("06:00-08:00",             hours(8),      Some(hours(22))),
            ("06:00-08:00",             hours(5),      Some(hours(1))),
            ("22:00-06:00",             hours(23),     None),
            ("22:00-06:00",             0,             None),
            ("22:00-06:00",             hours(6),      Some(hours(16))),
            ("06:00-08:00, 22:30-23:30", hours(9),     Some(hours(13) + 1800)),
            ("07:00-07:00",             hours(12),     None),
            ("23:59-00:00",             hours(24) - 1, None),
        ];
        for (text, second, expected) in table {
            let windows: RunWindows = text.parse().unwrap();
            let expected = expected.map(|seconds| Duration::from_secs(seconds.into()));
            assert_eq!(windows.closed_at(second), expected, "{text} at {second}");
        }
        assert_eq!(RunWindows::default().closed_at(0), None, "none is every hour");
        let both =
            RunWindows::joined(&["01:00-02:00", "03:00-04:00"].map(|it| it.parse().unwrap()));
        assert_eq!((both.closed_at(hours(1)), both.closed_at(hours(3))), (None, None));
    }

    #[test]
    fn what_is_no_window_is_said() {
        for text in ["", "6", "06:00", "24:00-01:00", "06:60-07:00", "06:00-07:00,", "a-b"] {
            let error = text.parse::<RunWindows>().unwrap_err();
            assert!(error.contains("HH:MM-HH:MM"), "{error}");
        }
    }
}
