//! Remote OCR: page images out, texts in.
//!
//! A page with a sound text layer is not sent: the layer is exact and free. The page process draws
//! all others, and they go to the providers in the configured order, in batches of one call each.
//! The next provider reads pages that the one before refuses, and all pages while that one is down.
//! It does not replace a busy one: the job waits, without using an attempt.
//!
//! A page whose reading falls short is repaired once and read again by the same provider; the
//! better reading stays. Every paid reading reaches the sink before the next call, including the
//! first reading of such a page.
//!
//! Memory: a batch reserves its bytes before its first picture is drawn, and a waiting batch holds
//! no pictures, so documents cannot block each other.

mod page_batches;
mod provider_pass;
mod stored_original;
mod unread_pages;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::local_pages::{LocalPages, PagesByNumber};
use crate::page_sink::PageSink;
use crate::step_error::StepError;
use docmill_core::config::{ByteSize, OcrProvider};
use docmill_core::fault;
use docmill_core::model::{PageSource, PageText};
use docmill_documents::ocr::RemoteOcrProvider;

pub use page_batches::ImageByteBudget;
use provider_pass::ProviderPass;
pub use stored_original::StoredOriginal;
use unread_pages::{UnreadPages, finalize_page, refused_provider};

/// The providers for page images, and their order.
pub struct RemoteOcr {
    order: Vec<OcrProvider>,
    providers: BTreeMap<OcrProvider, Arc<dyn RemoteOcrProvider>>,
    image_budget: ImageByteBudget,
}

impl Default for RemoteOcr {
    /// No remote provider: every page is read on this machine.
    fn default() -> Self {
        Self::new(vec![OcrProvider::Tesseract], BTreeMap::new(), ByteSize::from_mib(64))
    }
}

/// A document's options for remote providers.
#[derive(Clone, Default)]
pub struct ReadOptions {
    /// The order of providers; `None`: as configured.
    pub order: Option<Vec<OcrProvider>>,
    /// Where the document lies, if it is a PDF that a provider may fetch there by itself.
    pub original: Option<StoredOriginal>,
}

impl RemoteOcr {
    /// `order` is the configured one; `providers` has everybody whom it, or a kind, names, but
    /// Tesseract; their pictures take at most `memory` bytes together.
    pub fn new(
        order: Vec<OcrProvider>,
        providers: BTreeMap<OcrProvider, Arc<dyn RemoteOcrProvider>>,
        memory: ByteSize,
    ) -> Self {
        Self { order, providers, image_budget: ImageByteBudget::new(memory) }
    }

    fn provider_order<'a>(&'a self, options: &'a ReadOptions) -> &'a [OcrProvider] {
        options.order.as_deref().unwrap_or(&self.order)
    }

    /// All properties of the providers that affect transcripts; empty if all reading is local.
    pub(super) fn identity(&self, options: &ReadOptions) -> String {
        let asked =
            self.provider_order(options).iter().map(|name| match self.providers.get(name) {
                Some(provider) => format!("; {}", provider.identity()),
                None => format!("; {}", name.name()),
            });
        if self.is_local_first(options) { String::new() } else { asked.collect() }
    }

    /// Whether the first to be asked is this machine's own OCR.
    pub(super) fn is_local_first(&self, options: &ReadOptions) -> bool {
        self.provider_order(options).first() == Some(&OcrProvider::Tesseract)
    }

    /// The name of the provider that is asked first, unless that is this machine's own OCR; `order`
    /// in place of the configured one.
    pub(super) fn first_remote(&self, order: Option<&[OcrProvider]>) -> Option<&'static str> {
        let first = order.unwrap_or(&self.order).first();
        first.and_then(|name| self.providers.get(name)).map(|provider| provider.name())
    }

    /// The first provider of this order (`None`: the configured one), if all of them are known to
    /// be down or to deny access.
    pub(super) fn find_outage(&self, order: Option<&[OcrProvider]>) -> Option<&'static str> {
        let order = order.unwrap_or(&self.order);
        let down = |name: &OcrProvider| self.providers.get(name).filter(|it| it.is_down());
        let down: Option<Vec<_>> = order.iter().map(down).collect();
        down?.first().map(|provider| provider.name())
    }

    fn find_provider(
        &self,
        name: OcrProvider,
    ) -> fault::Result<Option<&Arc<dyn RemoteOcrProvider>>> {
        match self.providers.get(&name) {
            Some(provider) => Ok(Some(provider)),
            None if name == OcrProvider::Tesseract => Ok(None),
            None => {
                let context = format!("OCR provider {} is not configured", name.name());
                Err(fault::Error::internal(context))
            }
        }
    }
}

