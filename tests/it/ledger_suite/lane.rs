//! The batch lane in Postgres: who may put a question into it, and who hands a batch in.

use std::time::Duration;

use docmill_core::model::{ClaimToken, IngestionId, ModelUsage};
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::db::lanes::batches::{
    AnswerCost, BatchRoute, GatherTerms, gather_batch, leave_request, list_due, note_handle,
    note_late_answer, note_try, renew_try, settle_answer,
};
use docmill_ledger::{AttemptLedger, BatchEntry, WriteResult};

use super::locks::{insert, take_all};
use crate::support::postgres::TestDatabase;

fn question(id: IngestionId) -> BatchEntry {
    BatchEntry {
        id,
        request: "ab".repeat(32),
        provider: "openai".to_owned(),
        model: "m".to_owned(),
        place: "https://example.com".to_owned(),
        bytes: 10,
        deadline: Duration::from_secs(3600),
        reserved_nanos: 7,
    }
}

fn route() -> BatchRoute {
    let BatchEntry { provider, model, place, .. } = question(IngestionId::random());
    BatchRoute { provider, model, place }
}

/// A question of one claimed ingestion waits in the lane; `token`: under which it was entered.
async fn enter(
    database: &TestDatabase,
    token: impl FnOnce(ClaimToken) -> ClaimToken,
) -> WriteResult {
    let ledger = PostgresLedger::new(database.db());
    let ids = insert(database, 1).await;
    let own = take_all(&ledger, &ids).await.pop().unwrap();
    let id = ids.first().copied().unwrap();
    ledger.enter_batch_lane(token(own), &question(id)).await.unwrap()
}

#[tokio::test]
async fn invariant_2_nothing_enters_the_batch_lane_or_is_reserved_under_a_token_not_in_the_row() {
    let database = TestDatabase::create().await;
    let entered = enter(&database, |_own| ClaimToken::random()).await;
    assert_eq!(entered, WriteResult::ClaimLost);
    let left = "SELECT (SELECT count(*) FROM batch_request) + (SELECT count(*) FROM spending)";
    let count = sqlx::query_scalar::<_, i64>(left).fetch_one(database.pool()).await.unwrap();
    assert_eq!(count, 0, "nothing waits, and nothing is reserved");
    assert_eq!(enter(&database, |own| own).await, WriteResult::Applied);
}

async fn gather(database: &TestDatabase, name: &str) {
    let terms = GatherTerms {
        least: 1,
        requests: 10,
        bytes: 1 << 20,
        oldest: Duration::ZERO,
        pause: Duration::ZERO,
    };
    let gathered = gather_batch(&database.db(), &route(), terms, name).await.unwrap();
    assert_eq!(gathered, Some(1));
}

#[tokio::test]
async fn an_answer_is_settled_and_booked_once_even_if_late_or_read_again() {
    let database = TestDatabase::create().await;
    let db = database.db();
    let cost = AnswerCost {
        usage: ModelUsage { input: 3, ..ModelUsage::default() },
        cost_nanos: Some(5),
        saved_nanos: 5,
    };
    enter(&database, |own| own).await;
    gather(&database, "one").await;
    let settled = [
        settle_answer(&db, "one-0", &cost).await.unwrap(),
        settle_answer(&db, "one-0", &cost).await.unwrap(),
    ];
    assert_eq!(settled, [true, false]);
    assert!(!leave_request(&db, "one-0", "too late").await.unwrap(), "it is settled");

    enter(&database, |own| own).await;
    gather(&database, "two").await;
    assert!(!note_late_answer(&db, "two-0", &cost).await.unwrap(), "nobody has taken its place");
    assert!(leave_request(&db, "two-0", "a test").await.unwrap());
    assert!(
        !settle_answer(&db, "two-0", &cost).await.unwrap(),
        "a direct call has taken its place"
    );
    let noted = [
        note_late_answer(&db, "two-0", &cost).await.unwrap(),
        note_late_answer(&db, "two-0", &cost).await.unwrap(),
    ];
    assert_eq!(noted, [true, false]);
    let booked = "SELECT concat_ws(' ', sum(batch_calls), sum(late_calls), sum(input_tokens))
        FROM spending";
    let booked = sqlx::query_scalar::<_, String>(booked).fetch_one(database.pool()).await.unwrap();
    assert_eq!(booked, "2 1 6");
}

#[tokio::test]
async fn of_two_that_hand_a_batch_in_at_once_one_does() {
    let database = TestDatabase::create().await;
    let (db, route) = (database.db(), route());
    enter(&database, |own| own).await;
    gather(&database, "batch").await;
    // Two leaders at once, as after a lead that expired while its holder was frozen.
    let seen = [list_due(&db, &route).await.unwrap(), list_due(&db, &route).await.unwrap()];
    let first = note_try(&db, &seen[0][0]).await.unwrap().unwrap();
    assert_eq!(note_try(&db, &seen[1][0]).await.unwrap(), None, "both saw that there was none");
    let again = list_due(&db, &route).await.unwrap();
    let later = note_try(&db, &again[0]).await.unwrap();
    let later = later.expect("whoever has seen the first try may try again");
    assert_eq!(renew_try(&db, &first, Some("file")).await.unwrap(), None, "a later one has begun");
    let renewed = renew_try(&db, &later, Some("file")).await.unwrap().unwrap();
    assert_eq!(renew_try(&db, &later, None).await.unwrap(), None, "a try is renewed once");
    assert_eq!(list_due(&db, &route).await.unwrap()[0].input.as_deref(), Some("file"));
    let kept = [
        note_handle(&db, "batch", "one", Duration::ZERO).await.unwrap(),
        note_handle(&db, "batch", "one", Duration::ZERO).await.unwrap(),
        note_handle(&db, "batch", "other", Duration::ZERO).await.unwrap(),
    ];
    assert_eq!(kept, [true, true, false], "a batch has one name at the vendor's");
    assert_eq!(renew_try(&db, &renewed, None).await.unwrap(), None, "it is handed in");
}
