//! The one HTTP client: timeouts, redirects, capped bodies, and what a status asks for.
//!
//! Every provider reached over plain HTTP builds its client here, so that each has a timeout and a
//! bound on the bodies that it reads. Not promised: retries. Each provider decides which calls may
//! be repeated.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use time::{OffsetDateTime, PrimitiveDateTime};

use crate::throttle::header_text;
use docmill_core::fault::{Error, Fault, Result};

/// Longest a connection may take to come about. Vendors' own SDKs use the same.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Most redirects that are followed, all of them within one origin.
const REDIRECTS: usize = 3;
/// A longer Retry-After is taken for this: an unheard-of delay must not become an overflow.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// A client for one server. `timeout` bounds each whole request, its body included.
///
/// A service of this machine is reached directly, even if the environment names a proxy: the proxy
/// would search for it on its own machine.
///
/// # Errors
/// No usable TLS set-up on this machine (usually: no root certificates).
pub fn build_client(server: &Url, timeout: Duration) -> Result<Client> {
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT.min(timeout))
        .timeout(timeout)
        .user_agent(concat!("docmill/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::custom(follow_same_origin));
    if is_local_service(server) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| {
        Error::internal("the HTTP client cannot be set up; are root certificates installed?")
            .with_source(error)
    })
}

/// Follows a redirect only to the same scheme, host and port: any other would hand document content
/// and credentials to a server that was not configured.
fn follow_same_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let same =
        attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if same && attempt.previous().len() <= REDIRECTS { attempt.follow() } else { attempt.stop() }
}

/// Whether an address is a service of this machine or of its host: the loopback, and the link-local
/// addresses and the name of metadata services. Nothing sent there leaves the host.
pub fn is_local_service(server: &Url) -> bool {
    let host = server.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    matches!(host, "localhost" | "metadata.google.internal")
        || match address.parse() {
            Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_link_local(),
            Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unicast_link_local(),
            Err(_) => false,
        }
}

/// Reads a body of at most `cap` bytes; `Ok(None)` if it is longer, the rest unread.
///
/// # Errors
/// The connection broke or the request's time ran out.
pub async fn read_capped_body(
    mut response: Response,
    cap: usize,
) -> reqwest::Result<Option<Bytes>> {
    if response.content_length().is_some_and(|length| length > cap as u64) {
        return Ok(None);
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > cap {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body.freeze()))
}

/// The fault of a request that got no whole answer. `what` says what was being done and where.
///
/// A server that cannot be connected to fails every job, so it is `Unavailable`; a connection that
/// broke or was too slow may be this one call's bad luck.
pub fn no_answer_error(error: reqwest::Error, what: &str) -> Error {
    let (fault, how) = if error.is_connect() {
        (Fault::Unavailable, "cannot connect")
    } else if error.is_timeout() {
        (Fault::Transient, "no answer in time")
    } else if error.is_builder() {
        (Fault::Internal, "the request cannot be built")
    } else {
        (Fault::Transient, "the connection broke")
    };
    Error::new(fault, format!("{what}: {how}")).with_source(error.without_url())
}

/// The fault of a status other than success, as far as HTTP defines it.
///
/// 503 without Retry-After, 502 and 504 come from a gateway when the server is gone: they concern
/// every request. A plain 500 may concern this one only.
pub fn fault_of_response(status: StatusCode, headers: &HeaderMap) -> Fault {
    let wait = parse_retry_after(headers, SystemTime::now());
    match status.as_u16() {
        429 | 529 => Fault::Throttled(wait),
        503 if wait.is_some() => Fault::Throttled(wait),
        502..=504 => Fault::Unavailable,
        408 | 409 | 425 | 500..=599 => Fault::Transient,
        401..=403 | 407 | 300..=399 => Fault::Denied,
        404 | 410 => Fault::Missing,
        _ => Fault::Rejected,
    }
}

