//! Models on Amazon Bedrock, through its Converse API.
//!
//! Contract: botocore's model `bedrock-runtime/2023-09-30`; requests are made by the AWS SDK, whose
//! own repetitions are switched off in favour of those of all vendors (`exchange`). The reply's form is
//! demanded by `outputConfig`, or by a strict tool that must be used (older models), or by the
//! prompt alone. The first use of a schema compiles a grammar, which may take minutes:
//! `llm.timeout` has to be longer. Not there: streaming.

mod connect;
mod document;
mod errors;
mod wire;

use async_trait::async_trait;
use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::error::SdkError;

use super::exchange::{Failed, Tries, backoff, repeated};
use super::{Llm, Prompt, Reply, Stop};
use crate::config::{LlmConfig, PromptCache, StructuredOutput};
use crate::fault::Result;

/// A model on Bedrock.
pub struct Bedrock {
    client: Client,
    /// Where it is, for errors.
    address: String,
    model: String,
    structured: StructuredOutput,
    cache: PromptCache,
}

impl Bedrock {
    /// Sets the client up and looks for credentials, without spending a token.
    ///
    /// # Errors
    /// No credentials or no region, and where they are looked for.
    pub async fn connect(config: &LlmConfig) -> Result<Self> {
        let (client, address) = connect::client(config).await?;
        Ok(Self::with_client(client, address, config))
    }

    /// Over a client that is there already.
    pub fn with_client(client: Client, address: String, config: &LlmConfig) -> Self {
        Self {
            client,
            address,
            model: config.model.clone(),
            structured: config.structured,
            cache: config.prompt_cache,
        }
    }
}

#[async_trait]
impl Tries for Bedrock {
    fn model(&self) -> &str {
        &self.model
    }

    async fn try_once(&self, prompt: &Prompt, tries: u32) -> std::result::Result<Reply, Failed> {
        let what = format!("model call to {}", self.address);
        let form = (self.structured, self.cache);
        let request = wire::request(&self.client, &self.model, (prompt, form));
        let request = request.map_err(Failed::finally)?;
        match request.send().await {
            Ok(answer) => Ok(wire::reply(answer, &self.model)),
            Err(SdkError::ServiceError(service)) if errors::prompt_is_too_long(service.err()) => {
                Ok(Reply::nothing(Stop::TooLong, &self.model))
            }
            Err(error) => {
                let again = errors::may_try_again(&error).then(|| backoff(tries));
                Err(Failed { error: errors::from_sdk(&what, &self.model, error), again })
            }
        }
    }
}

#[async_trait]
impl Llm for Bedrock {
    fn provider(&self) -> &'static str {
        "bedrock"
    }

    fn model(&self) -> &str {
        &self.model
    }

    async fn ask(&self, prompt: &Prompt) -> Result<Reply> {
        repeated(self, prompt).await.map(Reply::checked)
    }
}
