//! Cell references such as `B7` and `A1:B7` (ISO/IEC 29500-1 §18.18.7 and §18.18.62).

/// Columns of a sheet in Excel: XFD is the last.
pub(crate) const MAX_COLUMNS: u32 = 16_384;

/// Column and row of a reference such as `B7`, from 1.
pub(crate) fn parse_reference(text: &str) -> Option<(u32, u32)> {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (letters, digits) = text.split_at_checked(letters)?;
    let mut column = 0_u32;
    for letter in letters.bytes() {
        let value = u32::from(letter.to_ascii_uppercase() - b'A') + 1;
        column = column.checked_mul(26)?.checked_add(value)?;
    }
    ((1..=MAX_COLUMNS).contains(&column)).then_some((column, digits.parse().ok()?))
}

/// Cells from the first to the last column and row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellArea {
    pub(crate) columns: (u32, u32),
    pub(crate) rows: (u32, u32),
}

impl CellArea {
    /// The area that a reference such as `A1:B7` or `A1` names.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once(':').unwrap_or((text, text));
        let (first, last) = (parse_reference(first)?, parse_reference(last)?);
        Some(Self { columns: (first.0, last.0), rows: (first.1, last.1) })
    }

    pub(crate) fn contains(&self, column: u32, row: u32) -> bool {
        (self.columns.0..=self.columns.1).contains(&column)
            && (self.rows.0..=self.rows.1).contains(&row)
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
