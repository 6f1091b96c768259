//! RTF (Rich Text Format 1.9.1): control words and groups, read once from start to end.
//!
//! Not read: hidden, crossed-out and deleted text, text in the colour of its ground, cells under a
//! merged one, annotations, pictures, objects, field codes, and every destination that is marked to be
//! skipped by those who do not read it.

use std::collections::{HashMap, HashSet};

use docmill_core::config::LimitsConfig;
use docmill_core::model::PageNote;
use encoding_rs::{Encoding, WINDOWS_1252};

use crate::colours::{RgbColour, WHITE, is_lost, is_pictographic};
use crate::content::{
    DocumentFlow, FlowBlock, FlowWriter, PaperKind, SheetCellDraft, TableDraft, push_labelled,
};
use crate::error::OfficeError;
use crate::fields::FieldKind;
use crate::run_seams::{LastLook, is_blank, mark_drawing};
use crate::styling::{LabelGap, ListLabel, plain_symbol};

/// Groups within groups.
const MAX_DEPTH: usize = 1_000;
/// Letters of a control word, and digits of its number.
const MAX_WORD_CHARS: usize = 32;
const MAX_DIGITS: usize = 10;
/// Characters of a field code that are read.
const MAX_INSTRUCTION_CHARS: usize = 200;
/// Cells of a row.
const MAX_ROW_CELLS: usize = 1_000;
/// Colours of the table of colours.
const MAX_COLOURS: usize = 4_096;

/// Destinations whose text does not show on the page.
const UNREAD: [&str; 25] = [
    "stylesheet",
    "info",
    "pict",
    "object",
    "themedata",
    "colorschememapping",
    "datastore",
    "latentstyles",
    "listtable",
    "listoverridetable",
    "revtbl",
    "rsidtbl",
    "generator",
    "xmlnstbl",
    "filetbl",
    "bkmkstart",
    "bkmkend",
    "nonshppict",
    "objdata",
    "private",
    "template",
    "mmathPr",
    "pnseclvl",
    "wgrffmtfilter",
    "xe",
];
/// Destinations for remarks.
const COMMENTS: [&str; 4] = ["annotation", "atnid", "atnauthor", "atrfstart"];

/// Reads a document.
pub(crate) fn read_rich_text(
    bytes: &[u8],
    limits: &LimitsConfig,
) -> Result<DocumentFlow, OfficeError> {
    let mut reader = RichTextReader {
        flow: FlowWriter::new(limits),
        state: GroupState::default(),
        groups: Vec::new(),
        encoding: WINDOWS_1252,
        colours: Vec::new(),
        pictures: HashSet::new(),
        encodings: HashMap::new(),
        default_font: 0,
        font: (0, String::new()),
        defined: Vec::new(),
        defining: CellDefinition::default(),
        text: String::new(),
        bytes: Vec::new(),
        marker: String::new(),
        has_close_labels: false,
        instruction: String::new(),
        surrogate: None,
        row: Vec::new(),
        cell: Vec::new(),
        table: TableDraft::default(),
        skip: 0,
        last_look: LastLook::default(),
    };
    let mut scanner = RtfScanner { rest: bytes };
    while let Some(token) = scanner.next_token() {
        reader.take_token(token)?;
    }
    reader.end_paragraph()?;
    reader.end_table()?;
    Ok(reader.flow.finish(PaperKind::Document))
}

/// A piece of the file.
#[derive(Debug, PartialEq, Eq)]
enum RtfToken<'a> {
    Open,
    Close,
    Word(&'a str, Option<i32>),
    Symbol(u8),
    Byte(u8),
    /// Bytes of a picture or object.
    Binary,
}

struct RtfScanner<'a> {
    rest: &'a [u8],
}

