//! Pages that are read here, in page processes, several of a document at the same time.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};

use crate::page_sink::PageSink;
use crate::second_looks::SecondLooks;
use crate::step_error::{StepError, step_error};
use docmill_core::metrics;
use docmill_core::model::{
    OutcomeReason, PageReadResult, PageSource, PageText, ReadRecipe, SecondLook, SecondLookResult,
    TextLimits, TextMeter, TextOverflow,
};
use docmill_documents::sandbox::{DocumentReadError, OpenDocument};

/// The pages of a document that are read, by number, and no more text than a document may have.
pub(super) struct PagesByNumber {
    pages: BTreeMap<u32, PageText>,
    meter: TextMeter,
}

impl PagesByNumber {
    /// None so far.
    pub(super) fn new(limits: TextLimits) -> Self {
        Self { pages: BTreeMap::new(), meter: TextMeter::new(limits) }
    }

    /// Inserts a page, replacing an earlier reading.
    ///
    /// # Errors
    /// `too_large`: the text of the page or document is over the limits.
    pub(super) fn insert(&mut self, page: PageText) -> Result<(), StepError> {
        self.meter.add_page(&page).map_err(overflow_error)?;
        self.pages.insert(page.number, page);
        Ok(())
    }

    /// Takes those out that are to be taken.
    pub(super) fn take_if(&mut self, is_taken: impl Fn(&PageText) -> bool) -> Vec<PageText> {
        self.pages.extract_if(.., |_, page| is_taken(page)).map(|(_, page)| page).collect()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut PageText> {
        self.pages.values_mut()
    }

    pub(super) fn into_pages(self) -> Vec<PageText> {
        self.pages.into_values().collect()
    }
}

impl std::ops::Deref for PagesByNumber {
    type Target = BTreeMap<u32, PageText>;

    fn deref(&self) -> &Self::Target {
        &self.pages
    }
}

/// A text over the limits, as a step error.
pub(super) fn overflow_error(over: TextOverflow) -> StepError {
    StepError::rejected(OutcomeReason::TooLarge, over.to_string())
}

/// An open document and how its pages are read here.
pub(super) struct LocalPages<'a> {
    /// The document.
    pub(super) document: &'a OpenDocument,
    /// How its pages are read.
    pub(super) recipe: &'a ReadRecipe,
    /// Most of its pages that are worked on at the same time.
    pub(super) at_once: usize,
    /// Which of its pages are compared with their drawing.
    pub(super) second_looks: &'a SecondLooks,
    /// SHA-256 of its bytes, in hex.
    pub(super) sha256: &'a str,
}

impl LocalPages<'_> {
    /// Reads a page. One with a text layer that is drawn by lot is compared with its drawing.
    async fn read_page(&self, number: u32) -> Result<PageReadResult, DocumentReadError> {
        let index = number.saturating_sub(1);
        let read = self.document.read_page(index).await?;
        let is_native = read.page.source == PageSource::Native && !read.page.lines.is_empty();
        if !is_native || !self.second_looks.is_drawn(self.sha256, number) {
            return Ok(read);
        }
        match self.document.look_again(index).await {
            Ok(SecondLook { page, result }) => {
                metrics::count_second_look(result.label());
                Ok(PageReadResult { page, ..read })
            }
            Err(error) => {
                tracing::debug!(%error, "a page could not be compared with its drawing: {error}");
                metrics::count_second_look(SecondLookResult::Unread.label());
                Ok(read)
            }
        }
    }

    /// Reads the pages of these numbers in page processes.
    ///
    /// # Errors
    /// The input's fault, the fault of the OCR, or errors of the sink.
    pub(super) async fn read_pages(
        &self,
        numbers: &[u32],
        pages: &mut PagesByNumber,
        sink: &mut dyn PageSink,
    ) -> Result<(), StepError> {
        let mut reads = futures::stream::iter(numbers.to_vec())
            .map(|number| self.read_page(number))
            .buffer_unordered(self.at_once);
        while let Some(read) = reads.try_next().await.map_err(step_error)? {
            let PageReadResult { page, repaired } = read;
            sink.store_page(&page, repaired).await?;
            pages.insert(page)?;
        }
        Ok(())
    }
}
