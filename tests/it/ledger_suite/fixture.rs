//! Both ledgers behind one interface, with a frozen clock and comparable rows.

use std::sync::Arc;
use std::time::Duration;

use docmill_core::fault::Fault;
use docmill_core::model::{
    ArtefactRef, AttemptOutcome, BoundingBox, ClaimToken, ClaimedIngestion, DocumentId,
    GroundedField, IngestionId, IngestionStage, IngestionStatus, InvoiceReference, ModelUsage,
    OutcomeReason, PageRegion, ReaderStatement, RuleFinding, RuleReport, RuleSeverity,
    StatedConfidence,
};
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::db::operators::{self, AuditNote};
use docmill_ledger::decide::Sequencer;
use docmill_ledger::duplicate_key::{DuplicateKeys, NearKeys};
use docmill_ledger::memory::{LedgerAttempt, LedgerRow, MemoryLedger};
use docmill_ledger::{
    ClaimOutcome, ClaimRelease, ClaimRequest, ClaimTerms, IngestionResult, LeaseRenewal, Ledger,
    ObjectRegistration, VerdictDetails,
};
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::support::postgres::TestDatabase;

/// When the clocks start.
pub(super) const START: OffsetDateTime = time::macros::datetime!(2026-11-21 12:00 UTC);

/// One of the ledgers.
pub(super) enum Fixture {
    Memory(MemoryLedger),
    Postgres {
        database: TestDatabase,
        ledger: Box<PostgresLedger>,
        now: std::sync::Mutex<OffsetDateTime>,
    },
}

impl Fixture {
    pub(super) fn memory() -> Self {
        Self::Memory(MemoryLedger::new(START))
    }

    pub(super) async fn postgres() -> Self {
        let database = TestDatabase::create().await;
        database.freeze(START).await;
        let ledger = Box::new(PostgresLedger::new(database.db()));
        Self::Postgres { database, ledger, now: std::sync::Mutex::new(START) }
    }

    pub(super) async fn both() -> [Self; 2] {
        [Self::memory(), Self::postgres().await]
    }

    /// Empty again, the clock at its start.
    pub(super) async fn emptied(self) -> Self {
        match self {
            Self::Memory(_) => Self::memory(),
            Self::Postgres { database, ledger, .. } => {
                let sql = "TRUNCATE document, doomed_document, ingestion, operator_action CASCADE";
                sqlx::query(sql).execute(database.pool()).await.unwrap();
                database.freeze(START).await;
                Self::Postgres { database, ledger, now: std::sync::Mutex::new(START) }
            }
        }
    }

    pub(super) fn ledger(&self) -> &dyn Ledger {
        match self {
            Self::Memory(ledger) => ledger,
            Self::Postgres { ledger, .. } => ledger.as_ref(),
        }
    }

    pub(super) async fn advance(&self, by: Duration) {
        match self {
            Self::Memory(ledger) => ledger.advance(by),
            Self::Postgres { database, now, .. } => {
                let then = *now.lock().unwrap() + by;
                *now.lock().unwrap() = then;
                database.freeze(then).await;
            }
        }
    }

