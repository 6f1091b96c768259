//! Figures on pages with a sound text layer: images, and drawings of many parts close together.
//! Precision over recall.
//!
//! Not covered: drawings of straight lines alone (tables and forms are), areas that cover most of
//! the page or have text on them (backgrounds), areas within the ends of the page (letterheads),
//! codes, invisible drawings, and drawings in a font of symbols. Two figures that touch are one.

use std::collections::BTreeMap;

use hayro::kurbo::{BezPath, PathEl, Point, Rect};

use crate::page::PageRaster;
use docmill_core::model::{BoundingBox, PageCode, PageMark, PageMarkKind, TextLine};

/// Least sides of an image and of a drawing, in points.
const MIN_IMAGE_POINTS: f64 = 54.0;
const MIN_DRAWING_POINTS: (f64, f64) = (72.0, 54.0);
/// Share of the page that no figure covers.
const MAX_PAGE_SHARE: f64 = 0.85;
/// Share of the height at either end of the page that is its letterhead or foot; by the figure's
/// middle.
const PAGE_END_SHARE: f64 = 0.125;
/// Share of a figure that may be under words; an image has fewer than a diagram.
const MAX_IMAGE_WORDS_SHARE: f64 = 0.1;
const MAX_DRAWING_WORDS_SHARE: f64 = 0.15;
/// Curves and slanted lines that make a drawing, and bars that make a chart.
const MIN_STROKES: usize = 10;
const MIN_BARS: usize = 4;
/// Lengths among these bars that differ.
const MIN_BAR_LENGTHS: usize = 3;
/// Curves that a frame with round corners has at most, each shorter than this share of its side.
const MAX_CORNERS: usize = 8;
const MAX_CORNER_SHARE: f64 = 0.25;
/// White between parts of one drawing, in points; images touch.
const MAX_GAP_POINTS: f64 = 8.0;
/// Bars are darker than the shades behind fields and rows.
const MAX_BAR_GREY: u8 = 200;
/// A shape that is thinner, in points, is a rule.
const MAX_RULE_POINTS: f64 = 3.0;
/// Side of the grid cells that group parts, in points.
const CELL_POINTS: f64 = 4.0;
/// Squares of a side at most: larger pages have larger squares.
const MAX_CELLS: f64 = 512.0;
/// Shapes of a page; one with more is a map or a plan and has no figures.
const MAX_SHAPES: usize = 50_000;
/// Difference of greys that a figure has at least, of 255.
const MIN_GREY_RANGE: u8 = 24;

/// Role of a shape in a drawing.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PartForm {
    Image,
    /// A filled rectangle that is dark.
    Bar,
    /// So many curves and slanted lines.
    Strokes(usize),
}

#[derive(Debug, Clone, Copy)]
struct FigurePart {
    area: Rect,
    form: PartForm,
}

/// Drawn parts of a page that may belong to a figure.
#[derive(Debug, Default)]
pub(crate) struct DrawnFigures {
    images: Vec<FigurePart>,
    shapes: Vec<FigurePart>,
    is_full: bool,
}

impl DrawnFigures {
    /// Takes in a shape of this box on the page, of this least shade if it is filled.
    pub(crate) fn note_shape(&mut self, area: Rect, path: Option<&BezPath>, fill: Option<u8>) {
        let strokes = path.map_or(0, count_strokes);
        let is_bar = fill.is_some_and(|shade| shade < MAX_BAR_GREY)
            && area.width().min(area.height()) >= MAX_RULE_POINTS;
        let form = match strokes {
            0 if is_bar => PartForm::Bar,
            0 => return,
            strokes => PartForm::Strokes(strokes),
        };
        self.is_full |= self.shapes.len() >= MAX_SHAPES;
        if !self.is_full {
            self.shapes.push(FigurePart { area, form });
        }
    }

    /// Takes in an image of this box on the page.
    pub(crate) fn note_image(&mut self, area: Rect) {
        self.is_full |= self.images.len() >= MAX_SHAPES;
        if !self.is_full {
            self.images.push(FigurePart { area, form: PartForm::Image });
        }
    }

    /// Where figures may be on a page of this size, the images first.
    pub(crate) fn list_areas(&self, page: Rect) -> Vec<DrawnArea> {
        if self.is_full || page.area() <= 0.0 {
            return Vec::new();
        }
        let images = group_parts(&self.images, page, 1.0).into_iter().map(|group| group.area);
        let images = images.map(|area| DrawnArea { area, is_image: true });
        let drawings = group_parts(&self.shapes, page, MAX_GAP_POINTS)
            .into_iter()
            .filter(PartGroup::is_drawing);
        let drawings = drawings.map(|group| DrawnArea { area: group.area, is_image: false });
        images.chain(drawings).filter(|place| place.is_possible(page)).collect()
    }
}

/// Where a figure may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DrawnArea {
    area: Rect,
    is_image: bool,
}

