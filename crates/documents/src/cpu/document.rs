//! A document that is being read in a cell, whichever cell that is at the moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Mutex, OwnedSemaphorePermit, oneshot};

use super::Cells;
use super::cell::{Answered, Cell};
use super::end::{End, Verdict};
use super::place::Seat;
use super::wire::{Answer, Request};
use crate::fault::{Error, Fault};
use crate::model::{EinvoiceLook, PageRead, PageShown, Reason, View};

/// Beyond its time a page has this long to notice by itself: then nothing has to be killed.
const NOTICE: Duration = Duration::from_secs(2);
/// How long a page that nobody wants any more may go on in a cell that nobody else needs.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// It is to blame itself, and trying again gives the same answer.
    #[error("{}: {detail}", reason.code())]
    Refused {
        /// The code for the row.
        reason: Reason,
        /// Counts and limits; never document content.
        detail: String,
    },
    /// Something else went wrong; its fault says how to react.
    #[error(transparent)]
    Fault(#[from] Error),
}

impl WorkError {
    fn refused(reason: Reason, detail: impl Into<String>) -> Self {
        Self::Refused { reason, detail: detail.into() }
    }
}

/// An open document. Dropping it closes it.
pub struct OpenDocument {
    cells: Arc<Cells>,
    bytes: Bytes,
    number: u64,
    pages: u32,
    /// Milliseconds of work on it so far.
    spent: Arc<AtomicU64>,
    place: Mutex<Place>,
}

#[derive(Default)]
struct Place {
    seat: Option<Arc<Seat>>,
    /// Under suspicion.
    alone: bool,
    /// What a cell's end said about it.
    judged: Option<Verdict>,
}

impl Cells {
    /// Opens a document: recognises it, holds it against the limits and counts its pages. `alone`:
    /// in a cell of its own.
    ///
    /// # Errors
    /// The document is refused; cells cannot be started.
    pub async fn open(
        self: &Arc<Self>,
        bytes: Bytes,
        alone: bool,
    ) -> Result<OpenDocument, WorkError> {
        let mut document = OpenDocument {
            cells: Arc::clone(self),
            bytes,
            number: self.next_number(),
            pages: 0,
            spent: Arc::default(),
            place: Mutex::new(Place { alone, ..Place::default() }),
        };
        let mut place = std::mem::take(document.place.get_mut());
        let seated = document.sit_down(&mut place).await;
        document.place = Mutex::new(place);
        document.pages = seated?;
        Ok(document)
    }
}

impl OpenDocument {
    /// Number of its pages, at least 1.
    pub fn page_count(&self) -> u32 {
        self.pages
    }

    /// Reads page `index`, which starts at 0. Several pages may be asked for at the same time.
    ///
    /// # Errors
    /// The document is refused; what reads it fails.
    pub async fn read(&self, index: u32) -> Result<PageRead, WorkError> {
        let request = Request::Read { document: self.number, index };
        self.insist(request, |answer, body| {
            answer.into_page(body).filter(|read| read.page.number == index + 1)
        })
        .await
    }

    /// Shows page `index`, which starts at 0, to whoever reads it elsewhere. Several pages may be
    /// asked for at the same time.
    ///
    /// # Errors
    /// As [`OpenDocument::read`].
    pub async fn show(&self, index: u32, view: View) -> Result<PageShown, WorkError> {
        let request = Request::Show { document: self.number, index, view };
        let is_asked_for = |shown: &PageShown| match shown {
            PageShown::Text(page) => page.number == index + 1,
            PageShown::Picture(picture) => picture.facts.number == index + 1,
            PageShown::Unaltered => view == View::Repaired,
        };
        self.insist(request, |answer, body| answer.into_shown(body).filter(is_asked_for)).await
    }

    /// Looks for e-invoices in it.
    ///
    /// # Errors
    /// As [`OpenDocument::read`].
    pub async fn einvoices(&self) -> Result<EinvoiceLook, WorkError> {
        let request = Request::Look { document: self.number };
        self.insist(request, |answer, body| answer.into_look(&body)).await
    }

    /// Asks until a cell lives long enough to answer. `parse` gives `None` for an answer to
    /// another question, which ends the cell.
    async fn insist<T>(
        &self,
        request: Request,
        parse: impl Fn(Answer, Vec<u8>) -> Option<T>,
    ) -> Result<T, WorkError> {
        loop {
            let seat = self.seat().await?;
            let Some((answer, body)) = self.ask(&seat, request, Bytes::new()).await? else {
                continue;
            };
            match parse(refusal(answer)?, body) {
                Some(parsed) => return Ok(parsed),
                None => seat.cell.kill(End::Nonsense),
            }
        }
    }

    /// Where it sits, after sitting down again if its cell has ended.
    async fn seat(&self) -> Result<Arc<Seat>, WorkError> {
        let mut place = self.place.lock().await;
        if let Some(seat) = place.seat.as_ref().filter(|seat| seat.cell.end().is_none()) {
            return Ok(Arc::clone(seat));
        }
        self.sit_down(&mut place).await?;
        place.seat.clone().ok_or_else(|| Error::internal("a document without a place").into())
    }

