//! CSV, TSV and plain text.

use docmill_core::config::LimitsConfig;

use crate::content::{DocumentFlow, FlowBlock, FlowCell, FlowWriter, PaperKind};
use crate::decode::decode_text;
use crate::error::OfficeError;

/// Signs between the fields of a line, the first of equals first.
const SEPARATORS: [u8; 4] = [b';', b'\t', b',', b'|'];
/// Lines by which the sign is recognised.
const SAMPLE_LINES: usize = 20;

/// Minimum consecutive lines with an equal number of fields, and minimum of these, for a table
/// among lines of one field.
const MIN_EVEN_LINES: usize = 3;
const MIN_EVEN_FIELDS: usize = 4;

/// So many lines that all have the sign are a table, though not all have as many fields.
const MIN_UNEVEN_LINES: usize = 4;

/// The sign that the first line states as spreadsheets do (`sep=;`), and the lines behind it.
fn stated_separator(text: &str) -> Option<(u8, &str)> {
    let (first, rest) = text.split_once('\n')?;
    let sign = first.trim_end().strip_prefix("sep=").map(str::as_bytes);
    match sign {
        Some([sign]) if SEPARATORS.contains(sign) => Some((*sign, rest)),
        _ => None,
    }
}

/// The sign between fields: the stated one, or one of which nearly every line has as many as the
/// others, or which each line has, or a table within the lines. Prose has commas.
pub(crate) fn find_separator(text: &str) -> Option<u8> {
    if let Some((stated, _)) = stated_separator(text) {
        return Some(stated);
    }
    SEPARATORS.into_iter().find(|separator| {
        let rows = open_fields(text.as_bytes(), *separator).into_records().take(SAMPLE_LINES);
        let widths: Vec<usize> = rows.filter_map(Result::ok).map(|row| row.len()).collect();
        let width = widths.iter().max().copied().unwrap_or(0);
        let full = widths.iter().filter(|it| **it == width).count();
        let is_uneven = *separator != b','
            && widths.len() >= MIN_UNEVEN_LINES
            && widths.iter().all(|width| *width > 1);
        let is_even =
            |run: &[usize]| run.len() >= MIN_EVEN_LINES && run.first() >= Some(&MIN_EVEN_FIELDS);
        let has_table = widths.chunk_by(|one, other| one == other).any(is_even);
        let is_full = widths.len() > 1 && full * 10 >= widths.len() * 9;
        let is_bar = *separator == b'|';
        width > 1 && (is_full || is_uneven || has_table && !is_bar)
    })
}

fn open_fields(bytes: &[u8], separator: u8) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .from_reader(bytes)
}

/// Reads a table of lines.
pub(crate) fn read_table_text(
    bytes: &[u8],
    limits: &LimitsConfig,
) -> Result<DocumentFlow, OfficeError> {
    let text = decode_text(bytes, None);
    let Some(separator) = find_separator(&text) else { return lines_of(&text, limits) };
    let lines = stated_separator(&text).map_or(text.as_str(), |(_, lines)| lines);
    let mut flow = FlowWriter::new(limits);
    let mut rows = Vec::new();
    for record in open_fields(lines.as_bytes(), separator).into_records() {
        let record = record.map_err(|_error| OfficeError::corrupt("a CSV file that is damaged"))?;
        flow.admit_cells(record.len())?;
        rows.push(record.iter().map(|field| FlowCell::new(shown_field(field))).collect());
    }
    flow.push(FlowBlock::Table(rows))?;
    Ok(flow.finish(PaperKind::Sheet))
}

/// The text that spreadsheets show for a field: that of `="007"`, which keeps its zeros.
fn shown_field(field: &str) -> &str {
    let text = field.strip_prefix("=\"").and_then(|it| it.strip_suffix('"'));
    text.filter(|it| !it.contains('"')).unwrap_or(field)
}

/// Reads text whose lines and spaces are kept.
pub(crate) fn read_plain_text(
    bytes: &[u8],
    limits: &LimitsConfig,
) -> Result<DocumentFlow, OfficeError> {
    lines_of(&decode_text(bytes, None), limits)
}

fn lines_of(text: &str, limits: &LimitsConfig) -> Result<DocumentFlow, OfficeError> {
    let mut flow = FlowWriter::new(limits);
    for (at, page) in text.split('\u{c}').enumerate() {
        if at > 0 {
            flow.push(FlowBlock::PageBreak)?;
        }
        // A return without a feed ends a line as well.
        let lines = page.lines().flat_map(|line| line.split('\r'));
        for line in lines {
            flow.push(FlowBlock::Verbatim(line.to_owned()))?;
        }
    }
    Ok(flow.finish(PaperKind::Document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_lines_is_recognised_by_the_sign_between_fields() {
        #[rustfmt::skip]
        let table = [
            ("semicolons",        "a;b,c;d\n1;2,5;3\n4;5,5;6\n",               Some(b';')),
            ("commas",            "a,b\n\"1,5\",2\n3,4\n",                       Some(b',')),
            ("tabs",              "a\tb\n1\t2\n",                               Some(b'\t')),
            ("a stated sign",     "sep=;\na,b\n1,2\n",                          Some(b';')),
            ("head and table",    "No;7\nDay;1.2.26\na;b;c\n1;2,5;3\n;;5,00\n", Some(b';')),
            ("lines and a table", "Firm\nNo;7\na;b;c;d\n1;2;3;4\n5;6;7;8\nIBAN;1\n", Some(b';')),
            ("a table of commas", "Firm\nNo,7\na,b,c,d\n1,2,3,4\n,,5,6\n",     Some(b',')),
            ("two such lines",    "Firm\na,b,c,d\n1,2,3,4\nend\n",           None),
            ("semicolons in prose", "Dear all;\nplease pay;\nBest\nregards; me\n", None),
            ("a comma in prose",  "Dear all,\nplease pay.\nBest, regards, me\n", None),
            ("one line",          "a;b;c\n",                                    None),
            ("nothing",           "",                                           None),
        ];
        for (name, text, expected) in table {
            assert_eq!(find_separator(text), expected, "{name}");
        }
    }
}
