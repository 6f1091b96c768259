//! Transcripts as they are stored, and their renderings on request: text, Markdown, single pages,
//! chunks for retrieval.
//!
//! Renderings are made anew each time and stored nowhere, on blocking threads, a few at a time.
//! Only the searchable copy is made by a worker, and served as it is stored. Bytes in memory count
//! until they are sent or the client has gone, those of a rendering as many times as parsing
//! multiplies them; one tenant gets at most half of the memory.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use utoipa::ToSchema;

use super::access::ConsoleVisitor;
use super::api_forms::tagged_bytes;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, QueryFields};
use super::ingestion::{find_visible, read_id};
use super::openapi::{BinaryContent, JsonObject, TranscriptFormat};
use super::page_sheets::PageSheet;
use super::state::ConsoleState;
use docmill_core::model::{PageText, Transcript};
use docmill_layout::{self, DocumentLayout, PageBlock, TextChunk};
use docmill_operations::tenant_shares::TakenShare;
use docmill_storage::{GetOptions, GetResult, keys};

/// Larger ones are not given out over HTTP.
const MAX_BYTES: u64 = 64 << 20;
/// Larger ones are given out as they are stored, and not in another form.
const MAX_PARSED_BYTES: u64 = 16 << 20;
/// Bytes of a parsed transcript, its layout and its rendering, per stored byte; measured at 7.1.
const PARSED_BYTES_PER_BYTE: usize = 7;
/// Text that is shown beside a form, in characters.
const MAX_SHOWN_CHARS: usize = 60_000;
/// Pages that are shown there.
const MAX_SHEET_PAGES: usize = 200;
/// Estimated tokens of a chunk by default.
const DEFAULT_CHUNK_TOKENS: u32 = 512;
/// Fewest and most tokens of a piece.
pub(super) const CHUNK_TOKENS: (u32, u32) = (16, 8192);

/// A transcript in chunks.
#[derive(Serialize, ToSchema)]
struct TranscriptChunks<'a> {
    sha256: &'a str,
    chunks: Vec<TextChunk>,
}

/// A page with its blocks.
#[derive(Serialize)]
struct PageWithBlocks<'a> {
    #[serde(flatten)]
    page: &'a PageText,
    blocks: &'a [PageBlock],
}

/// Bytes with their share of memory: it is returned when the last holder drops them.
struct HeldBytes {
    bytes: Bytes,
    _room: TakenShare,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The largest artefact that a request takes, and its answer to a larger one.
struct ArtefactLimit {
    bytes: u64,
    refusal: &'static str,
}

/// For a transcript as it is stored.
const STORED: ArtefactLimit = ArtefactLimit {
    bytes: MAX_BYTES,
    refusal: "The transcript is too large to be given out here.",
};
/// For a transcript in another form.
const PARSED: ArtefactLimit = ArtefactLimit {
    bytes: MAX_PARSED_BYTES,
    refusal: "The transcript is over 16 MiB: only format=json gives it out.",
};
/// For a searchable copy.
const COPY: ArtefactLimit =
    ArtefactLimit { bytes: MAX_BYTES, refusal: "The copy is too large to be given out here." };

/// The stored transcript, whole.
///
/// # Errors
/// It is gone or too large, the store does not answer, or as much is held as may be.
pub(super) async fn load_transcript(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    key: &str,
) -> Result<Bytes, ConsoleFailure> {
    load_artefact(state, visitor, key, STORED).await
}

/// The request that a rendering is made for.
pub(super) struct RequestLife(oneshot::Sender<()>);

impl RequestLife {
    /// Whether its client has gone: the rendering is of no use any more.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_closed()
    }
}

/// Parses the transcript at `key` and works on it on a blocking thread, with room for all that it
/// takes. `None`: it is one of the earlier system.
///
/// # Errors
/// As [`load_transcript`]; it is over [`MAX_PARSED_BYTES`]; there is no place or no room.
pub(super) async fn work_on_transcript<T: Send + 'static>(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    key: &str,
    work: impl FnOnce(Transcript, &RequestLife) -> T + Send + 'static,
) -> Result<Option<T>, ConsoleFailure> {
    let bytes = load_artefact(state, visitor, key, PARSED).await?;
    let room = bytes.len().saturating_mul(PARSED_BYTES_PER_BYTE);
    work_in_place(state, visitor, room, move |life| {
        let transcript: Option<Transcript> = serde_json::from_slice(&bytes).ok();
        drop(bytes);
        transcript.filter(|_| !life.is_over()).map(|transcript| work(transcript, life))
    })
    .await
}

