//! A scripted Amazon Textract: text detection in a picture, and by a job in a file in S3.
//!
//! The protocol is AWS JSON 1.1. Requests are checked by the service model (`textract/2018-06-27`);
//! signatures are required, but not verified. A client token names the same job forever: a worker
//! that takes over relies on that. The text "read" from a picture follows from its size; a file's
//! content and the fields of an expense are scripted. Every exchange is recorded. Not implemented:
//! anything but text detection and `AnalyzeExpense`.

mod check;
mod reply;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};

pub use crate::pictures::Seen;
use crate::served::{Calls, Served, lock};

/// Most bytes of a request.
const BODY_CAP: usize = 32 << 20;

/// The operations that there are.
pub const DETECT: &str = "DetectDocumentText";
/// The operation that starts a job.
pub const START: &str = "StartDocumentTextDetection";
/// Asks for a job's result.
pub const GET: &str = "GetDocumentTextDetection";
/// Reads the fields of a picture.
pub const EXPENSE: &str = "AnalyzeExpense";

/// A call that is refused.
#[derive(Debug, Clone)]
pub struct Trouble {
    /// The operation that is refused.
    pub operation: &'static str,
    /// The error code, e.g. `ProvisionedThroughputExceededException`.
    pub code: &'static str,
    /// Status code of the HTTP response.
    pub status: u16,
}

/// A file in a bucket, and the job about it.
#[derive(Debug, Clone)]
pub struct File {
    /// Words of each line of each page.
    pub pages: Vec<Vec<String>>,
    /// How often the job is still running when it is asked for.
    pub running: usize,
    /// `SUCCEEDED`, `PARTIAL_SUCCESS` or `FAILED`.
    pub status: &'static str,
    /// Pages that could not be read.
    pub lost: Vec<u32>,
    /// Blocks in one answer.
    pub part: usize,
}

impl File {
    /// Pages that contain their number, read at once.
    pub fn of_pages(pages: u32) -> Self {
        Self {
            pages: (1..=pages)
                .map(|number| {
                    vec![format!("Seite {number} von {pages}"), format!("Zürich-{number}")]
                })
                .collect(),
            running: 0,
            status: "SUCCEEDED",
            lost: Vec::new(),
            part: 1000,
        }
    }
}

/// The behaviour of the stand-in.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// How the next calls end, each for its operation.
    pub troubles: VecDeque<Trouble>,
    /// Files by bucket and key.
    pub files: HashMap<(String, String), File>,
    /// A file in any other place.
    pub any_file: Option<File>,
    /// Confidence of every word, of 100; 0: 97.5.
    pub confidence: f64,
    /// Fields of every expense: sort and text.
    pub summary: Vec<(String, String)>,
    /// Its lines, each with fields of the same form.
    pub lines: Vec<Vec<(String, String)>>,
}

impl Script {
    /// Fields that are read of every picture: sort and text.
    #[must_use]
    pub fn with_summary(mut self, summary: &[(&str, &str)]) -> Self {
        self.summary = owned_fields(summary);
        self
    }

    /// A line that is read of every picture.
    #[must_use]
    pub fn with_line(mut self, line: &[(&str, &str)]) -> Self {
        self.lines.push(owned_fields(line));
        self
    }

