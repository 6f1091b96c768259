//! The effect of an ingestion's end on its document: one test per row of the design's record table,
//! and ends that come late, fail, or conflict with a person's correction.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::atomic::{AtomicU32, Ordering};

use docmill_core::fault::Fault;
use docmill_core::model::{DocumentId, IngestionId, IngestionStage, ModelUsage, OutcomeReason};
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::{ClaimOutcome, ClaimTerms, IngestionResult, Ledger, WriteResult};
use serde_json::{Value, json};

use crate::support::postgres::TestDatabase;

/// A document with some ingestions, each older than the next, all claimed.
struct Stage1 {
    database: TestDatabase,
    ledger: PostgresLedger,
    document: DocumentId,
    claims: Vec<(IngestionId, docmill_core::model::ClaimToken)>,
    /// How often an end found its document's row locked.
    refused: AtomicU32,
}

/// The document's data.
type Document = (Option<Value>, bool, Vec<String>);

impl Stage1 {
    async fn with(ingestions: i32) -> Self {
        let database = TestDatabase::create().await;
        let document = DocumentId::random();
        sqlx::query("INSERT INTO document (id, file_path) VALUES ($1, 'documents/x.pdf')")
            .bind(document.0)
            .execute(database.pool())
            .await
            .unwrap();
        let ids: Vec<uuid::Uuid> = sqlx::query_scalar(
            "INSERT INTO ingestion (document_id, created_at)
             SELECT $1, docmill_now() - interval '1 hour' + make_interval(mins => n)
             FROM generate_series(1, $2) n ORDER BY n RETURNING id",
        )
        .bind(document.0)
        .bind(ingestions)
        .fetch_all(database.pool())
        .await
        .unwrap();
        let ids: Vec<IngestionId> = ids.into_iter().map(IngestionId).collect();
        let ledger = PostgresLedger::new(database.db());
        let terms = ClaimTerms {
            worker: "w".to_owned(),
            lease: std::time::Duration::from_secs(60),
            crash_limit: 3,
        };
        let claims = ledger.claim(&ids, &terms).await.unwrap();
        let claims = claims
            .into_iter()
            .map(|claim| match claim {
                ClaimOutcome::Claimed(claimed) => (claimed.id, claimed.token),
                other => panic!("{other:?}"),
            })
            .collect();
        Self { database, ledger, document, claims, refused: AtomicU32::new(0) }
    }

    /// Ends the ingestion of this place (0 is the oldest).
    async fn end(
        &self,
        place: usize,
        reason: Option<OutcomeReason>,
        data: Option<Value>,
        why: &[&str],
    ) {
        let end = IngestionResult {
            reason,
            stage: IngestionStage::Record,
            structured_data: data.and_then(|data| data.as_object().cloned()),
            needs_human_review: !why.is_empty(),
            review_reasons: why.iter().map(|&why| why.to_owned()).collect(),
            reader: None,
            kind: None,
            model: None,
            usage: ModelUsage::default(),
            judged: None,
            stated: None,
            sha256: None,
            duplicate_rule: None,
            near_rule: None,
            near_keys: None,
            master_match: None,
            duplicate_keys: None,
            lesson: None,
            einvoice_rules: None,
            einvoice_reference: None,
            hooks: None,
            detail: String::new(),
            children: Vec::new(),
        };
        let (id, token) = self.claims[place];
        loop {
            // Another end of the document is being committed: a worker tries again as well.
            match self.ledger.record_result(id, token, &end).await {
                Err(error) if error.fault == Fault::Transient => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                }
                written => return assert_eq!(written.unwrap(), WriteResult::Applied),
            }
        }
    }

    async fn completes(&self, place: usize, number: u32) {
        self.end(place, None, Some(json!({"n": number})), &[]).await;
    }

    async fn fails(&self, place: usize) {
        self.end(place, Some(OutcomeReason::Corrupt), None, &[]).await;
    }

    async fn document(&self) -> Document {
        sqlx::query_as(
            "SELECT structured_data, needs_human_review, review_reasons FROM document WHERE id = $1",
        )
        .bind(self.document.0)
        .fetch_one(self.database.pool())
        .await
        .unwrap()
    }

    /// Data, validity and review of the ingestion of this place.
    async fn ingestion(&self, place: usize) -> (String, Option<bool>, Option<Value>, bool) {
        sqlx::query_as(
            "SELECT status, valid_structured_data, structured_data, needs_human_review
             FROM ingestion WHERE id = $1",
        )
        .bind(self.claims[place].0.0)
        .fetch_one(self.database.pool())
        .await
        .unwrap()
    }

    /// A person corrects the document.
    async fn correct(&self, data: Value) {
        sqlx::query(
            "UPDATE document SET structured_data = $2, needs_human_review = false,
                 review_reasons = '{}', corrected_at = docmill_now(), corrected_by = 'ann'
             WHERE id = $1",
        )
        .bind(self.document.0)
        .bind(data)
        .execute(self.database.pool())
        .await
        .unwrap();
    }
}