    /// Finds a place and opens the document there; its number of pages.
    async fn sit_down(&self, place: &mut Place) -> Result<u32, WorkError> {
        loop {
            self.judge(place)?;
            let seat = Arc::new(self.cells.seat(self.number, place.alone).await?);
            let request = Request::Open { document: self.number };
            let answer = self.ask(&seat, request, self.bytes.clone()).await?;
            let opened = answer.map(|(answer, _)| refusal(answer)).transpose()?;
            if opened.is_some() && !matches!(opened, Some(Answer::Opened { pages: 1.. })) {
                seat.cell.kill(End::Nonsense);
            }
            place.seat = Some(seat);
            if let Some(Answer::Opened { pages: pages @ 1.. }) = opened {
                return Ok(pages);
            }
        }
    }

    /// Draws the conclusion from the end of its cell, if that has ended.
    fn judge(&self, place: &mut Place) -> Result<(), WorkError> {
        if let Some(seat) = place.seat.take()
            && let Some(end) = seat.cell.end()
        {
            match end.verdict(self.number, seat.is_alone()) {
                Verdict::Again => {}
                Verdict::Suspect => place.alone = true,
                verdict => place.judged = Some(verdict),
            }
        }
        match place.judged {
            None | Some(Verdict::Again | Verdict::Suspect) => Ok(()),
            Some(Verdict::OverTime) => Err(self.over_time()),
            Some(Verdict::Refused(reason, detail)) => Err(WorkError::refused(reason, detail)),
            Some(Verdict::Failed { passing }) => {
                let fault = if passing { Fault::Transient } else { Fault::Internal };
                Err(Error::new(fault, "the document's page process was ended").into())
            }
        }
    }

    /// Waits for a core and asks; `None` if the cell ended instead of answering.
    async fn ask(
        &self,
        seat: &Arc<Seat>,
        request: Request,
        body: Bytes,
    ) -> Result<Option<(Answer, Vec<u8>)>, WorkError> {
        let core = Arc::clone(&self.cells.cores).acquire_owned().await;
        let core = core.map_err(|_| Error::internal("there are no cores any more"))?;
        let limits = &self.cells.setup().limits;
        let left = limits.document_time.saturating_sub(self.spent());
        if left.is_zero() {
            return Err(self.over_time());
        }
        let answer = seat.cell.ask(request, body);
        let (tell, told) = oneshot::channel();
        let asked = Asked {
            cell: Arc::clone(&seat.cell),
            document: self.number,
            limit: limits.page_time.min(left) + NOTICE,
            spent: Arc::clone(&self.spent),
            _core: core,
        };
        tokio::spawn(asked.attend(answer, tell));
        Ok(told.await.ok().and_then(Result::ok))
    }

    fn spent(&self) -> Duration {
        Duration::from_millis(self.spent.load(Ordering::Relaxed))
    }

    fn over_time(&self) -> WorkError {
        let limits = &self.cells.setup().limits;
        let detail = if self.spent() >= limits.document_time {
            let limit = humantime::format_duration(limits.document_time);
            format!("its pages took longer than {limit} together")
        } else {
            format!("a page took longer than {}", humantime::format_duration(limits.page_time))
        };
        WorkError::refused(Reason::Timeout, detail)
    }
}

/// Turns the answers that are no success into errors.
fn refusal(answer: Answer) -> Result<Answer, WorkError> {
    match answer {
        Answer::Refused { reason, detail } => Err(WorkError::Refused { reason, detail }),
        Answer::Failed { passing: true, context } => Err(Error::transient(context).into()),
        Answer::Failed { passing: false, context } => Err(Error::internal(context).into()),
        answer => Ok(answer),
    }
}

/// A question that was put to a cell, and the core that works on it until it is answered, whether
/// or not anybody still wants the answer.
struct Asked {
    cell: Arc<Cell>,
    document: u64,
    limit: Duration,
    spent: Arc<AtomicU64>,
    _core: OwnedSemaphorePermit,
}

impl Asked {
    /// Waits for the answer and passes it on; kills the cell over time.
    async fn attend(
        self,
        mut answer: oneshot::Receiver<Answered>,
        mut tell: oneshot::Sender<Answered>,
    ) {
        let start = Instant::now();
        let over_time = tokio::time::sleep(self.limit);
        tokio::pin!(over_time);
        let mut is_wanted = true;
        let answered = loop {
            // Gone without an answer only together with the runtime.
            let farewell = tokio::time::sleep(FAREWELL);
            tokio::select! {
                answered = &mut answer => break answered.unwrap_or(Err(End::Unwanted)),
                () = &mut over_time, if self.cell.end().is_none() => {
                    self.cell.kill(End::OverTime { document: self.document });
                }
                () = tell.closed(), if is_wanted => is_wanted = false,
                () = farewell, if !is_wanted && self.cell.end().is_none() => {
                    if self.cell.is_empty() {
                        self.cell.kill(End::Unwanted);
                    }
                }
            }
        };
        let spent = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.spent.fetch_add(spent, Ordering::Relaxed);
        // Nobody wants it any more if the document was dropped.
        drop(tell.send(answered));
    }
}