impl DrawnArea {
    fn is_possible(&self, page: Rect) -> bool {
        let (width, height) = (self.area.width(), self.area.height());
        let (least_width, least_height) =
            if self.is_image { (MIN_IMAGE_POINTS, MIN_IMAGE_POINTS) } else { MIN_DRAWING_POINTS };
        let end = PAGE_END_SHARE * page.height();
        let middle = self.area.center().y;
        let is_inside = middle > page.y0 + end && middle < page.y1 - end;
        width >= least_width
            && height >= least_height
            && self.area.area() < MAX_PAGE_SHARE * page.area()
            && is_inside
    }

    fn has_text(&self, lines: &[TextLine]) -> bool {
        let words =
            lines.iter().flat_map(|line| &line.words).map(|word| rect_of(word.bounding_box));
        let covered: f64 = words.map(|word| word.intersect(self.area).area()).sum();
        let most = if self.is_image { MAX_IMAGE_WORDS_SHARE } else { MAX_DRAWING_WORDS_SHARE };
        covered > most * self.area.area()
    }
}

/// The figures among these places, in points; `glance` is the page, drawn coarsely.
pub(crate) fn find_figures(
    places: &[DrawnArea],
    glance: &PageRaster,
    lines: &[TextLine],
    codes: &[PageCode],
) -> Vec<PageMark> {
    let mut found: Vec<Rect> = Vec::new();
    for place in places {
        let area = place.area;
        let is_known = found.iter().any(|other| shares_most(*other, area));
        let is_code = codes.iter().any(|code| shares_most(rect_of(code.bounding_box), area));
        let is_figure = !is_known && !is_code && !place.has_text(lines) && is_seen(glance, area);
        if is_figure && found.len() < PageMark::MAX_PER_PAGE {
            found.push(area);
        }
    }
    found.sort_by(|one, other| one.y0.total_cmp(&other.y0).then(one.x0.total_cmp(&other.x0)));
    found
        .into_iter()
        .map(|area| PageMark { kind: PageMarkKind::Figure, bounding_box: box_of(area) })
        .collect()
}

/// Whether one lies mostly within the other.
fn shares_most(one: Rect, other: Rect) -> bool {
    let shared = one.intersect(other).area();
    shared > 0.5 * one.area().min(other.area())
}

/// Whether the page shows more than one shade there.
fn is_seen(glance: &PageRaster, area: Rect) -> bool {
    let scale = f64::from(glance.dpi) / 72.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let pixel = |points: f64, side: u32| (points * scale).clamp(0.0, f64::from(side)) as usize;
    let (left, right) = (pixel(area.x0, glance.width), pixel(area.x1, glance.width));
    let (top, bottom) = (pixel(area.y0, glance.height), pixel(area.y1, glance.height));
    let width = usize::try_from(glance.width).unwrap_or(usize::MAX).max(1);
    let rows = glance.pixels.chunks(width).take(bottom).skip(top);
    let (mut least, mut most) = (u8::MAX, u8::MIN);
    for row in rows {
        for value in row.get(left..right).unwrap_or_default() {
            (least, most) = (least.min(*value), most.max(*value));
        }
    }
    most.saturating_sub(least) >= MIN_GREY_RANGE
}

/// Parts that lie close together.
struct PartGroup {
    area: Rect,
    strokes: usize,
    bars: Vec<Rect>,
}

impl PartGroup {
    fn add(&mut self, part: FigurePart) {
        self.area = if self.area.area() > 0.0 { self.area.union(part.area) } else { part.area };
        match part.form {
            PartForm::Image => {}
            PartForm::Bar => self.bars.push(part.area),
            PartForm::Strokes(strokes) => self.strokes = self.strokes.saturating_add(strokes),
        }
    }

    fn is_drawing(&self) -> bool {
        self.strokes >= MIN_STROKES
            || self.is_chart(|bar| (bar.y1, bar.height()))
            || self.is_chart(|bar| (bar.x0, bar.width()))
    }

    /// Whether bars share a baseline and differ in length.
    fn is_chart(&self, end_and_length: impl Fn(&Rect) -> (f64, f64)) -> bool {
        let mut bars: Vec<(f64, f64)> = self.bars.iter().map(end_and_length).collect();
        bars.sort_by(|one, other| one.0.total_cmp(&other.0));
        bars.chunk_by(|one, next| next.0 - one.0 < 1.0).any(|row| {
            let mut lengths: Vec<f64> = row.iter().map(|bar| bar.1).collect();
            lengths.sort_by(f64::total_cmp);
            let differing = lengths.chunk_by(|one, next| next - one < 2.0).count();
            row.len() >= MIN_BARS && differing >= MIN_BAR_LENGTHS
        })
    }
}

/// Lines that are neither level nor upright, and curves that are not the corners of a frame.
fn count_strokes(path: &BezPath) -> usize {
    let area = path.control_box();
    let corner = MAX_CORNER_SHARE * area.width().max(area.height());
    let mut at = Point::ORIGIN;
    let (mut slanted, mut curves, mut is_frame) = (0, 0, true);
    for element in path.elements() {
        match *element {
            PathEl::MoveTo(to) => at = to,
            PathEl::LineTo(to) => {
                slanted += usize::from((to.x - at.x).abs() > 0.5 && (to.y - at.y).abs() > 0.5);
                at = to;
            }
            PathEl::QuadTo(_, to) | PathEl::CurveTo(_, _, to) => {
                curves += 1;
                is_frame &= (to - at).hypot() < corner;
                at = to;
            }
            PathEl::ClosePath => {}
        }
    }
    if is_frame && curves <= MAX_CORNERS { slanted } else { slanted + curves }
}

