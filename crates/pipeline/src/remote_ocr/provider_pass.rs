//! One provider's turn at one document.
//!
//! Calls that are under way are waited for even if one of them has failed: they are paid for.

use std::collections::{BTreeMap, VecDeque};

use futures::stream::{self, FuturesUnordered, StreamExt, TryStreamExt};

use super::page_batches::{DrawnPages, ImageByteBudget, PageBatch, PageBatcher, PictureRequest};
use super::stored_original::StoredOriginal;
use super::unread_pages::{UnreadPages, finalize_page, refused_page};
use crate::local_pages::{LocalPages, PagesByNumber};
use crate::page_sink::PageSink;
use crate::step_error::{StepError, step_error};
use docmill_core::fault::{self, Fault};
use docmill_core::model::{
    EncodedImage, OutcomeReason, PagePicture, PageReadResult, PageText, PageUsage, PageViewMode,
    PageViewResult, PictureFit, ProviderNotes, ProviderReading,
};
use docmill_documents::ocr::{FileReader, PictureSizes, RemoteOcrProvider};
use docmill_documents::{has_text, page_from_reading};

/// Calls about one document at the same time.
const CALLS: usize = 4;
/// A file is sent as a whole if at most one page in this many would be paid for unnecessarily.
const IN_VAIN: usize = 10;
/// Maximum rotations of a page that a provider reports as not upright.
const MAX_TURNS: u8 = 2;
/// Fewer pages are read from their pictures, which is answered at once.
const FEW_PAGES: usize = 2;

type ProviderAnswer = fault::Result<(Vec<ProviderReading>, PageUsage)>;

/// A provider, a document, and what there is of it.
pub(super) struct ProviderPass<'a> {
    local: &'a LocalPages<'a>,
    image_budget: &'a ImageByteBudget,
    provider: &'a dyn RemoteOcrProvider,
    pages: &'a mut PagesByNumber,
    sink: &'a mut dyn PageSink,
    /// The error that ended the pass early.
    stop: Option<fault::Error>,
    /// Why some pages were not taken.
    refused: Option<StepError>,
    /// Local readings of pages that the provider did not take.
    local_reads: BTreeMap<u32, PageText>,
    /// Pages that have to be turned, and by how many quarters clockwise.
    turned: Vec<(u32, u8)>,
}

impl<'a> ProviderPass<'a> {
    pub(super) fn new(
        local: &'a LocalPages<'a>,
        image_budget: &'a ImageByteBudget,
        provider: &'a dyn RemoteOcrProvider,
        pages: &'a mut PagesByNumber,
        sink: &'a mut dyn PageSink,
    ) -> Self {
        Self {
            local,
            image_budget,
            provider,
            pages,
            sink,
            stop: None,
            refused: None,
            local_reads: BTreeMap::new(),
            turned: Vec::new(),
        }
    }

    /// Reads the pages of these numbers; those that are left go to the next provider.
    ///
    /// # Errors
    /// What is no reason to ask another one.
    pub(super) async fn read_first(
        &mut self,
        numbers: Vec<u32>,
        original: Option<&StoredOriginal>,
    ) -> Result<UnreadPages, StepError> {
        let mut open = numbers;
        if let (Some(files), Some(original)) = (self.provider.file_reader(), original) {
            open = self.read_by_file(files, original, open).await?;
        }
        match self.provider.picture_fit() {
            None => {
                self.run_calls(PictureRequest::View(PageViewMode::AsItIs), open.clone()).await?;
            }
            Some(fit) => self.read_beside(fit, open.clone()).await?,
        }
        open.retain(|number| !self.pages.contains_key(number));
        let why = match self.stop.take() {
            Some(error) if should_try_next(error.fault) => Some(error.into()),
            Some(error) => return Err(error.into()),
            None => self.refused.take(),
        };
        let local_reads = std::mem::take(&mut self.local_reads);
        Ok(UnreadPages { numbers: open, why, local_reads })
    }

