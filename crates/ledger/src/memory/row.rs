//! One ingestion and its attempts in memory, and the changes a ledger makes to them. Every change
//! mirrors one UPDATE of `db::claims`.

use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::decide::{
    ClaimRowState, DeferralStreak, EarlierClaim, FRESH_ATTEMPTS, Sequencer, accused_since,
    deferral_streak, is_denial, recorded_near_keys, stretch_delay,
};
use crate::duplicate_key::NearKeys;
use crate::{ClaimCompany, ClaimRelease, ClaimRequest, IngestionResult, StoredTranscript, stored};
use docmill_core::model::{
    ArtefactRef, AttemptOutcome, ClaimToken, DocumentId, FileRef, GroundedField, IngestionId,
    IngestionStage, IngestionStatus, InvoiceReference, ModelUsage, OutcomeReason, ReaderStatement,
    RuleReport,
};

/// The row of an ingestion; the fields are the columns of the same name.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is the column of `ingestion` of that name")]
pub struct LedgerRow {
    pub document_id: DocumentId,
    pub status: IngestionStatus,
    pub reason: Option<OutcomeReason>,
    pub detail: Option<String>,
    pub created_at: OffsetDateTime,
    pub started_at: Option<OffsetDateTime>,
    pub completed_at: Option<OffsetDateTime>,
    pub claim_token: Option<ClaimToken>,
    pub lease_expires_at: Option<OffsetDateTime>,
    pub next_attempt_at: Option<OffsetDateTime>,
    pub deferred_since: Option<OffsetDateTime>,
    pub denials: u32,
    pub worker: Option<String>,
    pub stage: Option<IngestionStage>,
    pub claims: i64,
    pub attempt_count: u32,
    pub attempt_limit: u32,
    pub crashes: u32,
    pub accused_at: Option<OffsetDateTime>,
    pub alone_claim: Option<i64>,
    pub kind: Option<String>,
    pub tenant: Option<String>,
    pub object_etag: Option<String>,
    pub object_sequencer: Option<Sequencer>,
    pub superseded_by: Option<IngestionId>,
    pub transcription: Option<ArtefactRef>,
    pub quality: Option<f32>,
    pub pages: Option<u32>,
    pub preprocessed: Option<FileRef>,
    pub extraction: Option<ArtefactRef>,
    pub structured_data: Option<Map<String, Value>>,
    pub valid_structured_data: Option<bool>,
    pub needs_human_review: bool,
    pub review_reasons: Vec<String>,
    pub reader: Option<String>,
    pub model: Option<String>,
    pub usage: Option<ModelUsage>,
    pub sha256: Option<String>,
    pub duplicate_key: Option<String>,
    /// The keys that a near duplicate shares.
    pub near_keys: Option<NearKeys>,
    pub gate_score: Option<f32>,
    pub grounded: Option<Vec<GroundedField>>,
    pub stated: Option<ReaderStatement>,
    pub parent_id: Option<IngestionId>,
    pub root_id: Option<IngestionId>,
    pub position: Option<u32>,
    pub children: Option<u32>,
    pub einvoice_rules: Option<RuleReport>,
    pub einvoice_reference: Option<Box<InvoiceReference>>,
    pub hooks: Option<Map<String, Value>>,
}

/// One claim and how it ended; the fields are the columns of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the column of `attempt` of that name")]
pub struct LedgerAttempt {
    pub claims: i64,
    pub token: ClaimToken,
    pub worker: Option<String>,
    pub started_at: Option<OffsetDateTime>,
    pub ended_at: OffsetDateTime,
    pub stage: Option<IngestionStage>,
    pub outcome: &'static str,
    pub is_final: bool,
    pub counted: bool,
    pub alone: bool,
    pub next_attempt_at: Option<OffsetDateTime>,
    pub detail: String,
}

/// A time that is so much later.
pub(super) fn add_duration(now: OffsetDateTime, by: std::time::Duration) -> OffsetDateTime {
    now.saturating_add(by.try_into().unwrap_or(time::Duration::MAX))
}

impl LedgerRow {
    /// A fresh row, as a producer inserts it.
    pub fn new_queued(document_id: DocumentId, now: OffsetDateTime) -> Self {
        Self {
            document_id,
            status: IngestionStatus::InProgress,
            reason: None,
            detail: None,
            created_at: now,
            started_at: None,
            completed_at: None,
            claim_token: None,
            lease_expires_at: None,
            next_attempt_at: None,
            deferred_since: None,
            denials: 0,
            worker: None,
            stage: None,
            claims: 0,
            attempt_count: 0,
            attempt_limit: FRESH_ATTEMPTS,
            crashes: 0,
            accused_at: None,
            alone_claim: None,
            kind: None,
            tenant: None,
            object_etag: None,
            object_sequencer: None,
            superseded_by: None,
            transcription: None,
            quality: None,
            pages: None,
            preprocessed: None,
            extraction: None,
            structured_data: None,
            valid_structured_data: None,
            needs_human_review: false,
            review_reasons: Vec::new(),
            reader: None,
            model: None,
            usage: None,
            sha256: None,
            duplicate_key: None,
            near_keys: None,
            gate_score: None,
            grounded: None,
            stated: None,
            parent_id: None,
            root_id: None,
            position: None,
            children: None,
            einvoice_rules: None,
            einvoice_reference: None,
            hooks: None,
        }
    }

