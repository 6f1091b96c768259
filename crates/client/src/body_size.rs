//! Requests that a server on the way refuses for their size.

use docmill_core::fault::Error;

/// The cause of a refusal with status 413 and no word of the model's server: a server on the way takes no
/// body of this size. A smaller request may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a server on the way takes no request of this size")]
pub struct BodyTooLarge;

impl BodyTooLarge {
    /// Whether this is the cause of the error.
    pub fn is_cause_of(error: &Error) -> bool {
        error.source.as_ref().is_some_and(|source| source.is::<Self>())
    }
}
