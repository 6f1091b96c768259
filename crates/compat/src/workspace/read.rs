//! Reads a document's pages from its bytes: the steps of the database's worker, without the
//! database. Their results are stored in the workspace until the document's line is in the ledger,
//! so that a killed run pays nothing twice.

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};

use super::english_filter::{SAMPLED_PAGES, filter_text};
use crate::object_pipeline::{ObjectPipeline, ingestion_of};
use docmill_core::fault::{Fault, Result};
use docmill_core::model::{
    DocumentId, IngestionId, ModelUsage, OutcomeReason, PageSource, PageText, Transcript,
};
use docmill_layout::render_markdown;
use docmill_operations::process::ProcessReport;
use docmill_pipeline::{ClaimHandle, StepError, find_layout, run_on_text};

/// The result of reading a document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DocumentText {
    /// Numbers from 1, and texts.
    pub pages: Vec<(u32, String)>,
    /// Of each page the one language that it was read in, as ISO 639-1 has it, where that is known.
    pub languages: Vec<Option<&'static str>>,
    /// The document as Markdown, if configured.
    pub markdown: Option<String>,
    /// Pages whose content was lost.
    pub lost: usize,
    /// Tokens that models were given for it, and gave back.
    pub usage: ModelUsage,
    /// The extraction, and the gate's verdict.
    pub extraction: Value,
}

/// Characters of a page by which its language is detected.
const MAX_DETECTED_CHARS: usize = 2000;
/// Languages as Tesseract and whatlang name them (ISO 639-2 and -3), and as olmOCR does (ISO 639-1).
#[rustfmt::skip]
const LANGUAGES: [(&str, &str); 32] = [
    ("cmn", "zh"), ("nob", "no"),
    ("ara", "ar"), ("bul", "bg"), ("ces", "cs"), ("chi_sim", "zh"), ("chi_tra", "zh"),
    ("dan", "da"), ("deu", "de"), ("ell", "el"), ("eng", "en"), ("est", "et"), ("fin", "fi"),
    ("fra", "fr"), ("heb", "he"), ("hin", "hi"), ("hrv", "hr"), ("hun", "hu"), ("ita", "it"),
    ("jpn", "ja"), ("kor", "ko"), ("nld", "nl"), ("nor", "no"), ("pol", "pl"), ("por", "pt"),
    ("ron", "ro"), ("rus", "ru"), ("slk", "sk"), ("spa", "es"), ("swe", "sv"), ("tur", "tr"),
    ("ukr", "uk"),
];

/// The outcome of reading a document.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadOutcome {
    /// The document was read; this is its text.
    Whole(Box<DocumentText>),
    /// Read to the end, nothing on it.
    Empty,
    /// The document itself is at fault: another reading would end the same way.
    Refused {
        /// Why, by our table of reasons.
        code: String,
        /// Counts and limits, never content.
        detail: String,
    },
}

/// Reads documents. A trait, because a worker is tested with readers that fail, hang or count.
#[async_trait]
pub trait WorkspaceReader: Send + Sync {
    /// Pages of a document; `None` if it cannot be opened.
    ///
    /// # Errors
    /// Something else than the document is at fault.
    async fn count_pages(&self, bytes: Bytes) -> Result<Option<u32>>;

    /// Reads one document of a group under the locks of `claim`.
    ///
    /// # Errors
    /// Faults other than the document's, or a lost claim.
    async fn read_document(
        &self,
        path: &str,
        bytes: Bytes,
        claim: &ClaimHandle,
    ) -> Result<ReadOutcome>;

    /// The name of a dependency of every document that is down or refuses access, if one is known.
    fn find_outage(&self) -> Option<String> {
        None
    }
}

/// The steps of [`ObjectPipeline`].
pub struct PipelineReader {
    /// Over the workspace's own store.
    pub pipeline: ObjectPipeline,
    /// How.
    pub reading: WorkspaceReading,
}

/// How the documents of a workspace are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkspaceReading {
    /// How often a document is read again at once because a page of it failed.
    pub page_retries: u32,
    /// Whether to make Markdown of what was read.
    pub markdown: bool,
    /// Whether what olmOCR's filter leaves out is left out.
    pub apply_filter: bool,
}

#[async_trait]
impl WorkspaceReader for PipelineReader {
    async fn count_pages(&self, bytes: Bytes) -> Result<Option<u32>> {
        match self.pipeline.services().reader.open_document(bytes, false).await {
            Ok(document) => Ok(Some(document.page_count())),
            Err(StepError::Rejected { .. }) => Ok(None),
            Err(StepError::Fault(error)) => Err(error),
        }
    }

