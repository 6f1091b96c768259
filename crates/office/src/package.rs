//! The ZIP package of an Office document: parts by name, relations between them, and what they may
//! expand to (ISO/IEC 29500-2, OASIS OpenDocument 1.3 part 2).

use std::collections::HashMap;
use std::io::{Cursor, Read};

use docmill_core::config::LimitsConfig;
use docmill_formats::xml::XmlText;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::error::OfficeError;
use crate::tags::{all, attribute};

/// Bytes of a part in XML: no more is parsed.
const MAX_XML_BYTES: u64 = 32 << 20;

/// The start of an entry in the directory at the end of a ZIP (APPNOTE 4.3.12).
const DIRECTORY_ENTRY: &[u8] = b"PK\x01\x02";

/// The form of the main part of an Office Open XML package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MainPartKind {
    Document,
    Workbook,
    Slides,
}

/// The part with which reading begins.
#[derive(Debug)]
pub(crate) struct MainPart {
    pub(crate) name: String,
    pub(crate) kind: MainPartKind,
    pub(crate) xml: XmlText,
}

/// A relation to another part.
#[derive(Debug, Clone)]
pub(crate) struct PartRelation {
    /// The last word of its type, e.g. `image`.
    pub(crate) kind: String,
    /// Name of the part; `None` for something outside the package, which is never fetched.
    pub(crate) part: Option<String>,
}

/// The part of the first relation of a kind.
pub(crate) fn part_of_kind(
    relations: &HashMap<String, PartRelation>,
    kind: &str,
) -> Option<String> {
    relations.values().find(|it| it.kind == kind).and_then(|it| it.part.clone())
}

/// An open package.
pub(crate) struct OfficePackage<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    left: u64,
    most: u64,
}

impl<'a> OfficePackage<'a> {
    /// Opens it and counts its members before anything is kept of them.
    pub(crate) fn open(bytes: &'a [u8], limits: &LimitsConfig) -> Result<Self, OfficeError> {
        let most = usize::try_from(limits.archive_entries).unwrap_or(usize::MAX);
        let entries =
            memchr::memmem::find_iter(bytes, DIRECTORY_ENTRY).take(most.saturating_add(1));
        if entries.count() > most {
            let detail = format!("more than {most} members, which limits.archive_entries allows");
            return Err(OfficeError::too_large(detail));
        }
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_error| damaged())?;
        let most = limits.decompressed_bytes.0;
        Ok(Self { archive, left: most, most })
    }

    /// The bytes of a part, up to `most`; `None` if there is none of that name.
    pub(crate) fn read_part(
        &mut self,
        name: &str,
        most: u64,
    ) -> Result<Option<Vec<u8>>, OfficeError> {
        let Some(index) = self.archive.index_for_name(name) else { return Ok(None) };
        let file = match self.archive.by_index(index) {
            Ok(file) => file,
            Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => {
                return Err(OfficeError::encrypted());
            }
            Err(_error) => return Err(damaged()),
        };
        let bound = most.min(self.left);
        let mut found = Vec::new();
        let read = file.take(bound.saturating_add(1)).read_to_end(&mut found);
        let length = u64::try_from(found.len()).unwrap_or(u64::MAX);
        if length > most {
            return Err(OfficeError::too_large(format!("a part of more than {most} bytes")));
        }
        if length > self.left {
            let most = self.most;
            let detail = format!(
                "it expands to more than {most} bytes, which limits.decompressed_bytes allows"
            );
            return Err(OfficeError::too_large(detail));
        }
        read.map_err(|_error| damaged())?;
        self.left -= length;
        Ok(Some(found))
    }

    /// A part in XML that is safe to parse.
    pub(crate) fn read_xml(&mut self, name: &str) -> Result<Option<XmlText>, OfficeError> {
        let Some(bytes) = self.read_part(name, MAX_XML_BYTES)? else { return Ok(None) };
        Ok(Some(XmlText::decode(&bytes)?))
    }

    /// The same of a part that need not be named.
    pub(crate) fn read_optional(
        &mut self,
        name: Option<String>,
    ) -> Result<Option<XmlText>, OfficeError> {
        name.map_or(Ok(None), |name| self.read_xml(&name))
    }

    /// The same of a part that has to be there.
    pub(crate) fn need_xml(&mut self, name: &str) -> Result<XmlText, OfficeError> {
        self.read_xml(name)?
            .ok_or_else(|| OfficeError::corrupt("an Office document without its main part"))
    }

    /// The relations of a part, by their ids.
    pub(crate) fn relations(
        &mut self,
        part: &str,
    ) -> Result<HashMap<String, PartRelation>, OfficeError> {
        let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
        let path = match folder {
            "" => format!("_rels/{name}.rels"),
            folder => format!("{folder}/_rels/{name}.rels"),
        };
        let Some(xml) = self.read_xml(&path)? else { return Ok(HashMap::new()) };
        let tree = xml.parse_tree()?;
        let mut found = HashMap::new();
        for node in all(tree.root(), "Relationship") {
            let (Some(id), Some(target)) = (attribute(node, "Id"), attribute(node, "Target"))
            else {
                continue;
            };
            let kind = attribute(node, "Type").unwrap_or_default();
            let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
            let is_outside = attribute(node, "TargetMode") == Some("External");
            let part = (!is_outside).then(|| resolve_part(folder, target));
            found.insert(id.to_owned(), PartRelation { kind, part });
        }
        Ok(found)
    }

    /// The main part, by the package's own relation to it.
    pub(crate) fn find_main_part(&mut self) -> Result<MainPart, OfficeError> {
        let relations = self.relations("")?;
        let main = relations.into_values().find(|it| it.kind == "officeDocument");
        let named = main.and_then(|it| it.part);
        let usual = ["word/document.xml", "xl/workbook.xml", "ppt/presentation.xml"];
        let usual = usual.into_iter().find(|name| self.archive.index_for_name(name).is_some());
        let name = named.or_else(|| usual.map(str::to_owned)).unwrap_or_default();
        if name.ends_with(".bin") {
            let detail = "a binary workbook (XLSB), which is not read: save it as XLSX";
            return Err(OfficeError::unsupported(detail));
        }
        let xml = self.need_xml(&name)?;
        let kind = match xml.parse_tree()?.root_element().tag_name().name() {
            "document" => MainPartKind::Document,
            "workbook" => MainPartKind::Workbook,
            "presentation" => MainPartKind::Slides,
            _ => {
                let detail =
                    "an Office package that is neither document, workbook nor presentation";
                return Err(OfficeError::unsupported(detail));
            }
        };
        Ok(MainPart { name, kind, xml })
    }
}

fn damaged() -> OfficeError {
    OfficeError::corrupt("an Office document that is damaged or cut off")
}

/// Name of a part by a path that is relative to `folder`, or from the root. A path that leaves the
/// package ends at its root.
fn resolve_part(folder: &str, target: &str) -> String {
    let (start, path) = match target.strip_prefix('/') {
        Some(path) => ("", path),
        None => (folder, target),
    };
    let mut names: Vec<&str> = start.split('/').filter(|name| !name.is_empty()).collect();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    names.join("/")
}
