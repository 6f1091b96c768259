//! The answer of a hook, checked: a hook is a program of somebody else's.
//!
//! Problems are said in words of this file alone, never with the answer.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use docmill_core::config::HookMoment;
use docmill_gate::kinds::KindSet;

/// Longest answer that is read.
pub(super) const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Longest reason or flag.
const MAX_CODE_CHARS: usize = 64;
/// Most flags of one answer.
const MAX_FLAGS: usize = 16;
/// Most fields of one answer.
const MAX_FIELDS: usize = 64;
/// Most of them as JSON.
const MAX_FIELD_BYTES: usize = 16 << 10;

/// An answer that may be acted on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HookAnswer {
    /// The document continues.
    Continue,
    /// It ends here and a person looks at it, for this reason.
    Stop(String),
    /// The document continues with this data.
    Add(HookAddition),
}

impl HookAnswer {
    /// The word in metrics.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Stop(_) => "stop",
            Self::Add(_) => "add",
        }
    }
}

/// The additions of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct HookAddition {
    /// Before the reading: the kind that the document is read as.
    pub(super) kind: Option<String>,
    /// After it: reasons for a review.
    pub(super) flags: Vec<String>,
    /// Fields of the hook's own, beside the data.
    pub(super) fields: Map<String, Value>,
}

/// An answer as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAnswer {
    answer: AnswerWord,
    reason: Option<String>,
    kind: Option<String>,
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    fields: Map<String, Value>,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum AnswerWord {
    Continue,
    Stop,
    Add,
}

/// Reads an answer.
///
/// # Errors
/// The rule that it breaks.
pub(super) fn parse_answer(
    body: &[u8],
    at: HookMoment,
    kinds: &KindSet,
) -> Result<HookAnswer, &'static str> {
    let written: WrittenAnswer = serde_json::from_slice(body)
        .map_err(|_| "it is no JSON object of answer, reason, kind, flags and fields")?;
    let WrittenAnswer { answer, reason, kind, flags, fields } = written;
    let addition = HookAddition { kind, flags, fields };
    let adds = addition != HookAddition::default();
    match (answer, reason) {
        (AnswerWord::Stop, Some(reason)) if !adds && is_code(&reason) => {
            Ok(HookAnswer::Stop(reason))
        }
        (AnswerWord::Stop, _) => Err("`stop` goes with a reason of 1 to 64 of a-z, 0-9, _ alone"),
        (_, Some(_)) => Err("a reason goes with `stop`"),
        (AnswerWord::Continue, None) if !adds => Ok(HookAnswer::Continue),
        (AnswerWord::Continue, None) => Err("kind, flags and fields go with `add`"),
        (AnswerWord::Add, None) => {
            check_addition(&addition, at, kinds)?;
            Ok(HookAnswer::Add(addition))
        }
    }
}

fn check_addition(
    addition: &HookAddition,
    at: HookMoment,
    kinds: &KindSet,
) -> Result<(), &'static str> {
    let HookAddition { kind, flags, fields } = addition;
    if at == HookMoment::After && kind.is_some() {
        return Err("a kind can be added before the reading alone");
    }
    if at == HookMoment::Before && !flags.is_empty() {
        return Err("flags can be added after the reading alone");
    }
    if kind.as_deref().is_some_and(|kind| kinds.get(kind).is_none()) {
        return Err("its kind is not among the configured ones");
    }
    if flags.len() > MAX_FLAGS || !flags.iter().all(|flag| is_code(flag)) {
        return Err("flags are at most 16, each 1 to 64 of a-z, 0-9, _");
    }
    let size = serde_json::to_vec(fields).map_or(usize::MAX, |json| json.len());
    if fields.len() > MAX_FIELDS || size > MAX_FIELD_BYTES {
        return Err("fields are at most 64, and 16 KiB as JSON");
    }
    Ok(())
}

/// Whether it is a code: no text of a document could pass for one.
fn is_code(text: &str) -> bool {
    (1..=MAX_CODE_CHARS).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::config::KindsConfig;
    use serde_json::json;

    fn parse(body: &str, at: HookMoment) -> Result<HookAnswer, &'static str> {
        parse_answer(body.as_bytes(), at, &KindSet::load(&KindsConfig::default()).unwrap())
    }

    #[test]
    fn an_answer_continues_stops_or_adds() {
        use HookMoment::{After, Before};
        let add = |addition: HookAddition| Ok(HookAnswer::Add(addition));
        let fields = json!({"cost_centre": "4711"}).as_object().unwrap().clone();
        for (body, at, expected) in [
            (r#"{"answer": "continue"}"#, Before, Ok(HookAnswer::Continue)),
            (
                r#"{"answer": "stop", "reason": "not_ours"}"#,
                After,
                Ok(HookAnswer::Stop("not_ours".to_owned())),
            ),
            (
                r#"{"answer": "add", "kind": "receipt"}"#,
                Before,
                add(HookAddition { kind: Some("receipt".to_owned()), ..HookAddition::default() }),
            ),
            (
                r#"{"answer": "add", "flags": ["new"], "fields": {"cost_centre": "4711"}}"#,
                After,
                add(HookAddition { kind: None, flags: vec!["new".to_owned()], fields }),
            ),
        ] {
            assert_eq!(parse(body, at), expected, "{body}");
        }
    }

    #[test]
    fn an_answer_of_any_other_form_is_refused_without_being_repeated() {
        use HookMoment::{After, Before};
        let long = format!(r#"{{"answer": "stop", "reason": "{}"}}"#, "x".repeat(65));
        let many = format!(r#"{{"answer": "add", "flags": {}}}"#, json!(vec!["a"; 17]));
        let wide = format!(r#"{{"answer": "add", "fields": {{"a": "{}"}}}}"#, "x".repeat(16 << 10));
        let deep = format!(r#"{{"answer": "add", "fields": {{"a": {}"#, "[".repeat(10_000));
        let names: Map<String, Value> = (0..65).map(|at| (at.to_string(), json!(1))).collect();
        let names = json!({"answer": "add", "fields": names}).to_string();
        for (body, at) in [
            ("", Before),
            ("[]", Before),
            ("{}", Before),
            ("<html>SECRETMARK</html>", Before),
            (r#"{"answer": "SECRETMARK"}"#, Before),
            (r#"{"answer": "continue", "more": 1}"#, Before),
            (r#"{"answer": "continue", "answer": "stop"}"#, Before),
            (r#"{"answer": "continue", "kind": "invoice"}"#, Before),
            (r#"{"answer": "continue", "reason": "x"}"#, Before),
            (r#"{"answer": "stop"}"#, Before),
            (r#"{"answer": "stop", "reason": ""}"#, Before),
            (r#"{"answer": "stop", "reason": "Frau SECRETMARK"}"#, Before),
            (r#"{"answer": "stop", "reason": "x", "fields": {"a": 1}}"#, Before),
            (r#"{"answer": "add", "kind": "SECRETMARK"}"#, Before),
            (r#"{"answer": "add", "kind": "invoice"}"#, After),
            (r#"{"answer": "add", "flags": ["x"]}"#, Before),
            (r#"{"answer": "add", "flags": ["SECRETMARK"]}"#, After),
            (r#"{"answer": "add", "fields": []}"#, After),
            (long.as_str(), Before),
            (many.as_str(), After),
            (wide.as_str(), After),
            (deep.as_str(), After),
            (names.as_str(), After),
        ] {
            let problem = parse(body, at).unwrap_err();
            assert!(!problem.contains("SECRETMARK"), "{problem}");
        }
    }
}
