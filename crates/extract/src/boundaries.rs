//! Asks a model about undecided boundaries between pages, one short call for each.
//!
//! The model is shown the page before the boundary and the one behind it, fenced as everywhere. A reply of
//! any other form than the asked one is no answer, and is not repaired.

use serde_json::{Value, json};

use super::calls::JournaledCalls;
use super::choose::SHORT_REPLY_TOKENS;
use super::hash_parts;
use super::journal::ReplyJournal;
use super::parts::{RowRange, row_bytes};
use super::prompt::TranscriptView;
use super::reply;
use docmill_core::fault;
use docmill_core::model::ModelUsage;
use docmill_llm::{FinishReason, Llm, Prompt, PromptThinking};

/// Raised when the text of the prompt changes: part of the identity of stored replies.
const VERSION: u32 = 1;

/// Bytes of both pages in one prompt; no call for longer ones.
const MAX_SHOWN_BYTES: usize = 12_000;

const SYSTEM: &str = "You are shown two pages that follow each other in one file of scans, and say whether the \
second page begins another document or continues the one of the first page. An invoice, a receipt or a \
letter with all its pages is one document. Terms, delivery notes and lists that belong to it continue it.\n\
Reply with one JSON object and nothing around it: {\"second_page\": \"begins\" | \"continues\" | \"unsure\"}\n";

/// The identity of a model's answers about the boundaries before these pages, SHA-256 in hex.
pub fn boundary_identity(transcript_identity: &str, llm: &dyn Llm, pages: &[u32]) -> String {
    let (version, pages) = (VERSION.to_string(), format!("{pages:?}"));
    let (provider, model) = (llm.provider(), llm.model());
    hash_parts(&["docmill boundary", &version, transcript_identity, provider, model, &pages])
}

/// Asks a model about the boundary before each of `pages`. Returns whether a document begins there
/// (`None`: no valid answer), and the tokens of the calls.
///
/// # Errors
/// The model or the journal could not be reached; the fault says how to react.
pub async fn ask_boundaries(
    llm: &dyn Llm,
    shown: &TranscriptView,
    pages: &[u32],
    identity: &str,
    journal: &mut dyn ReplyJournal,
) -> fault::Result<(Vec<(u32, Option<bool>)>, ModelUsage)> {
    let schema = boundary_schema();
    let calls =
        JournaledCalls::from_journal(llm, schema.to_string().into(), identity, journal).await?;
    let mut answers = Vec::with_capacity(pages.len());
    for page in pages {
        let mut begins = None;
        if let Some(rows) = rows_around(shown, *page) {
            let prompt = boundary_prompt(shown, rows, &schema);
            let call =
                calls.call(format!("judge the boundary before page {page}"), &prompt).await?;
            let reply = call.filter(|call| call.stop == FinishReason::Complete);
            begins = reply.and_then(|call| parse_answer(&call.text));
        }
        answers.push((*page, begins));
    }
    Ok((answers, calls.total_usage().0))
}

fn boundary_prompt(shown: &TranscriptView, rows: RowRange, schema: &Value) -> Prompt {
    Prompt {
        system: SYSTEM.into(),
        user: format!("{}\n\nReply with the JSON object now.", shown.fenced_rows(rows)),
        schema_name: "boundary".to_owned(),
        schema: schema.clone().into(),
        schema_in_text: false,
        thinking: PromptThinking::AsConfigured,
        max_output_tokens: SHORT_REPLY_TOKENS,
        pictures: Vec::new(),
    }
}

fn boundary_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"second_page": {"type": "string", "enum": ["begins", "continues", "unsure"]}},
        "required": ["second_page"],
        "additionalProperties": false,
    })
}

/// The rows of the page and of the last one with text before it; `None` if one has none or both are too long.
fn rows_around(shown: &TranscriptView, page: u32) -> Option<RowRange> {
    let start = shown.rows.iter().position(|row| row.page >= page)?;
    let before = shown.rows.get(start.checked_sub(1)?)?.page;
    let first = shown.rows.iter().position(|row| row.page == before)?;
    let behind = shown.rows.iter().skip(start).take_while(|row| row.page == page).count();
    let rows = first..start + behind;
    let bytes: usize = rows.clone().map(|at| row_bytes(shown.row_text(at))).sum();
    (behind > 0 && bytes <= MAX_SHOWN_BYTES).then_some(rows)
}

/// A JSON object with the requested key and one of the two answers.
fn parse_answer(text: &str) -> Option<bool> {
    let reply = reply::parse_json_object(text).ok()?;
    let only = reply.as_object().filter(|reply| reply.len() == 1)?;
    match only.get("second_page")?.as_str()? {
        "begins" => Some(true),
        "continues" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::prompt::tests::transcript;
    use super::*;

    #[test]
    fn only_the_asked_form_with_one_of_two_words_is_an_answer() {
        for (text, expected) in [
            (r#"{"second_page": "begins"}"#, Some(true)),
            (r#"{"second_page": "continues"}"#, Some(false)),
            (r#"{"second_page": "unsure"}"#, None),
            (r#"{"second_page": "Begins"}"#, None),
            (r#"{"second_page": "begins", "why": "it says so"}"#, None),
            (r#"{"second_page": "begins", "second_page": "continues"}"#, None),
            (r#"{"second_page": true}"#, None),
            ("It begins another document.", None),
            ("", None),
        ] {
            assert_eq!(parse_answer(text), expected, "{text}");
        }
    }

    #[test]
    fn the_two_pages_at_the_boundary_are_shown_and_no_other_and_none_that_are_too_long() {
        let pages: [&[&str]; 4] = [&["one"], &["two", "more"], &[], &["four"]];
        let shown = TranscriptView::of_transcript(&transcript(&pages));
        for (page, expected) in [(1, None), (2, Some(0..3)), (3, None), (4, Some(1..4)), (5, None)]
        {
            assert_eq!(rows_around(&shown, page), expected, "{page}");
        }
        let line = "x".repeat(100);
        let long: Vec<&str> = std::iter::repeat_n(line.as_str(), 60).collect();
        let shown = TranscriptView::of_transcript(&transcript(&[&long, &long]));
        assert_eq!(rows_around(&shown, 2), None);
    }
}
