//! A layout as Markdown, in GitHub's dialect. Characters that would become markup are escaped. A
//! cell that spans columns is written into its first column; the others are empty.

use std::collections::{BTreeMap, HashSet};

use super::block::{BlockContent, DocumentLayout, ListItem, TableCell};

/// The pages of a document, set apart by rules. Page numbers are left out, and headers and footers
/// that stood on a page before; all else is there.
///
/// A signature and a stamp are said by name, above what was read of them.
/// A figure is a picture whose text says which it is. It leads nowhere: see
/// [`render_with_pictures`].
pub fn render_markdown(layout: &DocumentLayout) -> String {
    render_with_pictures(layout, &PicturePaths::new())
}

/// Where the pictures of figures lie, by page and number on the page; see
/// [`list_figures`](super::list_figures).
pub type PicturePaths = BTreeMap<(u32, u32), String>;

/// As [`render_markdown`], with figures leading to their pictures. Paths are taken as they are: they
/// have to be plain.
pub fn render_with_pictures(layout: &DocumentLayout, pictures: &PicturePaths) -> String {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut pages = Vec::new();
    for page in &layout.pages {
        let (mut shown, mut figures) = (Vec::new(), 0);
        for block in &page.blocks {
            let again = match &block.content {
                BlockContent::PageNumber { .. } => true,
                BlockContent::Header { text } | BlockContent::Footer { text } => !seen.insert(text),
                _ => false,
            };
            if let BlockContent::Figure { text } = &block.content {
                figures += 1;
                let path = pictures.get(&(page.number, figures)).map_or("", String::as_str);
                shown.push(format!("![Figure {figures} of page {}]({path})\n", page.number));
                if text.is_empty() {
                    continue;
                }
            }
            if let BlockContent::Signature { text } | BlockContent::Stamp { text } = &block.content
            {
                let is_stamp = matches!(block.content, BlockContent::Stamp { .. });
                shown.push(if is_stamp { "\\[Stamp\\]\n" } else { "\\[Signature\\]\n" }.to_owned());
                if text.is_empty() {
                    continue;
                }
            }
            if !again {
                shown.push(render_block(&block.content));
            }
        }
        pages.push(shown.join("\n"));
    }
    pages.join("\n---\n\n")
}

/// A block, with a line feed at its end.
fn render_block(content: &BlockContent) -> String {
    let mut text = String::new();
    let out = &mut text;
    match content {
        BlockContent::Title { text } => push_heading(1, text, out),
        BlockContent::Heading { level, text } => push_heading(usize::from(*level) + 1, text, out),
        BlockContent::List { items } => items.iter().for_each(|item| push_item(item, out)),
        BlockContent::Table { rows, columns, cells } => push_table(*rows, *columns, cells, out),
        BlockContent::Caption { text } => {
            out.push('*');
            out.push_str(&escape_inline(&text.replace('\n', " ")));
            out.push_str("*\n");
        }
        BlockContent::FormField { label, value } => {
            let line = format!("**{}** {}", escape_inline(label), escape_inline(value));
            out.push_str(line.trim_end());
            out.push('\n');
        }
        BlockContent::Checkbox { checked, text } => {
            let label = text.split_once(' ').map_or("", |(_, label)| label);
            out.push_str(if *checked { "- [x] " } else { "- [ ] " });
            out.push_str(&escape_inline(&label.replace('\n', " ")));
            out.push('\n');
        }
        BlockContent::Paragraph { text }
        | BlockContent::Figure { text }
        | BlockContent::Signature { text }
        | BlockContent::Stamp { text }
        | BlockContent::Header { text }
        | BlockContent::Footer { text }
        | BlockContent::PageNumber { text }
        | BlockContent::Footnote { text } => push_lines(text, "", out),
    }
    text
}

fn push_heading(level: usize, text: &str, out: &mut String) {
    out.push_str(&"#".repeat(level.min(6)));
    out.push(' ');
    // A closing run of # would be swallowed.
    out.push_str(&escape_inline(&text.replace('\n', " ")).replace('#', "\\#"));
    out.push('\n');
}

fn push_lines(text: &str, indent: &str, out: &mut String) {
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            out.push_str(indent);
        }
        out.push_str(&escape_line(line));
        out.push('\n');
    }
}

/// Numbers stay as they are printed where Markdown has them; other marks become its own.
fn push_item(item: &ListItem, out: &mut String) {
    let indent = "    ".repeat(usize::from(item.depth));
    let digits = item.marker.trim_end_matches(['.', ')']);
    let is_number = !digits.is_empty()
        && digits.len() < item.marker.len()
        && digits.chars().all(|c| c.is_ascii_digit());
    out.push_str(&indent);
    let lead = if is_number {
        format!("{} ", item.marker)
    } else if item.marker.chars().any(char::is_alphanumeric) && item.marker.chars().count() > 1 {
        format!("- {} ", escape_inline(&item.marker))
    } else {
        "- ".to_owned()
    };
    out.push_str(&lead);
    push_lines(&item.text, &format!("{indent}  "), out);
}

