//! Line items: a header row of known columns, and the rows under it.
//!
//! Numbers go to the column they stand under, text left of the first of those is the description;
//! a row without an amount continues the description of the one before.

use std::ops::Range;

use rust_decimal::Decimal;

use super::layout::{Cell, Layout};
use super::spots::Spots;
use crate::notation::number::{self, Amount, Mark};

/// One line, as far as its columns were found.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Item {
    pub(super) description: String,
    pub(super) quantity: Option<Decimal>,
    pub(super) unit_price: Option<Decimal>,
    pub(super) amount: Option<Decimal>,
    /// The amount is written as money, not as a mere number.
    money: bool,
    /// The column that every row has is filled.
    keyed: bool,
    pub(super) page: usize,
    pub(super) line: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Column {
    Description,
    Quantity,
    UnitPrice,
    Amount,
    Other,
}

impl Column {
    /// The column by which a row of a table is told from a wrapped description: the amounts, or
    /// the quantities where the entries have none.
    pub(super) fn key_of(fields: &[&str]) -> Option<Self> {
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

/// Lines of wrapped description that are kept.
const LONGEST_DESCRIPTION: usize = 400;

/// Width of a last column whose heading is not known.
const LAST_COLUMN: f32 = 120.0;

#[derive(Debug, Clone)]
struct Heading {
    column: Column,
    left: f32,
    right: f32,
}

#[derive(Debug, Clone)]
struct Header {
    rows: Range<usize>,
    headings: Vec<Heading>,
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
    fn worth(&self) -> usize {
        let matter = [Column::Description, Column::Quantity, Column::UnitPrice, Column::Amount];
        matter.into_iter().filter(|column| self.has(*column)).count()
    }
}

/// `key` is the column that every row has.
pub(super) fn find(spots: &Spots<'_>, mark: Option<Mark>, key: Column) -> Vec<Item> {
    let headers = headers(spots, key);
    let Some(most) = headers.iter().map(Header::worth).max() else { return Vec::new() };
    let mut items = Vec::new();
    let mut done = 0;
    for (at, header) in headers.iter().enumerate() {
        // The same table goes on under a repeated header; a table of taxes has fewer columns.
        if header.worth() < most || header.rows.start < done {
            continue;
        }
        let end = headers.get(at + 1).map_or(spots.layout.rows.len(), |next| next.rows.start);
        done = read_table(spots, header, end, (mark, key), &mut items);
    }
    // A page number under the column of amounts is no amount where the others are money.
    let money = items.iter().any(|item| item.money) && key == Column::Amount;
    items.retain(|item| item.keyed && (item.money || !money));
    items
}

fn headers(spots: &Spots<'_>, key: Column) -> Vec<Header> {
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

fn has_number(row: &[Cell]) -> bool {
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

/// Reads rows up to the totals; says where it stopped.
fn read_table(
    spots: &Spots<'_>,
    header: &Header,
    end: usize,
    (mark, key): (Option<Mark>, Column),
    items: &mut Vec<Item>,
) -> usize {
    let layout = spots.layout;
    let page = layout.row(header.rows.start).first().map_or(0, |cell| cell.page);
    let before = items.len();
    for row in header.rows.end..end {
        let cells = layout.row(row);
        let on_page = cells.first().is_some_and(|cell| cell.page == page);
        if !on_page || (ends_table(spots, row) && (items.len() > before || is_totals(spots, row))) {
            return row;
        }
        let mut read = read_row(cells, header, mark);
        let keyed = if key == Column::Amount { read.amount } else { read.quantity };
        read.keyed = keyed.is_some();
        if read.keyed {
            items.push(read);
            continue;
        }
        let previous = row.checked_sub(1).map(|above| layout.row(above)).unwrap_or_default();
        let near = cells
            .first()
            .zip(previous.first())
            .is_some_and(|(below, above)| below.area.y - above.area.bottom() < 1.2 * above.area.h);
        let Some(item) = items.get_mut(before..).and_then(<[Item]>::last_mut) else { continue };
        let fits = item.description.len() + read.description.len() < LONGEST_DESCRIPTION;
        if near && fits && !read.description.is_empty() {
            item.description =
                format!("{} {}", item.description, read.description).trim().to_owned();
        }
    }
    end
}

/// Whether a row belongs to what follows a table.
fn ends_table(spots: &Spots<'_>, row: usize) -> bool {
    let range = spots.layout.rows.get(row).cloned().unwrap_or_default();
    let totals = ["subtotal", "vat_amount", "total", "payable"];
    spots.within(range.clone()).any(|spot| {
        let heading = spot.words.start == 0;
        let first = spots.cell(spot).is_some_and(|cell| {
            // A tax in its own column of a line is no end.
            spot.cell == range.start || cell.words.len() > spot.words.len() || spot.strong
        });
        heading && first && totals.contains(&spot.field.as_str())
    })
}

fn is_totals(spots: &Spots<'_>, row: usize) -> bool {
    spots.layout.row(row).len() <= 2 && has_number(spots.layout.row(row))
}

fn read_row(cells: &[Cell], header: &Header, mark: Option<Mark>) -> Item {
    let mut item = Item::default();
    if let Some(cell) = cells.first() {
        (item.page, item.line) = (cell.page, cell.line);
    }
    let text_end = header
        .headings
        .iter()
        .filter(|heading| {
            matches!(heading.column, Column::Quantity | Column::UnitPrice | Column::Amount)
        })
        .map(|heading| heading.left)
        .filter(|left| description(header).is_none_or(|own| *left > own.left))
        .fold(f32::MAX, f32::min);
    let mut taken: Vec<(Column, f32)> = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    for cell in cells {
        let all = cell.slice(0..cell.words.len());
        let amounts = number::find(&all, mark);
        for (index, word) in all.iter().enumerate() {
            let left = cell.boxes.get(index).map_or(0.0, |area| area.x);
            let amount = amounts.iter().find(|amount| amount.words.start == index);
            let within = amounts.iter().any(|amount| amount.words.contains(&index));
            let under = amount.and_then(|amount| Some((amount, column_of(cell, amount, header)?)));
            if let Some((amount, (column, distance))) = under {
                place(&mut item, &mut taken, column, amount, distance);
                if column != Column::Description {
                    continue;
                }
            }
            let start = text_start(header);
            if left >= start && left < text_end && (!within || is_text(cell, index, header)) {
                words.push(word);
            }
        }
    }
    item.description = words.join(" ").trim_matches(['-', ':', ',', ' ']).to_owned();
    item
}

/// Where the description begins: headings are often centred over it, so halfway from the column
/// before, or at the margin.
fn text_start(header: &Header) -> f32 {
    let Some(own) = description(header) else { return 0.0 };
    let before = header.headings.iter().filter(|heading| heading.right < own.left);
    before.map(|heading| f32::midpoint(heading.right, own.left)).fold(0.0, f32::max)
}

fn description(header: &Header) -> Option<&Heading> {
    header.headings.iter().find(|heading| heading.column == Column::Description)
}

/// Whether a number stands in the description rather than under a column of numbers.
fn is_text(cell: &Cell, index: usize, header: &Header) -> bool {
    cell.boxes
        .get(index)
        .and_then(|area| nearest(header, area.x, area.right()))
        .is_some_and(|(column, _)| column == Column::Description)
}

fn column_of(cell: &Cell, amount: &Amount, header: &Header) -> Option<(Column, f32)> {
    let boxes = cell.boxes.get(amount.words.clone())?;
    let (first, last) = boxes.first().zip(boxes.last())?;
    let (column, distance) = nearest(header, first.x, last.right())?;
    Some((if amount.percent { Column::Other } else { column }, distance))
}

/// The column whose heading overlaps or is nearest; the description reaches to its right.
fn nearest(header: &Header, left: f32, right: f32) -> Option<(Column, f32)> {
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

/// Keeps the number that stands nearest under its heading; of equals the rightmost.
fn place(
    item: &mut Item,
    taken: &mut Vec<(Column, f32)>,
    column: Column,
    amount: &Amount,
    distance: f32,
) {
    let slot = match column {
        Column::Quantity => &mut item.quantity,
        Column::UnitPrice => &mut item.unit_price,
        Column::Amount => &mut item.amount,
        Column::Description | Column::Other => return,
    };
    if taken.iter().any(|(other, nearest)| *other == column && *nearest < distance) {
        return;
    }
    *slot = Some(amount.value);
    if column == Column::Amount {
        item.money = amount.decimals >= 2 || amount.currency.is_some();
    }
    taken.push((column, distance));
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::transcript;
    use super::*;
    use crate::config::KindsConfig;
    use crate::kinds::Kinds;

    fn read(drawings: &[&str]) -> Vec<String> {
        let kinds = Kinds::load(&KindsConfig::default()).unwrap();
        let layout = Layout::new(&transcript(drawings));
        let spots = Spots::new(&layout, &kinds.get("invoice").unwrap().labels);
        let words = layout.cells.iter().flat_map(|cell| cell.words.iter().map(String::as_str));
        let text = |value: Option<Decimal>| value.map_or("-".to_owned(), |v| v.to_string());
        let items = find(&spots, Mark::of(words), Column::Amount).into_iter();
        items
            .map(|item| {
                let numbers = [item.quantity, item.unit_price, item.amount].map(text).join(" ");
                format!("{}: {numbers}", item.description)
            })
            .collect()
    }

    #[test]
    fn rows_are_read_under_their_columns() {
        let drawing = "\
Pos  Beschreibung            Menge   Einzelpreis     Betrag
1    Trennblätter A4            20          9,90     198,00
     aus Karton
2    Joghurt Banane             50          5,50     275,00

                                   Summe netto       473,00";
        assert_eq!(
            read(&[drawing]),
            ["Trennblätter A4 aus Karton: 20 9.90 198.00", "Joghurt Banane: 50 5.50 275.00"]
        );
    }

    #[test]
    fn a_table_goes_on_under_its_repeated_header() {
        let one =
            "Description        Qty    Price    Amount\nApples               1     2.00      2.00";
        let two = "Description        Qty    Price    Amount\nPears                2     3.00      6.00\n\
                   Total                                8.00";
        assert_eq!(read(&[one, two]), ["Apples: 1 2.00 2.00", "Pears: 2 3.00 6.00"]);
    }

    #[test]
    fn a_table_of_taxes_is_no_list_of_lines() {
        assert!(read(&["Tax     Base    Amount\n20.0   100.00     20.00"]).is_empty());
    }
}
