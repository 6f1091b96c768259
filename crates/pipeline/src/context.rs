//! The context of the steps: services that a process has once, the three backends that differ
//! between ways of running docmill, and the current attempt.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;

use crate::byte_budget::ByteBudget;
use crate::claim_handle::ClaimHandle;
use crate::cost::{CostTracker, SpendingBook};
use crate::failpoint::{FailureSeam, guard_call};
use crate::hook_set::PipelineHooks;
use crate::own_companies::OwnCompanyBook;
use crate::reading::DocumentReader;
use crate::step_error::StepError;
use docmill_client::throttle::Governor;
use docmill_core::config::Config;
use docmill_core::fault::{self, Fault};
use docmill_core::model::{ArtefactRef, ClaimedIngestion, OutcomeReason};
use docmill_core::retry::{Jitter, RetryBackoff};
use docmill_core::work_clock::wait_off_clock;
use docmill_documents::ocr::textract::expense::TextractExpense;
use docmill_documents::sandbox::{CpuPool, DocumentOpening, OpenDocument};
use docmill_extract::{CallLimits, ReadingFaults};
use docmill_gate::OwnCompanies;
use docmill_gate::kinds::{Kind, KindSet};
use docmill_ledger::{AttemptLedger, FirstProvider, PauseTerms, StoredTranscript, WriteResult};
use docmill_llm::chain::ModelChain;
use docmill_scheduler::Scheduler;
use docmill_storage::ObjectStore;

/// Replies are paid for again unless the row refers to them: a failure of Postgres is waited for, for some
/// twenty seconds.
const REFERENCE_WAITS: RetryBackoff = RetryBackoff::doubling(Duration::from_millis(250))
    .up_to(Duration::from_secs(5))
    .with_jitter(Jitter::Quarter)
    .with_retries(8);

/// The services that all documents of a process share.
pub struct PipelineServices {
    /// Opens documents and reads their pages into a transcript.
    pub reader: Arc<DocumentReader>,
    /// The threads for CPU work.
    pub pool: Arc<CpuPool>,
    /// The models; none: the rules reader.
    pub models: ModelChain,
    /// Schedules the local models; `None`: there are none.
    pub scheduler: Option<Arc<Scheduler>>,
    /// How fast each provider may be called, of pages and of models.
    pub governor: Arc<Governor>,
    /// The kinds of documents that are configured.
    pub kinds: Arc<KindSet>,
    /// The budget for bytes of documents in memory.
    pub budget: ByteBudget,
    /// Prices, and the day's budget for spending.
    pub costs: Arc<CostTracker>,
    /// The configuration of this process.
    pub config: Arc<Config>,
    /// Whether embedded XML is ignored and only the pages are read.
    pub ignore_xml: bool,
    /// The own companies of tenants.
    pub companies: OwnCompanyBook,
    /// The service that reads fields a second time, if one is asked for.
    pub expense: Option<Arc<TextractExpense>>,
    /// The hooks of this process; `None`: there are none.
    pub hooks: Option<Arc<PipelineHooks>>,
}

impl PipelineServices {
    /// The same services for documents beside the work of a worker, with the own companies of the
    /// settings alone, without hooks and without a second reading of fields: their pages are not paid
    /// for again.
    #[must_use]
    pub fn for_replays(&self) -> Self {
        Self {
            reader: Arc::clone(&self.reader),
            pool: Arc::clone(&self.pool),
            models: self.models.clone(),
            scheduler: self.scheduler.clone(),
            governor: Arc::clone(&self.governor),
            kinds: Arc::clone(&self.kinds),
            budget: self.budget.clone(),
            costs: Arc::clone(&self.costs),
            config: Arc::clone(&self.config),
            ignore_xml: self.ignore_xml,
            companies: OwnCompanyBook::new(&self.config.parties),
            expense: None,
            hooks: None,
        }
    }

