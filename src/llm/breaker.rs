//! A circuit breaker around any model.
//!
//! One failed call is that document's bad luck and counts as one of its attempts. Several in a row,
//! whoever asked, mean that the provider is down: from then on calls fail at once as `unavailable`,
//! which costs no document an attempt, until a trial call after a while succeeds.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::fault::{Error, Fault, Result};
use crate::llm::{Llm, Prompt, Reply};

/// Failures in a row that open the breaker.
const LIMIT: u32 = 5;
/// How long it stays open before a trial.
const OPEN: Duration = Duration::from_secs(10);

/// A model that fails fast while its provider is down.
pub struct Breaker<L> {
    inner: L,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// No calls before this; one trial after it.
    open_until: Option<Instant>,
}

impl<L> Breaker<L> {
    /// Closed.
    pub fn new(inner: L) -> Self {
        Self { inner, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call may go out; the first after the pause is the trial and closes the door
    /// behind it.
    fn admit(&self) -> bool {
        let mut state = self.state();
        match state.open_until {
            Some(until) if Instant::now() < until => false,
            Some(_) => {
                state.open_until = Some(Instant::now() + OPEN);
                true
            }
            None => true,
        }
    }

    /// Counts; returns whether the provider counts as down now.
    fn failed(&self) -> bool {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= LIMIT {
            state.open_until = Some(Instant::now() + OPEN);
        }
        state.failures >= LIMIT
    }

    fn succeeded(&self) {
        *self.state() = State::default();
    }
}

#[async_trait]
impl<L: Llm> Llm for Breaker<L> {
    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn model(&self) -> &str {
        self.inner.model()
    }

    async fn ask(&self, prompt: &Prompt) -> Result<Reply> {
        if !self.admit() {
            let context = format!("{} failed {LIMIT} times in a row", self.provider());
            return Err(Error::new(Fault::Unavailable, context));
        }
        match self.inner.ask(prompt).await {
            Err(mut error) if matches!(error.fault, Fault::Transient | Fault::Unavailable) => {
                if self.failed() {
                    error.fault = Fault::Unavailable;
                }
                Err(error)
            }
            // Any other answer, even a refusal or 429, shows that the provider is there.
            answer => {
                self.succeeded();
                answer
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::llm::Stop;
    use crate::model::Usage;

    /// Fails until told otherwise, and counts.
    #[derive(Default)]
    struct Flaky {
        calls: AtomicU32,
        works: std::sync::atomic::AtomicBool,
    }

    #[async_trait]
    impl Llm for Flaky {
        fn provider(&self) -> &'static str {
            "flaky"
        }

        fn model(&self) -> &'static str {
            "m"
        }

        async fn ask(&self, _: &Prompt) -> Result<Reply> {
            self.calls.fetch_add(1, Ordering::Relaxed);
            if self.works.load(Ordering::Relaxed) {
                let usage = Usage::default();
                Ok(Reply { text: "{}".into(), stop: Stop::Complete, usage, model: "m".into() })
            } else {
                Err(Error::transient("500"))
            }
        }
    }

    fn prompt() -> Prompt {
        Prompt {
            system: String::new(),
            user: String::new(),
            schema_name: "s".into(),
            schema: serde_json::Value::Null,
            max_output_tokens: 1,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn five_failures_in_a_row_stop_the_calls_until_a_trial_succeeds() {
        let breaker = Breaker::new(Flaky::default());
        let mut faults = Vec::new();
        for _ in 0..8 {
            faults.push(breaker.ask(&prompt()).await.unwrap_err().fault);
        }
        assert_eq!(faults.iter().filter(|fault| **fault == Fault::Transient).count(), 4);
        assert_eq!(faults.iter().filter(|fault| **fault == Fault::Unavailable).count(), 4);
        assert_eq!(breaker.inner.calls.load(Ordering::Relaxed), 5, "no call while it is open");
        breaker.inner.works.store(true, Ordering::Relaxed);
        tokio::time::advance(OPEN).await;
        assert!(breaker.ask(&prompt()).await.is_ok(), "the trial");
        assert!(breaker.ask(&prompt()).await.is_ok(), "closed again");
    }
}
