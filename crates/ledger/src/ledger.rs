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

pub mod decide;
pub mod memory;
pub(crate) mod stored;

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use time::OffsetDateTime;

use docmill_core::fault::{Fault, Result};
use docmill_core::model::{
    ArtefactRef, ClaimToken, ClaimedIngestion, DocumentId, FileRef, GroundedField, IngestionId,
    IngestionStage, IngestionStatus, ModelUsage, OutcomeReason,
};

/// The worker, lease and crash limit that a claim is made with.
#[derive(Debug, Clone)]
pub struct ClaimTerms {
    /// Who claims: unique per process, e.g. `host-pid-random`.
    pub worker: String,
    /// How long the claim lasts without a renewal.
    pub lease: Duration,
    /// A document on which this many claims ended without an outcome is given up as `crashed`.
    pub crash_limit: u32,
}

/// The ledger's answer for one ingestion.
#[derive(Debug, Clone)]
pub enum ClaimOutcome {
    /// Ours: work on it.
    Claimed(Box<ClaimedIngestion>),
    /// A live lease of another claim; it ends after this time.
    Busy(Duration),
    /// Its next attempt is due after this time (more than 2 s).
    NotDue(Duration),
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
    /// Not due again before this time has passed; zero: at once.
    pub after: Duration,
    /// The stage in which it happened.
    pub stage: IngestionStage,
    /// What an operator reads: ids, codes and counts, never document content.
    pub detail: String,
}

/// The end of an ingestion.
#[derive(Debug, Clone)]
pub struct IngestionResult {
    /// `None`: completed. Otherwise why not.
    pub reason: Option<OutcomeReason>,
    /// What the attempt got as far as.
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
    /// What the gate found out, if it reached a verdict.
    pub judged: Option<VerdictDetails>,
    /// SHA-256 of the original, in hex, once it was read.
    pub sha256: Option<String>,
    /// What an operator reads; never document content.
    pub detail: String,
}

/// What a verdict holds beside its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictDetails {
    /// 0..1: how likely the data is right.
    pub score: f32,
    /// Where on the pages the data's values stand.
    pub grounded: Vec<GroundedField>,
}

/// Whether a write under a token took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    /// The write took effect.
    Yes,
    /// The claim is no longer ours; nothing was written.
    Lost,
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

/// A new object in the store that an event named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRegistration {
    /// Id of the document: deterministic, see [`DocumentId::from_object`].
    pub document: DocumentId,
    /// Id of the ingestion: deterministic, see [`IngestionId::from_object_version`].
    pub ingestion: IngestionId,
    /// Address of the object, `s3://bucket/key`.
    pub file_path: String,
    /// Last part of the key.
    pub original_name: String,
    /// The version the fetch must match.
    pub etag: Option<String>,
    /// Bytes, if the event said so.
    pub size: Option<u64>,
    /// Orders events of one object; hex, compared after left-padding with zeros.
    pub sequencer: Option<String>,
}

/// A message that is not one of ours, kept for a person (invariant 1).
#[derive(Debug, Clone)]
pub struct QuarantinedMessage {
    /// The service's id of the message.
    pub message_id: String,
    /// The body, cut to 64 KiB.
    pub body: String,
    /// Why it is kept: `malformed` or `unknown_ingestion`.
    pub reason: String,
    /// How often it was received.
    pub receive_count: u32,
}

/// What was paid to one provider for one attempt.
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

/// What all workers have spent since the day (UTC) began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpentToday {
    /// Billionths of the currency.
    pub cost_nanos: u64,
    /// How long until the next day begins.
    pub until_next_day: Duration,
}

/// What an operator has paused. All workers obey within seconds.
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

/// What else a pause may hold back, beside the tenant and the kind in the row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PauseTerms {
    /// The kind that counts for an ingestion whose row names none.
    pub default_kind: String,
    /// Who is asked first, for each kind.
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

/// What a worker reports of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Jobs that may run at the same time.
    pub slots: u32,
    /// Jobs that are running.
    pub slots_used: u32,
}

/// The outcome that is in the row, read back after a lost commit reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadBack {
    /// The attempt of this token is recorded as the end of the ingestion.
    Recorded,
    /// The claim is still ours and nothing was recorded.
    StillHeld,
    /// Neither: another claim has taken over.
    Lost,
}

/// What a running attempt asks, and what it writes down of itself. All that the pipeline needs of a
/// ledger, so that it also runs where no database is.
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

    /// The newest *completed* ingestion of another document with the same supplier and invoice
    /// number (compared case-folded, white space removed) of the same tenant, since one customer's
    /// documents are no other's business; for the gate's duplicate rule.
    async fn find_duplicate(
        &self,
        document: DocumentId,
        tenant: Option<&str>,
        supplier: &str,
        number: &str,
    ) -> Result<Option<IngestionId>>;

    /// Adds to what was spent in an attempt. Without a token: what is paid is paid, whoever owns
    /// the ingestion now. Not idempotent; after an error it is not known whether it was added.
    async fn add_spending(
        &self,
        id: IngestionId,
        claims: i64,
        spent: &ProviderSpending,
    ) -> Result<()>;

    /// The sum of today's spending (UTC).
    async fn spent_today(&self) -> Result<SpentToday>;

    /// Whether an operator has blocked this content.
    async fn is_blocked(&self, sha256: &str) -> Result<bool>;

    /// The current time by the ledger's clock.
    async fn current_time(&self) -> Result<OffsetDateTime>;
}

/// Claims and their ends.
#[async_trait]
pub trait Ledger: AttemptLedger {
    /// Claims a whole received batch at once, rows locked in id order. One answer per id, in the
    /// order of `ids`; `ids` holds no id twice. An expired lease of an earlier claim is closed as
    /// attempt `crashed` on the way.
    async fn claim(&self, ids: &[IngestionId], terms: &ClaimTerms) -> Result<Vec<ClaimOutcome>>;

    /// Renews leases to `lease` from now. One answer per claim, in order.
    async fn renew_leases(
        &self,
        claims: &[(IngestionId, ClaimToken)],
        lease: Duration,
    ) -> Result<Vec<WriteResult>>;

    /// Ends the attempt without ending the ingestion: writes its `attempt` row, clears the lease.
    async fn release_claim(
        &self,
        id: IngestionId,
        token: ClaimToken,
        how: &ClaimRelease,
    ) -> Result<WriteResult>;

    /// Says which stage the claim has reached (for operators).
    async fn save_stage(
        &self,
        id: IngestionId,
        token: ClaimToken,
        stage: IngestionStage,
    ) -> Result<WriteResult>;

    /// Ends the ingestion and its attempt in one transaction.
    async fn record_result(
        &self,
        id: IngestionId,
        token: ClaimToken,
        end: &IngestionResult,
    ) -> Result<WriteResult>;

    /// What became of a [`Ledger::record_result`] whose reply was lost.
    async fn read_back(&self, id: IngestionId, token: ClaimToken) -> Result<ReadBack>;

    /// Registers documents and ingestions that events named; repeating it changes nothing. An
    /// in-progress ingestion of an older version of the same object that no worker holds ends
    /// `superseded`. Returns the ingestions in order.
    async fn register_objects(&self, objects: &[ObjectRegistration]) -> Result<Vec<IngestionId>>;

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

    /// Everything that operators have paused now.
    async fn active_pauses(&self) -> Result<Vec<OperatorPause>>;

    /// Writes the row that says that this worker lives, and how it is.
    async fn save_worker_status(&self, worker: &str, vitals: &WorkerStatus) -> Result<()>;
}
