//! A document that is being read in a page process, whichever process that is at the moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Mutex, OwnedSemaphorePermit, oneshot};

use super::answer_check::{self, AnswerCheck};
use super::cores::CorePermit;
use super::page_process::{PageProcess, ProcessAnswer};
use super::process_exit::{ExitVerdict, ProcessExit};
use super::process_pool::{ProcessPool, ProcessSlot};
use super::wire::{DocumentAnswer, DocumentRequest};
use crate::image::format::DocumentFormat;
use docmill_core::config::SecretString;
use docmill_core::fault::{Error, Fault};
use docmill_core::model::{
    EncodedImage, MemberFacts, OutcomeReason, PageCrop, PageReadResult, PageText, PageViewMode,
    PageViewResult, PictureFit, PrintedPage, SecondLook, TextLimits, TextLine,
};
use docmill_core::work_clock::{cpu_queue_position, wait_off_clock, work_on_clock};
use docmill_formats::einvoice::EinvoiceFinding;

/// Grace for a page over its time to stop by itself, so that nothing has to be killed.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// How long an abandoned page may run on in a process that serves no other document.
const ABANDONED_GRACE: Duration = Duration::from_secs(1);
/// Minimum share of CPU time in elapsed time; below it the machine was suspended or overloaded.
const MIN_CORE_SHARE: f64 = 0.25;
/// CPU time is counted in hundredths of a second: shorter times are not evaluated.
const MIN_JUDGED_TIME: Duration = Duration::from_secs(1);
/// The failure of a page that got no CPU time.
const STARVED: &str = "a page took longer than limits.page_time because it had no core";

/// Why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentReadError {
    /// The document itself is to blame, and trying again gives the same answer.
    #[error("{}: {detail}", reason.code())]
    Refused {
        /// The code for the row.
        reason: OutcomeReason,
        /// Counts and limits; never document content.
        detail: String,
    },
    /// Something else went wrong; its fault determines the reaction.
    #[error(transparent)]
    Fault(#[from] Error),
}

impl DocumentReadError {
    fn refused(reason: OutcomeReason, detail: impl Into<String>) -> Self {
        Self::Refused { reason, detail: detail.into() }
    }
}

/// An open document. Dropping it closes it.
pub struct OpenDocument {
    pool: Arc<ProcessPool>,
    bytes: Bytes,
    number: u64,
    /// Queue position of the job that it is opened for.
    cpu_queue_position: u64,
    /// Whose it is: tenants have shares of the cores, and may be kept apart.
    tenant: Option<Arc<str>>,
    /// Tried in this order if it is encrypted.
    passwords: Vec<SecretString>,
    /// Whether e-invoices are looked for as it is opened.
    scan_einvoice: bool,
    /// Whether documents are looked for in it.
    find_members: bool,
    opened: OpenedFacts,
    /// Milliseconds of work on it so far.
    spent: Arc<AtomicU64>,
    place: Mutex<ProcessAssignment>,
}

/// A page process's reply when it opens a document.
#[derive(Debug, Default)]
struct OpenedFacts {
    /// 0: it is a container, or not open yet.
    pages: u32,
    /// The documents found in it.
    members: Vec<MemberFacts>,
    /// Whether more are attached to it, which were not taken.
    members_left_out: bool,
    /// `None`: not asked for, or taken.
    einvoice: Option<EinvoiceFinding>,
}

#[derive(Default)]
struct ProcessAssignment {
    slot: Option<Arc<ProcessSlot>>,
    /// The document is suspect and is read in a process of its own.
    alone: bool,
    /// Verdict of a page process's exit about this document.
    judged: Option<ExitVerdict>,
}

/// How a document is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct DocumentOpening<'a> {
    /// The name of its file: text and web pages under the name of a PDF or of an image are refused.
    pub name: Option<&'a str>,
    /// Whose it is, for `cpu.shared`.
    pub tenant: Option<&'a str>,
    /// In a page process of its own.
    pub alone: bool,
    /// Tried in this order if it is encrypted and the empty password does not open it.
    pub passwords: &'a [SecretString],
    /// Whether e-invoices are looked for in it, see [`OpenDocument::take_einvoice`].
    pub scan_einvoice: bool,
    /// Whether documents are looked for in it, see [`OpenDocument::members`]; a container is refused
    /// otherwise.
    pub find_members: bool,
}

