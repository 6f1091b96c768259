//! A scripted Azure AI Document Intelligence: `analyze` of a prebuilt model, its operations, and the
//! model's description (version 2024-11-30 of the REST API).
//!
//! As strict as the real one about paths, version, key and what is sent. The text it "reads" follows
//! from the sizes of the pictures. Replies have the dialect's traps: one text for all pages, words and
//! lines by spans of code points, inches for the pages of a PDF. An analysis runs for a while, and its
//! result is kept until it is removed. Not implemented: add-ons, batches, classifiers.
#![expect(clippy::indexing_slicing, reason = "a key of a JSON object made here")]

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use serde_json::{Value, json};

pub use crate::pictures::Seen;
use crate::pictures::seen;
use crate::served::{Served, lock};

/// The key that is asked for.
pub const KEY: &str = "key-of-the-stand-in";
const VERSION: &str = "api-version=2024-11-30";
const MODELS: &str = "/documentintelligence/documentModels/";
/// Most bytes of a document, and of the pixels of a picture's side.
const BODY_CAP: usize = 500 << 20;
const SIDES: std::ops::RangeInclusive<u32> = 50..=10_000;
/// How often an analysis is asked for before it has ended.
const RUNNING: usize = 2;

/// A refusal of the next call that begins an analysis or asks about the model.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    /// Status code of the HTTP response.
    pub status: u16,
    /// `error.code` of the body.
    pub code: &'static str,
    /// The header `retry-after`.
    pub retry_after: Option<&'static str>,
}

/// A call and its answer.
#[derive(Debug, Clone)]
pub struct AnalysisExchange {
    /// Method of the request.
    pub method: String,
    /// Path of the request.
    pub path: String,
    /// Query of the request.
    pub query: String,
    /// The header `content-type` of the request.
    pub content_type: Option<String>,
    /// Status code of the response.
    pub status: u16,
    /// The header `operation-location` of the response.
    pub operation_location: Option<String>,
    /// Body of the response; null: there is none.
    pub reply: Value,
}

/// An answer before it is sent.
struct ScriptedAnswer {
    status: u16,
    body: Value,
    retry_after: Option<&'static str>,
    operation_location: Option<String>,
}

#[derive(Default)]
struct Desk {
    exchanges: Vec<AnalysisExchange>,
    refusals: VecDeque<Refusal>,
    /// Analyses whose end is a failure with this code.
    failures: VecDeque<&'static str>,
    /// Questions about analyses that are answered with this status.
    busy: VecDeque<u16>,
    analyses: usize,
    read: Vec<Seen>,
    operations: BTreeMap<usize, Operation>,
}

struct Operation {
    asked: usize,
    result: Result<Value, &'static str>,
}

/// A running server; it stops when this is dropped.
pub struct Server {
    served: Served,
    desk: Arc<Mutex<Desk>>,
}

impl Server {
    /// Starts on a free port of this machine.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start() -> io::Result<Self> {
        let desk = Arc::<Mutex<Desk>>::default();
        let router = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::max(BODY_CAP))
            .with_state(Arc::clone(&desk));
        Ok(Self { served: Served::start(router).await?, desk })
    }

    /// The value for `ocr.document_intelligence.endpoint`.
    pub fn endpoint(&self) -> String {
        self.served.endpoint()
    }

    /// The next calls are refused like this.
    pub fn refuse(&self, refusals: impl IntoIterator<Item = Refusal>) {
        lock(&self.desk).refusals = refusals.into_iter().collect();
    }

    /// The next analyses begin and fail with these codes.
    pub fn fail_analyses(&self, codes: impl IntoIterator<Item = &'static str>) {
        lock(&self.desk).failures = codes.into_iter().collect();
    }

    /// The next questions about running analyses are answered with these statuses.
    pub fn be_busy(&self, statuses: impl IntoIterator<Item = u16>) {
        lock(&self.desk).busy = statuses.into_iter().collect();
    }

    /// How many calls wanted to begin an analysis.
    pub fn analyses(&self) -> usize {
        lock(&self.desk).analyses
    }

    /// The pages that were analysed, in the order of arrival.
    pub fn read(&self) -> Vec<Seen> {
        lock(&self.desk).read.clone()
    }

    /// Every call with the right key, in the order of arrival.
    pub fn exchanges(&self) -> Vec<AnalysisExchange> {
        lock(&self.desk).exchanges.clone()
    }

    /// How many results are kept.
    pub fn kept_results(&self) -> usize {
        lock(&self.desk).operations.len()
    }
}