impl<'a> RtfScanner<'a> {
    fn next_token(&mut self) -> Option<RtfToken<'a>> {
        loop {
            let (first, rest) = self.rest.split_first()?;
            self.rest = rest;
            match first {
                b'{' => return Some(RtfToken::Open),
                b'}' => return Some(RtfToken::Close),
                b'\\' => return self.next_control(),
                b'\r' | b'\n' | 0 => {}
                byte => return Some(RtfToken::Byte(*byte)),
            }
        }
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn next_control(&mut self) -> Option<RtfToken<'a>> {
        let letters = self.rest.iter().take(MAX_WORD_CHARS);
        let letters = letters.take_while(|byte| byte.is_ascii_alphabetic()).count();
        if letters == 0 {
            let symbol = self.take(1).first().copied()?;
            if symbol != b'\'' {
                return Some(RtfToken::Symbol(symbol));
            }
            let digits = std::str::from_utf8(self.take(2)).ok();
            let byte = digits.and_then(|it| u8::from_str_radix(it, 16).ok());
            return Some(byte.map_or(RtfToken::Symbol(b'\''), RtfToken::Byte));
        }
        let word = std::str::from_utf8(self.take(letters)).ok()?;
        let sign = usize::from(self.rest.first() == Some(&b'-'));
        let digits = self.rest.iter().skip(sign).take(MAX_DIGITS);
        let digits = digits.take_while(|byte| byte.is_ascii_digit()).count();
        let number = match digits {
            0 => None,
            digits => std::str::from_utf8(self.take(sign + digits)).ok()?.parse().ok(),
        };
        if self.rest.first() == Some(&b' ') {
            self.take(1);
        }
        if word == "bin" {
            self.take(number.and_then(|it| usize::try_from(it).ok()).unwrap_or(0));
            return Some(RtfToken::Binary);
        }
        Some(RtfToken::Word(word, number))
    }
}

/// State that a group takes over and gives back.
#[derive(Debug, Clone, Copy, Default)]
struct GroupState {
    /// Nothing of it is text of the page.
    unread: bool,
    in_colours: bool,
    in_marker: bool,
    /// The text of a label, and the instruction of a field.
    in_label: bool,
    in_instruction: bool,
    /// The result of a field that programs recompute.
    in_count: bool,
    hidden: bool,
    deleted: bool,
    struck: bool,
    /// Zero size or width, a symbol font, or lines of zero height.
    tiny: bool,
    squeezed: bool,
    flat: bool,
    pictured: bool,
    in_fonts: bool,
    /// That of its font; `None`: the file's.
    encoding: Option<&'static Encoding>,
    /// In half points, as stated.
    size: i32,
    raise: i32,
    spread: i32,
    /// Shown differently by some programs.
    is_special: bool,
    /// Index of its colour; 0 for that of the program.
    ink: usize,
    /// Index of its ground and of its paragraph's, if they have one.
    ground: Option<usize>,
    paragraph_ground: Option<usize>,
    /// Its ground is unknown, as in a shape.
    on_shape: bool,
    in_table: bool,
    in_list: bool,
    level: u8,
    /// Level of a heading, from 1; 0 of running text.
    outline: u8,
    /// Characters that stand in for one in Unicode; `None` of usually one.
    fallbacks: Option<usize>,
    /// A destination that those skip who do not read it.
    optional: bool,
    /// Its paragraphs are no part of the one around it.
    is_apart: bool,
}

/// A cell of a row as far as it decides what is seen in it.
#[derive(Debug, Clone, Copy, Default)]
struct CellDefinition {
    ground: Option<usize>,
    /// Continues a merged cell.
    is_under: bool,
}

struct RichTextReader<'a> {
    flow: FlowWriter<'a>,
    state: GroupState,
    /// Those of the groups around it.
    groups: Vec<GroupState>,
    encoding: &'static Encoding,
    colours: Vec<Option<RgbColour>>,
    /// Numbers of symbol fonts, and the font being defined.
    pictures: HashSet<i32>,
    /// Encodings of fonts that have one of their own.
    encodings: HashMap<i32, &'static Encoding>,
    default_font: i32,
    font: (i32, String),
    /// The cells of the row as it was defined, and the one that is being defined.
    defined: Vec<CellDefinition>,
    defining: CellDefinition,
    text: String,
    /// Text in the file's encoding that is not decoded yet: characters may have two bytes.
    bytes: Vec<u8>,
    marker: String,
    /// Some list has labels with digits of its own, or no tab behind them.
    has_close_labels: bool,
    /// The start of the last field's instruction.
    instruction: String,
    surrogate: Option<u16>,
    row: Vec<SheetCellDraft>,
    cell: Vec<FlowBlock>,
    table: TableDraft,
    /// Characters to leave out behind one in Unicode.
    skip: usize,
    last_look: LastLook<(i32, i32, i32, bool, usize, Option<usize>)>,
}

