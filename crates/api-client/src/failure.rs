//! Why a call has no answer.

use std::time::Duration;

use serde::Deserialize;
use uuid::Uuid;

/// The service's refusal of a request (`application/problem+json`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{code} ({status}): {detail}")]
pub struct ApiProblem {
    /// The status of the answer, 400 and above.
    pub status: u16,
    /// A stable word, as docs/guides/clients.md lists them.
    pub code: String,
    /// Details for a person. Never content of a document.
    pub detail: String,
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ApiFailure {
    /// The service refused; also after the last repetition of what it had no time for.
    #[error(transparent)]
    Problem(#[from] ApiProblem),
    /// No answer came, or not all of it. Whether it was done is not known; to ask again is safe.
    #[error("the service does not answer")]
    Unreachable(#[source] reqwest::Error),
    /// Something answered that is not docmill, or of another version.
    #[error("the answer is not from docmill's interface: {0}")]
    Unreadable(String),
    /// The ingestion has not ended within the time that was given; it goes on.
    #[error("ingestion {id} has not ended within {within:?}")]
    StillOpen {
        /// The ingestion.
        id: Uuid,
        /// How long it was waited for.
        within: Duration,
    },
    /// The client was set up or called with something that cannot work.
    #[error("{0}")]
    Misused(String),
}

impl ApiFailure {
    /// The service's code, if it refused.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Problem(problem) => Some(&problem.code),
            _ => None,
        }
    }
}
