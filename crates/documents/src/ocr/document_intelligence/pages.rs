//! From an analysed page to ours: words to lines by their place in the text, positions to pixels of
//! our picture.

use super::super::handwriting::HandwrittenRuns;
use super::super::pixels_to_f32;
use super::wire::{AnalysisResult, AnalyzedPage, AnalyzedWord, ContentSpan};
use docmill_core::model::{BoundingBox, PagePicture, ProviderReading, TextLine, TextWord};

/// The readings of `pictures`, in their order; `None` if the result is not about as many pages.
pub(super) fn parse_readings(
    result: &AnalysisResult,
    pictures: &[PagePicture],
) -> Option<Vec<ProviderReading>> {
    if result.pages.len() != pictures.len() {
        return None;
    }
    let by_hand: Vec<ContentSpan> = result
        .styles
        .iter()
        .filter(|style| style.is_handwritten)
        .flat_map(|style| style.spans.iter().copied())
        .collect();
    let version = format!("{} {}", result.model_id, result.api_version);
    (1_u32..)
        .zip(pictures)
        .map(|(number, picture)| {
            let page = result.pages.iter().find(|page| page.page_number == number)?;
            let (width, height) = (picture.image.header.width, picture.image.header.height);
            let size = (pixels_to_f32(width), pixels_to_f32(height));
            let (lines, runs) = parse_lines(page, size, &by_hand);
            let version = Some(version.clone());
            Some(ProviderReading {
                lines,
                marks: runs.found,
                version,
                ..ProviderReading::default()
            })
        })
        .collect()
}

fn parse_lines(
    page: &AnalyzedPage,
    picture: (f32, f32),
    by_hand: &[ContentSpan],
) -> (Vec<TextLine>, HandwrittenRuns) {
    let known = page.width > 0.0 && page.height > 0.0;
    let scale = if known { (picture.0 / page.width, picture.1 / page.height) } else { (1.0, 1.0) };
    let mut found: Vec<(Option<usize>, TextLine)> = Vec::new();
    let mut runs = HandwrittenRuns::default();
    for word in &page.words {
        let at = word.span.offset;
        let line = page.lines.iter().position(|line| line.spans.iter().any(|it| it.contains(at)));
        let read = read_word(word, scale, picture);
        if read.text.is_empty() {
            continue;
        }
        let goes_on = found.last().is_some_and(|(last, _)| line.is_some() && *last == line);
        if !goes_on {
            runs.end_line();
            found.push((line, TextLine { words: Vec::new() }));
        }
        runs.add_word(read.bounding_box, by_hand.iter().any(|span| span.contains(at)));
        if let Some((_, line)) = found.last_mut() {
            line.words.push(read);
        }
    }
    (found.into_iter().map(|(_, line)| line).collect(), runs)
}

fn read_word(word: &AnalyzedWord, scale: (f32, f32), picture: (f32, f32)) -> TextWord {
    TextWord {
        text: word.content.split_whitespace().collect(),
        bounding_box: polygon_box(&word.polygon, scale, picture),
        confidence: word.confidence.clamp(0.0, 1.0),
        unwitnessed: false,
    }
}

/// The smallest box in our picture around the corners.
fn polygon_box(polygon: &[f32], scale: (f32, f32), picture: (f32, f32)) -> BoundingBox {
    let (mut left, mut top) = (f32::INFINITY, f32::INFINITY);
    let (mut right, mut bottom) = (0.0_f32, 0.0_f32);
    for [x, y] in polygon.as_chunks::<2>().0 {
        let (x, y) = ((x * scale.0).clamp(0.0, picture.0), (y * scale.1).clamp(0.0, picture.1));
        (left, top) = (left.min(x), top.min(y));
        (right, bottom) = (right.max(x), bottom.max(y));
    }
    if left > right {
        return BoundingBox::default();
    }
    BoundingBox { x: left, y: top, w: right - left, h: bottom - top }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> AnalyzedPage {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn words_join_the_line_of_their_characters_and_inches_become_pixels() {
        let page = page(
            r#"{"pageNumber":1,"width":8.5,"height":11.0,"unit":"inch",
            "words":[
              {"content":"Größe","polygon":[1,1,2,1,2,1.5,1,1.5],"confidence":0.9,"span":{"offset":0,"length":5}},
              {"content":"12","polygon":[3,1,4,1,4,1.5,3,1.5],"confidence":1.2,"span":{"offset":6,"length":2}},
              {"content":"alone","polygon":[],"confidence":0.5,"span":{"offset":90,"length":5}}],
            "lines":[{"content":"x","spans":[{"offset":0,"length":8}]}]}"#,
        );
        let hand = [ContentSpan { offset: 6, length: 2 }];
        let (lines, runs) = parse_lines(&page, (850.0, 1100.0), &hand);
        let texts: Vec<String> = lines.iter().map(TextLine::text).collect();
        assert_eq!(texts, ["Größe 12", "alone"]);
        let word = &lines[0].words[1];
        let BoundingBox { x, y, w, h } = word.bounding_box;
        let off = [x - 300.0, y - 100.0, w - 100.0, h - 50.0];
        assert!(off.iter().all(|off| off.abs() < 0.01), "{:?}", word.bounding_box);
        assert!((word.confidence - 1.0).abs() < f32::EPSILON);
        assert_eq!(lines[1].words[0].bounding_box, BoundingBox::default());
        assert_eq!(runs.found.len(), 1);
        assert_eq!(runs.found[0].bounding_box, word.bounding_box);
    }
}