    /// The next calls of an operation end like this.
    #[must_use]
    pub fn troubled(
        mut self,
        operation: &'static str,
        troubles: impl IntoIterator<Item = (&'static str, u16)>,
    ) -> Self {
        let troubles = troubles.into_iter();
        self.troubles.extend(troubles.map(|(code, status)| Trouble { operation, code, status }));
        self
    }

    /// Serves this file for every name.
    #[must_use]
    pub fn with_any_file(mut self, file: File) -> Self {
        self.any_file = Some(file);
        self
    }
}

fn owned_fields(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    fields.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

/// A received call and its answer.
#[derive(Debug, Clone, Serialize)]
pub struct Call {
    /// Name of the operation, without the service's prefix.
    pub operation: String,
    /// The body of the request as JSON.
    pub request: Value,
    /// The body of the answer as JSON.
    pub reply: Value,
    /// Status that was sent.
    pub status: u16,
}

struct Job {
    id: String,
    /// The request that started the job.
    asked: Value,
    file: File,
}

#[derive(Default)]
struct Jobs {
    by_token: HashMap<String, Job>,
    number: usize,
}

struct Desk {
    script: Mutex<Script>,
    jobs: Mutex<Jobs>,
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
        let desk = Arc::new(Desk {
            script: Mutex::new(script),
            jobs: Mutex::default(),
            calls: Calls::default(),
        });
        let router = Router::new()
            .fallback(serve)
            .layer(axum::extract::DefaultBodyLimit::max(BODY_CAP))
            .with_state(Arc::clone(&desk));
        Ok(Self { served: Served::start(router).await?, desk })
    }

    /// The value for `ocr.textract.endpoint`.
    pub fn endpoint(&self) -> String {
        self.served.endpoint()
    }

    /// Replaces the script; jobs go on as they were started.
    pub fn set(&self, script: Script) {
        *lock(&self.desk.script) = script;
    }

    /// Every call so far.
    pub fn calls(&self) -> Vec<Call> {
        self.desk.calls.all()
    }

    /// How many calls of an operation were answered with 200.
    pub fn answered(&self, operation: &str) -> usize {
        let calls = self.calls();
        calls.iter().filter(|call| call.operation == operation && call.status == 200).count()
    }

    /// How many jobs there are, however often they were started.
    pub fn jobs(&self) -> usize {
        lock(&self.desk.jobs).by_token.len()
    }

    /// Lets every job end at the next question.
    pub fn finish_jobs(&self) {
        for job in lock(&self.desk.jobs).by_token.values_mut() {
            job.file.running = 0;
        }
    }

    /// Waits until `count` calls have arrived; `false` if they have not within `deadline`.
    pub async fn arrived(&self, count: usize, deadline: Duration) -> bool {
        self.desk.calls.arrived(count, deadline).await
    }
}

/// A code of the service model and what goes wrong.
type Refused = (&'static str, String);

async fn serve(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Response {
    let signed =
        header_text(&headers, "authorization").unwrap_or_default().starts_with("AWS4-HMAC-SHA256 ");
    let target = header_text(&headers, "x-amz-target").unwrap_or_default();
    let operation = target.strip_prefix("Textract.").unwrap_or_default().to_owned();
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let trouble = {
        let mut script = lock(&desk.script);
        let troubles = &mut script.troubles;
        let at = troubles.iter().position(|trouble| trouble.operation == operation);
        at.and_then(|at| troubles.remove(at))
    };
    let (status, reply) = if !signed {
        (400, error("MissingAuthenticationTokenException", "Missing Authentication Token"))
    } else if let Some(Trouble { code, status, .. }) = trouble {
        (status, error(code, "scripted"))
    } else {
        match desk.answer(&operation, &request) {
            Ok(reply) => (200, reply),
            Err((code, message)) => (400, error(code, &message)),
        }
    };
    desk.calls.push(Call { operation, request, reply: reply.clone(), status });
    let mut response = Response::new(Body::from(reply.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT);
    let kind = HeaderValue::from_static("application/x-amz-json-1.1");
    response.headers_mut().insert("content-type", kind);
    response
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn error(code: &str, message: &str) -> Value {
    json!({"__type": code, "Message": message})
}

impl Desk {
    fn answer(&self, operation: &str, request: &Value) -> Result<Value, Refused> {
        let confidence = match lock(&self.script).confidence {
            some if some > 0.0 => some,
            _ => 97.5,
        };
        match operation {
            DETECT => {
                let Seen { width, height } = check::picture(request)?;
                let lines = [format!("Größe {width} x {height}"), format!("INV-{width} Zürich")];
                Ok(reply::detected(&lines, confidence))
            }
            EXPENSE => {
                check::picture(request)?;
                let script = lock(&self.script);
                Ok(reply::expense(&script.summary, &script.lines, confidence))
            }
            START => self.start(request),
            GET => self.get(request, confidence),
            _ => Err(("UnknownOperationException", "there is no such operation".to_owned())),
        }
    }

    fn start(&self, request: &Value) -> Result<Value, Refused> {
        let check::Start { bucket, key, token } = check::start(request)?;
        let file = {
            let script = lock(&self.script);
            script.files.get(&(bucket, key)).or(script.any_file.as_ref()).cloned()
        };
        let mut jobs = lock(&self.jobs);
        if let Some(job) = jobs.by_token.get(&token) {
            return match job.asked == *request {
                true => Ok(json!({"JobId": job.id})),
                false => Err(("IdempotentParameterMismatchException", "another job".to_owned())),
            };
        }
        let unreachable = "Unable to get object metadata from S3. Check object key, region and/or \
                           access permissions.";
        let file = file.ok_or(("InvalidS3ObjectException", unreachable.to_owned()))?;
        jobs.number += 1;
        let id = format!("{:064x}", jobs.number);
        jobs.by_token.insert(token, Job { id: id.clone(), asked: request.clone(), file });
        Ok(json!({"JobId": id}))
    }

    fn get(&self, request: &Value, confidence: f64) -> Result<Value, Refused> {
        let check::Get { job, most, from } = check::get(request)?;
        let mut jobs = lock(&self.jobs);
        let found = jobs.by_token.values_mut().find(|known| known.id == job);
        let file = &mut found.ok_or(("InvalidJobIdException", "no such job".to_owned()))?.file;
        if file.running > 0 {
            file.running -= 1;
            return Ok(json!({"JobStatus": "IN_PROGRESS"}));
        }
        Ok(reply::job(file, confidence, from, most.min(file.part)))
    }
}
