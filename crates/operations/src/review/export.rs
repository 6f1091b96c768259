//! Reviewed data, written as a folder that `docmill eval` scores against, or as examples of a kind
//! for models.
//!
//! `KIND_ID.ext` is the stored document with an ending by its content, `truth/KIND_ID.json` the data of its newest decision. As
//! examples: `KIND/examples/ID.txt` is the transcript, `ID.json` the same data. Rejected documents
//! are left out. Not promised: that fields a person left alone are right.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{PageText, Transcript};
use docmill_documents::DocumentFormat;
use docmill_gate::kinds::is_kind_name;
use docmill_ledger::db::Db;
use docmill_ledger::db::reviews::{self, DecidedDocument};
use docmill_storage::{GetOptions, GetResult, ObjectStore};

/// Bytes of a transcript that an example is made of: longer ones are no examples.
const MAX_TRANSCRIPT_BYTES: u64 = 4 << 20;
/// Documents that are asked for together.
const TOGETHER: u32 = 200;

/// Contents and destination of an export.
#[derive(Clone, Copy)]
pub struct TruthExport<'a> {
    /// The folder; files of the same name are replaced.
    pub folder: &'a Path,
    /// Only documents of this tenant.
    pub tenant: Option<&'a str>,
    /// Only documents of this kind.
    pub kind: Option<&'a str>,
    /// Larger documents are left out.
    pub largest: u64,
    /// As examples of their kinds, and not as truth beside the documents.
    pub as_examples: bool,
}

/// Counts of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TruthReport {
    /// Documents written with their truth.
    pub written: u64,
    /// Documents that are not in the store any more, or are larger than is read.
    pub left_out: Vec<Uuid>,
}

/// Writes the documents that people decided about, with the decided data.
///
/// # Errors
/// Postgres or the store do not answer; the folder cannot be written.
pub async fn export_truth(
    db: &Db,
    store: &dyn ObjectStore,
    export: TruthExport<'_>,
) -> Result<TruthReport> {
    let (mut report, mut after) = (TruthReport::default(), Uuid::nil());
    loop {
        let page = reviews::list_decided(db, after, TOGETHER).await?;
        let Some(last) = page.last() else { return Ok(report) };
        after = last.document_id;
        for decided in &page {
            if is_wanted(export.tenant, decided.tenant.as_deref())
                && is_wanted(export.kind, decided.kind.as_deref())
            {
                match export.as_examples {
                    true => write_example(store, export, decided, &mut report).await?,
                    false => write_document(store, export, decided, &mut report).await?,
                }
            }
        }
    }
}

fn is_wanted(only: Option<&str>, value: Option<&str>) -> bool {
    only.is_none() || only == value
}

async fn write_document(
    store: &dyn ObjectStore,
    export: TruthExport<'_>,
    decided: &DecidedDocument,
    report: &mut TruthReport,
) -> Result<()> {
    let Some(data) = &decided.data else { return Ok(()) };
    let what = GetOptions { at_most: export.largest, if_match: None };
    let GetResult::Found(found) = store.get(&decided.file_path, what).await? else {
        report.left_out.push(decided.document_id);
        return Ok(());
    };
    let name = format!("{}_{}", kind_name(decided), decided.document_id);
    let ending = DocumentFormat::sniff(&found.bytes).map_or("bin", DocumentFormat::code);
    let original = export.folder.join(format!("{name}.{ending}"));
    let truth = export.folder.join("truth").join(format!("{name}.json"));
    write_file(&original, &found.bytes).await?;
    write_file(&truth, &format_data(data)?).await?;
    report.written += 1;
    Ok(())
}

async fn write_example(
    store: &dyn ObjectStore,
    export: TruthExport<'_>,
    decided: &DecidedDocument,
    report: &mut TruthReport,
) -> Result<()> {
    let Some(data) = &decided.data else { return Ok(()) };
    let Some(text) = load_text(store, decided).await? else {
        report.left_out.push(decided.document_id);
        return Ok(());
    };
    let place = export.folder.join(kind_name(decided)).join("examples");
    let id = decided.document_id;
    write_file(&place.join(format!("{id}.txt")), text.as_bytes()).await?;
    write_file(&place.join(format!("{id}.json")), &format_data(data)?).await?;
    report.written += 1;
    Ok(())
}

/// The kind as a part of a path. The row may be older than the check of its name: any other text
/// could lead out of the folder.
fn kind_name(decided: &DecidedDocument) -> &str {
    decided.kind.as_deref().filter(|name| is_kind_name(name)).unwrap_or("generic")
}

/// The transcript of the document; `None` if it is gone, or in the form of an earlier system.
async fn load_text(store: &dyn ObjectStore, decided: &DecidedDocument) -> Result<Option<String>> {
    let Some(key) = &decided.transcription_file_path else { return Ok(None) };
    let what = GetOptions { at_most: MAX_TRANSCRIPT_BYTES, if_match: None };
    let GetResult::Found(found) = store.get(key, what).await? else { return Ok(None) };
    let transcript: Option<Transcript> = serde_json::from_slice(&found.bytes).ok();
    Ok(transcript.map(|transcript| {
        let pages: Vec<String> = transcript.pages.iter().map(PageText::text).collect();
        format!("{}\n", pages.join("\n\n"))
    }))
}

fn format_data(data: &Value) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(data)
        .map_err(|_| Error::internal("the data of a decision cannot be written"))
}

async fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        tokio::fs::create_dir_all(folder).await.map_err(|error| cannot_write(folder, error))?;
    }
    tokio::fs::write(path, bytes).await.map_err(|error| cannot_write(path, error))
}

fn cannot_write(path: &Path, error: std::io::Error) -> Error {
    Error::new(Fault::Misconfigured, format!("{} cannot be written: {error}", path.display()))
}
