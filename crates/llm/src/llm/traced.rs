//! Any model with a span for each of its calls: names, counts and the reason it stopped, never
//! what was said.

use async_trait::async_trait;
use tracing::Instrument as _;

use crate::fault::Result;
use crate::llm::{Llm, Prompt, Reply, Stop};
use crate::telemetry::spans;

/// A model whose calls show up in traces. Belongs inside the governor, so that waiting for
/// permission is not taken for the model's time.
pub struct Traced<L>(pub L);

#[async_trait]
impl<L: Llm> Llm for Traced<L> {
    fn provider(&self) -> &str {
        self.0.provider()
    }

    fn model(&self) -> &str {
        self.0.model()
    }

    async fn ask(&self, prompt: &Prompt) -> Result<Reply> {
        let span = spans::chat(self.provider(), self.model(), prompt.max_output_tokens);
        let answer = self.0.ask(prompt).instrument(span.clone()).await;
        match &answer {
            Ok(reply) => {
                let (reason, usage) = (finish_reason(reply.stop), reply.usage);
                spans::replied(&span, &reply.model, reason, usage.input, usage.output);
            }
            Err(error) => spans::failed(&span, error.fault.code()),
        }
        answer
    }
}

fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::Complete => "stop",
        Stop::Cut => "length",
        Stop::Refused => "content_filter",
        Stop::TooLong => "prompt_too_long",
        Stop::Garbled => "garbled",
    }
}
