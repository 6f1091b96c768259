//! A streamed reply of `ConverseStream`: content blocks in pieces, `messageStop` with the reason to
//! stop, `metadata` with the tokens, which comes last.

use aws_sdk_bedrockruntime::operation::converse_stream::ConverseStreamOutput as Answer;
use aws_sdk_bedrockruntime::types::{ContentBlockDelta, ConverseStreamOutput as Event, StopReason};

use super::errors;
use super::wire::{map_stop_reason, map_usage};
use crate::exchange::{FailedTry, REPLY_CAP, SilenceLimits};
use crate::spaces::WhitespaceDetector;
use crate::{FinishReason, ModelReply, estimate_tokens};
use docmill_core::fault::Error;

/// The reply so far.
struct BedrockStreamState {
    reply: ModelReply,
    reason: Option<StopReason>,
    counted: bool,
    watch: WhitespaceDetector,
}

/// Reads a stream to its end; `what` describes the call, for errors. A broken stream is not retried
/// here: its beginning is billed already.
pub(super) async fn read_stream(
    mut answer: Answer,
    what: &str,
    model: &str,
    silence: SilenceLimits,
) -> Result<ModelReply, FailedTry> {
    let mut sofar = BedrockStreamState {
        reply: ModelReply::without_text(FinishReason::Cut, model),
        reason: None,
        counted: false,
        watch: WhitespaceDetector::default(),
    };
    let mut wait = silence.first;
    loop {
        let next = tokio::time::timeout(wait, answer.stream.recv()).await;
        wait = silence.later;
        match next {
            Ok(Ok(Some(event))) => {
                if let Some(stop) = sofar.apply_event(event) {
                    // The rest is of no use; closing the connection ends it.
                    return Ok(sofar.into_reply(stop));
                }
            }
            Ok(Ok(None)) => break,
            // The reply is whole; what is missing are its tokens.
            Ok(Err(_)) | Err(_) if sofar.reason.is_some() => break,
            Ok(Err(error)) => {
                return Err(FailedTry::without_retry(errors::from_stream(what, model, &error)));
            }
            Err(_) => {
                return Err(FailedTry::without_retry(Error::transient(format!(
                    "{what}: the stream fell silent (llm.timeout before its first piece, \
                     llm.idle_timeout after it)"
                ))));
            }
        }
    }
    match sofar.reason.as_ref().map(map_stop_reason) {
        Some(stop) => Ok(sofar.into_reply(stop)),
        None => {
            let context = format!("{what}: the stream ended before the reply did");
            Err(FailedTry::without_retry(Error::transient(context)))
        }
    }
}

impl BedrockStreamState {
    /// Why nothing further need be read, if so.
    fn apply_event(&mut self, event: Event) -> Option<FinishReason> {
        match event {
            Event::ContentBlockDelta(piece) => {
                let text = match piece.delta {
                    Some(ContentBlockDelta::Text(text)) => text,
                    Some(ContentBlockDelta::ToolUse(tool)) => tool.input,
                    // Reasoning, which is no part of the reply.
                    _ => return None,
                };
                self.reply.text.push_str(&text);
                if self.reply.text.len() > REPLY_CAP {
                    return Some(FinishReason::Cut);
                }
                self.watch.feed(&text).then_some(FinishReason::Garbled)
            }
            Event::MessageStop(end) => {
                self.reason = Some(end.stop_reason);
                None
            }
            Event::Metadata(metadata) => {
                if let Some(tokens) = &metadata.usage {
                    self.reply.usage = map_usage(tokens);
                    self.counted = true;
                }
                None
            }
            // Where blocks begin and end, and events that are not there yet.
            _ => None,
        }
    }

    fn into_reply(mut self, stop: FinishReason) -> ModelReply {
        if !self.counted {
            self.reply.usage.output = estimate_tokens(&self.reply.text);
        }
        self.reply.stop = stop;
        self.reply
    }
}
