//! The headings of a table of lines: its columns, and the column of a number.

use std::ops::Range;

use super::super::label_matches::LabelMatches;
use super::super::layout::{CellLayout, TextCell};
use crate::rules::characters::has_digit;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::rules) enum ItemColumn {
    Description,
    Quantity,
    UnitPrice,
    Amount,
    ArticleNumber,
    Unit,
    TaxRate,
    Other,
}

impl ItemColumn {
    /// The column by which a row of a table is distinguished from a wrapped description: the
    /// amounts, or the quantities where the entries have none.
    pub(in crate::rules) fn key_column(fields: &[&str]) -> Option<Self> {
        match () {
            // Without words or a quantity they are no lines: taxes by rate, or charges.
            () if !fields.contains(&"description") && !fields.contains(&"quantity") => None,
            () if fields.contains(&"amount") => Some(Self::Amount),
            () if fields.contains(&"quantity") => Some(Self::Quantity),
            () => None,
        }
    }
}

const COLUMNS: [(ItemColumn, &str); 8] = [
    (ItemColumn::Description, "column_description"),
    (ItemColumn::Quantity, "column_quantity"),
    (ItemColumn::UnitPrice, "column_unit_price"),
    (ItemColumn::Amount, "column_amount"),
    (ItemColumn::ArticleNumber, "column_article_number"),
    (ItemColumn::Unit, "column_unit"),
    (ItemColumn::TaxRate, "column_tax_rate"),
    (ItemColumn::Other, "column_other"),
];

/// Width of a last column with an unknown heading, in points.
const LAST_COLUMN: f32 = 120.0;

#[derive(Debug, Clone)]
pub(super) struct ColumnHeading {
    pub(super) column: ItemColumn,
    pub(super) left: f32,
    pub(super) right: f32,
}

#[derive(Debug, Clone)]
pub(super) struct TableHeader {
    pub(super) rows: Range<usize>,
    pub(super) headings: Vec<ColumnHeading>,
}

impl TableHeader {
    fn has_column(&self, column: ItemColumn) -> bool {
        self.headings.iter().any(|heading| heading.column == column)
    }

    /// An unknown heading over the last column: the text right of all others is the amount.
    fn add_amount_column(&mut self, main: f32) {
        if self.has_column(ItemColumn::Amount) || !self.has_column(ItemColumn::Quantity) {
            return;
        }
        // Text beyond the main row is part of a heading over several lines.
        self.headings.retain(|heading| heading.left < main);
        let (left, right) = (main + 1.0, main + LAST_COLUMN);
        self.headings.push(ColumnHeading { column: ItemColumn::Amount, left, right });
    }

    /// Distinct columns that matter.
    pub(super) fn count_known_columns(&self) -> usize {
        let matter = [
            ItemColumn::Description,
            ItemColumn::Quantity,
            ItemColumn::UnitPrice,
            ItemColumn::Amount,
        ];
        matter.into_iter().filter(|column| self.has_column(*column)).count()
    }
}

pub(super) fn find_headers(matches: &LabelMatches<'_>, key: ItemColumn) -> Vec<TableHeader> {
    let mut found: Vec<TableHeader> = Vec::new();
    for row in 0..matches.layout.rows.len() {
        let mut headings = find_headings(matches, row);
        let header = TableHeader { rows: row..row + 1, headings: headings.clone() };
        let enough = header.count_known_columns() >= 2
            && (header.has_column(key) || header.has_column(ItemColumn::UnitPrice));
        let numbers = matches
            .layout
            .row_cells(row)
            .iter()
            .any(|cell| cell.words.iter().any(|w| w.starts_with(|c: char| c.is_ascii_digit())));
        if !enough || numbers {
            continue;
        }
        let main = headings.iter().map(|heading| heading.right).fold(0.0, f32::max);
        // Headings over two or three lines.
        let rows = row..row + 1;
        for near in [row.wrapping_sub(1), row.wrapping_sub(2), row + 1] {
            if are_rows_close(matches.layout, row, near)
                && !has_number(matches.layout.row_cells(near))
            {
                let more = find_headings(matches, near).into_iter().filter(|heading| {
                    !headings.iter().any(|own| heading.left < own.right && own.left < heading.right)
                });
                let more: Vec<ColumnHeading> = more.collect();
                headings.extend(more);
            }
        }
        headings.sort_by(|a, b| a.left.total_cmp(&b.left));
        let mut header = TableHeader { rows, headings };
        if key == ItemColumn::Amount {
            header.add_amount_column(main);
        }
        found.push(header);
    }
    found
}

fn are_rows_close(layout: &CellLayout, row: usize, near: usize) -> bool {
    match (layout.row_cells(row).first(), layout.row_cells(near).first()) {
        (Some(a), Some(b)) => {
            a.page == b.page && (a.middle_y() - b.middle_y()).abs() < 2.6 * a.area.h
        }
        _ => false,
    }
}

pub(super) fn has_number(row: &[TextCell]) -> bool {
    row.iter().flat_map(|cell| &cell.words).any(|word| has_digit(word))
}

fn find_headings(matches: &LabelMatches<'_>, row: usize) -> Vec<ColumnHeading> {
    let range = matches.layout.rows.get(row).cloned().unwrap_or_default();
    let mut headings: Vec<ColumnHeading> = Vec::new();
    for (column, field) in COLUMNS {
        for label_match in
            matches.in_cells(range.clone()).filter(|label_match| label_match.field == field)
        {
            let Some(cell) = matches.cell_of(label_match) else { continue };
            let boxes = cell.boxes.get(label_match.words.clone()).unwrap_or_default();
            let Some((first, last)) = boxes.first().zip(boxes.last()) else { continue };
            let (left, right) = (first.x, last.right());
            if headings.iter().any(|other| left < other.right && other.left < right) {
                continue;
            }
            headings.push(ColumnHeading { column, left, right });
        }
    }
    headings
}

/// Where the description begins: headings are often centred over it, so halfway from the column
/// before, or at the margin.
pub(super) fn text_start(header: &TableHeader) -> f32 {
    let Some(own) = description_heading(header) else { return 0.0 };
    let before = header.headings.iter().filter(|heading| heading.right < own.left);
    before.map(|heading| f32::midpoint(heading.right, own.left)).fold(0.0, f32::max)
}

pub(super) fn description_heading(header: &TableHeader) -> Option<&ColumnHeading> {
    header.headings.iter().find(|heading| heading.column == ItemColumn::Description)
}

/// Whether an extent is under the heading of a column.
pub(super) fn is_under(header: &TableHeader, column: ItemColumn, left: f32, right: f32) -> bool {
    let own = header.headings.iter().find(|heading| heading.column == column);
    own.is_some_and(|own| left < own.right && own.left < right)
}

/// The column whose heading overlaps or is nearest; the description reaches to its right.
pub(super) fn nearest_column(
    header: &TableHeader,
    left: f32,
    right: f32,
) -> Option<(ItemColumn, f32)> {
    let distance = |heading: &ColumnHeading| {
        let gap = (heading.left - right).max(left - heading.right).max(0.0);
        let edges = (heading.right - right).abs().min((heading.left - left).abs());
        gap * 4.0 + edges
    };
    let numeric =
        header.headings.iter().filter(|heading| heading.column != ItemColumn::Description);
    let best = numeric.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let text = description_heading(header).filter(|own| {
        let begins = left >= own.left - 1.0 && left < own.right.max(own.left + 1.0);
        begins || (left > own.left && best.left > right + 40.0 && best.left > own.left)
    });
    Some(text.map_or((best.column, distance(best)), |own| (own.column, 0.0)))
}