fn reasons(why: &[&str]) -> Vec<String> {
    why.iter().map(|&why| why.to_owned()).collect()
}

#[tokio::test]
async fn a_passed_ingestion_puts_its_data_into_the_document() {
    let at = Stage1::with(1).await;
    at.completes(0, 1).await;
    assert_eq!(at.document().await, (Some(json!({"n": 1})), false, vec![]));
    let expected = ("completed".to_owned(), Some(true), Some(json!({"n": 1})), false);
    assert_eq!(at.ingestion(0).await, expected);
}

#[tokio::test]
async fn a_flagged_one_puts_its_data_there_and_asks_for_a_person() {
    let at = Stage1::with(1).await;
    at.end(0, None, Some(json!({"n": 1})), &["totals_differ"]).await;
    assert_eq!(at.document().await, (Some(json!({"n": 1})), true, reasons(&["totals_differ"])));
    let expected = ("completed".to_owned(), Some(true), Some(json!({"n": 1})), true);
    assert_eq!(at.ingestion(0).await, expected);
}

#[tokio::test]
async fn a_refused_one_keeps_its_partial_data_to_itself() {
    let at = Stage1::with(1).await;
    at.end(0, Some(OutcomeReason::GateRefused), Some(json!({"n": null})), &["required"]).await;
    assert_eq!(at.document().await, (None, true, reasons(&["required"])));
    let expected = ("failed".to_owned(), Some(false), Some(json!({"n": null})), true);
    assert_eq!(at.ingestion(0).await, expected);
}

#[tokio::test]
async fn a_failure_before_extraction_needs_review_with_its_reason() {
    let at = Stage1::with(1).await;
    at.fails(0).await;
    assert_eq!(at.document().await, (None, true, reasons(&["corrupt"])));
    assert_eq!(at.ingestion(0).await, ("failed".to_owned(), Some(false), None, true));
}

#[tokio::test]
async fn an_older_one_that_completes_late_changes_nothing() {
    let at = Stage1::with(2).await;
    at.completes(1, 2).await;
    let before = at.document().await;
    at.end(0, None, Some(json!({"n": 1})), &["doubt"]).await;
    assert_eq!(at.document().await, before);
    assert_eq!(before, (Some(json!({"n": 2})), false, vec![]));
}

#[tokio::test]
async fn a_newer_one_replaces_the_data_and_ends_the_review() {
    let at = Stage1::with(2).await;
    at.end(0, None, Some(json!({"n": 1})), &["doubt"]).await;
    at.completes(1, 2).await;
    assert_eq!(at.document().await, (Some(json!({"n": 2})), false, vec![]));
}

#[tokio::test]
async fn a_newer_one_that_fails_leaves_the_data_and_asks_for_a_person() {
    let at = Stage1::with(2).await;
    at.completes(0, 1).await;
    at.fails(1).await;
    assert_eq!(at.document().await, (Some(json!({"n": 1})), true, reasons(&["corrupt"])));
}

#[tokio::test]
async fn an_older_one_that_fails_late_changes_nothing() {
    let at = Stage1::with(3).await;
    at.fails(0).await;
    assert_eq!(at.document().await, (None, false, vec![]), "two newer ones are under way");
    at.completes(2, 3).await;
    at.fails(1).await;
    assert_eq!(at.document().await, (Some(json!({"n": 3})), false, vec![]));
}

#[tokio::test]
async fn an_older_one_that_completes_after_a_newer_failure_does_not_hide_the_failure() {
    let at = Stage1::with(2).await;
    at.fails(1).await;
    at.completes(0, 1).await;
    assert_eq!(at.document().await, (Some(json!({"n": 1})), true, reasons(&["corrupt"])));
}

#[tokio::test]
async fn a_correction_is_never_overwritten_only_flagged_when_new_data_differ() {
    let at = Stage1::with(3).await;
    at.completes(0, 1).await;
    at.correct(json!({"n": 7})).await;
    at.completes(1, 7).await;
    assert_eq!(at.document().await, (Some(json!({"n": 7})), false, vec![]), "it agrees");
    at.completes(2, 8).await;
    let expected = (Some(json!({"n": 7})), true, reasons(&["differs_from_correction"]));
    assert_eq!(at.document().await, expected);
}

#[tokio::test]
async fn a_cancelled_one_changes_nothing_and_hides_no_older_failure() {
    let at = Stage1::with(2).await;
    at.end(1, Some(OutcomeReason::Cancelled), None, &[]).await;
    assert_eq!(at.document().await, (None, false, vec![]));
    at.fails(0).await;
    assert_eq!(at.document().await, (None, true, reasons(&["corrupt"])));
}