fn push_table(rows: u32, columns: u32, cells: &[TableCell], out: &mut String) {
    let mut cells = cells.iter().peekable();
    for row in 0..rows {
        let mut line = String::from("|");
        for column in 0..columns {
            let here = cells.next_if(|cell| cell.row == row && cell.column == column);
            line.push(' ');
            if let Some(cell) = here {
                line.push_str(&escape_inline(&cell.text).replace('|', "\\|"));
                line.push(' ');
            }
            line.push('|');
        }
        out.push_str(&line);
        out.push('\n');
        if row == 0 {
            out.push('|');
            out.push_str(&" --- |".repeat(columns as usize));
            out.push('\n');
        }
    }
}

/// Escapes what would be markup anywhere in a line.
fn escape_inline(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '~' | '&' | '$') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Escapes a line of running text, also what is markup only at its beginning.
fn escape_line(line: &str) -> String {
    let text = escape_inline(line);
    let start = text.trim_start();
    let first = start.chars().next();
    let digits = start.chars().take_while(char::is_ascii_digit).count();
    let after = start.chars().nth(digits);
    if matches!(first, Some('#' | '+' | '-' | '=' | '|' | ':')) {
        return format!("\\{start}");
    }
    if digits > 0 && digits < 10 && matches!(after, Some('.' | ')')) {
        let (number, rest) = start.split_at(digits);
        return format!("{number}\\{rest}");
    }
    start.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use docmill_core::model::{BoundingBox, PageSource};

    use super::*;
    use crate::{PageBlock, PageLayout};

    fn render(contents: Vec<BlockContent>) -> String {
        let block = |content| PageBlock {
            content,
            page: 1,
            bounding_box: BoundingBox::default(),
            words: Vec::new(),
        };
        let blocks = contents.into_iter().map(block).collect();
        let page = PageLayout { number: 1, source: PageSource::Native, blocks };
        render_markdown(&DocumentLayout { pages: vec![page] })
    }

    /// The cells of a line as GitHub splits them.
    fn cells_of(line: &str) -> Vec<String> {
        let (mut cells, mut cell, mut escaped) = (Vec::new(), String::new(), false);
        for c in line.trim().trim_start_matches('|').chars() {
            match c {
                '\\' if !escaped => escaped = true,
                '|' if !escaped => cells.push(std::mem::take(&mut cell).trim().to_owned()),
                c => {
                    cell.push(c);
                    escaped = false;
                }
            }
        }
        cells
    }

    #[test]
    fn a_table_is_read_back_with_the_same_cells() {
        let texts = [["a|b", "*", "c\\d"], ["", "<i>", "[x](y)"], ["1 | 2", "", "`q`"]];
        let mut cells = Vec::new();
        for (row, line) in (0..).zip(texts) {
            for (column, text) in (0..).zip(line).filter(|(_, text)| !text.is_empty()) {
                let bounding_box = BoundingBox::default();
                let (row_span, column_span, text) = (1, 1, text.to_owned());
                cells.push(TableCell { row, column, row_span, column_span, text, bounding_box });
            }
        }
        let text = render(vec![BlockContent::Table { rows: 3, columns: 3, cells }]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "| --- | --- | --- |");
        let read: Vec<_> = [lines[0], lines[2], lines[3]].map(cells_of).into();
        assert_eq!(read, texts, "{text}");
    }

    #[test]
    fn text_that_looks_like_markup_is_text() {
        let text = |text: &str| render(vec![BlockContent::Paragraph { text: text.to_owned() }]);
        for (plain, expected) in [
            ("# no heading", "\\# no heading\n"),
            ("1. no list", "1\\. no list\n"),
            ("- no entry", "\\- no entry\n"),
            ("a *b* _c_ `d`", "a \\*b\\* \\_c\\_ \\`d\\`\n"),
            ("<script>", "\\<script\\>\n"),
            ("![x](http://y)", "!\\[x\\](http://y)\n"),
            ("| --- |", "\\| --- |\n"),
            ("---", "\\---\n"),
            ("one\n===", "one\n\\===\n"),
            ("2026 is a year", "2026 is a year\n"),
        ] {
            assert_eq!(text(plain), expected);
        }
    }

    #[test]
    fn lists_keep_their_numbers_and_their_depth() {
        let item = |marker: &str, text: &str, depth| ListItem {
            marker: marker.to_owned(),
            text: text.to_owned(),
            depth,
        };
        let items =
            vec![item("3.", "three", 0), item("•", "below\nit", 1), item("a)", "letter", 0)];
        let text = render(vec![BlockContent::List { items }]);
        assert_eq!(text, "3. three\n    - below\n      it\n- a) letter\n");
    }
}
