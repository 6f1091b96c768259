//! Names of files that docmill writes for others: a template over known parts, cleaned, never outside
//! of its prefix.

use time::{OffsetDateTime, UtcOffset};
use uuid::Uuid;

use crate::model::digest::sha256_hex;

/// Most bytes of a part that comes from outside.
const MAX_PART_BYTES: usize = 60;
/// Most bytes of a template.
const MAX_TEMPLATE_BYTES: usize = 500;
/// The name of a document without one.
const NAMELESS: &str = "document";
/// The part of documents without a tenant.
const TENANTLESS: &str = "none";
/// Hexadecimal digits that keep apart tenants whose names are cleaned to the same.
const TENANT_DIGEST_CHARS: usize = 16;

/// A part of a document's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamePart {
    /// The tenant; `none` without one.
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

/// Facts of a document that its files are named by.
#[derive(Debug, Clone, Copy)]
pub struct NamedDocument<'a> {
    /// The tenant; `None`: no tenant.
    pub tenant: Option<&'a str>,
    /// The kind.
    pub kind: &'a str,
    /// Id of the ingestion.
    pub ingestion_id: Uuid,
    /// Id of the document.
    pub document_id: Uuid,
    /// When it was registered.
    pub registered_at: OffsetDateTime,
    /// The sender's name of the file, or its key.
    pub file: &'a str,
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
    pub fn path_of(&self, document: &NamedDocument<'_>) -> String {
        self.0
            .iter()
            .map(|piece| match piece {
                LayoutPiece::Text(text) => text.clone(),
                LayoutPiece::Part(part) => part.value_of(document),
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
    fn value_of(self, document: &NamedDocument<'_>) -> String {
        let day = document.registered_at.to_offset(UtcOffset::UTC).date();
        match self {
            Self::Tenant => document.tenant.map_or_else(|| TENANTLESS.to_owned(), clean_tenant),
            Self::Kind => clean(document.kind, "generic"),
            Self::Id => document.ingestion_id.to_string(),
            Self::Document => document.document_id.to_string(),
            Self::Day => day.to_string(),
            Self::Year => format!("{:04}", day.year()),
            Self::Month => format!("{:02}", u8::from(day.month())),
            Self::Name => clean(stem_of(document.file), NAMELESS),
        }
    }
}

/// The last part of a name, without its ending.
fn stem_of(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or_default();
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Two tenants never share a part: where a name is not kept as it is, its digest is added.
fn clean_tenant(tenant: &str) -> String {
    let cleaned = clean(tenant, TENANTLESS);
    // A name that ends like a digest could be another tenant's part.
    let looks_digested = cleaned.rsplit_once('-').is_some_and(|(_, end)| {
        end.len() == TENANT_DIGEST_CHARS && end.chars().all(|c| c.is_ascii_hexdigit())
    });
    if cleaned == tenant && tenant != TENANTLESS && !looks_digested {
        return cleaned;
    }
    let digest: String = sha256_hex(tenant.as_bytes()).chars().take(TENANT_DIGEST_CHARS).collect();
    format!("{cleaned}-{digest}")
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
    use super::*;

    fn named<'a>(tenant: Option<&'a str>, file: &'a str) -> NamedDocument<'a> {
        NamedDocument {
            tenant,
            kind: "invoice",
            ingestion_id: Uuid::from_u128(7),
            document_id: Uuid::from_u128(9),
            registered_at: OffsetDateTime::UNIX_EPOCH,
            file,
        }
    }

    #[test]
    fn a_name_stays_below_its_prefix_whatever_the_sender_called_the_file() {
        let layout = ExportLayout::parse("out/{tenant}/{kind}/{day}/{name}-{id}").unwrap();
        let id = Uuid::from_u128(7);
        for (name, expected) in [
            ("Rechnung 7.PDF", "Rechnung_7"),
            ("../../etc/passwd", "passwd"),
            ("..\\..\\x.y.exe", "x.y"),
            ("../..", "document"),
            ("....", "document"),
            (" ", "document"),
            (".hidden", "document"),
            ("Grüße/größe ß.pdf", "größe_ß"),
            ("a\u{202e}fdp.exe", "a_fdp"),
            ("a\n\rb\0c.pdf", "a_b_c"),
            ("inbox/a b.pdf", "a_b"),
        ] {
            let path = layout.path_of(&named(Some("acme"), name));
            assert_eq!(path, format!("out/acme/invoice/1970-01-01/{expected}-{id}"), "{name:?}");
        }
        let long = layout.path_of(&named(Some("acme"), &"ä".repeat(500)));
        assert!(long.contains(&format!("/{}-", "ä".repeat(30))), "{long}");
    }

    #[test]
    fn no_two_tenants_share_a_folder_and_none_leaves_its_prefix() {
        let layout = ExportLayout::parse("{tenant}/{id}").unwrap();
        let long = "a".repeat(80);
        let tenants = [None, Some("none"), Some("a b"), Some("a_b"), Some("a/b"), Some("../b")];
        let mut seen = std::collections::BTreeSet::new();
        let parts = layout.path_of(&named(Some("a b"), "x"));
        let digested = parts.split('/').next();
        let more = [Some(""), Some(".."), Some(&*long), Some("A b"), digested];
        for tenant in tenants.into_iter().chain(more) {
            let path = layout.path_of(&named(tenant, "x"));
            let (folder, rest) = path.split_once('/').unwrap();
            assert!(!rest.contains('/') && !folder.starts_with('.'), "{tenant:?}: {path}");
            assert!(seen.insert(folder.to_owned()), "{tenant:?} shares {folder}");
        }
        assert!(seen.contains("a_b") && seen.contains("none"), "{seen:?}");
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
