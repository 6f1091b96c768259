//! A reply in pieces: server-sent events, and the ways in which they break off.

use std::io;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::connection::{After, caller_has_gone};
use super::script::Answer;
use super::vendor::Vendor;

/// Events with the names that some vendors give them.
type Named = Vec<(Option<&'static str>, Value)>;

/// Sends events; the connection ends with them.
pub(super) async fn send(
    stream: &mut TcpStream,
    (vendor, events): (Vendor, Named),
    answer: &Answer,
) -> io::Result<After> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let half = events.len() / 2;
    for (at, (name, data)) in events.into_iter().enumerate() {
        match answer {
            Answer::StreamCut if at == half => return Ok(After::Close),
            Answer::StreamStall if at == half => {
                stream.flush().await?;
                caller_has_gone(stream).await;
                return Ok(After::Close);
            }
            Answer::StreamError { kind } if at == half => {
                let error = json!({"type": kind, "message": "scripted"});
                let data = match vendor {
                    Vendor::Anthropic => json!({"type": "error", "error": error}),
                    _ => json!({"error": error}),
                };
                let name = (vendor == Vendor::Anthropic).then_some("error");
                event(stream, name, &data.to_string()).await?;
                return Ok(After::Close);
            }
            _ => event(stream, name, &data.to_string()).await?,
        }
    }
    if vendor == Vendor::Openai {
        event(stream, None, "[DONE]").await?;
    }
    stream.flush().await?;
    Ok(After::Close)
}

async fn event(stream: &mut TcpStream, name: Option<&str>, data: &str) -> io::Result<()> {
    let mut text = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    text.push_str(&format!("data: {data}\n\n"));
    stream.write_all(text.as_bytes()).await
}
