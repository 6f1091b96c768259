//! XLSX: SpreadsheetML (ISO/IEC 29500-1 §18).
//!
//! Read are the stored values of visible cells, sheet by sheet. Hidden sheets, rows and columns,
//! white text on no ground and formats without signs are not. No formula is calculated.

use std::collections::{BTreeMap, HashMap, HashSet};

use docmill_core::config::LimitsConfig;
use docmill_core::model::PageNote;
use docmill_formats::xml::XmlNode;

use crate::cell_format::CellFormats;
use crate::content::{DocumentFlow, FlowBlock, FlowCell, FlowWriter, PaperKind};
use crate::error::OfficeError;
use crate::package::{MainPart, OfficePackage, part_of_kind};
use crate::tags::{all, attribute, child, number, own_text};

/// Columns of a sheet in the program that has the format: XFD is the last.
const MAX_COLUMNS: u32 = 16_384;

/// Reads a workbook by its main part.
pub(crate) fn read_workbook(
    mut package: OfficePackage<'_>,
    main: &MainPart,
    limits: &LimitsConfig,
) -> Result<DocumentFlow, OfficeError> {
    let relations = package.relations(&main.name)?;
    let tree = main.xml.parse_tree()?;
    let is_1904 = all(tree.root(), "workbookPr")
        .any(|it| matches!(attribute(it, "date1904"), Some("1" | "true")));
    let [strings, styles] = ["sharedStrings", "styles"].map(|kind| part_of_kind(&relations, kind));
    let strings = match strings.map(|part| package.read_xml(&part)).transpose()?.flatten() {
        Some(xml) => read_strings(xml.parse_tree()?.root()),
        None => Vec::new(),
    };
    let formats = match styles.map(|part| package.read_xml(&part)).transpose()?.flatten() {
        Some(xml) => CellFormats::read(xml.parse_tree()?.root(), is_1904),
        None => CellFormats::default(),
    };
    let mut reader = SheetReader { strings, formats, flow: FlowWriter::new(limits) };
    let (mut shown, mut has_hidden) = (Vec::new(), false);
    for sheet in all(tree.root(), "sheet") {
        if matches!(attribute(sheet, "state"), Some("hidden" | "veryHidden")) {
            has_hidden = true;
            continue;
        }
        let relation = attribute(sheet, "id").and_then(|id| relations.get(id));
        if let Some(part) = relation.and_then(|it| it.part.as_ref()) {
            shown.push((attribute(sheet, "name").unwrap_or_default(), part));
        }
    }
    if has_hidden {
        reader.flow.push(FlowBlock::Note(PageNote::HiddenCells))?;
    }
    let has_names = shown.len() > 1;
    for (name, part) in shown {
        reader.flow.push(FlowBlock::PageBreak)?;
        if has_names {
            reader.flow.push(FlowBlock::Heading { level: 2, text: name.to_owned() })?;
        }
        if let Some(xml) = package.read_xml(part)? {
            let tree = xml.parse_tree()?;
            reader.read_sheet(tree.root())?;
        }
        reader.read_drawings(&mut package, part)?;
    }
    Ok(reader.flow.finish(PaperKind::Sheet))
}

/// The texts that cells share, without phonetic ones.
fn read_strings(root: XmlNode<'_, '_>) -> Vec<String> {
    all(root, "si").map(rich_text).collect()
}

fn rich_text(node: XmlNode<'_, '_>) -> String {
    let texts = all(node, "t");
    let texts = texts.filter(|it| it.parent().is_none_or(|it| it.tag_name().name() != "rPh"));
    texts.map(own_text).collect()
}

/// Column and row of a reference such as `B7`, from 1.
fn parse_reference(text: &str) -> Option<(u32, u32)> {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (letters, digits) = text.split_at_checked(letters)?;
    let mut column = 0_u32;
    for letter in letters.bytes() {
        let value = u32::from(letter.to_ascii_uppercase() - b'A') + 1;
        column = column.checked_mul(26)?.checked_add(value)?;
    }
    ((1..=MAX_COLUMNS).contains(&column)).then_some((column, digits.parse().ok()?))
}

