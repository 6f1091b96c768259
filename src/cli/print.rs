//! The one place that writes to the terminal.
//!
//! A reader that has seen enough (`docmill list | head`) ends the program quietly.

use std::io::{self, Write};

use serde::Serialize;

/// Cells longer than this are cut in tables; `--json` has them whole.
const WIDEST: usize = 60;

/// Where results go, and in which form.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResultOutput {
    pub(super) json: bool,
}

impl ResultOutput {
    /// The value for programs, or the text for people.
    pub(super) fn show<T: Serialize>(
        self,
        value: &T,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        let text = if self.json { serde_json::to_string_pretty(value)? } else { text() };
        Ok(print(&text)?)
    }
}

/// Writes to standard output, with a line break at the end if there is none.
pub(super) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Writes a piece of a longer text to standard output.
pub(super) fn piece(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())
}

/// A line on standard error. That nobody can read it is no reason to fail.
pub(super) fn note(text: &str) {
    writeln!(io::stderr().lock(), "{text}").ok();
}

/// What went wrong, on standard error.
pub(super) fn error(text: &str) {
    note(&format!("docmill: {text}"));
}

/// Whether the reader of our output has gone.
pub(super) fn is_closed(error: &anyhow::Error) -> bool {
    let closed = |io: &io::Error| io.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(closed))
}

/// Columns under their names; each as wide as its widest cell.
pub(super) fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let cut: Vec<[String; N]> =
        rows.iter().map(|row| row.clone().map(|cell| sanitize_cell(&cell))).collect();
    let mut widths = header.map(|name| name.chars().count());
    for row in &cut {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = format_line(&header.map(ToOwned::to_owned), &widths);
    for row in &cut {
        text.push_str(&format_line(row, &widths));
    }
    text
}

fn format_line(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        line.push_str(cell);
        let missing = width.saturating_sub(cell.chars().count()) + 2;
        line.extend(std::iter::repeat_n(' ', missing));
    }
    format!("{}\n", line.trim_end())
}

/// A cell fit for one line: no control characters (a file name could move the cursor), not too
/// long.
fn sanitize_cell(cell: &str) -> String {
    let plain: String = cell.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if plain.chars().count() <= WIDEST {
        return plain;
    }
    plain.chars().take(WIDEST - 1).chain(['…']).collect()
}

/// `-` for what is not there.
pub(super) fn or_dash(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        let rows = [
            ["ä.pdf".to_owned(), "x".repeat(100)],
            ["\u{1b}[2Jlong name.pdf".to_owned(), String::new()],
        ];
        let text = table(["file", "note"], &rows);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        let column = lines[0].chars().collect::<String>().find("note").unwrap();
        assert_eq!(lines[1].chars().nth(column), Some('x'));
        assert!(lines[1].ends_with('…') && !text.contains('\u{1b}'));
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error_of_ours() {
        let gone = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_closed(&gone.context("printing")));
        assert!(!is_closed(&anyhow::anyhow!("something else")));
    }
}
