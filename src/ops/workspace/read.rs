//! From a document's bytes to its pages: the same steps as with a database, without it.

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::fault::{Error, Fault, Result};
use crate::model::{PageText, Reason, Source, Transcript};
use crate::pipeline::offline::{Offline, Processed};
use crate::pipeline::{Hold, StepError};

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

    /// Reads one document; `claim` tells whether its group still is ours.
    ///
    /// # Errors
    /// Something else than the document is at fault.
    async fn read(&self, path: &str, bytes: Bytes, claim: &Hold) -> Result<Reading>;
}

/// The steps of [`Offline`].
pub struct Documents {
    /// Reader, extraction and gate.
    pub offline: Offline,
    /// How often a document is read again at once because a page of it failed.
    pub page_retries: u32,
}

#[async_trait]
impl Read for Documents {
    async fn pages(&self, bytes: Bytes) -> Result<Option<u32>> {
        match self.offline.reader.open(bytes, false).await {
            Ok(document) => Ok(Some(document.page_count())),
            Err(StepError::Rejected { .. }) => Ok(None),
            Err(StepError::Fault(error)) => Err(error),
            Err(StepError::ClaimLost) => Err(Error::internal("a claim where there is none")),
        }
    }

    async fn read(&self, path: &str, bytes: Bytes, _claim: &Hold) -> Result<Reading> {
        let mut retries = 0;
        loop {
            // The path is only shown in reports; a file's name may say who a document is about.
            let shown = Path::new("document");
            match Box::pin(self.offline.process(shown, bytes.clone())).await {
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
