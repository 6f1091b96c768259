//! Limits in response headers: OpenAI's `x-ratelimit-*`, Anthropic's `anthropic-ratelimit-*`, and
//! the `ratelimit-*` of other servers and gateways.
//!
//! Lenient: what is missing or makes no sense is left out. Nothing here is needed; without headers
//! the pace is learned from refusals.

use std::time::Duration;

use reqwest::header::HeaderMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// One limit from the server's headers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitWindow {
    /// Most that may be there.
    pub limit: f64,
    /// The remainder of the limit at this moment.
    pub remaining: f64,
    /// How long until all of it is there again.
    pub reset: Duration,
}

impl LimitWindow {
    /// How much comes in a second, as far as the numbers allow to say: what is missing comes within
    /// `reset`. Resets are rounded to a second by some, so shorter ones say nothing.
    pub fn per_second(self) -> Option<f64> {
        let missing = self.limit - self.remaining;
        let known = missing > 0.0 && self.reset >= Duration::from_secs(1);
        known.then(|| missing / self.reset.as_secs_f64())
    }
}

/// The limits that the headers of one response state.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RateLimitHeaders {
    /// Requests, refilled all the time.
    pub requests: Option<LimitWindow>,
    /// Tokens, refilled all the time.
    pub tokens: Option<LimitWindow>,
    /// Nothing is left until this has passed (servers that count in fixed windows).
    pub exhausted_for: Option<Duration>,
}

impl RateLimitHeaders {
    /// Reads the limits from the headers of an answer received at `now`.
    pub fn read(headers: &HeaderMap, now: OffsetDateTime) -> Self {
        let exhausted_for = ["ratelimit", "x-ratelimit"].into_iter().find_map(|family| {
            let left = read_number(headers, &format!("{family}-remaining"))?;
            let reset = read_number(headers, &format!("{family}-reset"))?;
            // An instant since 1970 in some dialects; a span of more than a day is no span.
            let reset = if reset > 1e9 { reset - unix_seconds(now) } else { reset };
            (left < 1.0 && reset > 0.0 && reset <= 86_400.0).then(|| Duration::from_secs_f64(reset))
        });
        Self {
            requests: read_openai(headers, "requests")
                .or_else(|| read_anthropic(headers, "requests", now)),
            tokens: read_openai(headers, "tokens")
                .or_else(|| read_anthropic(headers, "tokens", now)),
            exhausted_for,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are far below 2^52")]
fn unix_seconds(now: OffsetDateTime) -> f64 {
    now.unix_timestamp() as f64
}

/// A header as text, without the blanks around it.
pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn read_number(headers: &HeaderMap, name: &str) -> Option<f64> {
    let number = header_text(headers, name)?.parse::<f64>().ok();
    number.filter(|number| number.is_finite() && *number >= 0.0)
}

fn read_openai(headers: &HeaderMap, unit: &str) -> Option<LimitWindow> {
    let limit = read_number(headers, &format!("x-ratelimit-limit-{unit}"))?;
    let remaining = read_number(headers, &format!("x-ratelimit-remaining-{unit}"))?;
    let reset = header_text(headers, &format!("x-ratelimit-reset-{unit}"))?;
    limit_window(limit, remaining, parse_go_duration(reset)?)
}

fn read_anthropic(headers: &HeaderMap, unit: &str, now: OffsetDateTime) -> Option<LimitWindow> {
    let limit = read_number(headers, &format!("anthropic-ratelimit-{unit}-limit"))?;
    let remaining = read_number(headers, &format!("anthropic-ratelimit-{unit}-remaining"))?;
    let reset = header_text(headers, &format!("anthropic-ratelimit-{unit}-reset"))?;
    let reset = OffsetDateTime::parse(reset, &Rfc3339).ok()? - now;
    limit_window(limit, remaining, Duration::try_from(reset).unwrap_or_default())
}

fn limit_window(limit: f64, remaining: f64, reset: Duration) -> Option<LimitWindow> {
    (limit >= 1.0 && remaining <= limit).then_some(LimitWindow { limit, remaining, reset })
}

/// Go's way of writing a span: `6m0s`, `120ms`, `8.64s`, `1h2m`; a bare number is seconds.
fn parse_go_duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let (mut total, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(end)?;
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, next) = tail.split_at_checked(unit_end)?;
        let unit = match unit {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * unit;
        rest = next;
    }
    Duration::try_from_secs_f64(total).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&'static str, &str)]) -> RateLimitHeaders {
        let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
        let pair = |(name, value): &(&'static str, &str)| {
            ((*name).parse().unwrap(), value.parse().unwrap())
        };
        RateLimitHeaders::read(&pairs.iter().map(pair).collect(), now)
    }

    fn parts(told: Option<LimitWindow>) -> Option<(f64, f64, f64)> {
        told.map(|told| (told.limit, told.remaining, told.reset.as_secs_f64()))
    }

    #[test]
    fn every_dialect_is_read_and_nonsense_is_left_out() {
        let openai = read(&[
            ("x-ratelimit-limit-requests", "1200"),
            ("x-ratelimit-remaining-requests", "1160"),
            ("x-ratelimit-reset-requests", "2s"),
            ("x-ratelimit-limit-tokens", "90000"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "1m0.5s"),
        ]);
        assert_eq!(parts(openai.requests), Some((1200.0, 1160.0, 2.0)));
        assert_eq!(openai.requests.and_then(LimitWindow::per_second), Some(20.0));
        assert_eq!(parts(openai.tokens), Some((90_000.0, 0.0, 60.5)));
        let anthropic = read(&[
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "40"),
            ("anthropic-ratelimit-requests-reset", "2027-01-15T08:00:12Z"),
        ]);
        assert_eq!(parts(anthropic.requests), Some((50.0, 40.0, 12.0)));
        let window =
            |left, reset| read(&[("ratelimit-remaining", left), ("ratelimit-reset", reset)]);
        assert_eq!(window("0", "3").exhausted_for, Some(Duration::from_secs(3)));
        assert_eq!(window("0", "1800000007").exhausted_for, Some(Duration::from_secs(7)));
        assert_eq!(window("0.5", "86400").exhausted_for, Some(Duration::from_secs(86_400)));
        assert_eq!(window("5", "3"), RateLimitHeaders::default());
        #[rustfmt::skip]
        let nothing = [
            ("1", "3"), ("-1", "3"), ("NaN", "3"),
            ("0", "soon"), ("0", "0"), ("0", "86401"), ("0", "1e300"),
        ];
        for (left, reset) in nothing {
            assert_eq!(window(left, reset), RateLimitHeaders::default(), "{left} {reset}");
        }
    }