/// Whether a row or column is hidden, or has no size.
fn is_hidden_line(node: XmlNode<'_, '_>, size: &str) -> bool {
    matches!(attribute(node, "hidden"), Some("1" | "true"))
        || attribute(node, size).is_some_and(|it| it.parse() == Ok(0.0))
}

/// Hidden rows and columns of a sheet, and its merged cells.
#[derive(Default)]
struct SheetShape {
    hidden_columns: Vec<(u32, u32)>,
    /// By the first cell of a merged area: its last column.
    merged: HashMap<(u32, u32), u32>,
}

impl SheetShape {
    fn read(root: XmlNode<'_, '_>) -> Self {
        let hidden = all(root, "col").filter(|it| is_hidden_line(*it, "width"));
        let hidden_columns =
            hidden.filter_map(|it| Some((number(it, "min")?, number(it, "max")?))).collect();
        let areas = all(root, "mergeCell").filter_map(|it| attribute(it, "ref")?.split_once(':'));
        let merged = areas
            .filter_map(|(first, last)| Some((parse_reference(first)?, parse_reference(last)?.0)));
        Self { hidden_columns, merged: merged.collect() }
    }

    fn hides(&self, column: u32) -> bool {
        self.hidden_columns.iter().any(|(min, max)| (*min..=*max).contains(&column))
    }
}

struct SheetReader<'a> {
    strings: Vec<String>,
    formats: CellFormats,
    flow: FlowWriter<'a>,
}

/// The cells of a row by their columns, with the last column of each.
type RowCells = BTreeMap<u32, (u32, String)>;

