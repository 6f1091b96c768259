//! Where pages go as they are read.

use async_trait::async_trait;

use crate::step_error::StepError;
use docmill_core::model::{EncodedImage, PageText, PageUsage};

/// Takes pages as they are finished.
#[async_trait]
pub trait PageSink: Send {
    /// Stores a page, and the image its text was read from if that is not what the file shows. An
    /// error ends the reading.
    async fn store_page(
        &mut self,
        page: &PageText,
        repaired: Option<EncodedImage>,
    ) -> Result<(), StepError>;

    /// A call that costs money is about to be made. An error forbids it, and ends the reading.
    async fn before_call(&mut self) -> Result<(), StepError> {
        Ok(())
    }

    /// A call was made, and its pages were handed over: makes them safe, so that it never has to be
    /// made again. `is_whole`: the document is, so that its transcript follows at once.
    async fn after_call(&mut self, usage: &PageUsage, is_whole: bool) -> Result<(), StepError>;
}
