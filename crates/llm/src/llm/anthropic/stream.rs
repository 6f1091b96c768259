//! A streamed message: `message_start`, content blocks in pieces, `message_delta` with the stop
//! reason, `message_stop`.

use reqwest::Response;
use serde::Deserialize;
use time::OffsetDateTime;

use super::wire::{Tokens, stop_of};
use crate::llm::events::{Broken, Events};
use crate::llm::exchange::{Exchange, Failed};
use crate::llm::refusal::Refusal;
use crate::llm::spaces::Watch;
use crate::llm::{Reply, Stop, estimated_tokens};
use crate::throttle::Limits;

/// One event; which parts it has depends on its name.
#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    message: Option<Start>,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    partial_json: Option<String>,
    #[serde(default)]
    stop_reason: Option<String>,
}

/// What has come so far.
struct Sofar {
    text: String,
    model: String,
    tokens: Tokens,
    reason: Option<String>,
    watch: Watch,
}

/// Reads a stream to its end.
pub(super) async fn read(exchange: &Exchange, response: Response) -> Result<Reply, Failed> {
    let limits = Limits::read(response.headers(), OffsetDateTime::now_utc());
    let mut events = Events::of(response, exchange.silence_limits());
    let mut sofar = Sofar {
        text: String::new(),
        model: exchange.model().to_owned(),
        tokens: Tokens::default(),
        reason: None,
        watch: Watch::default(),
    };
    let stop = loop {
        let event = match events.next().await {
            Ok(Some(event)) => event,
            Ok(None) => return Err(exchange.ended_early()),
            Err(Broken::Endless) => break Stop::Cut,
            Err(broken) => return Err(exchange.stream_broke(broken)),
        };
        match event.name.as_str() {
            "message_stop" => break stop_of(sofar.reason.as_deref()),
            "error" => {
                return Err(exchange.refused_in_stream(Refusal::read(event.data.as_bytes())));
            }
            // `ping`, and events that are not there yet, have none of these parts.
            _ => {
                let piece = serde_json::from_str::<Piece>(&event.data);
                if piece.is_ok_and(|piece| sofar.takes(piece)) {
                    // What is still to come is the same; closing the connection ends it.
                    break Stop::Garbled;
                }
            }
        }
    };
    let mut usage: crate::model::Usage = sofar.tokens.into();
    if stop == Stop::Garbled || stop == Stop::Cut && sofar.reason.is_none() {
        // The last count never came.
        usage.output = usage.output.max(estimated_tokens(&sofar.text));
    }
    Ok(Reply { text: sofar.text, stop, usage, model: sofar.model, limits })
}

impl Sofar {
    /// Whether the text goes in circles.
    fn takes(&mut self, piece: Piece) -> bool {
        if let Some(start) = piece.message {
            self.model =
                start.model.filter(|name| !name.is_empty()).unwrap_or_else(|| self.model.clone());
            self.tokens = start.usage.unwrap_or_default();
        }
        if let Some(later) = piece.usage {
            self.tokens = self.tokens.updated(later);
        }
        let Some(delta) = piece.delta else { return false };
        self.reason = delta.stop_reason.or(self.reason.take());
        let text = delta.text.or(delta.partial_json).unwrap_or_default();
        self.text.push_str(&text);
        self.watch.sees(&text)
    }
}
