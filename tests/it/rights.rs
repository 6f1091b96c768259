//! The rights of each database role, and their limits; tried by real logins.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Instant;

use docmill_core::config::DatabaseConfig;
use docmill_core::model::{DocumentId, IngestionId};
use docmill_ledger::db::reports::audit::{AuditDefect, check_audit};
use docmill_ledger::db::reports::rights;
use docmill_ledger::db::reports::row_security::require_all_rows;
use docmill_ledger::db::{Db, SchemaVersion};
use docmill_operations::doctor::{self, Severity};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use crate::support::postgres::{TestDatabase, next_migration};
use crate::support::world::SOON;

/// A login of its own in a role.
struct Login {
    session: PgConnection,
}

impl Login {
    async fn create(database: &TestDatabase, role: &str) -> Self {
        let url = database.login(role).await;
        let session = PgConnection::connect(&format!("{url}?options=-csearch_path%3Ddocmill"));
        Self { session: session.await.unwrap() }
    }

    /// SQLSTATE of the refusal; `None`: it was done.
    async fn run(&mut self, sql: &str) -> Option<String> {
        let answer = self.session.execute(AssertSqlSafe(sql.to_owned())).await;
        let error = answer.err()?;
        let code = error.as_database_error().map(|error| error.code().unwrap_or_default());
        Some(code.unwrap_or_else(|| panic!("{sql}: {error}")).into_owned())
    }
}

/// A document of a tenant that has ended long ago.
async fn document(database: &TestDatabase) -> (DocumentId, IngestionId) {
    let (document, ingestion) = (DocumentId::random(), IngestionId::random());
    let sql = format!(
        "INSERT INTO document (id, file_path, tenant) VALUES ('{document}', 'documents/x.pdf', 'victim');
         INSERT INTO ingestion (id, document_id, tenant) VALUES ('{ingestion}', '{document}', 'victim')"
    );
    database.pool().execute(AssertSqlSafe(sql)).await.unwrap();
    (document, ingestion)
}

const REFUSED: Option<&str> = Some("42501");
/// An event that never happened.
const FORGED_EVENT: &str = "INSERT INTO webhook_delivery (target, document_id, event, event_id,
    event_number, occurred_at, facts, state, due_at, open_since)
    VALUES ('x', gen_random_uuid(), 'document.completed', gen_random_uuid(), 1, now(), '{}', 'due',
        now(), now())";

async fn try_all(database: &TestDatabase, role: &str, table: &[(String, Option<&str>)]) {
    let mut login = Login::create(database, role).await;
    for (sql, expected) in table {
        assert_eq!(login.run(sql).await.as_deref(), *expected, "{role}: {sql}");
    }
}

fn row(sql: impl Into<String>, expected: Option<&'static str>) -> (String, Option<&'static str>) {
    (sql.into(), expected)
}

#[tokio::test]
async fn a_producer_adds_rows_reads_results_and_changes_nothing() {
    let database = TestDatabase::create().await;
    let (document_id, ingestion) = document(&database).await;
    let (new, newer) = (DocumentId::random(), IngestionId::random());
    let table = [
        row(
            format!(
                "INSERT INTO document (id, file_path, original_name, size_bytes, tenant, tags)
                 VALUES ('{new}', 'documents/{new}.pdf', 'a.pdf', 3, 'acme', '{{\"a\": \"b\"}}')"
            ),
            None,
        ),
        row(
            format!(
                "INSERT INTO ingestion (id, document_id, kind, tenant, priority)
                 VALUES ('{newer}', '{new}', 'invoice', 'acme', 'high')"
            ),
            None,
        ),
        row(
            "SELECT status, reason, valid_structured_data, needs_human_review, review_reasons,
             structured_data FROM ingestion",
            None,
        ),
        row(
            "SELECT structured_data, needs_human_review, review_reasons, corrected_at FROM document",
            None,
        ),
        // Only the worker may write these.
        row(
            format!(
                "INSERT INTO ingestion (document_id, transcription_file_path)
                 VALUES ('{new}', 'ingestions/{ingestion}/transcription-output.json')"
            ),
            REFUSED,
        ),
        row(
            format!("INSERT INTO document (file_path, sha256) VALUES ('x', '{}')", "0".repeat(64)),
            REFUSED,
        ),
        row("SELECT file_path FROM document", REFUSED),
        row(format!("UPDATE document SET tenant = 'acme' WHERE id = '{document_id}'"), REFUSED),
        row(format!("UPDATE ingestion SET status = 'completed' WHERE id = '{ingestion}'"), REFUSED),
        row("DELETE FROM ingestion", REFUSED),
        row("SELECT * FROM attempt", REFUSED),
        row("SELECT * FROM operator_action", REFUSED),
        row("SELECT erase_expired('{}')", REFUSED),
        row("INSERT INTO pause (scope) VALUES ('all')", REFUSED),
        row("SELECT * FROM webhook_delivery", REFUSED),
        row("SELECT * FROM supplier_memory", REFUSED),
        row("INSERT INTO webhook_target (name, place, url_hash) VALUES ('x', 'y', 'z')", REFUSED),
        row("CREATE TABLE docmill.t (a int)", REFUSED),
    ];
    try_all(&database, "docmill_producer", &table).await;
}

