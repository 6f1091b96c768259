//! The ledger in Postgres.
//!
//! Every operation is one statement and one round trip, which jobs that are under way at the same time
//! share (`coalesce`). A statement that takes or renews a claim
//! commits without waiting for the disk: `set_config('synchronous_commit', 'off', true)` inside
//! it holds until its own commit. That is safe because tokens are random (a claim lost in a crash
//! of Postgres is lost for its holder too) and a second pool or a `BEGIN` would cost connections
//! or round trips. Ends, what is given back included, and registrations wait for the disk: a
//! give-back that a crash of Postgres undid would be taken for a worker that died.
//!
//! A batch locks its rows in the order of their ids, so that two batches never wait for each other;
//! and with SKIP LOCKED, so that a row locked by another session (an operator's open transaction,
//! for example) delays none of the others. A skipped row is read without its lock, so that it looks
//! neither unknown nor lost.
//!
//! A holder's statements compare the token and not the status: the schema allows a token only in
//! progress, and naming the status lets the planner walk the partial index of every row in progress
//! to find one (it did, while that index was small).
//!
//! A statement about several rows reads its arguments through a range that contains all of them
//! (ids between the first and the last, positions from one to a million). In a kept plan the
//! planner has to guess the number of arguments: ten rows for an array, a hundred for JSON, one for
//! a range of either. With a hundred it scanned a table of some megabytes for one row. With ten it
//! preferred a plan made anew at each call. With one, each row is found by its key, and the plan is
//! made once per connection. Many rows then cost as much as that many look-ups, as long as no list
//! of arguments is joined with another, which would be row by row: locked rows carry their
//! arguments along. Not promised: fairness between claimers of one row.

mod batch_lane;
pub(super) mod children;
mod claim;
mod claim_writes;
mod coalesce;
mod finish;
mod intake;
mod lookups;
mod objects;
pub mod parking;
mod references;
pub mod registration;
mod spending;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use time::OffsetDateTime;

use claim::ClaimStatement;
use coalesce::StatementBatcher;
use finish::{EndStatement, ResultRow};
use lookups::{BlockedLookup, DuplicateLookup, DuplicateRow, MemoryLookup};
use references::{ReferenceRow, ReferenceStatement};
use spending::{SpendingRow, SpendingStatement};

use crate::db::operators::{companies, master_data};
use crate::db::suppliers::MemoryQuery;
use crate::db::{Db, saturating_int};
use crate::duplicate_key::DuplicateKeys;
use crate::supplier::RememberedDocument;
use crate::{
    AttemptLedger, BatchEntry, BatchStanding, ClaimOutcome, ClaimRelease, ClaimRequest, ClaimTerms,
    DocumentSpending, FamilySize, IngestionResult, LeaseRenewal, LeaseStatus, Ledger,
    ObjectRegistration, OperatorPause, PauseTerms, ProviderSpending, QuarantinedMessage, ReadBack,
    SpentToday, StoredTranscript, VersionOutcome, WorkerStatus, WriteResult,
};
use docmill_core::config::{SecretString, SilentErrorsConfig, WorkerConfig};
use docmill_core::fault::Result;
use docmill_core::model::{
    ArtefactRef, ClaimToken, DocumentId, IngestionId, MasterHits, MasterQuery, OwnCompany,
};

/// The ledger in Postgres.
#[derive(Debug, Clone)]
pub struct PostgresLedger {
    db: Db,
    claims: StatementBatcher<ClaimStatement>,
    ends: StatementBatcher<EndStatement>,
    references: StatementBatcher<ReferenceStatement>,
    spending: StatementBatcher<SpendingStatement>,
    blocked: StatementBatcher<BlockedLookup>,
    duplicates: StatementBatcher<DuplicateLookup>,
    memory: StatementBatcher<MemoryLookup>,
    silent_errors: Arc<SilentErrorsConfig>,
}

impl PostgresLedger {
    /// The ledger in this database; its schema must be current. For a worker with as many slots as one
    /// has by default.
    pub fn new(db: Db) -> Self {
        Self::with_slots(db, WorkerConfig::default().slots)
    }

    /// The same for a worker with so many slots.
    pub fn with_slots(db: Db, slots: u32) -> Self {
        Self {
            claims: StatementBatcher::new(db.clone(), slots),
            ends: StatementBatcher::new(db.clone(), slots),
            references: StatementBatcher::new(db.clone(), slots),
            spending: StatementBatcher::new(db.clone(), slots),
            blocked: StatementBatcher::new(db.clone(), slots),
            duplicates: StatementBatcher::new(db.clone(), slots),
            memory: StatementBatcher::new(db.clone(), slots),
            silent_errors: Arc::default(),
            db,
        }
    }

    /// With bounds on silent errors: documents of these kinds are drawn for a look.
    #[must_use]
    pub fn with_silent_errors(self, terms: SilentErrorsConfig) -> Self {
        Self { silent_errors: Arc::new(terms), ..self }
    }
}

#[async_trait]
impl AttemptLedger for PostgresLedger {
    async fn save_transcription(
        &self,
        id: IngestionId,
        token: ClaimToken,
        saved: &StoredTranscript,
    ) -> Result<WriteResult> {
        self.references.run(ReferenceRow::to_transcript(id, token, saved)).await
    }

    async fn save_extraction(
        &self,
        id: IngestionId,
        token: ClaimToken,
        artefact: &ArtefactRef,
    ) -> Result<WriteResult> {
        self.references.run(ReferenceRow::to_replies(id, token, artefact)).await
    }

    async fn find_duplicate(
        &self,
        document: DocumentId,
        tenant: Option<&str>,
        keys: &DuplicateKeys,
    ) -> Result<Option<IngestionId>> {
        self.duplicates.run(DuplicateRow::new(document, tenant, keys)).await
    }

