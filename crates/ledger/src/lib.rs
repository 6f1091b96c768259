//! The port through which claims are taken, renewed, given back and recorded.
//!
//! The ledger decides who owns an ingestion; the queue never does. Every write after a claim
//! carries the claim's token and succeeds only while that token is in the row and the row is
//! in progress (invariant 2). Times are the ledger's own (`docmill_now()` in Postgres, a settable
//! clock in memory), never the worker's.
//!
//! Two traits: [`AttemptLedger`] is what a running attempt needs, [`Ledger`] adds how claims begin
//! and end. The service has the first alone for buckets and workspaces, whose locks say who owns
//! what. Two implementations of both: `db::claims` is the real one; [`memory`] runs the same pure
//! [`decide`] and serves documents that are worked on without a database, tests and simulations. A
//! differential test holds them together on random histories.
//! Not promised: order between different ingestions.

pub mod db;
pub mod decide;
pub mod duplicate_key;
pub mod memory;
pub(crate) mod stored;
pub mod supplier;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;

use self::duplicate_key::{DuplicateKeys, NearKeys};
use self::supplier::{RememberedDocument, SupplierLesson};
use docmill_core::config::SecretString;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{
    ArtefactRef, ClaimToken, ClaimedIngestion, DocumentId, FileRef, GroundedField, IngestionId,
    IngestionStage, IngestionStatus, InvoiceReference, LocalModelReport, MasterHits, MasterMatch,
    MasterQuery, ModelUsage, OutcomeReason, OwnCompany, PageRange, Priority, ProviderLane,
    ReaderStatement, RuleReport,
};

/// The worker, lease and crash limit that a claim is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimTerms {
    /// The claimer: unique per process, e.g. `host-pid-random`.
    pub worker: String,
    /// How long the claim lasts without a renewal.
    pub lease: Duration,
    /// A document over which this many workers died that had nothing else in hand is given up as
    /// `crashed`; 0: one over which any worker died, in any company.
    pub crash_limit: u32,
}

/// An ingestion that is to be claimed, and the token that its claim shall have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The ingestion.
    pub id: IngestionId,
    /// A token that no other request has; the same when this very request is repeated.
    pub token: ClaimToken,
    /// Other work that the caller has in hand until this claim has ended.
    pub company: ClaimCompany,
}

/// Work that a worker has in hand beside a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimCompany {
    /// Anything; suspects are not claimed.
    Others,
    /// Suspects only: a death accuses them again.
    Suspects,
    /// Nothing: a death counts against the document.
    Nobody,
}

impl ClaimCompany {
    /// The number in the statement.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Others => 0,
            Self::Suspects => 1,
            Self::Nobody => 2,
        }
    }
}

impl ClaimRequest {
    /// A request with a token of its own, beside other work.
    pub fn with_fresh_token(id: IngestionId) -> Self {
        Self::within(id, ClaimCompany::Others)
    }

    /// A request with a token of its own, in this company.
    pub fn within(id: IngestionId, company: ClaimCompany) -> Self {
        Self { id, token: ClaimToken::random(), company }
    }
}

/// The ledger's answer for one ingestion.
#[derive(Debug, Clone)]
pub enum ClaimOutcome {
    /// Ours: work on it.
    Claimed(Box<ClaimedIngestion>),
    /// A live lease of another claim; it ends after this time.
    Busy(Duration),
    /// Somebody holds the row's lock at this moment: nothing is known but that it is there.
    Locked,
    /// Its next attempt is due after this time (more than 2 s).
    NotDue(Duration),
    /// A worker fell silent with it in hand, so long ago: to be claimed alone.
    Suspect(Duration),
    /// Given up as `crashed` just now: acknowledge.
    Exhausted,
    /// Nothing to do any more: acknowledge.
    Terminal(IngestionStatus),
    /// No such row (yet).
    Unknown,
}

/// How an attempt that did not end the ingestion is given back.
#[derive(Debug, Clone)]
pub struct ClaimRelease {
    /// The fault that ended the attempt.
    pub fault: Fault,
    /// Whether the attempt counts (it was the document's or our fault) or is given back.
    pub counted: bool,
    /// Whether this worker fails alike with other documents: its intake slows down, and the
    /// document stays due soon for other workers.
    pub is_shared: bool,
    /// Not due again before this time has passed; zero: at once.
    pub after: Duration,
    /// The stage in which it happened.
    pub stage: IngestionStage,
    /// The operator's text: ids, codes and counts, never document content.
    pub detail: String,
}

