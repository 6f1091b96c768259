//! The client: credentials from AWS's usual chain or a Bedrock API key, time limits, no
//! repetitions of its own. Both kinds of credentials may change while we run: those of the chain
//! are renewed by the SDK before they end, the key is read again for every call.

use std::time::Duration;

use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region};
use aws_credential_types::provider::error::TokenError;
use aws_credential_types::provider::future;
use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::config::retry::RetryConfig;
use aws_sdk_bedrockruntime::config::{
    Builder, IdentityCache, ProvideCredentials, ProvideToken, Token,
};

use crate::exchange::key_error;
use docmill_core::config::{LlmConfig, SecretSource, strip_credentials};
use docmill_core::fault::{Error, Fault, Result};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The client, and where it calls, in words.
///
/// # Errors
/// No region or no credentials.
pub(super) async fn build_client(config: &LlmConfig) -> Result<(Client, String)> {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .operation_timeout(config.timeout)
        .build();
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts);
    if !config.region.is_empty() {
        loader = loader.region(Region::new(config.region.clone()));
    }
    let source = config.key_source();
    let key = source.current_secret().map_err(|problem| key_error(&problem))?;
    if !key.is_empty() {
        // A request is signed wherever it can be; with a key it shall not be.
        loader = loader.no_credentials();
    }
    let shared = loader.load().await;
    let Some(region) = shared.region() else {
        let context = "no AWS region for Bedrock: set llm.region or AWS_REGION";
        return Err(Error::new(Fault::Denied, context));
    };
    let address = match config.base_url.as_str() {
        "" => format!("Bedrock ({region})"),
        base => strip_credentials(base),
    };
    let mut builder = Builder::from(&shared);
    if !config.base_url.is_empty() {
        builder = builder.endpoint_url(config.base_url.clone());
    }
    if key.is_empty() {
        let provider = shared.credentials_provider();
        let found = match provider {
            Some(provider) => provider.provide_credentials().await.map(drop),
            None => return Err(no_credentials_error(None)),
        };
        found.map_err(|error| no_credentials_error(Some(error.into())))?;
    } else {
        // Without a cache of its own, which would keep a key for a quarter of an hour.
        let fresh = IdentityCache::no_cache();
        builder = builder.token_provider(ApiKeyTokenProvider(source)).identity_cache(fresh);
    }
    Ok((Client::from_conf(builder.build()), address))
}

/// The API key as it is now.
#[derive(Debug)]
struct ApiKeyTokenProvider(SecretSource);

impl ProvideToken for ApiKeyTokenProvider {
    fn provide_token<'a>(&'a self) -> future::ProvideToken<'a>
    where
        Self: 'a,
    {
        let key = self.0.current_secret().map_err(TokenError::provider_error);
        future::ProvideToken::ready(key.map(|key| Token::new(key.reveal(), None)))
    }
}

fn no_credentials_error(cause: Option<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let error = Error::new(
        Fault::Denied,
        "no AWS credentials for Bedrock: give the task or pod a role that may call \
         bedrock:InvokeModel, or set llm.api_key to a Bedrock API key",
    );
    match cause {
        Some(cause) => error.with_source(cause),
        None => error,
    }
}
