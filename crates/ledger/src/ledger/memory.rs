//! The ledger in memory, for documents without a database, tests and simulations: the pure [`decide`] under a lock, a clock that
//! is set by hand.
//!
//! Not promised: the document's data (the trigger is Postgres' own), durability, speed with many
//! rows.

mod operators;
mod row;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::fault::Result;
use crate::ledger::decide::{Decision, Sequencer, decide, duplicate_key, key_of, used_attempts};
use crate::ledger::{
    AttemptLedger, Claim, ClaimTerms, GiveBack, Held, Ledger, Pause, Quarantined, ReadBack, Record,
    Registration, Spending, SpentToday, TranscriptionSaved, Vitals, stored,
};
use crate::model::{
    ArtefactRef, AttemptOutcome, ClaimToken, Claimed, DocumentId, DocumentRef, IngestionId, Reason,
    Stage, Status,
};

pub use row::{Attempt, Row};

/// The ledger in memory.
#[derive(Debug)]
pub struct MemoryLedger {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    now: OffsetDateTime,
    rows: BTreeMap<IngestionId, Row>,
    documents: BTreeMap<DocumentId, (String, Option<String>)>,
    attempts: BTreeMap<IngestionId, Vec<Attempt>>,
    quarantined: BTreeMap<String, Quarantined>,
    pauses: Vec<Pause>,
    blocked: BTreeSet<String>,
    workers: BTreeMap<String, Vitals>,
    /// Day, ingestion, claim.
    spending: Vec<(time::Date, IngestionId, i64, Spending)>,
}

impl MemoryLedger {
    /// An empty ledger whose clock shows `now`.
    pub fn new(now: OffsetDateTime) -> Self {
        Self {
            state: Mutex::new(State {
                now,
                rows: BTreeMap::new(),
                documents: BTreeMap::new(),
                attempts: BTreeMap::new(),
                quarantined: BTreeMap::new(),
                pauses: Vec::new(),
                blocked: BTreeSet::new(),
                workers: BTreeMap::new(),
                spending: Vec::new(),
            }),
        }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let mut state = self.state();
        state.now = row::after(state.now, by);
    }

    /// Inserts a document and an ingestion of it, as a producer does; an id that is there stays.
    pub fn insert(&self, id: IngestionId, document: DocumentId, file_path: &str) {
        let mut state = self.state();
        let now = state.now;
        state.documents.entry(document).or_insert_with(|| (file_path.to_owned(), None));
        state.rows.entry(id).or_insert_with(|| Row::fresh(document, now));
    }

    /// The row of an ingestion.
    pub fn row(&self, id: IngestionId) -> Option<Row> {
        self.state().rows.get(&id).cloned()
    }

    /// The attempts of an ingestion, oldest first.
    pub fn attempts(&self, id: IngestionId) -> Vec<Attempt> {
        self.state().attempts.get(&id).cloned().unwrap_or_default()
    }

    /// Messages that were put into quarantine.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.state().quarantined.values().cloned().collect()
    }

    /// The newest vitals of a worker.
    pub fn vitals(&self, worker: &str) -> Option<Vitals> {
        self.state().workers.get(worker).copied()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the row if the token holds it.
    fn while_held(
        &self,
        id: IngestionId,
        token: ClaimToken,
        change: impl FnOnce(&mut Row, OffsetDateTime) -> Option<Attempt>,
    ) -> Held {
        let mut state = self.state();
        let now = state.now;
        let Some(row) = state.rows.get_mut(&id).filter(|row| row.is_held_by(token)) else {
            return Held::Lost;
        };
        let ended = change(row, now);
        let is_final = ended.as_ref().is_some_and(|attempt| attempt.is_final);
        state.close(id, ended, is_final);
        Held::Yes
    }
}

impl State {
    fn close(&mut self, id: IngestionId, attempt: Option<Attempt>, is_final: bool) {
        if let Some(attempt) = attempt {
            self.attempts.entry(id).or_default().push(Attempt { is_final, ..attempt });
        }
    }