    /// Inserts as a producer of the earlier system does.
    pub(super) async fn insert(&self, id: IngestionId, document: DocumentId) {
        match self {
            Self::Memory(ledger) => ledger.insert_ingestion(id, document, "documents/x.pdf"),
            Self::Postgres { database, .. } => {
                sqlx::query(
                    "INSERT INTO document (id, file_path) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                )
                .bind(document.0)
                .bind("documents/x.pdf")
                .execute(database.pool())
                .await
                .unwrap();
                sqlx::query("INSERT INTO ingestion (id, document_id) VALUES ($1, $2) ON CONFLICT DO NOTHING")
                    .bind(id.0)
                    .bind(document.0)
                    .execute(database.pool())
                    .await
                    .unwrap();
            }
        }
    }

    pub(super) async fn cancel(&self, id: IngestionId) -> bool {
        match self {
            Self::Memory(ledger) => ledger.cancel(id),
            Self::Postgres { database, .. } => {
                let done =
                    operators::cancel_ingestions(&database.db(), &[id], &by()).await.unwrap();
                !done.is_empty()
            }
        }
    }

    pub(super) async fn reopen(&self, id: IngestionId) -> bool {
        match self {
            Self::Memory(ledger) => ledger.reopen(id),
            Self::Postgres { database, .. } => {
                let done =
                    operators::reopen_ingestions(&database.db(), &[id], &by()).await.unwrap();
                !done.is_empty()
            }
        }
    }

    pub(super) async fn row(&self, id: IngestionId) -> Option<LedgerRow> {
        match self {
            Self::Memory(ledger) => ledger.row(id),
            Self::Postgres { database, .. } => sqlx::query("SELECT * FROM ingestion WHERE id = $1")
                .bind(id.0)
                .fetch_optional(database.pool())
                .await
                .unwrap()
                .map(|row| row_of(&row)),
        }
    }

    pub(super) async fn attempts(&self, id: IngestionId) -> Vec<LedgerAttempt> {
        match self {
            Self::Memory(ledger) => ledger.attempts(id),
            Self::Postgres { database, .. } => {
                sqlx::query("SELECT * FROM attempt WHERE ingestion_id = $1 ORDER BY claims")
                    .bind(id.0)
                    .fetch_all(database.pool())
                    .await
                    .unwrap()
                    .iter()
                    .map(attempt_of)
                    .collect()
            }
        }
    }

    /// Every row and its attempts.
    pub(super) async fn everything(
        &self,
        ids: &[IngestionId],
    ) -> Vec<(LedgerRow, Vec<LedgerAttempt>)> {
        let Self::Postgres { database, .. } = self else {
            let Self::Memory(ledger) = self else { unreachable!("there are two") };
            return ids.iter().map(|id| (ledger.row(*id).unwrap(), ledger.attempts(*id))).collect();
        };
        let raw: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let rows = sqlx::query("SELECT * FROM ingestion WHERE id = ANY ($1)")
            .bind(&raw)
            .fetch_all(database.pool())
            .await
            .unwrap();
        let attempts = sqlx::query("SELECT * FROM attempt ORDER BY ingestion_id, claims")
            .fetch_all(database.pool())
            .await
            .unwrap();
        let of = |id: &IngestionId| {
            let row = rows.iter().find(|row| row.get::<Uuid, _>("id") == id.0).unwrap();
            let own = attempts.iter().filter(|row| row.get::<Uuid, _>("ingestion_id") == id.0);
            (row_of(row), own.map(attempt_of).collect())
        };
        ids.iter().map(of).collect()
    }

    /// Claims one ingestion that must be there to be had.
    pub(super) async fn take(&self, id: IngestionId) -> ClaimedIngestion {
        match self.claim(id).await {
            ClaimOutcome::Claimed(claimed) => *claimed,
            other => panic!("not claimed: {other:?}"),
        }
    }

    /// Asks for one ingestion as a worker does that has others in hand.
    pub(super) async fn claim_beside(&self, id: IngestionId) -> ClaimOutcome {
        let asked = [ClaimRequest::with_fresh_token(id)];
        self.ledger().claim_with_tokens(&asked, &terms()).await.unwrap().remove(0)
    }

    /// As a worker does that has nothing else in hand.
    pub(super) async fn claim(&self, id: IngestionId) -> ClaimOutcome {
        self.ledger().claim(&[id], &terms()).await.unwrap().remove(0)
    }
}

fn by() -> AuditNote {
    AuditNote { operator: "test".to_owned(), why: "because".to_owned() }
}

#[expect(clippy::too_many_lines, reason = "one line for each column")]
fn row_of(row: &PgRow) -> LedgerRow {
    let artefact = |path: &str, identity: &str| {
        Some(ArtefactRef { path: row.get::<Option<_>, _>(path)?, identity: row.get(identity) })
    };
    let count = |name: &str| u32::try_from(row.get::<i32, _>(name)).unwrap();
    LedgerRow {
        document_id: DocumentId(row.get("document_id")),
        status: IngestionStatus::from_code(row.get("status")).unwrap(),
        reason: row
            .get::<Option<&str>, _>("reason")
            .map(|code| OutcomeReason::from_code(code).unwrap()),
        detail: row.get("detail"),
        created_at: row.get("created_at"),
        started_at: row.get("started_at"),
        completed_at: row.get("completed_at"),
        claim_token: row.get::<Option<Uuid>, _>("claim_token").map(ClaimToken),
        lease_expires_at: row.get("lease_expires_at"),
        next_attempt_at: row.get("next_attempt_at"),
        deferred_since: row.get("deferred_since"),
        denials: count("denials"),
        worker: row.get("worker"),
        stage: stage_of(row),
        claims: row.get("claims"),
        attempt_count: count("attempt_count"),
        attempt_limit: count("attempt_limit"),
        crashes: count("crashes"),
        accused_at: row.get("accused_at"),
        alone_claim: row.get("alone_claim"),
        kind: row.get("kind"),
        tenant: row.get("tenant"),
        object_etag: row.get("object_etag"),
        object_sequencer: row.get::<Option<_>, _>("object_sequencer").map(Sequencer),
        superseded_by: row.get::<Option<Uuid>, _>("superseded_by").map(IngestionId),
        transcription: artefact("transcription_file_path", "transcription_identity"),
        #[expect(clippy::cast_possible_truncation, reason = "it was widened from an f32")]
        quality: row.get::<Option<f64>, _>("transcription_quality_score").map(|q| q as f32),
        pages: row.get::<Option<i32>, _>("pages").map(|pages| pages.try_into().unwrap()),
        preprocessed: row.get::<Option<String>, _>("preprocessed_file_path").map(|path| {
            docmill_core::model::FileRef { path, sha256: row.get("preprocessed_sha256") }
        }),
        extraction: artefact("extraction_output_file_path", "extraction_identity"),
        structured_data: row
            .get::<Option<serde_json::Value>, _>("structured_data")
            .map(|data| data.as_object().unwrap().clone()),
        valid_structured_data: row.get("valid_structured_data"),
        needs_human_review: row.get("needs_human_review"),
        review_reasons: row.get("review_reasons"),
        reader: row.get("reader"),
        model: row.get("extraction_model"),
        usage: usage_of(row),
        sha256: row.get("sha256"),
        duplicate_key: row.get("duplicate_key"),
        near_keys: near_keys_of(row),
        gate_score: row.get("gate_score"),
        grounded: row
            .get::<Option<serde_json::Value>, _>("grounded")
            .map(|found| serde_json::from_value(found).unwrap()),
        stated: statement_of(row),
        parent_id: row.get::<Option<Uuid>, _>("parent_id").map(IngestionId),
        root_id: row.get::<Option<Uuid>, _>("root_id").map(IngestionId),
        position: row.get::<Option<i32>, _>("position").map(|place| place.try_into().unwrap()),
        children: row.get::<Option<i32>, _>("children").map(|count| count.try_into().unwrap()),
        einvoice_rules: row
            .get::<Option<serde_json::Value>, _>("einvoice_rules")
            .map(|found| serde_json::from_value(found).unwrap()),
        einvoice_reference: row
            .get::<Option<serde_json::Value>, _>("einvoice_reference")
            .map(|found| serde_json::from_value(found).unwrap()),
        hooks: row
            .get::<Option<serde_json::Value>, _>("hooks")
            .map(|fields| fields.as_object().unwrap().clone()),
    }
}

fn usage_of(row: &PgRow) -> Option<ModelUsage> {
    row.get::<Option<i64>, _>("extraction_input_tokens").map(|input| ModelUsage {
        input: input.try_into().unwrap(),
        output: row.get::<i64, _>("extraction_output_tokens").try_into().unwrap(),
        ..ModelUsage::default()
    })
}

/// The keys of near duplicates in a row.
fn near_keys_of(row: &PgRow) -> Option<NearKeys> {
    let keys = NearKeys { amount: row.get("near_amount"), number: row.get("near_number") };
    (keys != NearKeys::default()).then_some(keys)
}

fn statement_of(row: &PgRow) -> Option<ReaderStatement> {
    let confidence = row.get::<Option<String>, _>("extraction_confidence");
    row.get::<Option<bool>, _>("extraction_successful").map(|successful| ReaderStatement {
        successful,
        confidence: serde_json::from_value(confidence.into()).unwrap(),
        missing_fields: row.get("missing_fields"),
    })
}

fn attempt_of(row: &PgRow) -> LedgerAttempt {
    LedgerAttempt {
        claims: row.get("claims"),
        token: ClaimToken(row.get("token")),
        worker: row.get("worker"),
        started_at: row.get("started_at"),
        ended_at: row.get("ended_at"),
        stage: stage_of(row),
        outcome: outcome_of(row.get("outcome")),
        is_final: row.get("final"),
        counted: row.get("counted"),
        alone: row.get("alone"),
        next_attempt_at: row.get("next_attempt_at"),
        detail: row.get("detail"),
    }
}

fn stage_of(row: &PgRow) -> Option<IngestionStage> {
    let code = row.get::<Option<&str>, _>("stage")?;
    Some(IngestionStage::ALL.into_iter().find(|stage| stage.code() == code).unwrap())
}

fn outcome_of(code: &str) -> &'static str {
    let faults = [
        Fault::Transient,
        Fault::Throttled(None),
        Fault::Unavailable,
        Fault::Denied,
        Fault::Misconfigured,
        Fault::Paused,
        Fault::OverBudget(Duration::ZERO),
        Fault::Batched(Duration::ZERO),
        Fault::Missing,
        Fault::Rejected,
        Fault::Interrupted,
        Fault::Internal,
    ];
    let reasons = OutcomeReason::ALL.map(|reason| AttemptOutcome::Ended(reason).code());
    let faults = faults.map(|fault| AttemptOutcome::Fault(fault).code());
    let every = reasons.into_iter().chain(faults).chain([AttemptOutcome::Completed.code()]);
    every.into_iter().find(|known| *known == code).unwrap()
}

