//! From Document AI's page to ours: tokens to words, words to lines, scores and defects by name.
//!
//! Its text is one string for all pages of a call; elements point into it by the numbers of
//! characters, which are code points: neither bytes nor UTF-16 units. A token is less than a word
//! where no break follows it (`INV`, `-`, `2041`), so such tokens are put together.

use super::super::pixels_to_f32;
use super::geometry::PageGeometry;
use super::wire::{
    DetectedLanguage, ImageQualityScores, LayoutElement, ProcessedDocument, ProcessedPage,
    TextSegment,
};
use docmill_core::model::{
    BoundingBox, PageDefect, PageDefectKind, PagePicture, ProviderReading, TextLine, TextWord,
};

/// Defects less sure than this are not worth a line in the transcript.
const WORTH_TELLING: f32 = 0.1;
/// A language less sure than this is not.
const HEARD: f32 = 0.3;

/// The readings of `pictures`, in their order; `None` if the document is not about as many pages.
pub(super) fn parse_readings(
    document: &ProcessedDocument,
    pictures: &[PagePicture],
    version: Option<&str>,
) -> Option<Vec<ProviderReading>> {
    if document.pages.len() != pictures.len() {
        return None;
    }
    let text = AnchoredText::new(&document.text);
    let alone = pictures.len() == 1;
    (1_u32..)
        .zip(pictures)
        .map(|(number, picture)| {
            let page = document.pages.iter().find(|page| page.page_number == number)?;
            let size = (
                pixels_to_f32(picture.image.header.width),
                pixels_to_f32(picture.image.header.height),
            );
            let frame = PageGeometry::new(&page.dimension, &page.transforms, size, alone);
            Some(ProviderReading {
                lines: parse_lines(&text, page, &frame),
                score: page.image_quality_scores.as_ref().map(page_score),
                defects: page.image_quality_scores.as_ref().map(parse_defects).unwrap_or_default(),
                languages: language_names(&page.detected_languages),
                transform: frame.transform,
                version: version.map(str::to_owned),
                ..ProviderReading::default()
            })
        })
        .collect()
}

/// A text and where its characters begin.
struct AnchoredText<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> AnchoredText<'a> {
    fn new(text: &'a str) -> Self {
        let starts = text.char_indices().map(|(start, _)| start).chain([text.len()]).collect();
        Self { text, starts }
    }

    fn segment_text(&self, segment: &TextSegment) -> &'a str {
        let start = self.starts.get(segment.start_index);
        let range = start.zip(self.starts.get(segment.end_index));
        range.and_then(|(start, end)| self.text.get(*start..*end)).unwrap_or_default()
    }

    fn element_text(&self, element: &LayoutElement) -> String {
        element
            .layout
            .text_anchor
            .text_segments
            .iter()
            .map(|part| self.segment_text(part))
            .collect()
    }
}

/// A word that may still grow.
struct OpenWord {
    word: TextWord,
    line: Option<usize>,
}

fn parse_lines(
    text: &AnchoredText<'_>,
    page: &ProcessedPage,
    frame: &PageGeometry,
) -> Vec<TextLine> {
    let ranges = line_ranges(page);
    let mut found: Vec<(Option<usize>, TextLine)> = Vec::new();
    let mut open: Option<OpenWord> = None;
    for token in &page.tokens {
        let line = element_start(token).and_then(|start| line_at(&ranges, start));
        let raw = text.element_text(token);
        let piece = TextWord {
            text: raw.trim().into(),
            bounding_box: frame.bounding_box(&token.layout.bounding_poly),
            confidence: token.layout.confidence.clamp(0.0, 1.0),
            unwitnessed: false,
        };
        let joined = match open.take() {
            Some(before) if before.line == line => {
                OpenWord { word: join_words(before.word, piece), line }
            }
            Some(before) => {
                close_word(before, &mut found);
                OpenWord { word: piece, line }
            }
            None => OpenWord { word: piece, line },
        };
        let ends = token.detected_break.as_ref().is_some_and(|after| !after.kind.is_empty())
            || raw.ends_with(char::is_whitespace);
        if ends {
            close_word(joined, &mut found);
        } else {
            open = Some(joined);
        }
    }
    if let Some(last) = open {
        close_word(last, &mut found);
    }
    found.into_iter().map(|(_, line)| line).collect()
}

