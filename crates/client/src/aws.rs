//! Errors of the AWS SDKs, in one form for every service that is called through one.
//!
//! The SDKs share their error type. Common parts are here: how a request can end without a usable
//! answer, and the codes that every service uses ("Common Error Types" of each API reference, and
//! the SDKs' own lists of throttling errors). Codes of one service alone, and services with another
//! reaction, are beside their clients.

// The same types in every SDK; one of them has to be named.
use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};

use docmill_core::fault::Fault;

/// How a request ended that brought no usable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportError {
    /// The time for the whole request ran out: it may have been done, and charged.
    Late,
    /// No connection was made in time.
    LateConnection,
    /// Refused, no such host, no route: the server cannot be reached.
    NoConnection,
    /// The connection ended before the answer did.
    Broken,
    /// The answer makes no sense.
    Garbled,
    /// Nothing was sent: no credentials or no region were found.
    Unsigned,
    /// Nothing was sent: the request could not be built. Our bug.
    Unbuilt,
}

impl TransportError {
    /// The fault, unless the service overrides it.
    pub fn fault(self) -> Fault {
        match self {
            Self::Late | Self::Broken | Self::Garbled => Fault::Transient,
            Self::LateConnection | Self::NoConnection => Fault::Unavailable,
            Self::Unsigned => Fault::Denied,
            Self::Unbuilt => Fault::Internal,
        }
    }

    /// For the reader of an error.
    pub fn message(self) -> &'static str {
        match self {
            Self::Late => "no answer in time",
            Self::LateConnection => "no connection in time",
            Self::NoConnection => "no connection: check the region or address, and the network",
            Self::Broken => "the connection ended before the answer",
            Self::Garbled => "the answer was cut or garbled",
            Self::Unsigned => "not sent: no usable AWS credentials or region were found",
            Self::Unbuilt => "the request could not be built",
        }
    }
}

/// A failed request, sorted by whether and how the service answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SdkFailure<'a> {
    /// There was no usable answer.
    Silent(TransportError),
    /// The service answered and refused the request.
    Refused {
        /// The service's word for it; empty if it gave none.
        code: &'a str,
        /// HTTP status; 0 if it arrived within a stream.
        status: u16,
    },
}

/// Sorts an SDK error into an answer that refuses or a transport failure.
pub fn classify_failure<E: ProvideErrorMetadata>(
    error: &SdkError<E, HttpResponse>,
) -> SdkFailure<'_> {
    match error.raw_response().map(|response| response.status().as_u16()) {
        // An answer of success that cannot be read is no refusal.
        None | Some(200..=299) => SdkFailure::Silent(classify_transport_error(error)),
        Some(status) => SdkFailure::Refused { code: error.code().unwrap_or_default(), status },
    }
}

/// How a request ended that brought no usable answer; `R` is what the answer would have been.
pub fn classify_transport_error<E, R>(error: &SdkError<E, R>) -> TransportError {
    match error {
        SdkError::TimeoutError(_) => TransportError::Late,
        SdkError::DispatchFailure(failure) if failure.is_timeout() => {
            TransportError::LateConnection
        }
        SdkError::DispatchFailure(failure) if failure.is_io() => TransportError::NoConnection,
        SdkError::DispatchFailure(failure) if failure.is_user() => TransportError::Unbuilt,
        // A connection that ended within the answer has a kind of retry of its own.
        SdkError::DispatchFailure(failure) if failure.as_other().is_some() => {
            TransportError::Broken
        }
        // The remaining errors occurred before anything was sent, above all for want of
        // credentials.
        SdkError::DispatchFailure(_) => TransportError::Unsigned,
        SdkError::ConstructionFailure(_) => TransportError::Unbuilt,
        _ => TransportError::Garbled,
    }
}

