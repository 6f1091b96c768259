//! Reading pages by providers: pictures out, texts in.
//!
//! A page with a sound text layer stays as it is: the layer is exact, costs nothing, and the page
//! does not leave this machine. The page process draws all others, and they go to the providers in
//! the configured order, in batches that one call can carry. The next provider reads what the one
//! before does not take, and everything while that one is down. It does not step in for one that is
//! only busy: that passes, and the job waits for it without using an attempt.
//!
//! A page whose reading falls short is repaired once and read again by the same provider; the
//! better reading stays. Whatever was paid for is with the sink before the next call is made, the
//! first reading of such a page too.
//!
//! Memory: a batch reserves its bytes before its first picture is drawn, and whoever waits for
//! bytes has no pictures in memory, so that documents cannot block each other.

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

/// Who reads page images, and in which order they are asked.
pub struct RemoteOcr {
    order: Vec<OcrProvider>,
    providers: BTreeMap<OcrProvider, Arc<dyn RemoteOcrProvider>>,
    room: ImageByteBudget,
}

impl Default for RemoteOcr {
    /// No remote provider: every page is read on this machine.
    fn default() -> Self {
        Self::new(vec![OcrProvider::Tesseract], BTreeMap::new(), ByteSize::from_mib(64))
    }
}

/// What a document asks of the providers, besides what is configured for all.
#[derive(Clone, Default)]
pub struct ReadOptions {
    /// Who is asked, in this order; none: as configured.
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
        Self { order, providers, room: ImageByteBudget::new(memory) }
    }

    fn provider_order<'a>(&'a self, wishes: &'a ReadOptions) -> &'a [OcrProvider] {
        wishes.order.as_deref().unwrap_or(&self.order)
    }

    /// Everything about the providers that changes what is read; nothing if all is read here.
    pub(super) fn identity(&self, wishes: &ReadOptions) -> String {
        let asked = self.provider_order(wishes).iter().map(|name| match self.providers.get(name) {
            Some(provider) => format!("; {}", provider.identity()),
            None => format!("; {}", name.name()),
        });
        if self.is_local_first(wishes) { String::new() } else { asked.collect() }
    }

    /// Whether the first to be asked is this machine's own OCR.
    pub(super) fn is_local_first(&self, wishes: &ReadOptions) -> bool {
        self.provider_order(wishes).first() == Some(&OcrProvider::Tesseract)
    }

    /// The name of the provider that is asked first, unless that is this machine's own OCR; `order`
    /// in place of the configured one.
    pub(super) fn first_remote(&self, order: Option<&[OcrProvider]>) -> Option<&'static str> {
        let first = order.unwrap_or(&self.order).first();
        first.and_then(|name| self.providers.get(name)).map(|provider| provider.name())
    }

    /// The provider that is asked first in this order (none: the configured one), if everybody in it
    /// is known to be down or to deny us.
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
                let context = format!("{} is to read pages and was not set up", name.name());
                Err(fault::Error::internal(context))
            }
        }
    }
}

/// Reads the pages of a document that are not in `pages` yet.
///
/// # Errors
/// The input's fault, that of the providers or of the OCR here, or what the sink says.
pub(super) async fn read_pages(
    remote: &RemoteOcr,
    local: &LocalPages<'_>,
    wishes: &ReadOptions,
    pages: &mut PagesByNumber,
    sink: &mut dyn PageSink,
) -> Result<(), StepError> {
    let order = remote.provider_order(wishes);
    let paid = take_paid_in_vain(pages);
    let unread = |number: &u32| !pages.contains_key(number);
    let mut left = UnreadPages {
        numbers: (1..=local.document.page_count()).filter(unread).collect(),
        ..UnreadPages::default()
    };
    let mut witnesses = BTreeMap::new();
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
                    ProviderPass::new(local, &remote.room, provider.as_ref(), pages, sink);
                let mut left = round.read_first(open, wishes.original.as_ref()).await?;
                left.numbers.extend::<Vec<u32>>(known);
                left.numbers.sort_unstable();
                witnesses.append(&mut left.witnesses);
                left
            }
            None => {
                read_here(local, left.numbers, &mut witnesses, pages, sink).await?;
                UnreadPages::default()
            }
        };
    }
    if let Some(why) = left.why.filter(|_| !left.numbers.is_empty()) {
        return Err(why);
    }
    for name in order {
        if let Some(provider) = remote.find_provider(*name)? {
            let mut round = ProviderPass::new(local, &remote.room, provider.as_ref(), pages, sink);
            round.read_repaired().await?;
        }
    }
    // What could not be read a second time stays as it was read first.
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
    witnesses: &mut BTreeMap<u32, PageText>,
    pages: &mut PagesByNumber,
    sink: &mut dyn PageSink,
) -> Result<(), StepError> {
    let mut open = Vec::new();
    for number in numbers {
        match witnesses.remove(&number) {
            Some(page) => {
                sink.store_page(&page, None).await?;
                pages.insert(page)?;
            }
            None => open.push(number),
        }
    }
    local.read_pages(&open, pages, sink).await
}

/// What read the pages, for the transcript: every provider in the order of the pages, and `here`
/// where none did.
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