/// The end of an ingestion.
#[derive(Debug, Clone)]
pub struct IngestionResult {
    /// `None`: completed. Otherwise why not.
    pub reason: Option<OutcomeReason>,
    /// The stage that the attempt reached.
    pub stage: IngestionStage,
    /// The stage that the attempt reached.
    pub structured_data: Option<Map<String, Value>>,
    /// Whether a person has to review it.
    pub needs_human_review: bool,
    /// Why a person has to review it: names of gate rules and reason codes.
    pub review_reasons: Vec<String>,
    /// Which reader produced the data.
    pub reader: Option<String>,
    /// Kind of document, if it is known.
    pub kind: Option<String>,
    /// Model, if one was called.
    pub model: Option<String>,
    /// Tokens of this attempt's calls and of the stored reply it used.
    pub usage: ModelUsage,
    /// The reader's statement about its reading, if there was one.
    pub stated: Option<ReaderStatement>,
    /// The gate's findings, if it reached a verdict.
    pub judged: Option<VerdictDetails>,
    /// SHA-256 of the original, in hex, once it was read.
    pub sha256: Option<String>,
    /// The gate's rule against a second document of one supplier and number, if it held. It is asked once
    /// more as a completed result is recorded, because two that run beside each other did not see each
    /// other; then its name becomes a review reason.
    pub duplicate_rule: Option<String>,
    /// The keys of supplier and number, by which a completed result is found again.
    pub duplicate_keys: Option<DuplicateKeys>,
    /// Facts remembered of the supplier once this has completed: of an e-invoice without any doubt.
    pub lesson: Option<SupplierLesson>,
    /// The verdict of official rules on the e-invoice, if it was checked by any.
    pub einvoice_rules: Option<Arc<RuleReport>>,
    /// The parts of an e-invoice that an answer to its sender names.
    pub einvoice_reference: Option<Box<InvoiceReference>>,
    /// The kind's rule against near duplicates, if it has one: asked as a completed result is recorded.
    pub near_rule: Option<String>,
    /// The keys that a near duplicate shares.
    pub near_keys: Option<NearKeys>,
    /// Match with the tenant's master data; `None`: there is none.
    pub master_match: Option<MasterMatch>,
    /// Fields that hooks have added, by their names; `None`: there are none.
    pub hooks: Option<Map<String, Value>>,
    /// The operator's text; never document content.
    pub detail: String,
    /// Documents found in this one, whose rows are written in the transaction of the end. Their bytes lie
    /// in the store already.
    pub children: Vec<NewChild>,
}

/// A document found in another: an attachment of a mail, a member of an archive, a part of a file with
/// several documents. Tenant, priority and labels are its parent's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewChild {
    /// Its id: [`DocumentId::of_child`].
    pub document: DocumentId,
    /// Id of its ingestion: [`IngestionId::first_for_document`].
    pub ingestion: IngestionId,
    /// Its place among its parent's children, from 0. A parent has one child for each.
    pub position: u32,
    /// The name it has in its parent, for display only.
    pub name: Option<String>,
    /// Where its bytes lie.
    pub file_path: String,
    /// SHA-256 of its bytes, in hex; `None`: they are its parent's.
    pub sha256: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// Kind of document; `None`: it is classified.
    pub kind: Option<String>,
    /// Which of its parent's pages it consists of; `None`: it is no part of its pages.
    pub pages: Option<PageRange>,
}

impl NewChild {
    /// The child at this position that consists of pages of its parent's own file.
    pub fn of_pages(
        parent: IngestionId,
        sha256: &str,
        position: u32,
        pages: PageRange,
        file_path: &str,
    ) -> Self {
        let child = Self::at(parent, sha256, position, file_path.to_owned());
        Self { pages: Some(pages), ..child }
    }

    /// The child at this position of what `parent` read in the original with this SHA-256 (hex); without
    /// name, size and pages.
    pub fn at(parent: IngestionId, sha256: &str, position: u32, file_path: String) -> Self {
        let document = DocumentId::of_child(parent, sha256, position);
        Self {
            document,
            ingestion: IngestionId::first_for_document(document),
            position,
            name: None,
            file_path,
            sha256: None,
            size: None,
            kind: None,
            pages: None,
        }
    }
}

