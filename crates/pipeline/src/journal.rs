//! The page journal: finished pages are stored while the rest of a document is read, so that a
//! killed worker loses only the pages in progress.
//!
//! Pages are written in parts, each under its own key with the number of the claim. No two claims
//! write to one key, so a late zombie can leave parts behind but never replace one. A part is
//! written when `MAX_PAGES` OCR pages are ready, when the oldest has waited for `MAX_PART_AGE`, or
//! when the budget has no room for their repaired images: a document of a few pages costs no
//! request. Pages paid for are written before the next call. Native-text pages are not stored,
//! since reading them takes milliseconds. A first claim does not look for parts. All parts are
//! deleted once the transcript is stored and referenced; the janitor deletes abandoned ones with
//! the attempts.
//!
//! Not promised: the last pages read locally. A kill costs up to `MAX_PAGES` of them.

mod part;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};

use crate::artefact::StoreTakesNoWrites;
use crate::byte_budget::{ByteBudget, ReservedBytes};
use crate::claim_handle::ClaimHandle;
use crate::page_sink::PageSink;
use crate::step_error::StepError;
use docmill_core::fault::{self, Fault};
use docmill_core::metrics;
use docmill_core::model::{EncodedImage, IngestionId, PageSource, PageText, PageUsage};
use docmill_core::work_clock::note_progress;
use docmill_storage::{GetOptions, GetResult, ObjectStore, PutResult, keys};
use part::JournalPart;

/// Pages in a part. At two to five seconds a page and core, ten are lost work of half a minute.
const MAX_PAGES: usize = 10;
/// A page that has waited this long is written, however few there are.
const MAX_PART_AGE: Duration = Duration::from_secs(30);
/// Image bytes in a part, give or take a page; bounds what reading a part back takes.
const MAX_BYTES: usize = 8 << 20;
/// Larger objects are not our parts: far above the above, for pages of enormous size.
const MAX_PART_BYTES: u64 = 256 << 20;
/// Parts of one document: far more than `limits.pages` may yield under any number of claims.
const MAX_PARTS: usize = 10_000;
/// Requests at the same time when parts are removed.
const REMOVALS: usize = 8;

/// The finished pages of a document that is being read.
pub(super) struct PageJournal<'a> {
    pub(super) store: &'a dyn ObjectStore,
    pub(super) budget: &'a ByteBudget,
    pub(super) hold: &'a ClaimHandle,
    identity: String,
    /// Number of this claim.
    claims: i64,
    /// Parts of this identity that may be read back.
    parts: Vec<StoredJournalPart>,
    /// Parts of anything else; removed with the others.
    useless: Vec<String>,
    written: u32,
    open: JournalPart,
    /// When the oldest page of the open part was finished.
    open_since: Option<Instant>,
    /// Bytes reserved for the open part's images.
    reserved: Vec<ReservedBytes>,
}

struct StoredJournalPart {
    key: String,
    /// Page numbers of the images in it, and their bytes.
    images: Vec<(u32, usize)>,
}

impl<'a> PageJournal<'a> {
    /// Opens the journal of a claim, with the pages that earlier claims have finished.
    ///
    /// # Errors
    /// Store errors.
    pub(super) async fn open(
        store: &'a dyn ObjectStore,
        budget: &'a ByteBudget,
        hold: &'a ClaimHandle,
        claims: i64,
        identity: String,
    ) -> fault::Result<(Self, Vec<PageText>)> {
        let mut journal = Self {
            store,
            budget,
            hold,
            identity,
            claims,
            parts: Vec::new(),
            useless: Vec::new(),
            written: 0,
            open: JournalPart::default(),
            open_since: None,
            reserved: Vec::new(),
        };
        let finished = if claims > 1 { journal.load_finished().await? } else { Vec::new() };
        Ok((journal, finished))
    }

    /// Loads the parts of earlier claims. The later reading of a page wins: parts are listed by
    /// claim, then in the order of writing.
    async fn load_finished(&mut self) -> fault::Result<Vec<PageText>> {
        let mut finished = BTreeMap::new();
        for key in list_parts(self.store, &keys::page_parts_prefix(self.hold.id)).await? {
            match read_part(self.store, &key, &self.identity).await? {
                Some(part) => {
                    let images = part.image_sizes().collect();
                    finished.extend(part.pages.into_iter().map(|page| (page.number, page)));
                    self.parts.push(StoredJournalPart { key, images });
                }
                None => self.useless.push(key),
            }
        }
        if !finished.is_empty() {
            metrics::count_reuse("pages");
        }
        Ok(finished.into_values().collect())
    }

    fn is_due(&self) -> bool {
        self.open.pages.len() >= MAX_PAGES
            || self.open.image_bytes() >= MAX_BYTES
            || self.open_since.is_some_and(|since| since.elapsed() >= MAX_PART_AGE)
    }

    /// Writes the open part, if it is not empty, while the claim is live.
    ///
    /// # Errors
    /// [`fault::Fault::ClaimLost`]; store errors.
    pub(super) async fn flush(&mut self) -> Result<(), StepError> {
        if self.open.pages.is_empty() {
            return Ok(());
        }
        let bytes = self.open.encode(&self.identity).map_err(|error| {
            fault::Error::internal("finished pages could not be serialised").with_source(error)
        })?;
        self.hold.ensure_live().await?;
        self.written += 1;
        let key = keys::page_part_key(self.hold.id, self.claims, self.written);
        let put = self.store.put_if_absent(&key, bytes.clone()).await;
        match put.map_err(StoreTakesNoWrites::mark)? {
            PutResult::Written(_) => {}
            // Our own write, if the reply was lost and the client retried. Only this claim writes
            // here.
            PutResult::Refused if is_stored(self.store, &key, &bytes).await? => {}
            PutResult::Refused => {
                let context = "another process wrote finished pages of this claim";
                return Err(fault::Error::internal(context).into());
            }
        }
        note_progress();
        self.parts.push(StoredJournalPart { key, images: self.open.image_sizes().collect() });
        self.open = JournalPart::default();
        self.open_since = None;
        self.reserved.clear();
        Ok(())
    }

