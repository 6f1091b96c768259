//! Requests and replies in the SDK's types.

use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::error::BuildError;
use aws_sdk_bedrockruntime::operation::converse::ConverseOutput as Answer;
use aws_sdk_bedrockruntime::operation::converse::builders::ConverseFluentBuilder;
use aws_sdk_bedrockruntime::operation::converse_stream::builders::ConverseStreamFluentBuilder;
use aws_sdk_bedrockruntime::primitives::Blob;
use aws_sdk_bedrockruntime::types::{
    CachePointBlock, CachePointType, CacheTtl, ContentBlock, ConversationRole, ConverseOutput,
    ImageBlock, ImageFormat, ImageSource, InferenceConfiguration, JsonSchemaDefinition, Message,
    OutputConfig, OutputFormat, OutputFormatStructure, OutputFormatType, ServiceTier,
    ServiceTierType, SpecificToolChoice, StopReason, SystemContentBlock, TokenUsage, Tool,
    ToolChoice, ToolConfiguration, ToolInputSchema, ToolSpecification,
};

use aws_smithy_types::Document;
use serde_json::{Value, json};

use super::document::{from_json, to_json};
use crate::form::ReplyForm;
use crate::options::{CallEffort, CallOptions};
use crate::picture::{TurnPart, turn_parts};
use crate::{FinishReason, ModelReply, Prompt};
use docmill_client::throttle::RateLimitHeaders;
use docmill_core::config::{BedrockFamily, ExtraBody, LlmConfig, PromptCache};
use docmill_core::fault::{Error, Result};
use docmill_core::model::{EncodedImage, ImageEncoding, ModelUsage};

/// Fields that all requests to one model have in common.
#[derive(Debug, Clone)]
pub(super) struct ModelFields {
    cache: PromptCache,
    family: BedrockFamily,
    /// Fields of the model, beside those of Converse.
    extra: ExtraBody,
}

impl ModelFields {
    pub(super) fn from_config(config: &LlmConfig) -> Self {
        Self {
            cache: config.prompt_cache,
            family: config.bedrock_family(),
            extra: config.extra_body.clone(),
        }
    }

    /// The `additionalModelRequestFields`: effort in the words of the model's maker, and those of
    /// `llm.extra_body`. Claude: as at Anthropic. OpenAI's open models cannot do without reasoning.
    /// Nova: `reasoningConfig` (docs.aws.amazon.com/nova, extended thinking).
    pub(super) fn write(&self, effort: CallEffort) -> Option<Value> {
        let mut fields = match (self.family, effort) {
            (_, CallEffort::Unsaid) | (BedrockFamily::Other, _) => json!({}),
            (BedrockFamily::Anthropic, CallEffort::Off) => {
                json!({"thinking": {"type": "disabled"}})
            }
            (BedrockFamily::Anthropic, CallEffort::Level(level)) => {
                json!({"output_config": {"effort": level}})
            }
            (BedrockFamily::Openai, CallEffort::Off) => json!({"reasoning_effort": "low"}),
            (BedrockFamily::Openai, CallEffort::Level(level)) => json!({"reasoning_effort": level}),
            (BedrockFamily::Nova, CallEffort::Off) => {
                json!({"reasoningConfig": {"type": "disabled"}})
            }
            (BedrockFamily::Nova, CallEffort::Level(level)) => {
                json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": level}})
            }
        };
        self.extra.merge_into(&mut fields);
        Some(fields).filter(|fields| fields.as_object().is_some_and(|map| !map.is_empty()))
    }
}

/// A request, for a reply as a whole or as a stream.
pub(super) struct BedrockRequest {
    system: Vec<SystemContentBlock>,
    message: Message,
    limits: InferenceConfiguration,
    output: Option<OutputConfig>,
    tools: Option<ToolConfiguration>,
    model_fields: Option<Document>,
    tier: Option<ServiceTier>,
}

impl BedrockRequest {
    /// # Errors
    /// A part of it lacks what the API requires: our bug.
    pub(super) fn new(
        prompt: &Prompt,
        form: ReplyForm,
        fields: &ModelFields,
        call: CallOptions<'_>,
    ) -> Result<Self> {
        Self::try_build(prompt, form, fields, call).map_err(|error: BuildError| {
            Error::internal("a request to Bedrock could not be built").with_source(error)
        })
    }

