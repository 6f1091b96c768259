//! A document read whole, nothing of it kept: the reader by itself, without a pipeline around it.

use async_trait::async_trait;
use bytes::Bytes;
use docmill_core::model::{EncodedImage, PageText, PageUsage, Transcript};
use docmill_documents::sandbox::{DocumentOpening, OpenDocument};
use docmill_pipeline::{DocumentReader, PageSink, ReadOptions, ReadRequest, StepError};

/// Keeps nothing: the transcript is all that is wanted.
struct Unkept;

#[async_trait]
impl PageSink for Unkept {
    async fn store_page(&mut self, _: &PageText, _: Option<EncodedImage>) -> Result<(), StepError> {
        Ok(())
    }

    async fn after_call(&mut self, _: &PageUsage, _: bool) -> Result<(), StepError> {
        Ok(())
    }
}

pub(crate) trait ReadWhole {
    /// Opens a document whose bytes have the given SHA-256 and reads it whole.
    async fn read(&self, bytes: Bytes, sha256: &str, alone: bool) -> Result<Transcript, StepError>;

    /// Opens a document that came under this name and reads it whole.
    async fn read_named(&self, name: Option<&str>, bytes: Bytes) -> Result<Transcript, StepError>;
}

async fn read_opened(
    reader: &DocumentReader,
    document: OpenDocument,
    sha256: &str,
) -> Result<Transcript, StepError> {
    let (sha256, options) = (sha256.to_owned(), ReadOptions::default());
    let reading = ReadRequest { document, sha256, finished: Vec::new(), options };
    reader.read_remaining(reading, &mut Unkept).await
}

impl ReadWhole for DocumentReader {
    async fn read(&self, bytes: Bytes, sha256: &str, alone: bool) -> Result<Transcript, StepError> {
        read_opened(self, self.open_document(bytes, alone).await?, sha256).await
    }

    async fn read_named(&self, name: Option<&str>, bytes: Bytes) -> Result<Transcript, StepError> {
        let how = DocumentOpening { name, ..DocumentOpening::default() };
        read_opened(self, self.open_tenant_document(bytes, how).await?, "sha").await
    }
}
