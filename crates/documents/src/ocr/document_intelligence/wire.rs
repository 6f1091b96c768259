//! The answers of an analysis, as far as they are read (`AnalyzeResultOperation`). Unknown fields are
//! passed over.

use serde::Deserialize;

/// An analysis, running or ended.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AnalysisAnswer {
    pub status: String,
    pub analyze_result: Option<AnalysisResult>,
    pub error: Option<super::refusal::AzureRefusal>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AnalysisResult {
    pub model_id: String,
    pub api_version: String,
    pub pages: Vec<AnalyzedPage>,
    pub styles: Vec<AnalyzedStyle>,
}

/// Positions are in the page's unit: pixels of a picture, inches of a PDF.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AnalyzedPage {
    pub page_number: u32,
    pub width: f32,
    pub height: f32,
    pub words: Vec<AnalyzedWord>,
    pub lines: Vec<AnalyzedLine>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AnalyzedWord {
    pub content: String,
    /// Four corners, x before y.
    pub polygon: Vec<f32>,
    pub confidence: f32,
    pub span: ContentSpan,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AnalyzedLine {
    pub spans: Vec<ContentSpan>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AnalyzedStyle {
    pub is_handwritten: bool,
    pub spans: Vec<ContentSpan>,
}

/// Characters of the text of all pages.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct ContentSpan {
    pub offset: usize,
    pub length: usize,
}

impl ContentSpan {
    /// Whether a character lies in it.
    pub(super) fn contains(self, at: usize) -> bool {
        self.offset <= at && at < self.offset.saturating_add(self.length)
    }
}
