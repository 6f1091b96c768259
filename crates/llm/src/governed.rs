//! Any model behind the throttle governor.
//!
//! A refused call is tried again as [`GovernedCall`] says; nothing else is repeated.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Llm, ModelReply, Prompt, RequestOptions};
use docmill_client::throttle::{GovernedAnswer, GovernedCall, Governor, LimiterKey, TokenEstimate};
use docmill_core::fault::Result;
use docmill_core::model::PriceClass;

/// A model that is called no faster than its server takes.
pub struct GovernedLlm<L> {
    inner: L,
    governor: Arc<Governor>,
    key: LimiterKey,
    class: PriceClass,
}

impl<L: Llm> GovernedLlm<L> {
    /// `account` distinguishes accounts and servers; it must not be a credential.
    pub fn new(inner: L, governor: Arc<Governor>, account: String) -> Self {
        let (provider, model) = (inner.provider().to_owned(), inner.model().to_owned());
        let key = LimiterKey { provider, account, model };
        Self { inner, governor, key, class: PriceClass::default() }
    }

    /// Names the terms of its calls that change their price.
    #[must_use]
    pub fn with_price_class(mut self, class: PriceClass) -> Self {
        self.class = class;
        self
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

    fn price_class(&self) -> PriceClass {
        self.class.clone()
    }

    fn request_options(&self) -> Option<&RequestOptions> {
        self.inner.request_options()
    }

    fn is_down(&self) -> bool {
        self.governor.is_down(&self.key)
    }

    fn refuses_schema(&self, prompt: &Prompt) -> bool {
        self.inner.refuses_schema(prompt)
    }

    async fn ping(&self) -> Result<()> {
        self.inner.ping().await
    }

    async fn complete(&self, prompt: &Prompt) -> Result<ModelReply> {
        let input = prompt.estimate_tokens();
        let reserve = self.request_options().map_or(0, RequestOptions::reserve);
        let output = prompt.max_output_tokens.saturating_add(reserve);
        let estimate = TokenEstimate { input, output: u64::from(output) };
        let call = GovernedCall {
            governor: &self.governor,
            key: &self.key,
            estimate,
            // A model's call is long and paid for: whether to ask again is for the caller to say.
            quick_retries: 0,
        };
        call.make(|| async {
            let reply = self.inner.complete(prompt).await?;
            let used = reply.usage.prompt_tokens().saturating_add(reply.usage.output);
            let tokens = u32::try_from(used).ok().filter(|used| *used > 0).map(f64::from);
            Ok(GovernedAnswer { limits: reply.limits, tokens, value: reply })
        })
        .await
    }
}
