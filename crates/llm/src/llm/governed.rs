//! Any model behind the throttle governor.
//!
//! A call that was refused is tried again here while the wait is short, in front of those that
//! came later; a longer wait is handed up as throttled. Nothing else is repeated.

use std::sync::Arc;

use async_trait::async_trait;

use crate::fault::{Fault, Result};
use crate::llm::{Llm, ModelReply, Prompt, estimate_tokens};
use crate::throttle::{CallOutcome, Governor, LimiterKey, TokenEstimate};

/// A model that is called no faster than its server takes.
pub struct GovernedLlm<L> {
    inner: L,
    governor: Arc<Governor>,
    key: LimiterKey,
}

impl<L: Llm> GovernedLlm<L> {
    /// `account` tells accounts and servers apart; it must not be a credential.
    pub fn new(inner: L, governor: Arc<Governor>, account: String) -> Self {
        let (provider, model) = (inner.provider().to_owned(), inner.model().to_owned());
        Self { inner, governor, key: LimiterKey { provider, account, model } }
    }
}

#[async_trait]
impl<L: Llm> Llm for GovernedLlm<L> {
    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn model(&self) -> &str {
        self.inner.model()
    }

    async fn complete(&self, prompt: &Prompt) -> Result<ModelReply> {
        let input = estimate_tokens(&prompt.system).saturating_add(estimate_tokens(&prompt.user));
        let estimate = TokenEstimate { input, output: u64::from(prompt.max_output_tokens) };
        let mut call = self.governor.enqueue_call(&self.key, estimate);
        loop {
            let permit = call.admit().await?;
            let answer = self.inner.complete(prompt).await;
            let outcome = match &answer {
                Ok(reply) => {
                    let used = reply.usage.prompt_tokens().saturating_add(reply.usage.output);
                    let tokens = u32::try_from(used).ok().filter(|used| *used > 0);
                    CallOutcome::Answered { limits: reply.limits, tokens: tokens.map(f64::from) }
                }
                Err(error) => CallOutcome::from_fault(error.fault),
            };
            let down = permit.report_outcome(&outcome);
            match answer {
                Err(error) if matches!(error.fault, Fault::Throttled(_)) => {
                    if !call.may_try_again() {
                        return Err(call.deferral_error(error));
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
