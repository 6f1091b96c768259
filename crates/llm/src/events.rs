//! A streamed reply: server-sent events (HTML Living Standard §9.2), as far as model vendors use
//! them, with a limit on silence and on bytes.
//!
//! Not there: `id`, `retry` and reconnecting. A stream that broke cannot be taken up again.

use reqwest::Response;

use super::exchange::{REPLY_CAP, SilenceLimits};

/// One event of a `text/event-stream` body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerSentEvent {
    /// `message` if the server does not name it.
    pub(super) name: String,
    /// The lines of `data`, joined.
    pub(super) data: String,
}

/// Why there are no further events.
#[derive(Debug)]
pub(super) enum EventStreamError {
    /// Nothing arrived for longer than allowed.
    Silent,
    /// More bytes than a reply may have.
    Endless,
    /// The connection ended in the middle.
    Connection(reqwest::Error),
}

/// The events of a response, in their order.
pub(super) struct EventStream {
    response: Response,
    lines: EventParser,
    silence: SilenceLimits,
    bytes: usize,
}

impl EventStream {
    pub(super) fn from_response(response: Response, silence: SilenceLimits) -> Self {
        Self { response, lines: EventParser::default(), silence, bytes: 0 }
    }

    /// The next event; `None`: the server has closed its side.
    pub(super) async fn next_event(&mut self) -> Result<Option<ServerSentEvent>, EventStreamError> {
        loop {
            if let Some(event) = self.lines.pop_event() {
                return Ok(Some(event));
            }
            let longest = if self.bytes == 0 { self.silence.first } else { self.silence.later };
            let chunk = tokio::time::timeout(longest, self.response.chunk());
            let chunk = chunk
                .await
                .map_err(|_| EventStreamError::Silent)?
                .map_err(EventStreamError::Connection)?;
            let Some(chunk) = chunk else { return Ok(None) };
            self.bytes += chunk.len();
            if self.bytes > REPLY_CAP {
                return Err(EventStreamError::Endless);
            }
            self.lines.push_bytes(&chunk);
        }
    }
}

/// Bytes that became lines, and lines that become events.
#[derive(Debug, Default)]
struct EventParser {
    waiting: Vec<u8>,
    name: String,
    data: Option<String>,
    ready: std::collections::VecDeque<ServerSentEvent>,
}

impl EventParser {
    fn pop_event(&mut self) -> Option<ServerSentEvent> {
        self.ready.pop_front()
    }

    /// Takes bytes that may end anywhere, also within a character.
    fn push_bytes(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        let mut taken = 0;
        let waiting = std::mem::take(&mut self.waiting);
        for line in waiting.split_inclusive(|byte| *byte == b'\n') {
            let Some(line_text) = line.strip_suffix(b"\n") else { break };
            taken += line.len();
            let text = line_text.strip_suffix(b"\r").unwrap_or(line_text);
            self.push_line(&String::from_utf8_lossy(text));
        }
        self.waiting = waiting.get(taken..).unwrap_or_default().to_vec();
    }

    fn push_line(&mut self, line: &str) {
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            if let Some(data) = self.data.take() {
                let name = if name.is_empty() { "message".to_owned() } else { name };
                self.ready.push_back(ServerSentEvent { name, data });
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // Comments, and fields that we have no use for.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_cut() {
        let stream = "event: a\ndata: {\"x\":\"é\"}\n\n: a comment\ndata: 1\r\ndata:2\r\n\r\n\
                      event: b\n\ndata: [DONE]\n\n"
            .as_bytes();
        let event =
            |name: &str, data: &str| ServerSentEvent { name: name.into(), data: data.into() };
        let expected =
            [event("a", "{\"x\":\"é\"}"), event("message", "1\n2"), event("message", "[DONE]")];
        for size in 1..=stream.len() {
            let mut lines = EventParser::default();
            stream.chunks(size).for_each(|chunk| lines.push_bytes(chunk));
            let events: Vec<ServerSentEvent> = std::iter::from_fn(|| lines.pop_event()).collect();
            assert_eq!(events, expected, "chunks of {size}");
        }
    }

    #[test]
    fn an_unfinished_event_is_ignored() {
        let mut lines = EventParser::default();
        lines.push_bytes(b"event: message_stop\ndata: {}\n");
        assert_eq!(lines.pop_event(), None);
    }
}
