//! From an original to what is published: the same steps as with a database, without it.

use std::fmt::Write as _;
use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::fault::{Error, Result};
use crate::model::Transcript;
use crate::pipeline::Hold;
use crate::pipeline::offline::{Offline, Processed};

/// A document as it lies in the bucket.
#[derive(Debug, Clone)]
pub struct Original {
    /// SHA-256 of the bytes, in hex.
    pub hash: String,
    /// What the file was called.
    pub name: String,
    /// Labels.
    pub tags: Vec<String>,
    /// The untouched bytes.
    pub bytes: Bytes,
}

/// What a document became.
#[derive(Debug, Clone)]
pub enum Converted {
    /// To be published.
    Whole(Output),
    /// The document itself is at fault: another run would end the same way.
    Refused {
        /// Why, by our table of reasons.
        code: String,
        /// Counts and limits, never content.
        detail: String,
    },
}

/// What is published.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// The text.
    pub markdown: String,
    /// Names without folders, and bytes.
    pub assets: Vec<(String, Bytes)>,
    /// What else there is to say about it.
    pub meta: Value,
}

/// Turns originals into what is published. A trait, because a worker is tested with converters
/// that fail, hang or count.
#[async_trait]
pub trait Convert: Send + Sync {
    /// Converts one document; `claim` tells whether it still is ours.
    ///
    /// # Errors
    /// Something else than the document is at fault.
    async fn convert(&self, original: &Original, claim: &Hold) -> Result<Converted>;
}

/// The steps of [`Offline`].
pub struct Documents {
    /// Reader, extraction and gate.
    pub offline: Offline,
}

#[async_trait]
impl Convert for Documents {
    async fn convert(&self, original: &Original, _claim: &Hold) -> Result<Converted> {
        // The path is only shown in reports; the hash says less about a person than a file name.
        let path = Path::new(&original.hash);
        let processed = Box::pin(self.offline.process(path, original.bytes.clone())).await?;
        let Some(transcript) = &processed.transcript else {
            let code = processed.reason.map_or("internal", |reason| reason.code()).to_owned();
            return Ok(Converted::Refused { code, detail: processed.detail });
        };
        Ok(Converted::Whole(output(transcript, &processed)?))
    }
}

/// What was read is published also if the gate refused what was extracted from it: the refusal and
/// the partial data stand beside it.
fn output(transcript: &Transcript, processed: &Processed) -> Result<Output> {
    let part = |value: serde_json::Result<Vec<u8>>| {
        value.map_err(|error| Error::internal("the result has no JSON").because(error))
    };
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
    let assets = vec![
        ("transcription.json".to_owned(), part(serde_json::to_vec(transcript))?.into()),
        ("extraction.json".to_owned(), part(serde_json::to_vec_pretty(&extraction))?.into()),
    ];
    Ok(Output { markdown: markdown(transcript), assets, meta })
}

/// The lines of every page; pages are set apart by rules.
fn markdown(transcript: &Transcript) -> String {
    let mut text = String::new();
    for page in &transcript.pages {
        if !text.is_empty() {
            text.push_str("\n---\n\n");
        }
        // Writing to a String cannot fail.
        writeln!(text, "{}", page.text().trim_end()).ok();
    }
    text
}