/// How long the server asks us to wait: `retry-after-ms` (Azure), then `retry-after` in seconds
/// (fractions allowed) or as an HTTP date (RFC 9110 §10.2.3). `None` if it does not say or what it
/// says makes no sense. At most a day.
pub fn parse_retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    if let Some(wait) =
        header_text(headers, "retry-after-ms").and_then(|ms| parse_seconds(ms, 1_000.0))
    {
        return Some(wait);
    }
    let value = header_text(headers, RETRY_AFTER.as_str())?;
    parse_seconds(value, 1.0).or_else(|| time_until_date(value, now))
}

fn parse_seconds(text: &str, per_second: f64) -> Option<Duration> {
    let number: f64 = text.parse().ok().filter(|number: &f64| !number.is_nan())?;
    let wait = Duration::try_from_secs_f64((number / per_second).min(1e9)).ok()?;
    Some(wait.min(MAX_RETRY_AFTER))
}

/// The time until an HTTP date; zero if it has passed.
fn time_until_date(text: &str, now: SystemTime) -> Option<Duration> {
    let form = time::macros::format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let then = PrimitiveDateTime::parse(text, form).ok()?.assume_utc();
    let wait = then - OffsetDateTime::from(now);
    Some(Duration::try_from(wait).unwrap_or_default().min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = &'static [(&'static str, &'static str)];

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn every_form_of_retry_after_is_understood_and_nonsense_is_not_obeyed() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777); // 1994-11-06 08:49:37
        let s = Duration::from_secs_f64;
        #[rustfmt::skip]
        let table: [(&str, Pairs, Option<Duration>); 11] = [
            ("none",                  &[],                                                 None),
            ("seconds",               &[("retry-after", "7")],                             Some(s(7.0))),
            ("fractions",             &[("retry-after", "0.5")],                           Some(s(0.5))),
            ("milliseconds win",      &[("retry-after-ms", "250"), ("retry-after", "9")],  Some(s(0.25))),
            ("bad milliseconds lose", &[("retry-after-ms", "x"), ("retry-after", "9")],    Some(s(9.0))),
            ("a date",                &[("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT")], Some(s(60.0))),
            ("a date that has gone",  &[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], Some(s(0.0))),
            ("negative",              &[("retry-after", "-1")],                            None),
            ("not a number",          &[("retry-after", "NaN")],                           None),
            ("endless",               &[("retry-after", "1e300")],                         Some(MAX_RETRY_AFTER)),
            ("words",                 &[("retry-after", "soon")],                          None),
        ];
        for (name, pairs, expected) in table {
            assert_eq!(parse_retry_after(&headers(pairs), now), expected, "{name}");
        }
    }

    #[test]
    fn statuses_are_sorted_into_faults() {
        let wait = Some(Duration::from_secs(3));
        #[rustfmt::skip]
        let table = [
            (302, None,      Fault::Denied),
            (400, None,      Fault::Rejected),
            (401, None,      Fault::Denied),
            (403, None,      Fault::Denied),
            (404, None,      Fault::Missing),
            (408, None,      Fault::Transient),
            (409, None,      Fault::Transient),
            (422, None,      Fault::Rejected),
            (429, None,      Fault::Throttled(None)),
            (429, Some("3"), Fault::Throttled(wait)),
            (500, None,      Fault::Transient),
            (502, None,      Fault::Unavailable),
            (503, None,      Fault::Unavailable),
            (503, Some("3"), Fault::Throttled(wait)),
            (529, None,      Fault::Throttled(None)),
        ];
        for (status, retry, expected) in table {
            let pairs: Vec<_> = retry.map(|value| ("retry-after", value)).into_iter().collect();
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(fault_of_response(status, &headers(&pairs)), expected, "{status} {retry:?}");
        }
    }

    #[test]
    fn only_services_of_this_machine_bypass_the_proxy() {
        for (url, expected) in [
            ("http://127.0.0.1:1/v1", true),
            ("http://localhost/", true),
            ("http://[::1]:8000/", true),
            ("http://169.254.169.254/metadata/identity/oauth2/token", true),
            ("http://metadata.google.internal/", true),
            ("https://api.openai.com/v1", false),
            ("http://10.0.0.1/", false),
            ("http://localhost.example.com/", false),
        ] {
            assert_eq!(is_local_service(&url.parse().unwrap()), expected, "{url}");
        }
    }
}
