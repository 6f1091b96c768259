//! A reply in pieces: server-sent events or Amazon's event stream, and the ways in which they break
//! off.

use std::io;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::connection::{After, caller_has_gone};
use super::frame::frame;
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
    let form = match vendor {
        Vendor::Bedrock => "application/vnd.amazon.eventstream",
        Vendor::Openai
        | Vendor::Anthropic
        | Vendor::Gemini
        | Vendor::VertexGemini
        | Vendor::VertexClaude => "text/event-stream",
    };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {form}\r\nconnection: close\r\n\r\n");
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
                stream.write_all(&error(vendor, kind)).await?;
                return Ok(After::Close);
            }
            _ => stream.write_all(&event(vendor, name, &data)).await?,
        }
    }
    if vendor == Vendor::Openai {
        stream.write_all(b"data: [DONE]\n\n").await?;
    }
    stream.flush().await?;
    Ok(After::Close)
}

fn error(vendor: Vendor, kind: &str) -> Vec<u8> {
    let message = if kind.contains(' ') { kind } else { "scripted" };
    let error = json!({"type": kind, "message": message});
    match vendor {
        Vendor::Openai | Vendor::Gemini | Vendor::VertexGemini => {
            event(vendor, None, &json!({"error": error}))
        }
        Vendor::Anthropic | Vendor::VertexClaude => {
            event(vendor, Some("error"), &json!({"type": "error", "error": error}))
        }
        Vendor::Bedrock => frame("exception", kind, &json!({"message": "scripted"})),
    }
}

fn event(vendor: Vendor, name: Option<&str>, data: &Value) -> Vec<u8> {
    if vendor == Vendor::Bedrock {
        return frame("event", name.unwrap_or_default(), data);
    }
    let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    format!("{name}data: {data}\n\n").into_bytes()
}
