//! Postgres queries of operators, janitor and reports.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::time::Duration;

use docmill_core::model::{DocumentId, IngestionId, IngestionStatus, OutcomeReason};
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::db::claims::registration::{self, NewDocument, NewIngestion};
use docmill_ledger::db::operators::{self, AuditNote, PauseScope};
use docmill_ledger::db::reports::{self, IngestionFilter};
use docmill_ledger::db::{operators::janitor, operators::retention, reports::overview};
use docmill_ledger::{
    AttemptLedger, ClaimOutcome, ClaimTerms, Ledger, OperatorPause, WorkerStatus,
};

use crate::support::postgres::TestDatabase;

const QUIET: Duration = Duration::from_secs(1800);

fn by() -> AuditNote {
    AuditNote { operator: "ann".to_owned(), why: "asked by bob".to_owned() }
}

fn terms() -> ClaimTerms {
    ClaimTerms { worker: "w".to_owned(), lease: Duration::from_secs(300), crash_limit: 3 }
}

async fn submit(database: &TestDatabase, sha256: &str, tenant: Option<&str>) -> IngestionId {
    let document = NewDocument {
        id: DocumentId::random(),
        file_path: "documents/x.pdf".to_owned(),
        original_name: Some("x.pdf".to_owned()),
        sha256: Some(sha256.to_owned()),
        size: Some(7),
        tenant: tenant.map(str::to_owned),
        tags: BTreeMap::from([("from".to_owned(), "test".to_owned())]),
    };
    let ingestion = NewIngestion {
        priority: docmill_core::model::Priority::Normal,
        id: IngestionId::random(),
        kind: Some("invoice".to_owned()),
        object_etag: None,
        anew: false,
    };
    let row = [(document, ingestion.clone())];
    for fresh in [1, 0] {
        let new = registration::register_documents(&database.db(), &row).await.unwrap();
        assert_eq!(new.len(), fresh, "the second time changes nothing");
    }
    ingestion.id
}

async fn claim(database: &TestDatabase, id: IngestionId) -> ClaimOutcome {
    PostgresLedger::new(database.db()).claim(&[id], &terms()).await.unwrap().remove(0)
}

/// The audit log: action, subject, actor.
async fn audit(database: &TestDatabase) -> Vec<(String, String, String)> {
    sqlx::query_as("SELECT operator, action, target FROM operator_action ORDER BY id")
        .fetch_all(database.pool())
        .await
        .unwrap()
}

