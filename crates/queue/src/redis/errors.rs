//! From what Redis and its client say to the fault that asks for the right reaction.

use std::io;
use std::sync::Arc;

use ::redis::{ErrorKind, RedisError, ServerErrorKind};

use docmill_core::fault::{Error, Fault};

/// The fault behind an error.
fn fault_of(error: &RedisError) -> Fault {
    if is_tls(error) {
        // Asking again changes no certificate.
        return Fault::Unavailable;
    }
    if error.is_timeout() || error.is_io_error() || error.is_connection_dropped() {
        return Fault::Transient;
    }
    match error.kind() {
        ErrorKind::AuthenticationFailed => Fault::Unavailable,
        ErrorKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown
            | ServerErrorKind::ReadOnly,
        ) => Fault::Transient,
        _ => fault_of_code(error.code().unwrap_or_default()),
    }
}

fn fault_of_code(code: &str) -> Fault {
    match code {
        "NOAUTH" | "WRONGPASS" | "NOPERM" | "OOM" | "MISCONF" | "NOREPLICAS" => Fault::Unavailable,
        "BUSY" | "LOADING" | "READONLY" | "MASTERDOWN" | "UNBLOCKED" => Fault::Transient,
        _ => Fault::Internal,
    }
}

/// Whether the two sides could not agree on TLS: mostly an untrusted certificate.
pub(super) fn is_tls(error: &RedisError) -> bool {
    type Cause = Arc<dyn std::error::Error + Send + Sync>;
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<Cause>());
    let failed = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    failed.is_some_and(|failed| failed.kind() == io::ErrorKind::InvalidData)
}

/// The error with what was being done; nothing of a message is in it.
pub(super) fn from_redis(doing: &str, error: RedisError) -> Error {
    let fault = fault_of(&error);
    let words = match (fault, error.code()) {
        (Fault::Unavailable, None) if is_tls(&error) => "no agreement on TLS".to_owned(),
        (Fault::Transient, None) if error.is_timeout() => "no answer in time".to_owned(),
        (Fault::Transient, None) => "no connection".to_owned(),
        (_, Some("OOM")) => "OOM: its memory is full, see maxmemory".to_owned(),
        (_, Some(code)) => code.to_owned(),
        (_, None) => error.category().to_owned(),
    };
    Error::new(fault, format!("{doing}: {words}")).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_asks_for_its_reaction() {
        for (code, expected) in [
            ("NOAUTH", Fault::Unavailable),
            ("NOPERM", Fault::Unavailable),
            ("OOM", Fault::Unavailable),
            ("BUSY", Fault::Transient),
            ("READONLY", Fault::Transient),
            ("WRONGTYPE", Fault::Internal),
        ] {
            assert_eq!(fault_of_code(code), expected, "{code}");
        }
    }
}
