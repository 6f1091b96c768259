//! Whether the process of the pages lives, and whether it can show any: for load balancers and probes,
//! which have no token. Nothing else is told.

use axum::extract::State;
use axum::http::StatusCode;

use super::failure::ConsoleFailure;
use super::state::ConsoleState;

/// `/livez`: it answers. Postgres is not asked: another process would not reach it either.
pub(super) async fn get_livez() -> &'static str {
    "alive"
}

/// `/readyz`: Postgres answers; asked at most every two seconds by all.
///
/// # Errors
/// It does not.
pub(super) async fn get_readyz(
    State(state): State<ConsoleState>,
) -> Result<&'static str, ConsoleFailure> {
    match state.has_database().await {
        true => Ok("ready"),
        false => Err(ConsoleFailure::from_status(StatusCode::SERVICE_UNAVAILABLE)),
    }
}
