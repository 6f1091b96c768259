//! One connection: HTTP/1.1 by hand, request after request.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::State;
use super::batches::{BatchAnswer, Sent};
use super::script::{Answer, Request};
use super::stream;
use super::vendor::{End, Outgoing, Said, SpentQuota, Trouble, Vendor, cap, is_without_thinking};

/// Most bytes of a head and of a body.
const HEAD_CAP: usize = 64 << 10;
const BODY_CAP: usize = 64 << 20;

struct Incoming {
    method: String,
    path: String,
    /// Names in lower case.
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

/// Whether the connection can carry another request.
#[derive(PartialEq, Eq)]
pub(super) enum After {
    Next,
    Close,
}

pub(crate) async fn serve(mut stream: TcpStream, state: Arc<State>) {
    let mut rest = Vec::new();
    while let Ok(Some(incoming)) = receive(&mut stream, &mut rest).await {
        match answer(&mut stream, &incoming, &state).await {
            Ok(After::Next) => {}
            Ok(After::Close) | Err(_) => break,
        }
    }
}

/// Reads one request; `rest` keeps what came after it. `None`: the caller has gone.
async fn receive(stream: &mut TcpStream, rest: &mut Vec<u8>) -> io::Result<Option<Incoming>> {
    let end = loop {
        if let Some(at) = rest.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if rest.len() > HEAD_CAP || stream.read_buf(rest).await? == 0 {
            return Ok(None);
        }
    };
    let head: Vec<u8> = rest.drain(..end).collect();
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    if length > BODY_CAP {
        return Ok(None);
    }
    while rest.len() < length {
        if stream.read_buf(rest).await? == 0 {
            return Ok(None);
        }
    }
    let body = rest.drain(..length).collect();
    Ok(Some(Incoming { method, path, headers, body }))
}

async fn answer(stream: &mut TcpStream, incoming: &Incoming, state: &State) -> io::Result<After> {
    let (vendor, key, models, rules) = {
        let script = state.script.lock().unwrap_or_else(PoisonError::into_inner);
        (script.vendor, script.api_key.clone(), script.models.clone(), script.rules())
    };
    let error = |status, message: &str, param, code| {
        vendor.error(&Trouble { status, message, param, code, quota: None })
    };
    if let Some(outgoing) = answer_beside(incoming, state, vendor) {
        return send(stream, &outgoing).await;
    }
    if key.is_some() && vendor.key(&incoming.headers) != key.as_deref() {
        let code = (vendor == Vendor::Openai).then_some("invalid_api_key");
        return send(stream, &error(401, "Incorrect API key", None, code)).await;
    }
    let listed = incoming.path.strip_prefix("/openai").unwrap_or(&incoming.path);
    if incoming.method == "GET" && listed == "/v1/models" && vendor != Vendor::Bedrock {
        let list = models.map(list).map(plain);
        return send(stream, &list.unwrap_or_else(|| error(404, "Invalid URL", None, None))).await;
    }
    if has_text_counted(incoming, vendor) {
        return send(stream, &plain(json!({"totalTokens": 2, "input_tokens": 2}))).await;
    }
    let asked = (incoming.method.as_str(), incoming.path.as_str());
    let sent = Sent { headers: &incoming.headers, body: &incoming.body };
    match state.answer_batches(vendor, asked, sent) {
        Some(BatchAnswer::Json(status, body)) => {
            return send(stream, &Outgoing { status, headers: Vec::new(), body }).await;
        }
        Some(BatchAnswer::Told(headers, body)) => {
            return send(stream, &Outgoing { status: 200, headers, body }).await;
        }
        Some(BatchAnswer::Lines(lines, breaks)) => return send_lines(stream, &lines, breaks).await,
        Some(BatchAnswer::Nothing) => return Ok(After::Close),
        None => {}
    }
    if !vendor.is_call(&incoming.method, &incoming.path) {
        return send(stream, &error(404, "Invalid URL", None, None)).await;
    }
    let Ok(body) = serde_json::from_slice::<Value>(&incoming.body) else {
        return send(stream, &error(400, "We could not parse the JSON body", None, None)).await;
    };
    let number = state.records.arrive(&body);
    if let Err((param, wrong)) = vendor.check(&incoming.headers, &body, &rules) {
        state.records.end(number, 400, true);
        let code = (vendor == Vendor::Openai).then_some("unsupported_parameter");
        let outgoing = error(400, &wrong, Some(param), code);
        state.exchanged(number, incoming.path.clone(), &body, (400, &outgoing.body));
        return send(stream, &outgoing).await;
    }
    let path = incoming.path.clone();
    complete(stream, state, (vendor, path), Request { body, number }).await
}

/// Requests that need no key: for the records, and for a token.
fn answer_beside(incoming: &Incoming, state: &State, vendor: Vendor) -> Option<Outgoing> {
    match (incoming.method.as_str(), incoming.path.as_str()) {
        ("GET", "/_calls") => Some(plain(json!(state.records.all()))),
        ("GET", "/_exchanges") => Some(plain(json!(state.records.exchanges()))),
        (_, path) => {
            let token = vendor.grant_token(path)?;
            let granted = usize::from(token.get("access_token").is_some());
            state.tokens.fetch_add(granted, Ordering::SeqCst);
            Some(plain(token))
        }
    }
}

/// Whether a request has tokens counted.
fn has_text_counted(incoming: &Incoming, vendor: Vendor) -> bool {
    let body = serde_json::from_slice(&incoming.body).unwrap_or_default();
    incoming.method == "POST" && vendor.is_count(&incoming.path, &body)
}

/// The model's reply, with its token counts.
fn say(state: &State, answer: &Answer, request: &Request) -> Option<Said> {
    let (vendor, window, blind) = {
        let script = state.script.lock().unwrap_or_else(PoisonError::into_inner);
        (script.vendor, script.window, script.blind)
    };
    let pictures = if blind { Vec::new() } else { request.pictures() };
    let seen = pictures.iter().map(|picture| picture.tokens()).sum();
    let (mut text, mut end) = answer.reply(request)?;
    let mut thought = 0;
    if let Answer::Thinks { tokens } = answer
        && !is_without_thinking(vendor, &request.body)
    {
        let cap = cap(vendor, &request.body).unwrap_or(u64::MAX);
        thought = cap.min(*tokens);
        (text, end) = cut(text, end, cap - thought);
    }
    let mut tokens = state.records.tokens(&request.body, &text).with_input(seen).within(window);
    tokens.output += usize::try_from(thought).unwrap_or(usize::MAX);
    Some(Said { number: request.number, tokens, text, end })
}

/// A reply within the tokens that its cap leaves, four bytes each.
fn cut(text: String, end: End, left: u64) -> (String, End) {
    let most = usize::try_from(left.saturating_mul(4)).unwrap_or(usize::MAX);
    if text.len() <= most {
        return (text, end);
    }
    (text.chars().take(most).collect(), End::Length)
}

async fn complete(
    stream: &mut TcpStream,
    state: &State,
    (vendor, path): (Vendor, String),
    request: Request,
) -> io::Result<After> {
    let mut answer = {
        let mut script = state.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.next(&request)
    };
    while let Answer::Late { millis, then } = answer {
        let gone = tokio::time::timeout(Duration::from_millis(millis), caller_has_gone(stream));
        if gone.await.is_ok() {
            return Ok(After::Close);
        }
        answer = *then;
    }
    match answer {
        Answer::Hang => {
            caller_has_gone(stream).await;
            return Ok(After::Close);
        }
        Answer::Reset => {
            stream.set_zero_linger()?;
            return Ok(After::Close);
        }
        Answer::CutBody => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"choices\":")
                .await?;
            stream.flush().await?;
            return Ok(After::Close);
        }
        _ => {}
    }
    let said = say(state, &answer, &request);
    if let Some(said) = &said
        && vendor.is_streamed(&path, &request.body)
    {
        let events = vendor.events(&request.body, said);
        let data: Vec<Value> = events.iter().map(|event| vendor.recorded(event)).collect();
        state.exchanged(request.number, path, &request.body, (200, &json!({ "events": data })));
        let after = stream::send(stream, (vendor, events), &answer).await?;
        state.records.end(request.number, 200, answer.is_whole());
        return Ok(after);
    }
    let outgoing = match said {
        Some(said) => plain(vendor.reply(&request.body, &said)),
        None => refusal(vendor, &answer),
    };
    state.exchanged(request.number, path, &request.body, (outgoing.status, &outgoing.body));
    let after = send(stream, &outgoing).await?;
    state.records.end(request.number, outgoing.status, true);
    Ok(after)
}

