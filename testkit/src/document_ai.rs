//! A scripted Google Document AI: `:process` of an OCR processor, and the token server.
//!
//! As strict as the real one about unknown fields, paths, tokens, 15 pages and 40 MB a call. The
//! text it "reads" follows from the sizes of the pictures, so that swapped pages or wrong offsets
//! show in the text. Replies have the dialect's traps: 64-bit numbers as strings, omitted zeros,
//! one text for all pages, tokens smaller than a word. Every exchange is recorded. Not implemented:
//! batch processing, anything but OCR.

mod check;
mod reply;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::post;
use futures::stream;
use serde::Serialize;
use serde_json::{Value, json};

pub use crate::pictures::Seen;
use crate::served::{Calls, Served, lock};
pub use reply::{Said, Straightened};

/// The token that is given out and asked for.
const TOKEN: &str = "ya29.of-the-stand-in";
/// Most bytes of a request: 40 MB as base64, and more.
const BODY_CAP: usize = 80 << 20;

/// The fault of a call.
#[derive(Debug, Clone)]
pub enum Trouble {
    /// A refusal, as `google.rpc.Status` in JSON.
    Refused {
        /// Status code of the HTTP response.
        status: u16,
        /// Name of the RPC status, e.g. `RESOURCE_EXHAUSTED`.
        code: &'static str,
        /// A header, and the delay of a `RetryInfo`.
        retry_after: Option<&'static str>,
        /// The message of the RPC status.
        message: &'static str,
        /// Reason of an `ErrorInfo`.
        reason: Option<&'static str>,
    },
    /// An answer of 200 whose document has an error of this code.
    Document(i32),
    /// An answer of 200 about one page fewer than were sent.
    PageLost,
    /// An answer of 200 that breaks off.
    Cut,
    /// No answer before the caller has gone.
    Silence,
    /// The right answer, after this many milliseconds.
    Late(u64),
}

impl Trouble {
    /// A refusal without details.
    pub fn refused(status: u16, code: &'static str) -> Self {
        Self::Refused { status, code, retry_after: None, message: "scripted", reason: None }
    }

    /// Over the quota, with the delay in a header.
    pub fn throttled(retry_after: Option<&'static str>) -> Self {
        let (status, code) = (429, "RESOURCE_EXHAUSTED");
        Self::Refused { status, code, retry_after, message: "Quota exceeded", reason: None }
    }
}

type Reads = Arc<dyn Fn(Seen) -> Said + Send + Sync>;

/// The behaviour of the stand-in.
#[derive(Clone)]
pub struct Script {
    troubles: VecDeque<Trouble>,
    reads: Reads,
}

impl Default for Script {
    fn default() -> Self {
        Self { troubles: VecDeque::new(), reads: Arc::new(Said::of_size) }
    }
}

impl Script {
    /// The next calls end like this, one after the other.
    #[must_use]
    pub fn troubled(mut self, troubles: impl IntoIterator<Item = Trouble>) -> Self {
        self.troubles.extend(troubles);
        self
    }

    /// Sets the text of a picture.
    #[must_use]
    pub fn reading(mut self, reads: impl Fn(Seen) -> Said + Send + Sync + 'static) -> Self {
        self.reads = Arc::new(reads);
        self
    }
}

/// A received call.
#[derive(Debug, Clone, Serialize)]
pub struct Call {
    /// The whole body of the request as JSON.
    pub request: Value,
    /// The answer; null if it is not JSON.
    pub reply: Value,
    /// The pictures that were sent.
    pub pages: Vec<Seen>,
    /// Status that was sent; 0 while or if none was.
    pub status: u16,
}

struct Desk {
    script: Mutex<Script>,
    calls: Calls<Call>,
}

/// A running server; it stops when this is dropped.
pub struct Server {
    served: Served,
    desk: Arc<Desk>,
}

impl Server {
    /// Starts on a free port of this machine.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start(script: Script) -> io::Result<Self> {
        let desk = Arc::new(Desk { script: Mutex::new(script), calls: Calls::default() });
        let router = Router::new()
            .route("/token", post(token))
            .fallback(process)
            .layer(axum::extract::DefaultBodyLimit::max(BODY_CAP))
            .with_state(Arc::clone(&desk));
        Ok(Self { served: Served::start(router).await?, desk })
    }

    /// The value for `ocr.document_ai.endpoint`.
    pub fn endpoint(&self) -> String {
        self.served.endpoint()
    }

    /// The key file of a service account whose tokens come from here; `private_key` is PEM (PKCS
    /// #8).
    pub fn key_file(&self, private_key: &str) -> String {
        json!({
            "type": "service_account",
            "project_id": "project-1",
            "private_key_id": "1",
            "private_key": private_key,
            "client_email": "reader@project-1.iam.gserviceaccount.com",
            "client_id": "1",
            "token_uri": format!("{}/token", self.served.endpoint()),
        })
        .to_string()
    }

    /// Replaces the script; calls that are being answered keep their answer.
    pub fn set(&self, script: Script) {
        *lock(&self.desk.script) = script;
    }

    /// Every call so far, in the order of arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.desk.calls.all()
    }

    /// The pages of all calls that were answered with 200, in the order of arrival.
    pub fn read(&self) -> Vec<Seen> {
        let calls = self.calls().into_iter().filter(|call| call.status == 200);
        calls.flat_map(|call| call.pages).collect()
    }

    /// Waits until `count` calls have arrived; `false` if they have not within `deadline`.
    pub async fn arrived(&self, count: usize, deadline: Duration) -> bool {
        self.desk.calls.arrived(count, deadline).await
    }
}

