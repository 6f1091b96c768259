//! Packages for DATEV: ZIP archives of received and issued invoices, each with its ledger file and its original.
//!
//! A package gets its name once it is whole, so that a program that watches the folder takes no part of
//! one. Sizes are those that DATEV names for "Belegtransfer".

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::macros::format_description;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::ubl::{CREDIT_NOTE_KIND, refusal, role_data};
use crate::companies::list_companies;
use docmill_core::fault::{Error, Result};
use docmill_core::model::OwnCompany;
use docmill_documents::DocumentFormat;
use docmill_extract::einvoice::kind_uses_einvoice;
use docmill_formats::einvoice::{
    DatevDirection, DatevDocument, DatevLedger, MAX_DATEV_DOCUMENTS, write_datev_ledger,
    write_datev_package,
};
use docmill_formats::notation::party_name::name_key;
use docmill_gate::kinds::Kind;
use docmill_ledger::db::Db;
use docmill_ledger::db::reports::ExportedDocument;
use docmill_storage::known_content::get_known_content;
use docmill_storage::{GetResult, ObjectStore};

/// Largest original.
const MAX_ORIGINAL_BYTES: u64 = 20 << 20;
/// A package that has so many bytes of originals takes no more.
const FULL_PACKAGE_BYTES: usize = 100 << 20;

/// An invoice as a package has it.
pub struct DatevInvoice {
    ledger: DatevLedger,
    original: Bytes,
    ending: &'static str,
    guid: String,
}

impl DatevInvoice {
    /// Prepares a document, whose original has this SHA-256 (hex).
    ///
    /// # Errors
    /// `Rejected`: it is no invoice with all that DATEV requires, waits for review, or its
    /// original is gone, too large or of another format. The store's and Postgres's own.
    pub async fn prepare(
        db: &Db,
        store: &dyn ObjectStore,
        kind: &Kind,
        document: &ExportedDocument,
        sha256: &str,
    ) -> Result<Self> {
        if !kind_uses_einvoice(kind) {
            return Err(refusal(format!("documents of kind {} are no invoices", kind.name)));
        }
        if document.needs_human_review {
            return Err(refusal("it waits for review".to_owned()));
        }
        let data = role_data(kind, document);
        let own = list_companies(db, document.tenant.as_deref()).await?;
        let direction = match own.iter().any(|company| is_issuer(company, &data)) {
            true => DatevDirection::Issued,
            false => DatevDirection::Received,
        };
        let ledger = write_datev_ledger(&data, kind.name == CREDIT_NOTE_KIND, direction)
            .map_err(|defects| refusal(defects.to_string()))?;
        let found = get_known_content(store, &document.file_path, sha256, MAX_ORIGINAL_BYTES);
        let GetResult::Found(original) = found.await? else {
            let text = "its original is gone, is another one now, or has more than 20 MiB";
            return Err(refusal(text.to_owned()));
        };
        let ending = match DocumentFormat::sniff(&original.bytes) {
            Some(DocumentFormat::Pdf) => "pdf",
            Some(DocumentFormat::Jpeg) => "jpg",
            Some(DocumentFormat::Png) => "png",
            Some(DocumentFormat::Tiff) => "tif",
            _ => return Err(refusal("its original is no PDF, JPEG, PNG or TIFF".to_owned())),
        };
        let guid = document.document_id.to_string();
        Ok(Self { ledger, original: original.bytes, ending, guid })
    }
}

/// Whether the company is the supplier, by VAT identifier or name.
fn is_issuer(company: &OwnCompany, data: &Map<String, Value>) -> bool {
    let [name, vat_id] = ["supplier_name", "supplier_vat_id"]
        .map(|field| data.get(field).and_then(Value::as_str).unwrap_or_default());
    let name = name_key(name);
    let mut names = std::iter::once(&company.name).chain(&company.other_names);
    company.vat_ids.iter().any(|own| own == vat_id)
        || !name.is_empty() && names.any(|own| name_key(own) == name)
}

/// Packages that are written into a folder.
pub struct DatevPackages {
    folder: PathBuf,
    made_at: OffsetDateTime,
    written: u32,
    open: Option<OpenPackage>,
}

struct OpenPackage {
    zip: ZipWriter<File>,
    documents: Vec<DatevDocument>,
    bytes: usize,
    path: PathBuf,
}

impl DatevPackages {
    /// Into this folder, which is there.
    pub fn new(folder: &Path, made_at: OffsetDateTime) -> Self {
        Self { folder: folder.to_owned(), made_at, written: 0, open: None }
    }

    /// Adds an invoice; a full package is ended before.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn add(&mut self, invoice: &DatevInvoice) -> Result<()> {
        if self.open.as_ref().is_some_and(OpenPackage::is_full) {
            self.finish()?;
        }
        let mut package = match self.open.take() {
            Some(package) => package,
            None => self.start()?,
        };
        package.add(invoice).map_err(|error| unwritten(&package.path, error))?;
        self.open = Some(package);
        Ok(())
    }

    fn start(&mut self) -> Result<OpenPackage> {
        self.written += 1;
        let form = format_description!("[year][month][day]T[hour][minute][second]");
        let stamp = self.made_at.format(form).unwrap_or_default();
        let path = self.folder.join(format!("docmill-{stamp}-{:03}.zip", self.written));
        let file = File::create(part_of(&path)).map_err(|error| unwritten(&path, error.into()))?;
        Ok(OpenPackage { zip: ZipWriter::new(file), documents: Vec::new(), bytes: 0, path })
    }

    /// Ends the last package.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn finish(&mut self) -> Result<()> {
        let Some(package) = self.open.take() else { return Ok(()) };
        let path = package.path.clone();
        package.finish(self.made_at).map_err(|error| unwritten(&path, error))
    }
}

impl OpenPackage {
    fn is_full(&self) -> bool {
        self.documents.len() == MAX_DATEV_DOCUMENTS || self.bytes >= FULL_PACKAGE_BYTES
    }

    fn add(&mut self, invoice: &DatevInvoice) -> zip::result::ZipResult<()> {
        let DatevInvoice { ledger, original, ending, guid } = invoice;
        let document = DatevDocument {
            guid: guid.clone(),
            period: ledger.period.clone(),
            direction: ledger.direction,
            ledger: format!("{guid}.xml"),
            original: format!("{guid}.{ending}"),
        };
        self.write(&document.ledger, ledger.xml.as_bytes())?;
        self.write(&document.original, original)?;
        self.documents.push(document);
        self.bytes += original.len();
        Ok(())
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> zip::result::ZipResult<()> {
        self.zip.start_file(name, SimpleFileOptions::default())?;
        Ok(self.zip.write_all(bytes)?)
    }

    fn finish(mut self, made_at: OffsetDateTime) -> zip::result::ZipResult<()> {
        let text = write_datev_package(&self.documents, made_at);
        self.write("document.xml", text.as_bytes())?;
        self.zip.finish()?.sync_all()?;
        Ok(std::fs::rename(part_of(&self.path), &self.path)?)
    }
}

/// A package that is not whole yet.
fn part_of(path: &Path) -> PathBuf {
    path.with_extension("zip.part")
}

fn unwritten(path: &Path, error: zip::result::ZipError) -> Error {
    Error::internal(format!("{} cannot be written", path.display())).with_source(error)
}
