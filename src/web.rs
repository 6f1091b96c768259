//! Health, readiness and metrics over HTTP. Read-only by construction.
//!
//! `/livez` answers 503 when the intake loop has not turned for too long: the platform restarts
//! the process. `/readyz` answers 503 while Postgres or the queue do not answer, and from the
//! moment the worker drains. `/metrics` is Prometheus text.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::ledger::Ledger;
use crate::metrics;
use crate::queue::Queue;
use crate::worker::Monitor;

/// The intake loop turns every second; this long without a turn means that it hangs.
const STUCK: Duration = Duration::from_secs(60);
/// A dependency must answer within this to count as there.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the pages look at.
#[derive(Clone)]
pub struct Health {
    /// The worker.
    pub monitor: Monitor,
    /// Postgres.
    pub ledger: Arc<dyn Ledger>,
    /// The queue.
    pub queue: Arc<dyn Queue>,
    /// The metrics of this process.
    pub metrics: PrometheusHandle,
}

/// Opens the port.
///
/// # Errors
/// The address is taken or not ours; the text names the key to change.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| {
        format!("cannot listen on {address}: {error}; change worker.address (port 0: any free one)")
    })
}

/// Serves the pages until the process ends.
///
/// # Errors
/// The listener failed for good.
pub async fn serve(listener: TcpListener, health: Health) -> std::io::Result<()> {
    let router = Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(render_metrics))
        .with_state(health);
    axum::serve(listener, router).await
}

async fn livez(State(health): State<Health>) -> (StatusCode, Json<Value>) {
    let age = health.monitor.intake_age();
    let draining = health.monitor.is_draining();
    let alive = draining || age < STUCK;
    let body = json!({
        "alive": alive,
        "draining": draining,
        "intake_age_s": (age.as_secs_f64() * 1000.0).round() / 1000.0,
    });
    (status(alive), Json(body))
}

async fn readyz(State(health): State<Health>) -> (StatusCode, Json<Value>) {
    let draining = health.monitor.is_draining();
    let (database, queue) = tokio::join!(
        async { matches!(tokio::time::timeout(PATIENCE, health.ledger.now()).await, Ok(Ok(_))) },
        async { depth(&health).await },
    );
    let ready = database && queue && !draining;
    let body = json!({
        "ready": ready,
        "database": database,
        "queue": queue,
        "draining": draining,
    });
    (status(ready), Json(body))
}

/// Whether the queue answers; its depth goes to the gauges on the way.
async fn depth(health: &Health) -> bool {
    let Ok(Ok(depth)) = tokio::time::timeout(PATIENCE, health.queue.depth()).await else {
        return false;
    };
    metrics::depth("ready", depth.ready);
    metrics::depth("in_flight", depth.in_flight);
    metrics::depth("delayed", depth.delayed);
    if let Some(dead) = depth.dead {
        metrics::depth("dead", dead);
    }
    true
}

async fn render_metrics(State(health): State<Health>) -> String {
    depth(&health).await;
    health.metrics.render()
}

fn status(good: bool) -> StatusCode {
    if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}