impl ProcessPool {
    /// Opens a document of no tenant, see [`ProcessPool::open_tenant_document`].
    ///
    /// # Errors
    /// As there.
    pub async fn open_document(
        self: &Arc<Self>,
        bytes: Bytes,
        alone: bool,
    ) -> Result<OpenDocument, DocumentReadError> {
        self.open_tenant_document(bytes, DocumentOpening { alone, ..DocumentOpening::default() })
            .await
    }

    /// Opens a document: recognises its format, checks it against the limits and counts its pages.
    ///
    /// # Errors
    /// The document is refused; page processes cannot be started, or not be confined.
    pub async fn open_tenant_document(
        self: &Arc<Self>,
        bytes: Bytes,
        how: DocumentOpening<'_>,
    ) -> Result<OpenDocument, DocumentReadError> {
        let DocumentOpening { name, tenant, alone, passwords, scan_einvoice, find_members } = how;
        check_name(&bytes, name)?;
        let mut document = OpenDocument {
            pool: Arc::clone(self),
            bytes,
            passwords: passwords.to_vec(),
            number: self.next_document_number(),
            cpu_queue_position: cpu_queue_position(),
            tenant: tenant.map(Arc::from),
            scan_einvoice,
            find_members,
            opened: OpenedFacts::default(),
            spent: Arc::default(),
            place: Mutex::new(ProcessAssignment { alone, ..ProcessAssignment::default() }),
        };
        let mut place = std::mem::take(document.place.get_mut());
        let seated = document.assign_process(&mut place).await;
        document.place = Mutex::new(place);
        document.opened = seated?;
        Ok(document)
    }
}

/// Refuses text and web pages under a name that promises a signature.
fn check_name(bytes: &Bytes, name: Option<&str>) -> Result<(), DocumentReadError> {
    let found = DocumentFormat::sniff(bytes);
    match name.zip(found).filter(|(name, found)| found.is_misnamed(name)) {
        Some((_, found)) => Err(DocumentReadError::refused(
            OutcomeReason::UnsupportedType,
            format!("named as another format, but the content is {}", found.code()),
        )),
        None => Ok(()),
    }
}

impl OpenDocument {
    /// Number of its pages, at least 1; 0 of a container.
    pub fn page_count(&self) -> u32 {
        self.opened.pages
    }

    /// The documents found in it, in their order; none if it was opened without looking for them.
    pub fn members(&self) -> &[MemberFacts] {
        &self.opened.members
    }

    /// Whether documents are attached to it that were not taken: too many, or too large.
    pub fn leaves_members_out(&self) -> bool {
        self.opened.members_left_out
    }

    /// The bytes of the document found in it at this place, which starts at 0.
    ///
    /// # Errors
    /// As [`OpenDocument::read_page`].
    pub async fn member_content(&self, index: u32) -> Result<Vec<u8>, DocumentReadError> {
        let member = usize::try_from(index).ok().and_then(|index| self.opened.members.get(index));
        let member = member.ok_or_else(|| Error::internal("no such document in it"))?;
        let request = DocumentRequest::Member { document: self.number, index };
        self.ask_with_retry(request, |answer, body| {
            let length = u64::try_from(body.len()).unwrap_or(u64::MAX);
            (answer == DocumentAnswer::Member && length == member.bytes).then_some(body)
        })
        .await
    }

    /// Reads page `index`, which starts at 0. Several pages may be requested at the same time.
    ///
    /// # Errors
    /// The document is refused; the reader fails.
    pub async fn read_page(&self, index: u32) -> Result<PageReadResult, DocumentReadError> {
        let request = DocumentRequest::Read { document: self.number, index };
        let read = self.ask_with_retry(request, |answer, body| {
            answer.into_page(body).filter(|read| self.check().is_page_read(read, index))
        });
        let read = read.await?;
        self.check_text(&read.page)?;
        Ok(read)
    }

    /// Reads page `index`, which starts at 0 and has a text layer, and compares it with its drawing.
    ///
    /// # Errors
    /// As [`OpenDocument::read_page`].
    pub async fn look_again(&self, index: u32) -> Result<SecondLook, DocumentReadError> {
        let request = DocumentRequest::LookAgain { document: self.number, index };
        let look = self.ask_with_retry(request, |answer, _| {
            let look = answer.into_second_look()?;
            self.check().is_printed_page(&look.page, index).then_some(look)
        });
        let look = look.await?;
        self.check_text(&look.page)?;
        Ok(look)
    }