/// An artefact of the store, once there is room for it.
async fn load_artefact(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    key: &str,
    limit: ArtefactLimit,
) -> Result<Bytes, ConsoleFailure> {
    let Some(known) = state.store().head(key).await? else { return Err(ConsoleFailure::missing()) };
    let size = usize::try_from(known.size).ok().filter(|_| known.size <= limit.bytes);
    let size = size.ok_or_else(|| ConsoleFailure::conflict(limit.refusal))?;
    let room = state.transcript_room(visitor, size)?;
    let what = GetOptions { at_most: known.size, if_match: None };
    match state.store().get(key, what).await? {
        GetResult::Found(object) => {
            Ok(Bytes::from_owner(HeldBytes { bytes: object.bytes, _room: room }))
        }
        // Written anew meanwhile: it is as large as it is the next time.
        GetResult::TooLarge { .. } => Err(ConsoleFailure::busy()),
        GetResult::Missing | GetResult::Changed => Err(ConsoleFailure::missing()),
    }
}

/// Works on a transcript on a blocking thread, with room for so many bytes. The work holds place and
/// room until it ends, also if the client goes meanwhile: then it ends at its next step.
async fn work_in_place<T: Send + 'static>(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    bytes: usize,
    work: impl FnOnce(&RequestLife) -> T + Send + 'static,
) -> Result<T, ConsoleFailure> {
    let place = state.rendering_place(visitor).await?;
    let room = state.transcript_room(visitor, bytes)?;
    let (life, _until_dropped) = oneshot::channel();
    #[expect(clippy::disallowed_methods, reason = "a few at once: each has a place of its own")]
    let done = tokio::task::spawn_blocking(move || {
        let _held = (place, room);
        work(&RequestLife(life))
    });
    done.await.map_err(|_panicked| {
        tracing::error!("a transcript could not be rendered");
        ConsoleFailure::from_status(StatusCode::INTERNAL_SERVER_ERROR)
    })
}

/// The part of a stored transcript about the searchable copy.
#[derive(Default, Deserialize)]
struct CopyMention {
    searchable: Option<CopyPlace>,
}

/// The key of the copy, or the reason why there is none.
#[derive(Deserialize)]
struct CopyPlace {
    path: Option<String>,
    left_out: Option<String>,
}

/// The pages with the part of their text shown beside a form; empty if they cannot be loaded: the
/// form is useful without them.
pub(super) async fn load_page_sheets(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    key: &str,
) -> Vec<PageSheet> {
    let read = work_on_transcript(state, visitor, key, |found, _| read_page_sheets(&found)).await;
    read.ok().flatten().unwrap_or_default()
}

