//! `[ocr]`: reading page images.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::model::Repairs;

/// How page images are read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OcrConfig {
    /// A `tesseract` program to run for each page; empty: the linked library.
    pub tesseract: PathBuf,
    /// Languages as Tesseract names them; empty: chosen per page among those installed.
    pub languages: Vec<String>,
    /// A page whose quality is below this is flagged for a person.
    pub quality_threshold: f32,
    /// Dots per inch that pages are rendered at.
    pub dpi: u32,
    /// Repairs of page images.
    pub repair: Repairs,
}

impl Default for OcrConfig {
    fn default() -> Self {
        Self {
            tesseract: PathBuf::new(),
            languages: Vec::new(),
            quality_threshold: 0.7,
            dpi: 300,
            repair: Repairs::default(),
        }
    }
}

impl OcrConfig {
    pub(super) fn check(&self, problems: &mut Vec<String>) {
        if !(0.0..=1.0).contains(&self.quality_threshold) {
            problems.push("ocr.quality_threshold must be between 0 and 1".to_owned());
        }
        if !(100..=600).contains(&self.dpi) {
            problems.push("ocr.dpi must be between 100 and 600".to_owned());
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.languages.iter().any(|name| name.is_empty() || !name.chars().all(plain)) {
            problems.push("ocr.languages must be names such as eng or chi_sim".to_owned());
        }
    }
}
