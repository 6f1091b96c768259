//! The ledger in memory, for documents without a database, tests and simulations: the pure
//! [`super::decide`] under a lock, a clock that is set by hand.
//!
//! Not promised: the document's data (the trigger is Postgres' own), durability, speed with many
//! rows.

mod operators;
mod row;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use time::OffsetDateTime;

use crate::decide::{
    ClaimDecision, ClaimOffer, EarlierClaim, LoneEnds, Sequencer, decide_claim, recorded_keys,
    recorded_near_keys, used_attempts,
};
use crate::duplicate_key::{DuplicateKeys, NearKeys};
use crate::{
    AttemptLedger, BESIDE_ATTEMPTS, ClaimOutcome, ClaimRelease, ClaimRequest, ClaimTerms,
    DocumentSpending, FamilySize, IngestionResult, LeaseRenewal, LeaseStatus, Ledger, NewChild,
    ObjectRegistration, OperatorPause, ProviderSpending, QuarantinedMessage, ReadBack, SpentToday,
    StoredTranscript, VersionOutcome, WorkerStatus, WriteResult, stored,
};
use docmill_core::fault::Result;
use docmill_core::model::{
    ArtefactRef, AttemptOutcome, ClaimToken, ClaimedIngestion, DocumentId, DocumentRef,
    IngestionId, IngestionStage, IngestionStatus, OutcomeReason, OwnCompany, PageRange, Priority,
};

pub use row::{LedgerAttempt, LedgerRow};

/// The ledger in memory.
pub struct MemoryLedger {
    state: Mutex<MemoryLedgerState>,
    takes_children: bool,
    /// Where the day's spending is, if it is not only here.
    day: Option<Arc<dyn AttemptLedger>>,
}

#[derive(Debug)]
struct MemoryLedgerState {
    now: OffsetDateTime,
    rows: BTreeMap<IngestionId, LedgerRow>,
    documents: BTreeMap<DocumentId, MemoryDocument>,
    attempts: BTreeMap<IngestionId, Vec<LedgerAttempt>>,
    quarantined: BTreeMap<String, QuarantinedMessage>,
    blocked: BTreeSet<String>,
    companies: Vec<OwnCompany>,
    workers: BTreeMap<String, WorkerStatus>,
    /// Entries as day, ingestion, number of the claim, and what was spent.
    spending: Vec<(time::Date, IngestionId, i64, ProviderSpending)>,
}

/// The document of ingestions; the fields are the columns of the same name.
#[derive(Debug, Clone, Default)]
struct MemoryDocument {
    file_path: String,
    original_name: Option<String>,
    size_bytes: u64,
    depth: u32,
    pages: Option<PageRange>,
}

impl MemoryLedger {
    /// An empty ledger whose clock shows `now`.
    pub fn new(now: OffsetDateTime) -> Self {
        Self {
            state: Mutex::new(MemoryLedgerState {
                now,
                rows: BTreeMap::new(),
                documents: BTreeMap::new(),
                attempts: BTreeMap::new(),
                quarantined: BTreeMap::new(),
                blocked: BTreeSet::new(),
                companies: Vec::new(),
                workers: BTreeMap::new(),
                spending: Vec::new(),
            }),
            takes_children: false,
            day: None,
        }
    }

    /// The same; documents found in others become documents of their own.
    #[must_use]
    pub fn taking_children(self) -> Self {
        Self { takes_children: true, ..self }
    }

    /// The same; what is spent counts in the day of `ledger`, beside the attempts that it has of the
    /// same ingestions, and the budgets of the day are what is left there.
    #[must_use]
    pub fn spending_in(self, ledger: Arc<dyn AttemptLedger>) -> Self {
        Self { day: Some(ledger), ..self }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let mut state = self.lock_state();
        state.now = row::add_duration(state.now, by);
    }

    /// Inserts a document and an ingestion of it, as a producer does; an id that is there stays.
    pub fn insert_ingestion(&self, id: IngestionId, document: DocumentId, file_path: &str) {
        let mut state = self.lock_state();
        let now = state.now;
        let file_path = file_path.to_owned();
        let made = MemoryDocument { file_path, ..MemoryDocument::default() };
        state.documents.entry(document).or_insert(made);
        state.rows.entry(id).or_insert_with(|| LedgerRow::new_queued(document, now));
    }

    /// Adds an own company, as an operator does.
    pub fn add_own_company(&self, company: OwnCompany) {
        self.lock_state().companies.push(company);
    }