impl RichTextReader<'_> {
    fn take_token(&mut self, token: RtfToken<'_>) -> Result<(), OfficeError> {
        match token {
            RtfToken::Open => {
                self.flush_bytes();
                self.skip = 0;
                if self.groups.len() >= MAX_DEPTH {
                    let detail = format!("groups nested more than {MAX_DEPTH} levels deep");
                    return Err(OfficeError::too_large(detail));
                }
                self.groups.push(self.state);
                (self.state.optional, self.state.is_apart) = (false, false);
            }
            RtfToken::Close => {
                self.flush_bytes();
                self.skip = 0;
                if self.state.is_apart {
                    self.end_paragraph()?;
                }
                let was_instruction = self.state.in_instruction;
                self.state = self.groups.pop().unwrap_or(self.state);
                if was_instruction && !self.state.in_instruction {
                    self.end_instruction()?;
                }
            }
            RtfToken::Binary => {}
            RtfToken::Byte(byte) => self.add_byte(byte)?,
            RtfToken::Symbol(symbol) => self.take_symbol(symbol)?,
            RtfToken::Word(word, number) => {
                if word != "u" {
                    self.flush_bytes();
                }
                self.take_word(word, number)?;
            }
        }
        Ok(())
    }

    fn take_symbol(&mut self, symbol: u8) -> Result<(), OfficeError> {
        match symbol {
            b'*' => self.state.optional = true,
            b'~' => self.add_text("\u{a0}")?,
            b'_' => self.add_text("-")?,
            b'{' | b'}' | b'\\' => self.add_byte(symbol)?,
            b'\r' | b'\n' => self.end_paragraph()?,
            _ => {}
        }
        Ok(())
    }

    fn take_word(&mut self, word: &str, number: Option<i32>) -> Result<(), OfficeError> {
        if COMMENTS.contains(&word) {
            self.state.unread = true;
            return self.flow.push(FlowBlock::Note(PageNote::Comments));
        }
        if UNREAD.contains(&word) {
            if matches!(word, "pict" | "object") && !self.state.unread {
                self.flow.push(FlowBlock::Note(PageNote::UnreadPicture))?;
            }
            self.state.unread = true;
            return Ok(());
        }
        match word {
            "ansicpg" => self.encoding = encoding_of_page(number),
            "mac" => self.encoding = encoding_rs::MACINTOSH,
            "deff" => self.default_font = number.unwrap_or(0),
            "colortbl" => self.state.in_colours = true,
            "fonttbl" => self.state.in_fonts = true,
            "red" | "green" | "blue" if self.state.in_colours => self.add_colour(word, number),
            "listtext" | "pntext" => {
                // Within a line it is no label: programs differ in whether they show it.
                if !is_blank(&self.text) {
                    mark_drawing(&mut self.text);
                }
                self.state.in_marker = true;
            }
            "shptxt" | "footnote" | "header" | "footer" | "headerf" | "footerf" | "headerl"
            | "footerl" | "headerr" | "footerr" => {
                self.end_paragraph()?;
                // Text in shapes may stand on a ground of their own.
                let state = &mut self.state;
                (state.optional, state.unread, state.is_apart) = (false, false, true);
                state.on_shape |= word == "shptxt";
            }
            "fldrslt" => {
                let kind = FieldKind::of(&self.instruction);
                if kind == FieldKind::Clock {
                    self.flow.push(FlowBlock::Note(PageNote::DoubtfulText))?;
                }
                let is_count = matches!(kind, FieldKind::Count | FieldKind::Clock);
                (self.state.optional, self.state.in_count) = (false, is_count);
            }
            "fldinst" => {
                self.instruction.clear();
                (self.state.unread, self.state.in_instruction) = (true, true);
            }
            "leveltext" | "pntxtb" | "pntxta" => {
                (self.state.unread, self.state.in_label) = (true, true);
            }
            "shp" | "shpinst" | "ud" | "upr" => self.state.optional = false,
            "levelfollow" => self.has_close_labels |= matches!(number, Some(1 | 2)),
            _ if self.take_look(word, number) || self.define_row(word, number) => {}
            _ => self.take_structure(word, number)?,
        }
        Ok(())
    }

    /// A channel of a colour.
    fn add_colour(&mut self, word: &str, number: Option<i32>) {
        if self.colours.is_empty() {
            self.colours.push(None);
        }
        let part = number.and_then(|it| u8::try_from(it).ok()).unwrap_or(0);
        let at = ["red", "green", "blue"].iter().position(|name| *name == word);
        if let (Some(last), Some(at)) = (self.colours.last_mut(), at) {
            let RgbColour(parts) = last.get_or_insert(RgbColour([0; 3]));
            if let Some(own) = parts.get_mut(at) {
                *own = part;
            }
        }
    }

    /// Applies a control word for text style. `false`: another word.
    fn take_look(&mut self, word: &str, number: Option<i32>) -> bool {
        let is_on = number != Some(0);
        let index = number.and_then(|it| usize::try_from(it).ok());
        let state = &mut self.state;
        match word {
            "v" => state.hidden = is_on,
            "deleted" => state.deleted = is_on,
            "strike" | "striked" => state.struck = is_on,
            "cf" => state.ink = index.unwrap_or(0),
            "cb" | "highlight" | "chcbpat" => state.ground = index.filter(|at| *at > 0),
            "cbpat" => state.paragraph_ground = index.filter(|at| *at > 0),
            "f" if state.in_fonts => self.font = (number.unwrap_or(0), String::new()),
            "fcharset" if state.in_fonts && self.encodings.len() < MAX_COLOURS => {
                let own = number.and_then(encoding_of_charset);
                own.map(|it| self.encodings.insert(self.font.0, it));
            }
            "f" => {
                let font = number.unwrap_or(0);
                state.pictured = self.pictures.contains(&font);
                state.encoding = self.encodings.get(&font).copied();
            }
            "fs" => {
                state.tiny = number.is_some_and(|size| (0..=2).contains(&size));
                state.size = number.unwrap_or(0);
            }
            "up" | "super" => state.raise = number.unwrap_or(6),
            "dn" | "sub" => state.raise = -number.unwrap_or(6),
            "nosupersub" => state.raise = 0,
            "expnd" | "expndtw" => state.spread = number.unwrap_or(0),
            "revised" | "webhidden" | "rtlch" | "outl" => state.is_special = is_on,
            // Letters that are narrower than a tenth of their width are lines.
            "charscalex" => state.squeezed = number.is_some_and(|percent| percent < 10),
            // Negative: exactly so many twentieths of a point.
            "sl" => state.flat = number.is_some_and(|height| (-40..0).contains(&height)),
            "plain" => {
                (state.hidden, state.deleted, state.struck) = (false, false, false);
                (state.tiny, state.squeezed, state.pictured) = (false, false, false);
                (state.ink, state.ground) = (0, None);
                state.encoding = self.encodings.get(&self.default_font).copied();
                (state.size, state.raise, state.spread, state.is_special) = (0, 0, 0, false);
            }
            _ => return false,
        }
        true
    }

    /// Applies a control word that defines a row's cells. `false`: another word.
    fn define_row(&mut self, word: &str, number: Option<i32>) -> bool {
        match word {
            "trowd" => {
                self.defined.clear();
                self.defining = CellDefinition::default();
            }
            "clcbpat" | "clcbpatraw" => {
                let index = number.and_then(|it| usize::try_from(it).ok());
                self.defining.ground = index.filter(|at| *at > 0);
            }
            "clmrg" | "clvmrg" => self.defining.is_under = true,
            "cellx" if self.defined.len() < MAX_ROW_CELLS => {
                self.defined.push(std::mem::take(&mut self.defining));
            }
            _ => return false,
        }
        true
    }

    /// The ground that text here stands on; `None` if it is unknown.
    fn ground(&self) -> Option<RgbColour> {
        let state = self.state;
        let cell = self.defined.get(self.row.len()).filter(|_| state.in_table);
        let named = state.ground.or(state.paragraph_ground).or(cell.and_then(|it| it.ground));
        match named {
            Some(at) => self.colours.get(at).copied().flatten(),
            None if state.on_shape => None,
            None => Some(WHITE),
        }
    }

    fn take_structure(&mut self, word: &str, number: Option<i32>) -> Result<(), OfficeError> {
        let small = number.and_then(|it| u8::try_from(it).ok());
        match word {
            "par" | "sect" => self.end_paragraph()?,
            "page" => {
                self.end_paragraph()?;
                self.end_table()?;
                self.flow.push(FlowBlock::PageBreak)?;
            }
            "line" | "softline" => self.add_text("\n")?,
            "tab" => self.add_text("\t")?,
            "pard" => {
                let state = &mut self.state;
                (state.in_table, state.in_list, state.level, state.outline) = (false, false, 0, 0);
                (state.paragraph_ground, state.flat) = (None, false);
            }
            "intbl" => self.state.in_table = true,
            "ls" => self.state.in_list = true,
            "ilvl" => self.state.level = small.unwrap_or(0),
            "outlinelevel" => {
                self.state.outline = small.filter(|it| *it < 9).map_or(0, |it| it + 1);
            }
            "cell" | "nestcell" => self.end_cell()?,
            "row" | "nestrow" => self.end_row(),
            "emdash" => self.add_text("—")?,
            "endash" => self.add_text("–")?,
            "bullet" => self.add_text("•")?,
            "lquote" | "rquote" => self.add_text("'")?,
            "ldblquote" | "rdblquote" => self.add_text("\"")?,
            "uc" => self.state.fallbacks = small.map(usize::from),
            "u" => self.add_unit(number.unwrap_or(0))?,
            _ => {
                if self.state.optional {
                    self.state.unread = true;
                }
            }
        }
        // A word behind the mark decides over its destination once.
        self.state.optional = false;
        Ok(())
    }

    /// A unit of UTF-16, as a signed number.
    fn add_unit(&mut self, number: i32) -> Result<(), OfficeError> {
        self.flush_bytes();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "units above 32,767 are written as negative numbers"
        )]
        let unit = number as u16;
        self.skip = self.state.fallbacks.unwrap_or(1);
        let units = match self.surrogate.take() {
            Some(first) => vec![first, unit],
            None if (0xd800..0xdc00).contains(&unit) => {
                self.surrogate = Some(unit);
                return Ok(());
            }
            None => vec![unit],
        };
        let text = String::from_utf16_lossy(&units);
        self.has_close_labels |=
            self.state.in_label && text.chars().map(plain_symbol).any(char::is_numeric);
        let skip = std::mem::take(&mut self.skip);
        self.add_text(&text)?;
        self.skip = skip;
        Ok(())
    }

    fn add_byte(&mut self, byte: u8) -> Result<(), OfficeError> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(());
        }
        if self.state.in_instruction && self.instruction.len() < MAX_INSTRUCTION_CHARS {
            self.instruction.push(char::from(byte));
        }
        self.has_close_labels |= self.state.in_label && byte.is_ascii_digit();
        if self.state.in_colours {
            if byte == b';' && self.colours.len() < MAX_COLOURS {
                // The first one has no values; the next one is open.
                let missing = if self.colours.is_empty() { 2 } else { 1 };
                self.colours.extend(std::iter::repeat_n(None, missing));
            }
            return Ok(());
        }
        if self.state.in_fonts {
            // Alternatives and descriptions of a font stand in groups of their own.
            if !self.state.unread {
                self.add_font_byte(byte);
            }
            return Ok(());
        }
        if self.may_add(byte.is_ascii_whitespace())? {
            self.bytes.push(byte);
        }
        Ok(())
    }

    /// A byte of the name of a font, which ends with a semicolon.
    fn add_font_byte(&mut self, byte: u8) {
        if byte != b';' {
            if self.font.1.len() < MAX_WORD_CHARS {
                self.font.1.push(char::from(byte));
            }
            return;
        }
        let (number, name) = std::mem::take(&mut self.font);
        if is_pictographic(&name) && self.pictures.len() < MAX_COLOURS {
            self.pictures.insert(number);
        }
    }

    fn add_text(&mut self, text: &str) -> Result<(), OfficeError> {
        self.flush_bytes();
        if self.may_add(text.trim().is_empty())? {
            self.push_decoded(text);
        }
        Ok(())
    }

    /// Whether text here is seen; if it is hidden, that is noted.
    fn may_add(&mut self, is_blank: bool) -> Result<bool, OfficeError> {
        let state = self.state;
        if state.unread || state.in_colours || state.in_fonts {
            return Ok(false);
        }
        let ink = self.colours.get(state.ink).copied().flatten();
        let cell = self.defined.get(self.row.len()).filter(|_| state.in_table);
        let note = if state.deleted || state.struck {
            PageNote::DeletedText
        } else if cell.is_some_and(|it| it.is_under) {
            PageNote::HiddenCells
        } else if state.hidden
            || state.tiny
            || state.squeezed
            || state.flat
            || state.pictured
            || is_lost(ink, self.ground())
        {
            PageNote::HiddenText
        } else {
            return Ok(true);
        };
        if !is_blank {
            self.flow.push(FlowBlock::Note(note))?;
        }
        Ok(false)
    }

    fn push_decoded(&mut self, text: &str) {
        if self.state.in_marker {
            return self.marker.push_str(text);
        }
        let GroupState { size, raise, spread, is_special, ink, ground, in_count, .. } = self.state;
        let look = (size, raise, spread, is_special || in_count, ink, ground);
        self.last_look.begin(look, &mut self.text);
        self.text.push_str(text);
    }

    fn flush_bytes(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.bytes);
        let encoding = self.state.encoding.unwrap_or(self.encoding);
        let text = encoding.decode_without_bom_handling(&bytes).0;
        self.push_decoded(&text);
    }

    fn end_paragraph(&mut self) -> Result<(), OfficeError> {
        self.flush_bytes();
        let text = std::mem::take(&mut self.text);
        let marker = std::mem::take(&mut self.marker);
        let state = self.state;
        if state.unread || is_blank(&text) && marker.trim().is_empty() {
            return Ok(());
        }
        let is_entry = !marker.trim().is_empty() || state.in_list;
        let label = is_entry.then(|| (state.level, entry_label(&marker)));
        let heading = (state.outline > 0).then_some(state.outline);
        let mut blocks = Vec::new();
        // Programs that know the list write its label anew.
        if is_entry && self.has_close_labels && ListLabel::new("9.", LabelGap::Space).joins(&text) {
            blocks.push(FlowBlock::Note(PageNote::DoubtfulText));
        }
        push_labelled(heading, label, text, &mut blocks);
        if state.in_table {
            self.cell.append(&mut blocks);
            return Ok(());
        }
        self.end_table()?;
        self.flow.extend(blocks)
    }

    /// Text of a field's instruction that is shown counts as a drawing in the line.
    fn end_instruction(&mut self) -> Result<(), OfficeError> {
        let kind = FieldKind::of(&self.instruction);
        if self.state.unread || !matches!(kind, FieldKind::Sign | FieldKind::Text) {
            return Ok(());
        }
        mark_drawing(&mut self.text);
        if kind == FieldKind::Text && self.instruction.contains(char::is_numeric) {
            self.flow.push(FlowBlock::Note(PageNote::DoubtfulText))?;
        }
        Ok(())
    }

    fn end_cell(&mut self) -> Result<(), OfficeError> {
        self.state.in_table = true;
        self.end_paragraph()?;
        self.flow.admit_cells(1)?;
        self.row.push(SheetCellDraft { blocks: std::mem::take(&mut self.cell), columns: 1 });
        Ok(())
    }

    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if !row.is_empty() {
            self.table.rows.push(row);
        }
    }

    fn end_table(&mut self) -> Result<(), OfficeError> {
        self.end_row();
        let mut blocks = std::mem::take(&mut self.table).into_blocks();
        blocks.append(&mut self.cell);
        self.flow.extend(blocks)
    }
}

