//! Setting up the client, and what to make of a bucket that cannot be used. Nothing is asked here.

use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{
    BehaviorVersion, Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation,
};

use docmill_core::config::{SecretString, StoreConfig};
use docmill_core::fault::Fault;

/// One request without its body; a 64 MiB upload at 1 MiB/s still fits.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(90);
/// Limit for the first byte of an answer. A request on a connection that died silently is repeated
/// on another after this time, and jobs resume as soon after an outage.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(12);
/// Smaller bodies than this are sent within [`FIRST_BYTE_TIMEOUT`] on any line.
pub(super) const SMALL_BODY: usize = 1 << 20;

/// By what right a bucket is used, and where in it something may be tried.
#[derive(Debug, Clone, Copy)]
pub struct BucketAccess<'a> {
    /// An access key and its secret; `None`: what the environment, a profile or a role gives.
    pub keys: Option<(&'a str, &'a SecretString)>,
    /// The beginning of keys that may be written, for the check at start.
    pub place: &'a str,
}

/// Whether the check at start may succeed by itself later.
pub(super) fn is_passing(fault: Fault) -> bool {
    matches!(fault, Fault::Transient | Fault::Throttled(_) | Fault::Unavailable)
}

/// Which settings to check where the bucket cannot be used.
pub(super) fn advice_for(fault: Fault) -> &'static str {
    match fault {
        Fault::Denied => {
            "check the credentials (environment, profile or role) and that they may list, read, \
             write and delete in the bucket"
        }
        Fault::Missing => "check store.bucket: there is no bucket of that name here",
        Fault::Internal => "use a service with conditional writes, or store.backend = \"folder\"",
        _ => "check store.bucket, store.endpoint, store.region and the network",
    }
}

fn timeout_config(first_word: Duration) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(5))
        .read_timeout(first_word)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .operation_timeout(2 * ATTEMPT_TIMEOUT)
        .build()
}

/// The same client for large bodies: the answer comes only when all is sent.
pub(super) fn build_upload_client(client: &Client) -> Client {
    Client::from_conf(
        client.config().to_builder().timeout_config(timeout_config(ATTEMPT_TIMEOUT)).build(),
    )
}

pub(super) async fn build_client(config: &StoreConfig, access: &BucketAccess<'_>) -> Client {
    let timeouts = timeout_config(FIRST_BYTE_TIMEOUT);
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).timeout_config(timeouts);
    if !config.region.is_empty() {
        loader = loader.region(Region::new(config.region.clone()));
    }
    if let Some((id, secret)) = access.keys {
        let keys = Credentials::new(id, secret.reveal(), None, None, "configuration");
        loader = loader.credentials_provider(keys);
    }
    let shared = loader.load().await;
    let mut settings =
        aws_sdk_s3::config::Builder::from(&shared).force_path_style(config.path_style);
    if !config.endpoint.is_empty() {
        // Others than AWS often do not know the newer checksum headers.
        settings = settings
            .endpoint_url(&config.endpoint)
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
        if shared.region().is_none() {
            settings = settings.region(Region::new("us-east-1"));
        }
    }
    Client::from_conf(settings.build())
}