    /// The pages with stored repaired images, and the bytes of each.
    pub(super) fn image_sizes(&self) -> BTreeMap<u32, usize> {
        let stored = self.parts.iter().flat_map(|part| part.images.iter().copied());
        stored.chain(self.open.image_sizes()).collect()
    }

    /// Passes the repaired images of these pages to `take`, each once, in any order; at most one
    /// part is in memory.
    ///
    /// # Errors
    /// Store errors, and those of `take`.
    pub(super) async fn visit_images(
        &self,
        mut wanted: BTreeSet<u32>,
        mut take: impl FnMut(u32, EncodedImage) -> fault::Result<()>,
    ) -> fault::Result<()> {
        for (number, image) in &self.open.images {
            if wanted.remove(number) {
                take(*number, image.clone())?;
            }
        }
        for stored in &self.parts {
            if !stored.images.iter().any(|(number, _)| wanted.contains(number)) {
                continue;
            }
            let part = read_part(self.store, &stored.key, &self.identity).await?;
            let part = part.ok_or_else(|| {
                fault::Error::transient("finished pages vanished while they were read back")
            })?;
            for (number, image) in part.images {
                if wanted.remove(&number) {
                    take(number, image)?;
                }
            }
        }
        Ok(())
    }

    /// Called when the reading ended in an error. If the document will be read again, its finished
    /// pages are kept for that; otherwise they are removed.
    pub(super) async fn handle_error(&mut self, error: &StepError) {
        match error {
            StepError::Rejected { .. } => self.remove().await,
            StepError::Fault(error) if error.fault == Fault::ClaimLost => {}
            StepError::Fault(_) => {
                if let Err(error) = self.flush().await {
                    tracing::debug!(%error, "finished pages are read again: {error}");
                }
            }
        }
    }

    /// Deletes every part; leftovers are the janitor's.
    pub(super) async fn remove(&mut self) {
        self.open = JournalPart::default();
        self.reserved.clear();
        let written = self.parts.drain(..).map(|part| part.key);
        let keys: Vec<String> = self.useless.drain(..).chain(written).collect();
        if let Err(error) = remove_all(self.store, &keys).await {
            tracing::debug!(%error, "finished pages are left to the janitor: {error}");
        }
    }
}

#[async_trait]
impl PageSink for PageJournal<'_> {
    async fn store_page(
        &mut self,
        page: &PageText,
        repaired: Option<EncodedImage>,
    ) -> Result<(), StepError> {
        if page.source == PageSource::Native && page.provider.is_none() {
            return Ok(());
        }
        let crowded = match &repaired {
            None => false,
            Some(image) => match self.budget.try_reserve(image.bytes.len() as u64) {
                Some(permit) => {
                    self.reserved.push(permit);
                    false
                }
                None => true,
            },
        };
        self.open.pages.push(page.clone());
        self.open.images.extend(repaired.map(|image| (page.number, image)));
        self.open_since.get_or_insert_with(Instant::now);
        if crowded || self.is_due() { self.flush().await } else { Ok(()) }
    }

    async fn before_call(&mut self) -> Result<(), StepError> {
        Ok(self.hold.ensure_live().await?)
    }

    async fn after_call(&mut self, usage: &PageUsage, is_whole: bool) -> Result<(), StepError> {
        metrics::count_paid_pages(usage.provider, usage.pages);
        // The transcript of a whole document is written next, and is as safe.
        if is_whole { Ok(()) } else { self.flush().await }
    }
}

/// Deletes the stored pages of an ingestion.
///
/// # Errors
/// Store errors; some parts may be deleted already.
pub async fn clear_journal(store: &dyn ObjectStore, id: IngestionId) -> fault::Result<()> {
    let keys = list_parts(store, &keys::page_parts_prefix(id)).await?;
    remove_all(store, &keys).await
}

async fn list_parts(store: &dyn ObjectStore, prefix: &str) -> fault::Result<Vec<String>> {
    let entries = store.list(prefix, None, MAX_PARTS).await?;
    Ok(entries.into_iter().map(|entry| entry.key).collect())
}

async fn read_part(
    store: &dyn ObjectStore,
    key: &str,
    identity: &str,
) -> fault::Result<Option<JournalPart>> {
    match store.get(key, GetOptions { at_most: MAX_PART_BYTES, if_match: None }).await? {
        GetResult::Found(object) => Ok(JournalPart::decode(&object.bytes, identity)),
        GetResult::Missing | GetResult::Changed | GetResult::TooLarge { .. } => Ok(None),
    }
}

async fn is_stored(store: &dyn ObjectStore, key: &str, bytes: &Bytes) -> fault::Result<bool> {
    let found = store.get(key, GetOptions { at_most: MAX_PART_BYTES, if_match: None }).await?;
    Ok(matches!(found, GetResult::Found(object) if object.bytes == *bytes))
}

async fn remove_all(store: &dyn ObjectStore, keys: &[String]) -> fault::Result<()> {
    let removals: Vec<_> = keys.iter().map(|key| store.delete(key)).collect();
    futures::stream::iter(removals).buffer_unordered(REMOVALS).try_collect().await
}

#[cfg(test)]
mod tests;