    /// The text layer of page `index`, which starts at 0, without reading its picture.
    ///
    /// # Errors
    /// As [`OpenDocument::read_page`].
    pub async fn printed_page(&self, index: u32) -> Result<PrintedPage, DocumentReadError> {
        let request = DocumentRequest::Print { document: self.number, index };
        let printed = self.ask_with_retry(request, |answer, _| {
            answer
                .into_printed_page()
                .filter(|page| self.check().is_printed_page(&page.text, index))
        });
        let printed = printed.await?;
        self.check_text(&printed.text)?;
        Ok(printed)
    }

    /// The most text that its pages may have.
    pub fn text_limits(&self) -> TextLimits {
        self.pool.setup().limits.text()
    }

    /// A page process is not trusted: its words are counted once more.
    fn check_text(&self, page: &PageText) -> Result<(), DocumentReadError> {
        let counted = self.text_limits().check_page(page);
        counted
            .map_err(|over| DocumentReadError::refused(OutcomeReason::TooLarge, over.to_string()))
    }

    /// Draws page `index`, which starts at 0, for a reader elsewhere. Several pages may be
    /// requested at the same time.
    ///
    /// # Errors
    /// As [`OpenDocument::read_page`].
    pub async fn show_page(
        &self,
        index: u32,
        view: PageViewMode,
    ) -> Result<PageViewResult, DocumentReadError> {
        let request = DocumentRequest::Show { document: self.number, index, view };
        let shown = self.ask_with_retry(request, |answer, body| {
            let shown = answer.into_shown_page(body)?;
            self.check().is_shown_page(&shown, view, index).then_some(shown)
        });
        let shown = shown.await?;
        if let PageViewResult::Text(page) = &shown {
            self.check_text(page)?;
        }
        Ok(shown)
    }

    /// Reads page `index`, which starts at 0, and draws the picture that it was read from so that
    /// it fits another reader. A page with a text layer comes as its text alone.
    ///
    /// # Errors
    /// As [`OpenDocument::read_page`].
    pub async fn read_locally(
        &self,
        index: u32,
        fit: PictureFit,
    ) -> Result<PageViewResult, DocumentReadError> {
        let request = DocumentRequest::ReadLocally { document: self.number, index, fit };
        let is_asked_for =
            |shown: &PageViewResult| self.check().has_local_reading(shown, fit, index);
        let shown = self.ask_with_retry(request, |answer, body| {
            answer.into_shown_page(body).filter(is_asked_for)
        });
        let shown = shown.await?;
        match &shown {
            PageViewResult::Text(page) => self.check_text(page)?,
            PageViewResult::Picture(picture) => {
                picture.local_reading.iter().try_for_each(|read| self.check_text(&read.page))?;
            }
            PageViewResult::Unaltered => {}
        }
        Ok(shown)
    }

    /// Draws page `index`, which starts at 0, as a person sees it, so that it fits a model.
    /// `repaired`: its text was read from a repaired picture. `None`: nothing can be drawn.
    ///
    /// # Errors
    /// As [`OpenDocument::read_page`].
    pub async fn draw_page(
        &self,
        index: u32,
        repaired: bool,
        fit: PictureFit,
    ) -> Result<Option<EncodedImage>, DocumentReadError> {
        let request = DocumentRequest::Draw { document: self.number, index, repaired, fit };
        self.ask_with_retry(request, |answer, body| {
            answer.into_drawn(body).filter(|drawn| self.check().is_drawn_page(drawn.as_ref(), fit))
        })
        .await
    }

    /// The same in the colours of its file, for people; in grey if it has none.
    ///
    /// # Errors
    /// As [`OpenDocument::read_page`].
    pub async fn paint_page(
        &self,
        index: u32,
        repaired: bool,
        fit: PictureFit,
    ) -> Result<Option<EncodedImage>, DocumentReadError> {
        let request = DocumentRequest::Paint { document: self.number, index, repaired, fit };
        self.ask_with_retry(request, |answer, body| {
            answer
                .into_drawn(body)
                .filter(|painted| self.check().is_painted_page(painted.as_ref(), fit))
        })
        .await
    }

