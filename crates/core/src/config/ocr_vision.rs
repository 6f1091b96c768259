//! `[ocr.vision]`: which vision model reads page images, and how it is asked.
//!
//! Where it is and how it is spoken to is said in the words of `[llm]`, of which nothing is taken
//! over: pages go only where this section sends them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::llm::{
    LlmAuth, LlmConfig, LlmProvider, LlmServer, PromptCache, ReplyNumbers, StructuredOutput,
};
use super::llm_request::{AutoOr, ExtraBody, ModelEffort};
use super::units::SecretString;
use crate::model::{PictureFit, PictureRule};

/// Longest side of the pictures that the models of olmOCR were trained on.
const OLMOCR_SIDE: u32 = 1288;

/// How a vision model is asked for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VisionRecipe {
    /// A prompt for any model, whose reply has a schema.
    General,
    /// The prompt that the models of olmOCR were trained on, and their front matter.
    Olmocr,
    /// No prompt: Mistral's endpoint for pages (`/ocr`), and its Markdown.
    #[serde(rename = "mistral_ocr")]
    MistralOcr,
}

/// `[ocr.vision]`: a vision model that reads pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VisionConfig {
    /// Which vendor's API is called.
    pub provider: LlmProvider,
    /// Which server, where several speak the same protocol.
    pub server: LlmServer,
    /// As `llm.base_url`.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub base_url: String,
    /// As `llm.api_key`; that one is not taken.
    pub api_key: SecretString,
    /// A file with that key, read again when it changes.
    pub api_key_file: PathBuf,
    /// As `llm.auth`.
    pub auth: LlmAuth,
    /// AWS region of Bedrock; empty: from the environment.
    pub region: String,
    /// Name of the model.
    pub model: String,
    /// How it is asked.
    pub recipe: VisionRecipe,
    /// How the form of the reply is demanded; with the recipe `olmocr` it is not.
    pub structured: StructuredOutput,
    /// Longest one call may take.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// Most tokens of a reply.
    pub max_output_tokens: u32,
    /// As `llm.effort`.
    pub effort: ModelEffort,
    /// As `llm.thinking_tokens`.
    pub thinking_tokens: AutoOr<u32>,
    /// As `llm.temperature`.
    pub temperature: AutoOr<f64>,
    /// As `llm.service_tier`.
    pub service_tier: String,
    /// As `llm.extra_body`.
    pub extra_body: ExtraBody,
    /// As `llm.headers`.
    pub headers: BTreeMap<String, String>,
    /// As `llm.header_files`.
    pub header_files: BTreeMap<String, PathBuf>,
    /// Most pixels of a picture's longer side; 0: by the vendor's rule.
    pub longest_side: u32,
}

impl Default for VisionConfig {
    fn default() -> Self {
        Self {
            provider: LlmProvider::Openai,
            server: LlmServer::Other,
            base_url: String::new(),
            api_key: SecretString::default(),
            api_key_file: PathBuf::new(),
            auth: LlmAuth::Key,
            region: String::new(),
            model: String::new(),
            recipe: VisionRecipe::General,
            structured: StructuredOutput::Schema,
            timeout: Duration::from_secs(300),
            max_output_tokens: 8_000,
            effort: ModelEffort::Default,
            thinking_tokens: AutoOr::Auto,
            temperature: AutoOr::Auto,
            service_tier: String::new(),
            extra_body: ExtraBody::default(),
            headers: BTreeMap::new(),
            header_files: BTreeMap::new(),
            longest_side: 0,
        }
    }
}

impl VisionConfig {
    /// How its model is reached.
    pub fn model_config(&self) -> LlmConfig {
        let own_form = self.recipe == VisionRecipe::Olmocr;
        LlmConfig {
            provider: self.provider,
            server: self.server,
            base_url: self.base_url.clone(),
            api_key: self.api_key.clone(),
            api_key_file: self.api_key_file.clone(),
            auth: self.auth,
            region: self.region.clone(),
            model: self.model.clone(),
            timeout: self.timeout,
            max_output_tokens: self.max_output_tokens,
            effort: self.effort,
            thinking_tokens: self.thinking_tokens,
            temperature: self.temperature,
            service_tier: self.service_tier.clone(),
            extra_body: self.extra_body.clone(),
            headers: self.headers.clone(),
            header_files: self.header_files.clone(),
            structured: if own_form { StructuredOutput::Prompt } else { self.structured },
            // Coordinates in pixels, which no page prints.
            numbers: ReplyNumbers::Json,
            // A page is asked for once, and what comes before its picture is short.
            prompt_cache: PromptCache::Off,
            ..LlmConfig::default()
        }
    }

