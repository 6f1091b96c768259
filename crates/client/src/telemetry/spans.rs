//! Every span and attribute that goes into a trace, in one file; nothing else names one.
//!
//! Names and attributes follow OpenTelemetry's semantic conventions for messaging and `gen_ai`;
//! what they have no word for begins with `docmill.`. Ids, codes, counts and names of models only:
//! never prompts, replies or anything a document says. Without a collector every function here
//! costs next to nothing: the target is off in the log's filter, so no span is made.

use std::collections::HashMap;
use std::time::{Instant, SystemTime};

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{SpanKind, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue, global};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::{Span, field, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::traces::SCOPE;
use docmill_core::config::QueueDestination;
use docmill_core::model::{IngestionId, IngestionStage};

/// Tells our spans from those of libraries, and from the ones that log lines belong to.
pub const TARGET: &str = "trace";
/// The header of W3C Trace Context, and the name of the message attribute.
const HEADER: &str = "traceparent";

/// A message as its span shows it.
#[derive(Debug, Clone, Copy)]
pub struct TracedMessage<'a> {
    /// The queue it was received from.
    pub from: &'a QueueDestination,
    /// The queue's id of the message.
    pub id: &'a str,
    /// How often it was received.
    pub receive_count: u32,
    /// The sender's trace, in the form of W3C Trace Context.
    pub traceparent: Option<&'a str>,
}

/// An attempt as its span shows it.
#[derive(Clone, Copy)]
pub struct TracedAttempt<'a> {
    /// The ingestion being processed.
    pub ingestion: IngestionId,
    /// The document, or group of documents.
    pub document: &'a dyn std::fmt::Display,
    /// Which attempt it is, from 1.
    pub attempt: u32,
}

/// Span of sending one message.
pub fn send_span(to: &QueueDestination) -> Span {
    info_span!(
        target: TARGET,
        "send",
        otel.name = format!("send {}", to.name),
        otel.kind = "producer",
        messaging.system = to.system,
        messaging.operation.name = "send",
        messaging.operation.type = "send",
        messaging.destination.name = to.name,
    )
}

/// One attempt at one document, from its claim to the disposition of its message. It goes on with
/// the trace that the message names.
pub fn process_span(message: TracedMessage<'_>, work: TracedAttempt<'_>) -> Span {
    let span = info_span!(
        target: TARGET,
        "process",
        otel.name = format!("process {}", message.from.name),
        otel.kind = "consumer",
        otel.status_code = field::Empty,
        messaging.system = message.from.system,
        messaging.operation.name = "process",
        messaging.operation.type = "process",
        messaging.destination.name = message.from.name,
        messaging.message.id = message.id,
        docmill.receive_count = i64::from(message.receive_count),
        docmill.ingestion.id = %work.ingestion,
        docmill.document.id = %work.document,
        docmill.attempt = i64::from(work.attempt),
        docmill.outcome = field::Empty,
        error.type = field::Empty,
    );
    if let Some(parent) = message.traceparent.and_then(parse_traceparent)
        && !span.is_disabled()
        && let Err(error) = span.set_parent(parent)
    {
        tracing::debug!(error = %error, "a trace begins anew: {error}");
    }
    span
}

/// One step of a document.
pub fn step_span(stage: IngestionStage) -> Span {
    info_span!(
        target: TARGET,
        "step",
        otel.name = stage.code(),
        otel.status_code = field::Empty,
        error.type = field::Empty,
    )
}

/// Span of writing the outcome to the ledger.
pub fn record_span() -> Span {
    info_span!(target: TARGET, "record")
}

/// Deleting, hiding or replacing the message.
pub fn settle_span(queue: &QueueDestination, disposition: &'static str) -> Span {
    info_span!(
        target: TARGET,
        "settle",
        otel.name = format!("settle {}", queue.name),
        otel.kind = "client",
        messaging.system = queue.system,
        messaging.operation.name = disposition,
        messaging.operation.type = "settle",
        messaging.destination.name = queue.name,
    )
}

