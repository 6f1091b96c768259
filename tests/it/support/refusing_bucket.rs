//! A read-only bucket with chosen refusals: by prefix, and by the object's name for faults of that
//! object alone.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::any;
use tokio::task::JoinHandle;

#[derive(Default)]
struct Contents {
    objects: BTreeMap<String, Bytes>,
    refused: BTreeSet<String>,
}

type Shared = Arc<Mutex<Contents>>;

/// A running server, gone when this is dropped.
pub(crate) struct RefusingBucket {
    contents: Shared,
    port: u16,
    task: JoinHandle<()>,
}

impl Drop for RefusingBucket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RefusingBucket {
    pub(crate) async fn start() -> Self {
        let contents = Shared::default();
        let router =
            Router::new().route("/{bucket}/{*key}", any(answer)).with_state(Arc::clone(&contents));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { contents, port, task }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn put(&self, key: &str, text: &'static str) {
        let bytes = Bytes::from_static(text.as_bytes());
        self.contents.lock().unwrap().objects.insert(key.to_owned(), bytes);
    }

    /// Refuses everything below this prefix, whether it is there or not.
    pub(crate) fn refuse(&self, prefix: &str) {
        self.contents.lock().unwrap().refused.insert(prefix.to_owned());
    }

    pub(crate) fn allow(&self, prefix: &str) {
        self.contents.lock().unwrap().refused.remove(prefix);
    }
}

async fn answer(
    State(contents): State<Shared>,
    Path((_, key)): Path<(String, String)>,
    method: Method,
    body: Bytes,
) -> Response {
    let mut contents = contents.lock().unwrap();
    let is_head = method == Method::HEAD;
    let refusal = |status: StatusCode, code: &str| {
        let text = format!("<Error><Code>{code}</Code><Message>no</Message></Error>");
        // S3 sends no body to HEAD.
        let text = if is_head { String::new() } else { text };
        Response::builder().status(status).body(Body::from(text)).unwrap()
    };
    if contents.refused.iter().any(|prefix| key.starts_with(prefix)) {
        return refusal(StatusCode::FORBIDDEN, "AccessDenied");
    }
    match (key.as_str(), is_head) {
        ("documents/foreign-key.pdf", _) => {
            return refusal(StatusCode::FORBIDDEN, "AccessDenied");
        }
        ("documents/customer-key.pdf", _) => {
            return refusal(StatusCode::BAD_REQUEST, "InvalidRequest");
        }
        ("documents/archived.pdf", false) => {
            return refusal(StatusCode::FORBIDDEN, "InvalidObjectState");
        }
        ("documents/busy.pdf", _) => {
            return refusal(StatusCode::CONFLICT, "ConditionalRequestConflict");
        }
        _ => {}
    }
    if method == Method::PUT {
        contents.objects.insert(key, body);
        return Response::builder().header("etag", "\"e\"").body(Body::empty()).unwrap();
    }
    match contents.objects.get(&key) {
        None => refusal(StatusCode::NOT_FOUND, "NoSuchKey"),
        Some(bytes) => {
            let found = Response::builder().header("etag", "\"e\"");
            found.body(Body::from(bytes.clone())).unwrap()
        }
    }
}