    /// The part of the row that decides a claim.
    pub(super) fn claim_state(&self) -> ClaimRowState {
        ClaimRowState {
            status: self.status,
            lease_expires_at: self.lease_expires_at,
            next_attempt_at: self.next_attempt_at,
            crashes: self.crashes,
            accused_at: self.accused_at,
            is_alone: self.is_alone(),
        }
    }

    /// Whether the newest claim was made by a worker that had nothing else in hand.
    pub(super) fn is_alone(&self) -> bool {
        self.alone_claim == Some(self.claims)
    }

    /// Whether this token holds the claim.
    pub(super) fn is_held_by(&self, token: ClaimToken) -> bool {
        self.status == IngestionStatus::InProgress && self.claim_token == Some(token)
    }

    /// Whether no live lease is on it.
    pub(super) fn is_unclaimed(&self, now: OffsetDateTime) -> bool {
        self.lease_expires_at.is_none_or(|end| end <= now)
    }

    /// The attempt of the current claim, ended now.
    pub(super) fn ended_attempt(
        &self,
        now: OffsetDateTime,
        outcome: AttemptOutcome,
        detail: &str,
    ) -> Option<LedgerAttempt> {
        Some(LedgerAttempt {
            claims: self.claims,
            token: self.claim_token?,
            worker: self.worker.clone(),
            started_at: self.started_at,
            ended_at: now,
            stage: self.stage,
            outcome: outcome.code(),
            is_final: false,
            counted: true,
            alone: false,
            next_attempt_at: None,
            detail: stored::strip_nul(detail).into_owned(),
        })
    }

    /// Accuses it of what happened to the claim before this one.
    pub(super) fn accuse(&mut self, earlier: EarlierClaim) {
        self.crashes += earlier.crashes();
        if earlier != EarlierClaim::Ended {
            self.accused_at = accused_since(&self.claim_state());
        }
        if earlier == EarlierClaim::Accused {
            self.attempt_count = self.attempt_count.saturating_sub(1);
        }
    }

    /// Clears it: an attempt has kept something that another need not do again.
    pub(super) fn note_progress(&mut self) {
        self.accused_at = None;
        self.crashes = 0;
    }

    /// Starts a new claim of this row for `worker`.
    pub(super) fn start_claim(&mut self, asked: ClaimRequest, worker: &str, now: OffsetDateTime) {
        self.claim_token = Some(asked.token);
        self.alone_claim = (asked.company == ClaimCompany::Nobody).then_some(self.claims + 1);
        self.worker = Some(worker.to_owned());
        self.stage = Some(IngestionStage::Claimed);
        self.started_at = Some(now);
        self.claims += 1;
        self.attempt_count += 1;
        let in_line_since = self.next_attempt_at.or(self.lease_expires_at).unwrap_or(now);
        let in_line = (now - in_line_since).max(time::Duration::ZERO);
        self.deferred_since = self.deferred_since.map(|since| since + in_line);
        self.next_attempt_at = None;
    }

    /// The lease lasts until then; the stage is written if it is news.
    pub(super) fn renew(&mut self, until: OffsetDateTime, new_stage: Option<IngestionStage>) {
        self.lease_expires_at = Some(until);
        self.stage = new_stage.or(self.stage);
    }

    /// The claim ends, the ingestion does not.
    pub(super) fn release_claim(
        &mut self,
        how: &ClaimRelease,
        now: OffsetDateTime,
    ) -> Option<LedgerAttempt> {
        self.stage = Some(how.stage);
        let mut attempt = self.ended_attempt(now, AttemptOutcome::Fault(how.fault), &how.detail)?;
        let streak = deferral_streak(how);
        let after = match is_denial(how) {
            true => stretch_delay(how.after, self.denials),
            false => how.after,
        };
        // A row whose streak goes on is queued from now on, and queueing is no part of the streak.
        let is_due_known = !after.is_zero() || streak == DeferralStreak::Stays;
        let due = is_due_known.then(|| add_duration(now, after));
        attempt.counted = how.counted;
        attempt.alone = self.is_alone();
        attempt.next_attempt_at = due;
        self.clear_claim();
        self.next_attempt_at = due;
        self.detail = Some(attempt.detail.clone());
        if !how.counted {
            self.attempt_count = self.attempt_count.saturating_sub(1);
        }
        self.denials = match streak {
            _ if is_denial(how) => self.denials + 1,
            DeferralStreak::Stays => self.denials,
            _ => 0,
        };
        self.deferred_since = match streak {
            DeferralStreak::Ends => None,
            DeferralStreak::Stays => self.deferred_since,
            DeferralStreak::Grows => self.deferred_since.or(Some(now)),
        };
        Some(attempt)
    }

