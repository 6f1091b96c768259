//! S3's errors: the few that are answers, and the rest as faults.
//!
//! Codes: <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>. Texts name the
//! bucket and S3's code, never the key: it may be a person's file name.

use std::time::Duration;

use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};

use super::location::S3Location;
use docmill_client::aws;
use docmill_core::fault::{Error, Fault, Result};

/// A request that did not succeed.
pub(super) enum S3Failure {
    /// 412: the condition did not hold.
    Precondition,
    /// 409: another conditional request for the key is in flight; ask again.
    Conflict,
    /// There is no such object.
    NoSuchKey,
    /// The service refuses a request about one object of our own bucket: only a probe shows whether
    /// it refuses every other as well.
    Refused(Error),
    /// Any other failure, already classified.
    Other(Error),
}

impl S3Failure {
    /// For requests to which only absence is an answer.
    pub(super) fn into_absent<T>(self) -> Result<Option<T>> {
        match self {
            Self::NoSuchKey => Ok(None),
            Self::Refused(error) | Self::Other(error) => Err(error),
            Self::Precondition | Self::Conflict => {
                Err(Error::transient("the object store answered a condition that was not sent"))
            }
        }
    }

    /// For requests to which none of the special cases is an answer.
    pub(super) fn into_error(self, place: &S3Location<'_>) -> Error {
        match self {
            Self::Refused(error) | Self::Other(error) => error,
            Self::NoSuchKey => Error::new(
                Fault::Missing,
                format!("bucket {} does not have the object", place.bucket),
            ),
            Self::Precondition | Self::Conflict => {
                Error::transient(format!("requests to bucket {} conflict", place.bucket))
            }
        }
    }
}

/// Classifies the result of a request to `place` that was to do `what`.
pub(super) fn classify_failure<E>(
    error: SdkError<E, HttpResponse>,
    place: &S3Location<'_>,
    what: &str,
) -> S3Failure
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let code = error.code().unwrap_or_default().to_owned();
    let status = error.raw_response().map(|response| response.status().as_u16());
    let wait = error
        .raw_response()
        .and_then(|response| response.headers().get("retry-after"))
        .and_then(|seconds| seconds.parse().ok())
        .map(Duration::from_secs);
    match failure_of_code(&code, status) {
        Some(answer) => return answer,
        None if status == Some(404) && code != "NoSuchBucket" => return S3Failure::NoSuchKey,
        None => {}
    }
    let is_refusal = !place.foreign
        && !place.key.is_empty()
        && status.is_some_and(|status| may_concern_one(&code, status));
    let fault = match status {
        Some(status) => fault_of(&code, status, wait, place.foreign),
        None => aws::classify_transport_error(&error).fault(),
    };
    let came = match status {
        Some(status) if code.is_empty() => format!("HTTP status {status}"),
        Some(_) => code,
        None => aws::classify_transport_error(&error).message().to_owned(),
    };
    let text = format!("cannot {what} in bucket {}: {came}", place.bucket);
    let error = Error::new(fault, text).with_source(error);
    if is_refusal { S3Failure::Refused(error) } else { S3Failure::Other(error) }
}

/// Whether a refusal may concern the one object that was asked for: a key of ours that it is not
/// encrypted with, a policy about its tags. HEAD has no code, and answers 400 where GET says more.
fn may_concern_one(code: &str, status: u16) -> bool {
    const OF_ALL: [&str; 6] = [
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "ExpiredToken",
        "InvalidToken",
        "RequestTimeTooSkewed",
        "RequestTimeout",
    ];
    match (code, status) {
        _ if OF_ALL.contains(&code) => false,
        (_, 403) | ("" | "InvalidRequest", 400) => true,
        _ => code.starts_with("KMS."),
    }
}

