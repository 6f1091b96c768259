//! A streamed reply of `ConverseStream`: content blocks in pieces, `messageStop` with the reason to
//! stop, `metadata` with the tokens, which comes last.

use aws_sdk_bedrockruntime::operation::converse_stream::ConverseStreamOutput as Answer;
use aws_sdk_bedrockruntime::types::{ContentBlockDelta, ConverseStreamOutput as Event, StopReason};

use super::errors;
use super::wire::{stop_of, usage};
use crate::fault::Error;
use crate::llm::exchange::{Failed, REPLY_CAP, SilenceLimits};
use crate::llm::spaces::Watch;
use crate::llm::{Reply, Stop, estimated_tokens};

/// What has come so far.
struct Sofar {
    reply: Reply,
    reason: Option<StopReason>,
    counted: bool,
    watch: Watch,
}

/// Reads a stream to its end; `what` is being done, for errors. What breaks off is not tried again
/// here: its beginning is billed already.
pub(super) async fn read(
    mut answer: Answer,
    what: &str,
    model: &str,
    silence: SilenceLimits,
) -> Result<Reply, Failed> {
    let mut sofar = Sofar {
        reply: Reply::nothing(Stop::Cut, model),
        reason: None,
        counted: false,
        watch: Watch::default(),
    };
    let mut wait = silence.first;
    loop {
        let next = tokio::time::timeout(wait, answer.stream.recv()).await;
        wait = silence.later;
        match next {
            Ok(Ok(Some(event))) => {
                if let Some(stop) = sofar.takes(event) {
                    // What is still to come is of no use; closing the connection ends it.
                    return Ok(sofar.ended(stop));
                }
            }
            Ok(Ok(None)) => break,
            // The reply is whole; what is missing are its tokens.
            Ok(Err(_)) | Err(_) if sofar.reason.is_some() => break,
            Ok(Err(error)) => {
                return Err(Failed::finally(errors::from_stream(what, model, &error)));
            }
            Err(_) => {
                return Err(Failed::finally(Error::transient(format!(
                    "{what}: the stream fell silent (llm.timeout before its first piece, \
                     llm.idle_timeout after it)"
                ))));
            }
        }
    }
    match sofar.reason.as_ref().map(stop_of) {
        Some(stop) => Ok(sofar.ended(stop)),
        None => {
            let context = format!("{what}: the stream ended before the reply did");
            Err(Failed::finally(Error::transient(context)))
        }
    }
}

impl Sofar {
    /// Why nothing further need be read, if so.
    fn takes(&mut self, event: Event) -> Option<Stop> {
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
                    return Some(Stop::Cut);
                }
                self.watch.sees(&text).then_some(Stop::Garbled)
            }
            Event::MessageStop(end) => {
                self.reason = Some(end.stop_reason);
                None
            }
            Event::Metadata(metadata) => {
                if let Some(tokens) = &metadata.usage {
                    self.reply.usage = usage(tokens);
                    self.counted = true;
                }
                None
            }
            // Where blocks begin and end, and events that are not there yet.
            _ => None,
        }
    }

    fn ended(mut self, stop: Stop) -> Reply {
        if !self.counted {
            self.reply.usage.output = estimated_tokens(&self.reply.text);
        }
        self.reply.stop = stop;
        self.reply
    }
}
