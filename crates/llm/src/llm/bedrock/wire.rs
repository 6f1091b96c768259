//! Requests and replies in the SDK's types.

use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::error::BuildError;
use aws_sdk_bedrockruntime::operation::converse::ConverseOutput as Answer;
use aws_sdk_bedrockruntime::operation::converse::builders::ConverseFluentBuilder;
use aws_sdk_bedrockruntime::operation::converse_stream::builders::ConverseStreamFluentBuilder;
use aws_sdk_bedrockruntime::types::{
    CachePointBlock, CachePointType, CacheTtl, ContentBlock, ConversationRole, ConverseOutput,
    InferenceConfiguration, JsonSchemaDefinition, Message, OutputConfig, OutputFormat,
    OutputFormatStructure, OutputFormatType, SpecificToolChoice, StopReason, SystemContentBlock,
    TokenUsage, Tool, ToolChoice, ToolConfiguration, ToolInputSchema, ToolSpecification,
};

use super::document::{from_json, to_json};
use crate::config::{PromptCache, StructuredOutput};
use crate::fault::{Error, Result};
use crate::llm::schema::dialect::Dialect;
use crate::llm::{Prompt, Reply, Stop};
use crate::model::Usage;
use crate::throttle::Limits;

/// What is sent, whether the reply shall come whole or in a stream.
pub(super) struct Request {
    system: Vec<SystemContentBlock>,
    message: Message,
    limits: InferenceConfiguration,
    output: Option<OutputConfig>,
    tools: Option<ToolConfiguration>,
}

impl Request {
    /// # Errors
    /// A part of it lacks what the API requires: our bug.
    pub(super) fn new(
        prompt: &Prompt,
        structured: StructuredOutput,
        cache: PromptCache,
    ) -> Result<Self> {
        Self::build(prompt, structured, cache).map_err(|error: BuildError| {
            Error::internal("a request to Bedrock could not be built").because(error)
        })
    }

    fn build(
        prompt: &Prompt,
        structured: StructuredOutput,
        cache: PromptCache,
    ) -> std::result::Result<Self, BuildError> {
        let most = i32::try_from(prompt.max_output_tokens).unwrap_or(i32::MAX);
        let text = ContentBlock::Text(prompt.user.clone());
        let mut system = vec![SystemContentBlock::Text(prompt.system.clone())];
        // The SDK keeps a tool's schema without an order, so a prefix that holds one never comes
        // twice.
        let tool = structured == StructuredOutput::Tool;
        let point = cache_point(if tool { PromptCache::Off } else { cache })?;
        system.extend(point.map(SystemContentBlock::CachePoint));
        let schema = structured == StructuredOutput::Schema;
        Ok(Self {
            system,
            message: Message::builder().role(ConversationRole::User).content(text).build()?,
            limits: InferenceConfiguration::builder().max_tokens(most).build(),
            output: schema.then(|| by_schema(prompt)).transpose()?,
            tools: tool.then(|| by_tool(prompt)).transpose()?,
        })
    }

    pub(super) fn whole(self, client: &Client, model: &str) -> ConverseFluentBuilder {
        client
            .converse()
            .model_id(model)
            .set_system(Some(self.system))
            .messages(self.message)
            .inference_config(self.limits)
            .set_output_config(self.output)
            .set_tool_config(self.tools)
    }

    pub(super) fn streamed(self, client: &Client, model: &str) -> ConverseStreamFluentBuilder {
        client
            .converse_stream()
            .model_id(model)
            .set_system(Some(self.system))
            .messages(self.message)
            .inference_config(self.limits)
            .set_output_config(self.output)
            .set_tool_config(self.tools)
    }
}

/// The end of the stable prefix. The shortest time is left out: not every model knows the word.
fn cache_point(cache: PromptCache) -> std::result::Result<Option<CachePointBlock>, BuildError> {
    let point = CachePointBlock::builder().r#type(CachePointType::Default);
    Ok(match cache {
        PromptCache::Off => None,
        PromptCache::Short => Some(point.build()?),
        PromptCache::Long => Some(point.ttl(CacheTtl::OneHour).build()?),
    })
}

fn by_schema(prompt: &Prompt) -> std::result::Result<OutputConfig, BuildError> {
    let schema = JsonSchemaDefinition::builder()
        .name(prompt.schema_name.clone())
        .schema(Dialect::SUBSET.compile(&prompt.schema).to_string())
        .build()?;
    let format = OutputFormat::builder()
        .r#type(OutputFormatType::JsonSchema)
        .structure(OutputFormatStructure::JsonSchema(schema))
        .build()?;
    Ok(OutputConfig::builder().text_format(format).build())
}

fn by_tool(prompt: &Prompt) -> std::result::Result<ToolConfiguration, BuildError> {
    let schema = from_json(&Dialect::SUBSET.compile(&prompt.schema));
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

/// What came back. Bedrock does not say which model answered, so it is the one asked.
pub(super) fn reply(answer: Answer, asked: &str) -> Reply {
    let blocks = match answer.output {
        Some(ConverseOutput::Message(message)) => message.content,
        _ => Vec::new(),
    };
    let piece = |block: ContentBlock| match block {
        ContentBlock::Text(text) => text,
        ContentBlock::ToolUse(tool) => to_json(&tool.input).to_string(),
        // Reasoning, which is no part of the reply.
        _ => String::new(),
    };
    Reply {
        text: blocks.into_iter().map(piece).collect(),
        stop: stop_of(&answer.stop_reason),
        usage: answer.usage.as_ref().map(usage).unwrap_or_default(),
        model: asked.to_owned(),
        limits: Limits::default(),
    }
}

/// Why a reply ended. A reason that we do not know is no normal end, so it counts as cut.
pub(super) fn stop_of(reason: &StopReason) -> Stop {
    match reason {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse => Stop::Complete,
        StopReason::GuardrailIntervened | StopReason::ContentFiltered => Stop::Refused,
        StopReason::MalformedModelOutput | StopReason::MalformedToolUse => Stop::Garbled,
        _ => Stop::Cut,
    }
}

/// `inputTokens` leaves out what the cache held or took.
pub(super) fn usage(tokens: &TokenUsage) -> Usage {
    let count = |tokens: i32| u64::try_from(tokens).unwrap_or(0);
    Usage {
        input: count(tokens.input_tokens),
        cache_read: tokens.cache_read_input_tokens.map_or(0, count),
        cache_write: tokens.cache_write_input_tokens.map_or(0, count),
        output: count(tokens.output_tokens),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_to_stop_is_sorted_and_an_unknown_one_is_no_normal_end() {
        for (reason, expected) in [
            ("end_turn", Stop::Complete),
            ("tool_use", Stop::Complete),
            ("stop_sequence", Stop::Complete),
            ("max_tokens", Stop::Cut),
            ("model_context_window_exceeded", Stop::Cut),
            ("guardrail_intervened", Stop::Refused),
            ("content_filtered", Stop::Refused),
            ("malformed_model_output", Stop::Garbled),
            ("malformed_tool_use", Stop::Garbled),
            ("a_new_reason", Stop::Cut),
        ] {
            assert_eq!(stop_of(&StopReason::from(reason)), expected, "{reason}");
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
        let expected = Usage { input: 13, cache_read: 0, cache_write: 1_046, output: 5 };
        assert_eq!(usage(&tokens), expected);
    }
}
