//! Names of exported files: a template over known parts, cleaned, never outside of its prefix.

use docmill_ledger::db::reports::ExportedDocument;

/// Most bytes of a part that comes from outside.
const MAX_PART_BYTES: usize = 100;
/// Most bytes of a template.
const MAX_TEMPLATE_BYTES: usize = 500;
/// The name of a document without one.
const NAMELESS: &str = "document";

/// A part of a document's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamePart {
    /// Of the tenant; `none` without one.
    Tenant,
    /// Of the kind.
    Kind,
    /// Id of the ingestion.
    Id,
    /// Id of the document.
    Document,
    /// Day of registration (UTC), `YYYY-MM-DD`.
    Day,
    /// Its year.
    Year,
    /// Its month.
    Month,
    /// The name that the sender gave the file, without its ending.
    Name,
}

const PARTS: [(&str, NamePart); 8] = [
    ("tenant", NamePart::Tenant),
    ("kind", NamePart::Kind),
    ("id", NamePart::Id),
    ("document", NamePart::Document),
    ("day", NamePart::Day),
    ("year", NamePart::Year),
    ("month", NamePart::Month),
    ("name", NamePart::Name),
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum LayoutPiece {
    Text(String),
    Part(NamePart),
}

/// Why a template is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LayoutDefect(String);

/// A template of names, such as `{tenant}/{kind}/{day}/{name}-{id}`, without an ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportLayout(Vec<LayoutPiece>);

impl ExportLayout {
    /// Reads a template.
    ///
    /// # Errors
    /// An unknown part; text other than letters, digits and `-_./`; a path that leaves its prefix; a
    /// template that two documents may share a name under.
    pub fn parse(template: &str) -> Result<Self, LayoutDefect> {
        if template.len() > MAX_TEMPLATE_BYTES {
            return Err(LayoutDefect(format!("it has more than {MAX_TEMPLATE_BYTES} bytes")));
        }
        let mut pieces = Vec::new();
        let mut rest = template;
        while let Some((text, after)) = rest.split_once('{') {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| LayoutDefect("a { has no } behind it".to_owned()))?;
            let part = PARTS.iter().find(|(own, _)| *own == name).map(|(_, part)| *part);
            let part = part.ok_or_else(|| {
                let known = PARTS.map(|(name, _)| format!("{{{name}}}")).join(", ");
                LayoutDefect(format!("its parts are {known}"))
            })?;
            pieces.extend([LayoutPiece::Text(text.to_owned()), LayoutPiece::Part(part)]);
            rest = after;
        }
        pieces.push(LayoutPiece::Text(rest.to_owned()));
        let layout = Self(pieces);
        layout.check()?;
        Ok(layout)
    }

    /// The names of downloads and of files in one folder: sender's name and id.
    pub fn of_downloads() -> Self {
        Self(vec![
            LayoutPiece::Part(NamePart::Name),
            LayoutPiece::Text("-".to_owned()),
            LayoutPiece::Part(NamePart::Id),
        ])
    }

    fn check(&self) -> Result<(), LayoutDefect> {
        let is_id = |piece: &LayoutPiece| {
            matches!(piece, LayoutPiece::Part(NamePart::Id | NamePart::Document))
        };
        if !self.0.iter().any(is_id) {
            let text = "it has neither {id} nor {document}: two documents could have one name";
            return Err(LayoutDefect(text.to_owned()));
        }
        let shape: String = self.0.iter().map(LayoutPiece::shape).collect();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if !shape.chars().all(plain) {
            return Err(LayoutDefect("its text is letters, digits and - _ . /".to_owned()));
        }
        if shape.split('/').any(|part| part.chars().all(|c| c == '.')) {
            return Err(LayoutDefect("no part of its path is empty or dots alone".to_owned()));
        }
        Ok(())
    }

    /// The path of a document's file below the prefix, without an ending.
    pub fn path_of(&self, document: &ExportedDocument, kind: &str) -> String {
        self.0
            .iter()
            .map(|piece| match piece {
                LayoutPiece::Text(text) => text.clone(),
                LayoutPiece::Part(part) => part.value_of(document, kind),
            })
            .collect()
    }
}

