//! `[ocr]`: reading page images.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ocr_azure::DocumentIntelligenceConfig;
use super::ocr_providers::{DocumentAiConfig, OcrProvider, TextractConfig};
use super::ocr_vision::VisionConfig;
use super::units::{ByteSize, is_plain_name};
use crate::model::RepairSwitches;

/// Which of the readers on this machine reads a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OcrEngineChoice {
    /// The neural reader first, then Tesseract in doubt; without weights Tesseract alone.
    Auto,
    /// Tesseract alone.
    Tesseract,
    /// The neural reader alone.
    Neural,
}

/// `[ocr]`: how page images are read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OcrConfig {
    /// Readers of page images in order: the next one reads pages that the one before does not take,
    /// or reads while it is down.
    pub providers: Vec<OcrProvider>,
    /// Bytes that pictures on their way to providers may take together in this process.
    pub pictures_in_memory: ByteSize,
    /// `[ocr.document_ai]`: how Google Document AI is called.
    pub document_ai: DocumentAiConfig,
    /// `[ocr.textract]`: how Amazon Textract is called.
    pub textract: TextractConfig,
    /// `[ocr.document_intelligence]`: how Azure AI Document Intelligence is called.
    pub document_intelligence: DocumentIntelligenceConfig,
    /// `[ocr.vision]`: which vision model reads pages, and how it is asked.
    pub vision: VisionConfig,
    /// A `tesseract` program to run for each page; empty: the linked library.
    pub tesseract: PathBuf,
    /// Which of the readers on this machine reads a page.
    pub engine: OcrEngineChoice,
    /// Folder with the weights of the neural reader; empty: looked for where they are installed.
    pub models: PathBuf,
    /// Languages as Tesseract names them; empty: chosen per page among those installed.
    pub languages: Vec<String>,
    /// A page whose quality is below this is flagged for a person.
    pub quality_threshold: f32,
    /// Share of the pages with a text layer, 0..1, that are read from their drawing as well, drawn
    /// by lot.
    pub second_looks: f32,
    /// Dots per inch that pages are rendered at.
    pub dpi: u32,
    /// Whether a transcript of the earlier worker that a row refers to is used.
    pub earlier_transcripts: bool,
    /// Whether transcripts are written in EDN as well, where the earlier worker did.
    pub write_edn: bool,
    /// Whether a document that was read from its pictures is kept as a PDF/A with its text as well.
    pub searchable_pdf: bool,
    /// Repairs of page images.
    pub repair: RepairSwitches,
}

impl Default for OcrConfig {
    fn default() -> Self {
        Self {
            providers: vec![OcrProvider::Tesseract],
            pictures_in_memory: ByteSize::from_mib(256),
            document_ai: DocumentAiConfig::default(),
            textract: TextractConfig::default(),
            document_intelligence: DocumentIntelligenceConfig::default(),
            vision: VisionConfig::default(),
            tesseract: PathBuf::new(),
            engine: OcrEngineChoice::Auto,
            models: PathBuf::new(),
            languages: Vec::new(),
            quality_threshold: 0.7,
            second_looks: 0.005,
            dpi: 300,
            earlier_transcripts: true,
            write_edn: false,
            searchable_pdf: false,
            repair: RepairSwitches::default(),
        }
    }
}

impl OcrConfig {
    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        self.check_providers(problems);
        if !(0.0..=1.0).contains(&self.quality_threshold) {
            problems.push("ocr.quality_threshold must be between 0 and 1".to_owned());
        }
        if !(0.0..=1.0).contains(&self.second_looks) {
            problems.push("ocr.second_looks must be between 0 and 1".to_owned());
        }
        if !(100..=600).contains(&self.dpi) {
            problems.push("ocr.dpi must be between 100 and 600".to_owned());
        }
        if self.languages.iter().any(|name| !is_plain_name(name, "_")) {
            problems.push("ocr.languages must be names such as eng or chi_sim".to_owned());
        }
    }

    /// Settings missing for calling this provider, as problems of the configuration.
    pub fn provider_problems(&self, provider: OcrProvider) -> Vec<String> {
        match provider {
            OcrProvider::DocumentAi => self.document_ai.list_problems(),
            OcrProvider::Textract => self.textract.list_problems(),
            OcrProvider::DocumentIntelligence => self.document_intelligence.list_problems(),
            OcrProvider::Vision => self.vision.list_problems(),
            OcrProvider::Tesseract => Vec::new(),
        }
    }

    fn check_providers(&self, problems: &mut Vec<String>) {
        problems.extend(
            OcrProvider::order_problem(&self.providers)
                .map(|wrong| format!("ocr.providers {wrong}")),
        );
        for provider in &self.providers {
            problems.extend(self.provider_problems(*provider));
        }
        if self.pictures_in_memory < ByteSize::from_mib(64) {
            problems.push(
                "ocr.pictures_in_memory must be at least 64MiB: a call carries up to 15 pages"
                    .to_owned(),
            );
        }
    }
}