    async fn find_remembered(
        &self,
        tenant: Option<&str>,
        keys: &[String],
    ) -> Result<Vec<RememberedDocument>> {
        self.memory.run(MemoryQuery::new(tenant, keys)).await
    }

    async fn own_companies(&self, tenant: Option<&str>) -> Result<Vec<OwnCompany>> {
        companies::list_companies(&self.db, tenant).await
    }

    async fn has_master_data(&self, tenant: Option<&str>) -> Result<bool> {
        master_data::has_master_data(&self.db, tenant).await
    }

    async fn find_master_data(
        &self,
        tenant: Option<&str>,
        wanted: &MasterQuery,
    ) -> Result<MasterHits> {
        master_data::find_master_data(&self.db, tenant, wanted).await
    }

    async fn add_spending(
        &self,
        id: IngestionId,
        claims: i64,
        spent: &ProviderSpending,
    ) -> Result<()> {
        self.spending.run(SpendingRow::new(id, claims, spent)).await
    }

    async fn spent_today(&self, tenant: Option<&str>) -> Result<SpentToday> {
        spending::spent_today(&self.db, tenant).await
    }

    async fn spent_on(&self, id: IngestionId) -> Result<DocumentSpending> {
        spending::spent_on(&self.db, id).await
    }

    async fn find_batch_standing(
        &self,
        id: IngestionId,
        request: &str,
    ) -> Result<Option<BatchStanding>> {
        batch_lane::find_batch_standing(&self.db, id, request).await
    }

    async fn enter_batch_lane(&self, token: ClaimToken, entry: &BatchEntry) -> Result<WriteResult> {
        batch_lane::enter_batch_lane(&self.db, token, entry).await
    }

    async fn leave_batch_lane(&self, id: IngestionId, request: &str) -> Result<bool> {
        batch_lane::leave_batch_lane(&self.db, id, request).await
    }

    async fn use_batch_answers(&self, id: IngestionId, requests: &[String]) -> Result<()> {
        batch_lane::use_batch_answers(&self.db, id, requests).await
    }

    async fn adopt_version(
        &self,
        id: IngestionId,
        token: ClaimToken,
        etag: &str,
    ) -> Result<VersionOutcome> {
        objects::adopt_version(&self.db, id, token, etag).await
    }

    async fn document_passwords(&self, document: DocumentId) -> Result<Vec<SecretString>> {
        intake::document_passwords(&self.db, document).await
    }

    fn takes_children(&self) -> bool {
        true
    }

    async fn family_size(&self, id: IngestionId) -> Result<FamilySize> {
        children::family_size(&self.db, id).await
    }

    async fn is_blocked(&self, sha256: &str) -> Result<bool> {
        self.blocked.run(sha256.to_owned()).await
    }
}

#[async_trait]
impl Ledger for PostgresLedger {
    async fn current_time(&self) -> Result<OffsetDateTime> {
        lookups::current_time(&self.db).await
    }

    async fn claim_with_tokens(
        &self,
        asked: &[ClaimRequest],
        terms: &ClaimTerms,
    ) -> Result<Vec<ClaimOutcome>> {
        claim::claim_batch(&self.claims, asked, terms).await
    }

    async fn renew_leases(
        &self,
        claims: &[LeaseRenewal],
        lease: Duration,
    ) -> Result<Vec<LeaseStatus>> {
        claim_writes::renew_leases(&self.db, claims, lease).await
    }

    async fn release_claim(
        &self,
        id: IngestionId,
        token: ClaimToken,
        how: &ClaimRelease,
    ) -> Result<WriteResult> {
        finish::release_claim(&self.db, id, token, how).await
    }

    async fn record_result(
        &self,
        id: IngestionId,
        token: ClaimToken,
        end: &IngestionResult,
    ) -> Result<WriteResult> {
        let row = ResultRow::new(id, token, end).with_draws(&self.silent_errors);
        self.ends.run(row).await
    }

    async fn read_back(&self, id: IngestionId, token: ClaimToken) -> Result<ReadBack> {
        finish::read_back(&self.db, id, token).await
    }

    async fn register_object(&self, object: &ObjectRegistration) -> Result<IngestionId> {
        objects::register_object(&self.db, object).await
    }

    async fn find_unknown(&self, ids: &[IngestionId]) -> Result<Vec<IngestionId>> {
        objects::find_unknown(&self.db, ids).await
    }

    async fn quarantine_message(&self, message: &QuarantinedMessage) -> Result<()> {
        intake::quarantine_message(&self.db, message).await
    }

    async fn park(
        &self,
        ids: &[IngestionId],
        terms: &PauseTerms,
        long: Duration,
    ) -> Result<Vec<IngestionId>> {
        parking::park(&self.db, ids, terms, long).await
    }

    async fn require_writer(&self) -> Result<()> {
        self.db.require_writer().await
    }

    async fn note_sent(&self, sent: &[IngestionId]) -> Result<()> {
        children::note_sent(&self.db, sent).await
    }

    async fn active_pauses(&self) -> Result<Vec<OperatorPause>> {
        intake::active_pauses(&self.db).await
    }

    async fn save_worker_status(&self, worker: &str, vitals: &WorkerStatus) -> Result<()> {
        intake::save_worker_status(&self.db, worker, vitals).await
    }
}

/// A count from a column of type `int`, which a CHECK keeps from being negative.
fn count_from_int(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

/// Whether one row was written.
fn write_result(rows: u64) -> WriteResult {
    if rows == 0 { WriteResult::ClaimLost } else { WriteResult::Applied }
}
