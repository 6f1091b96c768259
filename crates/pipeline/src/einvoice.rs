//! Extraction from an e-invoice, without OCR and model: from a document that carries one, or is
//! one. The XML is untrusted and is parsed in the page process.
//!
//! The XML is looked for first, because that takes milliseconds and may save all other reading.
//! Pages beside it are read only by their text layer: the gate compares them with the XML, and
//! flags pages that show more. If the XML is unusable, the other readers take the pages and the
//! gate says why. A document that is only such an XML ends here.

use std::sync::Arc;

use crate::artefact::{ArtefactSlot, identity_of};
use crate::context::{AttemptContext, PipelineServices};
use crate::fetch::FetchedDocument;
use crate::reading::{PrintedPages, mean_quality};
use crate::step_error::StepError;
use crate::text_budget::TextBudget;
use docmill_core::metrics;
use docmill_core::model::{Extraction, Transcript};
use docmill_documents::reading::reader_version;
use docmill_documents::sandbox::OpenDocument;
use docmill_extract::einvoice;
use docmill_formats::einvoice::{EinvoiceFinding, ParsedInvoiceXml};
use docmill_gate::kinds::{Kind, KindSet};
use docmill_ledger::StoredTranscript;
use docmill_storage::keys;

/// The result of the search for XML in a document.
pub(super) struct EinvoiceScan {
    /// The parsed XML; `None`: other readers take over.
    pub parsed: Option<ParsedEinvoice>,
    /// The state of the XML, for the gate.
    pub note: docmill_gate::EinvoiceState,
}

impl EinvoiceScan {
    /// No e-invoice was looked for.
    pub(super) const NONE: Self = Self { parsed: None, note: docmill_gate::EinvoiceState::Absent };
}

/// An e-invoice and the text of the pages it came with.
pub(super) struct ParsedEinvoice {
    invoice: ParsedInvoiceXml,
    /// Text layers alone; a page that is a picture has no lines.
    pub transcript: Transcript,
    /// Room for their text.
    pub text_budget: TextBudget,
}

impl ParsedEinvoice {
    /// The data under the kind that the producer named; without one a credit note is one, if there
    /// is such a kind.
    pub(super) fn to_extraction(
        &self,
        kinds: &KindSet,
        kind: &Arc<Kind>,
        is_named: bool,
    ) -> (Arc<Kind>, Extraction) {
        let own = kinds.get("credit_note").filter(|_| self.invoice.is_credit_note);
        let own = own.filter(|own| !is_named && einvoice::kind_uses_einvoice(own));
        let kind = own.unwrap_or(kind);
        (Arc::clone(kind), einvoice::extract_einvoice(&self.invoice, kind))
    }
}

/// Takes the e-invoice found when the document was opened; `sha256` is the document's.
///
/// # Errors
/// Rejected: a document that is XML but no readable e-invoice; one that carries an e-invoice and
/// whose pages cannot be read. Faults of the CPU work.
pub(super) async fn scan_einvoice(
    services: &PipelineServices,
    document: &mut OpenDocument,
    sha256: &str,
    kind: &Kind,
) -> Result<EinvoiceScan, StepError> {
    let EinvoiceFinding { invoice, is_document } = document.take_einvoice();
    let note = match invoice {
        Ok(None) => return Ok(EinvoiceScan::NONE),
        Ok(Some(invoice)) if einvoice::kind_uses_einvoice(kind) => {
            let mut text_budget = TextBudget::new(&services.budget);
            let PrintedPages { pages, show_more } =
                services.reader.printed_pages(document, &mut text_budget).await?;
            let transcript = Transcript {
                format: Transcript::FORMAT,
                sha256: sha256.to_owned(),
                provider: "none".to_owned(),
                quality: mean_quality(&pages),
                pages,
            };
            let note = if is_document {
                docmill_gate::EinvoiceState::Document
            } else {
                docmill_gate::EinvoiceState::Attached { show_more }
            };
            let parsed = Some(ParsedEinvoice { invoice, transcript, text_budget });
            return Ok(EinvoiceScan { parsed, note });
        }
        // The producer wants something else of this document.
        Ok(Some(_)) => docmill_gate::EinvoiceState::Absent,
        Err(flaw) if is_document => {
            return Err(StepError::rejected(flaw.outcome_reason(), flaw.to_string()));
        }
        Err(flaw) => docmill_gate::EinvoiceState::Unusable(flaw.code()),
    };
    Ok(EinvoiceScan { parsed: None, note })
}

/// Stores the text of the pages as the transcript, referenced by the row.
///
/// # Errors
/// Faults of store and ledger; a lost claim.
pub(super) async fn store_transcript(
    attempt: AttemptContext<'_>,
    fetched: &FetchedDocument,
    transcript: Transcript,
) -> Result<Arc<Transcript>, StepError> {
    let (format, version) = (Transcript::FORMAT.to_string(), reader_version());
    let identity = identity_of(&["text layers", &format, &version, &fetched.sha256]);
    let (store, claim) = (attempt.artefacts(), attempt.claim);
    let mut slot = ArtefactSlot::load(
        store,
        &attempt.services().pool,
        keys::transcription_key(claim.id),
        identity,
    )
    .await?;
    if slot.content.as_ref() != Some(&transcript) {
        slot.write(store, claim, transcript.clone()).await?;
    }
    let pages = u32::try_from(transcript.pages.len()).unwrap_or(u32::MAX);
    metrics::count_pages("native", u64::from(pages));
    let saved = StoredTranscript {
        artefact: slot.to_ref(),
        quality: transcript.quality,
        sha256: fetched.sha256.clone(),
        pages,
        preprocessed: None,
    };
    attempt.save_transcription(&saved).await?;
    Ok(Arc::new(transcript))
}
