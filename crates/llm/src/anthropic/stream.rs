//! A streamed message: `message_start`, content blocks in pieces, `message_delta` with the stop
//! reason, `message_stop`.

use reqwest::Response;
use serde::Deserialize;
use time::OffsetDateTime;

use super::wire::{AnthropicUsage, parse_finish_reason};
use crate::events::{EventStream, EventStreamError};
use crate::exchange::{ChatTransport, FailedTry};
use crate::refusal::ApiErrorBody;
use crate::spaces::WhitespaceDetector;
use crate::{FinishReason, ModelReply, estimate_tokens};
use docmill_client::throttle::RateLimitHeaders;

/// One event; which parts it has depends on its name.
#[derive(Deserialize)]
struct AnthropicStreamEvent {
    #[serde(default)]
    message: Option<AnthropicMessageStart>,
    #[serde(default)]
    delta: Option<AnthropicDelta>,
    #[serde(default)]
    usage: Option<AnthropicUsage>,
}

#[derive(Deserialize)]
struct AnthropicMessageStart {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    usage: Option<AnthropicUsage>,
}

#[derive(Deserialize)]
struct AnthropicDelta {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    partial_json: Option<String>,
    #[serde(default)]
    stop_reason: Option<String>,
}

/// The reply so far.
struct AnthropicStreamState {
    text: String,
    model: String,
    tokens: AnthropicUsage,
    reason: Option<String>,
    watch: WhitespaceDetector,
}

/// Reads a stream to its end.
pub(super) async fn read_stream(
    exchange: &ChatTransport,
    response: Response,
) -> Result<ModelReply, FailedTry> {
    let limits = RateLimitHeaders::read(response.headers(), OffsetDateTime::now_utc());
    let mut events = EventStream::from_response(response, exchange.silence_limits());
    let mut sofar = AnthropicStreamState {
        text: String::new(),
        model: exchange.model().to_owned(),
        tokens: AnthropicUsage::default(),
        reason: None,
        watch: WhitespaceDetector::default(),
    };
    let stop = loop {
        let event = match events.next_event().await {
            Ok(Some(event)) => event,
            Ok(None) => return Err(exchange.early_end_failure()),
            Err(EventStreamError::Endless) => break FinishReason::Cut,
            Err(broken) => return Err(exchange.stream_failure(broken)),
        };
        match event.name.as_str() {
            "message_stop" => break parse_finish_reason(sofar.reason.as_deref()),
            "error" => {
                return Err(exchange.refused_stream(ApiErrorBody::parse(event.data.as_bytes())));
            }
            // `ping`, and events that are not there yet, have none of these parts.
            _ => {
                let piece = serde_json::from_str::<AnthropicStreamEvent>(&event.data);
                if piece.is_ok_and(|piece| sofar.apply_event(piece)) {
                    // The rest would be the same; closing the connection ends it.
                    break FinishReason::Garbled;
                }
            }
        }
    };
    let mut usage: docmill_core::model::ModelUsage = sofar.tokens.into();
    if stop == FinishReason::Garbled || stop == FinishReason::Cut && sofar.reason.is_none() {
        // The last count never arrived.
        usage.output = usage.output.max(estimate_tokens(&sofar.text));
    }
    Ok(ModelReply { text: sofar.text, stop, usage, model: sofar.model, limits })
}

impl AnthropicStreamState {
    /// Whether the text goes in circles.
    fn apply_event(&mut self, piece: AnthropicStreamEvent) -> bool {
        if let Some(start) = piece.message {
            self.model =
                start.model.filter(|name| !name.is_empty()).unwrap_or_else(|| self.model.clone());
            self.tokens = start.usage.unwrap_or_default();
        }
        if let Some(later) = piece.usage {
            self.tokens = self.tokens.merge_later(later);
        }
        let Some(delta) = piece.delta else { return false };
        self.reason = delta.stop_reason.or(self.reason.take());
        let text = delta.text.or(delta.partial_json).unwrap_or_default();
        self.text.push_str(&text);
        self.watch.feed(&text)
    }
}
