//! Pages of originals drawn for people who look at them beside what was read.
//!
//! A picture is drawn when it is asked for, in a page process that is confined as those of workers
//! are, and from the original as it lies in the store: if that has other bytes now, there is no
//! picture, because the places that values were read from would be those of another document. It
//! shows what the page shows, in its colours, turned and straightened as it was read, so that boxes of the
//! transcript lie where they belong. Nothing is stored; what was drawn last is remembered.
//!
//! Not promised: pictures of documents whose original is gone, or whose password came with the
//! document: operators may give such a password, and not read it.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lru::LruCache;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::tenant_shares::{TakenShare, TenantShares};
use docmill_core::config::StoreConfig;
use docmill_core::fault::{Error, Fault};
use docmill_core::model::{ImageEncoding, OutcomeReason, PictureFit};
use docmill_documents::sandbox::{DocumentOpening, DocumentReadError, OpenDocument, ProcessPool};
use docmill_storage::known_content::get_known_content;
use docmill_storage::{GetResult, ObjectStore};

/// A page of A4 with some 170 dots per inch: small print can be read, enlarged as well.
const FIT: PictureFit = PictureFit { longest_side: 2000, pixels: 4_000_000, quarter_turns: 0 };
/// Pages that are drawn at the same time: each has its original in memory meanwhile.
const DRAWING_PLACES: usize = 2;
/// How long a request waits for a place: a browser asks for several pages at once.
const PLACE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a request, below that of its connection.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout of opening and drawing a page, on a busy machine too. A drawing continues for the next
/// request if its first one timed out.
const DRAWING_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a page that could not be drawn is not tried again.
const REFUSAL_LIFETIME: Duration = Duration::from_secs(60);
/// Bytes of pictures that are remembered, and how many at most; of refusals as many.
const CACHE_BYTES: usize = 48 << 20;
const CACHE_ENTRIES: NonZeroUsize = NonZeroUsize::new(512).unwrap();

/// A page of an original.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OriginalPage {
    /// Where the original lies.
    pub file_path: String,
    /// SHA-256 of the bytes that were read, in hex.
    pub sha256: String,
    /// Whose it is: a picture that one tenant's password opened is not another's.
    pub tenant: Option<String>,
    /// Number of the page, starting at 1.
    pub number: u32,
    /// Whether it was read from a repaired picture.
    pub repaired: bool,
}

