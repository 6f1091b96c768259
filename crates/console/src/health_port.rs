//! The health port of a worker: liveness, readiness and metrics, read-only.
//!
//! `/livez` answers 503 when the intake loop has not turned for `LIVENESS_TIMEOUT`: the platform
//! restarts the process. `/readyz` answers 503 while a dependency of the worker (a Postgres that takes
//! writes and the queue, or the store of a bucket) does not answer, while its documents fail one after
//! the other (`reason`), and from the moment the worker drains.
//! `/metrics` is Prometheus text.
//!
//! The port needs no sign-in: dependencies are asked at most every two seconds, and Postgres over a
//! connection that no job needs.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use crate::connections::{self, ConnectionLimits};
use crate::fresh::SharedAnswer;
use docmill_core::metrics;
use docmill_ledger::db::Db;
use docmill_queue::MessageQueue;
use docmill_worker::runner::{PROBE_TIMEOUT, RunnerMonitor, ServiceHealth, probe_dependency};

/// The intake loop turns every second; this long without a turn means that it hangs.
const LIVENESS_TIMEOUT: Duration = Duration::from_secs(60);

/// Probes are few, and their answers short.
const HEALTH_LIMITS: ConnectionLimits = ConnectionLimits {
    port: "health port",
    most: 64,
    head_time: Duration::from_secs(5),
    connection_time: Duration::from_secs(15),
};

/// State and shared answers behind the health pages.
#[derive(Clone)]
pub struct HealthState {
    /// The runner of this process, seen from outside.
    pub monitor: RunnerMonitor,
    /// The backends that the worker needs.
    pub dependencies: Arc<dyn ServiceHealth>,
    /// The metrics of this process.
    pub metrics: PrometheusHandle,
}

/// Postgres and a queue.
pub struct ServiceDependencies {
    /// Postgres, over connections of its own: jobs and renewals need theirs.
    pub database: Db,
    /// The queue of messages.
    pub queue: Arc<dyn MessageQueue>,
}

#[async_trait]
impl ServiceHealth for ServiceDependencies {
    async fn check_all(&self) -> Vec<(&'static str, bool)> {
        let (database, queue) = tokio::join!(
            probe_dependency(self.database.ping(PROBE_TIMEOUT)),
            check_queue_depth(self.queue.as_ref()),
        );
        vec![("database", database.is_some()), ("queue", queue)]
    }

    async fn refresh_gauges(&self) {
        check_queue_depth(self.queue.as_ref()).await;
    }
}

/// Opens the port.
///
/// # Errors
/// The address is taken or not ours; the text names the key to change.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| cannot_listen(address, "worker", &error))
}

/// The same for the pages of `docmill web`.
///
/// # Errors
/// As [`bind`].
pub async fn bind_console(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| cannot_listen(address, "web", &error))
}

/// Opens the port; `None` if another process has it.
///
/// # Errors
/// The address is not ours; the text names the key to change.
pub async fn bind_if_free(address: SocketAddr) -> Result<Option<TcpListener>, String> {
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(cannot_listen(address, "worker", &error)),
    }
}

fn cannot_listen(address: SocketAddr, section: &str, error: &std::io::Error) -> String {
    format!("cannot listen on {address}: {error}; change {section}.address (port 0: any free one)")
}

/// The state of the pages, with their short-lived shared answers.
#[derive(Clone)]
struct SharedPages {
    health: HealthState,
    dependencies: Arc<SharedAnswer<Vec<(&'static str, bool)>>>,
    metrics: Arc<SharedAnswer<String>>,
}

/// Serves the pages until it is dropped.
pub async fn serve(listener: TcpListener, health: HealthState) {
    let (dependencies, metrics) = (SharedAnswer::new(), SharedAnswer::new());
    let router = Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(render_metrics))
        .with_state(SharedPages { health, dependencies, metrics });
    connections::serve_connections(listener, router, HEALTH_LIMITS).await;
}

/// Serves `/livez` and `/metrics` of a process without intake, until it is dropped.
pub async fn serve_metrics(listener: TcpListener, metrics: PrometheusHandle) {
    let router = Router::new()
        .route("/livez", get(StatusCode::OK))
        .route("/metrics", get(render_own_metrics))
        .with_state(metrics);
    connections::serve_connections(listener, router, HEALTH_LIMITS).await;
}

async fn render_own_metrics(State(metrics): State<PrometheusHandle>) -> String {
    metrics.render()
}

async fn livez(State(SharedPages { health, .. }): State<SharedPages>) -> (StatusCode, Json<Value>) {
    let age = health.monitor.intake_age();
    let draining = health.monitor.is_draining();
    let alive = draining || age < LIVENESS_TIMEOUT;
    let body = json!({
        "alive": alive,
        "draining": draining,
        "intake_age_s": (age.as_secs_f64() * 1000.0).round() / 1000.0,
    });
    (status_code(alive), Json(body))
}

async fn readyz(State(pages): State<SharedPages>) -> (StatusCode, Json<Value>) {
    let asked = Arc::clone(&pages.health.dependencies);
    let found = pages.dependencies.find(async move { asked.check_all().await }).await;
    let (draining, failing) =
        (pages.health.monitor.is_draining(), pages.health.monitor.open_failure());
    let has_answers = found.is_some();
    let answers = found.unwrap_or_default();
    let all_answer = has_answers && answers.iter().all(|(_, is_there)| *is_there);
    let ready = !draining && failing.is_none() && all_answer;
    let own = [("ready", ready), ("draining", draining)];
    let all = own.into_iter().chain(answers);
    let mut body: Map<String, Value> =
        all.map(|(name, is)| (name.to_owned(), Value::Bool(is))).collect();
    if let Some(context) = failing {
        body.insert("reason".to_owned(), Value::String(context.to_string()));
    }
    (status_code(ready), Json(Value::Object(body)))
}

/// Whether the queue answers; its depth goes to the gauges on the way.
async fn check_queue_depth(queue: &dyn MessageQueue) -> bool {
    let Some(depth) = probe_dependency(queue.depth()).await else {
        return false;
    };
    metrics::set_depth("ready", depth.ready);
    metrics::set_depth("in_flight", depth.in_flight);
    metrics::set_depth("delayed", depth.delayed);
    if let Some(dead) = depth.dead {
        metrics::set_depth("dead", dead);
    }
    true
}

async fn render_metrics(State(pages): State<SharedPages>) -> (StatusCode, String) {
    let HealthState { dependencies, metrics, .. } = pages.health;
    let rendered = pages.metrics.find(async move {
        dependencies.refresh_gauges().await;
        metrics.render()
    });
    let rendered = rendered.await;
    (status_code(rendered.is_some()), rendered.unwrap_or_default())
}

fn status_code(good: bool) -> StatusCode {
    if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}
