//! Ends by hour: counted by maintenance once an hour is over, and never again.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use docmill_core::config::Config;
use docmill_ledger::db::reports::hours::{EndedHour, count_hour, list_ended_hours};
use docmill_operations::janitor::MaintenanceChore;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::maintenance::{maintenance_over, memory_queue};
use crate::support::postgres::TestDatabase;

/// An ingestion that ended so many minutes before the hour that is now, after so many seconds, with a
/// paid attempt.
async fn end_before(database: &TestDatabase, minutes: u32, seconds: u32, outcome: &str) {
    let (status, reason, flagged) = match outcome {
        "completed" => ("completed", "NULL", "false"),
        "flagged" => ("completed", "NULL", "true"),
        "retried" => ("completed", "NULL", "false"),
        "cancelled" => ("cancelled", "'cancelled'", "false"),
        reason => ("failed", reason, "true"),
    };
    let reason = match reason {
        "NULL" | "'cancelled'" => reason.to_owned(),
        other => format!("'{other}'"),
    };
    // A retried one was registered a day earlier; its time runs from the reopening.
    let (days, reopenings) = if outcome == "retried" { (1, 1) } else { (0, 0) };
    let rows = format!(
        "WITH at AS (SELECT date_trunc('hour', docmill_now(), 'UTC') - interval '{minutes} min' AS ended),
         d AS (INSERT INTO document (file_path) VALUES ('documents/' || gen_random_uuid()) RETURNING id),
         i AS (INSERT INTO ingestion (document_id, kind, status, reason, needs_human_review,
                 created_at, completed_at, valid_structured_data)
             SELECT d.id, 'invoice', '{status}', {reason}, {flagged},
                 at.ended - interval '{days} d {seconds} s', at.ended, '{status}' = 'completed'
             FROM d, at RETURNING id, document_id),
         a AS (INSERT INTO attempt (ingestion_id, claims, token, ended_at, outcome, final)
             SELECT i.id, 1, gen_random_uuid(), at.ended, COALESCE({reason}, 'completed'), true FROM i, at),
         o AS (INSERT INTO operator_action (done_at, operator, action, target)
             SELECT at.ended - interval '{seconds} s', 'ann', 'reopen', i.id::text
             FROM i, at, generate_series(1, {reopenings}))
         INSERT INTO spending (ingestion_id, claims, day, provider, document_id, cost_nanos)
         SELECT i.id, 1, (at.ended AT TIME ZONE 'UTC')::date, 'openai', i.document_id, 7 FROM i, at"
    );
    database.pool().execute(AssertSqlSafe(rows)).await.unwrap();
}

async fn count_all(database: &TestDatabase) -> Vec<EndedHour> {
    let maintenance = maintenance_over(database.db(), memory_queue(), &Config::default());
    let pass = maintenance.run_pass(false).await;
    assert!(pass.failed.iter().all(|failed| failed.chore != MaintenanceChore::HourlyCounts));
    list_ended_hours(&database.db(), 24).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_is_counted_once_it_is_over_and_stays_as_it_was_counted() {
    let database = TestDatabase::create().await;
    assert_eq!(count_all(&database).await, [], "nothing has ended yet");
    // Within the hour from three to two hours ago, and one in each of the hours around it.
    for (minutes, seconds, outcome) in [
        (130, 10, "retried"),
        (131, 20, "flagged"),
        (132, 30, "corrupt"),
        (133, 40, "corrupt"),
        (179, 9_000, "cancelled"),
        (180, 100, "timeout"),
        (181, 5, "completed"),
    ] {
        end_before(&database, minutes, seconds, outcome).await;
    }
    let counted = count_all(&database).await;
    let of_hour = |hours: &[EndedHour], place: usize| hours.get(place).cloned().unwrap();
    let (before, hour) = (of_hour(&counted, 0), of_hour(&counted, 1));
    let ends = [before.completed, before.flagged, before.failed, before.cancelled];
    assert_eq!((ends, before.cost_nanos), ([1, 0, 0, 0], 7));
    assert_eq!([hour.completed, hour.flagged, hour.failed, hour.cancelled], [2, 1, 3, 1]);
    assert_eq!(hour.failures, serde_json::json!({ "corrupt": 2, "timeout": 1 }));
    // 10, 20, 30, 40 and 100 seconds: what was cancelled has no outcome.
    assert_eq!((hour.p50_s, hour.p95_s.map(f64::round)), (Some(30.0), Some(88.0)));
    assert_eq!(hour.cost_nanos, 6 * 7);
    let quiet = of_hour(&counted, 2);
    assert_eq!((quiet.completed, quiet.p50_s, quiet.cost_nanos), (0, None, 0), "nothing ended");

    // Reopened, erased and ended again: neither another pass nor another count changes the hour.
    database.pool().execute("DELETE FROM ingestion WHERE reason = 'corrupt'").await.unwrap();
    count_hour(&database.db(), hour.hour).await.unwrap();
    let again = count_all(&database).await;
    assert_eq!(again.iter().find(|it| it.hour == hour.hour), Some(&hour));
    let now = "SELECT count(*) FROM ended_hour
        WHERE hour + interval '1 hour' > docmill_now() - interval '2 minutes'";
    let running: i64 = sqlx::query_scalar(now).fetch_one(database.pool()).await.unwrap();
    assert_eq!(running, 0, "an hour that is not over was counted");
}
