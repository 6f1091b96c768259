//! Choice of a document's kind by a model: one short call, only where the cheap signs tie.
//!
//! The model is shown the beginning of the document, fenced as everywhere, and may reply with one of
//! the given names. A reply of any other form is not repaired: a person reviews the document anyway.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::calls::JournaledCalls;
use super::hash_parts;
use super::journal::ReplyJournal;
use super::parts::{RowRange, row_bytes};
use super::prompt::TranscriptView;
use super::reply;
use docmill_core::fault;
use docmill_core::model::ModelUsage;
use docmill_gate::kinds::Kind;
use docmill_llm::{FinishReason, Llm, Prompt, PromptThinking};

/// Raised when the text of the prompt changes: part of the identity of stored replies.
const VERSION: u32 = 1;

/// The name for a document of another kind.
const NONE: &str = "none_of_these";

/// Pages that are shown, and their bytes: titles, headings and the first rows.
const MAX_PAGES: u32 = 2;
const MAX_SHOWN_BYTES: usize = 6_000;

/// Token limit of a reply to a short question. The name takes ten; the rest is for models that
/// reason first.
pub(super) const SHORT_REPLY_TOKENS: u32 = 1_000;

/// The kind that a model chose among candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KindChoice {
    /// The kind at this index of those that were named.
    Kind(usize),
    /// The model chose none of these kinds.
    Neither,
    /// The reply cannot be used.
    Nothing,
}

/// The identity of a model's choice among these kinds for a transcript, SHA-256 in hex.
pub fn choice_identity(transcript_identity: &str, llm: &dyn Llm, kinds: &[Arc<Kind>]) -> String {
    let version = VERSION.to_string();
    let head = ["docmill kind", version.as_str(), transcript_identity, llm.provider(), llm.model()];
    let own = kinds.iter().flat_map(|kind| [kind.name.as_str(), kind.version.as_str()]);
    hash_parts(&head.into_iter().chain(own).collect::<Vec<_>>())
}

/// Has a model choose among `kinds`. Returns its choice and the tokens that went into it.
///
/// # Errors
/// The model or the journal could not be reached; the fault says how to react.
pub async fn choose_kind(
    llm: &dyn Llm,
    kinds: &[Arc<Kind>],
    shown: &TranscriptView,
    identity: &str,
    journal: &mut dyn ReplyJournal,
) -> fault::Result<(KindChoice, ModelUsage)> {
    let prompt = Prompt {
        system: system_prompt(kinds).into(),
        user: format!(
            "{}\n\nReply with the JSON object now.",
            shown.fenced_rows(first_rows(shown))
        ),
        schema_name: "kind".to_owned(),
        schema: choice_schema(kinds).into(),
        schema_in_text: false,
        thinking: PromptThinking::AsConfigured,
        max_output_tokens: SHORT_REPLY_TOKENS,
        pictures: Vec::new(),
    };
    let schema_text = prompt.schema.to_string().into();
    let calls = JournaledCalls::from_journal(llm, schema_text, identity, journal).await?;
    let call = calls.call("choose the kind".to_owned(), &prompt).await?;
    let answer = call.filter(|call| call.stop == FinishReason::Complete);
    let choice = answer.map_or(KindChoice::Nothing, |call| parse_choice(&call.text, kinds));
    Ok((choice, calls.total_usage().0))
}

fn system_prompt(kinds: &[Arc<Kind>]) -> String {
    let mut text = "You are shown how a document begins and say what kind of document it is, one \
                    of these:\n"
        .to_owned();
    for kind in kinds {
        // Writing to a string cannot fail.
        _ = writeln!(text, "- `{}`: {}", kind.name, kind.title);
    }
    _ = write!(
        text,
        "- `{NONE}`: something else\n\n\
         What counts is what the document is, not what it mentions: a receipt may name the invoice \
         it pays, a credit note the invoice it corrects.\n\
         Reply with one JSON object and nothing around it: {{\"kind\": NAME}}\n"
    );
    text
}

fn choice_schema(kinds: &[Arc<Kind>]) -> Value {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).chain([NONE]).collect();
    json!({
        "type": "object",
        "properties": {"kind": {"type": "string", "enum": names}},
        "required": ["kind"],
        "additionalProperties": false,
    })
}

/// The rows of the first pages, as far as they fit.
fn first_rows(shown: &TranscriptView) -> RowRange {
    let (mut end, mut bytes) = (0, 0);
    for (at, row) in shown.rows.iter().enumerate() {
        bytes += row_bytes(shown.row_text(at));
        if row.page > MAX_PAGES || bytes > MAX_SHOWN_BYTES {
            break;
        }
        end = at + 1;
    }
    0..end.max(1)
}

/// One object with one key and one of the names.
fn parse_choice(text: &str, kinds: &[Arc<Kind>]) -> KindChoice {
    let Ok(reply) = reply::parse_json_object(text) else { return KindChoice::Nothing };
    let only = reply.as_object().filter(|reply| reply.len() == 1);
    let Some(name) = only.and_then(|reply| reply.get("kind")?.as_str()) else {
        return KindChoice::Nothing;
    };
    match kinds.iter().position(|kind| kind.name == name) {
        Some(at) => KindChoice::Kind(at),
        None if name == NONE => KindChoice::Neither,
        None => KindChoice::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::super::prompt::tests::transcript;
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    fn two() -> Vec<Arc<Kind>> {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        ["invoice", "receipt"].map(|name| Arc::clone(kinds.get(name).unwrap())).into()
    }

    #[test]
    fn only_one_of_the_names_in_the_asked_form_is_a_choice() {
        for (text, expected) in [
            (r#"{"kind": "receipt"}"#, KindChoice::Kind(1)),
            (r#"{"kind": "none_of_these"}"#, KindChoice::Neither),
            (r#"{"kind": "contract"}"#, KindChoice::Nothing),
            (r#"{"kind": "receipt", "why": "it says so"}"#, KindChoice::Nothing),
            (r#"{"kind": "invoice", "kind": "receipt"}"#, KindChoice::Nothing),
            (r#"{"kind": null}"#, KindChoice::Nothing),
            ("```json\n{\"kind\": \"receipt\"}\n```", KindChoice::Kind(1)),
            ("```json\n{\"kind\": \"receipt\"}\n``` It is.", KindChoice::Nothing),
            ("It is a receipt.", KindChoice::Nothing),
            ("", KindChoice::Nothing),
        ] {
            assert_eq!(parse_choice(text, &two()), expected, "{text}");
        }
    }

    #[test]
    fn the_call_is_small_however_long_the_document_is() {
        let line = "x".repeat(100);
        let page: Vec<&str> = std::iter::repeat_n(line.as_str(), 500).collect();
        let long = TranscriptView::of_transcript(&transcript(&[&page, &page, &page]));
        assert!(long.fenced_rows(first_rows(&long)).len() < MAX_SHOWN_BYTES + 400);
        let short = TranscriptView::of_transcript(&transcript(&[&["one"], &["two"], &["three"]]));
        let text = short.fenced_rows(first_rows(&short));
        assert!(text.contains("two") && !text.contains("three"), "{text}");
    }

    #[test]
    fn the_schema_leaves_no_other_answer() {
        let schema = choice_schema(&two());
        let names = &schema["properties"]["kind"]["enum"];
        assert_eq!(names, &json!(["invoice", "receipt", "none_of_these"]));
        assert!(system_prompt(&two()).contains("- `receipt`: Receipt\n"));
    }
}
