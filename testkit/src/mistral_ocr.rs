//! A scripted Mistral OCR: `POST /v1/ocr` of pictures, and the list of models (types of `PyPI`'s
//! mistralai 3.7).
//!
//! As strict as the real one about path, key, fields and size. The text it "reads" follows from the
//! size of the picture. Not implemented: addresses and files as documents, annotations, confidences.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::pictures::{Seen, seen};
use crate::served::{Served, lock};

/// The key that is asked for.
pub const KEY: &str = "key-of-the-stand-in";
/// The one model that it serves.
pub const MODEL: &str = "mistral-ocr-2512";
/// Most bytes of a document (docs.mistral.ai, Document AI: 50 MB).
const MAX_DOCUMENT_BYTES: usize = 50_000_000;
/// Most bytes of a body that are read to see whether the document is too large.
const BODY_CAP: usize = 100 << 20;
/// The fields of `OCRRequest`.
const KNOWN: [&str; 14] = [
    "model",
    "document",
    "pages",
    "include_image_base64",
    "image_limit",
    "image_min_size",
    "bbox_annotation_format",
    "document_annotation_format",
    "document_annotation_prompt",
    "table_format",
    "extract_header",
    "extract_footer",
    "include_blocks",
    "confidence_scores_granularity",
];

/// The Markdown of a picture.
type ReadPicture = dyn Fn(Seen) -> String + Send;

/// One exchange that brought a page.
#[derive(Debug, Clone)]
pub struct PageExchange {
    /// Body of the request.
    pub request: Value,
    /// Body of the response.
    pub reply: Value,
}

struct Desk {
    refusals: VecDeque<(u16, Option<&'static str>)>,
    calls: usize,
    is_closed: bool,
    exchanges: Vec<PageExchange>,
    read: Box<ReadPicture>,
}

/// A running server; it stops when this is dropped.
pub struct Server {
    served: Served,
    desk: Arc<Mutex<Desk>>,
}

impl Server {
    /// Starts on a free port of this machine, with the Markdown of each picture.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start(read: impl Fn(Seen) -> String + Send + 'static) -> io::Result<Self> {
        let desk = Arc::new(Mutex::new(Desk {
            refusals: VecDeque::new(),
            calls: 0,
            is_closed: false,
            exchanges: Vec::new(),
            read: Box::new(read),
        }));
        let router = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::max(BODY_CAP))
            .with_state(Arc::clone(&desk));
        Ok(Self { served: Served::start(router).await?, desk })
    }

    /// The value for `ocr.vision.base_url`.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.served.endpoint())
    }

    /// The next calls are refused with these statuses, and this header `retry-after`.
    pub fn refuse(&self, refusals: impl IntoIterator<Item = (u16, Option<&'static str>)>) {
        lock(&self.desk).refusals = refusals.into_iter().collect();
    }

    /// No key is taken from now on.
    pub fn close(&self) {
        lock(&self.desk).is_closed = true;
    }

    /// How many calls asked for a page.
    pub fn calls(&self) -> usize {
        lock(&self.desk).calls
    }

    /// The exchanges that brought a page, in the order of arrival.
    pub fn exchanges(&self) -> Vec<PageExchange> {
        lock(&self.desk).exchanges.clone()
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
    let asks = (method == Method::POST, uri.path()) == (true, "/v1/ocr");
    desk.calls += usize::from(asks);
    let key = headers.get("authorization").and_then(|value| value.to_str().ok());
    if desk.is_closed || key != Some(&format!("Bearer {KEY}")) {
        return refused(401, "Unauthorized", None);
    }
    if asks && let Some((status, retry_after)) = desk.refusals.pop_front() {
        return refused(status, "scripted", retry_after);
    }
    match (asks, uri.path()) {
        (true, _) => desk.read_page(&body),
        (false, "/v1/models") => {
            json_answer(200, &json!({"object": "list", "data": [{"id": MODEL, "object": "model"}]}))
        }
        _ => refused(404, "no Route matched with those values", None),
    }
}

impl Desk {
    fn read_page(&mut self, body: &Bytes) -> Response {
        let Ok(request) = serde_json::from_slice::<Value>(body) else {
            return invalid("body", "JSON decode error");
        };
        let fields = request.as_object().into_iter().flat_map(|fields| fields.keys());
        if let Some(unknown) = fields.into_iter().find(|key| !KNOWN.contains(&key.as_str())) {
            return invalid(unknown, "Extra inputs are not permitted");
        }
        if request.get("model") != Some(&json!(MODEL)) {
            return refused(400, "Invalid model", None);
        }
        let document = match picture_of(&request) {
            Ok(document) => document,
            Err(PictureFault::Form(field, message)) => return invalid(field, message),
            Err(PictureFault::TooLarge) => return refused(413, "document too large", None),
        };
        let Some(&[page]) = seen(&document).as_deref() else {
            return refused(422, "the document could not be read", None);
        };
        let reply = json!({
            "pages": [{
                "index": 0, "markdown": (self.read)(page), "images": [], "tables": [],
                "hyperlinks": [], "header": null, "footer": null,
                "dimensions": {"dpi": 200, "height": page.height, "width": page.width},
            }],
            "model": MODEL,
            "document_annotation": null,
            "usage_info": {"pages_processed": 1, "doc_size_bytes": document.len()},
        });
        self.exchanges.push(PageExchange { request, reply: reply.clone() });
        json_answer(200, &reply)
    }
}

/// The reason why a request has no picture.
enum PictureFault {
    /// A field that breaks the contract, and how.
    Form(&'static str, &'static str),
    TooLarge,
}

/// The bytes of the picture in a request.
fn picture_of(request: &Value) -> Result<Vec<u8>, PictureFault> {
    let document = request.get("document").unwrap_or(&Value::Null);
    if document.get("type") != Some(&json!("image_url")) {
        let message = "Input tag does not match any of the expected tags";
        return Err(PictureFault::Form("document", message));
    }
    let url = document.get("image_url").and_then(Value::as_str).unwrap_or_default();
    let picture = url.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,"));
    let bytes = picture.and_then(|(_, data)| STANDARD.decode(data).ok());
    let bytes = bytes.ok_or(PictureFault::Form("image_url", "an address would be fetched"))?;
    if bytes.len() > MAX_DOCUMENT_BYTES { Err(PictureFault::TooLarge) } else { Ok(bytes) }
}

/// A body that breaks the contract, in the form of a validation error.
fn invalid(field: &str, message: &str) -> Response {
    let detail =
        json!({"detail": [{"type": "value_error", "loc": ["body", field], "msg": message}]});
    json_answer(422, &detail)
}

fn refused(status: u16, message: &str, retry_after: Option<&str>) -> Response {
    let error = json!({
        "object": "error", "message": message, "type": "invalid_request_error", "param": null,
        "code": null,
    });
    let mut response = json_answer(status, &error);
    let retry_after = retry_after.and_then(|value| HeaderValue::from_str(value).ok());
    if let Some(value) = retry_after {
        response.headers_mut().insert("retry-after", value);
    }
    response
}

fn json_answer(status: u16, value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT);
    response
}
