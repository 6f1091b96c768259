//! Errors of Postgres and of the connection to it, as faults.

use std::borrow::Cow;

use docmill_core::fault::{Error, Fault};

/// Turns an error of sqlx into a fault that says what was being done.
pub(crate) trait SqlErrorContext<T> {
    /// `doing` completes the sentence "Postgres failed while …".
    fn context(self, doing: &'static str) -> Result<T, Error>;
}

impl<T> SqlErrorContext<T> for Result<T, sqlx::Error> {
    fn context(self, doing: &'static str) -> Result<T, Error> {
        self.map_err(|error| fault_from_sqlx(error, doing))
    }
}

/// The fault of an error. The message holds Postgres' words but never its detail, which quotes
/// values of rows.
pub(crate) fn fault_from_sqlx(error: sqlx::Error, doing: &'static str) -> Error {
    let fault = classify_fault(&error);
    let said: Cow<'_, str> = match &error {
        sqlx::Error::Database(database) => describe_database_error(database.as_ref()).into(),
        other => other.to_string().into(),
    };
    let context = format!("{doing}: {said}");
    // A detail of Postgres may hold document content, so such an error is not kept as the cause.
    if matches!(error, sqlx::Error::Database(_)) {
        return Error::new(fault, context);
    }
    Error::new(fault, context).with_source(error)
}

fn describe_database_error(error: &dyn sqlx::error::DatabaseError) -> String {
    let code = error.code().unwrap_or_default();
    // Class 22, data exceptions, quotes the value in the message itself.
    if code.starts_with("22") {
        return format!("a value was refused ({code})");
    }
    format!("{} ({code})", error.message())
}

fn classify_fault(error: &sqlx::Error) -> Fault {
    use sqlx::Error::{Database, Io, PoolClosed, PoolTimedOut, Protocol, Tls, WorkerCrashed};
    match error {
        Io(_) | Tls(_) | Protocol(_) | PoolTimedOut | PoolClosed | WorkerCrashed => {
            Fault::Unavailable
        }
        Database(database) => fault_from_sqlstate(database.code().as_deref().unwrap_or_default()),
        _ => Fault::Internal,
    }
}

/// By SQLSTATE; see the appendix "PostgreSQL Error Codes" of its manual.
fn fault_from_sqlstate(code: &str) -> Fault {
    match code {
        // serialization failure, deadlock, lock not available, statement timeout
        "40001" | "40P01" | "55P03" | "57014" => Fault::Transient,
        // password, authorization, no such database, read-only after a failover
        "28P01" | "28000" | "3D000" | "25006" => Fault::Unavailable,
        // 0A not supported, 3F no such schema, 42 no such table or column, no right: no document's fault
        _ if ["0A", "3F", "42"].iter().any(|class| code.starts_with(class)) => Fault::Misconfigured,
        // 08 connection, 53 out of resources, 57P shutting down or starting up, 58 system
        _ if ["08", "53", "57P", "58"].iter().any(|class| code.starts_with(class)) => {
            Fault::Unavailable
        }
        _ => Fault::Internal,
    }
}

/// Whether waiting for the server cannot help: it answered, and what it said is final.
pub(in crate::db) fn is_permanent(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(database) => {
            matches!(database.code().as_deref(), Some("28P01" | "28000" | "3D000"))
        }
        sqlx::Error::Configuration(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_postgres_are_sorted_into_faults() {
        let table = [
            ("40001", Fault::Transient),
            ("40P01", Fault::Transient),
            ("57014", Fault::Transient),
            ("57P01", Fault::Unavailable),
            ("57P03", Fault::Unavailable),
            ("53300", Fault::Unavailable),
            ("53100", Fault::Unavailable),
            ("08006", Fault::Unavailable),
            ("28P01", Fault::Unavailable),
            ("25006", Fault::Unavailable),
            ("23514", Fault::Internal),
            ("42P01", Fault::Misconfigured),
            ("42501", Fault::Misconfigured),
            ("42703", Fault::Misconfigured),
            ("3F000", Fault::Misconfigured),
            ("0A000", Fault::Misconfigured),
            ("22P02", Fault::Internal),
            ("", Fault::Internal),
        ];
        for (code, fault) in table {
            assert_eq!(fault_from_sqlstate(code), fault, "{code}");
        }
    }

    #[test]
    fn an_exhausted_pool_means_that_postgres_is_unavailable() {
        let error = fault_from_sqlx(sqlx::Error::PoolTimedOut, "claiming");
        assert_eq!(error.fault, Fault::Unavailable);
        assert!(error.to_string().starts_with("claiming: "), "{error}");
    }
}
