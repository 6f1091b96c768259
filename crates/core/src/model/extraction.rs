//! The structured data that a reader of the transcript produced, before the gate has judged it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Which reader produced the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtractionMethod {
    /// The XML of an e-invoice: exact, no model.
    Einvoice,
    /// A language model read the transcript.
    Llm,
    /// Labels and layout, offline.
    Rules,
}

impl ExtractionMethod {
    /// The stable word, as in `docmill process --json`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Einvoice => "einvoice",
            Self::Llm => "llm",
            Self::Rules => "rules",
        }
    }
}

/// The reader's confidence in its own work. One signal among others, never decisive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatedConfidence {
    /// Everything asked for was read.
    High,
    /// The reader had some doubt.
    Medium,
    /// The reader mostly guessed.
    Low,
}

impl StatedConfidence {
    /// The stable word, as in the column `extraction_confidence`.
    pub fn code(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// A reader's statement about its own reading, kept in the row as it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderStatement {
    /// Whether it could read all that it was asked for.
    pub successful: bool,
    /// How sure it is.
    pub confidence: StatedConfidence,
    /// Fields that are not on the document, by its word.
    pub missing_fields: Vec<String>,
}

/// Tokens of one or more model calls in four classes that share none, in one meaning for every
/// vendor. Each class has a price of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUsage {
    /// Prompt tokens that were not read from a cache and that were written to none.
    pub input: u64,
    /// Prompt tokens that were read from the vendor's cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Prompt tokens that were written to the vendor's cache.
    #[serde(default)]
    pub cache_write: u64,
    /// Generated tokens, reasoning included.
    pub output: u64,
}

/// Terms of a call that change its price.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PriceClass {
    /// The vendor's class of service; empty: its default.
    pub service_tier: String,
    /// Whether prompt tokens are kept in the vendor's cache for an hour.
    pub caches_for_an_hour: bool,
}

impl ModelUsage {
    /// All prompt tokens, cached or not.
    pub fn prompt_tokens(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }
}

impl std::ops::AddAssign for ModelUsage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
    }
}

/// Where a field's value was read: lines of one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldEvidence {
    /// Name of the field, e.g. `total` or `line_items[2].amount`.
    pub field: String,
    /// Page, starting at 1.
    pub page: u32,
    /// The lines that the value was read from: indexes into [`crate::model::PageText::lines`].
    pub lines: Vec<u32>,
}

/// How certain it is that a field is right: its value, or that the document has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldCertainty {
    /// Name of the field.
    pub field: String,
    /// 0..1, a probability as far as it was fitted on documents like this one.
    pub certainty: f32,
}

/// The data and what the reader said about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Extraction {
    /// By which method the data was read.
    pub reader: ExtractionMethod,
    /// Name of the model, if a model read it.
    pub model: Option<String>,
    /// Name of the kind whose fields these are.
    pub kind: String,
    /// The kind's fields, null when absent.
    pub data: Map<String, Value>,
    /// The reader's own word on whether it succeeded.
    pub successful: bool,
    /// The reader's own confidence.
    pub confidence: StatedConfidence,
    /// Fields the reader says are not on the document.
    pub missing_fields: Vec<String>,
    /// Where each value was read, as far as known.
    pub evidence: Vec<FieldEvidence>,
    /// How certain each field is, where the reader weighs that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certainties: Vec<FieldCertainty>,
    /// Tokens that the calls of this extraction used.
    pub usage: ModelUsage,
}

impl Extraction {
    /// The reader's statement.
    pub fn reader_statement(&self) -> ReaderStatement {
        ReaderStatement {
            successful: self.successful,
            confidence: self.confidence,
            missing_fields: self.missing_fields.clone(),
        }
    }
}
