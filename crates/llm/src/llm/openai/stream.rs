//! A streamed chat completion: `chat.completion.chunk`s, the usage in the last one.

use reqwest::Response;
use serde::Deserialize;
use time::OffsetDateTime;

use super::wire::{Tokens, stop_of};
use crate::fault::Error;
use crate::llm::events::{Broken, Events};
use crate::llm::exchange::{Exchange, Failed};
use crate::llm::refusal::Refusal;
use crate::llm::spaces::Watch;
use crate::llm::{Reply, Stop, estimated_tokens};
use crate::throttle::Limits;

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

/// What has come so far.
#[derive(Default)]
struct Sofar {
    text: String,
    declined: bool,
    reason: Option<String>,
    watch: Watch,
}

/// Reads a stream to its end.
pub(super) async fn read(exchange: &Exchange, response: Response) -> Result<Reply, Failed> {
    let limits = Limits::read(response.headers(), OffsetDateTime::now_utc());
    let mut reply = Reply { limits, ..Reply::nothing(Stop::Complete, exchange.model()) };
    let mut events = Events::of(response, exchange.silence_limits());
    let mut sofar = Sofar::default();
    loop {
        let event = match events.next().await {
            Ok(Some(event)) if event.data.trim() == "[DONE]" => break,
            Ok(Some(event)) => event,
            // Some servers close without the last word; a reason to stop says that it was the end.
            Ok(None) if sofar.reason.is_some() => break,
            Ok(None) => return Err(exchange.ended_early()),
            Err(Broken::Endless) => return Ok(sofar.into_reply(reply, Stop::Cut)),
            Err(broken) => return Err(exchange.stream_broke(broken)),
        };
        let Ok(chunk) = serde_json::from_str::<Chunk>(&event.data) else {
            return Err(not_a_chunk(exchange, &event.data));
        };
        if let Some(usage) = chunk.usage {
            reply.usage = usage.into();
        }
        if let Some(model) = chunk.model.filter(|name| !name.is_empty()) {
            reply.model = model;
        }
        if chunk.choices.is_empty() && event.data.contains("\"error\"") {
            return Err(not_a_chunk(exchange, &event.data));
        }
        if chunk.choices.into_iter().take(1).any(|choice| sofar.takes(choice)) {
            // What is still to come is the same; closing the connection ends it.
            reply.usage.output = estimated_tokens(&sofar.text);
            return Ok(sofar.into_reply(reply, Stop::Garbled));
        }
    }
    let stop = stop_of(sofar.reason.as_deref(), sofar.declined);
    Ok(sofar.into_reply(reply, stop))
}

impl Sofar {
    /// Whether the text goes in circles.
    fn takes(&mut self, choice: Choice) -> bool {
        self.reason = choice.finish_reason.or(self.reason.take());
        let Some(delta) = choice.delta else { return false };
        self.declined |= delta.refusal.is_some_and(|text| !text.is_empty());
        let piece = delta.content.unwrap_or_default();
        self.text.push_str(&piece);
        self.watch.sees(&piece)
    }

    fn into_reply(self, reply: Reply, stop: Stop) -> Reply {
        Reply { text: self.text, stop, ..reply }
    }
}

/// An error within the stream, or something that is none of ours.
fn not_a_chunk(exchange: &Exchange, data: &str) -> Failed {
    let refusal = Refusal::read(data.as_bytes());
    if refusal.is_empty() {
        let what = exchange.what();
        return Failed::finally(Error::transient(format!(
            "{what}: an event of the stream is no chunk of a chat completion"
        )));
    }
    exchange.refused_in_stream(refusal)
}
