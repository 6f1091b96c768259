//! Web pages and mails in HTML, as their tokens come: no tree is built, so that nesting costs no
//! more than its depth.
//!
//! Not read: scripts, styles, templates, titles of windows, what is crossed out, what opens on a
//! click, and text hidden by style (`display:none`, `visibility:hidden`, zero size or opacity, text
//! in the background colour), inline or by the page's style sheet. Text that a sheet adds is noted,
//! not read. Nothing is fetched.

use docmill_core::config::LimitsConfig;
use docmill_core::model::PageNote;
use html5gum::{DefaultEmitter, HtmlString, StartTag, Token, Tokenizer};

use crate::colours::{RgbColour, WHITE, is_lost};
use crate::content::{DocumentFlow, FlowBlock, FlowWriter, PaperKind, SheetCellDraft, TableDraft};
use crate::decode::{declared_charset, decode_text};
use crate::element_look::{ElementFlow, ElementLook, ItemLayout};
use crate::error::OfficeError;
use crate::run_seams::{
    LastLook, ends_with_space, is_blank, is_number_part, last_letter, mark_drawing,
};
use crate::style_sheet::{CssRuleSet, ElementNames};
use crate::styling::{LabelGap, ListLabel};

/// Name of the element that marks a mail's HTML whose plain text states other amounts.
const OTHER_TEXT_NAME: &str = "docmill-other-text";
/// That element: the text of a mail begins with it where its other form contradicts it.
pub const OTHER_TEXT_MARK: &str = "<meta name=\"docmill-other-text\">";

/// Open elements: browsers nest no deeper than 512.
const MAX_DEPTH: usize = 512;
/// Tables within tables.
const MAX_TABLES: usize = 64;
/// Columns that a cell may cover.
const MAX_SPAN: u32 = 1_000;

/// Elements without content.
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];
/// Elements whose content is not shown.
const UNSHOWN: [&str; 17] = [
    "script", "style", "template", "title", "noframes", "noscript", "object", "audio", "video",
    "svg", "datalist", "iframe", "canvas", "progress", "meter", "rp", "mphantom",
];
/// Elements that are a drawing within a line.
const DRAWINGS: [&str; 7] = ["img", "svg", "canvas", "object", "embed", "progress", "meter"];
/// Elements whose text is crossed out.
const CROSSED_OUT: [&str; 3] = ["s", "strike", "del"];
/// Elements that begin and end a block.
#[rustfmt::skip]
const BLOCKS: [&str; 31] = [
    "p", "div", "ul", "ol", "li", "dl", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "pre",
    "blockquote", "address", "section", "article", "header", "footer", "main", "aside", "nav",
    "form", "fieldset", "center", "body", "figure", "details", "caption",
];
/// Elements whose text differs at most in weight, slant or slightly in size.
const EVEN: [&str; 11] =
    ["b", "strong", "i", "em", "u", "tt", "code", "wbr", "bdi", "span", "small"];
/// The sign that turns the order of letters round.
const RIGHT_TO_LEFT: &str = "\u{202e}";

/// Elements of tables.
const TABLE_PARTS: [&str; 7] = ["table", "tbody", "thead", "tfoot", "tr", "td", "th"];
/// Elements of a table, which an end of another element does not close.
const BOUNDARIES: [&str; 3] = ["table", "td", "th"];