    /// Draws page `index`, which starts at 0, as its file shows it, for a copy that people keep.
    /// `None`: nothing can be drawn.
    ///
    /// # Errors
    /// As [`OpenDocument::read_page`].
    pub async fn copy_page(&self, index: u32) -> Result<Option<EncodedImage>, DocumentReadError> {
        let request = DocumentRequest::Copy { document: self.number, index };
        self.ask_with_retry(request, |answer, body| {
            answer.into_drawn(body).filter(|drawn| self.check().is_copied_page(drawn.as_ref()))
        })
        .await
    }

    /// Cuts a figure out of page `index`, which starts at 0. `repaired`: its text was read from a
    /// repaired picture. `None`: nothing of the page can be drawn.
    ///
    /// # Errors
    /// As [`OpenDocument::read_page`].
    pub async fn cut_figure(
        &self,
        index: u32,
        repaired: bool,
        crop: PageCrop,
    ) -> Result<Option<EncodedImage>, DocumentReadError> {
        let request = DocumentRequest::Cut { document: self.number, index, repaired, crop };
        self.ask_with_retry(request, |answer, body| {
            answer.into_drawn(body).filter(|drawn| self.check().is_copied_page(drawn.as_ref()))
        })
        .await
    }

    /// Reads a piece of page `index`, which starts at 0, once more, enlarged; boxes are shares of
    /// the page's width and height.
    ///
    /// # Errors
    /// As [`OpenDocument::read_page`].
    pub async fn reread_crop(
        &self,
        index: u32,
        repaired: bool,
        crop: PageCrop,
    ) -> Result<Vec<TextLine>, DocumentReadError> {
        let request = DocumentRequest::Reread { document: self.number, index, repaired, crop };
        let lines = self.ask_with_retry(request, |answer, _| {
            answer.into_reread().filter(|lines| answer_check::is_reread(lines))
        });
        let page = PageText::from_native(index + 1, (1.0, 1.0), 1.0, lines.await?);
        self.check_text(&page)?;
        Ok(page.lines)
    }

    /// Takes the content of its e-invoices; empty the second time, and if it was opened without
    /// looking for them.
    pub fn take_einvoice(&mut self) -> EinvoiceFinding {
        self.opened.einvoice.take().unwrap_or(EinvoiceFinding::NONE)
    }

    /// Whether it is a form that people type into.
    ///
    /// # Errors
    /// As [`OpenDocument::read_page`].
    pub async fn has_text_fields(&self) -> Result<bool, DocumentReadError> {
        let request = DocumentRequest::Fields { document: self.number };
        self.ask_with_retry(request, |answer, _| answer.into_text_fields()).await
    }