/// Three silent deaths are too many; a lease of five minutes.
pub(super) fn terms() -> ClaimTerms {
    ClaimTerms { worker: "w1".to_owned(), lease: Duration::from_secs(300), crash_limit: 3 }
}

/// A renewal without news.
pub(super) fn renewal(id: IngestionId, token: ClaimToken) -> LeaseRenewal {
    LeaseRenewal { id, token, new_stage: None, has_progress: false, is_over: false }
}

/// A version of an object that an event named.
pub(super) fn object(key: &str, etag: Option<&str>, sequencer: Option<&str>) -> ObjectRegistration {
    ObjectRegistration {
        document: DocumentId::from_object("b", key),
        ingestion: IngestionId::from_object_version(
            "b",
            key,
            etag.unwrap_or_default(),
            sequencer.unwrap_or_default(),
        ),
        file_path: format!("s3://b/{key}"),
        original_name: key.to_owned(),
        etag: etag.map(str::to_owned),
        size: Some(3),
        sequencer: sequencer.map(str::to_owned),
        tenant: None,
    }
}

/// A completed invoice, or a failure.
pub(super) fn record(reason: Option<OutcomeReason>) -> IngestionResult {
    IngestionResult {
        reason,
        stage: IngestionStage::Record,
        structured_data: serde_json::json!({"supplier_name": "Müller", "invoice_number": "R 1"})
            .as_object()
            .cloned(),
        needs_human_review: reason.is_some(),
        review_reasons: reason.map(|reason| reason.code().to_owned()).into_iter().collect(),
        reader: Some("rules".to_owned()),
        kind: Some("invoice".to_owned()),
        model: None,
        usage: ModelUsage { input: 7, cache_read: 2, cache_write: 1, output: 2 },
        judged: Some(VerdictDetails {
            score: 0.75,
            certainty: None,
            grounded: vec![GroundedField {
                field: "invoice_number".to_owned(),
                place: PageRegion {
                    page: 2,
                    bounding_box: BoundingBox { x: 1.5, y: 20.25, w: 30.0, h: 9.0 },
                    confidence: 0.5,
                    unwitnessed: false,
                },
            }],
        }),
        stated: Some(ReaderStatement {
            successful: reason.is_none(),
            confidence: StatedConfidence::Medium,
            missing_fields: vec!["due_date".to_owned()],
        }),
        sha256: Some("0".repeat(64)),
        duplicate_rule: None,
        near_rule: None,
        near_keys: None,
        master_match: None,
        duplicate_keys: DuplicateKeys::new("Müller", "R 1"),
        lesson: None,
        einvoice_rules: Some(Arc::new(RuleReport {
            sets: vec!["EN 16931 UBL 1".to_owned()],
            findings: vec![RuleFinding {
                rule: "BR-01".to_owned(),
                severity: RuleSeverity::Fatal,
                text: "“Specification” is absent".to_owned(),
                location: "/Invoice".to_owned(),
                error: None,
            }],
            more_findings: 2,
            is_cut: true,
        })),
        einvoice_reference: Some(Box::new(InvoiceReference {
            number: "R 1".to_owned(),
            issued: "2026-11-21".to_owned(),
            type_code: "380".to_owned(),
            ..InvoiceReference::default()
        })),
        hooks: serde_json::json!({"spam": {"score": 0.25}}).as_object().cloned(),
        detail: "all is well".to_owned(),
        children: Vec::new(),
    }
}

/// The attempt failed, another follows.
pub(super) fn failed(fault: Fault, counted: bool, seconds: u64) -> ClaimRelease {
    ClaimRelease {
        fault,
        counted,
        is_shared: false,
        after: Duration::from_secs(seconds),
        stage: IngestionStage::Fetch,
        detail: "the store did not answer".to_owned(),
    }
}
