//! Data of many documents in one file, in memory as a whole and bounded by [`MAX_EXPORT_BYTES`].
//!
//! `docmill export` writes any number of documents; this is for a page or a program that asks over HTTP.

use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::IngestionId;
use docmill_gate::kinds::{FieldRole, Kind};
use docmill_ledger::db::Db;
use docmill_ledger::db::reports::load_exported_documents;

use crate::export::{CsvColumns, CsvOptions, ExportedDocument};

/// Bytes of the data of one file, as JSON.
pub const MAX_EXPORT_BYTES: usize = 32 << 20;
/// Documents that are read together.
const TOGETHER: usize = 25;

/// A form of a file of many documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkExportForm {
    /// A list of objects with the data.
    Json,
    /// A row of fields for each document, RFC 4180.
    Csv,
    /// A row for each entry of the list of lines.
    CsvLines,
}

impl BulkExportForm {
    /// All, by their names and titles.
    pub const ALL: [(&'static str, &'static str, Self); 3] = [
        ("csv", "CSV", Self::Csv),
        ("csv-lines", "Lines as CSV", Self::CsvLines),
        ("json", "JSON", Self::Json),
    ];

    /// By its name on pages and in the API.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(own, ..)| *own == name).map(|(.., form)| *form)
    }

    /// Media type and end of the name of its files.
    pub fn file_type(self) -> (&'static str, &'static str) {
        match self {
            Self::Json => ("application/json", ".json"),
            Self::Csv => ("text/csv; charset=utf-8", ".csv"),
            Self::CsvLines => ("text/csv; charset=utf-8", "-lines.csv"),
        }
    }

    /// The file of these documents; `kind`: theirs, whose fields are the columns.
    ///
    /// # Errors
    /// `Rejected`: CSV without a kind, or lines of a kind that has none.
    pub fn write(
        self,
        documents: &[ExportedDocument],
        kind: Option<&Kind>,
        options: CsvOptions,
    ) -> Result<Vec<u8>> {
        if self == Self::Json {
            return serde_json::to_vec_pretty(documents)
                .map_err(|error| Error::internal("data cannot be written").with_source(error));
        }
        let kind = kind.ok_or_else(|| refusal("CSV has the fields of one kind: choose it"))?;
        let lines = (self == Self::CsvLines).then(|| kind.field_of(FieldRole::Lines));
        let columns = CsvColumns::of_kind(kind, lines, options)?;
        let rows: String = documents.iter().map(|document| columns.rows(document)).collect();
        Ok((columns.header() + &rows).into_bytes())
    }
}

/// The documents of these ingestions that carry data, of this kind if one is named, as a person decided it
/// or else as it was read; in the order of `ids`.
///
/// # Errors
/// `Rejected`: they are larger than [`MAX_EXPORT_BYTES`] together. No answer from Postgres.
pub async fn collect_documents(
    db: &Db,
    ids: &[IngestionId],
    kind: Option<&str>,
) -> Result<Vec<ExportedDocument>> {
    let (mut documents, mut bytes) = (Vec::new(), 0);
    for some in ids.chunks(TOGETHER) {
        let mut read = load_exported_documents(db, some).await?;
        read.retain(|document| kind.is_none() || document.kind.as_deref() == kind);
        bytes += read.iter().map(|document| document.data.to_string().len()).sum::<usize>();
        if bytes > MAX_EXPORT_BYTES {
            let text = format!(
                "the data is larger than {} MiB: choose fewer documents",
                MAX_EXPORT_BYTES >> 20
            );
            return Err(refusal(&text));
        }
        documents.extend(read);
    }
    Ok(documents)
}

fn refusal(text: &str) -> Error {
    Error::new(Fault::Rejected, text.to_owned())
}

#[cfg(test)]
mod tests {
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;
    use serde_json::{Value, json};

    use super::*;
    use crate::export::sample;

    #[test]
    fn a_file_of_many_has_one_head_a_row_of_each_and_refuses_what_it_cannot_carry() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let (invoice, generic) = (kinds.get("invoice").unwrap(), kinds.get("generic").unwrap());
        let line = |name: &str| json!({ "description": name, "amount": 1 });
        let of = |number: &str, lines: Value| {
            sample(None, json!({ "invoice_number": number, "line_items": lines }))
        };
        let all = [of("A-1", json!([line("x"), line("y")])), of("A-2", json!([]))];
        let write = |form: BulkExportForm, kind| form.write(&all, kind, CsvOptions::default());
        let rows = |form| String::from_utf8(write(form, Some(&**invoice)).unwrap()).unwrap();
        assert_eq!(rows(BulkExportForm::Csv).lines().count(), 3);
        assert_eq!(rows(BulkExportForm::CsvLines).lines().count(), 3, "two lines of the first");
        let json: Value = serde_json::from_str(&rows(BulkExportForm::Json)).unwrap();
        assert_eq!(json[1]["data"]["invoice_number"], "A-2");
        assert!(write(BulkExportForm::Json, None).is_ok());
        for (form, kind) in
            [(BulkExportForm::Csv, None), (BulkExportForm::CsvLines, Some(&**generic))]
        {
            assert_eq!(write(form, kind).unwrap_err().fault, Fault::Rejected, "{form:?}");
        }
    }
}