/// Reads a page.
pub(crate) fn read_web_page(
    bytes: &[u8],
    limits: &LimitsConfig,
) -> Result<DocumentFlow, OfficeError> {
    let text = decode_text(bytes, declared_charset(bytes));
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut reader = PageReader {
        sheet: CssRuleSet::default(),
        flow: FlowWriter::new(limits),
        open: Vec::new(),
        tables: Vec::new(),
        regions: vec![Vec::new()],
        text: String::new(),
        gap: None,
        lists: Vec::new(),
        looks: 0,
        last_look: LastLook::default(),
    };
    for token in Tokenizer::new_with_emitter(text.as_str(), emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => reader.start_element(&tag)?,
            Token::EndTag(tag) => reader.end_element(&lower(&tag.name))?,
            Token::String(text) => reader.add_text(&String::from_utf8_lossy(&text.value)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    reader.end_all()?;
    Ok(reader.flow.finish(PaperKind::Document))
}

fn lower(name: &HtmlString) -> String {
    String::from_utf8_lossy(name).to_ascii_lowercase()
}

/// An element's own name, its classes and its id, and its other attributes.
fn names_of(name: &str, tag: &StartTag<()>) -> ElementNames {
    let attributes = tag.attributes.iter();
    let attributes = attributes.map(|(name, value)| {
        let value = String::from_utf8_lossy(value).into_owned();
        (lower(name), value)
    });
    ElementNames { tag: name.to_owned(), attributes: attributes.collect() }
}

fn has_attribute(tag: &StartTag<()>, name: &str) -> bool {
    tag.attributes.contains_key(name.as_bytes())
}

fn attribute_of(tag: &StartTag<()>, name: &str) -> Option<String> {
    let value = tag.attributes.get(name.as_bytes())?;
    Some(String::from_utf8_lossy(value).into_owned())
}

#[derive(Debug, Clone)]
struct OpenElement {
    name: String,
    /// Its names in selectors of the style sheet.
    names: ElementNames,
    /// Shows its summary alone until somebody opens it.
    folded: bool,
    /// It and everything in it is not shown.
    hidden: bool,
    /// `None`: a colour that is not known.
    ink: Option<RgbColour>,
    /// Its text colour is transparent.
    clear: bool,
    /// Its font size is zero, or its font has symbols.
    unread: bool,
    /// `None`: a picture, or a colour that is not known.
    ground: Option<RgbColour>,
    /// Numbers the text styles, see [`LastLook`].
    look: usize,
    /// Length of the block's text where it began.
    start: usize,
    /// A style of unknown effect applies: numbers in it may be invisible.
    is_open: bool,
    /// It has lines or a ground of its own, which are a drawing if it is within a line.
    is_painted: bool,
    /// A picture replaces it in programs that can display it.
    is_replaced: bool,
    flow: ElementFlow,
    layout: ItemLayout,
    /// Items so far.
    items: usize,
    /// It has gaps to its neighbours or between its items, and right-aligned text.
    has_room: bool,
    is_right: bool,
    /// It is an entry of a list.
    is_entry: bool,
    mark_inside: bool,
    mark_counts: bool,
}

#[derive(Debug, Default)]
struct OpenTable {
    draft: TableDraft,
    in_cell: bool,
    columns: u32,
    /// Lists that were open when it began.
    lists: usize,
}

#[derive(Debug)]
struct OpenList {
    is_numbered: bool,
    count: u32,
    marker: String,
}

/// A visual gap without a space in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TextGap {
    /// A possible gap: it separates words, but does not split a number.
    Narrow,
    Wide,
}

struct PageReader<'a> {
    /// The page's own sheet.
    sheet: CssRuleSet,
    flow: FlowWriter<'a>,
    open: Vec<OpenElement>,
    tables: Vec<OpenTable>,
    /// Blocks of the page and of each open cell.
    regions: Vec<Vec<FlowBlock>>,
    text: String,
    /// The gap between the text and further letters of its block.
    gap: Option<TextGap>,
    lists: Vec<OpenList>,
    /// Looks so far, and the last letters' one.
    looks: usize,
    last_look: LastLook<usize>,
}

