//! A collector that stores received spans (OTLP over HTTP, protobuf, path `/v1/traces`).
//!
//! Strict: another path, method or content type is refused, and so is an invalid body. Not
//! implemented: metrics, logs, compression, partial success.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use prost::Message;

use crate::served::Served;

/// A span as it arrived; ids in hex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Id of the trace, 32 hex digits.
    pub trace_id: String,
    /// Id of the span, 16 hex digits.
    pub span_id: String,
    /// Id of the parent span; empty: this is a root.
    pub parent_id: String,
    /// The name of the span.
    pub name: String,
    /// The protocol's number: 1 internal, 3 client, 4 producer, 5 consumer.
    pub kind: i32,
    /// The start, in nanoseconds since 1970.
    pub start: u64,
    /// The end, in nanoseconds since 1970.
    pub end: u64,
    /// Texts as they are, everything else as text.
    pub attributes: BTreeMap<String, String>,
    /// The protocol's number: 2 error.
    pub status: i32,
    /// Attributes of who sent it.
    pub resource: BTreeMap<String, String>,
}

type Kept = Arc<Mutex<Vec<Span>>>;

/// A running collector; it stops when this is dropped.
pub struct Collector {
    served: Served,
    kept: Kept,
}

impl Collector {
    /// Starts on a free port of this machine.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start() -> io::Result<Self> {
        let kept = Kept::default();
        let router = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&kept));
        Ok(Self { served: Served::start(router).await?, kept })
    }

    /// The value for `telemetry.otlp_endpoint`.
    pub fn endpoint(&self) -> String {
        self.served.endpoint()
    }

    /// Every span so far, in the order of arrival.
    pub fn spans(&self) -> Vec<Span> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn take(State(kept): State<Kept>, headers: HeaderMap, body: Bytes) -> (StatusCode, Vec<u8>) {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if kind != Some("application/x-protobuf") {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, Vec::new());
    }
    let Ok(request) = ExportTraceServiceRequest::decode(body) else {
        return (StatusCode::BAD_REQUEST, Vec::new());
    };
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    for of_resource in request.resource_spans {
        let resource = of_resource.resource.map(|resource| attributes(resource.attributes));
        let resource = resource.unwrap_or_default();
        let spans = of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        kept.extend(spans.map(|span| Span {
            trace_id: hex(&span.trace_id),
            span_id: hex(&span.span_id),
            parent_id: hex(&span.parent_span_id),
            name: span.name,
            kind: span.kind,
            start: span.start_time_unix_nano,
            end: span.end_time_unix_nano,
            attributes: attributes(span.attributes),
            status: span.status.map_or(0, |status| status.code),
            resource: resource.clone(),
        }));
    }
    (StatusCode::OK, ExportTraceServiceResponse::default().encode_to_vec())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes(pairs: Vec<KeyValue>) -> BTreeMap<String, String> {
    let pair = |pair: KeyValue| Some((pair.key, value_text(pair.value?.value?)));
    pairs.into_iter().filter_map(pair).collect()
}

fn value_text(value: Value) -> String {
    match value {
        Value::StringValue(text) => text,
        Value::BoolValue(is) => is.to_string(),
        Value::IntValue(number) => number.to_string(),
        Value::DoubleValue(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}
