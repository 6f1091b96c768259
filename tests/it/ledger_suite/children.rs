//! Documents found in others: written with the end of their parent and once, found by maintenance until
//! their messages are sent, told of by one message, and past their retention together.

use std::time::Duration;

use docmill_core::model::{ClaimedIngestion, DocumentId, IngestionId, OutcomeReason, PageRange};
use docmill_ledger::db::claims::parking;
use docmill_ledger::db::claims::registration::find_by_sha256;
use docmill_ledger::db::operators::AuditNote;
use docmill_ledger::db::operators::erasure::{self, TenantPosition};
use docmill_ledger::{FamilySize, IngestionResult, NewChild, WriteResult};
use sqlx::{AssertSqlSafe, Executor as _};

use super::fixture::{Fixture, record};
use crate::support::postgres::TestDatabase;

const SHA256: &str = "ab";

/// A completed ingestion with so many children.
fn with_children(parent: IngestionId, count: u32) -> IngestionResult {
    let child = |position: u32| NewChild {
        name: Some(format!("invoice {position}.pdf")),
        sha256: Some("c".repeat(64)),
        size: Some(100),
        pages: (position > 0).then_some(PageRange { first: position, last: position + 1 }),
        ..NewChild::at(parent, SHA256, position, format!("documents/{position}.pdf"))
    };
    IngestionResult { children: (0..count).map(child).collect(), ..record(None) }
}

fn child_of(parent: IngestionId, position: u32) -> IngestionId {
    IngestionId::first_for_document(DocumentId::of_child(parent, SHA256, position))
}

async fn started(at: &Fixture) -> ClaimedIngestion {
    let id = IngestionId::random();
    at.insert(id, DocumentId::random()).await;
    at.take(id).await
}

async fn split(at: &Fixture, parent: &ClaimedIngestion, count: u32) {
    let end = with_children(parent.id, count);
    let written = at.ledger().record_result(parent.id, parent.token, &end).await.unwrap();
    assert_eq!(written, WriteResult::Applied);
}

async fn end(at: &Fixture, child: &ClaimedIngestion, reason: Option<OutcomeReason>) {
    let mut written = at.ledger().record_result(child.id, child.token, &record(reason)).await;
    while written.is_err() {
        written = at.ledger().record_result(child.id, child.token, &record(reason)).await;
    }
    assert_eq!(written.unwrap(), WriteResult::Applied);
}

#[tokio::test]
async fn children_come_with_the_end_of_their_parent_and_are_worked_on_as_documents_of_their_own() {
    for at in Fixture::both().await {
        let parent = started(&at).await;
        assert_eq!(at.ledger().family_size(parent.id).await.unwrap(), FamilySize::default());
        split(&at, &parent, 3).await;
        let row = at.row(parent.id).await.unwrap();
        assert_eq!((row.children, row.root_id, row.parent_id), (Some(3), None, None));
        for position in 0..3 {
            let child = at.take(child_of(parent.id, position)).await;
            assert_eq!((child.document.depth, child.kind.as_deref()), (1, None));
            assert_eq!(child.document.original_name.unwrap(), format!("invoice {position}.pdf"));
            let pages = (position > 0).then_some(PageRange { first: position, last: position + 1 });
            assert_eq!(child.document.pages, pages);
            let row = at.row(child.id).await.unwrap();
            assert_eq!((row.parent_id, row.position), (Some(parent.id), Some(position)));
        }
        let family = FamilySize { documents: 3, bytes: 300 };
        assert_eq!(at.ledger().family_size(child_of(parent.id, 1)).await.unwrap(), family);
        let own = at.ledger().family_size(parent.id).await.unwrap();
        assert_eq!(own, FamilySize::default(), "what it found before is found again");
    }
}

