//! `[telemetry]`: where traces go. Off unless an address is set.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Config, QueueBackend};

/// The path of the OTLP protocol for traces, added to an address without one.
const TRACES_PATH: &str = "/v1/traces";

/// `[telemetry]`: where traces are sent over OTLP, and how many.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// Address of an OpenTelemetry collector (OTLP over HTTP, protobuf); empty: no traces.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub otlp_endpoint: String,
    /// `service.name` of the traces.
    pub service_name: String,
    /// Share of the documents that are traced, 0 to 1, unless their sender has decided.
    pub sample: f64,
    /// Longest one export may take; a slow collector costs traces, never documents.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            otlp_endpoint: String::new(),
            service_name: "docmill".to_owned(),
            sample: 1.0,
            timeout: Duration::from_secs(10),
        }
    }
}

impl TelemetryConfig {
    /// Where spans are sent: the endpoint, with the path of the protocol unless it has one of its
    /// own. `None`: nowhere.
    pub fn traces_url(&self) -> Option<String> {
        let endpoint = self.otlp_endpoint.trim().trim_end_matches('/');
        let after_host = endpoint.split_once("://")?.1;
        let has_path = after_host.contains('/');
        Some(if has_path { endpoint.to_owned() } else { format!("{endpoint}{TRACES_PATH}") })
    }

    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        let endpoint = self.otlp_endpoint.as_str();
        if !endpoint.is_empty()
            && !endpoint.starts_with("http://")
            && !endpoint.starts_with("https://")
        {
            problems.push(
                "telemetry.otlp_endpoint must be the http:// or https:// address of an OTLP \
                 collector, usually port 4318"
                    .to_owned(),
            );
        }
        if !(0.0..=1.0).contains(&self.sample) {
            problems.push("telemetry.sample must be between 0 and 1".to_owned());
        }
        if self.timeout.is_zero() || self.service_name.is_empty() {
            problems.push(
                "telemetry.timeout must be above 0s and telemetry.service_name not empty"
                    .to_owned(),
            );
        }
    }
}

/// The queue as traces name it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueDestination {
    /// `messaging.system` of OpenTelemetry's semantic conventions, or the backend's name.
    pub system: String,
    /// `messaging.destination.name`: the queue's name without its account.
    pub name: String,
}

impl Config {
    /// The queue as traces name it; of several tiers the most urgent.
    pub fn queue_destination(&self) -> QueueDestination {
        let queue = &self.queue;
        if queue.backend == QueueBackend::Sqs {
            let first = queue.sqs_tiers().into_iter().next();
            let url = first.map(|tier| tier.url).unwrap_or_default();
            let name = url.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            return QueueDestination { system: "aws_sqs".to_owned(), name: name.to_owned() };
        }
        let system = serde_json::to_value(queue.backend).unwrap_or_default();
        let name = queue.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        QueueDestination { system: system.as_str().unwrap_or_default().to_owned(), name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_protocol_is_added_only_if_missing() {
        for (endpoint, expected) in [
            ("", None),
            ("http://collector:4318", Some("http://collector:4318/v1/traces")),
            ("http://collector:4318/", Some("http://collector:4318/v1/traces")),
            (
                "https://otlp.vendor.example/otlp/v1/traces",
                Some("https://otlp.vendor.example/otlp/v1/traces"),
            ),
        ] {
            let config = TelemetryConfig {
                otlp_endpoint: endpoint.to_owned(),
                ..TelemetryConfig::default()
            };
            assert_eq!(config.traces_url().as_deref(), expected, "{endpoint}");
        }
    }

    #[test]
    fn traces_name_a_queue_without_its_account() {
        let mut config = Config::default();
        config.queue.url =
            "https://sqs.eu-central-1.amazonaws.com/123456789012/documents".to_owned();
        let expected =
            QueueDestination { system: "aws_sqs".to_owned(), name: "documents".to_owned() };
        assert_eq!(config.queue_destination(), expected);
        config.queue.backend = QueueBackend::Folder;
        config.queue.path = "data/queue".into();
        let expected = QueueDestination { system: "folder".to_owned(), name: "queue".to_owned() };
        assert_eq!(config.queue_destination(), expected);
    }
}
