//! Metrics of the pages and the API: requests by the templates of their routes, sessions, connections to
//! Postgres. Ids, names and content are in no label.
//!
//! They are served by the health port of the process (`worker.address`), never by that of the pages.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;

use super::state::ConsoleState;
use docmill_core::metrics::{self, WebRequest};

/// How often gauges are set.
const GAUGE_INTERVAL: Duration = Duration::from_secs(15);
/// The route of requests that no route takes.
const NO_ROUTE: &str = "none";

/// Counts each request with the status and the time of its answer.
pub(super) async fn measure_request(
    State(state): State<ConsoleState>,
    request: Request,
    next: Next,
) -> Response {
    let (begun, method) = (Instant::now(), method_label(request.method()));
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    let route = route.strip_prefix(&state.config().base_path).unwrap_or(route);
    let status = response.status().as_u16();
    metrics::count_web_request(WebRequest { route, method, status }, begun.elapsed());
    response
}

/// Clients invent methods; labels have those of our routes.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET | Method::HEAD => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        _ => "other",
    }
}

/// Sets the gauges until it is dropped; without Postgres they stay as they were.
pub(super) async fn refresh_gauges(state: &ConsoleState) {
    loop {
        if let Ok(sessions) = state.access().count_sessions().await {
            let (used, idle) = state.database().count_connections();
            metrics::set_web_state(sessions, used, idle);
        }
        tokio::time::sleep(GAUGE_INTERVAL).await;
    }
}