    /// The row of an ingestion.
    pub fn row(&self, id: IngestionId) -> Option<LedgerRow> {
        self.lock_state().rows.get(&id).cloned()
    }

    /// The attempts of an ingestion, oldest first.
    pub fn attempts(&self, id: IngestionId) -> Vec<LedgerAttempt> {
        self.lock_state().attempts.get(&id).cloned().unwrap_or_default()
    }

    /// Messages that were put into quarantine.
    pub fn quarantined(&self) -> Vec<QuarantinedMessage> {
        self.lock_state().quarantined.values().cloned().collect()
    }

    /// The newest vitals of a worker.
    pub fn worker_status(&self, worker: &str) -> Option<WorkerStatus> {
        self.lock_state().workers.get(worker).cloned()
    }

    fn lock_state(&self) -> MutexGuard<'_, MemoryLedgerState> {
        self.state.lock()
    }

    /// Changes the row if the token holds it.
    fn update_if_held(
        &self,
        id: IngestionId,
        token: ClaimToken,
        change: impl FnOnce(&mut LedgerRow, OffsetDateTime) -> Option<LedgerAttempt>,
    ) -> WriteResult {
        self.lock_state().update_if_held(id, token, change)
    }
}

impl MemoryLedgerState {
    fn update_if_held(
        &mut self,
        id: IngestionId,
        token: ClaimToken,
        change: impl FnOnce(&mut LedgerRow, OffsetDateTime) -> Option<LedgerAttempt>,
    ) -> WriteResult {
        let now = self.now;
        let Some(row) = self.rows.get_mut(&id).filter(|row| row.is_held_by(token)) else {
            return WriteResult::ClaimLost;
        };
        let ended = change(row, now);
        let is_final = ended.as_ref().is_some_and(|attempt| attempt.is_final);
        self.close_attempt(id, ended, is_final);
        WriteResult::Applied
    }

    /// Whether another document of the same tenant has completed with one of these keys.
    fn has_duplicate(&self, id: IngestionId, keys: Option<&DuplicateKeys>) -> bool {
        let own = self.rows.get(&id);
        own.zip(keys).is_some_and(|(own, keys)| {
            let other = self.completed_with(own.document_id, own.tenant.as_deref(), keys);
            other.is_some()
        })
    }

    /// Whether another document of the same tenant has completed with one of these near keys.
    fn has_near_duplicate(&self, id: IngestionId, keys: Option<NearKeys>) -> bool {
        let own = self.rows.get(&id);
        own.zip(keys).is_some_and(|(own, keys)| {
            self.rows.values().any(|row| {
                row.near_keys.is_some_and(|other| keys.meet(&other))
                    && row.document_id != own.document_id
                    && row.tenant == own.tenant
                    && row.status == IngestionStatus::Completed
            })
        })
    }

    /// The newest completed ingestion of another document of the tenant with one of these keys.
    fn completed_with(
        &self,
        document: DocumentId,
        tenant: Option<&str>,
        keys: &DuplicateKeys,
    ) -> Option<IngestionId> {
        let same = self.rows.iter().filter(|(_, row)| {
            row.duplicate_key.as_deref().is_some_and(|key| keys.contain(key))
                && row.document_id != document
                && row.tenant.as_deref() == tenant
                && row.status == IngestionStatus::Completed
        });
        same.max_by_key(|(id, row)| (row.completed_at, **id)).map(|(id, _)| *id)
    }

    /// Adds the children of an ingestion; a place that is taken stays as it is.
    fn add_children(&mut self, id: IngestionId, children: &[NewChild]) {
        let now = self.now;
        let Some(parent) = self.rows.get(&id).cloned() else { return };
        let depth =
            self.documents.get(&parent.document_id).map_or(0, |document| document.depth) + 1;
        let mut added = 0;
        for child in children {
            let of_place = |row: &LedgerRow| (row.parent_id, row.position);
            if self.rows.values().any(|row| of_place(row) == (Some(id), Some(child.position))) {
                continue;
            }
            let document = MemoryDocument {
                file_path: child.file_path.clone(),
                original_name: stored::strip_nul_optional(child.name.as_deref()),
                size_bytes: child.size.unwrap_or(0),
                depth,
                pages: child.pages,
            };
            self.documents.insert(child.document, document);
            let mut row = LedgerRow::new_queued(child.document, now);
            row.kind.clone_from(&child.kind);
            row.tenant.clone_from(&parent.tenant);
            (row.parent_id, row.position) = (Some(id), Some(child.position));
            row.root_id = parent.root_id.or(Some(id));
            self.rows.insert(child.ingestion, row);
            added += 1;
        }
        if let Some(row) = self.rows.get_mut(&id).filter(|_| !children.is_empty()) {
            row.children = Some(row.children.unwrap_or(0) + added);
        }
    }