fn read_page_sheets(transcript: &Transcript) -> Vec<PageSheet> {
    let mut left = MAX_SHOWN_CHARS;
    let mut sheets = Vec::new();
    for page in transcript.pages.iter().take(MAX_SHEET_PAGES) {
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
    visitor: &ConsoleVisitor,
    key: Option<&str>,
    number: u32,
) -> Result<KnownPage, ConsoleFailure> {
    let Some(key) = key else { return Err(no_transcript()) };
    let read = move |transcript: Transcript, _: &RequestLife| {
        let count = u32::try_from(transcript.pages.len()).unwrap_or(u32::MAX);
        let page = transcript.pages.into_iter().find(|page| page.number == number);
        page.map(|page| KnownPage { page, count })
    };
    let found = work_on_transcript(state, visitor, key, read).await?;
    let foreign = "The transcript is one of the earlier system: its pages are not shown here.";
    let found = found.ok_or_else(|| ConsoleFailure::conflict(foreign))?;
    found.ok_or_else(ConsoleFailure::missing)
}

fn no_transcript() -> ConsoleFailure {
    ConsoleFailure::conflict("There is no transcript yet.")
}

/// The searchable copy of the transcript's document.
async fn load_copy(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    transcript: Bytes,
) -> Result<Bytes, ConsoleFailure> {
    let parse = move |_: &RequestLife| {
        serde_json::from_slice::<CopyMention>(&transcript).unwrap_or_default().searchable
    };
    let key = match work_in_place(state, visitor, 0, parse).await? {
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
    load_artefact(state, visitor, &key, COPY).await
}

/// The key of the transcript of an ingestion that the visitor sees.
async fn find_transcript(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    id: &str,
) -> Result<String, ConsoleFailure> {
    let row = find_visible(state, visitor, read_id(id)?).await?.ingestion;
    row.transcription_file_path.ok_or_else(no_transcript)
}

/// The rendering by `make` of a transcript and its layout; `None` from it is a missing page.
async fn render(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    key: &str,
    make: impl FnOnce(&Transcript, &DocumentLayout) -> Option<Vec<u8>> + Send + 'static,
) -> Result<Bytes, ConsoleFailure> {
    let made = work_on_transcript(state, visitor, key, move |transcript, life| {
        let layout = docmill_layout::read_layout(&transcript);
        (!life.is_over()).then(|| make(&transcript, &layout)).flatten()
    });
    let foreign = "The transcript is one of the earlier system: only format=json gives it out.";
    let made = made.await?.ok_or_else(|| ConsoleFailure::conflict(foreign))?;
    let made = made.ok_or_else(ConsoleFailure::missing)?;
    let room = state.transcript_room(visitor, made.len())?;
    Ok(Bytes::from_owner(HeldBytes { bytes: made.into(), _room: room }))
}

/// The transcript as it is stored, as text or Markdown, or the document as a searchable PDF.
///
/// 409 while there is none.
#[utoipa::path(
    get,
    path = "/ingestions/{id}/transcript",
    operation_id = "getTranscript",
    params(
        ("id" = Uuid, Path),
        ("format" = inline(Option<TranscriptFormat>), Query),
    ),
    responses(
        (status = 200, description = "Done.", content(
            (JsonObject = "application/json"),
            (String = "text/plain"),
            (String = "text/markdown"),
            (inline(BinaryContent) = "application/pdf"),
        ))
    )
)]
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
            let key = find_transcript(&state, &visitor, &id).await?;
            let transcript = load_transcript(&state, &visitor, &key).await?;
            let copy = load_copy(&state, &visitor, transcript).await?;
            return tagged_bytes(&headers, "application/pdf", copy);
        }
        None | Some("json") => None,
        Some("text") => Some(docmill_layout::render_text as fn(&DocumentLayout) -> String),
        Some("markdown") => Some(docmill_layout::render_markdown as fn(&DocumentLayout) -> String),
        Some(_) => {
            return Err(ConsoleFailure::wrong_request("format is json, text, markdown or pdf"));
        }
    };
    let key = find_transcript(&state, &visitor, &id).await?;
    let Some(make) = make else {
        let bytes = load_transcript(&state, &visitor, &key).await?;
        return tagged_bytes(&headers, "application/json", bytes);
    };
    let text = render(&state, &visitor, &key, move |_, found| Some(make(found).into_bytes()));
    let kind = match form.as_deref() {
        Some("markdown") => "text/markdown; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    tagged_bytes(&headers, kind, text.await?)
}

/// Lines, words, boxes and blocks of one page of the transcript.
#[utoipa::path(
    get,
    path = "/ingestions/{id}/pages/{number}",
    operation_id = "getPage",
    params(
        ("id" = Uuid, Path),
        ("number" = u64, Path, minimum = 1, maximum = 4294967295u64),
    ),
    responses((status = 200, description = "Done.", body = JsonObject))
)]
pub(super) async fn get_page(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path((id, number)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let number: u32 = number.parse().map_err(|_| ConsoleFailure::missing())?;
    let key = find_transcript(&state, &visitor, &id).await?;
    let page = render(&state, &visitor, &key, move |transcript, found| {
        let mut pages = transcript.pages.iter().zip(&found.pages);
        let (page, found) = pages.find(|(page, _)| page.number == number)?;
        serde_json::to_vec(&PageWithBlocks { page, blocks: &found.blocks }).ok()
    });
    tagged_bytes(&headers, "application/json", page.await?)
}

/// The transcript in chunks for retrieval, with page and box.
#[utoipa::path(
    get,
    path = "/ingestions/{id}/chunks",
    operation_id = "getChunks",
    params(
        ("id" = Uuid, Path),
        ("tokens" = Option<u64>, Query, minimum = 16, maximum = 8192,
            description = "most of a chunk, estimated: a quarter of its bytes; 512"),
    ),
    responses((status = 200, description = "Done.", body = TranscriptChunks))
)]
pub(super) async fn get_chunks(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    QueryFields(asked): QueryFields,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let tokens = read_tokens(&asked)?;
    let key = find_transcript(&state, &visitor, &id).await?;
    let cut = render(&state, &visitor, &key, move |transcript, found| {
        let chunks = docmill_layout::split_chunks(found, tokens);
        serde_json::to_vec(&TranscriptChunks { sha256: &transcript.sha256, chunks }).ok()
    });
    tagged_bytes(&headers, "application/json", cut.await?)
}

fn read_tokens(asked: &FieldValues) -> Result<u32, ConsoleFailure> {
    let Some(text) = asked.get("tokens") else { return Ok(DEFAULT_CHUNK_TOKENS) };
    let (least, most) = CHUNK_TOKENS;
    let tokens = text.parse().ok().filter(|tokens| (least..=most).contains(tokens));
    tokens.ok_or_else(|| {
        ConsoleFailure::wrong_request(format!("tokens is a number from {least} to {most}"))
    })
}