    /// Reads pages remotely that are also read locally. Pages reported as rotated are turned as
    /// reported, then the other way round: models disagree about "clockwise".
    async fn read_beside(&mut self, fit: PictureFit, open: Vec<u32>) -> Result<(), StepError> {
        self.run_calls(PictureRequest::WithLocalReading(fit), open).await?;
        for round in 0..MAX_TURNS {
            for (number, turn) in std::mem::take(&mut self.turned) {
                let quarter_turns = if round == 0 { turn } else { (4 - turn % 4) % 4 };
                if self.stop.is_some() || round > 0 && turn % 2 == 0 {
                    continue;
                }
                let turned = PictureFit { quarter_turns, ..fit };
                self.run_calls(PictureRequest::WithLocalReading(turned), vec![number]).await?;
                // Later rotations start from the first report, not from that about the turned
                // picture.
                let again = self.turned.iter_mut().filter(|(other, _)| *other == number);
                again.for_each(|(_, next)| *next = turn);
            }
        }
        self.turned.clear();
        Ok(())
    }

    /// Repairs the pages whose first reading fell short, and reads them again.
    ///
    /// # Errors
    /// Transient faults: the job retries. If the provider is down or refuses them, the first
    /// readings stay.
    pub(super) async fn read_repaired(&mut self) -> Result<(), StepError> {
        let name = self.provider.name();
        let numbers: Vec<u32> = self
            .pages
            .values()
            .filter(|page: &&PageText| {
                page.provider.as_ref().is_some_and(|notes| notes.provisional && notes.name == name)
            })
            .map(|page| page.number)
            .collect();
        if numbers.is_empty() {
            return Ok(());
        }
        self.run_calls(PictureRequest::View(PageViewMode::Repaired), numbers).await?;
        match self.stop.take() {
            Some(error) if should_try_next(error.fault) => {
                tracing::warn!(ocr.provider = name, "{error}: bad pages keep their local reading");
                Ok(())
            }
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Draws and sends, several calls in parallel, until no page is left or the provider refuses
    /// more. If it ends early, running calls are awaited, stored and booked.
    async fn run_calls(
        &mut self,
        wanted: PictureRequest,
        numbers: Vec<u32>,
    ) -> Result<(), StepError> {
        let (provider, at_once) = (self.provider, self.local.at_once);
        let filler = PageBatcher {
            document: self.local.document,
            wanted,
            reach: provider.call_limits(),
            at_once,
            image_budget: self.image_budget,
        };
        let mut batches = Box::pin(filler.stream_batches(numbers));
        let mut calls = FuturesUnordered::new();
        let mut answered: VecDeque<(PageBatch, ProviderAnswer)> = VecDeque::new();
        let (mut more, mut failed) = (true, None);
        loop {
            if let Some((slice, answer)) = answered.pop_front() {
                let handling = self.handle_answer(slice, answer);
                if let Err(error) = poll_beside(handling, &mut calls, &mut answered).await {
                    failed.get_or_insert(error);
                }
                continue;
            }
            let may_call = more && failed.is_none() && self.stop.is_none();
            tokio::select! {
                batch = batches.next(), if may_call && calls.len() < CALLS => match batch {
                    None => more = false,
                    Some(Err(error)) => failed = Some(error),
                    Some(Ok(batch)) => {
                        more = !batch.is_last;
                        let admitting = self.admit_batch(batch);
                        match poll_beside(admitting, &mut calls, &mut answered).await {
                            Ok(None) => {}
                            Ok(Some(slice)) => calls.push(async move {
                                let answer = provider.read_pictures(&slice.pictures).await;
                                (slice, answer)
                            }),
                            Err(error) => failed = Some(error),
                        }
                    }
                },
                Some(answer) = calls.next(), if !calls.is_empty() => answered.push_back(answer),
                else => return failed.map_or(Ok(()), Err),
            }
        }
    }

    /// Stores pages that need no reading, and checks the budget for the others.
    async fn admit_batch(&mut self, batch: DrawnPages) -> Result<Option<PageBatch>, StepError> {
        let slice = self.keep_known(batch).await?;
        if slice.is_some() {
            self.sink.before_call().await?;
        }
        Ok(slice)
    }

    /// Stores pages that need no reading; returns the others.
    async fn keep_known(&mut self, batch: DrawnPages) -> Result<Option<PageBatch>, StepError> {
        for page in batch.known {
            self.store_page(page, None).await?;
        }
        if let Some((number, size)) = batch.too_large.first() {
            let (name, most) = (self.provider.name(), self.provider.call_limits().bytes);
            let detail =
                format!("the picture of page {number} has {size} bytes, {name} takes {most}");
            self.refused = Some(StepError::rejected(OutcomeReason::TooLarge, detail));
        }
        Ok(batch.slice)
    }

    async fn handle_answer(
        &mut self,
        slice: PageBatch,
        answer: ProviderAnswer,
    ) -> Result<(), StepError> {
        match answer {
            Ok((readings, usage)) => {
                let kept = self.accept_readings(slice.pictures, readings).await;
                // Paid for, whether or not its pages could be kept.
                let booked = self.book_call(&usage).await;
                kept.and(booked)
            }
            Err(error) if error.fault == Fault::Rejected => {
                self.refused = Some(error.into());
                Ok(())
            }
            Err(error) => {
                self.stop.get_or_insert(error);
                Ok(())
            }
        }
    }

    async fn accept_readings(
        &mut self,
        pictures: Vec<PagePicture>,
        readings: Vec<ProviderReading>,
    ) -> Result<(), StepError> {
        for (picture, reading) in pictures.into_iter().zip(readings) {
            self.accept_reading(picture, reading).await?;
        }
        Ok(())
    }

    /// Builds a page from a reading, and stores it if it is better than the current one.
    async fn accept_reading(
        &mut self,
        picture: PagePicture,
        reading: ProviderReading,
    ) -> Result<(), StepError> {
        let PagePicture { facts, image, local_reading } = picture;
        if let Some(local_reading) = local_reading {
            return self.accept_beside(*local_reading, reading).await;
        }
        let mut page = page_from_reading(self.provider.name(), &facts, &image.header, reading);
        if !facts.repaired {
            let recipe = self.local.recipe;
            let falls_short = page.quality < recipe.threshold && recipe.repairs.enabled;
            let may_gain = facts.layer.is_none() && !facts.cut && has_text(&facts.text);
            if let Some(notes) = &mut page.provider {
                notes.provisional = falls_short && may_gain;
            }
            return self.store_page(page, None).await;
        }
        match self.pages.get(&page.number) {
            Some(first) if reading_score(first) >= reading_score(&page) => {
                let mut first = first.clone();
                finalize_page(&mut first);
                self.store_page(first, None).await
            }
            _ => self.store_page(page, Some(image)).await,
        }
    }

    /// Replaces the local reading by the remote one, or records that an unusable one was paid for.
    async fn accept_beside(
        &mut self,
        local_reading: PageReadResult,
        reading: ProviderReading,
    ) -> Result<(), StepError> {
        let PageReadResult { page, repaired } = local_reading;
        let name = self.provider.name();
        let number = page.number;
        let Some(why) = reading.refused else {
            self.local_reads.remove(&number);
            let notes = ProviderNotes {
                name: name.to_owned(),
                version: reading.version,
                ..ProviderNotes::default()
            };
            let page = PageText { lines: reading.lines, provider: Some(Box::new(notes)), ..page };
            return self.store_page(page, repaired).await;
        };
        self.turned.extend(reading.turn.map(|turn| (number, turn)));
        let code = why.code();
        tracing::info!(ocr.provider = name, page = number, reason = code, "a reading is refused");
        let context = format!("{name}: the reading of page {number} is refused as {code}");
        self.refused = Some(fault::Error::new(Fault::Rejected, context).into());
        self.sink.store_page(&refused_page(&page, name, why), None).await?;
        // Beside a picture that the next reader would have to make again it is read again.
        if repaired.is_none() {
            self.local_reads.insert(number, page);
        }
        Ok(())
    }

    async fn book_call(&mut self, usage: &PageUsage) -> Result<(), StepError> {
        let all = usize::try_from(self.local.document.page_count()).unwrap_or(usize::MAX);
        let is_whole = self.pages.len() == all && !self.pages.values().any(is_provisional);
        self.sink.after_call(usage, is_whole).await
    }

    async fn store_page(
        &mut self,
        page: PageText,
        image: Option<EncodedImage>,
    ) -> Result<(), StepError> {
        self.sink.store_page(&page, image).await?;
        self.pages.insert(page)
    }

    /// Has the provider fetch and read the file itself, if nearly all of its pages have to be read;
    /// the numbers that are still open.
    async fn read_by_file(
        &mut self,
        files: &dyn FileReader,
        original: &StoredOriginal,
        numbers: Vec<u32>,
    ) -> Result<Vec<u32>, StepError> {
        let pictures = self.survey(&numbers).await?;
        let numbers: Vec<u32> = pictures.iter().map(|picture| picture.facts.number).collect();
        let name = self.provider.name();
        let has_read =
            |page: &&PageText| page.provider.as_ref().is_some_and(|notes| notes.name == name);
        // Pages that an earlier claim has kept belong to the same job.
        let wanted = numbers.len() + self.pages.values().filter(has_read).count();
        let all = usize::try_from(self.local.document.page_count()).unwrap_or(usize::MAX);
        if numbers.is_empty() || wanted < FEW_PAGES || (all - wanted.min(all)) * IN_VAIN > all {
            return Ok(numbers);
        }
        let Some(file) = original.provider_file().await? else { return Ok(numbers) };
        let sizes: PictureSizes = pictures
            .iter()
            .map(|picture: &PagePicture| {
                (picture.facts.number, (picture.image.header.width, picture.image.header.height))
            })
            .collect();
        self.sink.before_call().await?;
        let (mut readings, usage) = match files.read_file(&file, &sizes).await {
            Ok(read) => read,
            Err(error) if error.fault == Fault::Rejected => {
                tracing::warn!(ocr.provider = name, "{error}: its pages go one by one");
                return Ok(numbers);
            }
            Err(error) => {
                self.stop = Some(error);
                return Ok(numbers);
            }
        };
        if file.version.is_none() && !original.is_unchanged().await? {
            tracing::warn!(ocr.provider = name, "the file was replaced while it was read");
            self.book_call(&usage).await?;
            return Ok(numbers);
        }
        let read = |picture: PagePicture| Some((readings.remove(&picture.facts.number)?, picture));
        let (readings, pictures) = pictures.into_iter().filter_map(read).unzip();
        let kept = self.accept_readings(pictures, readings).await;
        self.book_call(&usage).await?;
        kept?;
        Ok(numbers.into_iter().filter(|number| !self.pages.contains_key(number)).collect())
    }

    /// Surveys these pages without drawing: stores those that need no reading, and returns the
    /// facts about the others.
    async fn survey(&mut self, numbers: &[u32]) -> Result<Vec<PagePicture>, StepError> {
        let document = self.local.document;
        let mut views = stream::iter(numbers.to_vec())
            .map(|number| document.show_page(number.saturating_sub(1), PageViewMode::Facts))
            .buffered(self.local.at_once);
        let mut pictures = Vec::new();
        while let Some(shown) = views.try_next().await.map_err(step_error)? {
            match shown {
                PageViewResult::Text(page) => self.store_page(*page, None).await?,
                PageViewResult::Picture(picture) => pictures.push(*picture),
                PageViewResult::Unaltered => {}
            }
        }
        Ok(pictures)
    }
}

/// Polls local work while the running calls progress too: they are paid for, and must not run into
/// their timeouts unpolled.
async fn poll_beside<W: Future, C: Future>(
    wait: W,
    calls: &mut FuturesUnordered<C>,
    answered: &mut VecDeque<C::Output>,
) -> W::Output {
    tokio::pin!(wait);
    loop {
        tokio::select! {
            biased;
            waited = &mut wait => return waited,
            Some(answer) = calls.next(), if !calls.is_empty() => answered.push_back(answer),
        }
    }
}

/// Whether another provider should be asked: this one is down or will not have us. One that is only
/// busy is waited for.
fn should_try_next(fault: Fault) -> bool {
    fault.needs_person() || matches!(fault, Fault::Unavailable | Fault::Rejected)
}

fn is_provisional(page: &PageText) -> bool {
    page.provider.as_ref().is_some_and(|notes| notes.provisional)
}

/// How much of a page was read, and how surely: a repair that makes the picture prettier and loses
/// words has not helped.
fn reading_score(page: &PageText) -> f32 {
    let words = page.lines.iter().flat_map(|line| &line.words);
    page.quality * words.map(|word| word.confidence).sum::<f32>()
}
