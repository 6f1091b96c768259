//! Traces to an OpenTelemetry collector: OTLP over HTTP, batched in the background.
//!
//! Off unless `telemetry.otlp_endpoint` is set; then only the spans of [`super::spans`] are sent,
//! never log lines. A collector that does not answer costs spans, never documents: the queue of
//! spans is bounded and an export has a timeout. Headers that a vendor asks for come from
//! `OTEL_EXPORTER_OTLP_HEADERS`, as everywhere in OpenTelemetry. Not promised: `tracestate`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{KeyValue, global};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::{Layer, Registry};

use super::{TelemetryError, spans};
use crate::http;
use docmill_core::config::{TelemetryConfig, strip_credentials};

/// The name under which our spans are made.
pub(super) const SCOPE: &str = "docmill";
/// Limit for sending the rest of the queue at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Spans on their way to a collector; [`TraceExporter::shutdown`] sends what is left.
#[derive(Debug)]
pub struct TraceExporter {
    provider: SdkTracerProvider,
}

impl TraceExporter {
    /// Sets the exporter up; nothing is sent yet. `None` without an address. Needs a runtime.
    ///
    /// # Errors
    /// The address is no URL, or there is no usable TLS set-up.
    pub(super) fn start(config: &TelemetryConfig) -> Result<Option<Self>, TelemetryError> {
        let Some(url) = config.traces_url() else { return Ok(None) };
        let parsed = url.parse().map_err(|_| {
            TelemetryError::Traces(format!("{} is not an address", strip_credentials(&url)))
        })?;
        let client = http::build_client(&parsed, config.timeout)
            .map_err(|e| TelemetryError::Traces(e.to_string()))?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(url)
            .with_timeout(config.timeout)
            .build()
            .map_err(|error| TelemetryError::Traces(error.to_string()))?;
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.sample)));
        let resource = Resource::builder()
            .with_service_name(config.service_name.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(RuntimeSpanExporter::new(exporter))
            .with_sampler(sampler)
            .with_resource(resource)
            .build();
        global::set_tracer_provider(provider.clone());
        Ok(Some(Self { provider }))
    }

    /// The layer that turns docmill's spans, and no others, into spans of OpenTelemetry.
    pub(super) fn layer(&self) -> Box<dyn Layer<Registry> + Send + Sync> {
        let ours =
            FilterFn::new(|metadata| metadata.is_span() && metadata.target() == spans::TARGET);
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(SCOPE))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_filter(ours)
            .boxed()
    }

    /// Sends what is left, for a few seconds at most.
    pub async fn shutdown(self) {
        // The SDK blocks the calling thread until its own has sent everything.
        let (done, ended) = oneshot::channel();
        std::thread::spawn(move || {
            // Nobody waits any more if the caller was dropped.
            let _gone = done.send(self.provider.shutdown_with_timeout(FLUSH_TIMEOUT));
        });
        match ended.await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(error)) => tracing::warn!(error = %error, "the last spans were not sent"),
        }
    }
}

/// An exporter whose requests run on our runtime: the SDK's own thread has none, and the HTTP
/// client needs one.
#[derive(Debug)]
struct RuntimeSpanExporter {
    inner: Arc<SpanExporter>,
    runtime: Handle,
    /// So that a collector that is away is one log line and not one every few seconds.
    failing: Arc<AtomicBool>,
}

impl RuntimeSpanExporter {
    fn new(exporter: SpanExporter) -> Self {
        Self { inner: Arc::new(exporter), runtime: Handle::current(), failing: Arc::default() }
    }
}

impl opentelemetry_sdk::trace::SpanExporter for RuntimeSpanExporter {
    fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        let (inner, failing) = (Arc::clone(&self.inner), Arc::clone(&self.failing));
        let sent = self.runtime.spawn(async move {
            let count = batch.len();
            let answer = inner.export(batch).await;
            log_export_change(&answer, count, &failing);
            answer
        });
        async move {
            sent.await.unwrap_or_else(|error| Err(OTelSdkError::InternalFailure(error.to_string())))
        }
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.set_resource(resource);
        }
    }
}

fn log_export_change(answer: &OTelSdkResult, count: usize, failing: &AtomicBool) {
    let failed_before = failing.swap(answer.is_err(), Ordering::Relaxed);
    match answer {
        Err(error) if !failed_before => {
            tracing::warn!(error = %error, spans = count, "sending traces failed; check telemetry.otlp_endpoint");
        }
        Ok(()) if failed_before => tracing::info!("traces are sent again"),
        _ => {}
    }
}
