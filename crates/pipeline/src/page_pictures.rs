//! Page images for the extracting models, and the check of what these read from them.
//!
//! The original is opened again for both, because it is not kept in memory during a model call.
//! First the pages are drawn that the kind shows, sized by the model's rule. Later the regions are
//! read again that a reply names for values missing from the transcript. A confirmed value becomes
//! a line of the transcript for the gate; an unconfirmed one too, marked as read by one model only.
//! The stored transcript is unchanged.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::context::AttemptContext;
use crate::reopened::reopen_original;
use crate::step_error::{StepError, step_error};
use crate::text_budget::TextBudget;
use crate::text_work::run_on_text;
use docmill_core::model::{BoundingBox, ImageHeader, PageCrop, PageText, TextLine, Transcript};
use docmill_documents::sandbox::OpenDocument;
use docmill_extract::ShownPage;
use docmill_gate::kinds::Kind;
use docmill_gate::{self, PictureClaim, RereadClaim};
use docmill_llm::PromptPicture;
use docmill_llm::chain::ChainModel;

/// Most bytes of a picture: with Bedrock a picture has at most 3.75 MB.
const MAX_BYTES: usize = 3_750_000;
/// Most places of one reply that are read again; what is beyond stays one model's word.
const MAX_REREADS: usize = 24;
/// Some models return coordinates in thousandths of the picture, whatever the prompt requires.
const THOUSANDTHS: f64 = 1000.0;

/// The pictures of one document's pages.
pub(super) struct PagePictures<'a> {
    attempt: AttemptContext<'a>,
    transcript: Arc<Transcript>,
    /// Of the pictures that were drawn last.
    sizes: BTreeMap<u32, ImageHeader>,
    /// Room for them, given back when the model has answered.
    text_budget: TextBudget,
    /// Values that models read from pictures.
    claims: Vec<RereadClaim>,
    is_shown: bool,
    notes: Vec<String>,
}

impl<'a> PagePictures<'a> {
    /// Nothing is shown so far.
    pub(super) fn new(attempt: AttemptContext<'a>, transcript: Arc<Transcript>) -> Self {
        let text_budget = TextBudget::new(&attempt.services().budget);
        let (sizes, claims, notes) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { attempt, transcript, sizes, text_budget, claims, is_shown: false, notes }
    }

    /// The pages that the model at this place of the chain is shown.
    ///
    /// # Errors
    /// The original cannot be opened again, or was replaced; no room for it.
    pub(super) async fn draw_pages(
        &mut self,
        at: usize,
        model: &ChainModel,
        kind: &Kind,
    ) -> Result<Vec<ShownPage>, StepError> {
        let threshold = self.attempt.config().ocr.quality_threshold;
        let showing = kind.showing;
        let chosen = |stronger| showing.choose_pages(&self.transcript, threshold, stronger);
        let name = model.llm.model().to_owned();
        let Some(rule) = model.pictures else {
            let wanted = chosen(false);
            if !wanted.is_empty() {
                self.note(format!("{} not shown: {name} takes no pictures", name_pages(&wanted)));
            }
            return Ok(Vec::new());
        };
        let numbers = chosen(at > 0);
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let fit = rule.fit_within(0, showing.most_pixels);
        let opened = reopen_original(self.attempt, &self.transcript.sha256).await?;
        let mut shown = Vec::new();
        self.sizes.clear();
        let mut bytes = 0_u64;
        for number in numbers {
            let is_repaired = self.page(number).is_some_and(|page| page.repaired);
            let drawn = opened.document.draw_page(number.saturating_sub(1), is_repaired, fit).await;
            let drawn = drawn.map_err(step_error)?.filter(|image| image.bytes.len() <= MAX_BYTES);
            let Some(image) = drawn else {
                self.note(format!("page {number} not shown: it cannot be drawn"));
                continue;
            };
            bytes = bytes.saturating_add(u64::try_from(image.bytes.len()).unwrap_or(u64::MAX));
            self.text_budget.resize(bytes)?;
            self.sizes.insert(number, image.header);
            let picture = PromptPicture::new(Arc::new(image), rule).of_page(number);
            shown.push(ShownPage { number, picture });
        }
        Ok(shown)
    }

    /// Takes down which pages the model has been shown; their pictures are gone by now.
    pub(super) fn note_shown(&mut self, model: &ChainModel, shown: &[u32]) {
        // Giving back cannot fail.
        drop(self.text_budget.resize(0));
        let left_out: Vec<u32> =
            self.sizes.keys().filter(|number| !shown.contains(number)).copied().collect();
        let name = model.llm.model();
        if !left_out.is_empty() {
            let pages = name_pages(&left_out);
            self.note(format!("{pages} not shown: no room in limits.prompt_tokens"));
        }
        if !shown.is_empty() {
            self.is_shown = true;
            self.note(format!("{} shown to {name}", name_pages(shown)));
        }
    }

