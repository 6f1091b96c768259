//! What operators do: handing in, looking, retrying, cancelling, pausing.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use docmill::config::Destination;
use docmill::db::Db;
use docmill::db::claims::PostgresLedger;
use docmill::db::operators::{By, Scope};
use docmill::fault::Fault;
use docmill::ledger::decide::FRESH_ATTEMPTS;
use docmill::ledger::{Claim, ClaimTerms, GiveBack, Held, Ledger, Record};
use docmill::model::{ClaimToken, Claimed, IngestionId, Reason, Stage, Status, Usage};
use docmill::ops::inspect;
use docmill::ops::retry::{self, Change, Paused};
use docmill::ops::submit::{self, Desk, Fate, Submission, Terms};
use docmill::queue::objects::ObjectQueue;
use docmill::queue::{Delivery, Queue};
use docmill::store::folder::FolderStore;
use docmill::store::{Fetch, Get, Store};

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

    async fn submit(&self, file: &std::path::Path, terms: &Terms) -> Submission {
        let db = self.db();
        let desk = Desk {
            db: &db,
            store: &*self.store,
            queue: &self.queue,
            largest: 1000,
            destination: &Destination::default(),
        };
        submit::submit(desk, file, terms).await.unwrap()
    }

    async fn submitted(&self, content: &str) -> IngestionId {
        let file = self.file(&format!("{}.pdf", uuid::Uuid::new_v4()), &format!("%PDF-{content}"));
        self.submit(&file, &Terms::default()).await.ingestion_id.unwrap()
    }

    async fn receive(&self) -> Vec<Delivery> {
        self.queue.receive(10, Duration::ZERO).await.unwrap()
    }

    async fn claim(&self, id: IngestionId) -> Claim {
        let terms =
            ClaimTerms { worker: "w".to_owned(), lease: Duration::from_secs(300), crash_limit: 3 };
        PostgresLedger::new(self.db()).claim(&[id], &terms).await.unwrap().remove(0)
    }

    async fn claimed(&self, id: IngestionId) -> Box<Claimed> {
        match self.claim(id).await {
            Claim::Claimed(claimed) => claimed,
            other => panic!("{other:?}"),
        }
    }

    /// One whole attempt that ends the ingestion.
    async fn fail(&self, id: IngestionId, reason: Reason) {
        let token = self.claimed(id).await.token;
        assert_eq!(self.record(id, token, Some(reason)).await, Held::Yes);
    }

    async fn record(&self, id: IngestionId, token: ClaimToken, reason: Option<Reason>) -> Held {
        let end = Record {
            reason,
            stage: Stage::Fetch,
            structured_data: None,
            needs_human_review: reason.is_some(),
            review_reasons: reason.iter().map(|reason| reason.code().to_owned()).collect(),
            reader: None,
            kind: None,
            model: None,
            usage: Usage::default(),
            judged: None,
            sha256: None,
            detail: "as the test wants".to_owned(),
        };
        PostgresLedger::new(self.db()).record(id, token, &end).await.unwrap()
    }

    async fn view(&self, id: IngestionId) -> inspect::Story {
        inspect::status(&self.db(), &id.to_string()).await.unwrap().remove(0)
    }

    async fn actions(&self) -> Vec<(String, String, String)> {
        sqlx::query_as("SELECT operator, action, target FROM operator_action ORDER BY id")
            .fetch_all(self.database.pool())
            .await
            .unwrap()
    }
}

