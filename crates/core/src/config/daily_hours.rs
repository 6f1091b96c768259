//! Hours of every day. Whose clock they mean, the machine's or UTC's, is said where they are used; a
//! day with another hour more or less is taken as one of 24.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use time::Time;

/// From a minute of the day to another, `22:00-06:00`: past midnight if the second is the earlier
/// one; the whole day if both are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DailyHours {
    opens: Time,
    closes: Time,
}

impl DailyHours {
    /// Whether both times are the same, so that it never closes.
    pub fn is_whole_day(self) -> bool {
        self.opens == self.closes
    }

    /// How long from `now` until they begin; zero while they last.
    pub fn wait_until_open(self, now: Time) -> Duration {
        let Self { opens, closes } = self;
        let is_open = match opens < closes {
            true => opens <= now && now < closes,
            false => opens <= now || now < closes,
        };
        if is_open {
            return Duration::ZERO;
        }
        // Of two times of one day the difference; a negative one reaches into the next day.
        let (wait, day) = (opens - now, time::Duration::DAY);
        Duration::try_from(if wait.is_negative() { wait + day } else { wait }).unwrap_or_default()
    }
}

impl FromStr for DailyHours {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = time::macros::format_description!("[hour padding:none]:[minute]");
        let read = |time: &str| Time::parse(time.trim(), form).ok();
        let times = text.trim().split_once('-');
        times
            .and_then(|(opens, closes)| Some(Self { opens: read(opens)?, closes: read(closes)? }))
            .ok_or_else(|| format!("`{text}` is not HH:MM-HH:MM, such as 22:00-06:00"))
    }
}

impl fmt::Display for DailyHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, until] =
            [self.opens, self.closes].map(|at| format!("{:02}:{:02}", at.hour(), at.minute()));
        write!(f, "{from}-{until}")
    }
}
