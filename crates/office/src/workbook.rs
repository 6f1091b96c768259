//! XLSX: SpreadsheetML (ISO/IEC 29500-1 §18).
//!
//! Read are visible cells as they are shown, sheet by sheet. Not read: hidden sheets, rows and
//! columns, cells under a merged one or a filled shape, text in the colour of its ground, crossed-out
//! text, and values that a number format hides. No formula is calculated.

use std::collections::{BTreeMap, HashSet};

use docmill_core::config::LimitsConfig;
use docmill_core::model::PageNote;
use docmill_formats::xml::XmlNode;

use crate::cell_area::{CellArea, MAX_COLUMNS, parse_reference};
use crate::cell_format::{CellContent, CellFormats, CellRun, ShownCell};
use crate::colours::{ThemeColours, WHITE};
use crate::conditional_format::ConditionalRules;
use crate::content::{DocumentFlow, FlowBlock, FlowCell, FlowWriter, PaperKind};
use crate::error::OfficeError;
use crate::package::{MainPart, OfficePackage, part_of_kind};
use crate::shapes::{CellCover, ShapeReader};
use crate::stored_formula::formulas_hold;
use crate::tags::{all, attribute, child, elements, number, own_text};

/// Minimum width of a column that shows text, in characters.
const MIN_COLUMN_CHARS: f32 = 0.75;
/// Minimum height of a row that shows text, in points.
const MIN_ROW_POINTS: f32 = 2.0;
/// Shapes of one sheet that are read.
const MAX_ANCHORS: usize = 2_000;

/// Reads a workbook by its main part.
pub(crate) fn read_workbook(
    mut package: OfficePackage<'_>,
    main: &MainPart,
    limits: &LimitsConfig,
) -> Result<DocumentFlow, OfficeError> {
    let relations = package.relations(&main.name)?;
    let tree = main.xml.parse_tree()?;
    let is_1904 = all(tree.root(), "workbookPr").any(|it| is_set(it, "date1904"));
    let recalculates = all(tree.root(), "calcPr").any(|it| is_set(it, "fullCalcOnLoad"));
    let rounds = all(tree.root(), "calcPr")
        .any(|it| matches!(attribute(it, "fullPrecision"), Some("0" | "false")));
    let [strings, styles, theme] =
        ["sharedStrings", "styles", "theme"].map(|kind| part_of_kind(&relations, kind));
    let theme = match package.read_optional(theme)? {
        Some(xml) => ThemeColours::read(xml.parse_tree()?.root()),
        None => ThemeColours::default(),
    };
    let formats = match package.read_optional(styles)? {
        Some(xml) => CellFormats::read(xml.parse_tree()?.root(), theme.clone(), is_1904),
        None => CellFormats::default(),
    };
    let strings = match package.read_optional(strings)? {
        Some(xml) => all(xml.parse_tree()?.root(), "si").map(|it| formats.runs(it)).collect(),
        None => Vec::new(),
    };
    let mut reader = SheetReader {
        strings,
        formats,
        theme,
        recalculates,
        rounds,
        flow: FlowWriter::new(limits),
    };
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
        let drawings = reader.read_drawings(&mut package, part)?;
        if let Some(xml) = package.read_xml(part)? {
            let tree = xml.parse_tree()?;
            reader.read_sheet(tree.root(), &drawings.covers)?;
        }
        reader.flow.extend(drawings.blocks)?;
    }
    Ok(reader.flow.finish(PaperKind::Sheet))
}

/// Whether a formula shows the day or the time of opening.
fn asks_clock(formula: &str) -> bool {
    let formula = formula.to_ascii_uppercase();
    ["TODAY(", "NOW("].iter().any(|name| formula.contains(name))
}

fn is_set(node: XmlNode<'_, '_>, name: &str) -> bool {
    matches!(attribute(node, name), Some("1" | "true"))
}

/// Whether a row or column is hidden or too small to show text.
fn is_hidden_line(node: XmlNode<'_, '_>, size: &str, least: f32) -> bool {
    is_set(node, "hidden")
        || attribute(node, size).and_then(|it| it.parse().ok()).is_some_and(|it: f32| it < least)
}

/// Columns from one on.
#[derive(Debug, Clone, Copy)]
struct ColumnSpan {
    last: u32,
    is_hidden: bool,
    /// Their width in digits, if the file states it.
    chars: Option<f32>,
}

/// Hidden columns of a sheet by the first of them, and its merged cells.
#[derive(Default)]
struct SheetShape {
    /// By their first column.
    columns: BTreeMap<u32, ColumnSpan>,
    hides_others: bool,
    /// Merged areas by their first rows.
    merged: Vec<CellArea>,
    /// Those of rows that were read, by their first columns; merged areas do not overlap.
    open: BTreeMap<u32, CellArea>,
    hides_zeros: bool,
    shows_formulas: bool,
}