fn failure_of_code(code: &str, status: Option<u16>) -> Option<S3Failure> {
    match (code, status) {
        ("PreconditionFailed", _) | (_, Some(412)) => Some(S3Failure::Precondition),
        ("ConditionalRequestConflict" | "OperationAborted", _) | (_, Some(409)) => {
            Some(S3Failure::Conflict)
        }
        ("NoSuchKey" | "NotFound" | "NoSuchVersion", _) => Some(S3Failure::NoSuchKey),
        _ => None,
    }
}

/// The fault of an error reply. A problem of a foreign bucket concerns only the document that names
/// it, and must not stop the service.
fn fault_of(code: &str, status: u16, wait: Option<Duration>, foreign: bool) -> Fault {
    match (code, status) {
        ("SlowDown" | "RequestLimitExceeded" | "TooManyRequests", _) | (_, 429 | 503) => {
            Fault::Throttled(wait)
        }
        ("RequestTimeout" | "IncompleteBody", _) | (_, 500..) => Fault::Transient,
        // Archived: unreadable until it is restored.
        ("InvalidObjectState", _) => Fault::Missing,
        ("NoSuchBucket" | "PermanentRedirect" | "InvalidBucketName", _) | (_, 301 | 401 | 403)
            if foreign =>
        {
            Fault::Missing
        }
        ("NoSuchBucket" | "PermanentRedirect" | "InvalidBucketName", _) => Fault::Unavailable,
        ("InvalidAccessKeyId" | "ExpiredToken" | "InvalidToken", _) | (_, 301 | 401 | 403) => {
            Fault::Denied
        }
        ("KeyTooLongError" | "InvalidURI" | "EntityTooLarge" | "MetadataTooLarge", _) => {
            Fault::Rejected
        }
        _ if code.starts_with("KMS.") => Fault::Denied,
        _ => Fault::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_every_job_differ_from_faults_of_one() {
        let wait = Some(Duration::from_secs(7));
        for (code, status, foreign, expected) in [
            ("SlowDown", 503, false, Fault::Throttled(wait)),
            ("", 503, false, Fault::Throttled(wait)),
            ("", 429, true, Fault::Throttled(wait)),
            ("InternalError", 500, false, Fault::Transient),
            ("RequestTimeout", 400, false, Fault::Transient),
            ("AccessDenied", 403, false, Fault::Denied),
            ("AccessDenied", 403, true, Fault::Missing),
            ("ExpiredToken", 400, true, Fault::Denied),
            ("NoSuchBucket", 404, false, Fault::Unavailable),
            ("NoSuchBucket", 404, true, Fault::Missing),
            ("PermanentRedirect", 301, false, Fault::Unavailable),
            ("KMS.DisabledException", 400, false, Fault::Denied),
            ("KeyTooLongError", 400, false, Fault::Rejected),
            ("InvalidObjectState", 403, false, Fault::Missing),
            ("MalformedXML", 400, false, Fault::Internal),
        ] {
            assert_eq!(fault_of(code, status, wait, foreign), expected, "{code} {status}");
        }
    }

    #[test]
    fn a_refusal_for_all_differs_from_one_that_may_concern_one_object() {
        for (code, status, one) in [
            ("AccessDenied", 403, true),
            ("", 403, true),
            ("", 400, true),
            ("InvalidRequest", 400, true),
            ("KMS.DisabledException", 400, true),
            ("ExpiredToken", 400, false),
            ("InvalidAccessKeyId", 403, false),
            ("SignatureDoesNotMatch", 403, false),
            ("", 401, false),
            ("SlowDown", 503, false),
        ] {
            assert_eq!(may_concern_one(code, status), one, "{code} {status}");
        }
    }

    #[test]
    fn a_conflict_is_not_taken_for_a_lost_race() {
        assert!(matches!(
            failure_of_code("ConditionalRequestConflict", Some(409)),
            Some(S3Failure::Conflict)
        ));
        assert!(matches!(failure_of_code("", Some(412)), Some(S3Failure::Precondition)));
        assert!(matches!(failure_of_code("NoSuchKey", Some(404)), Some(S3Failure::NoSuchKey)));
        assert!(failure_of_code("NoSuchBucket", Some(404)).is_none());
    }
}
