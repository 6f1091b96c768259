//! The hours of the day at which a worker claims documents, in local time, as in BlobForge's
//! `--run-window`. Running documents are finished after the window.

use std::str::FromStr;
use std::time::Duration;

use chrono::{Local, Timelike as _};
use docmill_core::config::DailyHours;
use time::Time;

/// Hours of every day; none: all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunWindows(Vec<DailyHours>);

impl RunWindows {
    /// Several texts, each with windows.
    pub fn joined(all: &[Self]) -> Self {
        Self(all.iter().flat_map(|windows| windows.0.iter().copied()).collect())
    }

    /// How long no document may be taken, as the clock on the wall is now; `None`: one may.
    pub(crate) fn closed_for(&self) -> Option<Duration> {
        self.closed_at(Local::now().time().num_seconds_from_midnight())
    }

    fn closed_at(&self, second: u32) -> Option<Duration> {
        let now = Time::MIDNIGHT + Duration::from_secs(second.into());
        let first = self.0.iter().map(|hours| hours.wait_until_open(now)).min()?;
        (!first.is_zero()).then_some(first)
    }
}

impl FromStr for RunWindows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let windows: Result<_, _> = text.split(',').map(str::parse).collect();
        windows.map(Self).map_err(|_: String| {
            format!("`{text}` is no run window: HH:MM-HH:MM, several separated by commas")
        })
    }
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
    fn an_invalid_run_window_is_reported() {
        for text in ["", "6", "06:00", "24:00-01:00", "06:60-07:00", "06:00-07:00,", "a-b"] {
            let error = text.parse::<RunWindows>().unwrap_err();
            assert!(error.contains("HH:MM-HH:MM"), "{error}");
        }
    }
}
