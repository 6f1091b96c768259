//! Log lines: JSON or text on standard error, the panic hook, and traces if they are asked for.
//!
//! Lines hold ids, codes, counts and durations, never document content (invariant 12). The hook
//! therefore leaves the panic's message out: `"…" is not a char boundary` quotes the text it was
//! given. Standard output belongs to the commands' results.

pub mod spans;
mod traces;

use std::io::IsTerminal as _;
use std::panic::{self, PanicHookInfo};

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

use docmill_core::config::{LogFormat, TelemetryConfig};

pub use traces::TraceExporter;

/// The variable that sets the level, e.g. `debug` or `info,docmill::worker=debug`.
pub const LEVEL_VARIABLE: &str = "DOCMILL_LOG";

/// The default level: dependencies log from `warn` up, and the PDF parser's findings in documents
/// not at all.
const DEFAULT_LEVEL: &str = "warn,docmill=info,lopdf=off";

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The level makes no sense.
    #[error("{LEVEL_VARIABLE} is not a level such as info or info,docmill::worker=debug: {0}")]
    Level(#[from] tracing_subscriber::filter::ParseError),
    /// The exporter of traces cannot be set up.
    #[error("traces cannot be sent: {0}; check telemetry.otlp_endpoint")]
    Traces(String),
    /// This process logs already.
    #[error("logging is set up already")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// Sets up logging and the panic hook for this process.
///
/// # Errors
/// The level cannot be parsed; logging is set up already.
pub fn init(format: LogFormat) -> Result<(), TelemetryError> {
    init_at(format, DEFAULT_LEVEL)
}

/// As [`init`], and sends traces where the configuration says so. Needs a runtime.
///
/// # Errors
/// As [`init`]; the collector's address makes no sense.
pub fn init_service(
    format: LogFormat,
    traces: &TelemetryConfig,
) -> Result<Option<TraceExporter>, TelemetryError> {
    init_with(format, DEFAULT_LEVEL, traces)
}

/// As [`init`], with another level for when the variable is not set.
///
/// # Errors
/// As [`init`].
pub fn init_at(format: LogFormat, level: &str) -> Result<(), TelemetryError> {
    init_with(format, level, &TelemetryConfig::default()).map(drop)
}

/// As [`init_service`], with another level for when the variable is not set.
///
/// # Errors
/// As [`init_service`].
pub fn init_with(
    format: LogFormat,
    level: &str,
    traces: &TelemetryConfig,
) -> Result<Option<TraceExporter>, TelemetryError> {
    let variable = std::env::var(LEVEL_VARIABLE).ok().filter(|level| !level.trim().is_empty());
    let filter = parse_level_filter(Some(variable.as_deref().unwrap_or(level)))?;
    let traces = TraceExporter::start(traces)?;
    // Each with a filter of its own: the level of the log says nothing about traces.
    let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> =
        vec![log_layer(format).with_filter(filter).boxed()];
    layers.extend(traces.as_ref().map(TraceExporter::layer));
    Registry::default().with(layers).try_init()?;
    panic::set_hook(Box::new(log_panic));
    Ok(traces)
}

fn parse_level_filter(
    level: Option<&str>,
) -> Result<EnvFilter, tracing_subscriber::filter::ParseError> {
    let level = level.map(str::trim).filter(|level| !level.is_empty()).unwrap_or(DEFAULT_LEVEL);
    EnvFilter::try_new(level)
}

fn log_layer(format: LogFormat) -> Box<dyn Layer<Registry> + Send + Sync> {
    let layer = fmt::layer().with_writer(std::io::stderr);
    match format {
        LogFormat::Json => layer.json().flatten_event(true).with_span_list(false).boxed(),
        LogFormat::Text => {
            layer.with_target(false).with_ansi(std::io::stderr().is_terminal()).boxed()
        }
    }
}

/// Where it happened, not what was said.
fn log_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    tracing::error!(panic.place = place, panic.thread = thread, "panicked at {place}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};

    #[test]
    fn an_empty_level_is_the_default_and_a_wrong_one_is_refused() {
        assert_eq!(
            parse_level_filter(None).unwrap().to_string(),
            parse_level_filter(Some(" ")).unwrap().to_string()
        );
        assert!(parse_level_filter(None).unwrap().to_string().contains("docmill=info"));
        assert_eq!(parse_level_filter(Some("debug")).unwrap().to_string(), "debug");
        assert!(parse_level_filter(Some("docmill=loud")).is_err());
    }

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_panic_is_logged_with_its_place_and_without_its_message() {
        let kept = Kept::default();
        let writer = kept.clone();
        let layer = fmt::layer().json().with_writer(move || writer.clone());
        let subscriber = Registry::default().with(layer);
        let before = panic::take_hook();
        panic::set_hook(Box::new(log_panic));
        tracing::subscriber::with_default(subscriber, || {
            let text = "secret of the document";
            panic::catch_unwind(|| panic!("cannot read {text}")).unwrap_err();
        });
        panic::set_hook(before);
        let logged = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert!(logged.contains("telemetry.rs"), "{logged}");
        assert!(!logged.contains("secret"), "{logged}");
    }
}