    fn close_attempt(&mut self, id: IngestionId, attempt: Option<LedgerAttempt>, is_final: bool) {
        if let Some(attempt) = attempt {
            self.attempts.entry(id).or_default().push(LedgerAttempt { is_final, ..attempt });
        }
    }

    fn claim_ingestion(
        &mut self,
        asked: ClaimRequest,
        terms: &ClaimTerms,
        begun: Instant,
        others: LoneEnds,
    ) -> ClaimOutcome {
        let (now, ClaimRequest { id, token, .. }) = (self.now, asked);
        let Some(row) = self.rows.get_mut(&id) else { return ClaimOutcome::Unknown };
        if row.is_held_by(token) {
            // The answer to this very request was lost.
            row.renew(row::add_duration(now, terms.lease), Some(IngestionStage::Claimed));
            return claimed_outcome(build_claimed(
                id,
                row,
                &self.documents,
                now,
                begun + terms.lease,
            ));
        }
        let (crash_limit, company) = (terms.crash_limit, asked.company);
        let offer = ClaimOffer { crash_limit, company, others };
        let silent = row.ended_attempt(
            now,
            AttemptOutcome::Ended(OutcomeReason::Crashed),
            "the lease ended without a word of the worker",
        );
        let silent = silent.map(|silent| LedgerAttempt { alone: row.is_alone(), ..silent });
        match decide_claim(&row.claim_state(), now, offer) {
            ClaimDecision::Terminal(status) => ClaimOutcome::Terminal(status),
            ClaimDecision::Busy(left) => ClaimOutcome::Busy(left),
            ClaimDecision::NotDue(left) => ClaimOutcome::NotDue(left),
            ClaimDecision::Suspect(since) => ClaimOutcome::Suspect(since),
            ClaimDecision::GiveUp(earlier) => {
                row.crashes += earlier.crashes();
                let detail = format!("workers died on it alone {} times", row.crashes);
                row.finish(Some(OutcomeReason::Crashed), &detail, now);
                row.needs_human_review = true;
                row.review_reasons = vec![OutcomeReason::Crashed.code().to_owned()];
                self.close_attempt(id, silent, true);
                ClaimOutcome::Exhausted
            }
            ClaimDecision::Take(earlier) => {
                row.accuse(earlier);
                row.start_claim(asked, &terms.worker, now);
                row.lease_expires_at = Some(row::add_duration(now, terms.lease));
                let claimed = build_claimed(id, row, &self.documents, now, begun + terms.lease);
                let counted = earlier == EarlierClaim::Crashed;
                let silent = silent.map(|silent| LedgerAttempt { counted, ..silent });
                self.close_attempt(id, silent, false);
                claimed_outcome(claimed)
            }
        }
    }

    fn register_object(&mut self, object: &ObjectRegistration) -> IngestionId {
        let now = self.now;
        let etag = stored::strip_nul_optional(object.etag.as_deref());
        let sequencer = sequencer_of(object);
        self.documents.entry(object.document).or_insert_with(|| {
            let file_path = stored::strip_nul(&object.file_path).into_owned();
            let original_name = Some(object.original_name.clone());
            MemoryDocument { file_path, original_name, ..MemoryDocument::default() }
        });
        if self.rows.contains_key(&object.ingestion) {
            return object.ingestion;
        }
        let of_document = self.rows.iter().filter(|(_, row)| row.document_id == object.document);
        let standing = of_document.filter(|(_, row)| row.reason != Some(OutcomeReason::Superseded));
        if let Some((id, row)) = standing.max_by_key(|(id, row)| (row.created_at, **id)) {
            let anew = row.status == IngestionStatus::Failed && sequencer.is_some();
            if etag.is_some() && row.object_etag == etag && !anew {
                return *id;
            }
        }
        self.supersede_older(object, sequencer.as_ref());
        let mut row = LedgerRow::new_queued(object.document, now);
        row.object_etag = etag;
        row.object_sequencer = sequencer;
        row.tenant = stored::strip_nul_optional(object.tenant.as_deref());
        self.rows.insert(object.ingestion, row);
        object.ingestion
    }