    fn try_build(
        prompt: &Prompt,
        form: ReplyForm,
        fields: &ModelFields,
        call: CallOptions<'_>,
    ) -> std::result::Result<Self, BuildError> {
        let cache = fields.cache;
        let most = i32::try_from(call.max_tokens).unwrap_or(i32::MAX);
        let mut content = Vec::new();
        for part in turn_parts(prompt, form) {
            content.push(match part {
                TurnPart::Text(text) => ContentBlock::Text(text.into_owned()),
                TurnPart::Picture(image) => ContentBlock::Image(image_block(image)?),
            });
        }
        let mut system = Vec::new();
        let text = form.write_system_text(prompt);
        if !text.is_empty() {
            system.push(SystemContentBlock::Text(text.to_string()));
        }
        // The SDK keeps a tool's schema without an order, so a prefix that holds one never comes
        // twice.
        let point = cache_point(if form.is_by_tool() { PromptCache::Off } else { cache })?;
        system.extend(point.filter(|_| !text.is_empty()).map(SystemContentBlock::CachePoint));
        Ok(Self {
            system,
            message: Message::builder()
                .role(ConversationRole::User)
                .set_content(Some(content))
                .build()?,
            limits: InferenceConfiguration::builder()
                .max_tokens(most)
                .set_temperature(call.temperature.map(narrow_number))
                .build(),
            output: form.is_by_schema().then(|| schema_output_config(prompt, form)).transpose()?,
            tools: form.is_by_tool().then(|| tool_config(prompt, form)).transpose()?,
            model_fields: fields.write(call.effort).as_ref().map(from_json),
            tier: call.service_tier.map(service_tier).transpose()?,
        })
    }

    pub(super) fn into_converse(self, client: &Client, model: &str) -> ConverseFluentBuilder {
        client
            .converse()
            .model_id(model)
            .set_system((!self.system.is_empty()).then_some(self.system))
            .messages(self.message)
            .inference_config(self.limits)
            .set_output_config(self.output)
            .set_tool_config(self.tools)
            .set_additional_model_request_fields(self.model_fields)
            .set_service_tier(self.tier)
    }

