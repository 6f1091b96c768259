//! The health pages of a worker: port and metrics recorder exist before the first job, so that
//! nothing goes uncounted.

use std::sync::Arc;

use anyhow::Context as _;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::App;
use docmill_console::health_port::{self, HealthState};
use docmill_worker::runner::{RunnerMonitor, ServiceHealth};

/// Health pages, bound but not yet served.
pub struct HealthPages {
    listener: Option<TcpListener>,
    metrics: PrometheusHandle,
}

impl App {
    /// Opens the port of the health pages (`worker.address`).
    ///
    /// # Errors
    /// The address is in use or not local; this process records metrics already.
    pub async fn health_pages(&self) -> anyhow::Result<HealthPages> {
        let listener =
            health_port::bind(self.config.worker.address).await.map_err(anyhow::Error::msg)?;
        HealthPages::with_listener(Some(listener))
    }

    /// The same for workers of which several share a machine: without pages, and with a warning, if
    /// another process has the address.
    ///
    /// # Errors
    /// The address is not local; this process records metrics already.
    pub async fn health_pages_if_free(&self) -> anyhow::Result<HealthPages> {
        let address = self.config.worker.address;
        let listener = health_port::bind_if_free(address).await.map_err(anyhow::Error::msg)?;
        if listener.is_none() {
            tracing::warn!(
                "another process has {address}: no health pages; set worker.address (port 0: any \
                 free one)"
            );
        }
        HealthPages::with_listener(listener)
    }
}

impl HealthPages {
    fn with_listener(listener: Option<TcpListener>) -> anyhow::Result<Self> {
        let metrics =
            docmill_core::metrics::install_metrics().context("installing the metrics recorder")?;
        Ok(Self { listener, metrics })
    }

    /// Where they will be, for people.
    pub fn describe(&self) -> String {
        match self.listener.as_ref().map(TcpListener::local_addr) {
            Some(Ok(address)) => format!("health pages on http://{address}"),
            Some(Err(_)) | None => "health pages disabled".to_owned(),
        }
    }

    /// Serves liveness and metrics of a process without intake until the task that comes back is aborted.
    pub fn serve_metrics(self) -> JoinHandle<()> {
        let Self { listener, metrics } = self;
        tokio::spawn(async move {
            let Some(listener) = listener else { return };
            health_port::serve_metrics(listener, metrics).await;
        })
    }

    /// Serves the pages of a worker until the task that comes back is aborted.
    pub fn serve(
        self,
        monitor: RunnerMonitor,
        dependencies: Arc<dyn ServiceHealth>,
    ) -> JoinHandle<()> {
        let Self { listener, metrics } = self;
        tokio::spawn(async move {
            let Some(listener) = listener else { return };
            health_port::serve(listener, HealthState { monitor, dependencies, metrics }).await;
        })
    }
}