    fn check(&self) -> AnswerCheck<'_> {
        AnswerCheck::new(&self.pool.setup().limits)
    }

    /// Repeats the request until a page process answers. `parse` gives `None` for a reply to
    /// another request, which ends the process.
    async fn ask_with_retry<T>(
        &self,
        request: DocumentRequest,
        parse: impl Fn(DocumentAnswer, Vec<u8>) -> Option<T>,
    ) -> Result<T, DocumentReadError> {
        loop {
            let slot = self.process_slot().await?;
            let Some((answer, body)) = self.ask_once(&slot, request, Bytes::new()).await? else {
                continue;
            };
            match success_or_refusal(answer)?.and_then(|answer| parse(answer, body)) {
                Some(parsed) => return Ok(parsed),
                None => slot.process.kill_for_nonsense(self.number),
            }
        }
    }

    /// The document's current slot; a new one if its page process has ended.
    async fn process_slot(&self) -> Result<Arc<ProcessSlot>, DocumentReadError> {
        let mut place = self.place.lock().await;
        if let Some(slot) = place.slot.as_ref().filter(|slot| slot.process.exit_reason().is_none())
        {
            return Ok(Arc::clone(slot));
        }
        self.assign_process(&mut place).await?;
        place.slot.clone().ok_or_else(|| Error::internal("a document without a place").into())
    }

    /// Acquires a slot and opens the document in its process; returns the reply.
    async fn assign_process(
        &self,
        place: &mut ProcessAssignment,
    ) -> Result<OpenedFacts, DocumentReadError> {
        loop {
            self.apply_verdict(place)?;
            let tenant = self.tenant.as_ref();
            let slot = self.pool.acquire_slot(self.number, tenant, place.alone).await?;
            let slot = Arc::new(slot);
            let (secrets, body) = self.body_with_secrets()?;
            let is_reopened = self.opened.pages > 0 || !self.opened.members.is_empty();
            let before = Some(self.opened.pages).filter(|_| is_reopened);
            // A reopened document has the finding already.
            let scan_einvoice = self.scan_einvoice && before.is_none();
            let find_members = self.find_members;
            let request = DocumentRequest::Open {
                document: self.number,
                secrets,
                scan_einvoice,
                find_members,
            };
            let answer = self.ask_once(&slot, request, body).await?;
            let known = &self.opened.members;
            let opened = answer.map(|(answer, _)| success_or_refusal(answer)).transpose()?;
            let facts = match opened {
                // The process ended instead of answering.
                None => None,
                Some(Some(DocumentAnswer::Opened {
                    pages,
                    members,
                    members_left_out,
                    einvoice,
                })) if self.check().is_page_count(pages, before, !members.is_empty())
                    && self.check().are_members(&members)
                    && (members.is_empty() || find_members)
                    && (before.is_none() || members == *known)
                    && einvoice.is_some() == scan_einvoice
                    && einvoice.iter().all(|found| self.check().is_finding(found)) =>
                {
                    Some(OpenedFacts { pages, members, members_left_out, einvoice })
                }
                Some(_) => {
                    slot.process.kill_for_nonsense(self.number);
                    None
                }
            };
            place.slot = Some(slot);
            if let Some(facts) = facts {
                return Ok(facts);
            }
        }
    }

    /// Body of the open request: passwords, their length, then the document's bytes.
    fn body_with_secrets(&self) -> Result<(u32, Bytes), DocumentReadError> {
        if self.passwords.is_empty() {
            return Ok((0, self.bytes.clone()));
        }
        let passwords: Vec<&str> = self.passwords.iter().map(SecretString::reveal).collect();
        let list = serde_json::to_vec(&passwords);
        let mut body = list.map_err(|_| Error::internal("passwords could not be written"))?;
        let secrets = u32::try_from(body.len());
        let secrets = secrets.map_err(|_| Error::internal("too many passwords"))?;
        body.extend_from_slice(&self.bytes);
        Ok((secrets, body.into()))
    }

    /// Applies the verdict of a page process that has ended.
    fn apply_verdict(&self, place: &mut ProcessAssignment) -> Result<(), DocumentReadError> {
        if let Some(slot) = place.slot.take()
            && let Some(verdict) = slot.process.verdict_for(self.number, slot.is_alone())
        {
            match verdict {
                ExitVerdict::Again => {}
                ExitVerdict::Suspect => place.alone = true,
                verdict => place.judged = Some(verdict),
            }
        }
        match place.judged {
            None | Some(ExitVerdict::Again | ExitVerdict::Suspect) => Ok(()),
            Some(ExitVerdict::OverTime) => Err(self.over_time_error()),
            Some(ExitVerdict::Refused(reason, detail)) => {
                Err(DocumentReadError::refused(reason, detail))
            }
            Some(ExitVerdict::Failed { passing }) => {
                let fault = if passing { Fault::Transient } else { Fault::Internal };
                Err(Error::new(fault, "the document's page process was ended").into())
            }
        }
    }

    /// Waits for a core and sends the request; `None` if the process ended instead of answering.
    async fn ask_once(
        &self,
        slot: &Arc<ProcessSlot>,
        request: DocumentRequest,
        body: Bytes,
    ) -> Result<Option<(DocumentAnswer, Vec<u8>)>, DocumentReadError> {
        // A process of one document reads a page at a time; waiting pages are off the clock.
        let turn = wait_off_clock(Arc::clone(&slot.turns).acquire_owned()).await;
        let turn = turn.map_err(|_| Error::internal("a page process without turns"))?;
        let core = self.pool.cores.acquire_core(
            self.tenant.as_ref(),
            self.cpu_queue_position,
            &self.spent,
        );
        let core = wait_off_clock(core).await;
        let limits = &self.pool.setup().limits;
        let left = limits.document_time.saturating_sub(self.time_spent());
        if left.is_zero() {
            return Err(self.over_time_error());
        }
        let answer = slot.process.send_request(request, body);
        let (tell, told) = oneshot::channel();
        let asked = RunningRequest {
            process: Arc::clone(&slot.process),
            document: self.number,
            limit: limits.page_time.min(left) + STOP_GRACE,
            spent: Arc::clone(&self.spent),
            core,
            _turn: turn,
        };
        tokio::spawn(asked.await_answer(answer, tell));
        Ok(work_on_clock(told).await.ok().and_then(Result::ok))
    }

    fn time_spent(&self) -> Duration {
        Duration::from_millis(self.spent.load(Ordering::Relaxed))
    }

    fn over_time_error(&self) -> DocumentReadError {
        let limits = &self.pool.setup().limits;
        let detail = if self.time_spent() >= limits.document_time {
            let limit = humantime::format_duration(limits.document_time);
            format!("its pages took longer than {limit} together")
        } else {
            format!("a page took longer than {}", humantime::format_duration(limits.page_time))
        };
        DocumentReadError::refused(OutcomeReason::Timeout, detail)
    }
}

