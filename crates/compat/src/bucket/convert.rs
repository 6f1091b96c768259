//! Converts an original into its published result: the steps of the database's worker, without the
//! database. Their results are stored in the bucket until the document is published, so that a
//! killed run pays nothing twice.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::object_pipeline::{ObjectPipeline, ingestion_of};
use docmill_core::fault::{Error, Result};
use docmill_core::model::{DocumentId, IngestionId, Transcript};
use docmill_layout::{DocumentLayout, render_with_pictures};
use docmill_operations::process::ProcessReport;
use docmill_pipeline::{ClaimHandle, CutFigures, StepError, cut_figures, find_layout};

/// A document as stored in the bucket.
#[derive(Debug, Clone)]
pub struct OriginalDocument {
    /// SHA-256 of the bytes, in hex.
    pub hash: String,
    /// The name of the file that was handed in.
    pub name: String,
    /// The document's tags, as its original is labelled.
    pub tags: Vec<String>,
    /// The bytes exactly as they were handed in.
    pub bytes: Bytes,
}

/// The result of converting a document.
#[derive(Debug, Clone)]
pub enum ConversionResult {
    /// The document was converted; this is to be published.
    Whole(ConversionOutput),
    /// The document itself is at fault: another run would end the same way.
    Refused {
        /// Why, by our table of reasons.
        code: String,
        /// Counts and limits, never content.
        detail: String,
    },
}

/// The parts of a converted document that are published.
#[derive(Debug, Clone, Default)]
pub struct ConversionOutput {
    /// The document's text as Markdown.
    pub markdown: String,
    /// Names without folders, and bytes.
    pub assets: Vec<(String, Bytes)>,
    /// Additional metadata.
    pub meta: Value,
}

/// Turns originals into what is published. A trait, because a worker is tested with converters
/// that fail, hang or count.
#[async_trait]
pub trait DocumentConverter: Send + Sync {
    /// Converts one document under the lock of `claim`.
    ///
    /// # Errors
    /// Faults other than the document's, or a lost claim.
    async fn convert(
        &self,
        original: &OriginalDocument,
        claim: &ClaimHandle,
    ) -> Result<ConversionResult>;

    /// The name of a dependency of every document that is down or refuses access, if one is known.
    fn find_outage(&self) -> Option<String> {
        None
    }
}

/// The steps of [`ObjectPipeline`].
pub struct PipelineConverter {
    /// Over the bucket's own store.
    pub pipeline: ObjectPipeline,
}

#[async_trait]
impl DocumentConverter for PipelineConverter {
    async fn convert(
        &self,
        original: &OriginalDocument,
        claim: &ClaimHandle,
    ) -> Result<ConversionResult> {
        let (document, bytes) = (document_of(&original.hash), &original.bytes);
        // The path appears only in reports; the hash reveals less about a person than a file name.
        let path = Path::new(&original.hash);
        let processed = self.pipeline.process_document(document, path, bytes, claim).await?;
        let Some(transcript) = &processed.transcript else {
            let code = processed.reason.map_or("internal", |reason| reason.code()).to_owned();
            return Ok(ConversionResult::Refused { code, detail: processed.detail });
        };
        let (layout, figures) = match self.find_structure(transcript, bytes).await {
            Ok(found) => found,
            Err(StepError::Rejected { reason, detail }) => {
                return Ok(ConversionResult::Refused { code: reason.code().to_owned(), detail });
            }
            Err(StepError::Fault(error)) => return Err(error),
        };
        Ok(ConversionResult::Whole(build_output(transcript, &processed, &layout, figures)?))
    }

    fn find_outage(&self) -> Option<String> {
        self.pipeline.services().find_outage()
    }
}

impl PipelineConverter {
    /// The blocks of a document, and the pictures of its figures.
    async fn find_structure(
        &self,
        transcript: &Arc<Transcript>,
        bytes: &Bytes,
    ) -> std::result::Result<(DocumentLayout, CutFigures), StepError> {
        let services = self.pipeline.services();
        let layout = find_layout(services, transcript).await?;
        let figures = cut_figures(services, bytes.clone(), transcript, &layout).await?;
        Ok((layout, figures))
    }
}

fn document_of(hash: &str) -> DocumentId {
    DocumentId::from_content(hash, "")
}

/// The id under which everything about the document of this hash is stored while it is worked on.
pub(super) fn artefact_id(hash: &str) -> IngestionId {
    ingestion_of(document_of(hash))
}

/// The text is published even if the gate refused the extraction; the refusal and the partial data
/// are published with it.
fn build_output(
    transcript: &Transcript,
    processed: &ProcessReport,
    layout: &DocumentLayout,
    figures: CutFigures,
) -> Result<ConversionOutput> {
    let extraction = json!({
        "status": processed.status,
        "reason": processed.reason,
        "kind": processed.kind,
        "reader": processed.reader,
        "data": processed.data,
        "review_reasons": processed.review_reasons,
        "score": processed.score,
    });
    let meta = json!({
        "converter": concat!("docmill ", env!("CARGO_PKG_VERSION")),
        "format": processed.format,
        "pages": transcript.pages.len(),
        "quality": transcript.quality,
        "status": processed.status,
        "reason": processed.reason,
        "kind": processed.kind,
        "reader": processed.reader,
        "review_reasons": processed.review_reasons,
    });
    let paths = figures.paths_below("assets");
    let markdown = render_with_pictures(layout, &paths);
    let mut assets = vec![
        ("transcription.json".to_owned(), serialised(serde_json::to_vec(transcript))?.into()),
        ("extraction.json".to_owned(), serialised(serde_json::to_vec_pretty(&extraction))?.into()),
    ];
    assets.extend(figures.pictures.into_iter().map(|figure| (figure.name, figure.bytes)));
    Ok(ConversionOutput { markdown, assets, meta })
}

fn serialised(value: serde_json::Result<Vec<u8>>) -> Result<Vec<u8>> {
    value.map_err(|error| Error::internal("cannot serialise the result").with_source(error))
}
