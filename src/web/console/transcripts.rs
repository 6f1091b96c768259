//! Transcripts as they lie in the store.

use axum::body::Bytes;

use super::failure::ConsoleFailure;
use super::state::ConsoleState;
use docmill_core::model::Transcript;
use docmill_storage::store::{GetOptions, GetResult};

/// Larger ones are not given out over HTTP.
const MOST_BYTES: u64 = 64 << 20;
/// Text that is shown beside a form, in characters.
const SHOWN: usize = 60_000;

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

/// The text of each page, as much of it as is shown beside a form; `None` if it cannot be had: the
/// form is of use without it.
pub(super) async fn load_page_texts(state: &ConsoleState, key: &str) -> Option<Vec<String>> {
    let bytes = load_transcript(state, key).await.ok()?;
    let transcript: Transcript = serde_json::from_slice(&bytes).ok()?;
    let mut left = SHOWN;
    let mut texts = Vec::new();
    for page in &transcript.pages {
        if left == 0 {
            break;
        }
        let text: String = page.text().chars().take(left).collect();
        left = left.saturating_sub(text.chars().count().max(1));
        texts.push(text);
    }
    Some(texts)
}