impl SheetShape {
    fn read(root: XmlNode<'_, '_>) -> Self {
        let columns = all(root, "col").filter_map(|it| {
            let is_hidden = is_hidden_line(it, "width", MIN_COLUMN_CHARS);
            let chars = attribute(it, "width").and_then(|it| it.parse().ok());
            Some((number(it, "min")?, ColumnSpan { last: number(it, "max")?, is_hidden, chars }))
        });
        let areas = all(root, "mergeCell");
        let mut merged: Vec<CellArea> =
            areas.filter_map(|it| CellArea::parse(attribute(it, "ref")?)).collect();
        merged.sort_by_key(|area| std::cmp::Reverse(area.rows.0));
        let width = all(root, "sheetFormatPr").find_map(|it| attribute(it, "defaultColWidth"));
        let view = all(root, "sheetView").next();
        let [zeros, formulas] =
            ["showZeros", "showFormulas"].map(|name| view.and_then(|it| attribute(it, name)));
        Self {
            columns: columns.collect(),
            hides_others: width.and_then(|it| it.parse().ok()) == Some(0.0),
            merged,
            open: BTreeMap::new(),
            hides_zeros: matches!(zeros, Some("0" | "false")),
            shows_formulas: matches!(formulas, Some("1" | "true")),
        }
    }

    fn hides(&self, column: u32) -> bool {
        self.span_of(column).map_or(self.hides_others, |it| it.is_hidden)
    }

    fn span_of(&self, column: u32) -> Option<ColumnSpan> {
        let (_, span) = self.columns.range(..=column).next_back()?;
        Some(*span).filter(|it| column <= it.last)
    }

    /// Whether a number has more digits than its column has room for: programs show `###`. `scale`: of
    /// its letters by those that columns are measured in. Dates and words may be shown shorter.
    fn cuts(&self, place: (u32, u32), text: &str, scale: f32) -> bool {
        let is_plain = !text.contains(|c: char| c.is_alphabetic() || c == ':')
            && !text.trim_start_matches('-').contains('-');
        let digits = text.bytes().filter(u8::is_ascii_digit).map(|_| scale).sum::<f32>();
        let chars = self.span_of(place.0).filter(|it| !it.is_hidden).and_then(|it| it.chars);
        is_plain && self.merged_area(place).is_none() && chars.is_some_and(|room| digits > room)
    }

    /// Opens the merged areas that begin in a row or above it.
    fn begin_row(&mut self, row: u32) {
        while let Some(area) = self.merged.pop_if(|area| area.rows.0 <= row) {
            self.open.insert(area.columns.0, area);
        }
    }

    /// The merged area of a cell.
    fn merged_area(&self, place: (u32, u32)) -> Option<CellArea> {
        let (_, area) = self.open.range(..=place.0).next_back()?;
        area.contains(place.0, place.1).then_some(*area)
    }
}

struct SheetReader<'a> {
    strings: Vec<Vec<CellRun>>,
    formats: CellFormats,
    theme: ThemeColours,
    /// Whether programs recalculate all formulas when they open the file.
    recalculates: bool,
    /// Whether they calculate with values as they are shown.
    rounds: bool,
    flow: FlowWriter<'a>,
}

/// The shapes of a sheet: their text, and the cells under them.
#[derive(Default)]
struct SheetDrawings {
    blocks: Vec<FlowBlock>,
    covers: Vec<CellCover>,
}

/// A sheet while its rows are read.
struct SheetPass<'a> {
    shape: SheetShape,
    rules: ConditionalRules,
    covers: &'a [CellCover],
    notes: HashSet<PageNote>,
    /// Whether values of formulas may be others once the file is opened.
    may_change: bool,
}

/// The cells of a row by their columns, with the last column of each.
type RowCells = BTreeMap<u32, (u32, String)>;

