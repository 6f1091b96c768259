//! Transcripts as they lie in the store, and what is made of them for those who ask: text, Markdown,
//! single pages, pieces for retrieval.
//!
//! What is made is made anew each time and kept nowhere, off the threads that answer others, a few
//! at a time. Only the searchable copy is made by a worker, and given out as it is stored.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::access::ConsoleVisitor;
use super::api_forms::{tagged_bytes, tagged_json};
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, QueryFields};
use super::ingestion::{find_visible, read_id};
use super::page_sheets::PageSheet;
use super::state::ConsoleState;
use docmill_core::model::{PageText, Transcript};
use docmill_layout::layout::{self, DocumentLayout, PageBlock};
use docmill_storage::store::{GetOptions, GetResult, keys};

/// Larger ones are not given out over HTTP.
const MOST_BYTES: u64 = 64 << 20;
/// Text that is shown beside a form, in characters.
const SHOWN: usize = 60_000;
/// Pages that are shown there.
const MOST_SHEETS: usize = 200;
/// Estimated tokens of a piece, if nothing else is asked for.
const USUAL_TOKENS: u32 = 512;
/// Fewest and most tokens of a piece.
pub(super) const TOKENS: (u32, u32) = (16, 8192);

/// A page with its blocks.
#[derive(Serialize)]
struct PageWithBlocks<'a> {
    #[serde(flatten)]
    page: &'a PageText,
    blocks: &'a [PageBlock],
}

/// The stored transcript, whole.
///
/// # Errors
/// It is gone or too large, or the store does not answer.
pub(super) async fn load_transcript(
    state: &ConsoleState,
    key: &str,
) -> Result<Bytes, ConsoleFailure> {
    let what = GetOptions { at_most: MOST_BYTES, if_match: None };
    match state.store().get(key, what).await? {
        GetResult::Found(object) => Ok(object.bytes),
        GetResult::TooLarge { .. } => {
            Err(ConsoleFailure::conflict("The transcript is too large to be given out here."))
        }
        GetResult::Missing | GetResult::Changed => Err(ConsoleFailure::missing()),
    }
}

/// What a stored transcript says of the searchable copy.
#[derive(Default, Deserialize)]
struct CopyMention {
    searchable: Option<CopyPlace>,
}

/// Where the copy lies, or why there is none.
#[derive(Deserialize)]
struct CopyPlace {
    path: Option<String>,
    left_out: Option<String>,
}

/// The pages with as much of their text as is shown beside a form; none if they cannot be had: the
/// form is of use without them.
pub(super) async fn load_page_sheets(state: &ConsoleState, key: &str) -> Vec<PageSheet> {
    let Ok(bytes) = load_transcript(state, key).await else { return Vec::new() };
    let Ok(transcript) = serde_json::from_slice::<Transcript>(&bytes) else { return Vec::new() };
    let mut left = SHOWN;
    let mut sheets = Vec::new();
    for page in transcript.pages.iter().take(MOST_SHEETS) {
        if left == 0 {
            break;
        }
        let text: String = page.text().chars().take(left).collect();
        left = left.saturating_sub(text.chars().count().max(1));
        sheets.push(PageSheet::new(page, text));
    }
    sheets
}

/// One page of a transcript, and how many there are.
pub(super) struct KnownPage {
    /// The page.
    pub(super) page: PageText,
    /// Pages of the document.
    pub(super) count: u32,
}

/// A page of the transcript that lies at `key`.
///
/// # Errors
/// There is no transcript or no such page; the transcript cannot be given out here.
pub(super) async fn load_known_page(
    state: &ConsoleState,
    key: Option<&str>,
    number: u32,
) -> Result<KnownPage, ConsoleFailure> {
    let Some(key) = key else { return Err(no_transcript()) };
    let bytes = load_transcript(state, key).await?;
    let place = state.rendering_place().ok_or_else(ConsoleFailure::busy)?;
    let read = move || {
        let _place = place;
        let transcript: Option<Transcript> = serde_json::from_slice(&bytes).ok();
        transcript.map(|transcript| {
            let count = u32::try_from(transcript.pages.len()).unwrap_or(u32::MAX);
            let page = transcript.pages.into_iter().find(|page| page.number == number);
            page.map(|page| KnownPage { page, count })
        })
    };
    #[expect(clippy::disallowed_methods, reason = "a few at once: each has a place of its own")]
    let found = tokio::task::spawn_blocking(read).await.map_err(|_panicked| {
        tracing::error!("a page of a transcript could not be read");
        ConsoleFailure::from_status(StatusCode::INTERNAL_SERVER_ERROR)
    })?;
    let foreign = "The transcript is one of the earlier system: its pages are not shown here.";
    let found = found.ok_or_else(|| ConsoleFailure::conflict(foreign))?;
    found.ok_or_else(ConsoleFailure::missing)
}

fn no_transcript() -> ConsoleFailure {
    ConsoleFailure::conflict("There is no transcript yet.")
}