/// The documents found in one that was handed in, at every depth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FamilySize {
    /// How many.
    pub documents: u64,
    /// Their bytes, summed up.
    pub bytes: u64,
}

impl IngestionResult {
    /// Adds to what an operator reads; nothing to add changes nothing.
    pub fn add_detail(&mut self, more: &str) {
        if !self.detail.is_empty() && !more.is_empty() {
            self.detail.push_str("; ");
        }
        self.detail.push_str(more);
    }
}

/// A verdict beside its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictDetails {
    /// 0..1: how likely the data is right.
    pub score: f32,
    /// Where on the pages the data's values stand.
    pub grounded: Vec<GroundedField>,
    /// The least certainty of a field, where the reader weighs them. Not kept in the row.
    pub certainty: Option<f32>,
}

impl VerdictDetails {
    /// How certain the data is as a whole, 0..1: the lesser of the score and the least certainty of a
    /// field. The level of the bound on silent errors is compared with it.
    pub fn least_certainty(&self) -> f32 {
        self.certainty.map_or(self.score, |least| least.min(self.score)).clamp(0.0, 1.0)
    }
}

/// Whether a write under a token took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    /// The write took effect.
    Applied,
    /// The claim is no longer ours; nothing was written.
    ClaimLost,
}

/// A claim that is to be renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRenewal {
    /// The ingestion.
    pub id: IngestionId,
    /// The claim's token.
    pub token: ClaimToken,
    /// The stage that it has reached, if that is news (for operators).
    pub new_stage: Option<IngestionStage>,
    /// Whether the attempt has kept something that another need not do again: then it is no suspect any
    /// more.
    pub has_progress: bool,
    /// Whether its work is over and only its end is not written yet: then a death says nothing about it,
    /// so that it is no suspect any more, nor alone.
    pub is_over: bool,
}

/// The result of the renewal of one lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseStatus {
    /// It runs for another whole lease from when it was asked for.
    Renewed,
    /// The claim is no longer ours.
    Lost,
    /// The claim is ours, but the row is locked by another session: not renewed this time.
    Locked,
}

/// The transcript of a claimed ingestion, stored and about to be referenced.
#[derive(Debug, Clone)]
pub struct StoredTranscript {
    /// Key and hash of the stored transcript.
    pub artefact: ArtefactRef,
    /// Quality of the transcript, 0 to 1.
    pub quality: f32,
    /// SHA-256 of the original, in hex.
    pub sha256: String,
    /// Number of pages that were read.
    pub pages: u32,
    /// The repaired pages, if any reading came from one.
    pub preprocessed: Option<FileRef>,
}

/// An object in the store, in the version in which it was found there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRegistration {
    /// Id of the document: deterministic, see [`DocumentId::from_object`].
    pub document: DocumentId,
    /// Id of the ingestion if this version is not registered yet: deterministic, see
    /// [`IngestionId::from_object_version`].
    pub ingestion: IngestionId,
    /// Where the object lies: a key, or `s3://bucket/key`.
    pub file_path: String,
    /// Last part of the key.
    pub original_name: String,
    /// The version the fetch must match.
    pub etag: Option<String>,
    /// Size of the object in bytes, if it is known.
    pub size: Option<u64>,
    /// Orders events of one object; hex, compared after left-padding with zeros. `None`: unknown,
    /// so it ends no waiting ingestion.
    pub sequencer: Option<String>,
    /// The tenant of its location in the store.
    pub tenant: Option<String>,
}

/// The outcome for a claimed ingestion whose object has another version than was registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionOutcome {
    /// The row names the current version now: read that.
    Adopted,
    /// This other ingestion of the document is about the current version.
    SupersededBy(IngestionId),
    /// The claim is no longer ours; nothing was written.
    Lost,
}

/// A message that is not one of ours, kept for a person (invariant 1).
#[derive(Debug, Clone)]
pub struct QuarantinedMessage {
    /// The service's id of the message.
    pub message_id: String,
    /// The body, whole.
    pub body: String,
    /// Why it is kept: `malformed`, `unknown_ingestion` or `unknown_object`.
    pub reason: String,
    /// How often it was received.
    pub receive_count: u32,
}

