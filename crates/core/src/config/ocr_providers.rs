//! `[ocr.document_ai]` and `[ocr.textract]`: who reads page images elsewhere, and how.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::units::{SecretString, is_plain_name};

/// A reader of page images: a provider, or Tesseract here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OcrProvider {
    /// Google Document AI, an OCR processor.
    DocumentAi,
    /// Amazon Textract, text detection.
    Textract,
    /// Azure AI Document Intelligence, its models for text.
    DocumentIntelligence,
    /// A vision model, with this machine's own reading as the local reading.
    Vision,
    /// Tesseract, in the page processes.
    Tesseract,
}

impl OcrProvider {
    /// All readers, in the order in which texts name them.
    pub const ALL: [Self; 5] = [
        Self::DocumentAi,
        Self::Textract,
        Self::DocumentIntelligence,
        Self::Vision,
        Self::Tesseract,
    ];

    /// The provider's name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::DocumentAi => "document_ai",
            Self::Textract => "textract",
            Self::DocumentIntelligence => "document_intelligence",
            Self::Vision => "vision",
            Self::Tesseract => "tesseract",
        }
    }

    /// The problem with an order of providers, if there is one.
    pub fn order_problem(order: &[Self]) -> Option<&'static str> {
        if order.is_empty() {
            return Some("names no reader of page images");
        }
        let mut before = order.iter().enumerate();
        if before.any(|(at, one)| order.iter().take(at).any(|other| other == one)) {
            return Some("names one of them twice");
        }
        if order.last() == Some(&Self::Vision) {
            return Some(
                "names no reader after vision, for the pages that a model must not read alone",
            );
        }
        let here = order.iter().position(|one| *one == Self::Tesseract);
        let is_last = here.is_none_or(|at| at + 1 == order.len());
        (!is_last).then_some("names a reader after tesseract, which leaves nothing to others")
    }
}

/// `[ocr.document_ai]`: which processor is called, and with which credentials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DocumentAiConfig {
    /// Project of the processor, by id or number.
    pub project: String,
    /// Where it processes, e.g. `eu`: pages do not leave that region.
    pub location: String,
    /// Id of the OCR processor.
    pub processor: String,
    /// Version of the processor; empty: its default version.
    pub version: String,
    /// Another address than `https://LOCATION-documentai.googleapis.com`.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub endpoint: String,
    /// Key file of a service account, or configuration of workload identity federation; empty:
    /// `GOOGLE_APPLICATION_CREDENTIALS`, else the metadata server.
    pub credentials: PathBuf,
    /// The content of such a file, for platforms that hand secrets over as variables.
    pub credentials_json: SecretString,
    /// Longest one call may take.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// Ask for replies without page images by the option that allows 30 pages a call, not 15.
    pub imageless: bool,
    /// Languages to expect, BCP-47; empty: detected on the page.
    pub languages: Vec<String>,
}

impl Default for DocumentAiConfig {
    fn default() -> Self {
        Self {
            project: String::new(),
            location: "eu".to_owned(),
            processor: String::new(),
            version: String::new(),
            endpoint: String::new(),
            credentials: PathBuf::new(),
            credentials_json: SecretString::default(),
            timeout: Duration::from_secs(120),
            imageless: false,
            languages: Vec::new(),
        }
    }
}

impl DocumentAiConfig {
    /// Settings missing for a call, as problems of the configuration.
    pub fn list_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let names = [
            ("project", &self.project, false),
            ("location", &self.location, false),
            ("processor", &self.processor, false),
            ("version", &self.version, true),
        ];
        for (key, value, may_be_empty) in names {
            if value.is_empty() && !may_be_empty {
                problems.push(format!("ocr.document_ai.{key} is missing"));
            } else if !value.is_empty() && !is_plain_name(value, "-_.:") {
                problems.push(format!("ocr.document_ai.{key} is a name, not a path or address"));
            }
        }
        if !self.credentials.as_os_str().is_empty() && !self.credentials_json.is_empty() {
            problems.push(
                "ocr.document_ai.credentials and ocr.document_ai.credentials_json are both set"
                    .to_owned(),
            );
        }
        let endpoint = &self.endpoint;
        let is_address = endpoint.starts_with("https://") || endpoint.starts_with("http://");
        if !endpoint.is_empty() && !is_address {
            problems.push("ocr.document_ai.endpoint must be an https:// address".to_owned());
        }
        if self.timeout.is_zero() {
            problems.push("ocr.document_ai.timeout must be above 0".to_owned());
        }
        problems
    }
}