impl LayoutPiece {
    /// The piece as a path has it, an `x` for a part: no value of a part is empty or begins with a dot.
    fn shape(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Part(_) => "x",
        }
    }
}

impl NamePart {
    fn value_of(self, document: &ExportedDocument, kind: &str) -> String {
        let day = document.created_at.to_offset(time::UtcOffset::UTC).date();
        match self {
            Self::Tenant => clean(document.tenant.as_deref().unwrap_or("none"), "none"),
            Self::Kind => clean(kind, "generic"),
            Self::Id => document.ingestion_id.to_string(),
            Self::Document => document.document_id.to_string(),
            Self::Day => day.to_string(),
            Self::Year => format!("{:04}", day.year()),
            Self::Month => format!("{:02}", u8::from(day.month())),
            Self::Name => clean(stem_of(document), NAMELESS),
        }
    }
}

/// The sender's name of the file, or the last part of its key, without its ending.
fn stem_of(document: &ExportedDocument) -> &str {
    let name = document.original_name.as_deref().unwrap_or(&document.file_path);
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Letters, digits and `-_.`; `_` for the rest, no dots at the beginning, cut to a length.
fn clean(text: &str, otherwise: &str) -> String {
    let mut cleaned = String::new();
    for c in text.trim().chars() {
        let c = if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let doubled = c == '_' && cleaned.ends_with('_');
        let leading = c == '.' && cleaned.is_empty();
        if !doubled && !leading && cleaned.len() + c.len_utf8() <= MAX_PART_BYTES {
            cleaned.push(c);
        }
    }
    if cleaned.is_empty() { otherwise.to_owned() } else { cleaned }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_stays_below_its_prefix_whatever_the_sender_called_the_file() {
        let layout = ExportLayout::parse("out/{tenant}/{kind}/{day}/{name}-{id}").unwrap();
        let id = uuid::Uuid::from_u128(7);
        for (name, expected) in [
            (Some("Rechnung 7.PDF"), "Rechnung_7"),
            (Some("../../etc/passwd"), "passwd"),
            (Some("..\\..\\x.y.exe"), "x.y"),
            (Some("../.."), "document"),
            (Some("...."), "document"),
            (Some(" "), "document"),
            (Some(".hidden"), "document"),
            (Some("Grüße/größe ß.pdf"), "größe_ß"),
            (Some("a\u{202e}fdp.exe"), "a_fdp"),
            (Some("a\n\rb\0c.pdf"), "a_b_c"),
            (None, "a_b"),
        ] {
            let path = layout.path_of(&sample(name, json!({})), "invoice");
            assert_eq!(path, format!("out/acme/invoice/1970-01-01/{expected}-{id}"), "{name:?}");
        }
        let long = layout.path_of(&sample(Some(&"ä".repeat(500)), json!({})), "invoice");
        assert!(long.contains(&format!("/{}-", "ä".repeat(50))), "{long}");
    }

    #[test]
    fn a_template_that_leaves_its_prefix_or_gives_two_documents_one_name_is_refused() {
        for (template, word) in [
            ("{name}", "neither {id}"),
            ("../{id}", "dots alone"),
            ("a/./{id}", "dots alone"),
            ("/{id}", "empty"),
            ("a//{id}", "empty"),
            ("{id}/", "empty"),
            ("{id", "no }"),
            ("{iban}/{id}", "{tenant}"),
            ("{id} x", "letters, digits"),
            ("a\\{id}", "letters, digits"),
        ] {
            let defect = ExportLayout::parse(template).unwrap_err().to_string();
            assert!(defect.contains(word), "{template}: {defect}");
        }
        for template in ["{id}", "{document}.v1", ".{id}", "{year}/{month}/{tenant}_{id}"] {
            assert!(ExportLayout::parse(template).is_ok(), "{template}");
        }
    }
}
