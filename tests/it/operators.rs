//! Operators' actions: submit, inspect, retry, cancel, pause.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use docmill_compat::objects::ObjectQueue;
use docmill_core::config::QueueDestination;
use docmill_core::fault::Fault;
use docmill_core::model::{
    ClaimToken, ClaimedIngestion, IngestionId, IngestionStage, IngestionStatus, ModelUsage,
    OutcomeReason,
};
use docmill_ledger::db::Db;
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::db::operators::{AuditNote, PauseScope};
use docmill_ledger::decide::FRESH_ATTEMPTS;
use docmill_ledger::{
    ClaimOutcome, ClaimRelease, ClaimTerms, IngestionResult, Ledger, WriteResult,
};
use docmill_operations::inspect;
use docmill_operations::retry::{self, IngestionAction, PauseTarget};
use docmill_operations::submit::{self, Submission, SubmitContext, SubmitOptions, SubmitStatus};
use docmill_queue::{Delivery, MessageQueue};
use docmill_storage::folder::FolderStore;
use docmill_storage::{GetOptions, GetResult, ObjectStore};

use sha2::Digest;

use crate::support::documents;
use crate::support::postgres::TestDatabase;
use crate::support::world::{SOON, World, until};

/// A database, a folder as store and queue, and a folder of files to hand in.
struct Office {
    database: TestDatabase,
    store: Arc<FolderStore>,
    queue: ObjectQueue,
    folder: tempfile::TempDir,
}

impl Office {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(FolderStore::open(&folder.path().join("store")).await.unwrap());
        let queue = ObjectQueue::new(store.clone(), Duration::from_secs(600), None);
        Self { database: TestDatabase::create().await, store, queue, folder }
    }

    fn db(&self) -> Db {
        self.database.db()
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    async fn submit(&self, file: &std::path::Path, terms: &SubmitOptions) -> Submission {
        let db = self.db();
        let desk = SubmitContext {
            db: &db,
            store: &*self.store,
            queue: &self.queue,
            largest: 1000,
            destination: &QueueDestination::default(),
        };
        submit::submit_file(desk, file, terms).await.unwrap()
    }

    async fn submitted(&self, content: &str) -> IngestionId {
        let file = self.file(&format!("{}.pdf", uuid::Uuid::new_v4()), &format!("%PDF-{content}"));
        self.submit(&file, &SubmitOptions::default()).await.ingestion_id.unwrap()
    }

    async fn receive(&self) -> Vec<Delivery> {
        self.queue.receive(10, Duration::ZERO).await.unwrap()
    }

    async fn claim(&self, id: IngestionId) -> ClaimOutcome {
        let terms =
            ClaimTerms { worker: "w".to_owned(), lease: Duration::from_secs(300), crash_limit: 3 };
        PostgresLedger::new(self.db()).claim(&[id], &terms).await.unwrap().remove(0)
    }

    async fn claimed(&self, id: IngestionId) -> Box<ClaimedIngestion> {
        match self.claim(id).await {
            ClaimOutcome::Claimed(claimed) => claimed,
            other => panic!("{other:?}"),
        }
    }

    /// One whole attempt that ends the ingestion.
    async fn fail(&self, id: IngestionId, reason: OutcomeReason) {
        let token = self.claimed(id).await.token;
        assert_eq!(self.record(id, token, Some(reason)).await, WriteResult::Applied);
    }

    async fn record(
        &self,
        id: IngestionId,
        token: ClaimToken,
        reason: Option<OutcomeReason>,
    ) -> WriteResult {
        let end = IngestionResult {
            reason,
            stage: IngestionStage::Fetch,
            structured_data: None,
            needs_human_review: reason.is_some(),
            review_reasons: reason.iter().map(|reason| reason.code().to_owned()).collect(),
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
            detail: "as the test wants".to_owned(),
            children: Vec::new(),
        };
        PostgresLedger::new(self.db()).record_result(id, token, &end).await.unwrap()
    }

    async fn view(&self, id: IngestionId) -> inspect::IngestionHistory {
        inspect::load_histories(&self.db(), &id.to_string()).await.unwrap().remove(0)
    }

    async fn actions(&self) -> Vec<(String, String, String)> {
        sqlx::query_as("SELECT operator, action, target FROM operator_action ORDER BY id")
            .fetch_all(self.database.pool())
            .await
            .unwrap()
    }
}