/// The searchable copy of what this transcript is of.
async fn load_copy(state: &ConsoleState, transcript: Bytes) -> Result<Bytes, ConsoleFailure> {
    let place = state.rendering_place().ok_or_else(ConsoleFailure::busy)?;
    let parse = move || {
        let _place = place;
        serde_json::from_slice::<CopyMention>(&transcript).unwrap_or_default().searchable
    };
    #[expect(clippy::disallowed_methods, reason = "a few at once: each has a place of its own")]
    let said = tokio::task::spawn_blocking(parse).await.map_err(|_panicked| {
        tracing::error!("a transcript could not be looked into for its copy");
        ConsoleFailure::from_status(StatusCode::INTERNAL_SERVER_ERROR)
    })?;
    let key = match said {
        Some(CopyPlace { path: Some(path), .. }) if keys::is_own_artefact(&path) => path,
        Some(CopyPlace { left_out: Some(reason), .. }) => {
            let text = format!("No searchable copy was made: {reason}.");
            return Err(ConsoleFailure::conflict(text));
        }
        _ => {
            let text = "There is no searchable copy: none was asked for by ocr.searchable_pdf when \
                        this was read, or no page was read from its picture.";
            return Err(ConsoleFailure::conflict(text));
        }
    };
    let what = GetOptions { at_most: MOST_BYTES, if_match: None };
    match state.store().get(&key, what).await? {
        GetResult::Found(object) => Ok(object.bytes),
        GetResult::TooLarge { .. } => {
            Err(ConsoleFailure::conflict("The copy is too large to be given out here."))
        }
        GetResult::Missing | GetResult::Changed => Err(ConsoleFailure::missing()),
    }
}

/// The transcript of an ingestion that the visitor sees.
async fn find_transcript(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    id: &str,
) -> Result<Bytes, ConsoleFailure> {
    let row = find_visible(state, visitor, read_id(id)?).await?.ingestion;
    let Some(key) = row.transcription_file_path else {
        return Err(no_transcript());
    };
    load_transcript(state, &key).await
}

/// Makes something of a transcript and its layout.
async fn render<T: Send + 'static>(
    state: &ConsoleState,
    bytes: Bytes,
    make: impl FnOnce(&Transcript, &DocumentLayout) -> T + Send + 'static,
) -> Result<T, ConsoleFailure> {
    // The place goes with the work: it goes on though the one who asked goes away.
    let place = state.rendering_place().ok_or_else(ConsoleFailure::busy)?;
    #[expect(clippy::disallowed_methods, reason = "a few at once: each has a place of its own")]
    let made = tokio::task::spawn_blocking(move || {
        let _place = place;
        let transcript: Option<Transcript> = serde_json::from_slice(&bytes).ok();
        transcript.map(|transcript| make(&transcript, &layout::read_layout(&transcript)))
    });
    let made = made.await.map_err(|_panicked| {
        tracing::error!("a transcript could not be written in another form");
        ConsoleFailure::from_status(StatusCode::INTERNAL_SERVER_ERROR)
    })?;
    let foreign = "The transcript is one of the earlier system: only format=json gives it out.";
    made.ok_or_else(|| ConsoleFailure::conflict(foreign))
}

/// `GET /ingestions/{id}/transcript`: as it is stored, as text, as Markdown, or as the searchable copy of
/// its document.
pub(super) async fn get_transcript(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    QueryFields(asked): QueryFields,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let form = asked.text("format");
    let make = match form.as_deref() {
        Some("pdf") => {
            let transcript = find_transcript(&state, &visitor, &id).await?;
            let copy = load_copy(&state, transcript).await?;
            return tagged_bytes(&headers, "application/pdf", copy);
        }
        None | Some("json") => None,
        Some("text") => Some(layout::render_text as fn(&DocumentLayout) -> String),
        Some("markdown") => Some(layout::render_markdown as fn(&DocumentLayout) -> String),
        Some(_) => {
            return Err(ConsoleFailure::wrong_request("format is json, text, markdown or pdf"));
        }
    };
    let bytes = find_transcript(&state, &visitor, &id).await?;
    let Some(make) = make else { return tagged_bytes(&headers, "application/json", bytes) };
    let text = render(&state, bytes, move |_, found| make(found)).await?;
    let kind = match form.as_deref() {
        Some("markdown") => "text/markdown; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    tagged_bytes(&headers, kind, text.into())
}

/// `GET /ingestions/{id}/pages/{number}`: lines, words, boxes and blocks of one page.
pub(super) async fn get_page(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path((id, number)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let number: u32 = number.parse().map_err(|_| ConsoleFailure::missing())?;
    let bytes = find_transcript(&state, &visitor, &id).await?;
    let page = render(&state, bytes, move |transcript, found| {
        let mut pages = transcript.pages.iter().zip(&found.pages);
        let (page, found) = pages.find(|(page, _)| page.number == number)?;
        serde_json::to_value(PageWithBlocks { page, blocks: &found.blocks }).ok()
    });
    tagged_json(&headers, &page.await?.ok_or_else(ConsoleFailure::missing)?)
}

/// `GET /ingestions/{id}/chunks`: pieces for retrieval, with page and box.
pub(super) async fn get_chunks(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    QueryFields(asked): QueryFields,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let tokens = read_tokens(&asked)?;
    let bytes = find_transcript(&state, &visitor, &id).await?;
    let cut = render(&state, bytes, move |transcript, found| {
        let (sha256, chunks) = (transcript.sha256.clone(), layout::split_chunks(found, tokens));
        json!({ "sha256": sha256, "chunks": chunks })
    });
    tagged_json(&headers, &cut.await?)
}

fn read_tokens(asked: &FieldValues) -> Result<u32, ConsoleFailure> {
    let Some(text) = asked.get("tokens") else { return Ok(USUAL_TOKENS) };
    let (least, most) = TOKENS;
    let tokens = text.parse().ok().filter(|tokens| (least..=most).contains(tokens));
    tokens.ok_or_else(|| {
        ConsoleFailure::wrong_request(format!("tokens is a number from {least} to {most}"))
    })
}
