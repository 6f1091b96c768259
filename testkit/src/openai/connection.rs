//! One connection: HTTP/1.1 by hand, request after request.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::State;
use super::check;
use super::script::{Answer, Request};

/// Most bytes of a head and of a body.
const HEAD_CAP: usize = 64 << 10;
const BODY_CAP: usize = 64 << 20;

struct Incoming {
    method: String,
    path: String,
    authorization: Option<String>,
    body: Vec<u8>,
}

struct Outgoing {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

/// Whether the connection can carry another request.
#[derive(PartialEq, Eq)]
enum After {
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
    let header = |name: &str| {
        head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let length = header("content-length").and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
    if length > BODY_CAP {
        return Ok(None);
    }
    while rest.len() < length {
        if stream.read_buf(rest).await? == 0 {
            return Ok(None);
        }
    }
    let body = rest.drain(..length).collect();
    Ok(Some(Incoming { method, path, authorization: header("authorization"), body }))
}

async fn answer(stream: &mut TcpStream, incoming: &Incoming, state: &State) -> io::Result<After> {
    let (key, models, limit) = {
        let script = state.script.lock().unwrap_or_else(PoisonError::into_inner);
        (script.api_key.clone(), script.models.clone(), script.limit)
    };
    if let Some(key) = key
        && incoming.authorization.as_deref() != Some(&format!("Bearer {key}"))
    {
        return send(stream, &error(401, "Incorrect API key", None, Some("invalid_api_key"))).await;
    }
    match (incoming.method.as_str(), incoming.path.as_str()) {
        ("GET", "/v1/models") => send(stream, &list(models)).await,
        ("GET", "/_calls") => send(stream, &json_body(200, &json!(state.records.all()))).await,
        ("POST", "/v1/chat/completions") => {
            let Ok(body) = serde_json::from_slice::<Value>(&incoming.body) else {
                return send(stream, &error(400, "We could not parse the JSON body", None, None))
                    .await;
            };
            let number = state.records.arrive(&body);
            if let Err((param, wrong)) = check::request(&body, limit) {
                state.records.end(number, 400, true);
                let code = Some("unsupported_parameter");
                return send(stream, &error(400, &wrong, Some(param), code)).await;
            }
            complete(stream, state, Request { body, number }).await
        }
        _ => send(stream, &error(404, "Invalid URL", None, None)).await,
    }
}

async fn complete(stream: &mut TcpStream, state: &State, request: Request) -> io::Result<After> {
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
            Ok(After::Close)
        }
        Answer::Reset => {
            stream.set_zero_linger()?;
            Ok(After::Close)
        }
        Answer::CutBody => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"choices\":")
                .await?;
            stream.flush().await?;
            Ok(After::Close)
        }
        answer => {
            let outgoing = outgoing(&answer, &request);
            let after = send(stream, &outgoing).await?;
            state.records.end(request.number, outgoing.status, true);
            Ok(after)
        }
    }
}

/// Returns when the caller has closed its side. Callers do not pipeline.
async fn caller_has_gone(stream: &TcpStream) {
    let mut one = [0];
    while stream.peek(&mut one).await.is_ok_and(|count| count > 0) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn outgoing(answer: &Answer, request: &Request) -> Outgoing {
    if let Some((text, stop)) = answer.reply(request) {
        return json_body(200, &completion(request, Some(&text), None, stop));
    }
    match answer {
        Answer::Refusal => {
            let declined = Some("I'm sorry, I cannot help with that request.");
            json_body(200, &completion(request, None, declined, "stop"))
        }
        Answer::Redirect { location } => Outgoing {
            status: 307,
            headers: vec![("location", location.clone())],
            body: Vec::new(),
        },
        Answer::Status { status, retry_after, retry_after_ms, should_retry, code, message } => {
            let words = message.as_deref().unwrap_or("scripted");
            let mut outgoing = error(*status, words, None, code.as_deref());
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
        _ => error(500, "the script makes no sense here", None, None),
    }
}

/// Every field that the contract requires is there, `logprobs` and `refusal` as null.
fn completion(request: &Request, text: Option<&str>, refusal: Option<&str>, stop: &str) -> Value {
    let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let messages = request.body.get("messages").map(Value::to_string).unwrap_or_default();
    let (input, output) = (messages.len() / 4, text.unwrap_or_default().len() / 4);
    json!({
        "id": format!("chatcmpl-{}", request.number),
        "object": "chat.completion",
        "created": created,
        "model": request.body.get("model"),
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": refusal},
            "logprobs": null,
            "finish_reason": stop,
        }],
        "usage": {
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        },
    })
}

fn list(models: Option<Vec<String>>) -> Outgoing {
    let Some(models) = models else { return error(404, "Invalid URL", None, None) };
    let entry = |id: String| json!({"id": id, "object": "model", "created": 0, "owned_by": "us"});
    let data: Vec<Value> = models.into_iter().map(entry).collect();
    json_body(200, &json!({"object": "list", "data": data}))
}

fn error(status: u16, message: &str, param: Option<&str>, code: Option<&str>) -> Outgoing {
    let kind = if status >= 500 { "server_error" } else { "invalid_request_error" };
    let error = json!({"message": message, "type": kind, "param": param, "code": code});
    json_body(status, &json!({"error": error}))
}

fn json_body(status: u16, value: &Value) -> Outgoing {
    Outgoing {
        status,
        headers: vec![("content-type", "application/json".to_owned())],
        body: value.to_string().into_bytes(),
    }
}

async fn send(stream: &mut TcpStream, outgoing: &Outgoing) -> io::Result<After> {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", outgoing.status);
    for (name, value) in &outgoing.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", outgoing.body.len()));
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&outgoing.body);
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    Ok(After::Next)
}