#[tokio::test]
async fn what_is_found_in_a_child_belongs_to_the_family_of_the_topmost_document() {
    for at in Fixture::both().await {
        let top = started(&at).await;
        split(&at, &top, 1).await;
        let middle = at.take(child_of(top.id, 0)).await;
        split(&at, &middle, 2).await;
        let lowest = at.take(child_of(middle.id, 1)).await;
        assert_eq!(lowest.document.depth, 2);
        let row = at.row(lowest.id).await.unwrap();
        assert_eq!((row.parent_id, row.root_id), (Some(middle.id), Some(top.id)));
        for (id, others) in [(top.id, 2), (middle.id, 1), (lowest.id, 3)] {
            assert_eq!(at.ledger().family_size(id).await.unwrap().documents, others);
        }
    }
}

#[tokio::test]
async fn a_parent_that_ends_again_doubles_no_child_and_a_lost_claim_adds_none() {
    for at in Fixture::both().await {
        let zombie = started(&at).await;
        at.advance(Duration::from_secs(301)).await;
        let parent = at.take(zombie.id).await;
        let late = with_children(zombie.id, 5);
        let written = at.ledger().record_result(zombie.id, zombie.token, &late).await.unwrap();
        assert_eq!(written, WriteResult::ClaimLost);
        assert_eq!(at.row(child_of(parent.id, 0)).await, None, "not by a claim that is lost");
        split(&at, &parent, 2).await;
        let first = at.take(child_of(parent.id, 0)).await;
        end(&at, &first, Some(OutcomeReason::Corrupt)).await;
        assert!(at.reopen(parent.id).await);
        let again = at.take(parent.id).await;
        split(&at, &again, 2).await;
        assert_eq!(at.row(parent.id).await.unwrap().children, Some(2));
        assert_eq!(at.ledger().family_size(first.id).await.unwrap().documents, 2);
        let row = at.row(first.id).await.unwrap();
        assert_eq!(row.reason, Some(OutcomeReason::Corrupt), "ended children stay as they are");
    }
}

fn database_of(at: &Fixture) -> &TestDatabase {
    let Fixture::Postgres { database, .. } = at else { unreachable!("it is Postgres") };
    database
}

async fn execute(database: &TestDatabase, sql: &str) {
    database.pool().execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
}

async fn scalar(database: &TestDatabase, sql: &str) -> String {
    let found: Option<String> =
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(database.pool()).await.unwrap();
    found.unwrap_or_default()
}

#[tokio::test]
async fn maintenance_sends_the_messages_of_children_that_were_not_sent_and_no_others() {
    let at = Fixture::postgres().await;
    let database = database_of(&at);
    let parent = started(&at).await;
    split(&at, &parent, 3).await;
    let [sent, claimed, lost] = [0, 1, 2].map(|position| child_of(parent.id, position));
    at.ledger().note_sent(&[sent]).await.unwrap();
    at.take(claimed).await;
    assert_eq!(parking::unpark(&database.db(), 10).await.unwrap(), [lost]);
    assert_eq!(parking::unpark(&database.db(), 10).await.unwrap(), []);
}

#[tokio::test]
async fn a_child_has_tenant_priority_and_labels_of_its_parent_and_is_no_known_content() {
    let at = Fixture::postgres().await;
    let database = database_of(&at);
    let parent = started(&at).await;
    let own = format!(
        "UPDATE document SET tenant = 'acme', tags = '{{\"mailbox\": \"in\"}}'
             WHERE id = '{document}';
         UPDATE ingestion SET tenant = 'acme', priority = 'high' WHERE id = '{parent}'",
        document = parent.document.id,
        parent = parent.id,
    );
    execute(database, &own).await;
    split(&at, &parent, 1).await;
    let inherited = format!(
        "SELECT concat_ws(' ', d.tenant, i.tenant, i.priority, d.tags->>'mailbox')
         FROM ingestion i JOIN document d ON d.id = i.document_id WHERE i.id = '{}'",
        child_of(parent.id, 0)
    );
    assert_eq!(scalar(database, &inherited).await, "acme acme high in");
    let content = ["c".repeat(64)];
    let known = find_by_sha256(&database.db(), &content, Some("acme")).await.unwrap();
    assert!(known.is_empty(), "handed in by itself it is a document of its own");
}

