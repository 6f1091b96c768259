//! Fields of word processors (ISO/IEC 29500-1 §17.16.5) whose displayed text differs from the
//! stored result.

/// Fields that are pages and tables of contents.
const COUNTS: [&str; 6] = ["PAGE", "NUMPAGES", "SECTION", "SECTIONPAGES", "PAGEREF", "TOC"];
/// Fields that show the time at which a document is opened.
const CLOCKS: [&str; 2] = ["DATE", "TIME"];
/// Fields that show a symbol or a number without a stored result.
const SIGNS: [&str; 6] = ["SYMBOL", "LISTNUM", "AUTONUM", "AUTONUMLGL", "AUTONUMOUT", "ADVANCE"];
/// Fields that show text of their field code.
const TEXTS: [&str; 3] = ["EQ", "MACROBUTTON", "GOTOBUTTON"];

/// The text that a field shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldKind {
    /// A value that every program recomputes at layout.
    Count,
    /// The current date.
    Clock,
    /// A symbol or a number, independent of the stored result.
    Sign,
    /// Text of its field code, independent of the stored result.
    Text,
    /// The stored result.
    Result,
}

impl FieldKind {
    /// The kind by the first word of the instruction.
    pub(crate) fn of(instruction: &str) -> Self {
        let name = instruction.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        let lists = [
            (&COUNTS[..], Self::Count),
            (&CLOCKS[..], Self::Clock),
            (&SIGNS[..], Self::Sign),
            (&TEXTS[..], Self::Text),
        ];
        let found = lists.into_iter().find(|(names, _)| names.contains(&name.as_str()));
        found.map_or(Self::Result, |(_, kind)| kind)
    }
}