fn somebody() -> By {
    By { operator: "ada".to_owned(), why: "because".to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submitted_file_is_in_store_database_and_queue() {
    let office = Office::new().await;
    let file = office.file("we ird näme $(id);&#.PDF", "%PDF-1.7 one");
    let terms = Terms {
        kind: Some("invoice".to_owned()),
        tags: [("a".to_owned(), String::new()), ("b".to_owned(), "c d".to_owned())].into(),
        ..Terms::default()
    };
    let done = office.submit(&file, &terms).await;
    assert_eq!((done.fate, done.status), (Fate::Submitted, Some(Status::InProgress)));
    let key = format!("documents/{}.pdf", done.document_id.unwrap());
    let get = Get { at_most: 100, if_match: None };
    let Fetch::Found(object) = office.store.get(&key, get).await.unwrap() else { panic!("{key}") };
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
    let first = office.submit(&one, &Terms::default()).await;
    let second = office.submit(&two, &Terms::default()).await;
    assert_eq!((second.fate, second.ingestion_id), (Fate::Known, first.ingestion_id));
    let tenant = Terms { tenant: Some("t".to_owned()), ..Terms::default() };
    let other = office.submit(&one, &tenant).await;
    assert_ne!(other.document_id, first.document_id, "tenants share nothing");
    let again = office.submit(&one, &Terms { again: true, ..Terms::default() }).await;
    assert_eq!((again.fate, again.document_id), (Fate::Submitted, first.document_id));
    assert_ne!(again.ingestion_id, first.ingestion_id);
    let known = office.submit(&one, &Terms::default()).await;
    assert_eq!(known.ingestion_id, again.ingestion_id, "the newest is meant");
    assert_eq!(office.receive().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_submissions_of_the_same_bytes_at_once_make_one_ingestion() {
    let office = Office::new().await;
    let file = office.file("a.pdf", "%PDF-x");
    let (db, terms) = (office.db(), Terms::default());
    let desk = Desk {
        db: &db,
        store: &*office.store,
        queue: &office.queue,
        largest: 1000,
        destination: &Destination::default(),
    };
    let all = futures::future::join_all((0..8).map(|_| submit::submit(desk, &file, &terms))).await;
    let new = all.iter().filter(|done| done.as_ref().unwrap().fate == Fate::Submitted).count();
    assert_eq!(new, 1);
    assert_eq!(office.receive().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_document_is_refused_in_words_and_leaves_nothing() {
    let office = Office::new().await;
    let long = "%PDF-".to_owned() + &"x".repeat(1000);
    for (name, content, said) in [
        ("a.txt", "hello", "not a document"),
        ("b.pdf", "", "empty"),
        ("c.pdf", &long, "limits.document_bytes is 1000"),
    ] {
        let done = office.submit(&office.file(name, content), &Terms::default()).await;
        assert_eq!(done.fate, Fate::Refused);
        assert!(done.problem.unwrap().contains(said), "{name}");
    }
    assert!(office.store.list("documents/", None, 10).await.unwrap().is_empty());
    assert!(office.receive().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_an_ingestion_a_document_or_the_beginning_of_a_hash() {
    let office = Office::new().await;
    let file = office.file("a.pdf", "%PDF-x");
    let first = office.submit(&file, &Terms::default()).await;
    let second = office.submit(&file, &Terms { again: true, ..Terms::default() }).await;
    let (a, b) = (first.ingestion_id.unwrap(), second.ingestion_id.unwrap());
    let digest = sha2::Sha256::digest("%PDF-x");
    let sha256: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let db = office.db();
    let ids = async |id: &str| -> Vec<IngestionId> {
        let found = inspect::find(&db, id).await.unwrap();
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
        assert_eq!(inspect::find(&db, id).await.unwrap_err().fault, Fault::Missing);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retried_failure_starts_with_fresh_attempts_and_keeps_its_history() {
    let office = Office::new().await;
    let id = office.submitted("x").await;
    let message = office.receive().await.remove(0);
    office.fail(id, Reason::Corrupt).await;
    office.queue.acknowledge(&[message.receipt]).await.remove(0).unwrap();
    let by = somebody();
    let done = retry::retry(&office.db(), &office.queue, &[id], &by).await.unwrap();
    assert_eq!((done[0].change, done[0].ingestion_id), (Change::Reopened, id));
    assert_eq!(office.receive().await[0].body, id.to_string());
    let claimed = office.claimed(id).await;
    assert_eq!((claimed.attempt, claimed.claims), (1, 2), "{FRESH_ATTEMPTS} attempts once more");
    assert_eq!(office.record(id, claimed.token, None).await, Held::Yes);
    let story = inspect::status(&office.db(), &id.to_string()).await.unwrap().remove(0);
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
    let give_back = GiveBack {
        fault: Fault::Transient,
        counted: true,
        after: Duration::from_secs(3600),
        stage: Stage::Fetch,
        detail: String::new(),
    };
    let ledger = PostgresLedger::new(office.db());
    assert_eq!(ledger.give_back(later, token, &give_back).await.unwrap(), Held::Yes);
    let token = office.claimed(running).await.token;
    assert!(matches!(office.claim(later).await, Claim::NotDue(_)));
    let ids = [running, later];
    let done = retry::retry(&office.db(), &office.queue, &ids, &somebody()).await.unwrap();
    let changes: Vec<_> = done.iter().map(|line| line.change).collect();
    assert_eq!(changes, [Change::BeingWorkedOn, Change::SentAgain]);
    assert!(matches!(office.claim(later).await, Claim::Claimed(_)));
    assert_eq!(office.record(running, token, None).await, Held::Yes, "its claim still stands");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_ingestion_is_lost_to_its_worker_and_done_for_its_message() {
    let office = Office::new().await;
    let (waiting, running) = (office.submitted("waiting").await, office.submitted("run").await);
    let token = office.claimed(running).await.token;
    let ids = [waiting, running];
    let done = retry::cancel(&office.db(), &ids, &somebody()).await.unwrap();
    assert!(done.iter().all(|line| line.change == Change::Cancelled));
    assert_eq!(office.record(running, token, None).await, Held::Lost);
    assert!(matches!(office.claim(waiting).await, Claim::Terminal(Status::Cancelled)));
    let story = office.view(running).await;
    assert_eq!(story.ingestion.status, "cancelled");
    assert_eq!(story.ingestion.reason.as_deref(), Some("cancelled"));
    let outcomes: Vec<_> = story.attempts.iter().map(|attempt| &attempt.outcome).collect();
    assert_eq!(outcomes, ["cancelled"]);
    let again = retry::cancel(&office.db(), &ids, &somebody()).await.unwrap();
    assert!(again.iter().all(|line| line.change == Change::AlreadyEnded));
    assert_eq!(office.actions().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_holds_back_is_told_apart_from_an_outage() {
    let world = World::new().await;
    let invoices = Paused { scope: Scope::Kind, name: "invoice".to_owned() };
    retry::pause(&world.database.db(), &invoices, &somebody()).await.unwrap();
    let worker = world.worker().await;
    // It looks for pauses before it says that it lives.
    let lives = || async { world.scalar("SELECT count(*)::text FROM docmill.worker").await != "0" };
    until(SOON, lives).await;
    let id = world.submit("a.pdf", documents::invoice("P-1")).await;
    until(SOON, || async { !world.attempts(id).await.is_empty() }).await;
    worker.stop().await;
    assert_eq!(world.attempts(id).await, ["paused"]);
    assert_eq!(world.column(id, "attempt_count").await.unwrap(), "0", "it is not counted");
    assert_eq!(world.column(id, "status").await.unwrap(), "in-progress");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_seen_by_workers_until_it_is_lifted_and_both_are_written_down() {
    let office = Office::new().await;
    let (db, ledger) = (office.db(), PostgresLedger::new(office.db()));
    let paused = |scope, name: &str| Paused { scope, name: name.to_owned() };
    let what = [paused(Scope::All, ""), paused(Scope::Tenant, "t"), paused(Scope::Provider, "p")];
    for pause in &what {
        retry::pause(&db, pause, &somebody()).await.unwrap();
    }
    assert_eq!(ledger.pauses().await.unwrap().len(), 3);
    for pause in &what {
        assert!(retry::resume(&db, pause, &somebody()).await.unwrap());
        assert!(!retry::resume(&db, pause, &somebody()).await.unwrap(), "it was so");
    }
    assert!(ledger.pauses().await.unwrap().is_empty());
    let actions: Vec<_> = office.actions().await.into_iter().map(|(_, a, _)| a).collect();
    assert_eq!(actions, ["pause", "pause", "pause", "resume", "resume", "resume"]);
    for wrong in [paused(Scope::Kind, ""), paused(Scope::All, "x")] {
        let refused = retry::pause(&db, &wrong, &somebody()).await.unwrap_err();
        assert_eq!(refused.fault, Fault::Rejected);
    }
}