const TOLD: &str = "SELECT string_agg(event || ' ' || (document_id = '{document}') || ' ' ||
    COALESCE(facts->'children'->>'failed', '-'), ', ' ORDER BY id) FROM webhook_delivery";

#[tokio::test]
async fn a_family_is_told_of_once_when_its_last_member_has_ended_at_whatever_depth() {
    let at = Fixture::postgres().await;
    let database = database_of(&at);
    execute(
        database,
        "INSERT INTO webhook_target (name, place, url_hash) VALUES ('erp', 'x', 'y')",
    )
    .await;
    let top = started(&at).await;
    split(&at, &top, 2).await;
    let [middle, plain] = [0, 1].map(|position| child_of(top.id, position));
    let middle = at.take(middle).await;
    split(&at, &middle, 1).await;
    let plain = at.take(plain).await;
    end(&at, &plain, Some(OutcomeReason::Corrupt)).await;
    let told = TOLD.replace("{document}", &top.document.id.to_string());
    assert_eq!(scalar(database, &told).await, "", "one of them is open");
    let lowest = at.take(child_of(middle.id, 0)).await;
    end(&at, &lowest, None).await;
    let once = "document.completed true 1, document.review_needed true 1";
    assert_eq!(scalar(database, &told).await, once);
    // A child that is tried again and ends otherwise changes the answer.
    assert!(at.reopen(plain.id).await);
    let again = at.take(plain.id).await;
    assert_eq!(scalar(database, &told).await, once);
    end(&at, &again, None).await;
    let twice = format!("{once}, document.completed true 0");
    assert!(scalar(database, &told).await.starts_with(&twice));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_children_that_end_at_the_same_moment_one_tells_of_the_family() {
    let at = Fixture::postgres().await;
    let database = database_of(&at);
    execute(
        database,
        "INSERT INTO webhook_target (name, place, url_hash) VALUES ('erp', 'x', 'y')",
    )
    .await;
    for _ in 0..5 {
        let parent = started(&at).await;
        split(&at, &parent, 8).await;
        let mut children = Vec::new();
        for position in 0..8 {
            children.push(at.take(child_of(parent.id, position)).await);
        }
        let ends = children.iter().map(|child| end(&at, child, None));
        futures::future::join_all(ends).await;
        let told = format!(
            "SELECT count(*)::text FROM webhook_delivery WHERE event = 'document.completed'
             AND document_id = '{}'",
            parent.document.id
        );
        assert_eq!(scalar(database, &told).await, "1");
    }
}

#[tokio::test]
async fn a_family_is_past_its_retention_as_a_whole_and_no_child_before_it() {
    let at = Fixture::postgres().await;
    let database = database_of(&at);
    let by = AuditNote { operator: "ada".to_owned(), why: "asked to".to_owned() };
    erasure::set_retention(&database.db(), "acme", Some(30), &by).await.unwrap();
    let parent = started(&at).await;
    let tenant = format!("UPDATE ingestion SET tenant = 'acme' WHERE id = '{}'", parent.id);
    execute(database, &tenant).await;
    split(&at, &parent, 2).await;
    let [early, late] = [0, 1].map(|position| child_of(parent.id, position));
    let early = at.take(early).await;
    end(&at, &early, None).await;
    let day = Duration::from_secs(24 * 3600);
    at.advance(day * 20).await;
    let late = at.take(late).await;
    end(&at, &late, None).await;
    let doomed = async || {
        let db = database.db();
        let page = erasure::find_tenant_documents(&db, "acme", 30, TenantPosition::START, 100)
            .await
            .unwrap();
        let ids: Vec<DocumentId> = page.documents.iter().map(|document| document.id).collect();
        erasure::doom_expired(&db, &ids).await.unwrap();
        scalar(database, "SELECT count(*)::text FROM doomed_document").await
    };
    at.advance(day * 15).await;
    assert_eq!(doomed().await, "0", "one child ended 15 days ago");
    at.advance(day * 16).await;
    assert_eq!(doomed().await, "3");
}
