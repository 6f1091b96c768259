//! How a model is asked for a page, and what of its reply is the page's text.
//!
//! Prompts hold nothing of a document, and no example: models repeat an example on a blank page.

use serde::Deserialize;
use serde_json::{Value, json};

use super::markdown;
use docmill_core::config::VisionRecipe;
use docmill_llm::{Prompt, PromptThinking};

/// Prompt of a general model.
const GENERAL: &str = include_str!("general_prompt.txt");
/// Prompt that olmOCR's models were trained on, verbatim (olmocr 0.4,
/// `build_no_anchoring_v4_yaml_prompt`).
const OLMOCR: &str = include_str!("olmocr_prompt.txt");
/// Stands for a word that cannot be read.
const UNREADABLE: &str = "[unreadable]";

/// How a model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageRecipe {
    General,
    Olmocr,
    MistralOcr,
}

/// A model's reading: its lines as words, and the rotation of the picture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ModelPage {
    pub(super) lines: Vec<Vec<String>>,
    /// Quarter turns clockwise that make it upright, 0 to 3.
    pub(super) turn: u8,
}

/// The reply of a general model; anything beside these is no reply.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GeneralReply {
    turn: String,
    lines: Vec<String>,
}

impl PageRecipe {
    pub(super) fn from_config(recipe: VisionRecipe) -> Self {
        match recipe {
            VisionRecipe::General => Self::General,
            VisionRecipe::Olmocr => Self::Olmocr,
            VisionRecipe::MistralOcr => Self::MistralOcr,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Olmocr => "olmocr",
            Self::MistralOcr => "mistral_ocr",
        }
    }

    /// The prompt without its picture and limit.
    pub(super) fn prompt(self) -> Prompt {
        let (system, user, schema) = match self {
            Self::General => (GENERAL, "Transcribe the page in this picture.", general_schema()),
            Self::Olmocr => ("", OLMOCR, json!({"type": "object"})),
            Self::MistralOcr => ("", "", json!({"type": "object"})),
        };
        Prompt {
            system: system.trim_end().into(),
            user: user.trim_end().to_owned(),
            schema_name: "page".to_owned(),
            schema: schema.into(),
            schema_in_text: false,
            thinking: PromptThinking::AsConfigured,
            max_output_tokens: 0,
            pictures: Vec::new(),
        }
    }

    /// The reading in a whole reply; `None` if it has another form.
    pub(super) fn parse_reply(self, text: &str) -> Option<ModelPage> {
        match self {
            Self::General => {
                let reply: GeneralReply = serde_json::from_str(without_fence(text)).ok()?;
                let turn = quarter_turns(&reply.turn)?;
                let lines = reply.lines.iter().flat_map(|line| line.lines());
                Some(ModelPage { lines: split_lines(lines), turn })
            }
            Self::Olmocr => parse_front_matter(text),
            // It reports no rotation.
            Self::MistralOcr => Some(ModelPage { lines: markdown_lines(text), turn: 0 }),
        }
    }
}

fn general_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "turn": {
                "type": "string",
                "enum": ["0", "90", "180", "270"],
                "description": "Degrees clockwise by which the picture must be turned to be upright",
            },
            "lines": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["turn", "lines"],
        "additionalProperties": false,
    })
}

fn quarter_turns(degrees: &str) -> Option<u8> {
    ["0", "90", "180", "270"]
        .iter()
        .zip(0..)
        .find(|(known, _)| **known == degrees)
        .map(|(_, turn)| turn)
}

/// Models put JSON between fences, asked or not.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.map_or(text, |inner| inner.strip_prefix("json").unwrap_or(inner))
}

