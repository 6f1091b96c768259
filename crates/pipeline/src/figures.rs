//! Figure images of a document, cut out of its pages by the page processes, for outputs beside the
//! data. A figure whose image fails remains a figure.

use bytes::Bytes;

use crate::context::PipelineServices;
use crate::step_error::{StepError, step_error};
use crate::text_budget::TextBudget;
use docmill_core::model::{BoundingBox, ImageEncoding, PageCrop, PageText, Transcript};
use docmill_documents::sandbox::{DocumentOpening, OpenDocument};
use docmill_layout::{DocumentLayout, FigureArea, PicturePaths, list_figures};

/// Maximum figures of one document that are cut out, and bytes of their images; the rest has none.
const MAX_FIGURES: usize = 256;
const MAX_BYTES: u64 = 64 << 20;

/// A figure's picture.
#[derive(Debug, Clone)]
pub struct FigurePicture {
    /// Which figure it is of.
    pub place: FigureArea,
    /// The name of its file, as BlobForge's converter names them: pages from 0, figures from 1.
    pub name: String,
    /// A grey PNG or JPEG.
    pub bytes: Bytes,
}

/// The pictures of a document's figures, and the room that they take.
pub struct CutFigures {
    /// In the order of reading.
    pub pictures: Vec<FigurePicture>,
    text_budget: TextBudget,
}

impl CutFigures {
    /// Where the pictures lie if their files are in this folder.
    pub fn paths_below(&self, folder: &str) -> PicturePaths {
        self.pictures
            .iter()
            .map(|picture: &FigurePicture| {
                let FigureArea { page, number, .. } = picture.place;
                ((page, number), format!("{folder}/{}", picture.name))
            })
            .collect()
    }
}

/// Cuts the figures of a document out of its pages, of which `bytes` are those that were read.
///
/// # Errors
/// As for opening the document; no room for the pictures; no page process.
pub async fn cut_figures(
    services: &PipelineServices,
    bytes: Bytes,
    transcript: &Transcript,
    layout: &DocumentLayout,
) -> Result<CutFigures, StepError> {
    let mut cut =
        CutFigures { pictures: Vec::new(), text_budget: TextBudget::new(&services.budget) };
    let places = list_figures(layout);
    if places.is_empty() {
        return Ok(cut);
    }
    let passwords: Vec<_> = services.config.store.passwords_for(None).collect();
    let how = DocumentOpening { passwords: &passwords, ..DocumentOpening::default() };
    let document = services.reader.open_tenant_document(bytes, how).await?;
    let mut held = 0_u64;
    for place in places.into_iter().take(MAX_FIGURES) {
        let page = transcript.pages.iter().find(|page| page.number == place.page);
        let Some(page) = page else { continue };
        let Some(picture) = cut_figure(&document, page, place).await? else { continue };
        held = held.saturating_add(u64::try_from(picture.bytes.len()).unwrap_or(u64::MAX));
        if held > MAX_BYTES {
            break;
        }
        cut.text_budget.resize(held)?;
        cut.pictures.push(picture);
    }
    Ok(cut)
}

/// `None`: its page cannot be drawn in the time that a page has, or at all.
async fn cut_figure(
    document: &OpenDocument,
    page: &PageText,
    place: FigureArea,
) -> Result<Option<FigurePicture>, StepError> {
    let Some(crop) = crop_of(place.bounding_box, page) else { return Ok(None) };
    let index = place.page.saturating_sub(1);
    let drawn = match document.cut_figure(index, page.repaired, crop).await.map_err(step_error) {
        Ok(drawn) => drawn,
        Err(StepError::Rejected { .. }) => None,
        Err(fault) => return Err(fault),
    };
    Ok(drawn.map(|image| {
        let kind = match image.header.encoding {
            ImageEncoding::Png => "png",
            ImageEncoding::Jpeg => "jpeg",
        };
        let name = format!("_page_{index}_Figure_{}.{kind}", place.number);
        FigurePicture { place, name, bytes: image.bytes.into() }
    }))
}

fn crop_of(area: BoundingBox, page: &PageText) -> Option<PageCrop> {
    let share = |length: f32, side: f32| f64::from(length) / f64::from(side);
    PageCrop::from_shares([
        share(area.x, page.width),
        share(area.y, page.height),
        share(area.right(), page.width),
        share(area.bottom(), page.height),
    ])
}
