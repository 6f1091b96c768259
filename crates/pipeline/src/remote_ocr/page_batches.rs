//! Groups pages into batches, one call each.
//!
//! The bytes of a batch are reserved before its first picture is drawn, from one budget of the
//! process, and released when the batch has been read.

use std::collections::VecDeque;

use futures::stream::{self, Stream, StreamExt, TryStreamExt};

use crate::byte_budget::{ByteBudget, ReservedBytes};
use crate::step_error::{StepError, step_error};
use docmill_core::config::ByteSize;
use docmill_core::model::{PagePicture, PageText, PageViewMode, PageViewResult, PictureFit};
use docmill_documents::ocr::ProviderCallLimits;
use docmill_documents::sandbox::{DocumentReadError, OpenDocument};

/// A picture is there up to three times while it is sent: by itself, in the PDF, and as base64.
const COPIES: u64 = 3;
/// Bytes that the picture of a page is expected to have: an A4 page at 300 dpi has less.
const USUAL_PICTURE: u64 = 1 << 20;

/// Bytes of pictures that may be on their way to providers at the same time.
#[derive(Debug, Clone)]
pub struct ImageByteBudget(ByteBudget);

impl ImageByteBudget {
    /// A budget of `bytes`, rounded down to 4 KiB.
    pub fn new(bytes: ByteSize) -> Self {
        Self(ByteBudget::new(bytes))
    }

    /// Waits for the bytes of `pages` usual pictures, reserves them, and returns how many bytes of
    /// pictures fit. The caller must hold no reservation.
    async fn reserve_bytes(&self, pages: usize) -> Result<(ReservedBytes, usize), StepError> {
        let pages = u64::try_from(pages).unwrap_or(u64::MAX);
        let wanted = pages.saturating_mul(USUAL_PICTURE * COPIES).min(self.0.total());
        let taken = self.0.take(wanted).await?;
        Ok((taken, usize::try_from(wanted / COPIES).unwrap_or(usize::MAX)))
    }
}

/// Pictures for one call, and the bytes reserved for them.
pub(super) struct PageBatch {
    pub(super) pictures: Vec<PagePicture>,
    _reserved: ReservedBytes,
}

/// The next pages of a document, sorted by what is to be done with them.
pub(super) struct DrawnPages {
    /// Pages that need no reading.
    pub(super) known: Vec<PageText>,
    /// The others, if there are any.
    pub(super) slice: Option<PageBatch>,
    /// Numbers of pages and bytes of pictures that no call can carry.
    pub(super) too_large: Vec<(u32, usize)>,
    /// No page comes after these.
    pub(super) is_last: bool,
}

/// Which picture of a page is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum PictureRequest {
    /// Its own, or the repaired one.
    View(PageViewMode),
    /// The one that is read here as well, sized for the provider.
    WithLocalReading(PictureFit),
}

impl PictureRequest {
    async fn draw(
        self,
        document: &OpenDocument,
        number: u32,
    ) -> Result<PageViewResult, DocumentReadError> {
        let index = number.saturating_sub(1);
        match self {
            Self::View(view) => document.show_page(index, view).await,
            Self::WithLocalReading(fit) => document.read_locally(index, fit).await,
        }
    }
}

/// Draws pages for calls.
#[derive(Clone, Copy)]
pub(super) struct PageBatcher<'a> {
    pub(super) document: &'a OpenDocument,
    pub(super) wanted: PictureRequest,
    pub(super) reach: ProviderCallLimits,
    /// Pages that are drawn at the same time.
    pub(super) at_once: usize,
    pub(super) image_budget: &'a ImageByteBudget,
}

