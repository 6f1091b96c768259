//! Requests and replies of Document AI, as in its discovery document (v1, revision 20260929):
//! `ProcessRequest`, and the fields of `ProcessResponse` that are read.
//!
//! The dialect is that of protocol buffers in JSON: fields with a zero value are left out, and
//! 64-bit numbers are strings. Unknown fields are passed over: the vendor adds some with every
//! revision.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize};

/// The requested fields; page images are not among them.
pub(super) const FIELD_MASK: &str = "text,error,pages.pageNumber,pages.dimension,\
     pages.detectedLanguages,pages.lines,pages.tokens,pages.transforms,pages.imageQualityScores";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProcessRequest<'a> {
    raw_document: RawDocument<'a>,
    skip_human_review: bool,
    field_mask: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    imageless_mode: bool,
    process_options: ProcessOptions<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RawDocument<'a> {
    content: String,
    mime_type: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProcessOptions<'a> {
    ocr_config: OcrOptions<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OcrOptions<'a> {
    /// Has no effect on what we send, which carries pictures only; it is on so that a gateway or a
    /// later slice that does carry text is not read from its picture.
    enable_native_pdf_parsing: bool,
    enable_image_quality_scores: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    hints: Option<OcrHints<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OcrHints<'a> {
    language_hints: &'a [String],
}

/// How a call is to be made.
#[derive(Debug, Clone, Default)]
pub(super) struct OcrCallOptions {
    pub imageless: bool,
    pub languages: Vec<String>,
}

/// The body of a call about these bytes.
pub(super) fn encode_request(
    content: &[u8],
    mime_type: &str,
    options: &OcrCallOptions,
) -> serde_json::Result<Vec<u8>> {
    let languages = options.languages.as_slice();
    serde_json::to_vec(&ProcessRequest {
        raw_document: RawDocument { content: STANDARD.encode(content), mime_type },
        skip_human_review: true,
        field_mask: FIELD_MASK,
        imageless_mode: options.imageless,
        process_options: ProcessOptions {
            ocr_config: OcrOptions {
                enable_native_pdf_parsing: true,
                enable_image_quality_scores: true,
                hints: (!languages.is_empty()).then_some(OcrHints { language_hints: languages }),
            },
        },
    })
}

/// The API's `ProcessResponse`, as far as it is used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProcessResponse {
    pub document: ProcessedDocument,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProcessedDocument {
    pub text: String,
    pub pages: Vec<ProcessedPage>,
    pub error: Option<RpcStatus>,
}

/// `google.rpc.Status`, without its message: that may repeat what we sent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RpcStatus {
    pub code: i32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ProcessedPage {
    pub page_number: u32,
    pub dimension: PageDimension,
    pub detected_languages: Vec<DetectedLanguage>,
    pub lines: Vec<LayoutElement>,
    pub tokens: Vec<LayoutElement>,
    pub transforms: Vec<TransformMatrix>,
    pub image_quality_scores: Option<ImageQualityScores>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PageDimension {
    pub width: f32,
    pub height: f32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct DetectedLanguage {
    pub language_code: String,
    pub confidence: f32,
}

/// A line or a token; only a token has a break behind it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LayoutElement {
    pub layout: ElementLayout,
    pub detected_break: Option<DetectedBreak>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DetectedBreak {
    #[serde(rename = "type")]
    pub kind: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ElementLayout {
    pub text_anchor: TextAnchor,
    pub confidence: f32,
    pub bounding_poly: BoundingPoly,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct TextAnchor {
    pub text_segments: Vec<TextSegment>,
}

/// Characters (code points) of the document's text, the last one not included.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct TextSegment {
    #[serde(deserialize_with = "int64")]
    pub start_index: usize,
    #[serde(deserialize_with = "int64")]
    pub end_index: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct BoundingPoly {
    pub vertices: Vec<PolyVertex>,
    pub normalized_vertices: Vec<PolyVertex>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct PolyVertex {
    pub x: f32,
    pub y: f32,
}

/// A matrix as `OpenCV` stores it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TransformMatrix {
    pub rows: u32,
    pub cols: u32,
    /// `OpenCV`'s code of the element type.
    #[serde(rename = "type")]
    pub kind: u32,
    /// The matrix elements, row by row, in Base64.
    pub data: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ImageQualityScores {
    pub quality_score: f32,
    pub detected_defects: Vec<DetectedDefect>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DetectedDefect {
    #[serde(rename = "type")]
    pub kind: String,
    pub confidence: f32,
}

/// A 64-bit number, which this dialect writes as a string.
fn int64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum RawInt64 {
        Text(String),
        Number(usize),
    }
    match RawInt64::deserialize(deserializer)? {
        RawInt64::Number(number) => Ok(number),
        RawInt64::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_as_strings_and_zeros_not_at_all() {
        let page = r#"{"document":{"text":"Aé","pages":[{"pageNumber":1,
            "tokens":[{"layout":{"textAnchor":{"textSegments":[{"endIndex":"2"}]}}}],
            "imageQualityScores":{},"somethingNew":{"a":1}}]}}"#;
        let response: ProcessResponse = serde_json::from_str(page).unwrap();
        let page = &response.document.pages[0];
        let segment = page.tokens[0].layout.text_anchor.text_segments[0];
        assert_eq!((segment.start_index, segment.end_index), (0, 2));
        let scores = page.image_quality_scores.as_ref().unwrap();
        assert!(scores.quality_score <= 0.0, "asked for, and zero");
        assert!(serde_json::from_str::<ProcessResponse>("{}").unwrap().document.pages.is_empty());
    }

    #[test]
    fn what_is_not_wanted_is_not_in_the_request() {
        let body = encode_request(b"x", "image/png", &OcrCallOptions::default()).unwrap();
        let body = String::from_utf8(body).unwrap();
        assert!(!body.contains("imagelessMode") && !body.contains("hints"), "{body}");
        assert!(body.contains(r#""content":"eA==""#), "{body}");
        let options = OcrCallOptions { imageless: true, languages: vec!["de".to_owned()] };
        let body = String::from_utf8(encode_request(b"x", "image/png", &options).unwrap()).unwrap();
        assert!(body.contains(r#""imagelessMode":true"#) && body.contains(r#"["de"]"#), "{body}");
    }
}
