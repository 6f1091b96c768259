//! A document read whole, nothing of it kept: the reader by itself, without a pipeline around it.

use async_trait::async_trait;
use bytes::Bytes;
use docmill::model::{EncodedImage, PageText, PageUsage, Transcript};
use docmill::pipeline::{PageSink, Reader, Reading, StepError, Wishes};

/// Keeps nothing: the transcript is all that is wanted.
struct Unkept;

#[async_trait]
impl PageSink for Unkept {
    async fn keep(&mut self, _: &PageText, _: Option<EncodedImage>) -> Result<(), StepError> {
        Ok(())
    }

    async fn after_call(&mut self, _: &PageUsage, _: bool) -> Result<(), StepError> {
        Ok(())
    }
}

pub(crate) trait ReadWhole {
    /// Opens a document whose bytes have the given SHA-256 and reads it whole.
    async fn read(&self, bytes: Bytes, sha256: &str, alone: bool) -> Result<Transcript, StepError>;
}

impl ReadWhole for Reader {
    async fn read(&self, bytes: Bytes, sha256: &str, alone: bool) -> Result<Transcript, StepError> {
        let document = self.open(bytes, alone).await?;
        let (sha256, wishes) = (sha256.to_owned(), Wishes::default());
        let reading = Reading { document, sha256, finished: Vec::new(), wishes };
        self.read_on(reading, &mut Unkept).await
    }
}