impl<'a> PageBatcher<'a> {
    /// The pages of these numbers, in batches, drawn on demand.
    ///
    /// Pages that are also read locally take seconds each, so several are in progress, and they
    /// come in the order of completion: a drawn page never waits for one that waits for memory.
    pub(super) fn stream_batches(
        self,
        numbers: Vec<u32>,
    ) -> impl Stream<Item = Result<DrawnPages, StepError>> + 'a {
        if matches!(self.wanted, PictureRequest::WithLocalReading(_)) {
            return stream::iter(numbers)
                .map(move |number| async move {
                    let batch = self.fill(&mut VecDeque::from([number])).await?;
                    Ok(DrawnPages { is_last: false, ..batch })
                })
                .buffer_unordered(self.at_once)
                .left_stream();
        }
        let batches =
            stream::try_unfold((self, VecDeque::from(numbers)), |(filler, mut open)| async move {
                if open.is_empty() {
                    return Ok(None);
                }
                let batch = filler.fill(&mut open).await?;
                Ok(Some((batch, (filler, open))))
            });
        batches.right_stream()
    }

    async fn fill(&self, open: &mut VecDeque<u32>) -> Result<DrawnPages, StepError> {
        let most = self.reach.pages.min(open.len());
        let (image_budget, bytes) = self.image_budget.reserve_bytes(most).await?;
        let mut filling =
            BatchBuilder { most: bytes.min(self.reach.bytes), ..BatchBuilder::default() };
        while filling.pictures.len() < self.reach.pages && !open.is_empty() && !filling.is_full {
            let places = (self.reach.pages - filling.pictures.len()).min(open.len());
            let next: Vec<u32> = open.drain(..places).collect();
            let mut drawn = stream::iter(next.iter().copied())
                .map(|number| self.wanted.draw(self.document, number))
                .buffered(self.at_once);
            let mut done = 0;
            while let Some(shown) = drawn.try_next().await.map_err(step_error)? {
                if !filling.try_add(shown, self.reach) {
                    break;
                }
                done += 1;
            }
            drop(drawn);
            // Pages that did not fit are drawn again for the next call.
            for number in next.into_iter().skip(done).rev() {
                open.push_front(number);
            }
        }
        let BatchBuilder { known, pictures, too_large, .. } = filling;
        let slice =
            (!pictures.is_empty()).then_some(PageBatch { pictures, _reserved: image_budget });
        Ok(DrawnPages { known, slice, too_large, is_last: open.is_empty() })
    }
}

#[derive(Default)]
struct BatchBuilder {
    known: Vec<PageText>,
    pictures: Vec<PagePicture>,
    too_large: Vec<(u32, usize)>,
    bytes: usize,
    most: usize,
    is_full: bool,
}

impl BatchBuilder {
    /// Adds a page, unless it does not fit any more. One that is alone always fits.
    fn try_add(&mut self, shown: PageViewResult, reach: ProviderCallLimits) -> bool {
        let picture = match shown {
            PageViewResult::Text(page) => {
                self.known.push(*page);
                return true;
            }
            PageViewResult::Unaltered => return true,
            PageViewResult::Picture(picture) => *picture,
        };
        let size = picture.image.bytes.len();
        // The local reading is held until the call ends.
        let repaired = picture.local_reading.as_ref().and_then(|read| read.repaired.as_ref());
        let held = size + repaired.map_or(0, |image| image.bytes.len());
        if size > reach.bytes {
            self.too_large.push((picture.facts.number, size));
            return true;
        }
        if self.bytes.saturating_add(held) > self.most && !self.pictures.is_empty() {
            self.is_full = true;
            return false;
        }
        self.bytes += held;
        self.pictures.push(picture);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::model::{EncodedImage, ImageEncoding, ImageHeader, PictureFacts, TextMap};

    fn shown(number: u32, bytes: usize) -> PageViewResult {
        let facts = PictureFacts {
            number,
            repaired: false,
            score: 1.0,
            defects: Vec::new(),
            text: TextMap::default(),
            layer: None,
            cut: false,
            codes: Vec::new(),
        };
        let (encoding, bytes) = (ImageEncoding::Png, vec![0; bytes]);
        let image =
            EncodedImage { header: ImageHeader { width: 1, height: 1, dpi: 100, encoding }, bytes };
        PageViewResult::Picture(Box::new(PagePicture { facts, image, local_reading: None }))
    }

    #[test]
    fn a_slice_ends_before_the_picture_that_is_too_much_and_one_alone_always_fits() {
        let reach = ProviderCallLimits { pages: 15, bytes: 1000 };
        let mut filling = BatchBuilder { most: 500, ..BatchBuilder::default() };
        assert!(filling.try_add(shown(1, 800), reach), "alone, though over its share of the room");
        assert!(!filling.try_add(shown(2, 1), reach) && filling.is_full);
        let mut filling = BatchBuilder { most: 500, ..BatchBuilder::default() };
        assert!(filling.try_add(shown(1, 300), reach) && filling.try_add(shown(2, 200), reach));
        assert!(!filling.try_add(shown(3, 1), reach));
        let mut filling = BatchBuilder { most: 500, ..BatchBuilder::default() };
        assert!(filling.try_add(shown(1, 1001), reach), "no call can carry it");
        assert_eq!((filling.too_large, filling.pictures.len()), (vec![(1, 1001)], 0));
    }

    #[tokio::test]
    async fn room_is_waited_for_and_never_more_is_asked_for_than_there_is() {
        let image_budget = ImageByteBudget::new(ByteSize::from_mib(64));
        let (one, bytes) = image_budget.reserve_bytes(15).await.unwrap();
        assert_eq!(bytes, 15 << 20);
        let mut waiting = Box::pin(image_budget.reserve_bytes(30));
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        drop(one);
        let (_all, bytes) = waiting.await.unwrap();
        assert_eq!(bytes, (64 << 20) / 3, "thirty pages would be more than all of it");
    }
}
