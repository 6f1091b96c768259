//! Any model with a span for each of its calls: names, counts and the reason it stopped, never
//! what was said.

use async_trait::async_trait;
use tracing::Instrument as _;

use crate::{FinishReason, Llm, ModelReply, Prompt, RequestOptions};
use docmill_client::telemetry::spans;
use docmill_core::fault::Result;
use docmill_core::model::PriceClass;

/// A model whose calls show up in traces. Belongs inside the governor, so that waiting for
/// permission is not taken for the model's time.
pub struct TracedLlm<L>(pub L);

#[async_trait]
impl<L: Llm> Llm for TracedLlm<L> {
    fn provider(&self) -> &str {
        self.0.provider()
    }

    fn model(&self) -> &str {
        self.0.model()
    }

    fn request_options(&self) -> Option<&RequestOptions> {
        self.0.request_options()
    }

    fn price_class(&self) -> PriceClass {
        self.0.price_class()
    }

    fn is_down(&self) -> bool {
        self.0.is_down()
    }

    fn refuses_schema(&self, prompt: &Prompt) -> bool {
        self.0.refuses_schema(prompt)
    }

    async fn ping(&self) -> Result<()> {
        self.0.ping().await
    }

    async fn complete(&self, prompt: &Prompt) -> Result<ModelReply> {
        let span = spans::chat_span(self.provider(), self.model(), prompt.max_output_tokens);
        let answer = self.0.complete(prompt).instrument(span.clone()).await;
        match &answer {
            Ok(reply) => {
                let (reason, usage) = (finish_reason_label(reply.stop), reply.usage);
                spans::record_reply(&span, &reply.model, reason, usage.input, usage.output);
            }
            Err(error) => spans::record_failure(&span, error.fault.code()),
        }
        answer
    }
}

fn finish_reason_label(stop: FinishReason) -> &'static str {
    match stop {
        FinishReason::Complete => "stop",
        FinishReason::Cut => "length",
        FinishReason::Stopped => "unknown",
        FinishReason::Refused => "content_filter",
        FinishReason::TooLong => "prompt_too_long",
        FinishReason::Garbled => "garbled",
    }
}