async fn token(body: Bytes) -> Response {
    let body = String::from_utf8_lossy(&body);
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer";
    if !body.contains(grant) || !body.contains("assertion=ey") {
        return json_answer(400, &json!({"error": "unsupported_grant_type"}), None);
    }
    let token = json!({"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"});
    json_answer(200, &token, None)
}

async fn process(
    State(desk): State<Arc<Desk>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let bearer = headers.get("authorization").and_then(|value| value.to_str().ok());
    if bearer != Some(&format!("Bearer {TOKEN}")) {
        return refused(401, "UNAUTHENTICATED", "Request had invalid credentials.", None, None);
    }
    if !check::is_process(uri.path()) {
        return refused(404, "NOT_FOUND", "Processor not found.", None, None);
    }
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let checked = check::request(&request);
    let pages = checked.as_ref().cloned().unwrap_or_default();
    let number = desk.arrive(request.clone(), &pages);
    let (trouble, reads) = {
        let mut script = lock(&desk.script);
        (script.troubles.pop_front(), Arc::clone(&script.reads))
    };
    // Rights and quotas come before the request is looked at.
    if let Some(Trouble::Refused { status, code, retry_after, message, reason }) = trouble {
        desk.end(number, status, Value::Null);
        return refused(status, code, message, retry_after, reason);
    }
    if let Err(wrong) = checked {
        desk.end(number, 400, Value::Null);
        return refused(400, "INVALID_ARGUMENT", &wrong, None, None);
    }
    let said: Vec<(Seen, Said)> = pages.iter().map(|seen| (*seen, reads(*seen))).collect();
    let whole = |said: &[(Seen, Said)]| reply::reply(&request, said);
    match trouble {
        Some(Trouble::Silence) => std::future::pending().await,
        Some(Trouble::Cut) => cut(&whole(&said)),
        Some(Trouble::Document(code)) => {
            let answer = json!({"document": {"error": {"code": code, "message": "scripted"}}});
            desk.answer(number, answer)
        }
        Some(Trouble::PageLost) => desk.answer(number, whole(said.get(1..).unwrap_or_default())),
        Some(Trouble::Late(millis)) => {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            desk.answer(number, whole(&said))
        }
        None | Some(Trouble::Refused { .. }) => desk.answer(number, whole(&said)),
    }
}

impl Desk {
    fn arrive(&self, request: Value, pages: &[Seen]) -> usize {
        self.calls.push(Call { request, reply: Value::Null, pages: pages.to_vec(), status: 0 })
    }

    fn end(&self, number: usize, status: u16, reply: Value) {
        self.calls.change(number, |call| (call.status, call.reply) = (status, reply));
    }

    fn answer(&self, number: usize, reply: Value) -> Response {
        let answer = json_answer(200, &reply, None);
        self.end(number, 200, reply);
        answer
    }
}

/// Builds a refusal: a `google.rpc.Status` in JSON.
fn refused(
    status: u16,
    code: &str,
    message: &str,
    retry_after: Option<&str>,
    reason: Option<&str>,
) -> Response {
    let mut details = Vec::new();
    if let Some(reason) = reason {
        let kind = "type.googleapis.com/google.rpc.ErrorInfo";
        details.push(json!({"@type": kind, "reason": reason, "domain": "googleapis.com"}));
    }
    if let Some(seconds) = retry_after {
        let kind = "type.googleapis.com/google.rpc.RetryInfo";
        details.push(json!({"@type": kind, "retryDelay": format!("{seconds}s")}));
    }
    let error = json!({"code": status, "message": message, "status": code, "details": details});
    json_answer(status, &json!({"error": error}), retry_after)
}

fn json_answer(status: u16, value: &Value, retry_after: Option<&str>) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT);
    let headers = response.headers_mut();
    headers.insert("content-type", axum::http::HeaderValue::from_static("application/json"));
    if let Some(value) = retry_after.and_then(|value| value.parse().ok()) {
        headers.insert("retry-after", value);
    }
    response
}

/// Half of an answer, then the connection is gone.
fn cut(value: &Value) -> Response {
    let text = value.to_string();
    let half = text.as_bytes().get(..text.len() / 2).unwrap_or_default().to_vec();
    let gone = io::Error::new(io::ErrorKind::ConnectionReset, "scripted");
    Response::new(Body::from_stream(stream::iter([Ok(Bytes::from(half)), Err(gone)])))
}