    /// The ingestion ends with what its worker found.
    pub(super) fn record_result(
        &mut self,
        end: &IngestionResult,
        key: Option<String>,
        now: OffsetDateTime,
    ) -> Option<LedgerAttempt> {
        self.stage = Some(end.stage);
        let outcome = end.reason.map_or(AttemptOutcome::Completed, AttemptOutcome::Ended);
        let mut attempt = self.ended_attempt(now, outcome, &end.detail)?;
        attempt.is_final = true;
        attempt.alone = self.is_alone();
        let review: Vec<String> = end
            .review_reasons
            .iter()
            .map(|reason| stored::strip_nul(reason).into_owned())
            .collect();
        self.finish(end.reason, &end.detail, now);
        self.structured_data = end.structured_data.as_ref().map(stored::strip_nul_object);
        self.needs_human_review = end.needs_human_review || self.status == IngestionStatus::Failed;
        self.review_reasons = review;
        self.reader = stored::strip_nul_optional(end.reader.as_deref());
        self.kind = stored::strip_nul_optional(end.kind.as_deref()).or(self.kind.take());
        self.model = stored::strip_nul_optional(end.model.as_deref());
        // As the columns of the row have it: all prompt tokens together.
        let (input, output) = (end.usage.prompt_tokens(), end.usage.output);
        self.usage = Some(ModelUsage { input, output, ..ModelUsage::default() });
        self.sha256 = end.sha256.clone().or(self.sha256.take());
        self.duplicate_key = key;
        self.near_keys = recorded_near_keys(end);
        self.gate_score = end.judged.as_ref().map(|judged| judged.score);
        self.grounded = end.judged.as_ref().map(|judged| judged.grounded.clone());
        self.stated.clone_from(&end.stated);
        self.einvoice_rules = end.einvoice_rules.as_deref().cloned();
        self.einvoice_reference.clone_from(&end.einvoice_reference);
        self.hooks = end.hooks.as_ref().map(stored::strip_nul_object);
        Some(attempt)
    }

    /// The row becomes terminal: completed without a reason.
    pub(super) fn finish(
        &mut self,
        reason: Option<OutcomeReason>,
        detail: &str,
        now: OffsetDateTime,
    ) {
        self.clear_claim();
        self.status = reason.map_or(IngestionStatus::Completed, OutcomeReason::status);
        self.reason = reason;
        self.detail = Some(stored::strip_nul(detail).into_owned());
        self.completed_at = Some(now);
        self.next_attempt_at = None;
        self.deferred_since = None;
        self.valid_structured_data = match self.status {
            IngestionStatus::Completed => Some(true),
            IngestionStatus::Failed => Some(false),
            IngestionStatus::Cancelled | IngestionStatus::InProgress => self.valid_structured_data,
        };
    }

    /// Opened again by an operator.
    pub(super) fn reopen(&mut self) {
        self.status = IngestionStatus::InProgress;
        self.reason = None;
        self.detail = None;
        self.completed_at = None;
        self.stage = None;
        self.attempt_limit = self.attempt_count + FRESH_ATTEMPTS;
        self.hooks = None;
        self.note_progress();
        self.next_attempt_at = None;
        self.deferred_since = None;
        self.denials = 0;
        self.valid_structured_data = None;
        self.needs_human_review = false;
        self.review_reasons.clear();
        self.duplicate_key = None;
        self.near_keys = None;
        self.extraction = None;
    }

    pub(super) fn save_extraction(&mut self, artefact: &ArtefactRef) {
        self.note_progress();
        self.extraction = Some(artefact.clone());
    }

    pub(super) fn save_transcription(&mut self, saved: &StoredTranscript) {
        let known = self.transcription.as_ref().map(|known| &known.identity);
        if known != Some(&saved.artefact.identity) {
            self.note_progress();
        }
        self.transcription = Some(saved.artefact.clone());
        self.quality = Some(saved.quality);
        self.sha256 = Some(saved.sha256.clone());
        self.pages = Some(saved.pages);
        self.preprocessed.clone_from(&saved.preprocessed);
    }

    fn clear_claim(&mut self) {
        self.claim_token = None;
        self.lease_expires_at = None;
    }
}