/// How Textract is reached. Credentials come from where every AWS SDK finds them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TextractConfig {
    /// AWS region; empty: from the environment.
    pub region: String,
    /// Another address than AWS's own.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub endpoint: String,
    /// Longest one call may take.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// Whether scanned PDFs in S3 are read as a whole, by a job.
    pub jobs: bool,
    /// How often a running job is asked whether it is done.
    #[serde(with = "humantime_serde")]
    pub poll: Duration,
    /// Documents of at most so many pages have their fields read a second time by `AnalyzeExpense`,
    /// page by page; 0: none.
    pub expense_pages: u32,
}

impl Default for TextractConfig {
    fn default() -> Self {
        Self {
            region: String::new(),
            endpoint: String::new(),
            timeout: Duration::from_secs(60),
            jobs: true,
            poll: Duration::from_secs(5),
            expense_pages: 0,
        }
    }
}

impl TextractConfig {
    /// Checks it; returns problems of the configuration.
    pub fn list_problems(&self) -> Vec<String> {
        if self.timeout.is_zero() || self.poll.is_zero() {
            return vec!["ocr.textract.timeout and ocr.textract.poll must be above 0".to_owned()];
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_is_listed_once() {
        for (at, provider) in OcrProvider::ALL.into_iter().enumerate() {
            let place = match provider {
                OcrProvider::DocumentAi => 0,
                OcrProvider::Textract => 1,
                OcrProvider::DocumentIntelligence => 2,
                OcrProvider::Vision => 3,
                OcrProvider::Tesseract => 4,
            };
            assert_eq!(place, at, "{}", provider.name());
        }
    }

    #[test]
    fn missing_settings_of_document_ai_are_reported_by_key() {
        let complete = DocumentAiConfig {
            project: "my-project".to_owned(),
            processor: "abc123".to_owned(),
            ..DocumentAiConfig::default()
        };
        assert_eq!(complete.list_problems(), Vec::<String>::new());
        let problems = DocumentAiConfig::default().list_problems().join("\n");
        assert!(problems.contains("ocr.document_ai.project is missing"), "{problems}");
        assert!(problems.contains("ocr.document_ai.processor is missing"), "{problems}");
        let path = DocumentAiConfig { processor: "a/../b".to_owned(), ..complete.clone() };
        assert!(path.list_problems().join("").contains("not a path"));
        let endpoint = DocumentAiConfig { endpoint: "eu".to_owned(), ..complete };
        assert!(endpoint.list_problems().join("").contains("https://"));
    }

    #[test]
    fn an_order_of_readers_is_not_empty_has_no_duplicates_and_none_that_is_never_asked() {
        use OcrProvider::{DocumentAi, Tesseract, Textract};
        assert!(OcrProvider::order_problem(&[DocumentAi, Textract, Tesseract]).is_none());
        assert!(OcrProvider::order_problem(&[]).is_some());
        assert!(OcrProvider::order_problem(&[Textract, Textract, Tesseract]).is_some());
        assert!(OcrProvider::order_problem(&[Tesseract, Textract]).is_some());
    }

    #[test]
    fn a_vision_model_is_never_the_last_to_be_asked() {
        use OcrProvider::{DocumentAi, Tesseract, Vision};
        assert!(OcrProvider::order_problem(&[Vision, Tesseract]).is_none());
        assert!(OcrProvider::order_problem(&[Vision, DocumentAi]).is_none());
        assert!(OcrProvider::order_problem(&[Vision]).is_some());
        assert!(OcrProvider::order_problem(&[DocumentAi, Vision]).is_some());
    }
}
