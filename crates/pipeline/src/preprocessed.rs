//! `preprocessed.{ext}`: the repaired page images, for a reviewer who wants to see the input of the
//! OCR. Pages read unrepaired are not included; the original is unchanged.
//!
//! A single picture stays a picture. A PDF and several pages become a PDF whose page labels are the
//! original's page numbers. Its size is bounded by `limits.document_bytes`: the highest pages are
//! left out first, and the transcript lists the included ones. Stored before the transcript that
//! refers to it.

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

/// The transcript's entry about the stored file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PreprocessedFile {
    /// The stored object's key and version.
    #[serde(flatten)]
    pub file: FileRef,
    /// The pages of the original that are in it, in order.
    pub pages: Vec<u32>,
}

/// Stores the journal's repaired pages, up to `most` bytes of images; `None` if there are none.
/// `format` and `pages` are the original's. The caller must have released its share of the document
/// budget. If there is no room, the journal writes its open part and releases its own.
///
/// # Errors
/// [`fault::Fault::ClaimLost`]; store errors.
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
            journal
                .visit_images(chosen, |_: u32, image| {
                    only = Some(image);
                    Ok(())
                })
                .await?;
            let EncodedImage { header, bytes } =
                only.ok_or_else(|| fault::Error::internal("the repaired page is missing"))?;
            let key = keys::preprocessed_key(id, header.encoding.extension());
            Ok(AssembledFile { key, bytes: bytes.into(), pages })
        }
        PreprocessedFormat::Pdf => {
            let mut pdf = ImagePdf::default();
            journal
                .visit_images(chosen, |number, image| {
                    pdf.add_page(number, &image).map_err(|bad| {
                        fault::Error::internal("cannot store a repaired page").with_source(bad)
                    })
                })
                .await?;
            let key = keys::preprocessed_key(id, "pdf");
            Ok(AssembledFile { key, bytes: pdf.finish().into(), pages })
        }
    }
}