    /// Ends what is older than the object and not held.
    fn supersede_older(&mut self, object: &ObjectRegistration, sequencer: Option<&Sequencer>) {
        let now = self.now;
        let mut ended = Vec::new();
        for (id, row) in &mut self.rows {
            let known = row.object_sequencer.as_ref();
            let is_older = row.document_id == object.document
                && known.zip(sequencer).is_some_and(|(known, new)| new > known);
            if is_older && row.status == IngestionStatus::InProgress && row.is_unclaimed(now) {
                let silent = row.ended_attempt(
                    now,
                    AttemptOutcome::Ended(OutcomeReason::Crashed),
                    "the lease ended without a word of the worker; superseded meanwhile",
                );
                let detail = "a newer version of the object was registered";
                row.finish(Some(OutcomeReason::Superseded), detail, now);
                row.superseded_by = Some(object.ingestion);
                ended.push((*id, silent));
            }
        }
        for (id, silent) in ended {
            self.close_attempt(id, silent, true);
        }
    }

    fn adopt_version(&mut self, id: IngestionId, token: ClaimToken, etag: &str) -> VersionOutcome {
        let Some(row) = self.rows.get(&id).filter(|row| row.is_held_by(token)) else {
            return VersionOutcome::Lost;
        };
        let document = row.document_id;
        let others = self.rows.iter().filter(|(other, row)| {
            **other != id
                && row.document_id == document
                && row.status != IngestionStatus::Cancelled
                && row.object_etag.as_deref() == Some(etag)
        });
        let successor =
            others.max_by_key(|(id, row)| (row.created_at, **id)).map(|(other, _)| *other);
        if let Some(row) = self.rows.get_mut(&id) {
            row.superseded_by = successor;
            if successor.is_none() {
                row.object_etag = Some(etag.to_owned());
            }
        }
        successor.map_or(VersionOutcome::Adopted, VersionOutcome::SupersededBy)
    }
}

/// Ends of the other documents that were worked on alone, of each the newest.
fn lone_ends(
    attempts: &BTreeMap<IngestionId, Vec<LedgerAttempt>>,
    id: IngestionId,
    now: OffsetDateTime,
) -> LoneEnds {
    let others = attempts.iter().filter(|(of, _)| **of != id);
    let mut newest: Vec<(IngestionId, &LedgerAttempt)> = others
        .flat_map(|(of, all)| all.iter().map(|attempt| (*of, attempt)))
        .filter(|(_, attempt)| attempt.alone && attempt.ended_at > now - LoneEnds::MAX_AGE)
        .collect();
    newest.sort_by_key(|(of, attempt)| (Reverse(attempt.ended_at), *of, Reverse(attempt.claims)));
    newest.truncate(LoneEnds::MAX_ATTEMPTS);
    let mut seen = BTreeSet::new();
    newest.retain(|(of, _)| seen.insert(*of));
    newest.truncate(LoneEnds::MAX_ENDS);
    let crashed = newest.iter().filter(|(_, a)| a.outcome == OutcomeReason::Crashed.code()).count();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    LoneEnds { ends: count(newest.len()), crashed: count(crashed) }
}

fn sequencer_of(object: &ObjectRegistration) -> Option<Sequencer> {
    object.sequencer.as_deref().and_then(|text| Sequencer::new(&stored::strip_nul(text)))
}

fn claimed_outcome(claimed: Option<ClaimedIngestion>) -> ClaimOutcome {
    claimed.map_or(ClaimOutcome::Unknown, |claimed| ClaimOutcome::Claimed(Box::new(claimed)))
}

fn build_claimed(
    id: IngestionId,
    row: &LedgerRow,
    documents: &BTreeMap<DocumentId, MemoryDocument>,
    now: OffsetDateTime,
    lease_until: Instant,
) -> Option<ClaimedIngestion> {
    let document = documents.get(&row.document_id).cloned().unwrap_or_default();
    Some(ClaimedIngestion {
        id,
        token: row.claim_token?,
        claims: row.claims,
        attempt: used_attempts(row.attempt_count, row.attempt_limit),
        attempt_limit: row.attempt_limit,
        suspect: row.accused_at.is_some(),
        deferred_for: row.deferred_since.map(|since| (now - since).try_into().unwrap_or_default()),
        priority: Priority::default(),
        created_at: row.created_at,
        kind: row.kind.clone(),
        tenant: row.tenant.clone(),
        document: DocumentRef {
            id: row.document_id,
            file_path: document.file_path,
            original_name: document.original_name,
            etag: row.object_etag.clone(),
            depth: document.depth,
            pages: document.pages,
        },
        transcription: row.transcription.clone(),
        extraction: row.extraction.clone(),
        lease_until,
        claimed_at: now,
    })
}