/// Reads the pages of a document that are not in `pages` yet.
///
/// # Errors
/// The input's fault, that of the providers or of the local OCR, or errors of the sink.
pub(super) async fn read_pages(
    remote: &RemoteOcr,
    local: &LocalPages<'_>,
    options: &ReadOptions,
    pages: &mut PagesByNumber,
    sink: &mut dyn PageSink,
) -> Result<(), StepError> {
    let order = remote.provider_order(options);
    let paid = take_paid_in_vain(pages);
    let mut left = UnreadPages {
        numbers: (1..=local.document.page_count())
            .filter(|number: &u32| !pages.contains_key(number))
            .collect(),
        ..UnreadPages::default()
    };
    let mut local_reads = BTreeMap::new();
    for name in order {
        if left.numbers.is_empty() {
            break;
        }
        if let Some(why) = left.why.take() {
            let (count, provider) = (left.numbers.len(), name.name());
            tracing::warn!(ocr.provider = provider, "{why}: {count} pages go to {provider}");
        }
        left = match remote.find_provider(*name)? {
            Some(provider) => {
                let asked_before =
                    |number: &u32| paid.get(number).is_some_and(|it| it == provider.name());
                let (known, open) = left.numbers.into_iter().partition(asked_before);
                let mut round =
                    ProviderPass::new(local, &remote.image_budget, provider.as_ref(), pages, sink);
                let mut left = round.read_first(open, options.original.as_ref()).await?;
                left.numbers.extend::<Vec<u32>>(known);
                left.numbers.sort_unstable();
                local_reads.append(&mut left.local_reads);
                left
            }
            None => {
                read_here(local, left.numbers, &mut local_reads, pages, sink).await?;
                UnreadPages::default()
            }
        };
    }
    if let Some(why) = left.why.filter(|_| !left.numbers.is_empty()) {
        return Err(why);
    }
    for name in order {
        if let Some(provider) = remote.find_provider(*name)? {
            let mut round =
                ProviderPass::new(local, &remote.image_budget, provider.as_ref(), pages, sink);
            round.read_repaired().await?;
        }
    }
    // Pages without a second reading keep the first.
    for page in pages.values_mut() {
        finalize_page(page);
    }
    Ok(())
}

/// Whom it is of no use to ask again, by page: it was paid for a reading that was refused.
fn take_paid_in_vain(pages: &mut PagesByNumber) -> BTreeMap<u32, String> {
    let refused = pages.take_if(|page| refused_provider(page).is_some());
    let named = refused.iter();
    named.filter_map(|page| Some((page.number, refused_provider(page)?.to_owned()))).collect()
}

/// Reads pages on this machine, but for those that were read here already beside another reader.
async fn read_here(
    local: &LocalPages<'_>,
    numbers: Vec<u32>,
    local_reads: &mut BTreeMap<u32, PageText>,
    pages: &mut PagesByNumber,
    sink: &mut dyn PageSink,
) -> Result<(), StepError> {
    let mut open = Vec::new();
    for number in numbers {
        match local_reads.remove(&number) {
            Some(page) => {
                sink.store_page(&page, None).await?;
                pages.insert(page)?;
            }
            None => open.push(number),
        }
    }
    local.read_pages(&open, pages, sink).await
}

/// The readers of the pages, for the transcript: every provider in page order, and `here` where
/// none was used.
pub(super) fn provider_names(pages: &[PageText], here: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    let read = pages.iter().filter(|page| page.source == PageSource::Ocr);
    for page in read {
        let name = page.provider.as_ref().map_or(here, |notes| notes.name.as_str());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() { here.to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests;