/// The label of an entry by the text that is stored for it.
fn entry_label(marker: &str) -> ListLabel {
    let gap = if marker.ends_with('\t') { LabelGap::Wide } else { LabelGap::Nothing };
    match marker.trim() {
        "" => ListLabel::bullet("•", LabelGap::Wide),
        text if text.contains(char::is_numeric) || text.chars().count() > 1 => {
            ListLabel::new(marker.trim_end_matches('\t'), gap)
        }
        text => ListLabel::bullet(text, gap),
    }
}

/// The encoding of a font by its character set; `None`: the file's.
fn encoding_of_charset(number: i32) -> Option<&'static Encoding> {
    let page = match number {
        77 => return Some(encoding_rs::MACINTOSH),
        128 => 932,
        129 => 949,
        134 => 936,
        136 => 950,
        161 => 1253,
        162 => 1254,
        163 => 1258,
        177 => 1255,
        178 => 1256,
        186 => 1257,
        204 => 1251,
        222 => 874,
        238 => 1250,
        _ => return None,
    };
    Some(encoding_of_page(Some(page)))
}

/// The encoding of a code page of Windows.
fn encoding_of_page(number: Option<i32>) -> &'static Encoding {
    let label = match number {
        Some(932) => "shift_jis".to_owned(),
        Some(936) => "gbk".to_owned(),
        Some(949) => "euc-kr".to_owned(),
        Some(950) => "big5".to_owned(),
        Some(65_001) => "utf-8".to_owned(),
        Some(number) => format!("windows-{number}"),
        None => String::new(),
    };
    Encoding::for_label(label.as_bytes()).unwrap_or(WINDOWS_1252)
}
