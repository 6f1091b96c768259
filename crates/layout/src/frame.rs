//! The words of a page by the direction in which they run, each direction in a frame in which its
//! lines run from left to right. Boxes that are unusable are kept apart.

use docmill_core::model::{BoundingBox, PageSource, PageText, TextLine, TextWord};

/// A word with its places.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedWord<'a> {
    /// Index of its line, and its own in the line.
    pub(super) place: (u32, u32),
    pub(super) text: &'a str,
    /// In the frame in which its line runs from left to right.
    pub(super) area: BoundingBox,
    /// As the page has it.
    pub(super) on_page: BoundingBox,
    /// Size of its letters, estimated from the box.
    pub(super) em: f32,
    /// Where its letters stand.
    pub(super) baseline: f32,
    /// How surely it was read.
    pub(super) confidence: f32,
}

/// The direction of a line, as it has to be turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WritingDirection {
    Across,
    Down,
    Up,
}

/// Words that run in one direction: a list for each stored line.
pub(super) struct DirectionFrame<'a> {
    pub(super) lines: Vec<Vec<PlacedWord<'a>>>,
}

/// The words of a page.
pub(super) struct PageFrames<'a> {
    /// The direction with the most words first.
    pub(super) frames: Vec<DirectionFrame<'a>>,
    /// Words that are nowhere: a box that is no box.
    pub(super) nowhere: Vec<PlacedWord<'a>>,
}

impl<'a> PageFrames<'a> {
    /// Leaves out the words that `take` keeps; it gives the others back.
    pub(super) fn set_apart(
        &mut self,
        mut take: impl FnMut(PlacedWord<'a>) -> Option<PlacedWord<'a>>,
    ) {
        for frame in &mut self.frames {
            for line in &mut frame.lines {
                *line = std::mem::take(line).into_iter().filter_map(&mut take).collect();
            }
            frame.lines.retain(|line| !line.is_empty());
        }
        self.frames.retain(|frame| !frame.lines.is_empty());
    }
}

/// No page is so large in any unit; beyond it differences of coordinates are lost.
const MAX_COORDINATE: f32 = 1.0e6;
/// Lines that are wider than so many letters tell whether a page is askew.
const SLOPE_WIDTH: f32 = 8.0;
/// So many of them are needed.
const SLOPE_LINES: usize = 4;
/// A lesser slope puts no two lines on one level.
const MIN_SLOPE: f32 = 0.006;
/// A greater one is no page that lay askew.
const MAX_SLOPE: f32 = 0.12;

/// Sorts the words of a page by direction.
pub(super) fn sort_directions(page: &PageText) -> PageFrames<'_> {
    let mut frames: Vec<(WritingDirection, DirectionFrame<'_>)> = Vec::new();
    let mut nowhere = Vec::new();
    for (index, line) in (0_u32..).zip(&page.lines) {
        let direction = direction_of(line);
        let mut words = Vec::new();
        for (at, word) in (0_u32..).zip(&line.words) {
            let placed = place_word(page, direction, (index, at), word);
            if is_sound(&word.bounding_box) { words.push(placed) } else { nowhere.push(placed) }
        }
        match frames.iter_mut().find(|(known, _)| *known == direction) {
            _ if words.is_empty() => {}
            Some((_, frame)) => frame.lines.push(words),
            None => frames.push((direction, DirectionFrame { lines: vec![words] })),
        }
    }
    for (_, frame) in &mut frames {
        straighten(frame);
    }
    frames.sort_by_key(|(direction, frame)| {
        let words: usize = frame.lines.iter().map(Vec::len).sum();
        (std::cmp::Reverse(words), *direction)
    });
    PageFrames { frames: frames.into_iter().map(|(_, frame)| frame).collect(), nowhere }
}

/// Sets lines level that all rise or fall, as on a page that lay askew: else what stands at the ends
/// of a row has no line in common.
fn straighten(frame: &mut DirectionFrame<'_>) {
    let slopes = frame.lines.iter().filter_map(|line| {
        let (first, last) = (line.first()?, line.last()?);
        let width = last.area.x - first.area.x;
        (width > SLOPE_WIDTH * first.em).then(|| (last.baseline - first.baseline) / width)
    });
    let slopes: Vec<f32> = slopes.collect();
    let slope = median(slopes.iter().copied());
    if slopes.len() < SLOPE_LINES || !(MIN_SLOPE..MAX_SLOPE).contains(&slope.abs()) {
        return;
    }
    for word in frame.lines.iter_mut().flatten() {
        let fall = slope * (word.area.x + word.area.w / 2.0);
        word.area.y -= fall;
        word.baseline -= fall;
    }
}

fn is_sound(area: &BoundingBox) -> bool {
    let mut values = [area.x, area.y, area.w, area.h].into_iter();
    values.all(|value| value.is_finite() && value.abs() < MAX_COORDINATE)
        && area.w > 0.0
        && area.h > 0.0
}

/// Lines of the main text run across; others are told by where their words follow each other, and a
/// single word by being higher than wide.
fn direction_of(line: &TextLine) -> WritingDirection {
    let (mut long, mut high) = (0, 0);
    for word in line.words.iter().filter(|word| word.text.chars().count() > 2) {
        long += 1;
        high += usize::from(word.bounding_box.h > 1.3 * word.bounding_box.w);
    }
    if high == 0 || high * 2 < long {
        return WritingDirection::Across;
    }
    let (Some(first), Some(last)) = (line.words.first(), line.words.last()) else {
        return WritingDirection::Across;
    };
    let step = last.bounding_box.y - first.bounding_box.y;
    if step > 0.0 { WritingDirection::Down } else { WritingDirection::Up }
}

fn place_word<'a>(
    page: &PageText,
    direction: WritingDirection,
    place: (u32, u32),
    word: &'a TextWord,
) -> PlacedWord<'a> {
    let on_page = word.bounding_box;
    let BoundingBox { x, y, w, h } = on_page;
    let area = match direction {
        WritingDirection::Across => on_page,
        WritingDirection::Down => BoundingBox { x: y, y: page.width - x - w, w: h, h: w },
        WritingDirection::Up => BoundingBox { x: page.height - y - h, y: x, w: h, h: w },
    };
    let (em, baseline) = match page.source {
        PageSource::Native => (area.h, area.bottom() - 0.2 * area.h),
        PageSource::Ocr => letters_of(&word.text, area),
    };
    let confidence = word.confidence;
    PlacedWord { place, text: &word.text, area, on_page, em, baseline, confidence }
}