async fn answer(
    State(desk): State<Arc<Mutex<Desk>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut desk = lock(&desk);
    if header_text(&headers, "ocp-apim-subscription-key") != Some(KEY) {
        return refused(401, "401", None).into_response();
    }
    let answered = desk.answer_call(&method, &uri, &headers, &body);
    desk.exchanges.push(AnalysisExchange {
        method: method.to_string(),
        path: uri.path().to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        content_type: header_text(&headers, "content-type").map(str::to_owned),
        status: answered.status,
        operation_location: answered.operation_location.clone(),
        reply: answered.body.clone(),
    });
    answered.into_response()
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

impl Desk {
    fn answer_call(
        &mut self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> ScriptedAnswer {
        let query = uri.query().unwrap_or_default();
        let model = uri.path().strip_prefix(MODELS).unwrap_or_default();
        if !query.split('&').any(|part| part == VERSION) || !model.starts_with("prebuilt-read") {
            return refused(404, "NotFound", None);
        }
        let rest = model.strip_prefix("prebuilt-read").unwrap_or_default();
        if let Some(id) = rest.strip_prefix("/analyzeResults/").and_then(|id| id.parse().ok()) {
            return self.answer_operation(method, id);
        }
        let begins = *method == Method::POST && rest == ":analyze";
        self.analyses += usize::from(begins);
        if let Some(Refusal { status, code, retry_after }) = self.refusals.pop_front() {
            return refused(status, code, retry_after);
        }
        if begins {
            return self.begin(uri, headers, body);
        }
        if *method != Method::GET || !rest.is_empty() {
            return refused(404, "NotFound", None);
        }
        let described =
            json!({"modelId": "prebuilt-read", "createdDateTime": "2024-11-30T00:00:00Z"});
        json_answer(200, described)
    }

    fn begin(&mut self, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> ScriptedAnswer {
        let kind = header_text(headers, "content-type");
        let pages = seen(body).unwrap_or_default();
        let is_pdf = kind == Some("application/pdf");
        let is_known = is_pdf || matches!(kind, Some("image/png" | "image/jpeg"));
        let fits =
            pages.iter().all(|page| SIDES.contains(&page.width) && SIDES.contains(&page.height));
        if !is_known || pages.is_empty() || !fits || is_pdf != body.starts_with(b"%PDF-") {
            return refused(400, "InvalidRequest", None);
        }
        if !uri.query().unwrap_or_default().contains("stringIndexType=unicodeCodePoint") {
            return refused(400, "InvalidArgument", None);
        }
        let id = self.analyses;
        let result = match self.failures.pop_front() {
            Some(code) => Err(code),
            None => Ok(result(&pages, is_pdf)),
        };
        if result.is_ok() {
            self.read.extend(pages);
        }
        self.operations.insert(id, Operation { asked: 0, result });
        let host = header_text(headers, "host").unwrap_or_default();
        let place = format!("http://{host}{MODELS}prebuilt-read/analyzeResults/{id}?{VERSION}");
        ScriptedAnswer { operation_location: Some(place), ..json_answer(202, Value::Null) }
    }

    fn answer_operation(&mut self, method: &Method, id: usize) -> ScriptedAnswer {
        if *method == Method::DELETE {
            self.operations.remove(&id);
            return json_answer(204, Value::Null);
        }
        if let Some(status) = self.busy.pop_front() {
            return refused(status, "429", Some("1"));
        }
        let Some(operation) = self.operations.get_mut(&id) else {
            return refused(404, "NotFound", None);
        };
        operation.asked += 1;
        let mut body = json!({
            "createdDateTime": "2026-11-01T00:00:00Z", "lastUpdatedDateTime": "2026-11-01T00:00:01Z",
        });
        match &operation.result {
            _ if operation.asked < RUNNING => body["status"] = json!("running"),
            Ok(result) => {
                body["status"] = json!("succeeded");
                body["analyzeResult"] = result.clone();
            }
            Err(code) => {
                body["status"] = json!("failed");
                body["error"] = json!({"code": code, "message": "scripted"});
            }
        }
        json_answer(200, body)
    }
}

/// The lines that are read of a picture, with letters of one to four bytes.
pub fn lines_of(page: Seen) -> [String; 2] {
    let Seen { width, height } = page;
    [format!("Größe {width} x {height}"), format!("Rechnung INV-{width}-𝟚 für Zürich")]
}

fn result(pages: &[Seen], is_pdf: bool) -> Value {
    let mut text = String::new();
    let mut shown = Vec::new();
    for (number, page) in (1..).zip(pages) {
        shown.push(page_value(number, *page, is_pdf, &mut text));
    }
    json!({
        "apiVersion": "2024-11-30", "modelId": "prebuilt-read",
        "stringIndexType": "unicodeCodePoint", "content": text, "pages": shown,
        "styles": [], "languages": [],
    })
}

/// A page; the text of all pages grows by its own.
fn page_value(number: u32, page: Seen, is_pdf: bool, text: &mut String) -> Value {
    // A page of our PDFs has 72 points for an inch of pixels.
    let unit = if is_pdf { 72.0 } else { 1.0 };
    let (width, height) = (f64::from(page.width) / unit, f64::from(page.height) / unit);
    let (mut words, mut lines) = (Vec::new(), Vec::new());
    for (row, line) in (0_u32..).zip(lines_of(page)) {
        let start = text.chars().count();
        for (column, word) in (0_u32..).zip(line.split(' ')) {
            let offset = text.chars().count();
            text.push_str(word);
            text.push(' ');
            let (left, top) = (0.1 + 0.12 * f64::from(column), 0.1 + 0.03 * f64::from(row));
            let corners =
                [(left, top), (left + 0.1, top), (left + 0.1, top + 0.02), (left, top + 0.02)];
            let polygon: Vec<f64> =
                corners.iter().flat_map(|(x, y)| [x * width, y * height]).collect();
            let span = json!({"offset": offset, "length": word.chars().count()});
            words.push(json!({
                "content": word, "polygon": polygon, "confidence": 0.96, "span": span,
            }));
        }
        let length = text.chars().count() - start;
        let polygon = [0.0, 0.0, width, 0.0, width, height, 0.0, height];
        lines.push(json!({
            "content": line, "polygon": polygon,
            "spans": [{"offset": start, "length": length}],
        }));
    }
    json!({
        "pageNumber": number, "angle": 0, "width": width, "height": height,
        "unit": if is_pdf { "inch" } else { "pixel" }, "words": words, "lines": lines, "spans": [],
    })
}

fn refused(status: u16, code: &str, retry_after: Option<&'static str>) -> ScriptedAnswer {
    let error = json!({"error": {"code": code, "message": "scripted",
        "innererror": {"code": code, "message": "scripted"}}});
    ScriptedAnswer { retry_after, ..json_answer(status, error) }
}

fn json_answer(status: u16, body: Value) -> ScriptedAnswer {
    ScriptedAnswer { status, body, retry_after: None, operation_location: None }
}

impl ScriptedAnswer {
    fn into_response(self) -> Response {
        let body = if self.body.is_null() { String::new() } else { self.body.to_string() };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::IM_A_TEAPOT);
        let headers = [
            ("retry-after", self.retry_after.map(str::to_owned)),
            ("operation-location", self.operation_location),
        ];
        for (name, value) in headers {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}