    /// A provider that every kind needs and that is known to be down or to deny access: of pages,
    /// or of the first model. Or a hook that every document waits for.
    pub fn find_outage(&self) -> Option<String> {
        let of_models = |kind: &Kind| {
            let first = self.models.for_kind(&kind.name).into_iter().next();
            first.map(|first| first.llm).filter(|llm| llm.is_down())
        };
        let pages: Option<Vec<_>> = self
            .kinds
            .iter()
            .map(|kind: &Kind| self.reader.remote_ocr.find_outage(kind.read_by.as_deref()))
            .collect();
        let models: Option<Vec<_>> = self.kinds.iter().map(of_models).collect();
        let pages = pages.and_then(|down| down.first().map(|name| (*name).to_owned()));
        let hook = self.hooks.as_ref().and_then(|hooks| hooks.find_outage(&self.governor));
        pages.or_else(|| models?.first().map(|llm| llm.provider().to_owned())).or(hook)
    }

    /// The scopes of pauses: for each kind the providers that its documents go to first. Fallbacks
    /// and escalations are not included.
    pub fn pause_terms(&self, default_kind: &str) -> PauseTerms {
        let mut providers = Vec::new();
        let mut add = |kind: &str, read_as: &str| {
            let order = self.kinds.get(kind).and_then(|kind| kind.read_by.as_deref());
            let models = self.models.for_kind(read_as);
            let model = models.first().map(|first| first.llm.provider().to_owned());
            let first = [Some(self.reader.first_provider(order)), model];
            providers.extend(
                first
                    .into_iter()
                    .flatten()
                    .map(|provider| FirstProvider { kind: kind.to_owned(), provider }),
            );
        };
        add("", default_kind);
        for kind in self.kinds.iter() {
            add(&kind.name, &kind.name);
        }
        PauseTerms { default_kind: default_kind.to_owned(), providers }
    }

    /// The limits of the calls about one transcript.
    pub(super) fn call_terms(&self, identity: String, max_output_tokens: u32) -> CallLimits {
        let (limits, llm) = (&self.config.limits, &self.config.llm);
        let (prompt_tokens, parts_at_once) = (limits.prompt_tokens, llm.parts_at_once);
        CallLimits {
            identity,
            prompt_tokens,
            max_output_tokens,
            parts_at_once,
            has_next: false,
            faults: ReadingFaults::default(),
            examples: Arc::from(""),
            companies: Arc::from(""),
        }
    }
}

/// Everything the steps work with.
#[derive(Clone)]
pub struct PipelineContext {
    /// The store that originals are fetched from.
    pub documents: Arc<dyn ObjectStore>,
    /// Where transcripts, replies and finished pages are kept, and found again by a later attempt.
    pub artefacts: Arc<dyn ObjectStore>,
    /// The attempt's ledger.
    pub ledger: Arc<dyn AttemptLedger>,
    /// The services of this process.
    pub services: Arc<PipelineServices>,
}

/// One attempt at one document.
#[derive(Clone, Copy)]
pub(super) struct AttemptContext<'a> {
    /// The services and backends of the attempt.
    pub(super) context: &'a PipelineContext,
    /// The document, and what earlier attempts have left of it.
    pub(super) claimed: &'a ClaimedIngestion,
    /// The right to it.
    pub(super) claim: &'a ClaimHandle,
    /// The kind that a hook named, once one has.
    pub(super) hook_kind: &'a OnceLock<String>,
}