impl SheetReader<'_> {
    fn read_sheet(&mut self, root: XmlNode<'_, '_>) -> Result<(), OfficeError> {
        let shape = SheetShape::read(root);
        let mut notes = HashSet::new();
        let mut rows: Vec<RowCells> = Vec::new();
        let (mut next, mut gap) = (1, false);
        for row in all(root, "row") {
            let at = number(row, "r").unwrap_or(next);
            gap |= at > next;
            next = at.saturating_add(1);
            if is_hidden_line(row, "ht") {
                notes.insert(PageNote::HiddenCells);
                continue;
            }
            let cells = self.read_row(row, at, &shape, &mut notes);
            if cells.is_empty() {
                gap = true;
                continue;
            }
            // Empty rows set tables apart.
            if std::mem::take(&mut gap) {
                self.flush_rows(&mut rows)?;
            }
            rows.push(cells);
        }
        self.flush_rows(&mut rows)?;
        notes.into_iter().try_for_each(|note| self.flow.push(FlowBlock::Note(note)))
    }

    fn read_row(
        &self,
        row: XmlNode<'_, '_>,
        at: u32,
        shape: &SheetShape,
        notes: &mut HashSet<PageNote>,
    ) -> RowCells {
        let mut cells = RowCells::new();
        let mut next = 1;
        for cell in row.children().filter(|it| it.tag_name().name() == "c") {
            let place = attribute(cell, "r").and_then(parse_reference);
            let column = place.map_or(next, |(column, _)| column);
            next = column.saturating_add(1);
            let Some(text) = self.cell_text(cell, notes) else { continue };
            if shape.hides(column) {
                notes.insert(PageNote::HiddenCells);
                continue;
            }
            let last = shape.merged.get(&(column, at)).copied().unwrap_or(column);
            cells.insert(column, (last.clamp(column, MAX_COLUMNS), text));
        }
        cells
    }

    /// The text that a cell shows; `None` if it shows none.
    fn cell_text(&self, cell: XmlNode<'_, '_>, notes: &mut HashSet<PageNote>) -> Option<String> {
        let style = number(cell, "s").and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
        let value = child(cell, "v").map(own_text);
        if child(cell, "f").is_some() && value.is_none() && child(cell, "is").is_none() {
            notes.insert(PageNote::FormulaWithoutValue);
        }
        let text = match attribute(cell, "t").unwrap_or("n") {
            "inlineStr" => child(cell, "is").map(rich_text)?,
            "s" => {
                value?.trim().parse().ok().and_then(|at: usize| self.strings.get(at)).cloned()?
            }
            "b" => (if value?.trim() == "1" { "TRUE" } else { "FALSE" }).to_owned(),
            "str" | "e" | "d" => value?,
            _ => match self.formats.write_number(style, &value?) {
                Some(text) => text,
                None => {
                    notes.insert(PageNote::HiddenText);
                    return None;
                }
            },
        };
        if text.trim().is_empty() {
            return None;
        }
        if self.formats.is_white(style) {
            notes.insert(PageNote::HiddenText);
            return None;
        }
        Some(text)
    }

    /// Rows as a table without the columns that none of them uses; a row of one cell between them
    /// stays a row.
    fn flush_rows(&mut self, rows: &mut Vec<RowCells>) -> Result<(), OfficeError> {
        let rows = std::mem::take(rows);
        let used: Vec<u32> = {
            let columns: std::collections::BTreeSet<u32> =
                rows.iter().flat_map(|row| row.keys().copied()).collect();
            columns.into_iter().collect()
        };
        if let [_] = used.as_slice() {
            let texts = rows.into_iter().flat_map(RowCells::into_values);
            return texts
                .map(|(_, text)| FlowBlock::Paragraph(text))
                .try_for_each(|it| self.flow.push(it));
        }
        // Cells that a table has, but no row: a sheet may be large and nearly empty.
        self.flow.admit_cells(rows.len().saturating_mul(used.len()))?;
        let mut table = Vec::with_capacity(rows.len());
        for mut row in rows {
            let (mut cells, mut covered) = (Vec::new(), 0);
            for (at, column) in used.iter().enumerate() {
                if *column <= covered {
                    continue;
                }
                let (last, text) = row.remove(column).unwrap_or((*column, String::new()));
                let behind = used.iter().skip(at).take_while(|it| **it <= last).count();
                covered = last;
                cells.push(FlowCell { text, columns: u32::try_from(behind).unwrap_or(1).max(1) });
            }
            table.push(cells);
        }
        if table.is_empty() { Ok(()) } else { self.flow.push(FlowBlock::Table(table)) }
    }

    /// Text in the shapes of a sheet, behind its cells.
    fn read_drawings(
        &mut self,
        package: &mut OfficePackage<'_>,
        sheet: &str,
    ) -> Result<(), OfficeError> {
        let relations = package.relations(sheet)?;
        let mut parts: Vec<String> = Vec::new();
        for relation in relations.into_values() {
            match relation.kind.as_str() {
                "drawing" => parts.extend(relation.part),
                "comments" => self.flow.push(FlowBlock::Note(PageNote::Comments))?,
                _ => {}
            }
        }
        parts.sort();
        for part in parts {
            let Some(xml) = package.read_xml(&part)? else { continue };
            let tree = xml.parse_tree()?;
            for shape in all(tree.root(), "txBody") {
                for paragraph in all(shape, "p") {
                    let text: String = all(paragraph, "t").map(own_text).collect();
                    self.flow.push(FlowBlock::Paragraph(text))?;
                }
            }
            if all(tree.root(), "blip").next().is_some() {
                self.flow.push(FlowBlock::Note(PageNote::UnreadPicture))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_beyond_the_last_column_is_none() {
        for (text, expected) in [
            ("A1", Some((1, 1))),
            ("aa10", Some((27, 10))),
            ("XFD1048576", Some((16_384, 1_048_576))),
            ("XFE1", None),
            ("ZZZZZZZZZZZZ1", None),
            ("1", None),
            ("A", None),
            ("A99999999999", None),
            ("Ä1", None),
        ] {
            assert_eq!(parse_reference(text), expected, "{text}");
        }
    }
}
