//! A streamed chat completion: `chat.completion.chunk`s, the usage in the last one.

use reqwest::Response;
use serde::Deserialize;
use time::OffsetDateTime;

use super::wire::{OpenAiUsage, parse_finish_reason};
use crate::events::{EventStream, EventStreamError};
use crate::exchange::{ChatTransport, FailedTry};
use crate::refusal::ApiErrorBody;
use crate::spaces::WhitespaceDetector;
use crate::{FinishReason, ModelReply, estimate_tokens};
use docmill_client::throttle::RateLimitHeaders;
use docmill_core::fault::Error;

#[derive(Deserialize)]
struct OpenAiChunk {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Vec<OpenAiChunkChoice>,
    #[serde(default)]
    usage: Option<OpenAiUsage>,
}

#[derive(Deserialize)]
struct OpenAiChunkChoice {
    #[serde(default)]
    delta: Option<OpenAiDelta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct OpenAiDelta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

/// The reply so far.
#[derive(Default)]
struct OpenAiStreamState {
    text: String,
    declined: bool,
    reason: Option<String>,
    watch: WhitespaceDetector,
}

/// Reads a stream to its end.
pub(super) async fn read_stream(
    exchange: &ChatTransport,
    response: Response,
) -> Result<ModelReply, FailedTry> {
    let limits = RateLimitHeaders::read(response.headers(), OffsetDateTime::now_utc());
    let mut reply =
        ModelReply { limits, ..ModelReply::without_text(FinishReason::Complete, exchange.model()) };
    let mut events = EventStream::from_response(response, exchange.silence_limits());
    let mut sofar = OpenAiStreamState::default();
    loop {
        let event = match events.next_event().await {
            Ok(Some(event)) if event.data.trim() == "[DONE]" => break,
            Ok(Some(event)) => event,
            // Some servers close without the last word; a reason to stop says that it was the end.
            Ok(None) if sofar.reason.is_some() => break,
            Ok(None) => return Err(exchange.early_end_failure()),
            Err(EventStreamError::Endless) => return Ok(sofar.into_reply(reply, FinishReason::Cut)),
            Err(broken) => return Err(exchange.stream_failure(broken)),
        };
        let Ok(chunk) = serde_json::from_str::<OpenAiChunk>(&event.data) else {
            return sofar.end_by_error(reply, exchange, &event.data);
        };
        if let Some(usage) = chunk.usage {
            reply.usage = usage.into();
        }
        if let Some(model) = chunk.model.filter(|name| !name.is_empty()) {
            reply.model = model;
        }
        if chunk.choices.is_empty() && event.data.contains("\"error\"") {
            return sofar.end_by_error(reply, exchange, &event.data);
        }
        if chunk.choices.into_iter().take(1).any(|choice| sofar.apply_choice(choice)) {
            // The rest is of no use; closing the connection ends it.
            reply.usage.output = estimate_tokens(&sofar.text);
            return Ok(sofar.into_reply(reply, FinishReason::Garbled));
        }
    }
    let stop = parse_finish_reason(sofar.reason.as_deref(), sofar.declined)
        .ok_or_else(|| exchange.early_end_failure())?;
    Ok(sofar.into_reply(reply, stop))
}

impl OpenAiStreamState {
    /// Whether the text goes in circles.
    fn apply_choice(&mut self, choice: OpenAiChunkChoice) -> bool {
        self.reason = choice.finish_reason.or(self.reason.take());
        let Some(delta) = choice.delta else { return false };
        self.declined |= delta.refusal.is_some_and(|text| !text.is_empty());
        let piece = delta.content.unwrap_or_default();
        self.text.push_str(&piece);
        self.watch.feed(&piece)
    }

    fn into_reply(self, reply: ModelReply, stop: FinishReason) -> ModelReply {
        ModelReply { text: self.text, stop, ..reply }
    }

    /// The outcome of an error within the stream. A server's error about the reply itself ends it
    /// as unusable, as it would have without a stream.
    fn end_by_error(
        self,
        mut reply: ModelReply,
        exchange: &ChatTransport,
        data: &str,
    ) -> Result<ModelReply, FailedTry> {
        let refusal = ApiErrorBody::parse(data.as_bytes());
        if refusal.is_unread_reply(refusal.status_in_stream()) {
            reply.usage.output = estimate_tokens(&self.text);
            return Ok(ModelReply { stop: FinishReason::Garbled, ..reply });
        }
        Err(bad_chunk_failure(exchange, refusal))
    }
}

/// An error within the stream, or something that is none of ours.
fn bad_chunk_failure(exchange: &ChatTransport, refusal: ApiErrorBody) -> FailedTry {
    if refusal.is_empty() {
        let what = exchange.call_description();
        return FailedTry::without_retry(Error::transient(format!(
            "{what}: an event of the stream is no chunk of a chat completion"
        )));
    }
    exchange.refused_stream(refusal)
}
