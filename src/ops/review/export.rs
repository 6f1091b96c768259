//! What people decided, written as a folder that `docmill eval` scores against.
//!
//! `KIND_ID.ext` is the document as it lies in the store, `truth/KIND_ID.json` what its newest decision
//! says of it. What was rejected is left out. Not promised: that what a person left alone is right.

use std::path::Path;

use serde::Serialize;
use uuid::Uuid;

use docmill_core::fault::{Error, Fault, Result};
use docmill_ledger::db::Db;
use docmill_ledger::db::reviews::{self, DecidedDocument};
use docmill_storage::store::{GetOptions, GetResult, ObjectStore};

/// Documents that are asked for together.
const TOGETHER: u32 = 200;

/// What is exported, and where to.
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
}

/// What an export wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TruthReport {
    /// Documents written with their truth.
    pub written: u64,
    /// Documents that are not in the store any more, or are larger than is read.
    pub left_out: Vec<Uuid>,
}

/// Writes the documents that people decided about, with what they said is right.
///
/// # Errors
/// Postgres or the store do not answer; the folder cannot be written.
pub async fn export_truth(
    db: &Db,
    store: &dyn ObjectStore,
    export: TruthExport<'_>,
) -> Result<TruthReport> {
    let truth = export.folder.join("truth");
    tokio::fs::create_dir_all(&truth).await.map_err(|error| cannot_write(&truth, error))?;
    let (mut report, mut after) = (TruthReport::default(), Uuid::nil());
    loop {
        let page = reviews::list_decided(db, after, TOGETHER).await?;
        let Some(last) = page.last() else { return Ok(report) };
        after = last.document_id;
        for decided in &page {
            let wanted = |only: Option<&str>, is: &Option<String>| {
                only.is_none_or(|only| is.as_deref() == Some(only))
            };
            if wanted(export.tenant, &decided.tenant) && wanted(export.kind, &decided.kind) {
                write_document(store, export, decided, &mut report).await?;
            }
        }
    }
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
    let kind = decided.kind.as_deref().unwrap_or("generic");
    let name = format!("{kind}_{}", decided.document_id);
    let ending = Path::new(&decided.file_path).extension().and_then(|ending| ending.to_str());
    let original = export.folder.join(format!("{name}.{}", ending.unwrap_or("bin")));
    let truth = export.folder.join("truth").join(format!("{name}.json"));
    let text = serde_json::to_vec_pretty(data)
        .map_err(|_| Error::internal("the data of a decision cannot be written"))?;
    let written = tokio::fs::write(&original, &found.bytes).await;
    written.map_err(|error| cannot_write(&original, error))?;
    tokio::fs::write(&truth, text).await.map_err(|error| cannot_write(&truth, error))?;
    report.written += 1;
    Ok(())
}

fn cannot_write(path: &Path, error: std::io::Error) -> Error {
    Error::new(Fault::Misconfigured, format!("{} cannot be written: {error}", path.display()))
}
