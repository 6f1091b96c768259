//! Language models, behind one small trait.
//!
//! An implementation sends one prompt with a JSON Schema and returns the text of the reply with
//! its stop reason and usage. It does not read the reply, repair it or retry beyond the vendor
//! SDK's own habits; `extract` does. Decorators (throttling, local memory) are `Llm` themselves.

pub mod anthropic;
pub mod batch;
pub mod bedrock;
pub mod chain;
mod events;
mod exchange;
mod form;
pub mod gemini;
pub mod governed;
pub mod mistral_ocr;
pub mod openai;
mod options;
mod picture;
mod prompt_count;
mod refusal;
pub mod schema;
mod spaces;
pub mod traced;

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use docmill_client::body_size::BodyTooLarge;
use docmill_client::throttle::RateLimitHeaders;
use docmill_core::fault::Result;
use docmill_core::model::{EncodedImage, ModelUsage, PictureRule, PriceClass};
pub use options::RequestOptions;
pub use prompt_count::count_words;

/// One request to a language model.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// Stable text first, so that prompt caching works. Shared, as the schema: thousands of prompts wait
    /// at the same time.
    pub system: Arc<str>,
    /// The document, fenced, and what to do with it.
    pub user: String,
    /// Name of the schema: 1 to 64 of `[a-zA-Z0-9_-]`.
    pub schema_name: String,
    /// JSON schema that the reply must match.
    pub schema: Arc<Value>,
    /// Whether the text needs the schema where the request does not show it to the model: the text does not
    /// describe the form itself. The client then appends it to `system`.
    pub schema_in_text: bool,
    /// How much the model thinks.
    pub thinking: PromptThinking,
    /// Most tokens the reply may have.
    pub max_output_tokens: u32,
    /// Pictures that the model is shown: those of numbered pages before the user's text, others behind it.
    pub pictures: Vec<PromptPicture>,
}

/// How much a model thinks about one prompt, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptThinking {
    /// As `llm.effort` says.
    AsConfigured,
    /// As little as the model can.
    Less,
    /// The same, asked with the room that [`RequestOptions::make_room`] has made for it.
    Longer,
}

/// A picture of a prompt, drawn to the size of the vendor's rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptPicture {
    /// The picture as it is sent.
    pub image: Arc<EncodedImage>,
    /// Tokens that it counts for by the vendor's rule.
    pub tokens: u64,
    /// Number of its page, which is written before it; none where the text itself introduces it.
    pub page: Option<u32>,
}

impl PromptPicture {
    /// Counts a picture by the rule that it was sized by.
    pub fn new(image: Arc<EncodedImage>, rule: PictureRule) -> Self {
        let tokens = rule.count_tokens(image.header.width, image.header.height);
        Self { image, tokens, page: None }
    }

    /// The same as the picture of a page, by its number from 1.
    #[must_use]
    pub fn of_page(self, page: u32) -> Self {
        Self { page: Some(page), ..self }
    }
}

impl Prompt {
    /// Tokens of all of it, estimated. The schema counts once, be it in the text or beside it.
    pub fn estimate_tokens(&self) -> u64 {
        let text = estimate_tokens(&self.system).saturating_add(estimate_tokens(&self.user));
        let schema = estimate_tokens(&self.schema.to_string());
        text.saturating_add(schema).saturating_add(self.picture_tokens())
    }

    /// Tokens of its pictures, by the vendor's rule.
    pub fn picture_tokens(&self) -> u64 {
        self.pictures.iter().map(|picture| picture.tokens).sum()
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model had finished.
    Complete,
    /// It ran into the token limit: the text is cut.
    Cut,
    /// It ended for a reason that is unknown here: no normal end, and no limit. The same question may be
    /// answered whole.
    Stopped,
    /// It declined, or a filter did.
    Refused,
    /// The prompt did not fit into its window: it generated nothing. A shorter one may fit.
    TooLong,
    /// It went in circles (white space without end) or broke its own form: what it wrote is of no
    /// use, however long. The same question in other words may get an answer.
    Garbled,
}

/// One reply of a language model.
#[derive(Debug, Clone)]
pub struct ModelReply {
    /// The text, possibly cut or empty.
    pub text: String,
    /// Why the model stopped.
    pub stop: FinishReason,
    /// Tokens that the call used.
    pub usage: ModelUsage,
    /// The model that answered, as it names itself.
    pub model: String,
    /// Limits in the response headers, for the governor.
    pub limits: RateLimitHeaders,
}

/// Eighths of a token that a character takes on average, by its kind: four letters or blanks a token,
/// two digits or signs, two letters of other alphabets, one ideogram or syllable. Vendors' tokenizers
/// differ by a third about that; four bytes a token would be half of what tables of numbers take.
const LETTER_EIGHTHS: u64 = 2;
const SIGN_EIGHTHS: u64 = 4;
const IDEOGRAM_EIGHTHS: u64 = 8;

/// Tokens of a text, estimated.
pub fn estimate_tokens(text: &str) -> u64 {
    text.chars().map(char_eighths).sum::<u64>().div_ceil(8)
}

fn char_eighths(c: char) -> u64 {
    match c {
        'a'..='z' | 'A'..='Z' | ' ' | '\n' => LETTER_EIGHTHS,
        '\0'..='\u{2e7f}' => SIGN_EIGHTHS,
        _ => IDEOGRAM_EIGHTHS,
    }
}

impl ModelReply {
    /// The reply without text: the prompt did not fit, or was declined before it reached the model,
    /// or the text was too long to be read.
    fn without_text(stop: FinishReason, model: &str) -> Self {
        Self {
            text: String::new(),
            stop,
            usage: ModelUsage::default(),
            model: model.to_owned(),
            limits: RateLimitHeaders::default(),
        }
    }

    /// A reply that ran into its limit with white space is of no use, and not for its length.
    fn check_whitespace(mut self) -> Self {
        if self.stop == FinishReason::Cut && spaces::has_endless_whitespace(&self.text) {
            self.stop = FinishReason::Garbled;
        }
        self
    }
}

/// A language model that answers prompts.
#[async_trait]
pub trait Llm: Send + Sync {
    /// Name for pauses and metric labels, e.g. `openai`.
    fn provider(&self) -> &str;

    /// The configured model; part of a stored reply's identity.
    fn model(&self) -> &str;

    /// Asks once. Dropping the future aborts the call.
    async fn complete(&self, prompt: &Prompt) -> Result<ModelReply>;

    /// The fields of its requests beside the prompt; `None`: it has none.
    fn request_options(&self) -> Option<&RequestOptions> {
        None
    }

    /// The terms of its calls that change their price.
    fn price_class(&self) -> PriceClass {
        PriceClass::default()
    }

    /// Whether its provider is known to be down, or to deny us.
    fn is_down(&self) -> bool {
        false
    }

    /// Whether it has refused the schema of this prompt in this process, so that its replies are asked for by the
    /// text alone.
    fn refuses_schema(&self, _prompt: &Prompt) -> bool {
        false
    }

    /// Asks whether the server is there and takes our key, without spending a token. One that cannot
    /// be asked so passes.
    ///
    /// # Errors
    /// Which address did not answer or refused, and which setting to check.
    async fn ping(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_estimated_by_the_kind_of_characters() {
        #[rustfmt::skip]
        let table = [
            ("",                              0),
            ("The total amount is due soon.", 8),
            ("1.234,56 20260815",             9),
            ("Ωμέγα",                         3),
            ("請求書番号",                      5),
        ];
        for (text, expected) in table {
            assert_eq!(estimate_tokens(text), expected, "{text}");
        }
    }
}