/// A word is as sure as its least sure part.
fn join_words(before: TextWord, after: TextWord) -> TextWord {
    let none = BoundingBox::default();
    let bounding_box = match (before.bounding_box != none, after.bounding_box != none) {
        (true, true) => before.bounding_box.union(after.bounding_box),
        (true, false) => before.bounding_box,
        _ => after.bounding_box,
    };
    TextWord {
        text: before.text + &after.text,
        bounding_box,
        confidence: before.confidence.min(after.confidence),
        unwitnessed: false,
    }
}

/// Puts a finished word onto its line. Words without a line get lines of their own.
fn close_word(OpenWord { word, line }: OpenWord, found: &mut Vec<(Option<usize>, TextLine)>) {
    if word.text.is_empty() {
        return;
    }
    match found.last_mut() {
        Some((last, known)) if line.is_some() && *last == line => known.words.push(word),
        _ => found.push((line, TextLine { words: vec![word] })),
    }
}

fn element_start(element: &LayoutElement) -> Option<usize> {
    element.layout.text_anchor.text_segments.first().map(|first| first.start_index)
}

/// First and last character of every line, and its number, in the order of the text.
fn line_ranges(page: &ProcessedPage) -> Vec<(TextSegment, usize)> {
    let numbered = page.lines.iter().enumerate();
    let mut ranges: Vec<(TextSegment, usize)> = numbered
        .flat_map(|(number, line)| {
            line.layout.text_anchor.text_segments.iter().map(move |part| (*part, number))
        })
        .collect();
    ranges.sort_unstable_by_key(|(range, _)| range.start_index);
    ranges
}

fn line_at(ranges: &[(TextSegment, usize)], at: usize) -> Option<usize> {
    let behind = ranges.partition_point(|(range, _)| range.start_index <= at);
    let (range, number) = ranges.get(behind.checked_sub(1)?)?;
    (at < range.end_index).then_some(*number)
}

/// Asked for and left out means zero.
fn page_score(scores: &ImageQualityScores) -> f32 {
    scores.quality_score.clamp(0.0, 1.0)
}

fn parse_defects(scores: &ImageQualityScores) -> Vec<PageDefect> {
    let known = scores.detected_defects.iter().filter_map(|defect| {
        let kind = match defect.kind.strip_prefix("quality/defect_")? {
            "blurry" => PageDefectKind::Blurry,
            "noisy" => PageDefectKind::Noisy,
            "dark" => PageDefectKind::Dark,
            "faint" => PageDefectKind::Faint,
            "text_too_small" => PageDefectKind::TextTooSmall,
            "document_cutoff" => PageDefectKind::DocumentCutoff,
            "text_cutoff" => PageDefectKind::TextCutoff,
            "glare" => PageDefectKind::Glare,
            _ => return None,
        };
        Some(PageDefect { kind, confidence: defect.confidence.clamp(0.0, 1.0) })
    });
    known.filter(|defect| defect.confidence >= WORTH_TELLING).collect()
}

/// BCP-47 to what Tesseract calls the language; others keep their code.
fn language_names(detected: &[DetectedLanguage]) -> Vec<String> {
    const NAMES: [(&str, &str); 24] = [
        ("en", "eng"),
        ("de", "deu"),
        ("fr", "fra"),
        ("nl", "nld"),
        ("es", "spa"),
        ("it", "ita"),
        ("pt", "por"),
        ("no", "nor"),
        ("nb", "nor"),
        ("da", "dan"),
        ("sv", "swe"),
        ("fi", "fin"),
        ("hr", "hrv"),
        ("pl", "pol"),
        ("cs", "ces"),
        ("sk", "slk"),
        ("hu", "hun"),
        ("ro", "ron"),
        ("tr", "tur"),
        ("ru", "rus"),
        ("el", "ell"),
        ("ja", "jpn"),
        ("ko", "kor"),
        ("zh", "chi_sim"),
    ];
    let mut heard: Vec<&DetectedLanguage> =
        detected.iter().filter(|language| language.confidence >= HEARD).collect();
    heard.sort_by(|one, other| other.confidence.total_cmp(&one.confidence));
    let mut names = Vec::with_capacity(heard.len());
    for language in heard {
        let code = language.language_code.as_str();
        let main = code.split('-').next().unwrap_or(code);
        let known = NAMES.iter().find(|(bcp47, _)| *bcp47 == main);
        names.push(known.map_or(code, |(_, name)| *name).to_owned());
    }
    names
}

#[cfg(test)]
mod tests;