#[tokio::test]
async fn a_worker_obeys_pauses_and_blocks_and_rewrites_nothing_that_operators_did() {
    let database = TestDatabase::create().await;
    let table = [
        row("SELECT * FROM pause, blocked_content, operator_action, erased_ingestion", None),
        row("UPDATE ingestion SET stage = 'fetch'", None),
        row(
            "INSERT INTO operator_action (operator, action, target) VALUES ('x', 'cancel', 'y')",
            REFUSED,
        ),
        row("UPDATE operator_action SET operator = 'somebody else'", REFUSED),
        row("DELETE FROM operator_action", REFUSED),
        row("DELETE FROM pause", REFUSED),
        row("INSERT INTO pause (scope) VALUES ('all')", REFUSED),
        row("DELETE FROM blocked_content", REFUSED),
        row("UPDATE blocked_content SET why = ''", REFUSED),
        row("INSERT INTO erased_ingestion (id) VALUES (gen_random_uuid())", REFUSED),
        row("DELETE FROM document", REFUSED),
        row("DELETE FROM ingestion", REFUSED),
        row("TRUNCATE attempt", REFUSED),
        // Events are written by their cause, and cannot be forged.
        row("INSERT INTO webhook_target (name, place, url_hash) VALUES ('x', 'y', 'z')", None),
        row(
            "SELECT settle_webhook_delivery(1, gen_random_uuid(), true, '1s', '1s', 200, '')",
            None,
        ),
        row("UPDATE webhook_delivery SET state = state, due_at = due_at", None),
        row("DELETE FROM webhook_delivery", None),
        row("SELECT * FROM own_company", None),
        row("UPDATE own_company SET accounts = '{}'", REFUSED),
        row("SELECT * FROM master_supplier, master_supplier_mark, master_order", None),
        row("DELETE FROM master_supplier", REFUSED),
        row("UPDATE ended_hour SET failed = 0", REFUSED),
        row("UPDATE kind_replay SET state = 'waiting', report = NULL", None),
        row("UPDATE kind_replay SET shadow_share = NULL, shadow_report = NULL", None),
        row("UPDATE kind_replay SET files = '{}'", REFUSED),
        row("DELETE FROM kind_replay", REFUSED),
        row("SELECT * FROM console_user", REFUSED),
        row("SELECT * FROM console_token", REFUSED),
        row("SELECT * FROM console_session", REFUSED),
        row("SELECT * FROM saved_view", REFUSED),
        row(FORGED_EVENT, REFUSED),
        row("UPDATE webhook_delivery SET facts = '{}'", REFUSED),
        row("SELECT write_webhook_event('x', gen_random_uuid(), NULL, NULL, '{}')", REFUSED),
    ];
    try_all(&database, "docmill_worker", &table).await;
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one line for each statement")]
async fn the_operator_role_can_steer_but_neither_rewrite_history_nor_erase() {
    let database = TestDatabase::create().await;
    let (document_id, ingestion) = document(&database).await;
    let table = [
        row("SELECT * FROM ops_in_flight, attempt, quarantined_message, spending", None),
        row("INSERT INTO pause (scope, name) VALUES ('tenant', 'victim')", None),
        row("DELETE FROM pause", None),
        row(format!("INSERT INTO blocked_content (sha256) VALUES ('{}')", "0".repeat(64)), None),
        row("DELETE FROM blocked_content", None),
        row("INSERT INTO own_company (name, set_by) VALUES ('Acme GmbH', 'ann')", None),
        row("DELETE FROM own_company", None),
        row("DELETE FROM ended_hour", REFUSED),
        row("DELETE FROM kind_replay", None),
        row("UPDATE kind_replay SET report = '{}'", REFUSED),
        row("INSERT INTO master_supplier (number, name) VALUES ('1', 'A')", None),
        row("UPDATE master_supplier SET accounts = '{}'", REFUSED),
        row("DELETE FROM master_supplier; DELETE FROM master_order", None),
        row(
            format!(
                "UPDATE ingestion SET status = 'cancelled', reason = 'cancelled',
                     completed_at = docmill_now() WHERE id = '{ingestion}'"
            ),
            None,
        ),
        row(
            format!(
                "UPDATE document SET structured_data = '{{}}', corrected_at = docmill_now(),
                     corrected_by = 'ann' WHERE id = '{document_id}'"
            ),
            None,
        ),
        row(
            "INSERT INTO operator_action (operator, action, target) VALUES ('ann', 'cancel', 'y')",
            None,
        ),
        row(
            format!(
                "INSERT INTO document_revision (document_id, reviewer, decision, reasons_before)
                     VALUES ('{document_id}', 'ann', 'rejected', '{{}}')"
            ),
            None,
        ),
        row("UPDATE document_revision SET reviewer = 'bob'", REFUSED),
        row(
            format!(
                "INSERT INTO review_lease (document_id, reviewer, page, taken_at, expires_at)
                     VALUES ('{document_id}', 'ann', gen_random_uuid(), now(), now())"
            ),
            None,
        ),
        row("DELETE FROM review_lease; DELETE FROM review_draft; DELETE FROM review_later", None),
        row("DELETE FROM document_revision", REFUSED),
        row("SELECT replay_webhook_delivery(1), give_up_webhook_delivery(1, '')", None),
        row("UPDATE webhook_target SET disabled_at = NULL", None),
        row("DELETE FROM webhook_delivery", REFUSED),
        row("UPDATE idempotency_key SET answer = '{}', kept_at = now()", None),
        row("UPDATE idempotency_key SET visitor = 'bob'", REFUSED),
        row(FORGED_EVENT, REFUSED),
        row("UPDATE webhook_delivery SET document_id = document_id", REFUSED),
        row("UPDATE operator_action SET operator = 'bob'", REFUSED),
        row("DELETE FROM operator_action", REFUSED),
        row("TRUNCATE operator_action", REFUSED),
        row("DELETE FROM document", REFUSED),
        row("DELETE FROM ingestion", REFUSED),
        row(
            "INSERT INTO console_user (name, role, made_by) VALUES ('carl', 'viewer', 'ann');
             UPDATE console_user SET role = 'reviewer', ended_at = NULL",
            None,
        ),
        row("UPDATE console_user SET made_by = 'bob'", REFUSED),
        row("DELETE FROM console_user", REFUSED),
        row(
            "INSERT INTO console_token (user_name, sha256, made_by)
                 VALUES ('carl', sha256('x'), 'ann');
             UPDATE console_token SET revoked_at = now(), revoked_by = 'ann', last_used_at = now()",
            None,
        ),
        row("UPDATE console_token SET sha256 = sha256('y')", REFUSED),
        row("UPDATE console_token SET user_name = 'carl'", REFUSED),
        row("DELETE FROM console_token", REFUSED),
        row(
            "INSERT INTO console_session (id_hash, token_hash) VALUES (sha256('a'), sha256('x'));
             UPDATE console_session SET used_at = now(); DELETE FROM console_session",
            None,
        ),
        row("UPDATE console_session SET token_hash = sha256('y')", REFUSED),
        row(
            "INSERT INTO saved_view (owner, list, name, query) VALUES ('a', 'reviews', 'x', 'y');
             UPDATE saved_view SET query = 'z', saved_at = now(); DELETE FROM saved_view",
            None,
        ),
        row("UPDATE saved_view SET owner = 'bob'", REFUSED),
        row("INSERT INTO tenant_retention (tenant, days) VALUES ('victim', 1)", REFUSED),
        row("SELECT erase_expired('{}')", REFUSED),
        row("CREATE TABLE docmill.t (a int)", REFUSED),
    ];
    try_all(&database, "docmill_operator", &table).await;
}

#[tokio::test]
async fn a_reader_reads_and_does_nothing_else() {
    let database = TestDatabase::create().await;
    let table = [
        row("SELECT * FROM ops_in_flight, ops_failures, ops_review, operator_action, pause", None),
        row(
            "SELECT * FROM document_revision, webhook_delivery, webhook_target, review_lease",
            None,
        ),
        row("DELETE FROM review_lease", REFUSED),
        row("SELECT form FROM review_draft", REFUSED),
        row("SELECT * FROM console_user, console_token, saved_view", None),
        row("SELECT * FROM console_session", REFUSED),
        row("UPDATE console_token SET last_used_at = now()", REFUSED),
        row("UPDATE webhook_delivery SET state = 'dead'", REFUSED),
        row("SELECT replay_webhook_delivery(1)", None),
        row("UPDATE ingestion SET stage = 'fetch'", REFUSED),
        row(
            "INSERT INTO operator_action (operator, action, target) VALUES ('x', 'cancel', 'y')",
            REFUSED,
        ),
        row("INSERT INTO document (file_path) VALUES ('x')", REFUSED),
        row("DELETE FROM pause", REFUSED),
        row("SELECT erase_expired('{}')", REFUSED),
    ];
    try_all(&database, "docmill_reader", &table).await;
}

#[tokio::test]
async fn a_workers_own_temporary_table_gives_it_no_right_to_erase() {
    let database = TestDatabase::create().await;
    let (document_id, ingestion) = document(&database).await;
    let end = format!(
        "UPDATE ingestion SET status = 'cancelled', reason = 'cancelled',
             completed_at = docmill_now() WHERE id = '{ingestion}'"
    );
    database.pool().execute(AssertSqlSafe(end)).await.unwrap();
    let mut login = Login::create(&database, "docmill_worker").await;
    let erase = format!("SELECT erase_expired(ARRAY['{document_id}'::uuid])");
    for sql in [
        "CREATE TEMP TABLE tenant_retention (tenant text, days int)",
        "INSERT INTO pg_temp.tenant_retention VALUES ('victim', -36500)",
        &erase,
    ] {
        assert_eq!(login.run(sql).await, None, "{sql}");
    }
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM document WHERE id = $1")
        .bind(document_id.0)
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert_eq!(left, 1, "a document of a tenant without a retention was erased");
}

#[tokio::test]
async fn a_row_of_the_audit_that_is_changed_or_removed_shows_and_one_erased_by_right_is_told() {
    let database = TestDatabase::create().await;
    let db = database.db();
    let mut login = Login::create(&database, "docmill_operator").await;
    let act = |target: &str| {
        format!(
            "INSERT INTO operator_action (operator, login, action, target)
             VALUES ('somebody', 'somebody', 'block', '{target}')"
        )
    };
    for target in ["a", "b", "c", "d", "e"] {
        assert_eq!(login.run(&act(target)).await, None);
    }
    let forgeries = ["DELETE FROM operator_action", "DELETE FROM audit_link"];
    let repairs =
        ["UPDATE audit_link SET erased_by = 'x'", "SELECT link_audit_row('operator_action', 1)"];
    for refused in forgeries.into_iter().chain(repairs) {
        assert_eq!(login.run(refused).await.as_deref(), REFUSED, "{refused}");
    }
    let writers: Vec<String> = sqlx::query_scalar("SELECT DISTINCT login FROM operator_action")
        .fetch_all(database.pool())
        .await
        .unwrap();
    assert!(matches!(&writers[..], [one] if one.starts_with("login_")), "{writers:?}");
    let whole = check_audit(&db, None).await.unwrap();
    assert!(whole.is_whole() && (whole.links, whole.erased) == (5, 0), "{whole:?}");
    let head = whole.head.unwrap();
    // By the owner: with the triggers, without them, and in the chain itself.
    let replica = "SET LOCAL session_replication_role = replica";
    for (sql, links, erased, found) in [
        ("DELETE FROM operator_action WHERE target = 'e'", 5, 1, vec![]),
        ("DELETE FROM operator_action WHERE target = 'b'; -- ", 5, 1, vec![AuditDefect::Removed]),
        (
            "UPDATE operator_action SET why = 'better' WHERE target = 'c'",
            5,
            1,
            vec![AuditDefect::Removed, AuditDefect::Changed],
        ),
        (
            "DELETE FROM audit_link WHERE row_id = (SELECT id FROM operator_action WHERE target = 'a')",
            4,
            1,
            vec![AuditDefect::Broken, AuditDefect::Changed, AuditDefect::Unlinked],
        ),
    ] {
        let past = if sql.ends_with("-- ") { replica } else { "SELECT 1" };
        database
            .pool()
            .execute(AssertSqlSafe(format!("BEGIN; {past}; {sql}\n; COMMIT")))
            .await
            .unwrap();
        let check = check_audit(&db, Some(&head)).await.unwrap();
        let defects: Vec<_> = check.findings.iter().map(|finding| finding.defect).collect();
        assert_eq!((check.links, check.erased, &defects), (links, erased, &found), "{sql}");
        assert_eq!((check.is_whole(), check.has_known_head), (found.is_empty(), Some(true)));
    }
    database.pool().execute("DELETE FROM audit_link WHERE erased_at IS NOT NULL").await.unwrap();
    let cut = check_audit(&db, Some(&head)).await.unwrap();
    assert_eq!((cut.has_known_head, cut.is_whole()), (Some(false), false), "the end was cut off");
}

#[tokio::test]
async fn a_producer_bound_by_the_documented_policies_sees_and_adds_one_tenants_rows_alone() {
    let database = TestDatabase::create().await;
    let (victims, _) = document(&database).await;
    let mut login = Login::create(&database, "docmill_producer").await;
    let name: String = sqlx::query_scalar("SELECT session_user::text")
        .fetch_one(&mut login.session)
        .await
        .unwrap();
    let page = include_str!("../../docs/guides/producers.md");
    let policies = page.split("```sql\n").find(|block| block.contains("producer_tenant")).unwrap();
    let policies = policies.split("```").next().unwrap().replace("acme_producer", &name);
    database.pool().execute(AssertSqlSafe(policies)).await.unwrap();
    let own = DocumentId::random();
    let add = |document: DocumentId, tenant: &str| {
        format!("INSERT INTO ingestion (document_id, tenant) VALUES ('{document}', {tenant})")
    };
    let put = |id: DocumentId, tenant: &str| {
        format!("INSERT INTO document (id, file_path, tenant) VALUES ('{id}', 'x', {tenant})")
    };
    for (sql, expected) in [
        (put(own, "'acme'"), None),
        (add(own, "'acme'"), None),
        (put(DocumentId::random(), "'victim'"), REFUSED),
        (put(DocumentId::random(), "NULL"), REFUSED),
        (add(victims, "NULL"), REFUSED),
        (add(victims, "'victim'"), REFUSED),
        (add(victims, "'acme'"), Some("23514")),
        ("SELECT structured_data FROM document_as_before".to_owned(), REFUSED),
        (format!("INSERT INTO document_password VALUES ('{victims}', 'x')"), REFUSED),
    ] {
        assert_eq!(login.run(&sql).await.as_deref(), expected, "{sql}");
    }
    for table in ["document", "ingestion"] {
        let seen: i64 = sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(id) FROM {table}")))
            .fetch_one(&mut login.session)
            .await
            .unwrap();
        assert_eq!(seen, 1, "{table}: its own alone");
    }
    for role in ["docmill_worker", "docmill_operator", "docmill_reader"] {
        let config = DatabaseConfig { url: database.login(role).await.into(), ..database.config() };
        require_all_rows(&Db::connect(&config).await.unwrap()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_sees_some_documents_only_does_not_start_and_doctor_says_why() {
    let world = crate::support::world::World::new().await;
    let login = world.database.login("docmill_worker").await;
    let config = DatabaseConfig { url: login.clone().into(), ..world.database.config() };
    let db = Db::connect(&config).await.unwrap();
    let rows = async || {
        let found = doctor::database::check(&db).await;
        found.into_iter().find(|finding| finding.check == "database.rows").unwrap()
    };
    assert_eq!(rows().await.verdict, Severity::Ok);
    let open = "CREATE POLICY docmill ON docmill.ingestion TO docmill_worker, docmill_operator, \
                docmill_reader USING (true) WITH CHECK (true)";
    for (sql, verdict) in [
        ("ALTER TABLE docmill.ingestion ENABLE ROW LEVEL SECURITY", Severity::Wrong),
        ("CREATE POLICY own ON docmill.ingestion USING (tenant = 'acme')", Severity::Wrong),
        (open, Severity::Ok),
        (
            "CREATE POLICY not_all ON docmill.ingestion AS RESTRICTIVE USING (tenant = 'acme')",
            Severity::Wrong,
        ),
    ] {
        world.execute(sql).await;
        let found = rows().await;
        assert_eq!(found.verdict, verdict, "{sql}: {found:?}");
        assert!(verdict == Severity::Ok || found.advice.as_deref() == Some(open), "{found:?}");
    }
    let settings = [("DATABASE__URL", login.as_str())];
    let worker = crate::support::process::docmill(&world, &["worker"], &settings);
    let mut worker = tokio::process::Command::from(worker);
    let started = tokio::time::timeout(SOON, worker.kill_on_drop(true).output()).await;
    let started = started.unwrap().unwrap();
    let said = String::from_utf8_lossy(&started.stderr);
    assert!(!started.status.success() && said.contains("row-level security hides rows"), "{said}");
}

#[tokio::test]
async fn every_function_with_its_owners_rights_looks_for_temporary_tables_last() {
    let database = TestDatabase::create().await;
    let paths: Vec<(String, Option<String>)> = sqlx::query_as(
        "SELECT p.proname::text,
             (SELECT c FROM unnest(p.proconfig) AS c WHERE c LIKE 'search_path=%')
         FROM pg_proc p
         WHERE p.pronamespace = 'docmill'::regnamespace AND (p.prosecdef
             OR p.prorettype = 'trigger'::regtype OR p.proname = 'document_tenant')",
    )
    .fetch_all(database.pool())
    .await
    .unwrap();
    for called in [
        "erase_expired",
        "doom_expired",
        "document_tenant",
        "add_to_spending_day",
        "write_webhook_event",
    ] {
        assert!(paths.iter().any(|(name, _)| name == called), "{called} is not in {paths:?}");
    }
    for (name, path) in paths {
        let path = path.unwrap_or_default();
        assert!(path.ends_with(", pg_temp"), "{name} has {path:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_of_a_busy_table_lets_other_sessions_through_and_completes() {
    let database = TestDatabase::create().await;
    let (_, ingestion) = document(&database).await;
    let altering = next_migration("ALTER TABLE ingestion ADD COLUMN later text", false);
    let mut reader = database.pool().begin().await.unwrap();
    reader.execute("SELECT count(*) FROM ingestion").await.unwrap();
    let db = database.db();
    let migrating = tokio::spawn(async move { db.apply_migrations(&altering).await });
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND datname = current_database()";
    let deadline = Instant::now() + SOON;
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(database.pool()).await.unwrap() == 0 {
        assert!(Instant::now() < deadline, "the migration does not wait for the table");
    }
    // A claim, while the reader still reads and the migration wants the table for itself.
    let claim = sqlx::query("UPDATE ingestion SET stage = 'fetch' WHERE id = $1")
        .bind(ingestion.0)
        .execute(database.pool());
    let claimed = tokio::time::timeout(SOON, claim).await;
    assert!(claimed.is_ok(), "it queues behind a migration that waits");
    reader.commit().await.unwrap();
    migrating.await.unwrap().unwrap();
    assert_eq!(database.db().schema_version().await.unwrap(), SchemaVersion::Newer);
}

#[tokio::test]
async fn the_rights_that_doctor_asks_for_are_those_that_the_migrations_grant() {
    let database = TestDatabase::create().await;
    for (role, rights) in
        [("docmill_worker", rights::WORKER_RIGHTS), ("docmill_operator", rights::OPERATOR_RIGHTS)]
    {
        let sql = format!(
            "SELECT DISTINCT privilege_type || ' ON ' || relname FROM (
                 SELECT c.relname, a.privilege_type, a.grantee FROM pg_class c,
                     aclexplode(c.relacl) a WHERE c.relnamespace = 'docmill'::regnamespace
                 UNION ALL
                 SELECT c.relname, a.privilege_type, a.grantee
                 FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a
                 WHERE c.relnamespace = 'docmill'::regnamespace) AS granted
             WHERE grantee = '{role}'::regrole ORDER BY 1"
        );
        let granted: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(database.pool()).await.unwrap();
        let mut known: Vec<String> = rights
            .iter()
            .flat_map(|(right, on)| on.iter().map(move |relation| format!("{right} ON {relation}")))
            .collect();
        known.sort();
        assert_eq!(known, granted, "{role}");
    }
}

#[tokio::test]
async fn doctor_is_right_about_a_login_in_each_role() {
    let database = TestDatabase::create().await;
    for (role, verdict, words) in [
        ("docmill_worker", Severity::Ok, "what a worker does and no more"),
        ("docmill_operator", Severity::Ok, "what the console and operators do"),
        ("docmill_reader", Severity::Warn, "is in docmill_reader"),
        ("docmill_producer", Severity::Warn, "is in docmill_producer"),
    ] {
        let config = DatabaseConfig { url: database.login(role).await.into(), ..database.config() };
        let db = Db::connect(&config).await.unwrap();
        let findings = doctor::database::check(&db).await;
        let roles = findings.iter().find(|finding| finding.check == "database.roles").unwrap();
        assert_eq!(roles.verdict, verdict, "{role}: {roles:?}");
        assert!(roles.found.contains(words), "{role}: {roles:?}");
    }
}

#[tokio::test]
async fn doctor_names_the_right_that_a_role_has_lost_and_how_it_gets_it_back() {
    let database = TestDatabase::create().await;
    database.pool().execute("REVOKE DELETE ON docmill.batch FROM docmill_worker").await.unwrap();
    let url = database.login("docmill_worker").await;
    let db = Db::connect(&DatabaseConfig { url: url.into(), ..database.config() }).await.unwrap();
    let findings = doctor::database::check(&db).await;
    let roles = findings.iter().find(|finding| finding.check == "database.roles").unwrap();
    assert_eq!(roles.verdict, Severity::Wrong, "{roles:?}");
    assert!(roles.advice.as_deref().unwrap().contains("GRANT DELETE ON batch TO docmill_worker"));
}

#[tokio::test]
async fn an_ingestion_has_the_tenant_of_its_document_and_a_kind_that_is_a_name() {
    let database = TestDatabase::create().await;
    let (document_id, ingestion) = document(&database).await;
    let (nobodys, first) = (DocumentId::random(), IngestionId::random());
    let add = |document: DocumentId, tenant: &str, kind: &str| {
        format!(
            "INSERT INTO ingestion (document_id, tenant, kind) VALUES ('{document}', {tenant}, {kind})"
        )
    };
    let refused = Some("23514");
    let table = [
        row(add(document_id, "'evil'", "NULL"), refused),
        row(add(document_id, "'victim'", "'invoice'"), None),
        row(add(document_id, "NULL", "NULL"), None),
        row(add(document_id, "NULL", "'/etc/profile.d/x'"), refused),
        row(add(document_id, "NULL", "'..'"), refused),
        row(add(document_id, "NULL", "''"), refused),
        row(
            format!("INSERT INTO document (id, file_path) VALUES ('{nobodys}', 'documents/y')"),
            None,
        ),
        row(
            format!(
                "INSERT INTO ingestion (id, document_id, tenant) VALUES ('{first}', '{nobodys}', 'a')"
            ),
            None,
        ),
        row(add(nobodys, "'b'", "NULL"), refused),
    ];
    try_all(&database, "docmill_producer", &table).await;
    let of_worker = [
        row(format!("UPDATE ingestion SET tenant = 'evil' WHERE id = '{ingestion}'"), refused),
        row(format!("UPDATE ingestion SET kind = 'a/b' WHERE id = '{ingestion}'"), refused),
        row(format!("UPDATE document SET tenant = 'b' WHERE id = '{nobodys}'"), refused),
        row(format!("UPDATE document SET tenant = 'a' WHERE id = '{nobodys}'"), None),
    ];
    try_all(&database, "docmill_worker", &of_worker).await;
    let sql =
        "SELECT count(*) FROM docmill.ingestion i JOIN docmill.document d ON d.id = i.document_id
        WHERE i.tenant IS DISTINCT FROM d.tenant";
    let unlike: i64 = sqlx::query_scalar(sql).fetch_one(database.pool()).await.unwrap();
    assert_eq!(unlike, 0);
}