impl PageReader<'_> {
    fn start_element(&mut self, tag: &StartTag<()>) -> Result<(), OfficeError> {
        let name = lower(&tag.name);
        let name = name.as_str();
        let is_hidden = self.open.last().is_some_and(|it| it.hidden);
        if DRAWINGS.contains(&name) && !is_hidden {
            mark_drawing(&mut self.text);
        }
        match name {
            "br" => self.push_text("\n"),
            "hr" => self.end_block()?,
            "input" if !is_hidden => self.add_input(tag),
            "img" if !is_hidden => self.push_block(FlowBlock::Note(PageNote::UnreadPicture))?,
            "meta" if attribute_of(tag, "name").as_deref() == Some(OTHER_TEXT_NAME) => {
                self.push_block(FlowBlock::Note(PageNote::DoubtfulText))?;
            }
            _ => {}
        }
        if VOID.contains(&name) || tag.self_closing && !BLOCKS.contains(&name) {
            return Ok(());
        }
        self.end_implied(name)?;
        if self.open.len() >= MAX_DEPTH {
            let detail = format!("elements nested more than {MAX_DEPTH} levels deep");
            return Err(OfficeError::too_large(detail));
        }
        let (element, is_reversed) = self.describe_element(name, tag);
        if !element.hidden {
            self.begin_item(&element)?;
        }
        if is_reversed && !element.hidden {
            self.push_text(RIGHT_TO_LEFT);
        }
        if element.hidden {
            if element.is_replaced && !is_hidden {
                mark_drawing(&mut self.text);
                self.add_note(PageNote::UnreadPicture);
            }
            self.open.push(element);
            return Ok(());
        }
        let flow = element.flow;
        self.open.push(element);
        self.begin_structure(name, flow, tag)
    }

    /// The element, and whether its letters stand from right to left.
    fn describe_element(&mut self, name: &str, tag: &StartTag<()>) -> (OpenElement, bool) {
        let mut is_plain = EVEN.contains(&name) && tag.attributes.is_empty();
        // Nested small text may be illegible.
        is_plain &= name != "small" || self.open.iter().all(|it| it.name != name);
        let outer = self.open.last();
        let names = names_of(name, tag);
        let mut look = ElementLook::default();
        let around: Vec<&ElementNames> = self.open.iter().map(|it| &it.names).collect();
        for declarations in self.sheet.declarations_for(&around, &names) {
            look.add(declarations);
            is_plain = false;
        }
        self.looks += usize::from(!is_plain);
        look.add(&attribute_of(tag, "style").unwrap_or_default());
        let ground = attribute_of(tag, "bgcolor").map(|it| RgbColour::parse(&it));
        let picture = attribute_of(tag, "background").map(|_| None);
        let outer_ground = outer.map_or(Some(WHITE), |it| it.ground);
        let ink = attribute_of(tag, "color").map(|it| RgbColour::parse(&it));
        let is_item = outer.is_some_and(|it| it.layout.is_across);
        let flow = flow_of(name, &look, outer);
        let flow = if is_item && is_free(name) { ElementFlow::Apart } else { flow };
        let is_closed = matches!(name, "details" | "dialog") && !has_attribute(tag, "open");
        let element = OpenElement {
            hidden: outer.is_some_and(|it| it.hidden || it.folded && name != "summary")
                || look.is_hidden()
                || look.is_replaced
                || has_attribute(tag, "hidden")
                || has_attribute(tag, "popover")
                || is_closed && name == "dialog"
                || CROSSED_OUT.contains(&name)
                || UNSHOWN.contains(&name),
            ink: look.fill.or(look.ink).or(ink).unwrap_or_else(|| outer.and_then(|it| it.ink)),
            clear: look.clear.unwrap_or_else(|| ink.is_none() && outer.is_some_and(|it| it.clear)),
            unread: look.unread.unwrap_or_else(|| outer.is_some_and(|it| it.unread)),
            ground: look.ground.or(picture).or(ground).unwrap_or(outer_ground),
            folded: is_closed,
            start: if flow == ElementFlow::Block { 0 } else { self.text.len() },
            flow,
            layout: look.items,
            items: 0,
            has_room: look.has_room || is_item && outer.is_some_and(|it| it.has_room),
            is_right: look.is_right.unwrap_or_else(|| outer.is_some_and(|it| it.is_right)),
            is_replaced: look.is_replaced || outer.is_some_and(|it| it.is_replaced),
            is_entry: look.is_entry || name == "li",
            mark_inside: look.mark_inside.unwrap_or_else(|| outer.is_some_and(|it| it.mark_inside)),
            mark_counts: look.mark_counts.unwrap_or_else(|| match name {
                "ol" | "ul" => name == "ol",
                _ => outer.is_some_and(|it| it.mark_counts),
            }),
            look: outer.filter(|_| is_plain).map_or(self.looks, |it| it.look),
            is_open: look.is_open || outer.is_some_and(|it| it.is_open),
            is_painted: look.is_lined || look.ground.is_some(),
            name: name.to_owned(),
            names,
        };
        (element, look.is_reversed)
    }

    /// Separates an element from the text before it: by a gap, or by a new row.
    fn begin_item(&mut self, element: &OpenElement) -> Result<(), OfficeError> {
        if element.flow != ElementFlow::Apart {
            return Ok(());
        }
        self.add_gap(element.has_room && element.is_right);
        let Some(outer) = self.open.last_mut() else { return Ok(()) };
        outer.items += 1;
        let is_first = outer.layout.columns.is_some_and(|columns| outer.items % columns == 1);
        if is_first || outer.layout.columns == Some(1) { self.end_block() } else { Ok(()) }
    }

    fn add_gap(&mut self, is_wide: bool) {
        let gap = if is_wide { TextGap::Wide } else { TextGap::Narrow };
        self.gap = self.gap.max(Some(gap));
    }

    /// Adds a space for a gap before `text`.
    fn close_gap(&mut self, text: &str) {
        let Some(first) = text.chars().next() else { return };
        let Some(gap) = self.gap.take() else { return };
        let Some(last) = last_letter(&self.text).filter(|it| !it.is_whitespace()) else { return };
        if gap == TextGap::Wide || !(is_number_part(last) && is_number_part(first)) {
            self.text.push(' ');
        }
    }

    /// The value of a field of a form.
    fn add_input(&mut self, tag: &StartTag<()>) {
        let kind = attribute_of(tag, "type").unwrap_or_default().to_ascii_lowercase();
        if matches!(kind.as_str(), "" | "text" | "number" | "date" | "email" | "tel")
            && let Some(value) = attribute_of(tag, "value")
        {
            self.push_text(&format!(" {value} "));
        } else if !matches!(kind.as_str(), "hidden" | "checkbox" | "radio") {
            // A button or a placeholder has text of its own.
            mark_drawing(&mut self.text);
        }
    }

    /// Open elements that may not contain the element that begins.
    fn end_implied(&mut self, name: &str) -> Result<(), OfficeError> {
        match name {
            "li" => self.end_within("li", &["ul", "ol", "table", "td", "th"]),
            "dt" | "dd" => {
                self.end_within("dt", &["dl", "table", "td", "th"])?;
                self.end_within("dd", &["dl", "table", "td", "th"])
            }
            "td" | "th" => {
                self.end_within("td", &["table"])?;
                self.end_within("th", &["table"])
            }
            "tr" | "tbody" | "thead" | "tfoot" => self.end_within("tr", &["table"]),
            name if BLOCKS.contains(&name) || name == "table" => {
                self.end_within("p", &["table", "td", "th", "li", "div"])
            }
            _ => Ok(()),
        }
    }

    fn begin_structure(
        &mut self,
        name: &str,
        flow: ElementFlow,
        tag: &StartTag<()>,
    ) -> Result<(), OfficeError> {
        match name {
            "bdo" if attribute_of(tag, "dir").is_some_and(|it| it.eq_ignore_ascii_case("rtl")) => {
                self.push_text(RIGHT_TO_LEFT);
            }
            _ if flow == ElementFlow::Table => {
                self.end_block()?;
                if self.tables.len() >= MAX_TABLES {
                    let detail = format!("tables nested more than {MAX_TABLES} levels deep");
                    return Err(OfficeError::too_large(detail));
                }
                let lists = self.lists.len();
                self.tables.push(OpenTable { lists, ..OpenTable::default() });
            }
            _ if flow == ElementFlow::Row => {
                self.end_block()?;
                if let Some(table) = self.tables.last_mut() {
                    table.draft.rows.push(Vec::new());
                }
            }
            _ if flow == ElementFlow::Cell => {
                let span = attribute_of(tag, "colspan").and_then(|it| it.trim().parse().ok());
                self.begin_cell(span.unwrap_or(1).clamp(1, MAX_SPAN))?;
            }
            "ul" | "ol" => {
                self.end_block()?;
                let start = attribute_of(tag, "start").and_then(|it| it.trim().parse().ok());
                let count = start.unwrap_or(1_u32).saturating_sub(1);
                let is_numbered = name == "ol";
                self.lists.push(OpenList { is_numbered, count, marker: String::new() });
            }
            "li" => {
                self.end_block()?;
                let stated = attribute_of(tag, "value").and_then(|it| it.trim().parse().ok());
                if let Some(list) = self.lists.last_mut() {
                    list.count = stated.unwrap_or(list.count.saturating_add(1));
                    list.marker = match list.is_numbered {
                        true => format!("{}.", list.count),
                        false => "•".to_owned(),
                    };
                }
            }
            _ if flow == ElementFlow::Block => self.end_block()?,
            _ => {}
        }
        Ok(())
    }

    fn begin_cell(&mut self, columns: u32) -> Result<(), OfficeError> {
        self.end_block()?;
        let Some(table) = self.tables.last_mut() else { return Ok(()) };
        if table.draft.rows.is_empty() {
            table.draft.rows.push(Vec::new());
        }
        self.flow.admit_cells(1)?;
        (table.in_cell, table.columns) = (true, columns);
        self.regions.push(Vec::new());
        Ok(())
    }

    fn end_element(&mut self, name: &str) -> Result<(), OfficeError> {
        if BOUNDARIES.contains(&name) {
            return self.end_within(name, if name == "table" { &[] } else { &["table"] });
        }
        match name {
            "br" => {
                self.push_text("\n");
                Ok(())
            }
            "tr" | "tbody" | "thead" | "tfoot" => self.end_within(name, &["table"]),
            name => self.end_within(name, &BOUNDARIES),
        }
    }

    /// Ends the innermost element of that name and those in it, unless one of `boundaries` lies
    /// between.
    fn end_within(&mut self, name: &str, boundaries: &[&str]) -> Result<(), OfficeError> {
        let found = self
            .open
            .iter()
            .rposition(|it| it.name == name || boundaries.contains(&it.name.as_str()));
        let Some(at) = found.filter(|at| self.open.get(*at).is_some_and(|it| it.name == name))
        else {
            return Ok(());
        };
        while self.open.len() > at {
            self.end_innermost()?;
        }
        Ok(())
    }

    fn end_innermost(&mut self) -> Result<(), OfficeError> {
        let Some(element) = self.open.last().cloned() else { return Ok(()) };
        if !element.hidden {
            let name = element.name.as_str();
            let flow = element.flow;
            let is_inline = matches!(flow, ElementFlow::Inline | ElementFlow::Apart);
            if element.is_painted && is_inline && self.text.len() == element.start {
                mark_drawing(&mut self.text);
            }
            if !is_inline {
                self.end_block()?;
            }
            if flow == ElementFlow::Apart {
                self.add_gap(element.has_room && !element.is_right);
            }
            match name {
                _ if flow == ElementFlow::Cell => self.end_cell(),
                _ if flow == ElementFlow::Table => self.end_table()?,
                "ul" | "ol" => drop(self.lists.pop()),
                _ => {}
            }
        }
        self.open.pop();
        Ok(())
    }

    fn end_cell(&mut self) {
        let Some(table) = self.tables.last_mut().filter(|table| table.in_cell) else { return };
        table.in_cell = false;
        self.lists.truncate(table.lists);
        let blocks = self.regions.pop().unwrap_or_default();
        if let Some(row) = table.draft.rows.last_mut() {
            row.push(SheetCellDraft { blocks, columns: table.columns });
        }
    }

    fn end_table(&mut self) -> Result<(), OfficeError> {
        let Some(table) = self.tables.pop() else { return Ok(()) };
        for block in table.draft.into_blocks() {
            self.push_block(block)?;
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str) {
        let Some(element) = self.open.last() else { return self.push_text(text) };
        if element.name == "style" {
            self.sheet.add_rules(text);
            return;
        }
        let is_unseen = element.hidden
            || element.folded
            || element.clear
            || element.unread
            || is_lost(element.ink, element.ground);
        if !is_unseen {
            let (look, is_open) = (element.look, element.is_open);
            self.close_gap(text);
            if !text.starts_with(char::is_whitespace) {
                self.last_look.begin(look, &mut self.text);
            }
            let entry = self.open.iter().rfind(|it| it.is_entry);
            let is_counted = entry.is_some_and(|it| {
                let before = self.text.get(it.start..).unwrap_or_default();
                let is_inside = it.mark_inside && it.mark_counts && is_blank(before);
                is_inside && ListLabel::new("1.", LabelGap::Space).joins(text)
            });
            if is_counted || is_open && text.contains(char::is_numeric) {
                self.add_note(PageNote::DoubtfulText);
            }
            return self.push_text(text);
        }
        // Where the picture is missing, some programs show the text.
        if element.is_replaced && text.contains(char::is_numeric) {
            self.add_note(PageNote::DoubtfulText);
        }
        let is_source = self.open.iter().any(|it| UNSHOWN.contains(&it.name.as_str()));
        if !is_source && !text.trim().is_empty() {
            self.add_note(PageNote::HiddenText);
        }
    }

    fn add_note(&mut self, note: PageNote) {
        let note = FlowBlock::Note(note);
        if let Some(region) = self.regions.last_mut()
            && region.last() != Some(&note)
        {
            region.push(note);
        }
    }

    fn push_text(&mut self, text: &str) {
        if self.open.iter().any(|it| it.name == "pre") {
            self.text.push_str(text);
            return;
        }
        if text == "\n" {
            self.text.push('\n');
            return;
        }
        for c in text.chars() {
            if !c.is_whitespace() {
                self.text.push(c);
            } else if !ends_with_space(&self.text) {
                self.text.push(' ');
            }
        }
    }

    fn push_block(&mut self, block: FlowBlock) -> Result<(), OfficeError> {
        match self.regions.as_mut_slice() {
            [] | [_] => self.flow.push(block),
            [.., region] => {
                region.push(block);
                Ok(())
            }
        }
    }

    /// Ends the block whose text was collected, in the form of the element that it stands in.
    fn end_block(&mut self) -> Result<(), OfficeError> {
        let notes = match self.regions.as_mut_slice() {
            [page] => std::mem::take(page),
            _ => Vec::new(),
        };
        self.flow.extend(notes)?;
        let text = std::mem::take(&mut self.text);
        self.gap = None;
        if is_blank(&text) {
            return Ok(());
        }
        let names = self.open.iter().rev().map(|it| it.name.as_str());
        let inner = names.clone().take_while(|name| !BOUNDARIES.contains(name));
        if inner.clone().any(|name| name == "pre") {
            for line in text.lines() {
                self.push_block(FlowBlock::Verbatim(line.to_owned()))?;
            }
            return Ok(());
        }
        let level = inner.clone().find_map(heading_level);
        let in_item = inner.clone().any(|name| name == "li");
        let text = text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
        let block = match (level, self.lists.last_mut().filter(|_| in_item)) {
            (Some(level), _) => FlowBlock::Heading { level, text },
            (None, Some(list)) => {
                let marker = std::mem::take(&mut list.marker);
                let depth = u8::try_from(self.lists.len().saturating_sub(1)).unwrap_or(u8::MAX);
                FlowBlock::Item { depth, marker, text }
            }
            (None, None) => FlowBlock::Paragraph(text.trim().to_owned()),
        };
        self.push_block(block)
    }

    fn end_all(&mut self) -> Result<(), OfficeError> {
        while !self.open.is_empty() {
            self.end_innermost()?;
        }
        self.end_block()?;
        let is_changed = self.sheet.adds_text();
        if is_changed { self.flow.push(FlowBlock::Note(PageNote::DoubtfulText)) } else { Ok(()) }
    }
}

