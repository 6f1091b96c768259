//! The fields that some models of a vendor refuse, and a model's own cap on replies: refused in the
//! words in which the vendors do.
//!
//! Sources: OpenAI's codes `unsupported_parameter` and `unsupported_value`; Foundry's
//! "Unrecognized request argument supplied"; Anthropic's answers recorded for Opus 5.5 and Sonnet 5
//! (`thinking.type.disabled`, `temperature`); AWS's "exceeds the model limit"; Google's "Thinking
//! level is not supported".

use serde_json::Value;

use super::{Vendor, Wrong};
use crate::models::script::ModelRules;

/// Where each vendor has a field that a script may refuse: its name there, and its place.
const PLACES: [(Vendor, &str, &str); 18] = [
    (Vendor::Openai, "reasoning_effort", "/reasoning_effort"),
    (Vendor::Openai, "chat_template_kwargs", "/chat_template_kwargs"),
    (Vendor::Openai, "temperature", "/temperature"),
    (Vendor::Openai, "service_tier", "/service_tier"),
    (Vendor::Openai, "store", "/store"),
    (Vendor::Openai, "prompt_cache_key", "/prompt_cache_key"),
    (Vendor::Openai, "prompt_cache_options", "/prompt_cache_options"),
    (Vendor::Anthropic, "thinking", "/thinking"),
    (Vendor::Anthropic, "effort", "/output_config/effort"),
    (Vendor::Anthropic, "temperature", "/temperature"),
    (Vendor::Anthropic, "service_tier", "/service_tier"),
    (Vendor::Bedrock, "thinking", "/additionalModelRequestFields/thinking"),
    (Vendor::Bedrock, "output_config", "/additionalModelRequestFields/output_config"),
    (Vendor::Bedrock, "temperature", "/inferenceConfig/temperature"),
    (Vendor::Bedrock, "service_tier", "/serviceTier"),
    (Vendor::Gemini, "thinkingConfig", "/generationConfig/thinkingConfig"),
    (Vendor::Gemini, "temperature", "/generationConfig/temperature"),
    (Vendor::Gemini, "service_tier", "/serviceTier"),
];

/// Where each vendor has the cap on the reply.
const CAPS: [(Vendor, &str); 7] = [
    (Vendor::VertexClaude, "/max_tokens"),
    (Vendor::VertexGemini, "/generationConfig/maxOutputTokens"),
    (Vendor::Openai, "/max_tokens"),
    (Vendor::Openai, "/max_completion_tokens"),
    (Vendor::Anthropic, "/max_tokens"),
    (Vendor::Bedrock, "/inferenceConfig/maxTokens"),
    (Vendor::Gemini, "/generationConfig/maxOutputTokens"),
];

/// The cap of a request.
pub(crate) fn cap(vendor: Vendor, body: &Value) -> Option<u64> {
    let mut places = CAPS.iter().filter(|(whose, _)| *whose == vendor);
    places.find_map(|(_, place)| body.pointer(place)?.as_u64())
}

/// Whether a request asks for a reply without thinking.
pub(crate) fn is_without_thinking(vendor: Vendor, body: &Value) -> bool {
    let (place, word) = match vendor {
        Vendor::Openai => ("/reasoning_effort", "none"),
        Vendor::Anthropic | Vendor::VertexClaude => ("/thinking/type", "disabled"),
        Vendor::Bedrock => ("/additionalModelRequestFields/thinking/type", "disabled"),
        Vendor::Gemini | Vendor::VertexGemini => {
            ("/generationConfig/thinkingConfig/thinkingLevel", "minimal")
        }
    };
    body.pointer(place).and_then(Value::as_str) == Some(word)
        || body.pointer("/chat_template_kwargs/enable_thinking") == Some(&Value::Bool(false))
}

pub(super) fn check(vendor: Vendor, body: &Value, rules: &ModelRules) -> Result<(), Wrong> {
    for (whose, name, place) in PLACES {
        let is_refused = whose == vendor && rules.refuses.iter().any(|refused| refused == name);
        if is_refused && body.pointer(place).is_some() {
            return Err((name, refusal(vendor, name)));
        }
    }
    match (rules.output_limit, cap(vendor, body)) {
        (Some(most), Some(cap)) if cap > most => Err(("max_tokens", too_large(vendor, cap, most))),
        _ => Ok(()),
    }
}

fn refusal(vendor: Vendor, name: &str) -> String {
    match (vendor, name) {
        (Vendor::Openai, "prompt_cache_key") => {
            "Unrecognized request argument supplied: prompt_cache_key".to_owned()
        }
        (Vendor::Openai, _) => {
            format!("Unsupported parameter: '{name}' is not supported with this model.")
        }
        (Vendor::Anthropic | Vendor::Bedrock, "thinking") => {
            "\"thinking.type.disabled\" is not supported for this model. Use \
             \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior."
                .to_owned()
        }
        (Vendor::Anthropic, "effort") | (Vendor::Bedrock, "output_config") => {
            "This model does not support the effort parameter.".to_owned()
        }
        (Vendor::Anthropic | Vendor::Bedrock, "temperature") => {
            "`temperature` is deprecated for this model.".to_owned()
        }
        (Vendor::Gemini, "thinkingConfig") => {
            "Thinking level is not supported for this model.".to_owned()
        }
        (Vendor::Gemini, _) => format!("Invalid JSON payload received. Unknown name \"{name}\""),
        _ => format!("{name}: Extra inputs are not permitted"),
    }
}

fn too_large(vendor: Vendor, cap: u64, most: u64) -> String {
    match vendor {
        Vendor::Openai => format!(
            "max_tokens is too large: {cap}. This model supports at most {most} completion tokens, \
             whereas you provided {cap}."
        ),
        Vendor::Anthropic | Vendor::VertexClaude => format!(
            "max_tokens: {cap} > {most}, which is the maximum allowed number of output tokens for \
             model-1"
        ),
        Vendor::Bedrock => format!(
            "The maximum tokens you requested exceeds the model limit of {most}. Try again with a \
             maximum tokens value that is lower than {most}."
        ),
        Vendor::Gemini | Vendor::VertexGemini => format!(
            "Unable to submit request because it has a maxOutputTokens value of {cap} but the \
             supported range is from 1 (inclusive) to {} (exclusive).",
            most + 1
        ),
    }
}
