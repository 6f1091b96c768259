//! `[ocr.document_intelligence]`: how Azure AI Document Intelligence is called.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::address;
use super::llm::LlmAuth;
use super::secret::{self, SecretSource};
use super::units::{SecretString, is_plain_name};

/// `[ocr.document_intelligence]`: which resource and model are asked, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DocumentIntelligenceConfig {
    /// Address of the resource: `https://NAME.cognitiveservices.azure.com`. Pages are processed in its
    /// region.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub endpoint: String,
    /// Key of the resource.
    pub api_key: SecretString,
    /// A file with that key, read again when it changes.
    pub api_key_file: PathBuf,
    /// By the key, or by a token of Microsoft Entra ID.
    pub auth: LlmAuth,
    /// Model that reads: `prebuilt-read` or `prebuilt-layout`.
    pub model: String,
    /// Longest one analysis may take, its waits included.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// How often a running analysis is asked whether it is done, at most.
    #[serde(with = "humantime_serde")]
    pub poll: Duration,
}

impl Default for DocumentIntelligenceConfig {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            api_key: SecretString::default(),
            api_key_file: PathBuf::new(),
            auth: LlmAuth::Key,
            model: "prebuilt-read".to_owned(),
            timeout: Duration::from_secs(180),
            poll: Duration::from_secs(1),
        }
    }
}

impl DocumentIntelligenceConfig {
    /// The key as it is now.
    pub fn key_source(&self) -> SecretSource {
        SecretSource::new(&self.api_key, &self.api_key_file)
    }

    /// Settings missing for a call, as problems of the configuration.
    pub fn list_problems(&self) -> Vec<String> {
        const AT: &str = "ocr.document_intelligence";
        let mut problems = Vec::new();
        let endpoint = &self.endpoint;
        let is_address = endpoint.starts_with("https://") || endpoint.starts_with("http://");
        if !is_address || address::sends_in_the_clear(endpoint) {
            problems.push(format!("{AT}.endpoint must be an https:// address"));
        }
        let key = format!("{AT}.api_key");
        secret::check_secret(&self.api_key, &self.api_key_file, &key, &mut problems);
        let has_key = !self.api_key.is_empty() || self.key_source().is_file();
        match (self.auth, has_key) {
            (LlmAuth::Key, false) => {
                problems.push(format!("{key} is missing, or {AT}.auth = \"entra\""));
            }
            (LlmAuth::Entra, true) => {
                problems.push(format!("{AT}.auth is `entra`: leave {key} out"))
            }
            (LlmAuth::Key, true) | (LlmAuth::Entra, false) => {}
        }
        if !is_plain_name(&self.model, "-_.") {
            problems.push(format!("{AT}.model is a name such as prebuilt-read"));
        }
        if self.timeout.is_zero() || self.poll.is_zero() {
            problems.push(format!("{AT}.timeout and {AT}.poll must be above 0"));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_settings_of_document_intelligence_are_reported_by_key() {
        let complete = DocumentIntelligenceConfig {
            endpoint: "https://name.cognitiveservices.azure.com".to_owned(),
            api_key: "key".to_owned().into(),
            ..DocumentIntelligenceConfig::default()
        };
        let with_entra = DocumentIntelligenceConfig {
            api_key: SecretString::default(),
            auth: LlmAuth::Entra,
            ..complete.clone()
        };
        let none = DocumentIntelligenceConfig::default();
        let clear = DocumentIntelligenceConfig {
            endpoint: "http://name.example".to_owned(),
            ..complete.clone()
        };
        let both = DocumentIntelligenceConfig { auth: LlmAuth::Entra, ..complete.clone() };
        let path = DocumentIntelligenceConfig { model: "a/b".to_owned(), ..complete.clone() };
        for (config, words) in [
            (&complete, ""),
            (&with_entra, ""),
            (&none, "api_key is missing"),
            (&none, "endpoint must be"),
            (&clear, "https://"),
            (&both, "leave ocr.document_intelligence.api_key out"),
            (&path, "is a name"),
        ] {
            let said = config.list_problems().join("; ");
            assert_eq!(said.is_empty(), words.is_empty(), "{said}");
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}
