//! Handing documents in: files and folders into store, database and queue.
//!
//! In this order: upload, rows committed, message sent. A crash between them leaves an object that
//! nothing refers to, or a row whose message the janitor sends; never a message without a row. The
//! same bytes of the same tenant are one document with one ingestion, however often and under
//! however many names they are handed in: ids are made of the content, so that two runs at once
//! agree as well. Not promised: deleting what was uploaded for a row that could not be written.

mod files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::db::Db;
use crate::db::registration::{self, Known, NewDocument, NewIngestion};
use crate::fault::{Error, Result};
use crate::model::{DocumentId, IngestionId, Priority, Status};
use crate::ops::sending;
use crate::pages::Format;
use crate::queue::Queue;
use crate::store::{Store, keys};

pub use files::{Found, Skipped, find};

/// Where documents are handed in.
#[derive(Clone, Copy)]
pub struct Desk<'a> {
    /// For the rows.
    pub db: &'a Db,
    /// For the bytes.
    pub store: &'a dyn Store,
    /// For the messages.
    pub queue: &'a dyn Queue,
    /// Larger files are refused.
    pub largest: u64,
}

/// What is to be known about the documents.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// Make a new ingestion even if the content was handed in before.
    pub again: bool,
    /// Kind of document.
    pub kind: Option<String>,
    /// Whose they are.
    pub tenant: Option<String>,
    /// How urgent.
    pub priority: Priority,
    /// Labels; a label without value has an empty one.
    pub tags: BTreeMap<String, String>,
}

/// What became of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Handed in.
    Submitted,
    /// The same content was handed in before.
    Known,
    /// In store and database, but the message could not be sent; the janitor will.
    NotSent,
    /// Nothing was done; `problem` says why.
    Refused,
}

/// One line of the report.
#[derive(Debug, Clone, Serialize)]
pub struct Submission {
    /// The path as it was found.
    pub file: PathBuf,
    /// What became of it.
    pub fate: Fate,
    /// Its document.
    pub document_id: Option<DocumentId>,
    /// Its ingestion.
    pub ingestion_id: Option<IngestionId>,
    /// Where the ingestion stands.
    pub status: Option<Status>,
    /// Why not, in words.
    pub problem: Option<String>,
}

impl Submission {
    fn refused(file: &Path, problem: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            fate: Fate::Refused,
            document_id: None,
            ingestion_id: None,
            status: None,
            problem: Some(problem.into()),
        }
    }
}

/// Hands one file in.
///
/// # Errors
/// Store or database do not answer: the next file would fare no better. What is wrong with the
/// file itself is in the report.
pub async fn submit(desk: Desk<'_>, file: &Path, terms: &Terms) -> Result<Submission> {
    let bytes = match files::read(file, desk.largest).await {
        Ok(bytes) => bytes,
        Err(problem) => return Ok(Submission::refused(file, problem)),
    };
    if Format::sniff(&bytes).is_none() {
        let problem = "not a document: neither PDF nor PNG, JPEG, TIFF, WebP, GIF or BMP";
        return Ok(Submission::refused(file, problem));
    }
    let sha256: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    let tenant = terms.tenant.as_deref();
    let known = registration::find_by_sha256(desk.db, &sha256, tenant).await?;
    if let Some(Known { document, ingestion: Some((ingestion, status)), .. }) = known
        && !terms.again
    {
        return known_before(desk, file, (document, ingestion, status)).await;
    }
    let again = known.as_ref().is_some_and(|known| known.ingestion.is_some());
    let document = match known {
        Some(known) => known.document,
        None => upload(desk, &new_document(file, &sha256, bytes.len(), terms), bytes).await?,
    };
    let ingestion = NewIngestion {
        id: if again { IngestionId::random() } else { IngestionId::first_of(document) },
        document,
        kind: terms.kind.clone(),
        tenant: terms.tenant.clone(),
        priority: terms.priority,
    };
    let new = registration::register_ingestion(desk.db, &ingestion).await?;
    let sent = send(desk, ingestion.id).await;
    Ok(Submission {
        file: file.to_owned(),
        fate: match &sent {
            Err(_) => Fate::NotSent,
            Ok(()) if new => Fate::Submitted,
            Ok(()) => Fate::Known,
        },
        document_id: Some(document),
        ingestion_id: Some(ingestion.id),
        status: Some(Status::InProgress),
        problem: sent.err().map(|error| error.to_string()),
    })
}

/// An ingestion that still waits gets a message once more: the run that registered it may have
/// died before it sent one.
async fn known_before(
    desk: Desk<'_>,
    file: &Path,
    (document, ingestion, status): (DocumentId, IngestionId, Status),
) -> Result<Submission> {
    let sent = if status.is_terminal() { Ok(()) } else { send(desk, ingestion).await };
    Ok(Submission {
        file: file.to_owned(),
        fate: if sent.is_ok() { Fate::Known } else { Fate::NotSent },
        document_id: Some(document),
        ingestion_id: Some(ingestion),
        status: Some(status),
        problem: sent.err().map(|error| error.to_string()),
    })
}

fn new_document(file: &Path, sha256: &str, size: usize, terms: &Terms) -> NewDocument {
    let id = DocumentId::of_content(sha256, terms.tenant.as_deref().unwrap_or_default());
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    NewDocument {
        id,
        file_path: keys::document(id, &name),
        original_name: Some(name),
        sha256: Some(sha256.to_owned()),
        size: u64::try_from(size).ok(),
        tenant: terms.tenant.clone(),
        tags: terms.tags.clone(),
    }
}

/// Bytes first: a row never refers to what is not there.
async fn upload(desk: Desk<'_>, document: &NewDocument, bytes: Bytes) -> Result<DocumentId> {
    let labels: Vec<_> = document
        .tags
        .iter()
        .map(
            |(name, value)| if value.is_empty() { name.clone() } else { format!("{name}={value}") },
        )
        .collect();
    let metadata = BTreeMap::from([
        ("original-name".to_owned(), document.original_name.clone().unwrap_or_default()),
        ("tags".to_owned(), serde_json::to_string(&labels).unwrap_or_default()),
        ("size".to_owned(), bytes.len().to_string()),
    ]);
    desk.store.put(&document.file_path, bytes, &metadata).await?;
    registration::register_document(desk.db, document).await?;
    Ok(document.id)
}

async fn send(desk: Desk<'_>, ingestion: IngestionId) -> Result<()> {
    let answers = sending::send(desk.db, desk.queue, &[ingestion]).await?;
    let nothing = || Err(Error::internal("the queue did not say whether it took the message"));
    answers.into_iter().next().unwrap_or_else(nothing)
}