    fn claim(&mut self, id: IngestionId, terms: &ClaimTerms, begun: Instant) -> Claim {
        let now = self.now;
        let Some(row) = self.rows.get_mut(&id) else { return Claim::Unknown };
        let silent = row.attempt(
            now,
            AttemptOutcome::Ended(Reason::Crashed),
            "the lease ended without a word of the worker",
        );
        match decide(&row.state(), now, terms.crash_limit) {
            Decision::Terminal(status) => Claim::Terminal(status),
            Decision::Busy(left) => Claim::Busy(left),
            Decision::NotDue(left) => Claim::NotDue(left),
            Decision::GiveUp { after_crash } => {
                row.crashes += u32::from(after_crash);
                let detail = format!("workers died on it {} times", row.crashes);
                row.finish(Some(Reason::Crashed), &detail, now);
                row.needs_human_review = true;
                row.review_reasons = vec![Reason::Crashed.code().to_owned()];
                self.close(id, silent, true);
                Claim::Exhausted
            }
            Decision::Take { after_crash } => {
                row.crashes += u32::from(after_crash);
                row.take(ClaimToken::random(), &terms.worker, now);
                row.lease_expires_at = Some(row::after(now, terms.lease));
                let claimed = claimed(id, row, &self.documents, now, begun + terms.lease);
                self.close(id, silent, false);
                claimed.map_or(Claim::Unknown, |claimed| Claim::Claimed(Box::new(claimed)))
            }
        }
    }

    fn register(&mut self, object: &Registration, batch: &[Registration]) {
        let now = self.now;
        let sequencer = order(object);
        self.documents.entry(object.document).or_insert_with(|| {
            (stored::text(&object.file_path).into_owned(), Some(object.original_name.clone()))
        });
        let of_rows = self
            .rows
            .iter()
            .filter(|(id, row)| **id != object.ingestion && row.document_id == object.document)
            .filter_map(|(_, row)| row.object_sequencer.clone());
        let of_batch = batch.iter().filter(|other| other.document == object.document);
        let newest = of_rows.chain(of_batch.filter_map(order)).max();
        let late = sequencer.is_some() && newest > sequencer;
        self.rows.entry(object.ingestion).or_insert_with(|| {
            let mut row = Row::fresh(object.document, now);
            row.object_etag = stored::optional(object.etag.as_deref());
            row.object_sequencer = sequencer;
            if late {
                let detail = "a newer version of the object was registered before";
                row.finish(Some(Reason::Superseded), detail, now);
            }
            row
        });
    }

    /// Ends what is older than an object of the batch and not held. Rows of this very batch were
    /// judged when they were inserted.
    fn supersede(&mut self, batch: &[Registration], known: &BTreeSet<IngestionId>) {
        let now = self.now;
        let mut ended = Vec::new();
        for (id, row) in &mut self.rows {
            let is_older = batch.iter().any(|object| {
                object.document == row.document_id
                    && object.ingestion != *id
                    && row.object_sequencer.is_some()
                    && order(object) > row.object_sequencer
            });
            let waits = row.status == Status::InProgress && row.is_unheld(now);
            if is_older && waits && known.contains(id) {
                let silent = row.attempt(
                    now,
                    AttemptOutcome::Ended(Reason::Crashed),
                    "the lease ended without a word of the worker; superseded meanwhile",
                );
                let detail = "a newer version of the object was registered";
                row.finish(Some(Reason::Superseded), detail, now);
                ended.push((*id, silent));
            }
        }
        for (id, silent) in ended {
            self.close(id, silent, true);
        }
    }
}

fn order(object: &Registration) -> Option<Sequencer> {
    object.sequencer.as_deref().and_then(|text| Sequencer::new(&stored::text(text)))
}

fn claimed(
    id: IngestionId,
    row: &Row,
    documents: &BTreeMap<DocumentId, (String, Option<String>)>,
    now: OffsetDateTime,
    lease_until: Instant,
) -> Option<Claimed> {
    let (file_path, original_name) = documents.get(&row.document_id).cloned().unwrap_or_default();
    Some(Claimed {
        id,
        token: row.claim_token?,
        claims: row.claims,
        attempt: used_attempts(row.attempt_count, row.attempt_limit),
        suspect: row.crashes > 0,
        deferred_for: row.deferred_since.map(|since| (now - since).try_into().unwrap_or_default()),
        kind: row.kind.clone(),
        tenant: row.tenant.clone(),
        document: DocumentRef {
            id: row.document_id,
            file_path,
            original_name,
            etag: row.object_etag.clone(),
        },
        transcription: row.transcription.clone(),
        extraction: row.extraction.clone(),
        lease_until,
    })
}

#[async_trait]
impl AttemptLedger for MemoryLedger {
    async fn save_transcription(
        &self,
        id: IngestionId,
        token: ClaimToken,
        saved: &TranscriptionSaved,
    ) -> Result<Held> {
        Ok(self.while_held(id, token, |row, _| {
            row.save_transcription(saved);
            None
        }))
    }