/// The display of an element by its style (except parts of tables and lists) or by its name.
fn flow_of(name: &str, look: &ElementLook, outer: Option<&OpenElement>) -> ElementFlow {
    let by_name = match name {
        "table" => ElementFlow::Table,
        "tr" => ElementFlow::Row,
        "td" | "th" => ElementFlow::Cell,
        _ if BLOCKS.contains(&name) => ElementFlow::Block,
        _ => ElementFlow::Inline,
    };
    if !is_free(name) {
        return by_name;
    }
    let around = outer.map(|it| it.flow);
    match look.flow.unwrap_or(by_name) {
        ElementFlow::Row if around != Some(ElementFlow::Table) => ElementFlow::Block,
        ElementFlow::Cell if !matches!(around, Some(ElementFlow::Row | ElementFlow::Table)) => {
            ElementFlow::Block
        }
        ElementFlow::Inline if look.is_floating => ElementFlow::Apart,
        flow => flow,
    }
}

/// Whether a style may override an element's default display.
fn is_free(name: &str) -> bool {
    const FIXED: [&str; 6] = ["ul", "ol", "li", "pre", "body", "html"];
    !TABLE_PARTS.contains(&name) && !FIXED.contains(&name)
}

fn heading_level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [b'h', digit @ b'1'..=b'6'] => Some(digit - b'0'),
        _ => None,
    }
}
