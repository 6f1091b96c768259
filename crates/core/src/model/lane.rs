//! A process's calls to providers, for the overview of the whole service.

use serde::{Deserialize, Serialize};

/// The state of a provider's circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneBreaker {
    /// Calls are sent.
    Closed,
    /// One call is sent, to see whether the provider is back.
    HalfOpen,
    /// No call is sent.
    Open,
}

/// The provider name of all hooks; each hook is one of its models.
pub const HOOK_PROVIDER: &str = "hook";

/// How calls to one provider and model go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderLane {
    /// Name of the provider, e.g. `openai`.
    pub provider: String,
    /// The model or processor.
    pub model: String,
    /// Calls that are under way.
    pub in_flight: u32,
    /// Calls that wait for their turn.
    pub waiting: u32,
    /// Calls a second that are let through; `None`: no limit is known.
    pub rate: Option<f64>,
    /// Whether the provider counts as down.
    pub breaker: LaneBreaker,
    /// It takes no call until a person has acted: credentials, or money.
    pub denied: bool,
    /// Seconds since the last answered call.
    #[serde(default)]
    pub answered_s: Option<f64>,
    /// Latency of that call, in milliseconds.
    #[serde(default)]
    pub answer_ms: Option<u64>,
    /// Seconds since the first failed call after the last answered one; `None`: the last call was
    /// answered.
    #[serde(default)]
    pub failing_s: Option<f64>,
}