    pub(super) fn into_converse_stream(
        self,
        client: &Client,
        model: &str,
    ) -> ConverseStreamFluentBuilder {
        client
            .converse_stream()
            .model_id(model)
            .set_system((!self.system.is_empty()).then_some(self.system))
            .messages(self.message)
            .inference_config(self.limits)
            .set_output_config(self.output)
            .set_tool_config(self.tools)
            .set_additional_model_request_fields(self.model_fields)
            .set_service_tier(self.tier)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a temperature has few digits")]
fn narrow_number(value: f64) -> f32 {
    value as f32
}

fn service_tier(name: &str) -> std::result::Result<ServiceTier, BuildError> {
    ServiceTier::builder().r#type(ServiceTierType::from(name)).build()
}

fn image_block(picture: &EncodedImage) -> std::result::Result<ImageBlock, BuildError> {
    let format = match picture.header.encoding {
        ImageEncoding::Png => ImageFormat::Png,
        ImageEncoding::Jpeg => ImageFormat::Jpeg,
    };
    let source = ImageSource::Bytes(Blob::new(picture.bytes.clone()));
    ImageBlock::builder().format(format).source(source).build()
}

/// The end of the stable prefix. The shortest time is omitted: not every model accepts it.
fn cache_point(cache: PromptCache) -> std::result::Result<Option<CachePointBlock>, BuildError> {
    let point = CachePointBlock::builder().r#type(CachePointType::Default);
    Ok(match cache {
        PromptCache::Off => None,
        PromptCache::Short => Some(point.build()?),
        PromptCache::Long => Some(point.ttl(CacheTtl::OneHour).build()?),
    })
}

fn schema_output_config(
    prompt: &Prompt,
    form: ReplyForm,
) -> std::result::Result<OutputConfig, BuildError> {
    let schema = JsonSchemaDefinition::builder()
        .name(prompt.schema_name.clone())
        .schema(form.compile(prompt).to_string())
        .build()?;
    let format = OutputFormat::builder()
        .r#type(OutputFormatType::JsonSchema)
        .structure(OutputFormatStructure::JsonSchema(schema))
        .build()?;
    Ok(OutputConfig::builder().text_format(format).build())
}

fn tool_config(
    prompt: &Prompt,
    form: ReplyForm,
) -> std::result::Result<ToolConfiguration, BuildError> {
    let schema = from_json(&form.compile(prompt));
    let tool = ToolSpecification::builder()
        .name(prompt.schema_name.clone())
        .description("Takes the reply.")
        .input_schema(ToolInputSchema::Json(schema))
        .build()?;
    let choice = SpecificToolChoice::builder().name(prompt.schema_name.clone()).build()?;
    ToolConfiguration::builder()
        .tools(Tool::ToolSpec(tool))
        .tool_choice(ToolChoice::Tool(choice))
        .build()
}

/// The reply. Bedrock does not say which model answered, so it is the one asked.
pub(super) fn parse_reply(answer: Answer, asked: &str) -> ModelReply {
    let blocks = match answer.output {
        Some(ConverseOutput::Message(message)) => message.content,
        _ => Vec::new(),
    };
    // Text before the call of the tool is no part of the reply.
    let has_call = blocks.iter().any(ContentBlock::is_tool_use);
    let blocks = blocks.into_iter().filter(|block| !has_call || block.is_tool_use());
    ModelReply {
        text: blocks.map(block_text).collect(),
        stop: map_stop_reason(&answer.stop_reason),
        usage: answer.usage.as_ref().map(map_usage).unwrap_or_default(),
        model: asked.to_owned(),
        limits: RateLimitHeaders::default(),
    }
}

/// The text of a block, or the input of a tool call.
fn block_text(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text,
        ContentBlock::ToolUse(tool) => to_json(&tool.input).to_string(),
        // Reasoning, which is no part of the reply.
        _ => String::new(),
    }
}

/// Why a reply ended. A reason that is unknown here is no normal end.
pub(super) fn map_stop_reason(reason: &StopReason) -> FinishReason {
    match reason {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse => {
            FinishReason::Complete
        }
        StopReason::GuardrailIntervened | StopReason::ContentFiltered => FinishReason::Refused,
        StopReason::MalformedModelOutput | StopReason::MalformedToolUse => FinishReason::Garbled,
        StopReason::MaxTokens | StopReason::ModelContextWindowExceeded => FinishReason::Cut,
        _ => FinishReason::Stopped,
    }
}

/// `inputTokens` leaves out what was read from the cache or written to it.
pub(super) fn map_usage(tokens: &TokenUsage) -> ModelUsage {
    ModelUsage {
        input: token_count(tokens.input_tokens),
        cache_read: tokens.cache_read_input_tokens.map_or(0, token_count),
        cache_write: tokens.cache_write_input_tokens.map_or(0, token_count),
        output: token_count(tokens.output_tokens),
    }
}

/// A count of tokens; negative ones are zero.
fn token_count(tokens: i32) -> u64 {
    u64::try_from(tokens).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_to_stop_is_sorted_and_an_unknown_one_is_no_normal_end() {
        for (reason, expected) in [
            ("end_turn", FinishReason::Complete),
            ("tool_use", FinishReason::Complete),
            ("stop_sequence", FinishReason::Complete),
            ("max_tokens", FinishReason::Cut),
            ("model_context_window_exceeded", FinishReason::Cut),
            ("guardrail_intervened", FinishReason::Refused),
            ("content_filtered", FinishReason::Refused),
            ("malformed_model_output", FinishReason::Garbled),
            ("malformed_tool_use", FinishReason::Garbled),
            ("a_new_reason", FinishReason::Stopped),
        ] {
            assert_eq!(map_stop_reason(&StopReason::from(reason)), expected, "{reason}");
        }
    }

    #[test]
    fn effort_is_written_in_the_words_of_the_models_maker_and_further_fields_join_it() {
        let fields = |model: &str, effort, extra: &str| {
            let config = LlmConfig {
                model: model.to_owned(),
                extra_body: toml::from_str(extra).unwrap(),
                ..LlmConfig::default()
            };
            ModelFields::from_config(&config).write(effort)
        };
        let (claude, off, low) =
            ("eu.anthropic.claude-x", CallEffort::Off, CallEffort::Level("low"));
        #[rustfmt::skip]
        let table = [
            (claude,             CallEffort::Unsaid, "",          None),
            (claude,             off,                "",          Some(json!({"thinking": {"type": "disabled"}}))),
            (claude,             low,                "top_k = 5", Some(json!({"output_config": {"effort": "low"}, "top_k": 5}))),
            ("openai.gpt-oss",   off,                "",          Some(json!({"reasoning_effort": "low"}))),
            ("amazon.nova-2",    low,                "",          Some(json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}))),
            ("qwen.qwen3",       CallEffort::Unsaid, "top_k = 5", Some(json!({"top_k": 5}))),
        ];
        for (model, effort, extra, expected) in table {
            assert_eq!(fields(model, effort, extra), expected, "{model} {effort:?}");
        }
    }

    #[test]
    fn the_classes_of_tokens_share_none() {
        let tokens = TokenUsage::builder()
            .input_tokens(13)
            .output_tokens(5)
            .total_tokens(1_064)
            .cache_read_input_tokens(0)
            .cache_write_input_tokens(1_046)
            .build()
            .unwrap();
        let expected = ModelUsage { input: 13, cache_read: 0, cache_write: 1_046, output: 5 };
        assert_eq!(map_usage(&tokens), expected);
    }
}
