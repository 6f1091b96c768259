//! Converse as JSON in the files of batches: the same request and reply that the SDK writes and
//! reads for a single call.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use aws_sdk_bedrockruntime::types::StopReason;

use super::errors::says_too_long;
use super::wire::{ModelFields, map_stop_reason};
use crate::form::ReplyForm;
use crate::options::CallOptions;
use crate::picture::{TurnPart, encode_base64, turn_parts};
use crate::{FinishReason, ModelReply, Prompt};
use docmill_client::throttle::RateLimitHeaders;
use docmill_core::model::{ImageEncoding, ModelUsage};

/// The `modelInput` of a question. Without a cache point, which batches do not know.
pub(super) fn build_input(
    prompt: &Prompt,
    form: ReplyForm,
    fields: &ModelFields,
    call: CallOptions<'_>,
) -> Value {
    let content = turn_parts(prompt, form).into_iter().map(|part| match part {
        TurnPart::Text(text) => json!({"text": text}),
        TurnPart::Picture(image) => {
            let format = match image.header.encoding {
                ImageEncoding::Png => "png",
                ImageEncoding::Jpeg => "jpeg",
            };
            json!({"image": {"format": format, "source": {"bytes": encode_base64(image)}}})
        }
    });
    let content: Vec<Value> = content.collect();
    let mut input = Map::new();
    let text = form.write_system_text(prompt);
    if !text.is_empty() {
        input.insert("system".to_owned(), json!([{"text": text}]));
    }
    input.insert("messages".to_owned(), json!([{"role": "user", "content": content}]));
    let mut inference = json!({"maxTokens": call.max_tokens});
    if let (Some(temperature), Some(fields)) = (call.temperature, inference.as_object_mut()) {
        fields.insert("temperature".to_owned(), json!(temperature));
    }
    input.insert("inferenceConfig".to_owned(), inference);
    if let Some(fields) = fields.write(call.effort) {
        input.insert("additionalModelRequestFields".to_owned(), fields);
    }
    if form.is_by_schema() {
        let schema = form.compile(prompt).to_string();
        let named = json!({"name": prompt.schema_name, "schema": schema});
        let format = json!({"type": "json_schema", "structure": {"jsonSchema": named}});
        input.insert("outputConfig".to_owned(), json!({"textFormat": format}));
    }
    Value::Object(input)
}

/// A line of a file of answers.
#[derive(Deserialize)]
pub(super) struct BedrockResultLine {
    #[serde(rename = "recordId")]
    pub(super) record_id: String,
    #[serde(default, rename = "modelOutput")]
    output: Option<ConverseJson>,
    #[serde(default)]
    error: Option<BedrockRecordError>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BedrockRecordError {
    #[serde(default)]
    error_code: Value,
    /// Examined, never passed on: it may quote the prompt.
    #[serde(default)]
    error_message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConverseJson {
    output: ConverseJsonOutput,
    stop_reason: String,
    #[serde(default)]
    usage: ConverseJsonUsage,
}

#[derive(Deserialize)]
struct ConverseJsonOutput {
    message: ConverseJsonMessage,
}

#[derive(Deserialize)]
struct ConverseJsonMessage {
    content: Vec<ConverseJsonBlock>,
}

#[derive(Deserialize)]
struct ConverseJsonBlock {
    /// None: reasoning, which is no part of the reply.
    #[serde(default)]
    text: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConverseJsonUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_write_input_tokens: u64,
}

impl BedrockResultLine {
    /// The reply of the model that was asked, or the refusal in its place.
    pub(super) fn reply(&self, asked: &str) -> Option<ModelReply> {
        let Some(answer) = &self.output else {
            let error = self.error.as_ref()?;
            let is_too_long = says_too_long(&error.error_message);
            return is_too_long.then(|| ModelReply::without_text(FinishReason::TooLong, asked));
        };
        let blocks = &answer.output.message.content;
        let usage = &answer.usage;
        Some(ModelReply {
            text: blocks.iter().filter_map(|block| block.text.as_deref()).collect(),
            stop: map_stop_reason(&StopReason::from(answer.stop_reason.as_str())),
            usage: ModelUsage {
                input: usage.input_tokens,
                cache_read: usage.cache_read_input_tokens,
                cache_write: usage.cache_write_input_tokens,
                output: usage.output_tokens,
            },
            model: asked.to_owned(),
            limits: RateLimitHeaders::default(),
        })
    }

    /// The vendor's code for why there is no reply.
    pub(super) fn error_code(&self) -> Option<String> {
        let code = &self.error.as_ref()?.error_code;
        Some(code.as_str().map_or_else(|| format!("error_{code}"), str::to_owned))
    }
}
