//! Pages photographed askew: the fall of their lines, and the words on an upright page. Folded
//! sheets and curved lines are out of scope.

use docmill_core::model::{BoundingBox, PageText, TextLine};

/// A smaller fall is a scan, which one tilt for the whole page straightens.
const MIN_FALL: f32 = 0.05;

/// A larger fall is no readable photograph.
const MAX_FALL: f32 = 0.85;

/// Runs of words that give the fall of lines; fewer do not cover the page.
const MIN_RUNS: usize = 12;

/// At least one run in this many is on each side of the page.
const SIDE: usize = 5;

/// A wider gap, in heights of a word, ends a run: the reader may have joined rows.
const PARTED: f32 = 2.0;

/// How much the fall may change across a page: more is noise.
const MAX_CHANGE: f32 = 0.3;

/// The share of the height of a box that a word in it has at least.
const MIN_HEIGHT: f32 = 0.25;

/// How far the lines of a page fall per unit to the right, in its middle, and how much more further
/// right and further down: a sheet that lies in perspective has no single tilt.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageSlope {
    middle: (f32, f32),
    fall: f32,
    by_x: f32,
    by_y: f32,
}

/// A run of words: where its middle is, and how far it falls.
struct WordRun {
    x: f32,
    y: f32,
    fall: f32,
}

impl PageSlope {
    /// The slope of a page that lay well askew.
    pub(super) fn of_page(page: &PageText) -> Option<Self> {
        let mut runs: Vec<WordRun> = page.lines.iter().flat_map(runs_of_line).collect();
        let fall = middle_of(runs.iter().map(|run| run.fall))?;
        let steep = (MIN_FALL..MAX_FALL).contains(&fall.abs());
        if runs.len() < MIN_RUNS || !steep || !cover_both_sides(page, &runs) {
            return None;
        }
        let middle =
            (middle_of(runs.iter().map(|run| run.x))?, middle_of(runs.iter().map(|run| run.y))?);
        let by_x = change_along(&mut runs, |run| run.x, page.width)?;
        let by_y = change_along(&mut runs, |run| run.y, page.height)?;
        Some(Self { middle, fall, by_x, by_y })
    }

    /// The line on an upright page. A word's box includes its slant, which is taken off.
    pub(super) fn level_line(&self, line: &TextLine) -> TextLine {
        let mut line = line.clone();
        for word in &mut line.words {
            let BoundingBox { x, y, w, h } = word.bounding_box;
            let across = x + w / 2.0 - self.middle.0;
            let down = y + h / 2.0 - self.middle.1;
            let fall = self.fall + self.by_y * (down - self.fall * across);
            let down = down - fall * across - self.by_x * across * across / 2.0;
            let slant = (fall + self.by_x * across).abs().min(MAX_FALL);
            let square = slant * slant;
            let height = (h - w * slant) * (1.0 + square) / (1.0 - square);
            let height = height.clamp(MIN_HEIGHT * h, h);
            let width = (w - height * slant / (1.0 + square)).max(w / 2.0);
            word.bounding_box = BoundingBox {
                x: x + (w - width) / 2.0 + down * self.fall / (1.0 + self.fall * self.fall),
                y: self.middle.1 + down - height / 2.0,
                w: width,
                h: height,
            };
        }
        line
    }
}

/// Whether enough runs are on either side of a page: the fall of an empty side is unknown, and
/// slips of paper curl.
fn cover_both_sides(page: &PageText, runs: &[WordRun]) -> bool {
    let words = page.lines.iter().flat_map(|line| &line.words).map(|word| word.bounding_box);
    let (left, right) = words.fold((f32::MAX, f32::MIN), |(left, right), area| {
        (left.min(area.x), right.max(area.right()))
    });
    let middle = (left + right) / 2.0;
    let before = runs.iter().filter(|run| run.x < middle).count();
    before.min(runs.len() - before) * SIDE >= runs.len()
}

/// The runs of two words or more of a line.
fn runs_of_line(line: &TextLine) -> Vec<WordRun> {
    let centre = |area: BoundingBox| (area.x + area.w / 2.0, area.y + area.h / 2.0);
    let runs = line.words.chunk_by(|a, b| are_joined(a.bounding_box, b.bounding_box));
    let runs = runs.filter_map(|run| {
        let (first, last) = (centre(run.first()?.bounding_box), centre(run.last()?.bounding_box));
        let width = last.0 - first.0;
        let fall = (last.1 - first.1) / width;
        let run = WordRun { x: (first.0 + last.0) / 2.0, y: (first.1 + last.1) / 2.0, fall };
        (width > 0.0 && fall.is_finite()).then_some(run)
    });
    runs.collect()
}

fn are_joined(a: BoundingBox, b: BoundingBox) -> bool {
    b.x - a.right() < PARTED * a.h.min(b.h)
}

/// How much the fall changes per unit along one side of the page, between the halves of its runs.
fn change_along(runs: &mut [WordRun], place: impl Fn(&WordRun) -> f32, length: f32) -> Option<f32> {
    runs.sort_by(|a, b| place(a).total_cmp(&place(b)));
    let (near, far) = runs.split_at_checked(runs.len() / 2)?;
    let way = middle_of(far.iter().map(&place))? - middle_of(near.iter().map(&place))?;
    let change =
        middle_of(far.iter().map(|run| run.fall))? - middle_of(near.iter().map(|run| run.fall))?;
    let most = MAX_CHANGE / length.max(1.0);
    Some(if way > 0.0 { (change / way).clamp(-most, most) } else { 0.0 })
}

fn middle_of(values: impl Iterator<Item = f32>) -> Option<f32> {
    let mut values: Vec<f32> = values.collect();
    values.sort_by(f32::total_cmp);
    values.get(values.len() / 2).copied()
}
