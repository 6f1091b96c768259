//! A document as a line of a result: the Dolma format as olmOCR writes it.
//!
//! Source: olmOCR 0.4.27. Positions count code points, as Python's strings do, not bytes. Page
//! attributes that only olmOCR's model reports (rotation, tables, diagrams) have the values of a
//! plain upright page; an unknown language is null.

use serde_json::{Value, json};

use super::read::DocumentText;
use crate::objects::olmocr::sha1_hex;

/// The line of a document, without a line break; `None` if there is no text. `today` is a date as
/// `2026-01-31`.
pub(crate) fn dolma_line(path: &str, text: &DocumentText, today: &str) -> Option<String> {
    let (whole, spans) = join_pages(&text.pages);
    if whole.is_empty() {
        return None;
    }
    let languages: Vec<_> =
        (0..text.pages.len()).map(|at| text.languages.get(at).copied().flatten()).collect();
    let every = |value: Value| vec![value; text.pages.len()];
    let line = json!({
        "id": sha1_hex(whole.as_bytes()),
        "text": whole,
        "source": "docmill",
        "added": today,
        "created": today,
        "metadata": {
            "Source-File": path,
            "olmocr-version": concat!("docmill ", env!("CARGO_PKG_VERSION")),
            "pdf-total-pages": text.pages.len(),
            "total-input-tokens": text.usage.input + text.usage.cache_read + text.usage.cache_write,
            "total-output-tokens": text.usage.output,
            "total-fallback-pages": text.lost,
            "docmill": text.extraction,
        },
        "attributes": {
            "pdf_page_numbers": spans,
            "primary_language": languages,
            "is_rotation_valid": every(true.into()),
            "rotation_correction": every(0.into()),
            "is_table": every(false.into()),
            "is_diagram": every(false.into()),
        },
    });
    Some(line.to_string())
}

/// Joins page texts with line breaks, and lists the span of each: start, end, number. A page
/// without text adds nothing.
fn join_pages(pages: &[(u32, String)]) -> (String, Vec<(usize, usize, u32)>) {
    let (mut whole, mut spans, mut at) = (String::new(), Vec::new(), 0);
    for (index, (number, text)) in pages.iter().enumerate() {
        let start = at;
        if !text.is_empty() {
            whole.push_str(text);
            at += text.chars().count();
            if index + 1 < pages.len() {
                whole.push('\n');
                at += 1;
            }
        }
        spans.push((start, at, *number));
    }
    (whole, spans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::model::ModelUsage;

    fn text(pages: &[&str]) -> DocumentText {
        let numbered = (1..).zip(pages.iter().map(|page| (*page).to_owned()));
        let languages = vec![Some("de"); pages.len()];
        DocumentText { pages: numbered.collect(), languages, ..DocumentText::default() }
    }

    #[test]
    fn positions_count_code_points_and_empty_pages_add_nothing() {
        let line = dolma_line("a.pdf", &text(&["é😀", "", "z"]), "2026-01-31").unwrap();
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["text"], "é😀\nz");
        let spans = &value["attributes"]["pdf_page_numbers"];
        assert_eq!(*spans, json!([[0, 3, 1], [3, 3, 2], [3, 4, 3]]));
        assert_eq!(value["id"], sha1_hex("é😀\nz".as_bytes()));
        assert_eq!(value["metadata"]["pdf-total-pages"], 3);
        assert_eq!(value["attributes"]["is_table"].as_array().unwrap().len(), 3);
        assert_eq!(value["attributes"]["primary_language"], json!(["de", "de", "de"]));
        assert!(!line.contains('\n'), "one line");
    }

    #[test]
    fn a_line_says_how_many_tokens_models_were_given_and_gave_back() {
        let usage = ModelUsage { input: 100, cache_read: 20, cache_write: 3, output: 7 };
        let text = DocumentText { usage, ..text(&["a"]) };
        let line = dolma_line("a.pdf", &text, "2026-01-31").unwrap();
        let value: Value = serde_json::from_str(&line).unwrap();
        let tokens = ["total-input-tokens", "total-output-tokens"].map(|it| &value["metadata"][it]);
        assert_eq!(tokens, [123, 7]);
    }

    #[test]
    fn a_document_without_text_has_no_line() {
        assert_eq!(dolma_line("a.pdf", &text(&["", ""]), "2026-01-31"), None);
        assert_eq!(dolma_line("a.pdf", &text(&[]), "2026-01-31"), None);
    }
}