impl SheetReader<'_> {
    fn read_sheet(
        &mut self,
        root: XmlNode<'_, '_>,
        covers: &[CellCover],
    ) -> Result<(), OfficeError> {
        let rules = ConditionalRules::read(root, &self.formats);
        let may_change = self.recalculates && (self.rounds || !formulas_hold(root));
        let shape = SheetShape::read(root);
        let mut pass = SheetPass { shape, rules, covers, notes: HashSet::new(), may_change };
        let mut rows: Vec<RowCells> = Vec::new();
        let (mut next, mut gap) = (1, false);
        for row in all(root, "row") {
            let at = number(row, "r").unwrap_or(next);
            gap |= at > next;
            next = at.saturating_add(1);
            pass.shape.begin_row(at);
            if is_hidden_line(row, "ht", MIN_ROW_POINTS) {
                pass.notes.insert(PageNote::HiddenCells);
                continue;
            }
            let cells = self.read_row(row, at, &mut pass);
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
        pass.notes.into_iter().try_for_each(|note| self.flow.push(FlowBlock::Note(note)))
    }

    fn read_row(&self, row: XmlNode<'_, '_>, at: u32, pass: &mut SheetPass<'_>) -> RowCells {
        let mut cells = RowCells::new();
        let mut next = 1;
        for cell in row.children().filter(|it| it.tag_name().name() == "c") {
            let place = attribute(cell, "r").and_then(parse_reference);
            let column = place.map_or(next, |(column, _)| column);
            next = column.saturating_add(1);
            let area = pass.shape.merged_area((column, at));
            let is_under = area.is_some_and(|it| (it.columns.0, it.rows.0) != (column, at));
            let Some(text) = self.cell_text(cell, (column, at), pass) else { continue };
            if is_under || pass.shape.hides(column) {
                pass.notes.insert(PageNote::HiddenCells);
                continue;
            }
            match pass.covers.iter().find(|cover| cover.area.contains(column, at)) {
                Some(cover) if cover.is_opaque => {
                    pass.notes.insert(PageNote::HiddenCells);
                    continue;
                }
                Some(_) if text.contains(|c: char| c.is_numeric()) => {
                    pass.notes.insert(PageNote::DoubtfulText);
                }
                _ => {}
            }
            let last = area.map_or(column, |area| area.columns.1);
            cells.insert(column, (last.clamp(column, MAX_COLUMNS), text));
        }
        cells
    }

    /// The text that a cell shows; `None` if it shows none.
    fn cell_text(
        &self,
        cell: XmlNode<'_, '_>,
        place: (u32, u32),
        pass: &mut SheetPass<'_>,
    ) -> Option<String> {
        let written = child(cell, "f");
        let formula = written.map(own_text);
        if let Some(formula) = formula.as_ref().filter(|_| pass.shape.shows_formulas) {
            return Some(format!("={formula}")).filter(|text| text.len() > 1);
        }
        if formula.is_some() && child(cell, "v").is_none() && child(cell, "is").is_none() {
            pass.notes.insert(PageNote::FormulaWithoutValue);
        }
        let content = self.cell_content(cell)?;
        let is_zero = matches!(&content, CellContent::Number(raw) if raw.trim().parse() == Ok(0.0));
        if is_zero && pass.shape.hides_zeros {
            return None;
        }
        let style = number(cell, "s").and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
        let look = self.formats.look(style);
        let is_1904 = self.formats.is_1904;
        let ShownCell { text, note } = pass.rules.show(place, look, &content, is_1904);
        pass.notes.extend(note);
        let has_clock = formula.as_deref().is_some_and(asks_clock);
        let is_recalculated =
            has_clock || written.is_some_and(|it| pass.may_change || is_set(it, "ca"));
        let is_cut = matches!(content, CellContent::Number(_))
            && look.fits.is_some_and(|scale| pass.shape.cuts(place, &text, scale));
        if is_cut || is_recalculated && text.contains(char::is_numeric) {
            pass.notes.insert(PageNote::DoubtfulText);
        }
        (!text.trim().is_empty()).then_some(text)
    }

    fn cell_content(&self, cell: XmlNode<'_, '_>) -> Option<CellContent> {
        let value = child(cell, "v").map(own_text);
        Some(match attribute(cell, "t").unwrap_or("n") {
            "inlineStr" => CellContent::Text(self.formats.runs(child(cell, "is")?)),
            "s" => {
                let at: usize = value?.trim().parse().ok()?;
                CellContent::Text(self.strings.get(at)?.clone())
            }
            "b" => {
                let is_true = value?.trim() == "1";
                CellContent::Fixed((if is_true { "TRUE" } else { "FALSE" }).to_owned())
            }
            "str" => CellContent::Text(vec![CellRun { text: value?, font: None }]),
            "e" | "d" => CellContent::Fixed(value?),
            _ => CellContent::Number(value?),
        })
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

    /// The shapes of a sheet: their text comes behind its cells.
    fn read_drawings(
        &mut self,
        package: &mut OfficePackage<'_>,
        sheet: &str,
    ) -> Result<SheetDrawings, OfficeError> {
        let relations = package.relations(sheet)?;
        let mut parts: Vec<String> = Vec::new();
        let mut found = SheetDrawings::default();
        for relation in relations.into_values() {
            match relation.kind.as_str() {
                "drawing" => parts.extend(relation.part),
                "comments" => found.blocks.push(FlowBlock::Note(PageNote::Comments)),
                _ => {}
            }
        }
        parts.sort();
        for part in parts {
            let Some(xml) = package.read_xml(&part)? else { continue };
            let tree = xml.parse_tree()?;
            for anchor in elements(tree.root_element()).take(MAX_ANCHORS) {
                let shape =
                    ShapeReader { theme: &self.theme, bounds: None, under: &[], bullet: "•" };
                shape.read_shapes(anchor, Some(WHITE), &mut found.blocks);
                found.covers.extend(CellCover::read(anchor, &self.theme));
            }
        }
        Ok(found)
    }
}
