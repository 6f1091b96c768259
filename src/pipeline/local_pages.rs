//! Pages that are read here, in page processes, several of a document at the same time.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};

use crate::pipeline::page_sink::PageSink;
use crate::pipeline::step_error::{StepError, step_error};
use docmill_core::model::{PageReadResult, PageText, ReadRecipe};
use docmill_documents::cpu::OpenDocument;

/// The pages of a document that are read, by number.
pub(super) type PagesByNumber = BTreeMap<u32, PageText>;

/// An open document and how its pages are read here.
pub(super) struct LocalPages<'a> {
    /// The document.
    pub(super) document: &'a OpenDocument,
    /// How its pages are read.
    pub(super) recipe: &'a ReadRecipe,
    /// Most of its pages that are worked on at the same time.
    pub(super) at_once: usize,
}

impl LocalPages<'_> {
    /// Reads the pages of these numbers in page processes.
    ///
    /// # Errors
    /// The input's fault, the fault of the OCR, or what the sink says.
    pub(super) async fn read_pages(
        &self,
        numbers: &[u32],
        pages: &mut PagesByNumber,
        sink: &mut dyn PageSink,
    ) -> Result<(), StepError> {
        let mut reads = futures::stream::iter(numbers.to_vec())
            .map(|number| self.document.read_page(number.saturating_sub(1)))
            .buffer_unordered(self.at_once);
        while let Some(read) = reads.try_next().await.map_err(step_error)? {
            let PageReadResult { page, repaired } = read;
            sink.store_page(&page, repaired).await?;
            pages.insert(page.number, page);
        }
        Ok(())
    }
}
