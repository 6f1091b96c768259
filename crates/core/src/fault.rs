//! How an outside failure asks us to react, and the one error type that every port speaks.
//!
//! A fault names a reaction, not a cause: the cause stays in [`Error::source`] for the log.
//! Nothing here decides what happens next; that is one pure table in `pipeline::failure`.
//! Messages carry ids, codes, counts and addresses only, never document content.

use std::borrow::Cow;
use std::time::Duration;

/// The closed set of reactions an outside failure can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Likely to pass by itself: a timeout, a reset connection, a single 5xx answer.
    Transient,
    /// The other side asked us to slow down, and perhaps said for how long.
    Throttled(Option<Duration>),
    /// The other side serves other jobs first, or a hook is down: retry after this time. Never ends
    /// a job by its age.
    InLine(Duration),
    /// The other side is down: every job would fail until it is back.
    Unavailable,
    /// The other side will not have us: wrong credentials, a right that is missing, money out; or a
    /// hook gives no usable answer. A person has to act; never ends a job by its age.
    Denied,
    /// A setting of ours is missing or cannot work. A person has to act; never ends a job by its
    /// age.
    Misconfigured,
    /// An operator paused what the job needs. Never ends a job by its age.
    Paused,
    /// A day's budget or a provider's daily quota is spent; the time until there is more.
    /// Never ends a job by its age.
    OverBudget(Duration),
    /// A question to a model was handed in with others, for less: the time for which its answer is
    /// waited for at most. Never ends a job by its age.
    Batched(Duration),
    /// The thing asked for is not there.
    Missing,
    /// The input itself is at fault; trying again gives the same answer.
    Rejected,
    /// We were asked to stop before the work was done.
    Interrupted,
    /// Another claim, or an operator, has the ingestion by now: nothing more is written or started.
    ClaimLost,
    /// Our own bug or a broken deployment; a person has to investigate.
    Internal,
}

impl Fault {
    /// The stable word used in logs, metric labels and rows.
    pub fn code(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            // For operators both are a provider's limit.
            Self::Throttled(_) | Self::InLine(_) => "throttled",
            Self::Unavailable => "unavailable",
            Self::Denied => "denied",
            Self::Misconfigured => "misconfigured",
            Self::Paused => "paused",
            Self::OverBudget(_) => "over_budget",
            Self::Batched(_) => "batched",
            Self::Missing => "missing",
            Self::Rejected => "rejected",
            Self::Interrupted => "interrupted",
            Self::ClaimLost => "claim_lost",
            Self::Internal => "internal",
        }
    }

    /// Whether only a person can mend it: trying again soon is for nothing.
    pub fn needs_person(self) -> bool {
        matches!(self, Self::Denied | Self::Misconfigured | Self::Paused)
    }
}

/// An outside failure: the reaction it asks for, what was being done, and the cause.
#[derive(Debug, thiserror::Error)]
#[error("{context}")]
pub struct Error {
    /// The class of the error, which decides how to react.
    pub fault: Fault,
    /// The operation and its result, in words without document content.
    pub context: Cow<'static, str>,
    /// The cause, for the log.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// A failure without a deeper cause.
    pub fn new(fault: Fault, context: impl Into<Cow<'static, str>>) -> Self {
        Self { fault, context: context.into(), source: None }
    }

    /// The same failure with its cause attached.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Our own bug; see [`Fault::Internal`].
    pub fn internal(context: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Fault::Internal, context)
    }

    /// The claim is no longer ours; see [`Fault::ClaimLost`].
    pub fn claim_lost() -> Self {
        Self::new(Fault::ClaimLost, "the claim is lost")
    }

    /// Passes by itself; see [`Fault::Transient`].
    pub fn transient(context: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Fault::Transient, context)
    }
}

/// Shorthand used by every port.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_logs_and_labels_stay_as_they_are_and_few_faults_need_a_person() {
        let day = Duration::from_secs(86_400);
        #[rustfmt::skip]
        let table = [
            (Fault::Transient,            "transient",     false),
            (Fault::Throttled(Some(day)), "throttled",     false),
            (Fault::InLine(day),          "throttled",     false),
            (Fault::Unavailable,          "unavailable",   false),
            (Fault::Denied,               "denied",        true),
            (Fault::Misconfigured,        "misconfigured", true),
            (Fault::Paused,               "paused",        true),
            (Fault::OverBudget(day),      "over_budget",   false),
            (Fault::Missing,              "missing",       false),
            (Fault::Rejected,             "rejected",      false),
            (Fault::Interrupted,          "interrupted",   false),
            (Fault::ClaimLost,            "claim_lost",    false),
            (Fault::Internal,             "internal",      false),
        ];
        for (fault, word, needs_person) in table {
            assert_eq!((fault.code(), fault.needs_person()), (word, needs_person), "{fault:?}");
        }
    }
}
