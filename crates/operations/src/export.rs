//! Documents in the forms that a next program takes: CSV by kind, UBL by EN 16931,
//! packages for DATEV.
//!
//! The same files come from `docmill export`, the console and the API. Names are made by one layout
//! ([`ExportLayout`]). Not promised: that a form carries every field of a kind.

mod csv;
mod datev;
mod ubl;

pub use csv::{CsvColumns, CsvOptions, CsvSeparator, DecimalSign};
pub use datev::{DatevInvoice, DatevPackages};
pub use docmill_core::file_layout::{ExportLayout, LayoutDefect};
pub use docmill_ledger::db::reports::ExportedDocument;

use docmill_core::fault::{Error, Fault, Result};
use docmill_core::file_layout::NamedDocument;
use docmill_extract::einvoice::kind_uses_einvoice;
use docmill_gate::kinds::{FieldRole, Kind, KindSet};
use docmill_ledger::db::Db;
use docmill_ledger::db::reports::IngestionRow;

use crate::answer::standing_decision;
use crate::companies::list_companies;
use crate::review::ReviewCase;

/// A form of export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportForm {
    /// A row of fields, RFC 4180.
    Csv,
    /// A row for each entry of the list of lines.
    CsvLines,
    /// Invoice or credit note, UBL 2.1 by EN 16931.
    Ubl,
}

impl ExportForm {
    /// All, by their names.
    pub const ALL: [(&'static str, Self); 3] =
        [("csv", Self::Csv), ("csv-lines", Self::CsvLines), ("ubl", Self::Ubl)];

    /// By its name on the command line and in the API.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(own, _)| *own == name).map(|(_, form)| *form)
    }

    /// A link's text.
    pub fn title(self) -> &'static str {
        match self {
            Self::Csv => "CSV",
            Self::CsvLines => "Lines as CSV",
            Self::Ubl => "UBL (EN 16931)",
        }
    }

    /// Whether documents of a kind have it.
    pub fn is_of(self, kind: &Kind) -> bool {
        match self {
            Self::Csv => true,
            Self::CsvLines => !kind.item_fields(kind.field_of(FieldRole::Lines)).is_empty(),
            Self::Ubl => kind_uses_einvoice(kind),
        }
    }

    /// Media type of a file.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Csv | Self::CsvLines => "text/csv; charset=utf-8",
            Self::Ubl => "application/xml",
        }
    }

    /// The end of a file's name.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Csv => ".csv",
            Self::CsvLines => "-lines.csv",
            Self::Ubl => ".xml",
        }
    }
}

/// How the file of a document is written.
#[derive(Debug, Clone, Copy)]
pub struct ExportStyle<'a> {
    /// Its form.
    pub form: ExportForm,
    /// The style of CSV.
    pub csv: CsvOptions,
    /// Its name.
    pub layout: &'a ExportLayout,
}

/// A file of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFile {
    /// Its name, or with a layout its path: plain parts, never outside of its folder.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// The data of an ingestion's document, as a person decided or else as it was read.
///
/// # Errors
/// `Rejected`: there is none.
pub fn exported_document(row: &IngestionRow, case: &ReviewCase) -> Result<ExportedDocument> {
    let decided = standing_decision(row, case).is_some();
    let data = if decided { case.document_data.clone() } else { row.structured_data.clone() };
    let data = data.filter(|data| !data.is_null()).ok_or_else(|| {
        Error::new(Fault::Rejected, "the document has no data to export".to_owned())
    })?;
    Ok(ExportedDocument {
        ingestion_id: row.id,
        document_id: row.document_id,
        file_path: row.file_path.clone(),
        original_name: row.original_name.clone(),
        tenant: row.tenant.clone(),
        kind: row.kind.clone(),
        created_at: row.created_at,
        needs_human_review: row.needs_human_review && !decided,
        review_reasons: if decided { Vec::new() } else { row.review_reasons.clone() },
        data,
    })
}

/// Writes one document in a form, under a layout's name.
///
/// # Errors
/// `Rejected`: the kind has no such form, or the data lacks parts that the form requires, which are
/// named. No answer from Postgres.
pub async fn write_export(
    db: &Db,
    kind: &Kind,
    document: &ExportedDocument,
    style: ExportStyle<'_>,
) -> Result<ExportedFile> {
    let ExportStyle { form, csv, layout } = style;
    let bytes = match form {
        ExportForm::Csv => csv_of(document, &CsvColumns::of_kind(kind, None, csv)?),
        ExportForm::CsvLines => {
            let lines = Some(kind.field_of(FieldRole::Lines));
            csv_of(document, &CsvColumns::of_kind(kind, lines, csv)?)
        }
        ExportForm::Ubl => {
            let own = list_companies(db, document.tenant.as_deref()).await?;
            ubl::write(kind, document, &own)?.into_bytes()
        }
    };
    let name = format!("{}{}", layout.path_of(&named(document, &kind.name)), form.ending());
    Ok(ExportedFile { name, bytes })
}

/// The facts that a document's files are named by.
pub(crate) fn named<'a>(document: &'a ExportedDocument, kind: &'a str) -> NamedDocument<'a> {
    NamedDocument {
        tenant: document.tenant.as_deref(),
        kind,
        ingestion_id: document.ingestion_id,
        document_id: document.document_id,
        registered_at: document.created_at,
        file: document.original_name.as_deref().unwrap_or(&document.file_path),
    }
}

/// The kind of an ingestion.
///
/// # Errors
/// `Rejected`: its kind is unknown here.
pub fn kind_of<'a>(kinds: &'a KindSet, row: &IngestionRow) -> Result<&'a Kind> {
    let kind = kinds.for_name(row.kind.as_deref());
    let kind = kind.ok_or_else(|| {
        Error::new(Fault::Rejected, "the kind of the document is not configured here".to_owned())
    });
    kind.map(|kind| &**kind)
}

fn csv_of(document: &ExportedDocument, columns: &CsvColumns) -> Vec<u8> {
    (columns.header() + &columns.rows(document)).into_bytes()
}

/// A document for tests of names and rows.
#[cfg(test)]
pub(crate) fn sample(name: Option<&str>, data: serde_json::Value) -> ExportedDocument {
    ExportedDocument {
        ingestion_id: uuid::Uuid::from_u128(7),
        document_id: uuid::Uuid::from_u128(9),
        file_path: "inbox/a b.pdf".to_owned(),
        original_name: name.map(str::to_owned),
        tenant: Some("acme".to_owned()),
        kind: Some("invoice".to_owned()),
        created_at: time::OffsetDateTime::UNIX_EPOCH,
        needs_human_review: false,
        review_reasons: Vec::new(),
        data,
    }
}