fn somebody() -> AuditNote {
    AuditNote { operator: "ada".to_owned(), why: "because".to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submitted_file_is_in_store_database_and_queue() {
    let office = Office::new().await;
    let file = office.file("we ird näme $(id);&#.PDF", "%PDF-1.7 one");
    let terms = SubmitOptions {
        kind: Some("invoice".to_owned()),
        tags: [("a".to_owned(), String::new()), ("b".to_owned(), "c d".to_owned())].into(),
        ..SubmitOptions::default()
    };
    let done = office.submit(&file, &terms).await;
    assert_eq!(
        (done.fate, done.status),
        (SubmitStatus::Submitted, Some(IngestionStatus::InProgress))
    );
    let key = format!("documents/{}.pdf", done.document_id.unwrap());
    let get = GetOptions { at_most: 100, if_match: None };
    let GetResult::Found(object) = office.store.get(&key, get).await.unwrap() else {
        panic!("{key}")
    };
    assert_eq!(&object.bytes[..], b"%PDF-1.7 one");
    let metadata = office.store.head(&key).await.unwrap().unwrap().metadata;
    assert_eq!(metadata["original-name"], "we ird näme $(id);&#.PDF");
    assert_eq!((&*metadata["tags"], &*metadata["size"]), ("[\"a\",\"b=c d\"]", "12"));
    let messages = office.receive().await;
    assert_eq!(messages.len(), 1);
    let id = done.ingestion_id.unwrap();
    assert_eq!(messages[0].body, id.to_string());
    let view = office.view(id).await;
    assert_eq!(view.ingestion.original_name.as_deref(), Some("we ird näme $(id);&#.PDF"));
    assert_eq!(view.ingestion.kind.as_deref(), Some("invoice"));
    assert_eq!(view.state.as_deref(), Some("queued"));
    let claimed = office.claimed(id).await;
    assert_eq!(claimed.document.file_path, key);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_are_one_ingestion_unless_asked_for_again() {
    let office = Office::new().await;
    let (one, two) = (office.file("a.pdf", "%PDF-x"), office.file("b.pdf", "%PDF-x"));
    let first = office.submit(&one, &SubmitOptions::default()).await;
    let second = office.submit(&two, &SubmitOptions::default()).await;
    assert_eq!((second.fate, second.ingestion_id), (SubmitStatus::Known, first.ingestion_id));
    let tenant = SubmitOptions { tenant: Some("t".to_owned()), ..SubmitOptions::default() };
    let other = office.submit(&one, &tenant).await;
    assert_ne!(other.document_id, first.document_id, "tenants share nothing");
    let again =
        office.submit(&one, &SubmitOptions { again: true, ..SubmitOptions::default() }).await;
    assert_eq!((again.fate, again.document_id), (SubmitStatus::Submitted, first.document_id));
    assert_ne!(again.ingestion_id, first.ingestion_id);
    let known = office.submit(&one, &SubmitOptions::default()).await;
    assert_eq!(known.ingestion_id, again.ingestion_id, "the newest is meant");
    assert_eq!(office.receive().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_submissions_of_the_same_bytes_at_once_make_one_ingestion() {
    let office = Office::new().await;
    let file = office.file("a.pdf", "%PDF-x");
    let (db, terms) = (office.db(), SubmitOptions::default());
    let desk = SubmitContext {
        db: &db,
        store: &*office.store,
        queue: &office.queue,
        largest: 1000,
        destination: &QueueDestination::default(),
    };
    let all =
        futures::future::join_all((0..8).map(|_| submit::submit_file(desk, &file, &terms))).await;
    let new =
        all.iter().filter(|done| done.as_ref().unwrap().fate == SubmitStatus::Submitted).count();
    assert_eq!(new, 1);
    assert_eq!(office.receive().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_document_is_refused_and_leaves_nothing() {
    let office = Office::new().await;
    let long = "%PDF-".to_owned() + &"x".repeat(1000);
    for (name, content, said) in [
        ("a.txt", "hello\0", "not a document"),
        ("b.pdf", "", "empty"),
        ("c.pdf", &long, "limits.document_bytes is 1000"),
    ] {
        let done = office.submit(&office.file(name, content), &SubmitOptions::default()).await;
        assert_eq!(done.fate, SubmitStatus::Refused);
        assert!(done.problem.unwrap().contains(said), "{name}");
    }
    assert!(office.store.list("documents/", None, 10).await.unwrap().is_empty());
    assert!(office.receive().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_an_ingestion_a_document_or_the_beginning_of_a_hash() {
    let office = Office::new().await;
    let file = office.file("a.pdf", "%PDF-x");
    let first = office.submit(&file, &SubmitOptions::default()).await;
    let second =
        office.submit(&file, &SubmitOptions { again: true, ..SubmitOptions::default() }).await;
    let (a, b) = (first.ingestion_id.unwrap(), second.ingestion_id.unwrap());
    let digest = sha2::Sha256::digest("%PDF-x");
    let sha256: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let db = office.db();
    let ids = async |id: &str| -> Vec<IngestionId> {
        let found = inspect::find_ingestions(&db, id).await.unwrap();
        found.iter().map(|row| IngestionId(row.id)).collect()
    };
    assert_eq!(ids(&a.to_string()).await, [a]);
    for id in
        [first.document_id.unwrap().to_string(), sha256.get(..8).unwrap().to_uppercase(), sha256]
    {
        assert_eq!(ids(&id).await, [b, a], "{id}");
        assert_eq!(inspect::find_one(&db, &id).await.unwrap(), b, "to act on, the newest");
    }
    for id in [IngestionId::random().to_string().as_str(), "a.pdf", "", "abc", "%"] {
        assert_eq!(inspect::find_ingestions(&db, id).await.unwrap_err().fault, Fault::Missing);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retried_failure_starts_with_fresh_attempts_and_keeps_its_history() {
    let office = Office::new().await;
    let id = office.submitted("x").await;
    let message = office.receive().await.remove(0);
    office.fail(id, OutcomeReason::Corrupt).await;
    office.queue.acknowledge(&[message.receipt]).await.remove(0).unwrap();
    let by = somebody();
    let done = retry::retry_ingestions(&office.db(), &office.queue, &[id], &by).await.unwrap();
    assert_eq!((done[0].change, done[0].ingestion_id), (IngestionAction::Reopened, id));
    assert_eq!(office.receive().await[0].body, id.to_string());
    let claimed = office.claimed(id).await;
    assert_eq!((claimed.attempt, claimed.claims), (1, 2), "{FRESH_ATTEMPTS} attempts once more");
    assert_eq!(office.record(id, claimed.token, None).await, WriteResult::Applied);
    let story = inspect::load_histories(&office.db(), &id.to_string()).await.unwrap().remove(0);
    let outcomes: Vec<_> = story.attempts.iter().map(|attempt| attempt.outcome.as_str()).collect();
    assert_eq!(outcomes, ["corrupt", "completed"]);
    assert_eq!(story.ingestion.status, "completed");
    let reopened = ("ada".to_owned(), "reopen".to_owned(), id.to_string());
    assert_eq!(office.actions().await, [reopened]);
    let before: serde_json::Value = sqlx::query_scalar("SELECT before FROM operator_action")
        .fetch_one(office.database.pool())
        .await
        .unwrap();
    assert_eq!((&before["status"], &before["reason"]), (&"failed".into(), &"corrupt".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_makes_a_put_off_ingestion_due_and_leaves_a_running_one_alone() {
    let office = Office::new().await;
    let (later, running) = (office.submitted("later").await, office.submitted("running").await);
    let token = office.claimed(later).await.token;
    let give_back = ClaimRelease {
        fault: Fault::Unavailable,
        counted: false,
        is_shared: false,
        after: Duration::from_secs(3600),
        stage: IngestionStage::Fetch,
        detail: String::new(),
    };
    let ledger = PostgresLedger::new(office.db());
    assert_eq!(ledger.release_claim(later, token, &give_back).await.unwrap(), WriteResult::Applied);
    let token = office.claimed(running).await.token;
    assert!(matches!(office.claim(later).await, ClaimOutcome::NotDue(_)));
    let ids = [running, later];
    let done =
        retry::retry_ingestions(&office.db(), &office.queue, &ids, &somebody()).await.unwrap();
    let changes: Vec<_> = done.iter().map(|line| line.change).collect();
    assert_eq!(changes, [IngestionAction::BeingWorkedOn, IngestionAction::SentAgain]);
    let hurried = office.claimed(later).await;
    assert_eq!(hurried.deferred_for, None, "its limit of deferrals begins anew");
    assert_eq!(
        office.record(running, token, None).await,
        WriteResult::Applied,
        "its claim still stands"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_ingestion_is_lost_to_its_worker_and_done_for_its_message() {
    let office = Office::new().await;
    let (waiting, running) = (office.submitted("waiting").await, office.submitted("run").await);
    let token = office.claimed(running).await.token;
    let ids = [waiting, running];
    let done = retry::cancel_ingestions(&office.db(), &ids, &somebody()).await.unwrap();
    assert!(done.iter().all(|line| line.change == IngestionAction::Cancelled));
    assert_eq!(office.record(running, token, None).await, WriteResult::ClaimLost);
    assert!(matches!(
        office.claim(waiting).await,
        ClaimOutcome::Terminal(IngestionStatus::Cancelled)
    ));
    let story = office.view(running).await;
    assert_eq!(story.ingestion.status, "cancelled");
    assert_eq!(story.ingestion.reason.as_deref(), Some("cancelled"));
    let outcomes: Vec<_> = story.attempts.iter().map(|attempt| &attempt.outcome).collect();
    assert_eq!(outcomes, ["cancelled"]);
    let again = retry::cancel_ingestions(&office.db(), &ids, &somebody()).await.unwrap();
    assert!(again.iter().all(|line| line.change == IngestionAction::AlreadyEnded));
    assert_eq!(office.actions().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operators_pause_is_distinguished_from_an_outage() {
    let world = World::new().await;
    let invoices = PauseTarget { scope: PauseScope::Kind, name: "invoice".to_owned() };
    retry::pause_target(&world.database.db(), &invoices, &somebody()).await.unwrap();
    let worker = world.worker().await;
    // It loads pauses before it reports that it is alive.
    let lives = || async { world.scalar("SELECT count(*)::text FROM docmill.worker").await != "0" };
    until(SOON, lives).await;
    let id = world.submit("a.pdf", documents::invoice("P-1")).await;
    until(SOON, || async { world.column(id, "parked_by").await.is_some() }).await;
    worker.stop().await;
    assert_eq!(world.column(id, "parked_by").await.unwrap(), "kind:invoice");
    assert_eq!(world.attempts(id).await, Vec::<String>::new(), "nothing was tried");
    assert_eq!(world.column(id, "attempt_count").await.unwrap(), "0", "it is not counted");
    assert_eq!(world.column(id, "status").await.unwrap(), "in-progress");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_seen_by_workers_until_it_is_lifted_and_both_are_written_down() {
    let office = Office::new().await;
    let (db, ledger) = (office.db(), PostgresLedger::new(office.db()));
    let paused = |scope, name: &str| PauseTarget { scope, name: name.to_owned() };
    let what = [
        paused(PauseScope::All, ""),
        paused(PauseScope::Tenant, "t"),
        paused(PauseScope::Provider, "p"),
    ];
    for pause in &what {
        retry::pause_target(&db, pause, &somebody()).await.unwrap();
    }
    assert_eq!(ledger.active_pauses().await.unwrap().len(), 3);
    for pause in &what {
        assert!(retry::resume_target(&db, pause, &somebody()).await.unwrap());
        assert!(!retry::resume_target(&db, pause, &somebody()).await.unwrap(), "it was so");
    }
    assert!(ledger.active_pauses().await.unwrap().is_empty());
    let actions: Vec<_> = office.actions().await.into_iter().map(|(_, a, _)| a).collect();
    assert_eq!(actions, ["pause", "pause", "pause", "resume", "resume", "resume"]);
    for wrong in [paused(PauseScope::Kind, ""), paused(PauseScope::All, "x")] {
        let refused = retry::pause_target(&db, &wrong, &somebody()).await.unwrap_err();
        assert_eq!(refused.fault, Fault::Rejected);
    }
}