/// Returns when the caller has closed its side. Callers do not pipeline.
pub(super) async fn caller_has_gone(stream: &TcpStream) {
    let mut one = [0];
    while stream.peek(&mut one).await.is_ok_and(|count| count > 0) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Answers that are no replies.
fn refusal(vendor: Vendor, answer: &Answer) -> Outgoing {
    match answer {
        Answer::Redirect { location } => Outgoing {
            status: 307,
            headers: vec![("location", location.clone())],
            body: Value::Null,
        },
        Answer::Status { status, retry_after, retry_after_ms, should_retry, code, message } => {
            let message = message.as_deref().unwrap_or("scripted");
            let (status, code) = (*status, code.as_deref());
            let mut outgoing =
                vendor.error(&Trouble { status, message, code, ..Trouble::default() });
            let should_retry = should_retry.map(|told| told.to_string());
            for (name, value) in [
                ("retry-after", retry_after),
                ("retry-after-ms", retry_after_ms),
                ("x-should-retry", &should_retry),
            ] {
                outgoing.headers.extend(value.clone().map(|value| (name, value)));
            }
            outgoing
        }
        Answer::QuotaSpent { id, seconds } => vendor.error(&Trouble {
            status: 429,
            message: "You exceeded your current quota, please check your plan and billing details.",
            quota: Some(SpentQuota { id, seconds: *seconds }),
            ..Trouble::default()
        }),
        _ => {
            let message = "the script makes no sense here";
            vendor.error(&Trouble { status: 500, message, ..Trouble::default() })
        }
    }
}

fn list(models: Vec<String>) -> Value {
    let data: Vec<Value> = models
        .into_iter()
        .map(|id: String| json!({"id": id, "object": "model", "created": 0, "owned_by": "us"}))
        .collect();
    json!({"object": "list", "data": data})
}

fn plain(body: Value) -> Outgoing {
    Outgoing { status: 200, headers: Vec::new(), body }
}

/// Sends a file; one that breaks off ends after its first line.
async fn send_lines(stream: &mut TcpStream, lines: &str, breaks: bool) -> io::Result<After> {
    let head = format!(
        "HTTP/1.1 200 Scripted\r\ncontent-type: application/octet-stream\r\ncontent-length: {}\r\n\r\n",
        lines.len()
    );
    stream.write_all(head.as_bytes()).await?;
    let first = lines.find('\n').map_or(lines.len(), |at| at + 1);
    let shown = if breaks { lines.get(..first).unwrap_or(lines) } else { lines };
    stream.write_all(shown.as_bytes()).await?;
    stream.flush().await?;
    Ok(if breaks { After::Close } else { After::Next })
}

async fn send(stream: &mut TcpStream, outgoing: &Outgoing) -> io::Result<After> {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", outgoing.status);
    for (name, value) in &outgoing.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = match &outgoing.body {
        Value::Null => String::new(),
        body => {
            head.push_str("content-type: application/json\r\n");
            body.to_string()
        }
    };
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.flush().await?;
    Ok(After::Next)
}