    #[test]
    fn a_limit_below_one_or_below_its_remainder_is_ignored() {
        let table = [(1.0, 0.0, true), (1.0, 1.0, true), (0.9, 0.1, false), (5.0, 6.0, false)];
        for (limit, remaining, expected) in table {
            let read = limit_window(limit, remaining, Duration::from_secs(1));
            assert_eq!(read.is_some(), expected, "{remaining} of {limit}");
        }
    }

    #[test]
    fn spans_are_read_as_go_writes_them() {
        let ns = |text| parse_go_duration(text).map(|it| it.as_nanos());
        #[rustfmt::skip]
        let table = [
            ("6m0s", 360_000_000_000), ("120ms", 120_000_000), ("8.64s", 8_640_000_000),
            ("1h2m", 3_720_000_000_000), ("7", 7_000_000_000), ("1d", 86_400_000_000_000),
            ("250ns", 250), ("30us", 30_000), ("30µs", 30_000),
        ];
        for (text, expected) in table {
            assert_eq!(ns(text), Some(expected), "{text}");
        }
        for wrong in ["soon", "5x", "s"] {
            assert!(ns(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_full_bucket_or_one_that_resets_at_once_gives_no_rate() {
        let told = |remaining, reset| LimitWindow { limit: 10.0, remaining, reset };
        assert_eq!(told(10.0, Duration::from_secs(5)).per_second(), None);
        assert_eq!(told(9.0, Duration::from_millis(50)).per_second(), None);
    }
}