/// A page as a picture.
#[derive(Debug, Clone)]
pub struct DrawnPage {
    /// How it is encoded.
    pub encoding: ImageEncoding,
    /// The file's bytes.
    pub bytes: Bytes,
}

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PageDrawingError {
    /// All drawing slots are busy, or drawing timed out.
    #[error("too many pages are being drawn at once")]
    Busy,
    /// The document has no such page.
    #[error("the document has no such page")]
    NoSuchPage,
    /// The original cannot be shown, now and later; why, for people.
    #[error("{0}")]
    NotShown(String),
    /// Something else went wrong.
    #[error(transparent)]
    Fault(#[from] Error),
}

/// The right to draw one page.
pub struct DrawingPlace {
    _share: TakenShare,
}

/// Draws pages, a few at a time.
pub struct PageDrawer {
    store: Arc<dyn ObjectStore>,
    config: StoreConfig,
    /// Larger originals are not opened, in bytes.
    largest: u64,
    processes: Arc<ProcessPool>,
    places: TenantShares,
    remembered: Mutex<PictureMemory>,
    /// Notified whenever a drawing ends.
    ended: Notify,
}

struct PictureMemory {
    pictures: LruCache<OriginalPage, DrawnPage>,
    bytes: usize,
    /// Why a page could not be drawn, and when.
    refused: LruCache<OriginalPage, (Instant, String)>,
    /// Drawings whose request has timed out, with their deadlines.
    going: LruCache<OriginalPage, Instant>,
}

impl PictureMemory {
    fn new() -> Self {
        Self {
            pictures: LruCache::new(CACHE_ENTRIES),
            bytes: 0,
            refused: LruCache::new(CACHE_ENTRIES),
            going: LruCache::new(CACHE_ENTRIES),
        }
    }

    /// Facts already recorded about a page.
    fn recall(&mut self, page: &OriginalPage) -> Option<Result<DrawnPage, PageDrawingError>> {
        if let Some(drawn) = self.pictures.get(page) {
            return Some(Ok(drawn.clone()));
        }
        let (since, why) = self.refused.get(page)?;
        (since.elapsed() < REFUSAL_LIFETIME).then(|| Err(PageDrawingError::NotShown(why.clone())))
    }

    fn refuse(&mut self, page: OriginalPage, why: String) {
        self.refused.put(page, (Instant::now(), why));
    }

    /// Keeps the result of a drawing.
    fn remember(&mut self, page: OriginalPage, drawn: &Result<DrawnPage, PageDrawingError>) {
        self.going.pop(&page);
        match drawn {
            Ok(drawn) => self.keep(page, drawn.clone()),
            Err(PageDrawingError::NotShown(why)) => self.refuse(page, why.clone()),
            Err(_) => {}
        }
    }

    /// The facts about a page, and whether it is being drawn for an earlier request.
    fn look_up(
        &mut self,
        page: &OriginalPage,
    ) -> (Option<Result<DrawnPage, PageDrawingError>>, bool) {
        let is_going = self.going.get(page).is_some_and(|until| Instant::now() < *until);
        (self.recall(page), is_going)
    }

    fn keep(&mut self, page: OriginalPage, drawn: DrawnPage) {
        self.bytes += drawn.bytes.len();
        let pushed_out = self.pictures.push(page, drawn);
        self.bytes -= pushed_out.map_or(0, |(_, old)| old.bytes.len());
        while self.bytes > CACHE_BYTES {
            let Some((_, old)) = self.pictures.pop_lru() else { break };
            self.bytes -= old.bytes.len();
        }
    }
}

impl PageDrawer {
    /// Draws pages of originals in `store`, up to `largest` bytes, in these page processes; what is
    /// encrypted is opened with the passwords of the configuration.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        config: StoreConfig,
        largest: u64,
        processes: Arc<ProcessPool>,
    ) -> Self {
        let (places, remembered) =
            (TenantShares::new(DRAWING_PLACES), Mutex::new(PictureMemory::new()));
        Self { store, config, largest, processes, places, remembered, ended: Notify::new() }
    }

    /// Waits for a drawing place; `tenant` is the visitor's tenant, if it is limited to one.
    ///
    /// # Errors
    /// No place became free in time.
    pub async fn wait_for_place(
        &self,
        tenant: Option<&str>,
    ) -> Result<DrawingPlace, PageDrawingError> {
        let share = self.places.wait_for_one(tenant, PLACE_TIMEOUT).await;
        share.map(|share| DrawingPlace { _share: share }).ok_or(PageDrawingError::Busy)
    }

    /// The picture of a page. The drawing ends with its request, unless it takes too long for that.
    ///
    /// # Errors
    /// There is no such page or no picture of it, now or at all; the original is gone or has changed;
    /// the store or a page process fails.
    pub async fn draw_page(
        self: &Arc<Self>,
        place: DrawingPlace,
        page: OriginalPage,
    ) -> Result<DrawnPage, PageDrawingError> {
        let (known, is_going) = self.remembered.lock().look_up(&page);
        if let Some(known) = known {
            return known;
        }
        if is_going {
            // Its drawing holds a slot already.
            drop(place);
            return self.await_drawing(&page).await;
        }
        let bytes = self.fetch_original(&page).await?;
        let until = Instant::now() + DRAWING_TIMEOUT;
        let drawing = Arc::clone(self).draw_and_remember(place, bytes, page.clone());
        let mut drawing = AbortOnDropHandle::new(tokio::spawn(drawing));
        match timeout(ANSWER_TIMEOUT, &mut drawing).await {
            Ok(drawn) => drawn.unwrap_or_else(|_panicked| {
                Err(Error::internal("drawing a page ended without an answer").into())
            }),
            Err(_) => {
                self.remembered.lock().going.put(page, until);
                drop(drawing.detach());
                Err(PageDrawingError::Busy)
            }
        }
    }

    /// The result of a drawing started by an earlier request.
    async fn await_drawing(&self, page: &OriginalPage) -> Result<DrawnPage, PageDrawingError> {
        let until = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let ended = self.ended.notified();
            let (known, is_going) = self.remembered.lock().look_up(page);
            if let Some(known) = known {
                return known;
            }
            if !is_going || timeout_at(until, ended).await.is_err() {
                return Err(PageDrawingError::Busy);
            }
        }
    }

    async fn draw_and_remember(
        self: Arc<Self>,
        _place: DrawingPlace,
        bytes: Bytes,
        page: OriginalPage,
    ) -> Result<DrawnPage, PageDrawingError> {
        let drawn = timeout(DRAWING_TIMEOUT, self.draw_original(bytes, &page)).await;
        let drawn = drawn.unwrap_or_else(|_| {
            let text = "The page takes longer to be drawn than anybody waits.";
            Err(PageDrawingError::NotShown(text.to_owned()))
        });
        self.remembered.lock().remember(page, &drawn);
        self.ended.notify_waiters();
        drawn
    }

    async fn draw_original(
        &self,
        bytes: Bytes,
        page: &OriginalPage,
    ) -> Result<DrawnPage, PageDrawingError> {
        let document = self.open_original(bytes, page).await?;
        if page.number == 0 || page.number > document.page_count() {
            return Err(PageDrawingError::NoSuchPage);
        }
        let drawn = document.paint_page(page.number - 1, page.repaired, FIT).await;
        let Some(image) = drawn.map_err(explain_refusal)? else {
            return Err(PageDrawingError::NotShown("The page has no picture.".to_owned()));
        };
        Ok(DrawnPage { encoding: image.header.encoding, bytes: image.bytes.into() })
    }

    async fn fetch_original(&self, page: &OriginalPage) -> Result<Bytes, PageDrawingError> {
        let OriginalPage { file_path, sha256, .. } = page;
        let found = get_known_content(self.store.as_ref(), file_path, sha256, self.largest).await;
        let why = match found {
            Ok(GetResult::Found(object)) => return Ok(object.bytes),
            Ok(GetResult::Missing) => "The original is no longer where it was.",
            Ok(GetResult::Changed) => {
                "Where the original was lies another file now: its pages would not be those that \
                 were read."
            }
            Ok(GetResult::TooLarge { .. }) => "The original is larger than limits.document_bytes.",
            Err(error) if error.fault == Fault::Rejected => {
                "The original lies where the store cannot read it."
            }
            Err(error) => return Err(error.into()),
        };
        Err(PageDrawingError::NotShown(why.to_owned()))
    }

    async fn open_original(
        &self,
        bytes: Bytes,
        page: &OriginalPage,
    ) -> Result<OpenDocument, PageDrawingError> {
        let tenant = page.tenant.as_deref();
        let passwords: Vec<_> = self.config.passwords_for(tenant).collect();
        let how = DocumentOpening { tenant, passwords: &passwords, ..DocumentOpening::default() };
        self.processes.open_tenant_document(bytes, how).await.map_err(explain_refusal)
    }
}