/// One call of a language model.
pub fn chat_span(provider: &str, model: &str, max_output_tokens: u32) -> Span {
    info_span!(
        target: TARGET,
        "chat",
        otel.name = format!("chat {model}"),
        otel.kind = "client",
        otel.status_code = field::Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider,
        gen_ai.request.model = model,
        gen_ai.request.max_tokens = i64::from(max_output_tokens),
        gen_ai.response.model = field::Empty,
        gen_ai.response.finish_reasons = field::Empty,
        gen_ai.usage.input_tokens = field::Empty,
        gen_ai.usage.output_tokens = field::Empty,
        error.type = field::Empty,
    )
}

/// One call of a provider that reads pages; `account` and processors are left out.
pub fn page_call_span(provider: &str, operation: &str) -> Span {
    info_span!(
        target: TARGET,
        "page_call",
        otel.name = format!("{operation} {provider}"),
        otel.kind = "client",
        otel.status_code = field::Empty,
        http.request.method = "POST",
        docmill.provider = provider,
        docmill.operation = operation,
        error.type = field::Empty,
    )
}

fn saturating_count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Adds a model's reply to its call; tokens are counts, `stop` one of docmill's own words.
pub fn record_reply(span: &Span, model: &str, stop: &'static str, input: u64, output: u64) {
    span.record("gen_ai.response.model", model);
    span.record("gen_ai.response.finish_reasons", stop);
    span.record("gen_ai.usage.input_tokens", saturating_count(input));
    span.record("gen_ai.usage.output_tokens", saturating_count(output));
}

/// The span's work failed; `code` is the word of the log and the metric.
pub fn record_failure(span: &Span, code: &'static str) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", code);
}

/// How the attempt ended.
pub fn record_outcome(span: &Span, outcome: &'static str) {
    span.record("docmill.outcome", outcome);
}

/// Adds something that is over already to the trace that `span` belongs to: receiving and claiming
/// are done for whole batches, before it is known which documents they bring.
pub fn add_past_span(span: &Span, name: &'static str, from: Instant, until: Instant) {
    if span.is_disabled() {
        return;
    }
    let context = span.context();
    if !context.span().span_context().is_sampled() {
        return;
    }
    let (now, clock) = (Instant::now(), SystemTime::now());
    let at = |then: Instant| clock - now.saturating_duration_since(then);
    let kind = if name == "receive" { SpanKind::Client } else { SpanKind::Internal };
    let tracer = global::tracer(SCOPE);
    let mut attributes = Vec::new();
    if name == "receive" {
        attributes.push(KeyValue::new("messaging.operation.type", "receive"));
    }
    let builder = tracer
        .span_builder(name)
        .with_kind(kind)
        .with_attributes(attributes)
        .with_start_time(at(from));
    let mut done = tracer.build_with_context(builder, &context);
    opentelemetry::trace::Span::end_with_timestamp(&mut done, at(until));
}

/// The current span in the form of W3C Trace Context, for a message to carry; `None` without
/// traces.
pub fn current_traceparent() -> Option<String> {
    // The context of the innermost span that goes to the collector; spans inside it are skipped.
    let context = Context::current();
    if !context.span().span_context().is_valid() {
        return None;
    }
    let mut carrier = HashMap::new();
    TraceContextPropagator::new().inject_context(&context, &mut carrier);
    carrier.remove(HEADER)
}

/// The trace that a message names, if it makes sense.
fn parse_traceparent(traceparent: &str) -> Option<Context> {
    let carrier = HashMap::from([(HEADER.to_owned(), traceparent.to_owned())]);
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier);
    context.span().span_context().is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_traceparent_is_followed() {
        let whole = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let trace = parse_traceparent(whole).unwrap().span().span_context().trace_id();
        assert_eq!(trace.to_string(), "0af7651916cd43dd8448eb211c80319c");
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "1-5759e988-bd862e3fe1be46a994272793",
        ] {
            assert!(parse_traceparent(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn without_a_collector_messages_carry_no_trace() {
        let span = send_span(&QueueDestination::default());
        assert!(span.is_disabled());
        assert_eq!(span.in_scope(current_traceparent), None);
    }
}