/// Spending at one provider in one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSpending {
    /// Name of the provider, e.g. `openai`.
    pub provider: String,
    /// The configured model; of pages the processor or operation.
    pub model: String,
    /// Number of calls that were answered.
    pub calls: u32,
    /// Number of pages the provider read.
    pub pages: u32,
    /// Tokens of the calls, summed up.
    pub usage: ModelUsage,
    /// Billionths of the currency; `None`: there is no price.
    pub cost_nanos: Option<u64>,
}

/// The state of a question to a model in the batch lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchRequestState {
    /// It waits for a batch, or for a batch's answer.
    Waiting,
    /// Its answer is stored.
    Answered,
    /// It is asked by a direct call: it was left to one, or its answer was used before.
    Direct,
}

/// The batch lane's state for an ingestion, and for one question about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchStanding {
    /// How urgent the document is.
    pub priority: Priority,
    /// How long ago its first question was put into the lane; `None`: none was.
    pub asked_ago: Option<Duration>,
    /// The state of this question; `None`: it was not asked.
    pub state: Option<BatchRequestState>,
    /// Time until its deadline; zero once that has passed.
    pub time_left: Duration,
    /// Time since its deadline; zero before that.
    pub overdue: Duration,
}

/// A question for the batch lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchEntry {
    /// The ingestion that it is about.
    pub id: IngestionId,
    /// SHA-256, in hex, of the reading that it belongs to and of all that is asked.
    pub request: String,
    /// The provider, e.g. `openai`.
    pub provider: String,
    /// The configured model.
    pub model: String,
    /// Where that is asked: the address of the settings.
    pub place: String,
    /// Bytes of what is sent.
    pub bytes: u64,
    /// How long after the ingestion's first question its answer is waited for.
    pub deadline: Duration,
    /// The most that it may cost, in billionths of the currency; counted as spent at once.
    pub reserved_nanos: u64,
}

/// The spending of all workers, or for one tenant, since the day (UTC) began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpentToday {
    /// Billionths of the currency.
    pub cost_nanos: u64,
    /// How long until the next day begins.
    pub until_next_day: Duration,
}

/// The spending of one ingestion so far, in all its attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DocumentSpending {
    /// Billionths of the currency, of what has a price.
    pub cost_nanos: u64,
    /// Tokens of every class, with a price or without.
    pub tokens: u64,
}

impl DocumentSpending {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cost_nanos: self.cost_nanos.saturating_add(other.cost_nanos),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }
}

impl From<&ProviderSpending> for DocumentSpending {
    fn from(spent: &ProviderSpending) -> Self {
        let tokens = spent.usage.prompt_tokens().saturating_add(spent.usage.output);
        Self { cost_nanos: spent.cost_nanos.unwrap_or(0), tokens }
    }
}

/// An operator's pause. All workers obey within seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperatorPause {
    /// All work of all workers.
    All,
    /// One kind of document.
    Kind(String),
    /// The documents of the tenant with this name.
    Tenant(String),
    /// One provider of OCR or models.
    Provider(String),
}

/// Further scopes of pauses, beside the tenant and the kind in the row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PauseTerms {
    /// The kind that counts for an ingestion whose row names none.
    pub default_kind: String,
    /// The first provider of each kind.
    pub providers: Vec<FirstProvider>,
}

/// A provider of OCR or models that documents of one kind are given to first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstProvider {
    /// The kind in the row; empty: the row names none.
    pub kind: String,
    /// The name under which operators pause the provider.
    pub provider: String,
}

/// A worker's report about itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerStatus {
    /// Jobs that may run at the same time.
    pub slots: u32,
    /// Jobs that are running.
    pub slots_used: u32,
    /// How its calls to providers go.
    pub lanes: Vec<ProviderLane>,
    /// The models of its machine; `None`: it schedules none.
    pub local_models: Option<LocalModelReport>,
}

/// The record of a claim, read back after a lost commit reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadBack {
    /// The holder has ended this attempt: by giving it back, or with the ingestion.
    Recorded,
    /// The claim is still ours and nothing was recorded.
    StillHeld,
    /// Neither: another claim has taken over, or an operator has cancelled it.
    Lost,
}

/// Reads and writes of a running attempt. All that the pipeline needs of a ledger, so that it also
/// runs without a database.
#[async_trait]
pub trait AttemptLedger: Send + Sync {
    /// References a stored transcript.
    async fn save_transcription(
        &self,
        id: IngestionId,
        token: ClaimToken,
        saved: &StoredTranscript,
    ) -> Result<WriteResult>;