fn explain_refusal(error: DocumentReadError) -> PageDrawingError {
    match error {
        DocumentReadError::Refused { reason: OutcomeReason::Encrypted, .. } => {
            let text = "The original is encrypted, and none of store.passwords opens it.";
            PageDrawingError::NotShown(text.to_owned())
        }
        DocumentReadError::Refused { reason, detail } => PageDrawingError::NotShown(format!(
            "The original cannot be drawn ({}): {detail}.",
            reason.code()
        )),
        DocumentReadError::Fault(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u32) -> OriginalPage {
        let (file_path, sha256, tenant) = ("a".to_owned(), "b".to_owned(), None);
        OriginalPage { file_path, sha256, tenant, number, repaired: false }
    }

    fn picture(bytes: usize) -> DrawnPage {
        DrawnPage { encoding: ImageEncoding::Png, bytes: vec![0; bytes].into() }
    }

    #[test]
    fn no_more_bytes_of_pictures_are_remembered_than_there_is_room_for() {
        let mut memory = PictureMemory::new();
        let third = CACHE_BYTES / 3;
        for number in 1..=3 {
            memory.keep(page(number), picture(third));
        }
        assert!(memory.pictures.get(&page(1)).is_some(), "there is room for three");
        memory.keep(page(4), picture(third));
        let kept = [1, 2, 3, 4].map(|number| memory.pictures.peek(&page(number)).is_some());
        assert_eq!(kept, [true, false, true, true], "what nobody asked for goes first");
        memory.keep(page(4), picture(7));
        assert_eq!(memory.bytes, 2 * third + 7, "the same page counts once");
        memory.keep(page(5), picture(CACHE_BYTES + 1));
        assert_eq!(
            (memory.pictures.len(), memory.bytes),
            (0, 0),
            "one that is too large is not kept"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_could_not_be_drawn_is_tried_again_after_a_minute_and_not_before() {
        let mut memory = PictureMemory::new();
        memory.refuse(page(1), "no".to_owned());
        assert!(memory.recall(&page(2)).is_none(), "another page");
        tokio::time::advance(REFUSAL_LIFETIME - Duration::from_secs(1)).await;
        let known = memory.recall(&page(1));
        assert!(matches!(&known, Some(Err(PageDrawingError::NotShown(why))) if why == "no"));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(memory.recall(&page(1)).is_none());
    }
}
