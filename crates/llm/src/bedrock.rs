//! Models on Amazon Bedrock, through its Converse API.
//!
//! Contract: botocore's model `bedrock-runtime/2023-09-30`; requests are made by the AWS SDK, whose
//! own repetitions are switched off in favour of those of all vendors (`exchange`). The reply's
//! form is demanded by `outputConfig`, or by a tool that must be used (not a strict one: older models
//! take none), or by the prompt alone. The first use of a schema compiles a grammar, which may take minutes:
//! `llm.timeout` has to be longer. A reply that may be longer than `llm.stream_above` tokens is
//! streamed.

pub mod batches;
mod connect;
mod document;
mod errors;
mod json;
mod signed;
mod stream;
mod wire;

use async_trait::async_trait;
use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::config::http::HttpResponse;
use aws_sdk_bedrockruntime::error::{ProvideErrorMetadata, SdkError};

use super::exchange::{FailedTry, RetryableCall, SilenceLimits, call_with_retries, retry_wait};
use super::form::{ReplyForm, ReplyForms};
use super::options::CallOptions;
use super::{FinishReason, Llm, ModelReply, Prompt, RequestOptions};
use docmill_core::config::LlmConfig;
use docmill_core::fault::Result;
use wire::ModelFields;

/// A call that was sent.
#[derive(Clone, Copy)]
struct SentCall<'a> {
    options: CallOptions<'a>,
    /// Tries that were made before it.
    tries: u32,
}

/// A model on Bedrock.
pub struct BedrockClient {
    client: Client,
    /// The address that error messages name.
    address: String,
    model: String,
    forms: ReplyForms,
    fields: ModelFields,
    options: RequestOptions,
    stream_above: u32,
    /// Longest silence within a stream.
    silence: SilenceLimits,
}

impl BedrockClient {
    /// Sets the client up and searches for credentials, without spending a token.
    ///
    /// # Errors
    /// No credentials or no region, and where they are searched for.
    pub async fn connect(config: &LlmConfig) -> Result<Self> {
        let (client, address) = connect::build_client(config).await?;
        Ok(Self::with_client(client, address, config))
    }

    /// Over a client that is there already.
    pub fn with_client(client: Client, address: String, config: &LlmConfig) -> Self {
        Self {
            client,
            address,
            model: config.model.clone(),
            forms: ReplyForms::new(config),
            fields: ModelFields::from_config(config),
            options: RequestOptions::for_bedrock(config),
            stream_above: config.stream_above,
            silence: SilenceLimits { first: config.timeout, later: config.idle_timeout },
        }
    }

    /// Sorts what is no reply into those that are answers and those that are failures.
    fn classify_error<E: ProvideErrorMetadata>(
        &self,
        what: &str,
        error: &SdkError<E, HttpResponse>,
        call: SentCall<'_>,
    ) -> std::result::Result<ModelReply, FailedTry> {
        if error.as_service_error().is_some_and(errors::is_prompt_too_long) {
            return Ok(ModelReply::without_text(FinishReason::TooLong, &self.model));
        }
        let message = errors::refusal_message(error);
        let reworded = self.options.learn(call.options, errors::field_words(&message));
        let again = errors::may_try_again(error).then(|| retry_wait(call.tries));
        let refuses_schema = error.as_service_error().is_some_and(errors::is_schema_refused);
        let error = errors::from_sdk(what, &self.model, error);
        Err(FailedTry { error, again, refuses_schema, reworded })
    }
}

#[async_trait]
impl RetryableCall for BedrockClient {
    fn model(&self) -> &str {
        &self.model
    }

    fn forms(&self) -> &ReplyForms {
        &self.forms
    }

    async fn try_once(
        &self,
        prompt: &Prompt,
        form: ReplyForm,
        tries: u32,
    ) -> std::result::Result<ModelReply, FailedTry> {
        let what = format!("model call to {}", self.address);
        let sent = self.options.for_call(prompt);
        let request = wire::BedrockRequest::new(prompt, form, &self.fields, sent);
        let request = request.map_err(FailedTry::without_retry)?;
        let call = SentCall { options: sent, tries };
        if sent.max_tokens > self.stream_above {
            return match request.into_converse_stream(&self.client, &self.model).send().await {
                Ok(answer) => stream::read_stream(answer, &what, &self.model, self.silence).await,
                Err(error) => self.classify_error(&what, &error, call),
            };
        }
        match request.into_converse(&self.client, &self.model).send().await {
            Ok(answer) => Ok(wire::parse_reply(answer, &self.model)),
            Err(error) => self.classify_error(&what, &error, call),
        }
    }
}

#[async_trait]
impl Llm for BedrockClient {
    fn provider(&self) -> &'static str {
        "bedrock"
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn refuses_schema(&self, prompt: &Prompt) -> bool {
        self.forms.is_refused(prompt)
    }

    fn request_options(&self) -> Option<&RequestOptions> {
        Some(&self.options)
    }

    async fn complete(&self, prompt: &Prompt) -> Result<ModelReply> {
        call_with_retries(self, prompt).await
    }
}
