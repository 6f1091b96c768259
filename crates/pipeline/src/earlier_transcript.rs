//! Transcripts of the earlier worker, in EDN: read, so that an adopted open ingestion is not read
//! twice, and written, for programs that read them.
//!
//! A transcript is a map of the document's text, its quality, and data about its pages. It has no
//! positions: lines get synthetic ones, one below the other. Not promised: that it was made from
//! the current bytes, unless it carries their hash; the row that refers to it vouches for it.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::artefact::replace_version;
use crate::context::AttemptContext;
use crate::step_error::StepError;
use crate::text_work::run_on_text;
use docmill_core::fault;
use docmill_core::model::{BoundingBox, PageSource, PageText, TextLine, TextWord, Transcript};
use docmill_formats::edn::{parse_edn, write_edn};
use docmill_storage::{GetOptions, GetResult, keys};

/// Width of a character and height of a line in the places that are given.
const CELL: (f32, f32) = (6.0, 12.0);
/// Room for brackets, keys and escapes around the text of a transcript.
const AROUND_TEXT: u64 = 4;

/// The earlier worker's transcript of the document with this hash, if its row refers to one that is
/// usable.
///
/// # Errors
/// Store errors. A missing or invalid transcript counts as none: the document is read.
pub(super) async fn load_earlier_transcript(
    attempt: AttemptContext<'_>,
    sha256: &str,
) -> Result<Option<Transcript>, StepError> {
    let config = attempt.config();
    let referenced = attempt.claimed.transcription.as_ref();
    let earlier = referenced.filter(|it| it.identity.is_empty() && it.path.ends_with(".edn"));
    let Some(earlier) = earlier.filter(|_| config.ocr.earlier_transcripts) else { return Ok(None) };
    // The rules reader needs positions, and this transcript has none.
    if attempt.services().models.is_empty() {
        return Ok(None);
    }
    let at_most = config.limits.text_bytes.0.saturating_mul(AROUND_TEXT);
    let what = GetOptions { at_most, if_match: None };
    let GetResult::Found(object) = attempt.context.documents.get(&earlier.path, what).await? else {
        tracing::warn!(
            "the earlier worker's transcript is missing or too large: reading the document"
        );
        return Ok(None);
    };
    let (bytes, sha256) = (object.bytes, sha256.to_owned());
    let read = run_on_text(attempt.services(), move || read_transcript(&bytes, &sha256)).await?;
    match read {
        Ok(transcript) => Ok(Some(transcript)),
        Err(why) => {
            tracing::warn!(
                why,
                "the earlier worker's transcript is unusable, reading the document: {why}"
            );
            Ok(None)
        }
    }
}

/// Writes the transcript where the earlier worker did, if configured.
///
/// # Errors
/// A lost claim; store errors.
pub(super) async fn write_as_earlier(
    attempt: AttemptContext<'_>,
    transcript: &Transcript,
    preprocessed: Option<&str>,
) -> Result<(), StepError> {
    if !attempt.config().ocr.write_edn {
        return Ok(());
    }
    let (store, key) = (attempt.artefacts(), keys::edn_transcription_key(attempt.claim.id));
    let form = earlier_form(transcript, preprocessed);
    let bytes = run_on_text(attempt.services(), move || Bytes::from(write_edn(&form))).await?;
    let found = store.head(&key).await?.map(|meta| meta.etag);
    let written: fault::Result<_> =
        replace_version(store, attempt.claim, &key, found.as_ref(), bytes).await;
    Ok(written.map(drop)?)
}

/// The transcript as a map of the names that the earlier worker's has.
fn earlier_form(transcript: &Transcript, preprocessed: Option<&str>) -> Value {
    let page = |page: &PageText| {
        json!({
            "page_number": page.number,
            "text": page.text(),
            "quality_score": page.quality,
            "defects": page.defects.iter().map(|it: &docmill_core::model::PageDefect| json!({"type": it.kind, "confidence": it.confidence})).collect::<Vec<_>>(),
            "languages": page.languages,
        })
    };
    json!({
        "text": transcript.full_text(),
        "quality_score": transcript.quality,
        "page_count": transcript.pages.len(),
        "pages": transcript.pages.iter().map(page).collect::<Vec<_>>(),
        "provider": transcript.provider,
        "sha256": transcript.sha256,
        "preprocessed_file_path": preprocessed,
    })
}

/// Reads the bytes of a transcript in EDN.
fn read_transcript(bytes: &[u8], sha256: &str) -> Result<Transcript, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    let map = parse_edn(text).map_err(|_| "it is not one EDN value")?;
    if first_named(&map, &["sha256"]).is_some_and(|it| it != sha256) {
        return Err("it is of another version of the document");
    }
    let pages = match first_named(&map, &["pages"]) {
        Some(Value::Array(pages)) => pages,
        _ => Vec::new(),
    };
    let texts: Option<Vec<String>> = pages
        .iter()
        .map(|page: &Value| Some(first_named(page, &["text"])?.as_str()?.to_owned()))
        .collect();
    let texts = match texts.filter(|texts| !texts.is_empty()) {
        Some(texts) => texts,
        None => {
            let whole = first_named(&map, &["text"]);
            let whole = whole.as_ref().and_then(Value::as_str).ok_or("it has no text")?;
            whole.split('\u{c}').map(str::to_owned).collect()
        }
    };
    let scores: Vec<Option<f32>> = pages.iter().map(score_of).collect();
    #[expect(clippy::cast_precision_loss, reason = "a number of pages")]
    let mean = (!scores.is_empty())
        .then(|| scores.iter().copied().sum::<Option<f32>>().map(|sum| sum / scores.len() as f32))
        .flatten();
    let quality = score_of(&map).or(mean).ok_or("it has no quality score")?;
    let provider = first_named(&map, &["provider"]);
    let provider = provider.as_ref().and_then(Value::as_str).unwrap_or("unknown provider");
    Ok(Transcript {
        format: Transcript::FORMAT,
        sha256: sha256.to_owned(),
        provider: format!("the earlier worker, {provider}"),
        pages: texts
            .iter()
            .enumerate()
            .map(|(at, text): (usize, &String)| {
                let quality = scores.get(at).copied().flatten().unwrap_or(quality);
                lay_page(u32::try_from(at + 1).unwrap_or(u32::MAX), quality, text)
            })
            .collect(),
        quality,
    })
}