/// The squares of a page, with how many parts lie over each.
struct CellGrid {
    page: Rect,
    cell: f64,
    across: usize,
    down: usize,
}

impl CellGrid {
    fn over(page: Rect) -> Self {
        let cell = CELL_POINTS.max(page.width().max(page.height()) / MAX_CELLS);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "to 512")]
        let [across, down] = [page.width(), page.height()]
            .map(|side| (side / cell).ceil().clamp(1.0, MAX_CELLS) as usize);
        Self { page, cell, across, down }
    }

    /// Column and row of a point, on the page's edge if it is beyond.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the squares of a page"
    )]
    fn cell_at(&self, place: Point) -> (usize, usize) {
        let [column, row] = [place.x - self.page.x0, place.y - self.page.y0]
            .map(|length| (length / self.cell).clamp(0.0, MAX_CELLS) as usize);
        (column.min(self.across - 1), row.min(self.down - 1))
    }

    /// For each square the number of its group, 0 for none; parts reach so far around themselves.
    /// Each part costs the same, however large.
    fn label(&self, parts: &[FigurePart], reach: f64) -> Vec<usize> {
        let wide = self.across + 1;
        let mut change = vec![0_i64; wide * (self.down + 1)];
        for part in parts {
            let wider = part.area.inflate(reach, reach);
            let (left, top) = self.cell_at(wider.origin());
            let (right, bottom) = self.cell_at(Point::new(wider.x1, wider.y1));
            let corners = [
                (left, top, 1),
                (right + 1, top, -1),
                (left, bottom + 1, -1),
                (right + 1, bottom + 1, 1),
            ];
            for (column, row, by) in corners {
                if let Some(place) = change.get_mut(row * wide + column) {
                    *place += by;
                }
            }
        }
        let mut labels = vec![0; self.across * self.down];
        let mut above = vec![0_i64; wide];
        for (row, line) in change.chunks(wide).take(self.down).enumerate() {
            let mut sum = 0;
            for (column, (by, above)) in line.iter().zip(&mut above).take(self.across).enumerate() {
                sum += by;
                *above += sum;
                if let Some(label) = labels.get_mut(row * self.across + column) {
                    *label = usize::from(*above > 0);
                }
            }
        }
        self.number_groups(&mut labels);
        labels
    }

    /// Numbers the groups of touching cells, from 2 on; 1 marks a cell without a number.
    fn number_groups(&self, labels: &mut [usize]) {
        let mut next = 2;
        for start in 0..labels.len() {
            if labels.get(start) != Some(&1) {
                continue;
            }
            let mut open = vec![start];
            while let Some(at) = open.pop() {
                match labels.get_mut(at) {
                    Some(label) if *label == 1 => *label = next,
                    _ => continue,
                }
                let column = at % self.across;
                let beside = [
                    column.checked_sub(1).map(|_| at - 1),
                    (column + 1 < self.across).then_some(at + 1),
                ];
                let above = at.checked_sub(self.across);
                open.extend(
                    beside.into_iter().flatten().chain(above).chain(Some(at + self.across)),
                );
            }
            next += 1;
        }
    }
}

/// Groups of parts that are no farther apart than `gap`, without parts that cover the page.
fn group_parts(parts: &[FigurePart], page: Rect, gap: f64) -> Vec<PartGroup> {
    let smaller = parts.iter().filter(|part| part.area.area() < MAX_PAGE_SHARE * page.area());
    let parts: Vec<FigurePart> = smaller.copied().collect();
    if parts.is_empty() {
        return Vec::new();
    }
    let grid = CellGrid::over(page);
    let labels = grid.label(&parts, gap / 2.0);
    let mut groups: BTreeMap<usize, PartGroup> = BTreeMap::new();
    for part in parts {
        let (column, row) = grid.cell_at(part.area.center());
        let label = labels.get(row * grid.across + column).copied().unwrap_or_default();
        let group = groups.entry(label).or_insert_with(|| PartGroup {
            area: Rect::ZERO,
            strokes: 0,
            bars: Vec::new(),
        });
        group.add(part);
    }
    groups.into_values().collect()
}

fn rect_of(BoundingBox { x, y, w, h }: BoundingBox) -> Rect {
    let (x, y) = (f64::from(x), f64::from(y));
    Rect::new(x, y, x + f64::from(w), y + f64::from(h))
}

#[expect(clippy::cast_possible_truncation, reason = "points of a page")]
fn box_of(area: Rect) -> BoundingBox {
    let (x, y) = (area.x0 as f32, area.y0 as f32);
    BoundingBox { x, y, w: area.width() as f32, h: area.height() as f32 }
}

#[cfg(test)]
mod tests;
