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
use crate::text_work::run_on_text;
use docmill_core::metrics;
use docmill_core::model::{Extraction, InvoiceReference, RuleReport, Transcript};
use docmill_documents::reading::reader_version;
use docmill_documents::sandbox::OpenDocument;
use docmill_extract::einvoice;
use docmill_extract::parties::extract_from_others;
use docmill_formats::einvoice::{EinvoiceFinding, ParsedInvoiceXml};
use docmill_gate::kinds::{FieldRole, Kind, KindSet, RuleConsequence};
use docmill_gate::{EinvoiceState, GateFinding, OwnCompanies, Verdict};
use docmill_ledger::StoredTranscript;
use docmill_storage::keys;

/// The result of the search for XML in a document.
pub(super) struct EinvoiceScan {
    /// The parsed XML; `None`: other readers take over.
    pub parsed: Option<ParsedEinvoice>,
    /// The state of the XML, for the gate.
    pub note: EinvoiceState,
    /// The verdict of official rules on it.
    pub rules: Option<RuleReport>,
}

impl EinvoiceScan {
    /// No search for an e-invoice.
    pub(super) const NONE: Self = Self { parsed: None, note: EinvoiceState::Absent, rules: None };
}

/// An e-invoice and the text of the pages it came with.
pub(super) struct ParsedEinvoice {
    invoice: ParsedInvoiceXml,
    /// Text layers alone; a page that is a picture has no lines.
    pub transcript: Transcript,
    /// Room for their text.
    pub text_budget: TextBudget,
}

/// The name under which reviewers see what was doubtful about the XML.
const DOUBT_RULE: &str = "einvoice_doubtful";

/// Adds the doubts about an XML to a verdict.
pub(super) fn note_doubts(doubts: Vec<String>, verdict: &mut Verdict) {
    verdict.findings.extend(doubts.into_iter().map(|doubt| GateFinding {
        rule: DOUBT_RULE.to_owned(),
        field: Some(doubt),
        consequence: RuleConsequence::Flag,
    }));
}

/// Fills what XML without lines lacks from the pages beside it, if there are any. Each filled field
/// is a doubt; so are lines that nobody has.
///
/// # Errors
/// Rejected if reading the text takes too long.
pub(super) async fn fill_from_pages(
    services: &PipelineServices,
    mut extraction: Extraction,
    kind: &Arc<Kind>,
    beside: Option<&Arc<Transcript>>,
    own: Arc<OwnCompanies>,
) -> Result<(Extraction, Vec<String>), StepError> {
    let lines = kind.field_of(FieldRole::Lines);
    let lacks_lines = kind.has_role(FieldRole::Lines);
    let has_lines = extraction.data.get(lines).is_some_and(|lines| !lines.is_null());
    if has_lines || !lacks_lines {
        return Ok((extraction, Vec::new()));
    }
    let mut doubts = Vec::new();
    if let Some(transcript) = beside.cloned() {
        let reader = Arc::clone(kind);
        let pages =
            run_on_text(services, move || extract_from_others(&transcript, &reader, &own)).await?;
        let filled = einvoice::fill_absent_fields(&mut extraction, pages);
        doubts.extend(filled.into_iter().map(|field| format!("from_page.{field}")));
    }
    if extraction.data.get(lines).is_none_or(serde_json::Value::is_null) {
        doubts.push("missing.line_items".to_owned());
    }
    Ok((extraction, doubts))
}

impl ParsedEinvoice {
    /// Reasons to look at the data, as words.
    pub(super) fn doubts(&self) -> Vec<String> {
        self.invoice.doubts().to_vec()
    }

    /// The parts that an answer to its sender names.
    pub(super) fn reference(&self) -> Option<Box<InvoiceReference>> {
        self.invoice.reference().cloned().map(Box::new)
    }

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
    let EinvoiceFinding { invoice, is_document, rules } = document.take_einvoice();
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
                EinvoiceState::Document
            } else {
                EinvoiceState::Attached { show_more }
            };
            let parsed = Some(ParsedEinvoice { invoice, transcript, text_budget });
            return Ok(EinvoiceScan { parsed, note, rules });
        }
        // The producer wants something else of this document.
        Ok(Some(_)) => return Ok(EinvoiceScan::NONE),
        Err(flaw) if is_document => {
            return Err(StepError::rejected(flaw.outcome_reason(), flaw.to_string()));
        }
        Err(flaw) => EinvoiceState::Unusable(flaw.code()),
    };
    Ok(EinvoiceScan { parsed: None, note, rules })
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