#[tokio::test]
async fn known_content_is_found_for_the_same_tenant_only() {
    let database = TestDatabase::create().await;
    let sha256 = "ab".repeat(32);
    let id = submit(&database, &sha256, Some("acme")).await;
    let db = database.db();
    let asked = [sha256.clone(), "cd".repeat(32)];
    let known = registration::find_by_sha256(&db, &asked, Some("acme")).await.unwrap();
    let newest = known[&sha256].newest.as_ref().map(|newest| (newest.ingestion, newest.status));
    assert_eq!((known.len(), newest), (1, Some((id, IngestionStatus::InProgress))));
    assert!(registration::find_by_sha256(&db, &asked, None).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_ingestion_is_found_by_its_id_its_document_and_the_beginning_of_its_content() {
    let database = TestDatabase::create().await;
    let db = database.db();
    let id = submit(&database, &"ab".repeat(32), None).await;
    submit(&database, &"cd".repeat(32), None).await;
    let row = reports::find_ingestions(&db, &id.to_string(), 10).await.unwrap().remove(0);
    assert_eq!((row.id, row.kind.as_deref()), (id.0, Some("invoice")));
    let names =
        [row.document_id.to_string(), "ABABAB".to_owned(), "ab".repeat(32), "ab".repeat(16)];
    for name in names {
        let found = reports::find_ingestions(&db, &name, 10).await.unwrap();
        assert_eq!(found.iter().map(|row| row.id).collect::<Vec<_>>(), [id.0], "{name}");
    }
    for name in ["", "abab", "%", "ab%ab%", "zzzzzz", &uuid::Uuid::new_v4().to_string()] {
        assert!(reports::find_ingestions(&db, name, 10).await.unwrap().is_empty(), "{name}");
    }
}

#[tokio::test]
async fn lists_are_filtered_and_continue_where_they_ended() {
    let database = TestDatabase::create().await;
    let db = database.db();
    let mut ids = Vec::new();
    for number in 0..5 {
        let tenant = (number % 2 == 0).then_some("acme");
        ids.push(submit(&database, &format!("{number:064x}"), tenant).await);
    }
    operators::cancel_ingestions(&db, &ids[..1], &by()).await.unwrap();
    let seen = |rows: Vec<reports::IngestionRow>| rows.iter().map(|r| r.id).collect::<Vec<_>>();
    let all = IngestionFilter::default();
    let first = seen(reports::list_ingestions(&db, &all, 2, None).await.unwrap());
    assert_eq!(first, [ids[4].0, ids[3].0]);
    let second = seen(reports::list_ingestions(&db, &all, 9, Some(ids[3])).await.unwrap());
    assert_eq!(second, [ids[2].0, ids[1].0, ids[0].0]);
    let acme = IngestionFilter { tenant: Some("acme".to_owned()), ..IngestionFilter::default() };
    assert_eq!(seen(reports::list_ingestions(&db, &acme, 9, None).await.unwrap()).len(), 3);
    let cancelled = IngestionFilter { status: Some(IngestionStatus::Cancelled), ..acme };
    assert_eq!(seen(reports::list_ingestions(&db, &cancelled, 9, None).await.unwrap()), [ids[0].0]);
    let waiting = reports::find_waiting(&db, &ids).await.unwrap();
    assert!(waiting.len() == 4 && waiting.iter().all(|row| row.state == "queued"), "{waiting:?}");
    let states = overview::count_states(&db).await.unwrap();
    let states: Vec<_> = states.iter().map(|row| (row.state.as_str(), row.count)).collect();
    assert_eq!(states, [("queued", 4)]);
}

#[tokio::test]
async fn every_act_of_an_operator_is_written_down_with_the_state_before() {
    let database = TestDatabase::create().await;
    let db = database.db();
    let id = submit(&database, &"ab".repeat(32), None).await;
    claim(&database, id).await;
    assert_eq!(operators::reopen_ingestions(&db, &[id], &by()).await.unwrap(), []);
    assert_eq!(operators::cancel_ingestions(&db, &[id], &by()).await.unwrap(), [id]);
    assert_eq!(operators::cancel_ingestions(&db, &[id], &by()).await.unwrap(), []);
    assert_eq!(operators::reopen_ingestions(&db, &[id], &by()).await.unwrap(), [id]);
    operators::add_pause(&db, PauseScope::Kind, "invoice", &by()).await.unwrap();
    operators::add_pause(&db, PauseScope::Kind, "invoice", &by()).await.unwrap();
    let ledger = PostgresLedger::new(db.clone());
    assert_eq!(ledger.active_pauses().await.unwrap(), [OperatorPause::Kind("invoice".to_owned())]);
    assert_eq!(operators::list_pauses(&db).await.unwrap()[0].paused_by, "ann");
    assert!(operators::remove_pause(&db, PauseScope::Kind, "invoice", &by()).await.unwrap());
    assert!(!operators::remove_pause(&db, PauseScope::Kind, "invoice", &by()).await.unwrap());
    assert!(operators::add_pause(&db, PauseScope::All, "x", &by()).await.is_err());
    let sha256 = "ab".repeat(32);
    assert!(operators::block_content(&db, &sha256, &by()).await.unwrap());
    assert!(!operators::block_content(&db, &sha256, &by()).await.unwrap());
    assert!(ledger.is_blocked(&sha256).await.unwrap());
    assert!(operators::unblock_content(&db, &sha256, &by()).await.unwrap());
    assert!(operators::block_content(&db, "no hash", &by()).await.is_err());
    let acts: Vec<String> = audit(&database).await.into_iter().map(|(_, act, _)| act).collect();
    assert_eq!(acts, ["cancel", "reopen", "pause", "pause", "resume", "block", "unblock"]);
    let before: String = sqlx::query_scalar(
        "SELECT before ->> 'status' FROM operator_action WHERE action = 'reopen'",
    )
    .fetch_one(database.pool())
    .await
    .unwrap();
    assert_eq!(before, "cancelled");
    let attempts = reports::list_attempts(&db, id).await.unwrap();
    assert_eq!((attempts[0].outcome.as_str(), attempts[0].r#final), ("cancelled", true));
}

#[tokio::test]
async fn only_a_row_that_was_quiet_for_long_enough_is_sent_again() {
    let database = TestDatabase::create().await;
    let db = database.db();
    let names = ["waits", "leased", "deferred", "paused", "crashed"];
    let mut ids = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let tenant = (*name == "paused").then_some("acme");
        ids.push(submit(&database, &format!("{number:064x}"), tenant).await);
    }
    operators::add_pause(&db, PauseScope::Tenant, "acme", &by()).await.unwrap();
    claim(&database, ids[4]).await;
    let candidates = || async {
        let found = janitor::find_resend_candidates(&db, QUIET, None, 10).await.unwrap();
        let found = found.candidates;
        let place = |id| ids.iter().position(|known| *known == id).unwrap();
        found.into_iter().map(|found| names[place(found.id)]).collect::<Vec<_>>()
    };
    assert!(candidates().await.is_empty());
    database.advance(QUIET + Duration::from_secs(1)).await;
    claim(&database, ids[1]).await;
    let ClaimOutcome::Claimed(put_off) = claim(&database, ids[2]).await else {
        panic!("not claimed")
    };
    let how = docmill_ledger::ClaimRelease {
        fault: docmill_core::fault::Fault::Unavailable,
        counted: false,
        is_shared: false,
        after: Duration::from_secs(60),
        stage: docmill_core::model::IngestionStage::Fetch,
        detail: String::new(),
    };
    let ledger = PostgresLedger::new(db.clone());
    ledger.release_claim(ids[2], put_off.token, &how).await.unwrap();
    // The crashed one's message may still come: its lease ran out only 25 minutes ago.
    assert_eq!(candidates().await, ["waits"]);
    assert_eq!(janitor::mark_enqueued(&db, &ids[..1]).await.unwrap(), ids[..1]);
    assert!(candidates().await.is_empty());
    database.advance(QUIET * 2 + Duration::from_secs(1)).await;
    assert!(!candidates().await.contains(&"waits"), "after one resend it waits twice as long");
    database.advance(QUIET * 4).await;
    let mut all = candidates().await;
    all.sort_unstable();
    assert_eq!(all, ["crashed", "deferred", "leased", "waits"]);
}

#[tokio::test]
async fn a_dead_letters_row_is_reported_and_failed_only_if_unclaimed() {
    let database = TestDatabase::create().await;
    let db = database.db();
    let id = submit(&database, &"ab".repeat(32), None).await;
    claim(&database, id).await;
    let unknown = IngestionId::random();
    let states = janitor::find_dead_letter_rows(&db, &[id, unknown]).await.unwrap();
    assert_eq!(states.len(), 1);
    assert_eq!((states[0].leased, states[0].crashes, states[0].attempts), (true, 0, 1));
    let give_up =
        || janitor::fail_unclaimed(&db, id, OutcomeReason::DeferredTooLong, "dead letter, too old");
    assert!(!give_up().await.unwrap());
    database.advance(Duration::from_secs(301)).await;
    let states = janitor::find_dead_letter_rows(&db, &[id]).await.unwrap();
    assert_eq!((states[0].leased, states[0].crashes), (false, 0), "the next claim counts it");
    assert!(states[0].age >= Duration::from_secs(300));
    assert!(give_up().await.unwrap());
    assert!(!give_up().await.unwrap());
    let attempts = reports::list_attempts(&db, id).await.unwrap();
    assert_eq!((attempts[0].outcome.as_str(), attempts[0].r#final), ("crashed", true));
}

#[tokio::test]
async fn maintenance_has_one_leader_until_its_lease_runs_out() {
    let database = TestDatabase::create().await;
    let db = database.db();
    let lead = |who: &'static str| janitor::try_acquire_lead(&db, "janitor", who, QUIET);
    assert!(lead("a").await.unwrap());
    assert!(lead("a").await.unwrap());
    assert!(!lead("b").await.unwrap());
    database.advance(QUIET + Duration::from_secs(1)).await;
    assert!(lead("b").await.unwrap());
    assert!(!lead("a").await.unwrap());
    janitor::release_lead(&db, "janitor", "a").await.unwrap();
    assert!(!lead("a").await.unwrap());
    janitor::release_lead(&db, "janitor", "b").await.unwrap();
    assert!(lead("a").await.unwrap());
}

#[tokio::test]
async fn old_rows_are_deleted_in_batches_and_never_those_of_running_ingestions() {
    let database = TestDatabase::create().await;
    let db = database.db();
    let ids = [
        submit(&database, &"ab".repeat(32), None).await,
        submit(&database, &"cd".repeat(32), None).await,
    ];
    for id in ids {
        for _ in 0..3 {
            claim(&database, id).await;
            operators::cancel_ingestions(&db, &[id], &by()).await.unwrap();
            operators::reopen_ingestions(&db, &[id], &by()).await.unwrap();
        }
    }
    operators::cancel_ingestions(&db, &ids[..1], &by()).await.unwrap();
    let delete = async |age| {
        let old = retention::find_expired_attempts(&db, age, None, 2).await?;
        retention::delete_attempts(&db, &old).await
    };
    assert_eq!(delete(QUIET).await.unwrap(), 0);
    database.advance(QUIET * 2).await;
    assert_eq!(delete(QUIET).await.unwrap(), 2);
    assert_eq!(delete(QUIET).await.unwrap(), 1);
    assert_eq!(delete(QUIET).await.unwrap(), 0);
    assert_eq!(reports::list_attempts(&db, ids[1]).await.unwrap().len(), 3);
    assert_eq!(retention::delete_quarantined(&db, QUIET, 2).await.unwrap(), 0);
    let ledger = PostgresLedger::new(db.clone());
    ledger.save_worker_status("w", &WorkerStatus::default()).await.unwrap();
    assert_eq!(retention::delete_workers(&db, QUIET).await.unwrap(), 0);
    database.advance(QUIET * 4).await;
    assert_eq!(retention::delete_workers(&db, QUIET).await.unwrap(), 1);
}
