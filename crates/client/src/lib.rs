//! Parts that every network call needs: one HTTP client, access tokens, AWS's errors, a provider's
//! rate, log lines and traces. Addresses and purposes belong to the callers.

pub mod access_token;
pub mod aws;
pub mod body_size;
pub mod google;
pub mod http;
pub mod telemetry;
pub mod throttle;
pub mod webhook;
