//! Protects a busy ECS task from scale-in.
//!
//! The request goes to the container agent at `$ECS_AGENT_URI/task-protection/v1/state` and
//! expires, so that a dead worker does not keep its task. A busy worker renews it at half of that
//! time. Without protection a scale-in costs no document, only the work of jobs that do not end
//! within the drain.

use std::time::Duration;

use reqwest::{Client, Url};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::runner::RunnerMonitor;
use docmill_client::http;
use docmill_core::fault::{Error, Result};
use docmill_core::metrics;

/// The agent is on this machine.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// More of an answer is not read.
const ANSWER: usize = 64 << 10;
/// After a refusal the agent is not asked again for this long.
const REST: Duration = Duration::from_secs(30);

/// How often the worker is checked, and how long protection lasts.
#[derive(Debug, Clone, Copy)]
pub struct ProtectionTiming {
    /// Time between two checks of the worker.
    pub look: Duration,
    /// How long a worker stays protected after its last job.
    pub linger: Duration,
    /// Protection that is not renewed ends after this, in whole minutes.
    pub expires: Duration,
}

impl Default for ProtectionTiming {
    fn default() -> Self {
        Self {
            look: Duration::from_secs(2),
            linger: Duration::from_secs(15),
            expires: Duration::from_secs(600),
        }
    }
}

/// The ECS container agent of this task.
#[derive(Debug)]
pub struct ContainerAgent {
    client: Client,
    state: Url,
}

impl ContainerAgent {
    /// From the value of `ECS_AGENT_URI`.
    ///
    /// # Errors
    /// It is no address.
    pub fn from_uri(uri: &str) -> Result<Self> {
        let state = format!("{}/task-protection/v1/state", uri.trim_end_matches('/'));
        let state: Url = state
            .parse()
            .map_err(|error| Error::internal("ECS_AGENT_URI is not a URL").with_source(error))?;
        Ok(Self { client: http::build_client(&state, REQUEST_TIMEOUT)?, state })
    }

    async fn set_protection(&self, protected: bool, expires: Duration) -> Result<()> {
        let what = "asking ECS for task protection";
        let wish = match protected {
            true => json!({
                "ProtectionEnabled": true,
                "ExpiresInMinutes": expires.as_secs().div_ceil(60).max(1),
            }),
            false => json!({ "ProtectionEnabled": false }),
        };
        let answer = self.client.put(self.state.clone()).json(&wish).send().await;
        let answer = answer.map_err(|error| http::no_answer_error(error, what))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = http::read_capped_body(answer, ANSWER).await.ok().flatten().unwrap_or_default();
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status.is_success() && said.get("protection").is_some() {
            return Ok(());
        }
        let reason = ["/error/Code", "/failure/Reason"];
        let reason = reason.iter().find_map(|path| said.pointer(path)?.as_str());
        let reason = reason.unwrap_or("no reason given");
        let text = format!(
            "{what}: {status}, {reason}; the task role needs ecs:UpdateTaskProtection, and the \
             task must belong to a service"
        );
        Err(Error::new(http::fault_of_response(status, &headers), text))
    }
}

/// The protection last asked for, and since when the worker is idle.
#[derive(Debug, Default)]
struct ProtectionState {
    protected_at: Option<Instant>,
    idle_since: Option<Instant>,
}

impl ProtectionState {
    /// The next request to the agent, if one is due.
    fn next_request(&mut self, busy: bool, now: Instant, pace: ProtectionTiming) -> Option<bool> {
        if busy {
            self.idle_since = None;
            let fresh = self.protected_at.is_some_and(|since| now - since < pace.expires / 2);
            return (!fresh).then_some(true);
        }
        self.protected_at?;
        let idle_since = *self.idle_since.get_or_insert(now);
        (now - idle_since >= pace.linger).then_some(false)
    }

    fn note_sent(&mut self, protected: bool, now: Instant) {
        self.protected_at = protected.then_some(now);
        metrics::scale_in_protected(protected);
    }
}

/// Keeps the agent informed until asked to stop, then withdraws the protection.
pub async fn run_protection(
    agent: ContainerAgent,
    monitor: RunnerMonitor,
    pace: ProtectionTiming,
    stop: CancellationToken,
) {
    let mut wish = ProtectionState::default();
    let mut rest_until = Instant::now();
    loop {
        let now = Instant::now();
        if now >= rest_until
            && let Some(protected) = wish.next_request(monitor.is_busy(), now, pace)
        {
            match agent.set_protection(protected, pace.expires).await {
                Ok(()) => wish.note_sent(protected, now),
                Err(error) => {
                    tracing::warn!(error = %error, "{error}");
                    rest_until = now + REST;
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(pace.look) => {}
        }
    }
    if wish.protected_at.is_some()
        && let Err(error) = agent.set_protection(false, pace.expires).await
    {
        tracing::warn!(error = %error, "protection not withdrawn, it will expire: {error}");
    }
    metrics::scale_in_protected(false);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protection_is_taken_when_busy_renewed_at_half_time_and_given_back_after_a_while() {
        let pace = ProtectionTiming::default();
        let begin = Instant::now();
        let mut wish = ProtectionState::default();
        let seconds = Duration::from_secs;
        #[rustfmt::skip]
        let table = [
            (0,   false, None,        "nothing to do, nothing asked"),
            (1,   true,  Some(true),  "busy"),
            (3,   true,  None,        "still protected"),
            (302, true,  Some(true),  "half of the time is over"),
            (303, false, None,        "idle for a moment"),
            (310, true,  None,        "busy again"),
            (311, false, None,        "idle"),
            (325, false, None,        "idle, but not for long enough"),
            (326, false, Some(false), "idle for long"),
            (330, false, None,        "free"),
        ];
        for (at, busy, expected, name) in table {
            let now = begin + seconds(at);
            let next = wish.next_request(busy, now, pace);
            assert_eq!(next, expected, "{name}");
            if let Some(protected) = next {
                wish.note_sent(protected, now);
            }
        }
    }
}