    /// References a stored model reply.
    async fn save_extraction(
        &self,
        id: IngestionId,
        token: ClaimToken,
        artefact: &ArtefactRef,
    ) -> Result<WriteResult>;

    /// The newest *completed* ingestion of another document with one of these keys of the same tenant,
    /// since one customer's documents are no other's business; for the gate's duplicate rule.
    async fn find_duplicate(
        &self,
        document: DocumentId,
        tenant: Option<&str>,
        keys: &DuplicateKeys,
    ) -> Result<Option<IngestionId>>;

    /// The remembered documents of the tenant's suppliers that have one of these keys, the newest first.
    /// Without a database nothing is remembered.
    async fn find_remembered(
        &self,
        _tenant: Option<&str>,
        _keys: &[String],
    ) -> Result<Vec<RememberedDocument>> {
        Ok(Vec::new())
    }

    /// The companies of a tenant, or of documents without one; there are none without a database.
    async fn own_companies(&self, _tenant: Option<&str>) -> Result<Vec<OwnCompany>> {
        Ok(Vec::new())
    }

    /// Whether the tenant has master data; there is none without a database.
    async fn has_master_data(&self, _tenant: Option<&str>) -> Result<bool> {
        Ok(false)
    }

    /// The suppliers and orders of the tenant's master data that these values belong to.
    async fn find_master_data(
        &self,
        _tenant: Option<&str>,
        _wanted: &MasterQuery,
    ) -> Result<MasterHits> {
        Ok(MasterHits::default())
    }

    /// Adds to the spending of an attempt. Without a token: a payment counts, even if another
    /// worker owns the ingestion now. Not idempotent; after an error it is unknown whether it was
    /// added.
    async fn add_spending(
        &self,
        id: IngestionId,
        claims: i64,
        spent: &ProviderSpending,
    ) -> Result<()>;

    /// The sum of today's spending (UTC), of everybody or on behalf of one tenant.
    async fn spent_today(&self, tenant: Option<&str>) -> Result<SpentToday>;

    /// The spending of an ingestion so far, in all its attempts; not that beside them.
    async fn spent_on(&self, id: IngestionId) -> Result<DocumentSpending>;

    /// The state of a question in the batch lane; marks all answers about the ingestion as seen.
    /// `None`: there is no lane here.
    async fn find_batch_standing(
        &self,
        _id: IngestionId,
        _request: &str,
    ) -> Result<Option<BatchStanding>> {
        Ok(None)
    }

    /// Puts a question into the batch lane and counts what it may cost as spent; nothing if it is
    /// there already.
    async fn enter_batch_lane(
        &self,
        _token: ClaimToken,
        _entry: &BatchEntry,
    ) -> Result<WriteResult> {
        Err(Error::internal("there is no batch lane without a database"))
    }

    /// Takes a question out of the lane for a direct call; `false`: it was settled before.
    async fn leave_batch_lane(&self, _id: IngestionId, _request: &str) -> Result<bool> {
        Ok(false)
    }

    /// The answers to these questions are among the document's replies now. Repeating it changes
    /// nothing.
    async fn use_batch_answers(&self, _id: IngestionId, _requests: &[String]) -> Result<()> {
        Ok(())
    }

    /// The object is another version than the row names: names the current one (its ETag) in the
    /// row, unless another ingestion of the document that was not cancelled is about it already.
    async fn adopt_version(
        &self,
        id: IngestionId,
        token: ClaimToken,
        etag: &str,
    ) -> Result<VersionOutcome>;

    /// The passwords that its producer has given for this document, the newest first; without a
    /// database there are none.
    async fn document_passwords(&self, _document: DocumentId) -> Result<Vec<SecretString>> {
        Ok(Vec::new())
    }

    /// Whether what an ingestion finds in its document can become documents of their own here.
    fn takes_children(&self) -> bool {
        false
    }

    /// The documents found so far in the one that was handed in, other than those found by this ingestion
    /// itself.
    async fn family_size(&self, _id: IngestionId) -> Result<FamilySize> {
        Ok(FamilySize::default())
    }

    /// Whether an operator has blocked this content.
    async fn is_blocked(&self, sha256: &str) -> Result<bool>;
}

/// In the place of a claim's number: spending about an ingestion that none of its attempts made, such
/// as that of a replay. It counts in the day, and not in the budget of the document.
pub const BESIDE_ATTEMPTS: i64 = 0;

