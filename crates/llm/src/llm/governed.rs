//! Any model behind the throttle governor.
//!
//! A call that was refused is tried again here while the wait is short, in front of those that
//! came later; a longer wait is handed up as throttled. Nothing else is repeated.

use std::sync::Arc;

use async_trait::async_trait;

use crate::fault::{Fault, Result};
use crate::llm::{Llm, Prompt, Reply, estimated_tokens};
use crate::throttle::{Estimate, Governor, Key, Outcome};

/// A model that is called no faster than its server takes.
pub struct Governed<L> {
    inner: L,
    governor: Arc<Governor>,
    key: Key,
}

impl<L: Llm> Governed<L> {
    /// `account` tells accounts and servers apart; it must not be a credential.
    pub fn new(inner: L, governor: Arc<Governor>, account: String) -> Self {
        let (provider, model) = (inner.provider().to_owned(), inner.model().to_owned());
        Self { inner, governor, key: Key { provider, account, model } }
    }
}

#[async_trait]
impl<L: Llm> Llm for Governed<L> {
    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn model(&self) -> &str {
        self.inner.model()
    }

    async fn ask(&self, prompt: &Prompt) -> Result<Reply> {
        let input = estimated_tokens(&prompt.system).saturating_add(estimated_tokens(&prompt.user));
        let estimate = Estimate { input, output: u64::from(prompt.max_output_tokens) };
        let mut call = self.governor.call(&self.key, estimate);
        loop {
            let permit = call.admit().await?;
            let answer = self.inner.ask(prompt).await;
            let outcome = match &answer {
                Ok(reply) => {
                    let used = reply.usage.prompt().saturating_add(reply.usage.output);
                    let tokens = u32::try_from(used).ok().filter(|used| *used > 0);
                    Outcome::Answered { limits: reply.limits, tokens: tokens.map(f64::from) }
                }
                Err(error) => Outcome::of(error.fault),
            };
            let down = permit.settle(&outcome);
            match answer {
                Err(error) if matches!(error.fault, Fault::Throttled(_)) => {
                    if !call.may_try_again() {
                        return Err(call.put_off(error));
                    }
                    tracing::debug!(llm.model = self.key.model, "refused, waiting: {error}");
                }
                Err(mut error) if down && error.fault == Fault::Transient => {
                    error.fault = Fault::Unavailable;
                    return Err(error);
                }
                answer => return answer,
            }
        }
    }
}