    /// Reads the regions again that a model named for values missing from the transcript.
    ///
    /// # Errors
    /// As [`PagePictures::draw_pages`].
    pub(super) async fn reread_claims(
        &mut self,
        claims: Vec<PictureClaim>,
    ) -> Result<(), StepError> {
        if claims.is_empty() {
            return Ok(());
        }
        let transcript = Arc::clone(&self.transcript);
        let open = run_on_text(self.attempt.services(), move || {
            docmill_gate::unprinted_claims(&transcript, claims)
        })
        .await?;
        if open.is_empty() {
            return Ok(());
        }
        let opened = reopen_original(self.attempt, &self.transcript.sha256).await?;
        for (at, claim) in open.into_iter().enumerate() {
            let reread = if at < MAX_REREADS {
                self.reread_claim(&opened.document, claim).await?
            } else {
                RereadClaim { claim, place: None, lines: Vec::new() }
            };
            self.claims.push(reread);
        }
        Ok(())
    }

    /// A region in pixels, as required, or in thousandths: whichever contains the value.
    async fn reread_claim(
        &self,
        document: &OpenDocument,
        claim: PictureClaim,
    ) -> Result<RereadClaim, StepError> {
        let unseen = |claim| RereadClaim { claim, place: None, lines: Vec::new() };
        let (Some(page), Some(size)) = (self.page(claim.page), self.sizes.get(&claim.page)) else {
            return Ok(unseen(claim));
        };
        let [left, top, right, bottom] = claim.edges;
        let units = [
            (f64::from(size.width.max(1)), f64::from(size.height.max(1))),
            (THOUSANDTHS, THOUSANDTHS),
        ];
        let crops = units.into_iter().filter_map(|(width, height)| {
            PageCrop::from_shares([left / width, top / height, right / width, bottom / height])
        });
        let mut place = None;
        for crop in crops {
            place = place.or(Some(box_of_crop(crop, page)));
            let (index, repaired) = (page.number.saturating_sub(1), page.repaired);
            let lines = document.reread_crop(index, repaired, crop).await.map_err(step_error)?;
            let lines = scale_to_page(lines, page);
            let (value, seen) = (claim.value.clone(), lines.clone());
            let services = self.attempt.services();
            if run_on_text(services, move || docmill_gate::confirms_value(&seen, &value)).await? {
                return Ok(RereadClaim { claim, place, lines });
            }
        }
        Ok(RereadClaim { claim, place, lines: Vec::new() })
    }

    /// The transcript with lines read from pictures; `None`: there are none.
    ///
    /// # Errors
    /// Rejected if that takes too long.
    pub(super) async fn seen_transcript(&self) -> Result<Option<Arc<Transcript>>, StepError> {
        if self.claims.is_empty() {
            return Ok(None);
        }
        let (transcript, claims) = (Arc::clone(&self.transcript), self.claims.clone());
        Ok(Some(Arc::new(
            run_on_text(self.attempt.services(), move || {
                docmill_gate::add_reread_lines(&transcript, &claims)
            })
            .await?,
        )))
    }

    /// Whether any model was shown a page.
    pub(super) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// The pages shown and not shown, for operators; empty: none were requested.
    pub(super) fn describe(&self) -> String {
        self.notes.join("; ")
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn page(&self, number: u32) -> Option<&PageText> {
        self.transcript.pages.iter().find(|page| page.number == number)
    }
}

/// `page 3` or `pages 1, 3`.
fn name_pages(numbers: &[u32]) -> String {
    let list: Vec<String> = numbers.iter().map(u32::to_string).collect();
    let word = if numbers.len() == 1 { "page" } else { "pages" };
    format!("{word} {}", list.join(", "))
}

fn box_of_crop(crop: PageCrop, page: &PageText) -> BoundingBox {
    let [left, top, right, bottom] = [crop.left, crop.top, crop.right, crop.bottom]
        .map(|unit| f32::from(unit) / f32::from(PageCrop::WHOLE));
    let (x, y) = (left * page.width, top * page.height);
    let (right, bottom) = (right * page.width, bottom * page.height);
    BoundingBox { x, y, w: right - x, h: bottom - y }
}

/// Boxes in shares of the page as boxes in its own units.
fn scale_to_page(mut lines: Vec<TextLine>, page: &PageText) -> Vec<TextLine> {
    for word in lines.iter_mut().flat_map(|line| &mut line.words) {
        let BoundingBox { x, y, w, h } = word.bounding_box;
        let (width, height) = (page.width, page.height);
        word.bounding_box =
            BoundingBox { x: x * width, y: y * height, w: w * width, h: h * height };
    }
    lines
}
