//! The headings of a table of lines: which columns it has, and which one a number stands under.

use std::ops::Range;

use super::super::layout::{Cell, Layout};
use super::super::spots::Spots;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::extract::rules) enum Column {
    Description,
    Quantity,
    UnitPrice,
    Amount,
    Other,
}

impl Column {
    /// The column by which a row of a table is told from a wrapped description: the amounts, or
    /// the quantities where the entries have none.
    pub(in crate::extract::rules) fn key_of(fields: &[&str]) -> Option<Self> {
        match () {
            () if fields.contains(&"amount") => Some(Self::Amount),
            () if fields.contains(&"quantity") => Some(Self::Quantity),
            () => None,
        }
    }
}

const COLUMNS: [(Column, &str); 5] = [
    (Column::Description, "column_description"),
    (Column::Quantity, "column_quantity"),
    (Column::UnitPrice, "column_unit_price"),
    (Column::Amount, "column_amount"),
    (Column::Other, "column_other"),
];

/// Width of a last column whose heading is not known.
const LAST_COLUMN: f32 = 120.0;

#[derive(Debug, Clone)]
pub(super) struct Heading {
    pub(super) column: Column,
    pub(super) left: f32,
    pub(super) right: f32,
}

#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) rows: Range<usize>,
    pub(super) headings: Vec<Heading>,
}

impl Header {
    fn has(&self, column: Column) -> bool {
        self.headings.iter().any(|heading| heading.column == column)
    }

    /// A heading that is not known stands over the last column: what is right of all others is the
    /// amount.
    fn add_amount(&mut self, main: f32) {
        if self.has(Column::Amount) || !self.has(Column::Quantity) {
            return;
        }
        // What stands beyond the main row is a piece of a heading over several lines.
        self.headings.retain(|heading| heading.left < main);
        let (left, right) = (main + 1.0, main + LAST_COLUMN);
        self.headings.push(Heading { column: Column::Amount, left, right });
    }

    /// Distinct columns that matter.
    pub(super) fn worth(&self) -> usize {
        let matter = [Column::Description, Column::Quantity, Column::UnitPrice, Column::Amount];
        matter.into_iter().filter(|column| self.has(*column)).count()
    }
}

pub(super) fn headers(spots: &Spots<'_>, key: Column) -> Vec<Header> {
    let mut found: Vec<Header> = Vec::new();
    for row in 0..spots.layout.rows.len() {
        if found.last().is_some_and(|header| header.rows.contains(&row)) {
            continue;
        }
        let mut headings = headings_of(spots, row);
        let header = Header { rows: row..row + 1, headings: headings.clone() };
        let enough = header.worth() >= 2 && (header.has(key) || header.has(Column::UnitPrice));
        let numbers = spots
            .layout
            .row(row)
            .iter()
            .any(|cell| cell.words.iter().any(|w| w.starts_with(|c: char| c.is_ascii_digit())));
        if !enough || numbers {
            continue;
        }
        let main = headings.iter().map(|heading| heading.right).fold(0.0, f32::max);
        // Headings over two or three lines.
        let mut rows = row..row + 1;
        for near in [row.wrapping_sub(1), row.wrapping_sub(2), row + 1] {
            if close_rows(spots.layout, row, near) && !has_number(spots.layout.row(near)) {
                let more = headings_of(spots, near).into_iter().filter(|heading| {
                    !headings.iter().any(|own| heading.left < own.right && own.left < heading.right)
                });
                let more: Vec<Heading> = more.collect();
                headings.extend(more);
                if near > row {
                    rows.end = near + 1;
                }
            }
        }
        headings.sort_by(|a, b| a.left.total_cmp(&b.left));
        let mut header = Header { rows, headings };
        if key == Column::Amount {
            header.add_amount(main);
        }
        found.push(header);
    }
    found
}

fn close_rows(layout: &Layout, row: usize, near: usize) -> bool {
    match (layout.row(row).first(), layout.row(near).first()) {
        (Some(a), Some(b)) => a.page == b.page && (a.middle() - b.middle()).abs() < 2.6 * a.area.h,
        _ => false,
    }
}

pub(super) fn has_number(row: &[Cell]) -> bool {
    row.iter().flat_map(|cell| &cell.words).any(|word| word.contains(|c: char| c.is_ascii_digit()))
}

fn headings_of(spots: &Spots<'_>, row: usize) -> Vec<Heading> {
    let range = spots.layout.rows.get(row).cloned().unwrap_or_default();
    let mut headings: Vec<Heading> = Vec::new();
    for (column, field) in COLUMNS {
        for spot in spots.within(range.clone()).filter(|spot| spot.field == field) {
            let Some(cell) = spots.cell(spot) else { continue };
            let boxes = cell.boxes.get(spot.words.clone()).unwrap_or_default();
            let Some((first, last)) = boxes.first().zip(boxes.last()) else { continue };
            let (left, right) = (first.x, last.right());
            if headings.iter().any(|other| left < other.right && other.left < right) {
                continue;
            }
            headings.push(Heading { column, left, right });
        }
    }
    headings
}

/// Where the description begins: headings are often centred over it, so halfway from the column
/// before, or at the margin.
pub(super) fn text_start(header: &Header) -> f32 {
    let Some(own) = description(header) else { return 0.0 };
    let before = header.headings.iter().filter(|heading| heading.right < own.left);
    before.map(|heading| f32::midpoint(heading.right, own.left)).fold(0.0, f32::max)
}

pub(super) fn description(header: &Header) -> Option<&Heading> {
    header.headings.iter().find(|heading| heading.column == Column::Description)
}

/// The column whose heading overlaps or is nearest; the description reaches to its right.
pub(super) fn nearest(header: &Header, left: f32, right: f32) -> Option<(Column, f32)> {
    let distance = |heading: &Heading| {
        let gap = (heading.left - right).max(left - heading.right).max(0.0);
        let edges = (heading.right - right).abs().min((heading.left - left).abs());
        gap * 4.0 + edges
    };
    let numeric = header.headings.iter().filter(|heading| heading.column != Column::Description);
    let best = numeric.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let text = description(header).filter(|own| {
        let begins = left >= own.left - 1.0 && left < own.right.max(own.left + 1.0);
        begins || (left > own.left && best.left > right + 40.0 && best.left > own.left)
    });
    Some(text.map_or((best.column, distance(best)), |own| (own.column, 0.0)))
}