/// Turns replies that are no success into errors; `None` for one that no page process would give.
fn success_or_refusal(answer: DocumentAnswer) -> Result<Option<DocumentAnswer>, DocumentReadError> {
    match answer {
        DocumentAnswer::Refused { reason, detail } if answer_check::is_refusal(reason, &detail) => {
            Err(DocumentReadError::Refused { reason, detail })
        }
        DocumentAnswer::Failed { passing, context } if answer_check::is_remark(&context) => {
            let fault = if passing { Fault::Transient } else { Fault::Internal };
            Err(Error::new(fault, context).into())
        }
        DocumentAnswer::Refused { .. } | DocumentAnswer::Failed { .. } => Ok(None),
        answer => Ok(Some(answer)),
    }
}

/// A request that was sent to a page process, and the core that it occupies until it is answered,
/// whether or not the answer is still wanted.
struct RunningRequest {
    process: Arc<PageProcess>,
    document: u64,
    limit: Duration,
    spent: Arc<AtomicU64>,
    core: CorePermit,
    _turn: OwnedSemaphorePermit,
}

impl RunningRequest {
    /// Waits for the reply and passes it on; kills the page process if it takes too long.
    async fn await_answer(
        mut self,
        mut answer: oneshot::Receiver<ProcessAnswer>,
        mut tell: oneshot::Sender<ProcessAnswer>,
    ) {
        let (start, before) = (Instant::now(), self.process.cpu_time());
        let over_time = tokio::time::sleep(self.limit);
        tokio::pin!(over_time);
        let mut is_wanted = true;
        let answered = loop {
            // The reply is lost only if the runtime itself shuts down.
            let farewell = tokio::time::sleep(ABANDONED_GRACE);
            tokio::select! {
                answered = &mut answer => break answered.unwrap_or(Err(ProcessExit::Unwanted)),
                () = &mut over_time, if self.process.exit_reason().is_none() => {
                    let document = self.document;
                    if self.time_had_core(start, before) < self.limit {
                        self.process.kill(ProcessExit::Starved { document });
                    } else {
                        self.process.kill(ProcessExit::OverTime { document });
                        self.core.note_over_time();
                    }
                }
                () = tell.closed(), if is_wanted => is_wanted = false,
                () = farewell, if !is_wanted && self.process.exit_reason().is_none() => {
                    if self.process.is_empty() {
                        self.process.kill(ProcessExit::Unwanted);
                    }
                }
            }
        };
        let (elapsed, worked) = (start.elapsed(), self.time_had_core(start, before));
        let spent = u64::try_from(worked.as_millis()).unwrap_or(u64::MAX);
        self.spent.fetch_add(spent, Ordering::Relaxed);
        let answered = answered.map(|(answer, body)| match answer {
            DocumentAnswer::Refused { reason: OutcomeReason::Timeout, .. } if worked < elapsed => {
                (DocumentAnswer::Failed { passing: true, context: STARVED.to_owned() }, body)
            }
            answer => (answer, body),
        });
        // No receiver is left if the document was dropped.
        drop(tell.send(answered));
    }

    /// The time since `start`; the CPU time instead, if the process got too little of it.
    fn time_had_core(&self, start: Instant, before: Option<Duration>) -> Duration {
        let elapsed = start.elapsed();
        let used = self.process.cpu_time().zip(before);
        let used = used.map(|(now, before)| now.saturating_sub(before));
        let is_starved =
            |used: &Duration| elapsed >= MIN_JUDGED_TIME && *used < elapsed.mul_f64(MIN_CORE_SHARE);
        used.filter(is_starved).unwrap_or(elapsed)
    }
}