/// Claims and their ends.
#[async_trait]
pub trait Ledger: AttemptLedger {
    /// The current time by the ledger's clock.
    async fn current_time(&self) -> Result<OffsetDateTime>;

    /// Claims a whole received batch at once, rows locked in id order. One answer per id, in the
    /// order of `ids`; `ids` holds no id twice. An expired lease of an earlier claim is closed as
    /// attempt `crashed` on the way. A single id is claimed alone.
    async fn claim(&self, ids: &[IngestionId], terms: &ClaimTerms) -> Result<Vec<ClaimOutcome>> {
        let asked: Vec<_> = match ids {
            [id] => vec![ClaimRequest::within(*id, ClaimCompany::Nobody)],
            ids => ids.iter().copied().map(ClaimRequest::with_fresh_token).collect(),
        };
        self.claim_with_tokens(&asked, terms).await
    }

    /// [`Ledger::claim`] under tokens that the caller has chosen. Repeated with the same tokens
    /// after a lost answer, it returns the claim that was made then, renews its lease, and does not
    /// count it twice. Locked rows are not waited for.
    async fn claim_with_tokens(
        &self,
        asked: &[ClaimRequest],
        terms: &ClaimTerms,
    ) -> Result<Vec<ClaimOutcome>>;

    /// Renews leases to `lease` from now, and writes down what stage they have reached. One answer
    /// per claim, in order; one that is locked or lost holds up no other.
    async fn renew_leases(
        &self,
        claims: &[LeaseRenewal],
        lease: Duration,
    ) -> Result<Vec<LeaseStatus>>;

    /// Ends the attempt without ending the ingestion: writes its `attempt` row, clears the lease.
    async fn release_claim(
        &self,
        id: IngestionId,
        token: ClaimToken,
        how: &ClaimRelease,
    ) -> Result<WriteResult>;

    /// Ends the ingestion and its attempt, and adds its children, in one transaction. A child that is there
    /// already, from an earlier end of the same ingestion, stays as it is.
    async fn record_result(
        &self,
        id: IngestionId,
        token: ClaimToken,
        end: &IngestionResult,
    ) -> Result<WriteResult>;

    /// The outcome of a [`Ledger::record_result`] or [`Ledger::release_claim`] whose reply was
    /// lost.
    async fn read_back(&self, id: IngestionId, token: ClaimToken) -> Result<ReadBack>;

    /// Registers a document and an ingestion for the current version of an object; returns the
    /// ingestion. Idempotent. If the newest ingestion of the document is about this version
    /// already, it is that one, however it was registered; unless it failed and the object was
    /// uploaded once more (with a sequencer of its own). An in-progress ingestion of a version with
    /// a lower sequencer that no worker holds ends `superseded` by this one.
    async fn register_object(&self, object: &ObjectRegistration) -> Result<IngestionId>;

    /// Those of these ids that have no row and were not erased.
    async fn find_unknown(&self, ids: &[IngestionId]) -> Result<Vec<IngestionId>>;

    /// Keeps a copy of a message that is not one of ours. Repeating it changes nothing.
    async fn quarantine_message(&self, message: &QuarantinedMessage) -> Result<()>;

    /// Lets those of the ingestions wait without a message that a pause holds back, or that are not
    /// due for longer than `long`: the message of each that is returned is to be deleted, and comes
    /// again when it is time. A ledger that returns none is right as well: messages are hidden then.
    async fn park(
        &self,
        _ids: &[IngestionId],
        _terms: &PauseTerms,
        _long: Duration,
    ) -> Result<Vec<IngestionId>> {
        Ok(Vec::new())
    }

    /// Messages were sent for these new children. Until then they wait without a message, and maintenance
    /// sends it: a ledger that parks nothing has nothing to note.
    async fn note_sent(&self, _children: &[IngestionId]) -> Result<()> {
        Ok(())
    }

    /// Everything that operators have paused now.
    async fn active_pauses(&self) -> Result<Vec<OperatorPause>>;

    /// Whether the ledger takes writes: a database may answer and be a replica after a failover.
    ///
    /// # Errors
    /// `Unavailable` if it does not answer or takes no writes.
    async fn require_writer(&self) -> Result<()>;

    /// Writes this worker's heartbeat and state.
    async fn save_worker_status(&self, worker: &str, vitals: &WorkerStatus) -> Result<()>;
}
