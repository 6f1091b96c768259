//! `preprocessed.{ext}`: the repaired pages, for the reviewer who wants to see what the text was
//! read from. The original stays where it is; pages that were read as they are, are not in here.
//!
//! A single picture stays a picture; of a PDF and of several pages a PDF is made, whose page labels
//! are the numbers of the original's pages. It is bounded as a document is, by
//! `limits.document_bytes`: the pages with the highest numbers are left out first, and which are in
//! it is said in the transcript. Stored before the transcript that speaks of it.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::artefact::replace_version;
use crate::journal::PageJournal;
use crate::step_error::StepError;
use docmill_core::fault;
use docmill_core::model::{EncodedImage, FileRef, IngestionId, digest};
use docmill_documents::{DocumentFormat, ImagePdf};
use docmill_storage::keys;

/// What the transcript says of the stored file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PreprocessedFile {
    /// The stored object's key and version.
    #[serde(flatten)]
    pub file: FileRef,
    /// The pages of the original that are in it, in order.
    pub pages: Vec<u32>,
}

/// Stores the repaired pages that the journal has, up to `most` bytes of images; `None` if there
/// are none. `format` and `pages` are the original's. The caller must have released its part of the
/// document budget; if there is no room, the journal writes its open part and releases its own.
///
/// # Errors
/// [`fault::Fault::ClaimLost`]; what the store says.
pub(super) async fn store_preprocessed(
    journal: &mut PageJournal<'_>,
    format: Option<DocumentFormat>,
    pages: usize,
    most: u64,
) -> Result<Option<PreprocessedFile>, StepError> {
    let mut chosen = BTreeSet::new();
    let mut bytes: u64 = 0;
    for (number, size) in journal.image_sizes() {
        let more = bytes.saturating_add(u64::try_from(size).unwrap_or(u64::MAX));
        if more > most {
            break;
        }
        bytes = more;
        chosen.insert(number);
    }
    if chosen.is_empty() {
        return Ok(None);
    }
    let (store, budget, hold) = (journal.store, journal.budget, journal.hold);
    let _room = budget.take_giving_back(bytes, async || journal.flush().await).await?;
    let form = if pages == 1 && format != Some(DocumentFormat::Pdf) {
        PreprocessedFormat::Picture
    } else {
        PreprocessedFormat::Pdf
    };
    let made = assemble_file(form, hold.id, journal, chosen).await?;
    let sha256 = digest::sha256_hex(&made.bytes);
    let found = store.head(&made.key).await?.map(|meta| meta.etag);
    replace_version(store, hold, &made.key, found.as_ref(), made.bytes).await?;
    Ok(Some(PreprocessedFile { file: FileRef { path: made.key, sha256 }, pages: made.pages }))
}

#[derive(Debug, Clone, Copy)]
enum PreprocessedFormat {
    Picture,
    Pdf,
}

struct AssembledFile {
    key: String,
    bytes: Bytes,
    pages: Vec<u32>,
}

async fn assemble_file(
    form: PreprocessedFormat,
    id: IngestionId,
    journal: &PageJournal<'_>,
    chosen: BTreeSet<u32>,
) -> fault::Result<AssembledFile> {
    let pages: Vec<u32> = chosen.iter().copied().collect();
    match form {
        PreprocessedFormat::Picture => {
            let mut only = None;
            let keep = |_: u32, image| {
                only = Some(image);
                Ok(())
            };
            journal.visit_images(chosen, keep).await?;
            let lost = || fault::Error::internal("the repaired page is gone");
            let EncodedImage { header, bytes } = only.ok_or_else(lost)?;
            let key = keys::preprocessed_key(id, header.encoding.extension());
            Ok(AssembledFile { key, bytes: bytes.into(), pages })
        }
        PreprocessedFormat::Pdf => {
            let mut pdf = ImagePdf::default();
            journal
                .visit_images(chosen, |number, image| {
                    pdf.add_page(number, &image).map_err(|bad| {
                        fault::Error::internal("a repaired page cannot be kept").with_source(bad)
                    })
                })
                .await?;
            let key = keys::preprocessed_key(id, "pdf");
            Ok(AssembledFile { key, bytes: pdf.finish().into(), pages })
        }
    }
}
