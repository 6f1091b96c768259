//! The ledger in Postgres.
//!
//! Every operation is one statement and one round trip. A statement that takes or renews a claim
//! commits without waiting for the disk: `set_config('synchronous_commit', 'off', true)` inside
//! it holds until its own commit. That is safe because tokens are random (a claim lost in a crash
//! of Postgres is lost for its holder too) and a second pool or a `BEGIN` would cost connections
//! or round trips. Ends and registrations wait for the disk.
//!
//! A batch locks its rows in the order of their ids, so that two batches never wait for each
//! other; and never with SKIP LOCKED, because a skipped row would look unknown.
//!
//! A holder's statements compare the token and not the status: the schema allows a token only in
//! progress, and naming the status lets the planner walk the partial index of every row in progress
//! to find one (it did, while that index was small).
//! Not promised: fairness between claimers of one row.

mod claim;
mod coalesce;
mod end;
mod hold;
mod intake;
mod spending;

use std::time::Duration;

use async_trait::async_trait;
use time::OffsetDateTime;

use coalesce::Coalesce;
use end::End;

use crate::db::{Db, int};
use crate::fault::Result;
use crate::ledger::{
    AttemptLedger, Claim, ClaimTerms, GiveBack, Held, Ledger, Pause, Quarantined, ReadBack, Record,
    Registration, Spending, SpentToday, TranscriptionSaved, Vitals,
};
use crate::model::{ArtefactRef, ClaimToken, DocumentId, IngestionId, Stage};

/// The ledger in Postgres.
#[derive(Debug, Clone)]
pub struct PostgresLedger {
    db: Db,
    ends: Coalesce,
}

impl PostgresLedger {
    /// The ledger in this database; its schema must be current.
    pub fn new(db: Db) -> Self {
        Self { ends: Coalesce::new(db.clone()), db }
    }
}

#[async_trait]
impl AttemptLedger for PostgresLedger {
    async fn save_transcription(
        &self,
        id: IngestionId,
        token: ClaimToken,
        saved: &TranscriptionSaved,
    ) -> Result<Held> {
        hold::save_transcription(&self.db, id, token, saved).await
    }

    async fn save_extraction(
        &self,
        id: IngestionId,
        token: ClaimToken,
        artefact: &ArtefactRef,
    ) -> Result<Held> {
        hold::save_extraction(&self.db, id, token, artefact).await
    }

    async fn find_duplicate(
        &self,
        document: DocumentId,
        tenant: Option<&str>,
        supplier: &str,
        number: &str,
    ) -> Result<Option<IngestionId>> {
        intake::find_duplicate(&self.db, document, tenant, supplier, number).await
    }

    async fn spend(&self, id: IngestionId, claims: i64, spent: &Spending) -> Result<()> {
        spending::spend(&self.db, id, claims, spent).await
    }

    async fn spent_today(&self) -> Result<SpentToday> {
        spending::spent_today(&self.db).await
    }

    async fn is_blocked(&self, sha256: &str) -> Result<bool> {
        intake::is_blocked(&self.db, sha256).await
    }

    async fn now(&self) -> Result<OffsetDateTime> {
        intake::now(&self.db).await
    }
}

#[async_trait]
impl Ledger for PostgresLedger {
    async fn claim(&self, ids: &[IngestionId], terms: &ClaimTerms) -> Result<Vec<Claim>> {
        claim::claim(&self.db, ids, terms).await
    }

    async fn renew(
        &self,
        claims: &[(IngestionId, ClaimToken)],
        lease: Duration,
    ) -> Result<Vec<Held>> {
        hold::renew(&self.db, claims, lease).await
    }

    async fn give_back(&self, id: IngestionId, token: ClaimToken, how: &GiveBack) -> Result<Held> {
        end::give_back(&self.db, id, token, how).await
    }

    async fn save_stage(&self, id: IngestionId, token: ClaimToken, stage: Stage) -> Result<Held> {
        hold::save_stage(&self.db, id, token, stage).await
    }

    async fn record(&self, id: IngestionId, token: ClaimToken, end: &Record) -> Result<Held> {
        self.ends.record(End::new(id, token, end)).await
    }

    async fn read_back(&self, id: IngestionId, token: ClaimToken) -> Result<ReadBack> {
        end::read_back(&self.db, id, token).await
    }

    async fn register(&self, objects: &[Registration]) -> Result<Vec<IngestionId>> {
        intake::register(&self.db, objects).await?;
        Ok(objects.iter().map(|object| object.ingestion).collect())
    }

    async fn quarantine(&self, message: &Quarantined) -> Result<()> {
        intake::quarantine(&self.db, message).await
    }

    async fn pauses(&self) -> Result<Vec<Pause>> {
        intake::pauses(&self.db).await
    }

    async fn worker_alive(&self, worker: &str, vitals: &Vitals) -> Result<()> {
        intake::worker_alive(&self.db, worker, vitals).await
    }
}

/// A count from a column of type `int`, which a CHECK keeps from being negative.
fn count(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

/// Whether one row was written.
fn held(rows: u64) -> Held {
    if rows == 0 { Held::Lost } else { Held::Yes }
}