/// Front matter of five keys between two lines of `---`, then Markdown. Read by hand: to a reader of
/// YAML the language `no` is a falsehood.
fn parse_front_matter(text: &str) -> Option<ModelPage> {
    let rest = text.trim_start().strip_prefix("---\n")?;
    let (head, body) = rest.split_once("\n---").filter(|(_, body)| starts_line(body))?;
    let upright = match front_value(head, "is_rotation_valid")?.as_str() {
        "true" => true,
        "false" => false,
        _ => return None,
    };
    let turn = quarter_turns(&front_value(head, "rotation_correction")?)?;
    ["primary_language", "is_table", "is_diagram"]
        .iter()
        .try_for_each(|key| front_value(head, key).map(drop))?;
    let turn = if upright { 0 } else { turn };
    Some(ModelPage { lines: markdown_lines(body), turn })
}

fn markdown_lines(markdown: &str) -> Vec<Vec<String>> {
    split_lines(markdown::plain_text(markdown).lines())
}

/// The first value of `key` in front matter, in small letters.
fn front_value(head: &str, key: &str) -> Option<String> {
    let mut pairs = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = pairs.find(|(name, _)| name.trim() == key)?;
    Some(value.trim().to_ascii_lowercase())
}

fn starts_line(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('\n')
}

/// Lines of at least one word. Invisible and control characters are dropped.
fn split_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Vec<String>> {
    let split = lines.map(|line| {
        let words = line.split_whitespace().filter(|word| !word.contains(UNREADABLE));
        let words = words.map(|word| word.chars().filter(|c| is_shown(*c)).collect::<String>());
        words.filter(|word| !word.is_empty()).collect::<Vec<String>>()
    });
    split.filter(|words| !words.is_empty()).collect()
}

fn is_shown(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        && !matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(page: &ModelPage) -> Vec<String> {
        page.lines.iter().map(|line| line.join(" ")).collect()
    }

    #[test]
    fn a_general_reply_has_lines_and_a_turn_and_nothing_else() {
        let read = |text: &str| PageRecipe::General.parse_reply(text);
        let page = read(r#"{"turn":"90","lines":["Total  9.50","","a\u202eb [unreadable]"]}"#);
        let page = page.unwrap();
        assert_eq!((words(&page), page.turn), (vec!["Total 9.50".to_owned(), "ab".to_owned()], 1));
        assert!(read("```json\n{\"turn\":\"0\",\"lines\":[]}\n```").is_some(), "fenced");
        for wrong in [
            "",
            "I cannot see a picture.",
            r#"{"lines":["x"]}"#,
            r#"{"turn":"45","lines":["x"]}"#,
            r#"{"turn":"0","lines":["x"],"note":"paid"}"#,
            r#"{"turn":"0","lines":["x"]} and more"#,
            r#"{"turn":"0","lines":[{"text":"x"}]}"#,
        ] {
            assert!(read(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn front_matter_of_olmocr_is_read_with_the_language_no_and_without_it_there_is_no_page() {
        let read = |text: &str| PageRecipe::Olmocr.parse_reply(text);
        let head = |valid: &str, turn: &str| {
            format!(
                "---\nprimary_language: no\nis_rotation_valid: {valid}\nrotation_correction: \
                 {turn}\nis_table: False\nis_diagram: False\n---\n"
            )
        };
        let page = read(&format!("{}# Faktura\n\nBeløp 9,50", head("True", "0"))).unwrap();
        assert_eq!((words(&page), page.turn), (vec!["Faktura".into(), "Beløp 9,50".into()], 0));
        assert_eq!(read(&head("False", "270")).unwrap().turn, 3);
        assert_eq!(read(&head("True", "90")).unwrap().turn, 0, "valid as it is");
        for wrong in ["Faktura", "---\nis_table: False\n---\nx", &head("perhaps", "0")] {
            assert!(read(wrong).is_none(), "{wrong}");
        }
        assert!(read(&head("True", "45")).is_none());
    }

    #[test]
    fn a_page_of_mistral_ocr_is_its_markdown_without_figures_and_is_taken_as_upright() {
        let page = PageRecipe::MistralOcr
            .parse_reply(
                "![img-0.jpeg](img-0.jpeg)\n\n# Invoice\n\n| Total | 9,50 |\n| --- | --- |",
            )
            .unwrap();
        assert_eq!(words(&page), ["Invoice", "Total 9,50"]);
        assert_eq!(page.turn, 0);
    }
}