#[async_trait]
impl AttemptLedger for MemoryLedger {
    async fn save_transcription(
        &self,
        id: IngestionId,
        token: ClaimToken,
        saved: &StoredTranscript,
    ) -> Result<WriteResult> {
        Ok(self.update_if_held(id, token, |row, _| {
            row.save_transcription(saved);
            None
        }))
    }

    async fn save_extraction(
        &self,
        id: IngestionId,
        token: ClaimToken,
        artefact: &ArtefactRef,
    ) -> Result<WriteResult> {
        Ok(self.update_if_held(id, token, |row, _| {
            row.save_extraction(artefact);
            None
        }))
    }

    async fn find_duplicate(
        &self,
        document: DocumentId,
        tenant: Option<&str>,
        keys: &DuplicateKeys,
    ) -> Result<Option<IngestionId>> {
        Ok(self.lock_state().completed_with(document, tenant, keys))
    }

    async fn own_companies(&self, tenant: Option<&str>) -> Result<Vec<OwnCompany>> {
        let state = self.lock_state();
        let own = state.companies.iter().filter(|it| it.tenant.as_deref() == tenant);
        Ok(own.cloned().collect())
    }

    async fn add_spending(
        &self,
        id: IngestionId,
        claims: i64,
        spent: &ProviderSpending,
    ) -> Result<()> {
        if let Some(day) = &self.day {
            day.add_spending(id, BESIDE_ATTEMPTS, spent).await?;
        }
        let mut state = self.lock_state();
        let day = state.now.date();
        if state.rows.contains_key(&id) {
            state.spending.push((day, id, claims, spent.clone()));
        }
        Ok(())
    }

    async fn spent_today(&self, tenant: Option<&str>) -> Result<SpentToday> {
        if let Some(day) = &self.day {
            return day.spent_today(tenant).await;
        }
        let state = self.lock_state();
        let today = state.now.date();
        let is_meant = |id: &IngestionId| {
            let of_row = || state.rows.get(id).and_then(|row| row.tenant.as_deref());
            tenant.is_none_or(|tenant| of_row() == Some(tenant))
        };
        let of_today = state.spending.iter();
        let of_today = of_today.filter(|(day, id, ..)| *day == today && is_meant(id));
        let cost_nanos = of_today.filter_map(|(.., spent)| spent.cost_nanos).sum();
        let next = today.next_day().map(|day| day.midnight().assume_utc());
        let until = next.map_or(time::Duration::ZERO, |next| next - state.now);
        Ok(SpentToday { cost_nanos, until_next_day: until.unsigned_abs() })
    }

    async fn spent_on(&self, id: IngestionId) -> Result<DocumentSpending> {
        let state = self.lock_state();
        let of_it = state.spending.iter().filter(|(_, of, ..)| *of == id);
        let each = of_it.map(|(.., spent)| DocumentSpending::from(spent));
        Ok(each.fold(DocumentSpending::default(), DocumentSpending::plus))
    }

    async fn adopt_version(
        &self,
        id: IngestionId,
        token: ClaimToken,
        etag: &str,
    ) -> Result<VersionOutcome> {
        Ok(self.lock_state().adopt_version(id, token, etag))
    }

    fn takes_children(&self) -> bool {
        self.takes_children
    }

    async fn family_size(&self, id: IngestionId) -> Result<FamilySize> {
        let state = self.lock_state();
        let root = state.rows.get(&id).and_then(|row| row.root_id).unwrap_or(id);
        let members = state.rows.values();
        let members = members.filter(|row| row.root_id == Some(root) && row.parent_id != Some(id));
        let sizes = members.map(|row| {
            state.documents.get(&row.document_id).map_or(0, |document| document.size_bytes)
        });
        let mut family = FamilySize::default();
        for bytes in sizes {
            family = FamilySize { documents: family.documents + 1, bytes: family.bytes + bytes };
        }
        Ok(family)
    }