    async fn save_extraction(
        &self,
        id: IngestionId,
        token: ClaimToken,
        artefact: &ArtefactRef,
    ) -> Result<Held> {
        Ok(self.while_held(id, token, |row, _| {
            row.extraction = Some(artefact.clone());
            None
        }))
    }

    async fn find_duplicate(
        &self,
        document: DocumentId,
        tenant: Option<&str>,
        supplier: &str,
        number: &str,
    ) -> Result<Option<IngestionId>> {
        let Some(key) = duplicate_key(supplier, number) else { return Ok(None) };
        let state = self.state();
        let same = state.rows.iter().filter(|(_, row)| {
            row.duplicate_key.as_ref() == Some(&key)
                && row.document_id != document
                && row.tenant.as_deref() == tenant
                && row.status == Status::Completed
        });
        Ok(same.max_by_key(|(id, row)| (row.completed_at, **id)).map(|(id, _)| *id))
    }

    async fn spend(&self, id: IngestionId, claims: i64, spent: &Spending) -> Result<()> {
        let mut state = self.state();
        let day = state.now.date();
        if state.rows.contains_key(&id) {
            state.spending.push((day, id, claims, spent.clone()));
        }
        Ok(())
    }

    async fn spent_today(&self) -> Result<SpentToday> {
        let state = self.state();
        let today = state.now.date();
        let of_today = state.spending.iter().filter(|(day, ..)| *day == today);
        let cost_nanos = of_today.filter_map(|(.., spent)| spent.cost_nanos).sum();
        let next = today.next_day().map(|day| day.midnight().assume_utc());
        let until = next.map_or(time::Duration::ZERO, |next| next - state.now);
        Ok(SpentToday { cost_nanos, until_next_day: until.unsigned_abs() })
    }

    async fn is_blocked(&self, sha256: &str) -> Result<bool> {
        Ok(self.state().blocked.contains(sha256))
    }

    async fn now(&self) -> Result<OffsetDateTime> {
        Ok(self.state().now)
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn claim(&self, ids: &[IngestionId], terms: &ClaimTerms) -> Result<Vec<Claim>> {
        let begun = Instant::now();
        let mut state = self.state();
        Ok(ids.iter().map(|id| state.claim(*id, terms, begun)).collect())
    }

    async fn renew(
        &self,
        claims: &[(IngestionId, ClaimToken)],
        lease: Duration,
    ) -> Result<Vec<Held>> {
        let renew = |row: &mut Row, now| {
            row.lease_expires_at = Some(row::after(now, lease));
            None
        };
        Ok(claims.iter().map(|(id, token)| self.while_held(*id, *token, renew)).collect())
    }

    async fn give_back(&self, id: IngestionId, token: ClaimToken, how: &GiveBack) -> Result<Held> {
        Ok(self.while_held(id, token, |row, now| row.give_back(how, now)))
    }

    async fn save_stage(&self, id: IngestionId, token: ClaimToken, stage: Stage) -> Result<Held> {
        Ok(self.while_held(id, token, |row, _| {
            row.stage = Some(stage);
            None
        }))
    }

    async fn record(&self, id: IngestionId, token: ClaimToken, end: &Record) -> Result<Held> {
        Ok(self.while_held(id, token, |row, now| row.record(end, key_of(end), now)))
    }

    async fn read_back(&self, id: IngestionId, token: ClaimToken) -> Result<ReadBack> {
        let state = self.state();
        let attempts = state.attempts.get(&id);
        if attempts.is_some_and(|all| all.iter().any(|a| a.token == token && a.is_final)) {
            return Ok(ReadBack::Recorded);
        }
        let held = state.rows.get(&id).is_some_and(|row| row.is_held_by(token));
        Ok(if held { ReadBack::StillHeld } else { ReadBack::Lost })
    }

    async fn register(&self, objects: &[Registration]) -> Result<Vec<IngestionId>> {
        let mut state = self.state();
        let known = state.rows.keys().copied().collect();
        for object in objects {
            state.register(object, objects);
        }
        state.supersede(objects, &known);
        Ok(objects.iter().map(|object| object.ingestion).collect())
    }

    async fn quarantine(&self, message: &Quarantined) -> Result<()> {
        let id = message.message_id.clone();
        self.state().quarantined.entry(id).or_insert_with(|| message.clone());
        Ok(())
    }

    async fn pauses(&self) -> Result<Vec<Pause>> {
        Ok(self.state().pauses.clone())
    }

    async fn worker_alive(&self, worker: &str, vitals: &Vitals) -> Result<()> {
        self.state().workers.insert(worker.to_owned(), *vitals);
        Ok(())
    }
}
