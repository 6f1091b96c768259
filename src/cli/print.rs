//! Writes to the terminal; no other module does.
//!
//! File names, object keys and document values are untrusted. Characters that control a terminal
//! (ESC, its C1 forms, direction overrides) are printed as `\u{fffd}`, in JSON as an escape. A
//! closed pipe (`docmill list | head`) ends the program quietly.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use time::OffsetDateTime;

/// Cells longer than this are cut in tables; `--json` has them whole.
const MAX_CELL_CHARS: usize = 60;

/// Clears the screen and goes to its first line (ECMA-48).
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

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
        match self.json {
            true => Ok(print(&escape_json(&serde_json::to_string_pretty(value)?))?),
            false => Ok(print(&text())?),
        }
    }
}

/// Writes to standard output, with a line break at the end if there is none.
pub(super) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(sanitize_text(text).as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Writes a piece of a longer text to standard output.
pub(super) fn piece(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(sanitize_text(text).as_bytes())
}

/// Writes to a terminal in the place of what it shows.
pub(super) fn redraw(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(CLEAR.as_bytes())?;
    print(text)
}

/// Prints a line on standard error, ignoring failures.
pub(super) fn note(text: &str) {
    writeln!(io::stderr().lock(), "{}", sanitize_text(text)).ok();
}

/// A value as JSON on one line, for [`print()`] and [`piece`].
pub(super) fn json_line<T: Serialize>(value: &T) -> serde_json::Result<String> {
    Ok(escape_json(&serde_json::to_string(value)?))
}

/// Escapes every character of a JSON text that controls a terminal; they occur only in strings, and
/// serde escapes only the older half of them.
fn escape_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' => escaped.push(c),
            c if is_obeyed(c) => {
                write!(escaped, "\\u{:04x}", u32::from(c)).ok();
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Whether a terminal obeys a character or lets it change the order of others.
fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text of several lines as it may reach a terminal: breaks of lines and pages and tabulators stay.
pub(super) fn sanitize_text(text: &str) -> Cow<'_, str> {
    if !text.contains(is_bad_in_text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(|c| if is_bad_in_text(c) { char::REPLACEMENT_CHARACTER } else { c })
            .collect(),
    )
}

fn is_bad_in_text(c: char) -> bool {
    is_obeyed(c) && !matches!(c, '\n' | '\t' | '\u{c}')
}

/// A value as part of a line, without line breaks: they could fake a line of output.
pub(super) fn inline(text: &str) -> String {
    text.chars().map(|c| if is_obeyed(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Prints an error on standard error.
pub(super) fn error(text: &str) {
    note(&format!("docmill: {text}"));
}

/// Whether the reader of our output has gone.
pub(super) fn is_closed(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref().is_some_and(|io: &io::Error| io.kind() == io::ErrorKind::BrokenPipe)
    })
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

/// A cell fit for one line: nothing that a terminal obeys (a file name could move the cursor), not
/// too long.
fn sanitize_cell(cell: &str) -> String {
    let plain = inline(cell);
    if plain.chars().count() <= MAX_CELL_CHARS {
        return plain;
    }
    plain.chars().take(MAX_CELL_CHARS - 1).chain(['…']).collect()
}

/// How long ago that was, in whole seconds.
pub(super) fn age_of(since: OffsetDateTime) -> String {
    let seconds = (OffsetDateTime::now_utc() - since).whole_seconds().max(0).unsigned_abs();
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
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

    /// Writes the clipboard (OSC 52), moves the cursor by C1, turns the direction of writing.
    const HOSTILE: &str = "a\u{1b}]52;c;ZXZpbA==\u{7}b\u{9b}2Jc\u{202e}fdp.\u{2066}d\re\u{7f}";

    #[test]
    fn a_text_keeps_its_lines_and_nothing_that_a_terminal_obeys() {
        let text = sanitize_text(HOSTILE);
        assert!(!text.contains(is_obeyed), "{text:?}");
        assert_eq!(sanitize_text("one\n\ttwo\u{c}\nדרך ünï"), "one\n\ttwo\u{c}\nדרך ünï");
        assert!(!inline("a.pdf\n  status: completed").contains('\n'));
    }

    #[test]
    fn json_escapes_terminal_controls_and_keeps_its_meaning() {
        let line = json_line(&HOSTILE).unwrap();
        assert!(!line.contains(is_obeyed), "{line:?}");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), HOSTILE);
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error_of_ours() {
        let gone = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_closed(&gone.context("printing")));
        assert!(!is_closed(&anyhow::anyhow!("something else")));
    }
}