/// The quality score of a transcript or page.
fn score_of(value: &Value) -> Option<f32> {
    let score = first_named(value, &["quality-score", "quality"])?.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "a share needs no more")]
    let share = score as f32;
    (0.0..=1.0).contains(&score).then_some(share)
}

/// The first of these entries that is not null.
fn first_named(value: &Value, names: &[&str]) -> Option<Value> {
    names.iter().find_map(|name| value.get(*name).filter(|it| !it.is_null()).cloned())
}

/// A page of these lines, each word at the place of its characters in a page of equal cells.
fn lay_page(number: u32, quality: f32, text: &str) -> PageText {
    let mut widest: f32 = 0.0;
    let mut lines = Vec::new();
    #[expect(clippy::cast_precision_loss, reason = "places on a page that is none")]
    for (row, line) in text.lines().enumerate() {
        let mut words = Vec::new();
        let (mut column, mut word, mut start) = (0_usize, String::new(), 0_usize);
        for c in line.chars().chain([' ']) {
            if !c.is_whitespace() {
                if word.is_empty() {
                    start = column;
                }
                word.push(c);
            } else if !word.is_empty() {
                let bounding_box = BoundingBox {
                    x: start as f32 * CELL.0,
                    y: row as f32 * CELL.1,
                    w: (column - start) as f32 * CELL.0,
                    h: CELL.1,
                };
                let text = std::mem::take(&mut word);
                let (confidence, unwitnessed) = (quality, false);
                words.push(TextWord { text: text.into(), bounding_box, confidence, unwitnessed });
            }
            column += 1;
        }
        widest = widest.max(column as f32 * CELL.0);
        if !words.is_empty() {
            lines.push(TextLine { words });
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "places on a page that is none")]
    let height = text.lines().count() as f32 * CELL.1;
    let size = (widest.max(CELL.0), height.max(CELL.1));
    PageText { source: PageSource::Ocr, ..PageText::from_native(number, size, quality, lines) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_transcript_gives_the_text_of_its_pages_and_how_good_it_is() {
        let edn = r#"{:text "INVOICE 7\nTotal  9\fback" :quality-score 0.9 :page-count 2
            :pages [{:page-number 1 :quality-score 1.0} {:page-number 2 :quality-score 0.8}]
            :provider "document-ai" :provider-metadata {:model #inst "2025" :x [1 2]}}"#;
        let read = read_transcript(edn.as_bytes(), "ab").unwrap();
        assert_eq!(read.full_text(), "INVOICE 7\nTotal 9\u{c}back");
        assert_eq!((read.quality, read.sha256.as_str()), (0.9, "ab"));
        assert_eq!(read.provider, "the earlier worker, document-ai");
        let qualities: Vec<f32> = read.pages.iter().map(|page| page.quality).collect();
        assert_eq!(qualities, [1.0, 0.8]);
        let total = read.pages.first().unwrap().lines.get(1).unwrap();
        assert_eq!(total.words.get(1).unwrap().bounding_box.x, 42.0, "the blanks count");
        let paged = r#"{:pages [{:text "a" :quality 0.5} {:text "b" :quality 1}]}"#;
        let read = read_transcript(paged.as_bytes(), "ab").unwrap();
        assert_eq!((read.full_text().as_str(), read.quality), ("a\u{c}b", 0.75));
    }

    #[test]
    fn anothers_or_an_invalid_transcript_is_not_used() {
        #[rustfmt::skip]
        let table = [
            ("{:text \"a\"", "it is not one EDN value"),
            ("{:quality-score 0.5}", "it has no text"),
            ("[]", "it has no text"),
            ("{:text \"a\"}", "it has no quality score"),
            ("{:text \"a\" :quality-score 90}", "it has no quality score"),
            ("{:text \"a\" :quality-score 1 :sha256 \"cd\"}", "it is of another version of the document"),
        ];
        for (edn, why) in table {
            assert_eq!(read_transcript(edn.as_bytes(), "ab").unwrap_err(), why, "{edn}");
        }
        assert!(read_transcript(b"{:text \"\xff\"}", "ab").is_err());
    }

    #[test]
    fn a_written_earlier_transcript_reads_back_with_the_same_text() {
        let pages = vec![lay_page(1, 0.5, "a  \"b\"\n\\ c"), lay_page(2, 1.0, "é")];
        let (format, sha256) = (Transcript::FORMAT, "ab".to_owned());
        let written = Transcript { format, sha256, provider: "p".into(), pages, quality: 0.75 };
        let edn = write_edn(&earlier_form(&written, Some("ingestions/x/preprocessed.pdf")));
        assert!(edn.contains(":preprocessed-file-path \"ingestions/x/preprocessed.pdf\""), "{edn}");
        assert!(edn.contains(":page-number 2"), "{edn}");
        let read = read_transcript(edn.as_bytes(), "ab").unwrap();
        assert_eq!((read.full_text(), read.quality), (written.full_text(), 0.75));
    }
}
