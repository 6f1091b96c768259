//! Fetched to transcribed: a stored transcript of the same identity is reused, otherwise the
//! document is read, and the transcript stored and referenced before anything is made of it.

use std::sync::Arc;

use crate::ledger::{Held, TranscriptionSaved};
use crate::metrics;
use crate::model::{Source, Transcript};
use crate::pipeline::artefact::{Slot, identity_of};
use crate::pipeline::fetch::Fetched;
use crate::pipeline::{Hold, Ports, StepError};
use crate::store::keys;

/// A document's text, stored and referenced.
#[derive(Debug)]
pub(super) struct Transcribed {
    /// The text.
    pub transcript: Arc<Transcript>,
    /// What it was made from.
    pub identity: String,
}

/// Reads the document, or what an earlier attempt stored of it.
///
/// # Errors
/// Rejected with the reader's reasons; faults of store, ledger and OCR; a lost claim.
pub(super) async fn transcribe(
    ports: &Ports,
    hold: &Hold,
    fetched: Fetched,
    alone: bool,
) -> Result<Transcribed, StepError> {
    let identity =
        identity_of(&[&Transcript::FORMAT.to_string(), &fetched.sha256, &ports.reader.identity()]);
    let key = keys::transcription(hold.id);
    let mut slot = Slot::<Transcript>::open(ports.store.as_ref(), key, identity.clone()).await?;
    let transcript = match slot.content.take() {
        Some(stored) => {
            metrics::reused("transcript");
            stored
        }
        None => {
            hold.live().await?;
            let read = ports.reader.read(fetched.bytes.clone(), &fetched.sha256, alone).await?;
            count(&read);
            slot.write(ports.store.as_ref(), hold, read.clone()).await?;
            read
        }
    };
    let saved = TranscriptionSaved {
        artefact: slot.reference(),
        quality: transcript.quality,
        sha256: fetched.sha256.clone(),
        pages: u32::try_from(transcript.pages.len()).unwrap_or(u32::MAX),
    };
    match ports.ledger.save_transcription(hold.id, hold.token, &saved).await? {
        Held::Yes => Ok(Transcribed { transcript: Arc::new(transcript), identity }),
        Held::Lost => Err(StepError::ClaimLost),
    }
}

fn count(transcript: &Transcript) {
    for (source, label) in [(Source::Native, "native"), (Source::Ocr, "ocr")] {
        let pages = transcript.pages.iter().filter(|page| page.source == source).count();
        metrics::pages(label, u64::try_from(pages).unwrap_or(u64::MAX));
    }
}