    async fn is_blocked(&self, sha256: &str) -> Result<bool> {
        Ok(self.lock_state().blocked.contains(sha256))
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn current_time(&self) -> Result<OffsetDateTime> {
        Ok(self.lock_state().now)
    }

    async fn claim_with_tokens(
        &self,
        asked: &[ClaimRequest],
        terms: &ClaimTerms,
    ) -> Result<Vec<ClaimOutcome>> {
        let begun = Instant::now();
        let mut state = self.lock_state();
        // As one statement sees them: without what it closes itself.
        let others: Vec<LoneEnds> =
            asked.iter().map(|asked| lone_ends(&state.attempts, asked.id, state.now)).collect();
        let asked = asked.iter().zip(others);
        Ok(asked
            .map(|(asked, others)| state.claim_ingestion(*asked, terms, begun, others))
            .collect())
    }

    async fn renew_leases(
        &self,
        claims: &[LeaseRenewal],
        lease: Duration,
    ) -> Result<Vec<LeaseStatus>> {
        Ok(claims
            .iter()
            .map(|claim: &LeaseRenewal| {
                let held = self.update_if_held(claim.id, claim.token, |row, now| {
                    row.renew(row::add_duration(now, lease), claim.new_stage);
                    if claim.has_progress || claim.is_over {
                        row.note_progress();
                    }
                    if claim.is_over {
                        row.alone_claim = None;
                    }
                    None
                });
                if held == WriteResult::Applied { LeaseStatus::Renewed } else { LeaseStatus::Lost }
            })
            .collect())
    }

    async fn release_claim(
        &self,
        id: IngestionId,
        token: ClaimToken,
        how: &ClaimRelease,
    ) -> Result<WriteResult> {
        Ok(self.update_if_held(id, token, |row, now| row.release_claim(how, now)))
    }

    async fn record_result(
        &self,
        id: IngestionId,
        token: ClaimToken,
        end: &IngestionResult,
    ) -> Result<WriteResult> {
        let keys = recorded_keys(end);
        let mut state = self.lock_state();
        let near = recorded_near_keys(end);
        let rule = end.duplicate_rule.as_ref().filter(|_| state.has_duplicate(id, keys));
        let near = end.near_rule.as_ref().filter(|_| state.has_near_duplicate(id, near));
        let rule = rule.or(near);
        let end = IngestionResult {
            needs_human_review: end.needs_human_review || rule.is_some(),
            review_reasons: end.review_reasons.iter().chain(rule).cloned().collect(),
            ..end.clone()
        };
        let key = keys.map(|keys| keys.current.clone());
        let written = state.update_if_held(id, token, |row, now| row.record_result(&end, key, now));
        if written == WriteResult::Applied {
            state.add_children(id, &end.children);
        }
        Ok(written)
    }

    async fn read_back(&self, id: IngestionId, token: ClaimToken) -> Result<ReadBack> {
        let state = self.lock_state();
        let by_others = [OutcomeReason::Crashed.code(), OutcomeReason::Cancelled.code()];
        if state.attempts.get(&id).is_some_and(|all| {
            all.iter().any(|a: &LedgerAttempt| a.token == token && !by_others.contains(&a.outcome))
        }) {
            return Ok(ReadBack::Recorded);
        }
        let held = state.rows.get(&id).is_some_and(|row| row.is_held_by(token));
        Ok(if held { ReadBack::StillHeld } else { ReadBack::Lost })
    }

    async fn register_object(&self, object: &ObjectRegistration) -> Result<IngestionId> {
        Ok(self.lock_state().register_object(object))
    }

    async fn find_unknown(&self, ids: &[IngestionId]) -> Result<Vec<IngestionId>> {
        let state = self.lock_state();
        Ok(ids.iter().filter(|id| !state.rows.contains_key(id)).copied().collect())
    }

    async fn quarantine_message(&self, message: &QuarantinedMessage) -> Result<()> {
        let id = message.message_id.clone();
        self.lock_state().quarantined.entry(id).or_insert_with(|| message.clone());
        Ok(())
    }

    async fn require_writer(&self) -> Result<()> {
        Ok(())
    }

    async fn active_pauses(&self) -> Result<Vec<OperatorPause>> {
        Ok(Vec::new())
    }

    async fn save_worker_status(&self, worker: &str, vitals: &WorkerStatus) -> Result<()> {
        self.lock_state().workers.insert(worker.to_owned(), vitals.clone());
        Ok(())
    }
}
