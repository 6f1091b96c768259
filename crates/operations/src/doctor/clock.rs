//! The local clock against those of the services: signatures fail when they differ by minutes.
//!
//! Leases never depend on the local clock, so a small offset only shifts times in logs and
//! dashboards.

use std::time::{Duration, SystemTime};

use time::OffsetDateTime;

use super::DoctorFinding;
use docmill_client::http;
use docmill_core::config::strip_credentials;
use docmill_core::fault::{Error, Result};

/// AWS refuses signatures that are off by 5 minutes.
const MAX_OFFSET: Duration = Duration::from_secs(240);
/// Logs and metrics of several machines no longer fit together.
const WARN_OFFSET: Duration = Duration::from_secs(10);
/// How long the other side may take to answer with its time.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The time of the other clock when the local one showed `at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockSample {
    /// The time that the other side reported.
    pub theirs: SystemTime,
    /// Ours, in the middle of the question.
    pub at: SystemTime,
}

/// Holds a reading against our clock; `whose` completes "the clock of …".
pub fn check(check: &'static str, whose: &str, reading: ClockSample) -> DoctorFinding {
    let offset =
        reading.theirs.duration_since(reading.at).unwrap_or_else(|earlier| earlier.duration());
    let seconds = offset.as_secs();
    let text = format!("the clock of {whose} and ours differ by {seconds} s");
    let advice = "set the clock of this machine by NTP (chrony, Amazon Time Sync)";
    if offset >= MAX_OFFSET {
        let advice = format!("{advice}, or theirs: AWS refuses signatures that are 5 minutes off");
        return DoctorFinding::wrong(check, text, advice);
    }
    if offset >= WARN_OFFSET {
        return DoctorFinding::warn(check, text, advice);
    }
    DoctorFinding::ok(check, text)
}

/// The time in the `Date` header of the server's answer.
///
/// # Errors
/// No answer, or one without a readable date.
pub async fn sample_server(address: &str) -> Result<ClockSample> {
    let url = address
        .parse()
        .map_err(|_| Error::internal(format!("{} is no address", strip_credentials(address))))?;
    let client = http::build_client(&url, PROBE_TIMEOUT)?;
    let before = SystemTime::now();
    let answer = client.head(url).send().await;
    let answer = answer.map_err(|error| http::no_answer_error(error, "asking for the time"))?;
    let at = before + before.elapsed().unwrap_or_default() / 2;
    let date = answer.headers().get(reqwest::header::DATE).and_then(|date| date.to_str().ok());
    let form = &time::format_description::well_known::Rfc2822;
    let theirs = date.and_then(|date| OffsetDateTime::parse(date, form).ok());
    let theirs = theirs.ok_or_else(|| Error::internal("the answer carries no date"))?;
    Ok(ClockSample { theirs: theirs.into(), at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn minutes_are_wrong_in_either_direction_and_seconds_are_not() {
        let now = SystemTime::now();
        for (seconds, verdict) in
            [(0, Severity::Ok), (9, Severity::Ok), (30, Severity::Warn), (240, Severity::Wrong)]
        {
            let by = Duration::from_secs(seconds);
            for theirs in [now + by, now - by] {
                let found = check("clock.queue", "the queue", ClockSample { theirs, at: now });
                assert_eq!(found.verdict, verdict, "{seconds}");
            }
        }
    }
}