#[tokio::test]
async fn two_that_complete_at_the_same_moment_leave_the_newer_data() {
    let at = Stage1::with(2).await;
    // The newer one's end is uncommitted, so that the older one's is refused until the document's
    // row is free, and then compares with its new state.
    let mut newer = at.database.pool().begin().await.unwrap();
    sqlx::query(
        "UPDATE ingestion SET status = 'completed', completed_at = docmill_now(),
             claim_token = NULL, lease_expires_at = NULL, valid_structured_data = true,
             structured_data = '{\"n\": 2}' WHERE id = $1",
    )
    .bind(at.claims[1].0.0)
    .execute(&mut *newer)
    .await
    .unwrap();
    let older = at.completes(0, 1);
    let waits = commit_once_refused(&at, newer);
    tokio::join!(older, waits);
    assert_eq!(at.document().await.0, Some(json!({"n": 2})));
}

/// Ends an ingestion in a transaction that stays open until the returned value is committed.
async fn open_end(
    at: &Stage1,
    place: usize,
    end: &str,
) -> sqlx::Transaction<'static, sqlx::Postgres> {
    let mut open = at.database.pool().begin().await.unwrap();
    let sql = format!(
        "UPDATE ingestion SET {end}, completed_at = docmill_now(), claim_token = NULL,
             lease_expires_at = NULL WHERE id = $1"
    );
    let sql = sqlx::AssertSqlSafe(sql);
    sqlx::query(sql).bind(at.claims[place].0.0).execute(&mut *open).await.unwrap();
    open
}

/// Commits once an end was refused because of the open one.
async fn commit_once_refused(at: &Stage1, open: sqlx::Transaction<'static, sqlx::Postgres>) {
    let deadline = std::time::Instant::now() + crate::support::world::SOON;
    while at.refused.load(Ordering::Relaxed) == 0 {
        assert!(std::time::Instant::now() < deadline, "no end found the document's row locked");
        tokio::task::yield_now().await;
    }
    open.commit().await.unwrap();
}

#[tokio::test]
async fn an_older_one_that_completes_while_a_newer_failure_is_committed_does_not_hide_it() {
    let at = Stage1::with(2).await;
    let failure = "status = 'failed', reason = 'corrupt', valid_structured_data = false,
        needs_human_review = true";
    let newer = open_end(&at, 1, failure).await;
    tokio::join!(at.completes(0, 1), commit_once_refused(&at, newer));
    assert_eq!(at.document().await, (Some(json!({"n": 1})), true, reasons(&["corrupt"])));
}

#[tokio::test]
async fn a_failure_that_a_newer_one_hid_is_shown_when_that_one_is_cancelled() {
    for reason in [OutcomeReason::Cancelled, OutcomeReason::Blocked] {
        let at = Stage1::with(3).await;
        at.completes(0, 1).await;
        at.fails(1).await;
        assert!(!at.document().await.1, "a newer one is under way");
        at.end(2, Some(reason), None, &[]).await;
        let expected = (Some(json!({"n": 1})), true, reasons(&["corrupt"]));
        assert_eq!(at.document().await, expected, "{reason:?}");
    }
}

#[tokio::test]
async fn a_failure_under_way_while_the_newer_one_is_cancelled_is_shown() {
    let at = Stage1::with(2).await;
    let newer = open_end(&at, 1, "status = 'cancelled', reason = 'cancelled'").await;
    tokio::join!(at.fails(0), commit_once_refused(&at, newer));
    assert_eq!(at.document().await, (None, true, reasons(&["corrupt"])));
}

#[tokio::test]
async fn an_ingestion_superseded_by_an_unread_version_needs_review() {
    let superseded_by = async |at: &Stage1, place: usize, by: usize| {
        sqlx::query("UPDATE ingestion SET superseded_by = $2 WHERE id = $1")
            .bind(at.claims[place].0.0)
            .bind(at.claims[by].0.0)
            .execute(at.database.pool())
            .await
            .unwrap();
    };
    // By nothing at all.
    let at = Stage1::with(2).await;
    at.completes(0, 1).await;
    at.end(1, Some(OutcomeReason::Superseded), None, &[]).await;
    assert_eq!(at.document().await, (Some(json!({"n": 1})), true, reasons(&["superseded"])));
    // By one that is read.
    let at = Stage1::with(2).await;
    superseded_by(&at, 0, 1).await;
    at.end(0, Some(OutcomeReason::Superseded), None, &[]).await;
    assert_eq!(at.document().await, (None, false, vec![]));
    at.completes(1, 2).await;
    assert_eq!(at.document().await, (Some(json!({"n": 2})), false, vec![]));
    // By one that is cancelled after it, and by one that was before it.
    for order in [[0, 1], [1, 0]] {
        let at = Stage1::with(2).await;
        superseded_by(&at, 0, 1).await;
        for place in order {
            let reason = [OutcomeReason::Superseded, OutcomeReason::Cancelled][place];
            at.end(place, Some(reason), None, &[]).await;
        }
        assert_eq!(at.document().await, (None, true, reasons(&["superseded"])), "{order:?}");
    }
}