    /// The largest picture that the model reads as it is: what its vendor would shrink by itself is
    /// shrunk here, where we know of it.
    pub fn picture_fit(&self) -> PictureFit {
        self.picture_rule().fit_within(self.longest_side, 0)
    }

    /// How pictures are sized and counted: by the vendor's rule, and as the recipe's models were
    /// trained.
    pub fn picture_rule(&self) -> PictureRule {
        let rule = self.model_config().picture_rule();
        match self.recipe {
            VisionRecipe::Olmocr => PictureRule {
                longest_side: OLMOCR_SIDE,
                pixels: u64::from(OLMOCR_SIDE).pow(2),
                ..rule
            },
            VisionRecipe::General | VisionRecipe::MistralOcr => rule,
        }
    }

    /// Missing or wrong settings, as problems of the configuration.
    pub fn list_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        self.model_config().check_one("ocr.vision", &mut problems);
        if self.recipe == VisionRecipe::MistralOcr && self.provider != LlmProvider::Openai {
            problems.push(
                "ocr.vision.recipe \"mistral_ocr\" needs ocr.vision.provider \"openai\": its \
                 endpoint is called by address and key"
                    .to_owned(),
            );
        }
        if self.longest_side != 0 && !(448..=8000).contains(&self.longest_side) {
            problems.push("ocr.vision.longest_side must be 0, or between 448 and 8000".to_owned());
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete() -> VisionConfig {
        VisionConfig {
            base_url: "http://127.0.0.1:8000/v1".to_owned(),
            model: "seer".to_owned(),
            ..VisionConfig::default()
        }
    }

    #[test]
    fn missing_settings_of_a_vision_model_are_reported_by_key() {
        assert_eq!(complete().list_problems(), Vec::<String>::new());
        let problems = VisionConfig::default().list_problems().join("\n");
        for key in ["ocr.vision.base_url", "ocr.vision.model"] {
            assert!(problems.contains(key), "{key}: {problems}");
        }
        let none = VisionConfig { provider: LlmProvider::None, ..complete() };
        assert!(none.list_problems().join("").contains("ocr.vision.provider"));
        let recipe = VisionRecipe::MistralOcr;
        let elsewhere =
            VisionConfig { provider: LlmProvider::Anthropic, recipe, ..complete() }.list_problems();
        assert!(elsewhere.join("").contains("ocr.vision.recipe"), "{elsewhere:?}");
        assert!(VisionConfig { recipe, ..complete() }.list_problems().is_empty());
        let tiny = VisionConfig { longest_side: 100, ..complete() };
        assert!(tiny.list_problems().join("").contains("longest_side"));
        let key = VisionConfig {
            base_url: "http://models.example/v1".to_owned(),
            api_key: "secret".to_owned().into(),
            ..complete()
        };
        assert!(key.list_problems().join("").contains("https://"), "in the clear");
    }

    #[test]
    fn no_picture_is_larger_than_its_vendor_reads_without_shrinking() {
        let tall = (2480_u32, 3508_u32);
        let size = |config: &VisionConfig| {
            let scale = config.picture_fit().scale(tall.0, tall.1);
            ((f64::from(tall.0) * scale).floor(), (f64::from(tall.1) * scale).floor())
        };
        let pieces = |(w, h): (f64, f64), side: f64| (w / side).ceil() * (h / side).ceil();
        let openai = VisionConfig { server: LlmServer::Openai, ..complete() };
        let (w, h) = size(&openai);
        assert!(h <= 2048.0 && pieces((w, h), 32.0) <= 2500.0 && h > 1700.0, "{w} {h}");
        for provider in [LlmProvider::Anthropic, LlmProvider::Bedrock] {
            let (w, h) = size(&VisionConfig { provider, ..complete() });
            assert!(h <= 1568.0 && pieces((w, h), 28.0) <= 1568.0 && h > 1200.0, "{w} {h}");
        }
        let olmocr = VisionConfig { recipe: VisionRecipe::Olmocr, ..complete() };
        assert_eq!(size(&olmocr).1, 1288.0);
        let small = complete().picture_fit().scale(200, 300);
        assert_eq!(small, 1.0, "nothing is enlarged");
    }
}
