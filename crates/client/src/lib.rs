//! What every call over a network needs: one HTTP client, what AWS's errors say, how fast a
//! provider may be called, log lines and traces. Whom to call and why is for others to say.

pub mod aws;
pub mod http;
pub mod telemetry;
pub mod throttle;
pub mod webhook;
