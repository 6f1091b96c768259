//! From a document's bytes to its pages: the same steps as with a database, without it. What they
//! have come to is kept in the workspace until the document's line is in the ledger, so that a run
//! that is killed pays nothing twice.

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::fault::{Fault, Result};
use crate::model::{DocumentId, IngestionId, PageText, Reason, Source, Transcript};
use crate::ops::object_pipeline::{ObjectPipeline, ingestion_of};
use crate::ops::process::Processed;
use crate::pipeline::{ClaimHandle, StepError};

/// What was read of a document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Text {
    /// Numbers from 1, and texts.
    pub pages: Vec<(u32, String)>,
    /// Pages whose content was lost.
    pub lost: usize,
    /// What was extracted, and the gate's verdict.
    pub extraction: Value,
}

/// What a document became.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// Its text.
    Whole(Box<Text>),
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
pub trait Read: Send + Sync {
    /// Pages of a document; `None` if it cannot be opened.
    ///
    /// # Errors
    /// Something else than the document is at fault.
    async fn pages(&self, bytes: Bytes) -> Result<Option<u32>>;

    /// Reads one document of a group whose locks `claim` stands for.
    ///
    /// # Errors
    /// Something else than the document is at fault, or the claim is lost.
    async fn read(&self, path: &str, bytes: Bytes, claim: &ClaimHandle) -> Result<Reading>;
}

/// The steps of [`ObjectPipeline`].
pub struct Documents {
    /// Over the workspace's own store.
    pub pipeline: ObjectPipeline,
    /// How often a document is read again at once because a page of it failed.
    pub page_retries: u32,
}

#[async_trait]
impl Read for Documents {
    async fn pages(&self, bytes: Bytes) -> Result<Option<u32>> {
        match self.pipeline.services().reader.open(bytes, false).await {
            Ok(document) => Ok(Some(document.page_count())),
            Err(StepError::Rejected { .. }) => Ok(None),
            Err(StepError::Fault(error)) => Err(error),
        }
    }

    async fn read(&self, path: &str, bytes: Bytes, claim: &ClaimHandle) -> Result<Reading> {
        let document = document_of(path);
        let mut retries = 0;
        loop {
            // The path is only shown in reports; a file's name may say who a document is about.
            let shown = Path::new("document");
            match self.pipeline.process(document, shown, &bytes, claim).await {
                Ok(processed) => return Ok(reading(&processed)),
                Err(error) if error.fault == Fault::Transient && retries < self.page_retries => {
                    retries += 1;
                    let document = crate::queue::objects::olmocr::sha1(path.as_bytes());
                    tracing::warn!(error = %error, document, retries, "a page failed: {error}");
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A document is in one group only, whose lock keeps others away from what is kept of it; the same
/// bytes under another path may be in another group.
fn document_of(path: &str) -> DocumentId {
    DocumentId::of_object("", path)
}

/// What is kept of the document of this path while it is worked on is found by this id.
pub(super) fn kept_as(path: &str) -> IngestionId {
    ingestion_of(document_of(path))
}

fn reading(processed: &Processed) -> Reading {
    match (&processed.transcript, processed.reason) {
        (Some(transcript), _) => Reading::Whole(Box::new(text(transcript, processed))),
        (None, Some(Reason::NoText)) => Reading::Empty,
        (None, reason) => Reading::Refused {
            code: reason.map_or("internal", Reason::code).to_owned(),
            detail: processed.detail.clone(),
        },
    }
}

/// What was read counts also if the gate refused what was extracted from it.
fn text(transcript: &Transcript, processed: &Processed) -> Text {
    let lost = |page: &&PageText| page.source == Source::Native && page.quality <= 0.0;
    Text {
        pages: transcript.pages.iter().map(|page| (page.number, page.text())).collect(),
        lost: transcript.pages.iter().filter(lost).count(),
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
