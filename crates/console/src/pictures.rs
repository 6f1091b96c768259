//! Pages as pictures, drawn when they are asked for: for the pages, and for programs.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;

use super::access::ConsoleVisitor;
use super::api_forms::{ContentTag, tagged_content};
use super::failure::ConsoleFailure;
use super::ingestion::{find_visible, read_id};
use super::openapi::BinaryContent;
use super::state::ConsoleState;
use super::transcripts::load_transcript;
use docmill_core::model::ImageEncoding;
use docmill_operations::inspect::IngestionRow;
use docmill_operations::page_drawing::{OriginalPage, PageDrawingError};

/// Of a transcript no more than how its pages were read.
#[derive(Default, Deserialize)]
struct TranscriptOutline {
    pages: Vec<PageOutline>,
}

#[derive(Deserialize)]
struct PageOutline {
    number: u32,
    #[serde(default)]
    repaired: bool,
}

impl From<PageDrawingError> for ConsoleFailure {
    fn from(error: PageDrawingError) -> Self {
        match error {
            PageDrawingError::Busy => Self::busy(),
            PageDrawingError::NoSuchPage => Self::missing(),
            PageDrawingError::NotShown(why) => Self::conflict(why),
            PageDrawingError::Fault(error) => error.into(),
        }
    }
}

/// The page as a picture in its colours, in the coordinates of its text boxes.
///
/// 409 where the original cannot be shown.
#[utoipa::path(
    get,
    path = "/ingestions/{id}/pages/{number}/picture",
    operation_id = "getPicture",
    params(
        ("id" = Uuid, Path),
        ("number" = u64, Path, minimum = 1, maximum = 4294967295u64),
    ),
    responses(
        (status = 200, description = "Done.", content(
            (inline(BinaryContent) = "image/png"),
            (inline(BinaryContent) = "image/jpeg"),
        ))
    )
)]
pub(super) async fn get_picture(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path((id, number)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let number: u32 = number.parse().map_err(|_| ConsoleFailure::missing())?;
    let row = find_visible(&state, &visitor, read_id(&id)?).await?.ingestion;
    let drawer = state.drawer().ok_or_else(|| {
        ConsoleFailure::conflict("No pictures are drawn here: see web.page_pictures.")
    })?;
    let Some(sha256) = row.sha256.clone() else {
        return Err(ConsoleFailure::conflict("The original has not been read yet."));
    };
    // The same bytes, read in the same way, give the same picture: a client that has it need not
    // wait.
    let tag = ContentTag::of_parts(&[
        &sha256,
        &number.to_string(),
        row.transcription_file_path.as_deref().unwrap_or_default(),
        row.reader.as_deref().unwrap_or_default(),
        row.tenant.as_deref().unwrap_or_default(),
        env!("CARGO_PKG_VERSION"),
    ]);
    if tag.is_known(&headers) {
        return tag.not_modified();
    }
    let place = drawer.wait_for_place(visitor.tenant.as_deref()).await?;
    let repaired = is_repaired(&state, &visitor, &row, number).await?;
    let IngestionRow { file_path, tenant, .. } = row;
    let page = OriginalPage { file_path, sha256, tenant, number, repaired };
    let drawn = drawer.draw_page(place, page).await?;
    let kind = match drawn.encoding {
        ImageEncoding::Png => "image/png",
        ImageEncoding::Jpeg => "image/jpeg",
    };
    tagged_content(&tag, kind, drawn.bytes)
}

/// Whether boxes of this page are positions on a repaired picture of it.
async fn is_repaired(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    row: &IngestionRow,
    number: u32,
) -> Result<bool, ConsoleFailure> {
    let Some(key) = &row.transcription_file_path else { return Ok(false) };
    let bytes = load_transcript(state, visitor, key).await?;
    let read = move || serde_json::from_slice::<TranscriptOutline>(&bytes).unwrap_or_default();
    #[expect(clippy::disallowed_methods, reason = "a few at once: each has a place of its own")]
    let outline = tokio::task::spawn_blocking(read).await.map_err(|_panicked| {
        tracing::error!("a transcript could not be searched for its pages");
        ConsoleFailure::from_status(StatusCode::INTERNAL_SERVER_ERROR)
    })?;
    // A transcript of the earlier system, without these facts.
    if outline.pages.is_empty() {
        return Ok(false);
    }
    let page = outline.pages.iter().find(|page| page.number == number);
    page.map(|page| page.repaired).ok_or_else(ConsoleFailure::missing)
}
