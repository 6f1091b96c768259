//! A vendor's batches behind the throttle governor: as many requests as it takes, none while its
//! breaker is open.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    BatchApi, BatchProgress, BatchQuestion, BatchResults, BatchSubmission, FoundBatch, SoughtBatch,
    SubmissionFence,
};
use crate::Prompt;
use docmill_client::throttle::{
    GovernedAnswer, GovernedCall, Governor, LimiterKey, RateLimitHeaders, TokenEstimate,
};
use docmill_core::fault::Result;
use docmill_core::model::PriceClass;

/// Reads may be repeated after a quick failure. Submissions may not: the first may have arrived.
const REPEATS: u32 = 2;

/// Batches that are handed in and asked for no faster than their vendor takes it.
pub struct GovernedBatches<B> {
    inner: B,
    governor: Arc<Governor>,
    key: LimiterKey,
    class: PriceClass,
}

impl<B: BatchApi> GovernedBatches<B> {
    /// `account` distinguishes accounts and servers; it must not be a credential. Vendors limit
    /// batches apart from single calls, so they have a limiter of their own.
    pub fn new(inner: B, governor: Arc<Governor>, account: String) -> Self {
        let model = format!("{} in batches", inner.model());
        let key = LimiterKey { provider: inner.provider().to_owned(), account, model };
        Self { inner, governor, key, class: PriceClass::default() }
    }

    /// Names the terms of its calls that change their price. A batch is a class of its own: its
    /// prompts have no other.
    #[must_use]
    pub fn with_price_class(mut self, class: PriceClass) -> Self {
        self.class = PriceClass { service_tier: String::new(), ..class };
        self
    }

    async fn call<T, F>(&self, quick_retries: u32, attempt: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let (governor, key) = (&*self.governor, &self.key);
        let estimate = TokenEstimate::default();
        let call = GovernedCall { governor, key, estimate, quick_retries };
        let limits = RateLimitHeaders::default;
        call.make(|| async {
            let value = attempt().await?;
            Ok(GovernedAnswer { value, limits: limits(), tokens: None })
        })
        .await
    }
}

#[async_trait]
impl<B: BatchApi> BatchApi for GovernedBatches<B> {
    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn model(&self) -> &str {
        self.inner.model()
    }

    fn price_class(&self) -> PriceClass {
        self.class.clone()
    }

    fn place(&self) -> &str {
        self.inner.place()
    }

    fn least_requests(&self) -> u32 {
        self.inner.least_requests()
    }

    fn encode_prompt(&self, prompt: &Prompt) -> Result<String> {
        self.inner.encode_prompt(prompt)
    }

    async fn upload(&self, name: &str, questions: &[BatchQuestion]) -> Result<Option<String>> {
        self.call(0, || self.inner.upload(name, questions)).await
    }

    async fn remove_input(&self, file: &str) -> Result<()> {
        self.call(REPEATS, || self.inner.remove_input(file)).await
    }

    async fn create(
        &self,
        batch: BatchSubmission<'_>,
        fence: &dyn SubmissionFence,
    ) -> Result<String> {
        self.call(0, || self.inner.create(batch, fence)).await
    }

    async fn find(&self, sought: SoughtBatch<'_>) -> Result<FoundBatch> {
        self.call(REPEATS, || self.inner.find(sought)).await
    }

    async fn poll(&self, handle: &str) -> Result<BatchProgress> {
        self.call(REPEATS, || self.inner.poll(handle)).await
    }

    async fn open_results(&self, file: &str) -> Result<BatchResults> {
        self.call(REPEATS, || self.inner.open_results(file)).await
    }

    async fn cancel(&self, handle: &str) -> Result<()> {
        self.call(REPEATS, || self.inner.cancel(handle)).await
    }

    async fn discard(&self, handle: &str) -> Result<()> {
        self.call(REPEATS, || self.inner.discard(handle)).await
    }
}