/// The fault of a code that is the same at every service; `None`: see the service's own codes, then
/// the status.
pub fn fault_of_code(code: &str) -> Option<Fault> {
    match code {
        "BandwidthLimitExceeded"
        | "ProvisionedThroughputExceededException"
        | "RequestLimitExceeded"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "SlowDown"
        | "ThrottledException"
        | "Throttling"
        | "ThrottlingException"
        | "TooManyRequests"
        | "TooManyRequestsException" => Some(Fault::Throttled(None)),
        "AccessDenied"
        | "AccessDeniedException"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "IncompleteSignature"
        | "IncompleteSignatureException"
        | "InvalidAccessKeyId"
        | "InvalidClientTokenId"
        | "InvalidSignatureException"
        | "InvalidToken"
        | "MissingAuthenticationToken"
        | "MissingAuthenticationTokenException"
        | "NotAuthorized"
        | "OptInRequired"
        | "SignatureDoesNotMatch"
        | "UnrecognizedClientException" => Some(Fault::Denied),
        "ServiceUnavailable" | "ServiceUnavailableException" => Some(Fault::Unavailable),
        _ => None,
    }
}

/// The fault of a status whose code is unknown.
pub fn fault_of_status(status: u16) -> Fault {
    match status {
        429 => Fault::Throttled(None),
        401..=403 => Fault::Denied,
        502..=504 => Fault::Unavailable,
        408 | 500..=599 => Fault::Transient,
        _ => Fault::Internal,
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::error::ConnectorError;
    use aws_sdk_sqs::operation::receive_message::ReceiveMessageError;

    use super::*;

    type Failed = SdkError<ReceiveMessageError, HttpResponse>;

    #[test]
    fn every_way_to_end_without_an_answer_has_its_own_error() {
        let dispatch = |error| Failed::dispatch_failure(error);
        let kind = aws_smithy_types::retry::ErrorKind::TransientError;
        for (error, expected, fault) in [
            (Failed::timeout_error("t"), TransportError::Late, Fault::Transient),
            (
                dispatch(ConnectorError::timeout("t".into())),
                TransportError::LateConnection,
                Fault::Unavailable,
            ),
            (
                dispatch(ConnectorError::io("i".into())),
                TransportError::NoConnection,
                Fault::Unavailable,
            ),
            (dispatch(ConnectorError::user("u".into())), TransportError::Unbuilt, Fault::Internal),
            (
                dispatch(ConnectorError::other("o".into(), Some(kind))),
                TransportError::Broken,
                Fault::Transient,
            ),
            (
                dispatch(ConnectorError::other("o".into(), None)),
                TransportError::Unsigned,
                Fault::Denied,
            ),
            (Failed::construction_failure("c"), TransportError::Unbuilt, Fault::Internal),
        ] {
            assert_eq!(classify_failure(&error), SdkFailure::Silent(expected));
            assert_eq!(expected.fault(), fault, "{expected:?}");
        }
    }

    #[test]
    fn an_answer_of_success_that_cannot_be_read_is_no_refusal() {
        for (status, expected) in [
            (200, SdkFailure::Silent(TransportError::Garbled)),
            (400, SdkFailure::Refused { code: "", status: 400 }),
        ] {
            let answer = HttpResponse::new(status.try_into().unwrap(), "".into());
            let error = Failed::response_error("unreadable", answer);
            assert_eq!(classify_failure(&error), expected);
        }
    }

    #[test]
    fn common_error_codes_mean_the_same_for_each_service() {
        for (code, status, expected) in [
            ("ThrottlingException", 400, Fault::Throttled(None)),
            ("ExpiredTokenException", 400, Fault::Denied),
            ("ServiceUnavailable", 503, Fault::Unavailable),
            ("Unheard", 429, Fault::Throttled(None)),
            ("Unheard", 403, Fault::Denied),
            ("Unheard", 408, Fault::Transient),
            ("Unheard", 500, Fault::Transient),
            ("Unheard", 502, Fault::Unavailable),
            ("Unheard", 400, Fault::Internal),
        ] {
            let fault = fault_of_code(code).unwrap_or_else(|| fault_of_status(status));
            assert_eq!(fault, expected, "{code} {status}");
        }
    }
}