    async fn read_document(
        &self,
        path: &str,
        bytes: Bytes,
        claim: &ClaimHandle,
    ) -> Result<ReadOutcome> {
        if let Some(detail) = self.find_objection(&bytes).await? {
            return Ok(ReadOutcome::Refused { code: "filtered".to_owned(), detail });
        }
        let document = document_of(path);
        let mut retries = 0;
        loop {
            // The path appears only in reports; a file's name may identify a person.
            let shown = Path::new("document");
            match self.pipeline.process_document(document, shown, &bytes, claim).await {
                Ok(processed) => return self.read_outcome(&processed).await,
                Err(error)
                    if error.fault == Fault::Transient && retries < self.reading.page_retries =>
                {
                    retries += 1;
                    let document = crate::objects::olmocr::sha1_hex(path.as_bytes());
                    tracing::warn!(error = %error, document, retries, "a page failed: {error}");
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn find_outage(&self) -> Option<String> {
        self.pipeline.services().find_outage()
    }
}

/// A document belongs to one group, whose lock protects its artefacts; the same bytes under another
/// path may belong to another group.
fn document_of(path: &str) -> DocumentId {
    DocumentId::from_object("", path)
}

/// The id under which everything about the document of this path is stored while it is worked on.
pub(super) fn artefact_id(path: &str) -> IngestionId {
    ingestion_of(document_of(path))
}

impl PipelineReader {
    /// The filter's objection, if the filter is on. An unreadable document is refused with its own
    /// reason by the reader.
    async fn find_objection(&self, bytes: &Bytes) -> Result<Option<String>> {
        if !self.reading.apply_filter {
            return Ok(None);
        }
        match self.look_through(bytes).await {
            Ok(objection) => Ok(objection),
            Err(StepError::Rejected { .. }) => Ok(None),
            Err(StepError::Fault(error)) => Err(error),
        }
    }

    async fn look_through(&self, bytes: &Bytes) -> std::result::Result<Option<String>, StepError> {
        let services = self.pipeline.services();
        let document = services.reader.open_document(bytes.clone(), false).await?;
        if services.reader.has_text_fields(&document).await? {
            return Ok(Some("a form".to_owned()));
        }
        let mut text = String::new();
        for index in 0..document.page_count().min(SAMPLED_PAGES) {
            text.push_str(&services.reader.printed_page(&document, index).await?.text.text());
            text.push('\n');
        }
        run_on_text(services, move || filter_text(&text)).await
    }

    async fn read_outcome(&self, processed: &ProcessReport) -> Result<ReadOutcome> {
        let refused = |code: &str, detail: &str| {
            Ok(ReadOutcome::Refused { code: code.to_owned(), detail: detail.to_owned() })
        };
        let transcript = match (&processed.transcript, processed.reason) {
            (Some(transcript), _) => transcript,
            (None, Some(OutcomeReason::NoText)) => return Ok(ReadOutcome::Empty),
            (None, reason) => {
                return refused(reason.map_or("internal", OutcomeReason::code), &processed.detail);
            }
        };
        let mut text = document_text(transcript, processed);
        if self.reading.markdown {
            match find_layout(self.pipeline.services(), transcript).await {
                Ok(layout) => text.markdown = Some(render_markdown(&layout)),
                Err(StepError::Rejected { reason, detail }) => {
                    return refused(reason.code(), &detail);
                }
                Err(StepError::Fault(error)) => return Err(error),
            }
        }
        Ok(ReadOutcome::Whole(Box::new(text)))
    }
}

/// The language of a page: the one that a reader of pictures chose, or else that of its text, where
/// that is certain.
fn primary_language(page: &PageText) -> Option<&'static str> {
    if let [chosen] = page.languages.as_slice()
        && let Some(code) = find_code(chosen)
    {
        return Some(code);
    }
    let text: String = page.text().chars().take(MAX_DETECTED_CHARS).collect();
    let found = whatlang::detect(&text).filter(whatlang::Info::is_reliable)?;
    find_code(found.lang().code())
}

fn find_code(language: &str) -> Option<&'static str> {
    LANGUAGES.iter().find(|(name, _)| *name == language).map(|(_, code)| *code)
}

/// The text counts even if the gate refused the extraction.
fn document_text(transcript: &Transcript, processed: &ProcessReport) -> DocumentText {
    DocumentText {
        pages: transcript.pages.iter().map(|page| (page.number, page.text())).collect(),
        languages: transcript.pages.iter().map(primary_language).collect(),
        markdown: None,
        lost: transcript
            .pages
            .iter()
            .filter(|page: &&PageText| page.source == PageSource::Native && page.quality <= 0.0)
            .count(),
        usage: processed.usage,
        extraction: json!({
            "status": processed.status,
            "reason": processed.reason,
            "kind": processed.kind,
            "reader": processed.reader,
            "data": processed.data,
            "review_reasons": processed.review_reasons,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_language_chosen_for_it_or_that_of_its_text_where_that_is_certain() {
        let german = "Die Lieferung erfolgt innerhalb von zehn Tagen nach Eingang der Zahlung, und \
                      die Ware bleibt bis dahin unser Eigentum.";
        let page = |languages: &[&str], text: &str| {
            let place = json!({ "x": 0, "y": 0, "w": 1, "h": 1 });
            let words = text.split_whitespace();
            let words: Vec<_> =
                words.map(|word| json!({ "text": word, "box": place, "confidence": 1 })).collect();
            let line = serde_json::from_value(json!({ "words": words })).unwrap();
            let plain = PageText::from_native(1, (1.0, 1.0), 1.0, vec![line]);
            PageText { languages: languages.iter().map(|it| (*it).to_owned()).collect(), ..plain }
        };
        for (languages, text, expected) in [
            (&["deu"][..], "", Some("de")),
            (&["eng"], german, Some("en")),
            (&["eng", "deu"], "", None),
            (&["eng", "deu"], german, Some("de")),
            (&[], german, Some("de")),
            (&[], "12.50 EUR 7", None),
            (&["osd"], "", None),
        ] {
            assert_eq!(primary_language(&page(languages, text)), expected, "{languages:?} {text}");
        }
    }
}
