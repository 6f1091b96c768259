//! Setting up the client, and finding out at start whether the bucket is there and can do what
//! we rely on.

use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{
    BehaviorVersion, Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation,
};

use super::S3Store;
use super::faults::failure_of;
use super::place::Place;
use crate::config::{Secret, StoreConfig};
use crate::fault::{Error, Fault, Result};
use crate::retry::{Backoff, retry, with_deadline};
use crate::store::conditions;

/// How long the check at start may take altogether.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two tries of the check.
const WAITS: Backoff = Backoff::constant(Duration::from_secs(1));
/// One request without its body; a 64 MiB upload at 1 MiB/s still fits.
const ATTEMPT: Duration = Duration::from_secs(90);

/// By what right a bucket is used, and where in it something may be tried.
#[derive(Debug, Clone, Copy)]
pub struct Access<'a> {
    /// An access key and its secret; `None`: what the environment, a profile or a role gives.
    pub keys: Option<(&'a str, &'a Secret)>,
    /// The beginning of keys that may be written, for the check at start.
    pub place: &'a str,
}

impl S3Store {
    /// Connects, and checks that the bucket can be reached and takes conditional writes.
    ///
    /// # Errors
    /// After about 20 s at the latest: which bucket, at which address, and what to check.
    pub async fn connect(config: &StoreConfig) -> Result<Self> {
        Self::connect_as(config, &Access { keys: None, place: "ingestions/" }).await
    }

    /// The same with another right to it.
    ///
    /// # Errors
    /// As [`S3Store::connect`].
    pub async fn connect_as(config: &StoreConfig, access: &Access<'_>) -> Result<Self> {
        let client = client_of(config, access).await;
        let region = client.config().region().map_or("no region", Region::as_ref).to_owned();
        let address = match config.endpoint.as_str() {
            "" => format!("AWS ({region})"),
            endpoint => endpoint.to_owned(),
        };
        let store = Self { client, bucket: config.bucket.clone(), address };
        let late = || Error::new(Fault::Unavailable, "no answer in time");
        match with_deadline(PATIENCE, store.check(access.place), late).await {
            Ok(()) => Ok(store),
            Err(error) => Err(store.unreachable(error)),
        }
    }

    /// The same, nothing checked: for documents of other buckets, in which nothing is written.
    pub async fn unchecked(config: &StoreConfig) -> Self {
        let client = client_of(config, &Access { keys: None, place: "" }).await;
        Self { client, bucket: config.bucket.clone(), address: config.endpoint.clone() }
    }

    /// Tries until the bucket answers; gives up at once where trying again cannot help.
    async fn check(&self, probe: &str) -> Result<()> {
        let passes =
            |error: &Error, failed| WAITS.next_wait(failed).filter(|_| may_pass(error.fault));
        retry(|_| self.check_once(probe), passes).await
    }

    async fn check_once(&self, probe: &str) -> Result<()> {
        let place = Place { bucket: &self.bucket, key: "", foreign: false };
        if let Err(error) = self.client.head_bucket().bucket(&self.bucket).send().await {
            return Err(failure_of(error, &place, "look").into_error(&place));
        }
        conditions::check(self, probe).await
    }

    fn unreachable(&self, error: Error) -> Error {
        let (advice, bucket, address) = (advice(error.fault), &self.bucket, &self.address);
        let text =
            format!("the bucket {bucket} at {address} cannot be used: {}; {advice}", error.context);
        Error { fault: error.fault, context: text.into(), source: error.source }
    }
}

fn may_pass(fault: Fault) -> bool {
    matches!(fault, Fault::Transient | Fault::Throttled(_) | Fault::Unavailable)
}

fn advice(fault: Fault) -> &'static str {
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

async fn client_of(config: &StoreConfig, access: &Access<'_>) -> Client {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(5))
        .read_timeout(Duration::from_secs(60))
        .operation_attempt_timeout(ATTEMPT)
        .operation_timeout(2 * ATTEMPT)
        .build();
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