impl<'a> AttemptContext<'a> {
    pub(super) fn services(&self) -> &'a PipelineServices {
        &self.context.services
    }

    /// The kind that a hook or else the producer named.
    pub(super) fn kind_name(&self) -> Option<&'a str> {
        self.hook_kind.get().or(self.claimed.kind.as_ref()).map(String::as_str)
    }

    pub(super) fn config(&self) -> &'a Config {
        &self.context.services.config
    }

    /// The tenant's own companies.
    ///
    /// # Errors
    /// Ledger errors.
    pub(super) async fn own_companies(&self) -> fault::Result<Arc<OwnCompanies>> {
        let (ledger, tenant) = (self.context.ledger.as_ref(), self.claimed.tenant.as_deref());
        self.services().companies.of_tenant(ledger, tenant).await
    }

    pub(super) fn artefacts(&self) -> &'a dyn ObjectStore {
        self.context.artefacts.as_ref()
    }

    /// Where what this attempt spends is written down.
    pub(super) fn spending_book(&self) -> SpendingBook<'a> {
        let (costs, ledger) = (&self.context.services.costs, &self.context.ledger);
        SpendingBook { costs, ledger: ledger.as_ref(), claimed: self.claimed }
    }

    /// Opens the original; an encrypted one with its own passwords, then its tenant's. `scan_einvoice`:
    /// whether to search it for e-invoices, and for documents in it.
    ///
    /// # Errors
    /// As [`DocumentReader::open_tenant_document`]; ledger errors.
    pub(super) async fn open_document(
        &self,
        bytes: Bytes,
        scan_einvoice: bool,
    ) -> Result<OpenDocument, StepError> {
        let document = &self.claimed.document;
        let how = DocumentOpening {
            name: document.original_name.as_deref().or(Some(&document.file_path)),
            tenant: self.claimed.tenant.as_deref(),
            alone: self.claimed.suspect,
            scan_einvoice,
            find_members: scan_einvoice && self.may_have_children(),
            ..DocumentOpening::default()
        };
        let reader = &self.services().reader;
        let refusal = match reader.open_tenant_document(bytes.clone(), how).await {
            Err(refusal) if refusal.is_encrypted() => refusal,
            Err(refusal) => return Err(self.name_depth(refusal)),
            opened => return opened,
        };
        let own = self.context.ledger.document_passwords(self.claimed.document.id);
        let mut passwords = wait_off_clock(own).await?;
        passwords.extend(self.config().store.passwords_for(how.tenant));
        if passwords.is_empty() {
            return Err(refusal);
        }
        let how = DocumentOpening { passwords: &passwords, ..how };
        reader.open_tenant_document(bytes, how).await
    }

    /// Whether documents found in the original become documents of their own: not those found in a part of
    /// another's pages.
    fn may_have_children(&self) -> bool {
        let document = &self.claimed.document;
        self.context.ledger.takes_children()
            && document.depth < self.config().limits.container_depth
            && document.pages.is_none()
    }

    /// Adds the limit for which a container is not looked into.
    fn name_depth(&self, refusal: StepError) -> StepError {
        let (depth, most) = (self.claimed.document.depth, self.config().limits.container_depth);
        match refusal {
            StepError::Rejected { reason: OutcomeReason::UnsupportedType, detail }
                if depth > 0 && depth >= most =>
            {
                let detail = format!("{detail}; limits.container_depth is {most}");
                StepError::rejected(OutcomeReason::UnsupportedType, detail)
            }
            refusal => refusal,
        }
    }

    /// References a stored transcript.
    ///
    /// # Errors
    /// Ledger errors; a lost claim.
    pub(super) async fn save_transcription(&self, saved: &StoredTranscript) -> fault::Result<()> {
        let (ledger, claim) = (&self.context.ledger, self.claim);
        let saving = ledger.save_transcription(claim.id, claim.token, saved);
        let saving = guard_call(FailureSeam::Reference, saving);
        ensure_applied(wait_off_clock(saving).await?)
    }

    /// References stored model replies.
    ///
    /// # Errors
    /// Ledger errors; a lost claim.
    pub(super) async fn save_extraction(&self, artefact: &ArtefactRef) -> fault::Result<()> {
        let (ledger, claim) = (&self.context.ledger, self.claim);
        let mut failed = 0;
        loop {
            let saving = ledger.save_extraction(claim.id, claim.token, artefact);
            let saved = wait_off_clock(guard_call(FailureSeam::Reference, saving)).await;
            match REFERENCE_WAITS.next_wait(failed) {
                Some(wait) if saved.as_ref().is_err_and(may_pass) => {
                    wait_off_clock(tokio::time::sleep(wait)).await;
                    failed += 1;
                }
                _ => return ensure_applied(saved?),
            }
        }
    }
}

/// Whether the same request may succeed soon.
fn may_pass(error: &fault::Error) -> bool {
    matches!(error.fault, Fault::Transient | Fault::Unavailable)
}

fn ensure_applied(held: WriteResult) -> fault::Result<()> {
    match held {
        WriteResult::Applied => Ok(()),
        WriteResult::ClaimLost => Err(fault::Error::claim_lost()),
    }
}