/// The size of the letters in a box that was drawn around their ink, and their baseline.
fn letters_of(text: &str, area: BoundingBox) -> (f32, f32) {
    let low = text.chars().any(|c| "gjpqyçşQ;,|()[]{}ąęŋ".contains(c));
    let high = text.chars().any(|c| {
        c.is_uppercase()
            || c.is_numeric()
            || "bdfhklijtß|()[]{}!?/%&".contains(c)
            || !c.is_alphanumeric()
    });
    let below = if low { 0.21 } else { 0.0 };
    let above = if high { 0.72 } else { 0.53 };
    let em = area.h / (above + below);
    (em, area.bottom() - below * em)
}

/// The smallest box around words on the page.
pub(super) fn box_around(words: &[PlacedWord<'_>]) -> BoundingBox {
    let mut areas = words.iter().map(|word| word.on_page).filter(is_sound);
    let first = areas.next().unwrap_or_default();
    areas.fold(first, BoundingBox::union)
}

/// The middle of values in size, 0 of none.
pub(super) fn median(values: impl Iterator<Item = f32>) -> f32 {
    part_below(values, 2)
}

/// The value below which one in `parts` lies, 0 of none.
pub(super) fn part_below(values: impl Iterator<Item = f32>, parts: usize) -> f32 {
    let mut values: Vec<f32> = values.collect();
    values.sort_by(f32::total_cmp);
    values.get(values.len() / parts).copied().unwrap_or(0.0)
}
