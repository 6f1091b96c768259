//! The bound on silent errors, against a real Postgres: draws in the statement that records an end,
//! decisions about them, levels per tenant, and who sees what.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::time::Duration;

use docmill_core::config::{Config, ReviewConfig, SilentErrorsConfig};
use docmill_core::model::{ClaimToken, DocumentId, IngestionId, IngestionStage, OutcomeReason};
use docmill_gate::kinds::KindSet;
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::db::operators::AuditNote;
use docmill_ledger::{
    ClaimCompany, ClaimOutcome, ClaimRequest, ClaimTerms, IngestionResult, Ledger as _,
    VerdictDetails,
};
use docmill_operations::review::{self, AcceptedData, DataCorrection, DecidingReviewer};
use docmill_operations::silent_errors::{self, BoundStatement};
use docmill_pipeline::verdict;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::maintenance::{maintenance_over, memory_queue};
use crate::support::postgres::TestDatabase;

/// A database, and a worker's ledger that draws.
struct Sampled {
    database: TestDatabase,
    ledger: PostgresLedger,
    config: Config,
}

/// One result of a reader.
#[derive(Clone, Copy)]
struct Reading<'a> {
    tenant: &'a str,
    kind: &'a str,
    score: f32,
    reasons: &'a [&'a str],
}

const SOUND: Reading<'_> = Reading { tenant: "acme", kind: "invoice", score: 0.96, reasons: &[] };

fn invoice(total: f64) -> Value {
    json!({
        "supplier_name": null, "supplier_address": null, "supplier_vat_id": null,
        "invoice_number": "7", "invoice_date": null, "due_date": null, "currency": "EUR",
        "line_items": null, "subtotal": null, "vat_amount": null, "total": total
    })
}

impl Sampled {
    async fn with(share: f64, draws_per_day: u32) -> Self {
        let database = TestDatabase::create().await;
        let silent_errors = SilentErrorsConfig {
            at_most_one_in: BTreeMap::from([("invoice".to_owned(), 100)]),
            share,
            draws_per_day,
            uncounted: Vec::new(),
        };
        let config = Config { silent_errors, ..Config::default() };
        let ledger =
            PostgresLedger::new(database.db()).with_silent_errors(config.silent_errors.clone());
        Self { database, ledger, config }
    }

    async fn run(&self, sql: &str) {
        self.database.pool().execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
    }

    async fn text(&self, sql: &str) -> String {
        let answer = sqlx::query_scalar::<_, Option<String>>(AssertSqlSafe(sql.to_owned()));
        answer.fetch_one(self.database.pool()).await.unwrap().unwrap_or_default()
    }

    /// An ingestion that is completed with this reading.
    async fn complete(&self, reading: Reading<'_>) -> IngestionId {
        let (document, id) = (DocumentId::random(), IngestionId::random());
        let tenant = reading.tenant;
        self.run(&format!(
            "INSERT INTO document (id, file_path, tenant)
                 VALUES ('{document}', 'documents/x.pdf', '{tenant}');
             INSERT INTO ingestion (id, document_id, tenant)
                 VALUES ('{id}', '{document}', '{tenant}')"
        ))
        .await;
        self.record(id, reading).await;
        id
    }

    async fn record(&self, id: IngestionId, reading: Reading<'_>) {
        let terms = ClaimTerms {
            worker: "test".to_owned(),
            lease: Duration::from_secs(300),
            crash_limit: 3,
        };
        let claimed = self
            .ledger
            .claim_with_tokens(&[ClaimRequest::within(id, ClaimCompany::Nobody)], &terms)
            .await
            .unwrap();
        let [ClaimOutcome::Claimed(claimed)] = claimed.as_slice() else { panic!("{claimed:?}") };
        self.write(id, claimed.token, reading).await;
    }

    async fn write(&self, id: IngestionId, token: ClaimToken, reading: Reading<'_>) {
        let data = invoice(21.0).as_object().cloned();
        let failed =
            verdict::early_result(OutcomeReason::Timeout, IngestionStage::Record, String::new());
        let end = IngestionResult {
            reason: None,
            structured_data: data,
            needs_human_review: !reading.reasons.is_empty(),
            review_reasons: reading.reasons.iter().map(|it| (*it).to_owned()).collect(),
            reader: Some("rules".to_owned()),
            kind: Some(reading.kind.to_owned()),
            judged: Some(VerdictDetails {
                score: reading.score,
                grounded: Vec::new(),
                certainty: None,
            }),
            ..failed
        };
        self.ledger.record_result(id, token, &end).await.unwrap();
    }

    async fn reasons(&self, id: IngestionId) -> String {
        let asked = format!(
            "SELECT d.needs_human_review || ' ' || array_to_string(d.review_reasons, ',')
             FROM docmill.document d JOIN docmill.ingestion i ON i.document_id = d.id
             WHERE i.id = '{id}'"
        );
        self.text(&asked).await
    }

    /// The outcome of a draw after a decision: `rejected` and the fields, or nothing.
    async fn look(&self, id: IngestionId) -> String {
        let asked = format!(
            "SELECT rejected || ' ' || array_to_string(changed, ',')
             FROM docmill.drawn_document WHERE ingestion_id = '{id}'"
        );
        self.text(&asked).await
    }

    /// `count` decided draws of a tenant, as decisions left them.
    async fn decided(&self, tenant: &str, count: u32, changed: &str) {
        self.run(&format!(
            "WITH made AS (
                 INSERT INTO docmill.document (id, file_path, tenant)
                 SELECT gen_random_uuid(), 'documents/x.pdf', '{tenant}'
                 FROM generate_series(1, {count}) RETURNING id
             ), read AS (
                 INSERT INTO docmill.ingestion (id, document_id, tenant)
                 SELECT gen_random_uuid(), id, '{tenant}' FROM made RETURNING id, document_id
             )
             INSERT INTO docmill.drawn_document (ingestion_id, document_id, tenant, kind, reader,
                 certainty, drawn_at, revision, decided_at, rejected, changed)
             SELECT id, document_id, '{tenant}', 'invoice', 'rules', 0.96, docmill.docmill_now(), 1,
                 docmill.docmill_now(), false, '{changed}' FROM read;
             UPDATE docmill.certainty_level SET due = true"
        ))
        .await;
    }

    async fn judge(&self) {
        let pass = maintenance_over(self.database.db(), memory_queue(), &self.config);
        let report = pass.run_pass(false).await;
        assert!(report.failed.is_empty(), "{report:?}");
    }

    async fn bounds(&self, tenant: Option<&str>) -> Vec<BoundStatement> {
        let (db, config) = (self.database.db(), &self.config.silent_errors);
        silent_errors::describe_bounds(&db, config, tenant).await.unwrap()
    }

    async fn states(&self) -> Vec<(String, &'static str)> {
        let bounds = self.bounds(None).await.into_iter();
        bounds.map(|bound| (bound.scope.tenant, bound.state)).collect()
    }
}

#[tokio::test]
async fn only_unflagged_documents_of_a_kind_with_a_bound_are_drawn_and_then_wait_for_a_look() {
    let sampled = Sampled::with(1.0, 1000).await;
    for (reading, expected) in [
        (SOUND, "true stated_bound"),
        (Reading { kind: "receipt", ..SOUND }, "false "),
        (Reading { reasons: &["totals"], ..SOUND }, "true totals"),
    ] {
        let id = sampled.complete(reading).await;
        assert_eq!(sampled.reasons(id).await, expected);
    }
    let drawn = sampled.text("SELECT count(*)::text FROM docmill.drawn_document").await;
    assert_eq!(drawn, "1");
    // A document that a person has decided about keeps that, and is not drawn.
    let id = sampled.complete(Reading { kind: "receipt", ..SOUND }).await;
    sampled.run("UPDATE docmill.document SET corrected_at = now()").await;
    let again = IngestionId::random();
    sampled
        .run(&format!(
            "INSERT INTO docmill.ingestion (id, document_id, tenant)
             SELECT '{again}', document_id, tenant FROM docmill.ingestion WHERE id = '{id}'"
        ))
        .await;
    sampled.record(again, SOUND).await;
    assert_eq!(sampled.reasons(again).await, "false ");
}

#[tokio::test]
async fn a_draw_is_by_the_secret_and_the_id_and_no_more_a_day_than_allowed() {
    let sampled = Sampled::with(0.3, 1000).await;
    for _ in 0..120 {
        sampled.complete(SOUND).await;
    }
    // The same draw, made again.
    let wrong = sampled
        .text(
            "SELECT count(*)::text FROM docmill.ingestion i CROSS JOIN docmill.draw_key k
             LEFT JOIN docmill.drawn_document d ON d.ingestion_id = i.id
             WHERE (d.ingestion_id IS NOT NULL) <>
               (('x' || left(encode(sha256(k.secret || uuid_send(i.id)), 'hex'), 8))::bit(32)::bigint
                   < 0.3 * 4294967296)",
        )
        .await;
    let drawn = sampled.text("SELECT count(*)::text FROM docmill.drawn_document").await;
    assert_eq!(wrong, "0");
    assert!((15..=60).contains(&drawn.parse::<u32>().unwrap()), "{drawn} of 120");

    let thrifty = Sampled::with(1.0, 3).await;
    for tenant in ["acme", "acme", "acme", "acme", "acme", "other"] {
        thrifty.complete(Reading { tenant, ..SOUND }).await;
    }
    let by_tenant = "SELECT string_agg(tenant || count, ' ' ORDER BY tenant) FROM (
        SELECT tenant, count(*) FROM docmill.drawn_document GROUP BY tenant) x";
    assert_eq!(thrifty.text(by_tenant).await, "acme3 other1");
}

#[tokio::test]
async fn a_reviewer_sees_no_difference_between_a_drawn_document_and_one_below_the_level() {
    let sampled = Sampled::with(1.0, 1).await;
    let drawn = sampled.complete(SOUND).await;
    sampled
        .run(
            "INSERT INTO docmill.certainty_level (tenant, kind, reader, one_in, state, level)
             VALUES ('acme', 'invoice', 'rules', 100, 'shown', 0.9)",
        )
        .await;
    let below = sampled.complete(Reading { score: 0.85, ..SOUND }).await;
    let above = sampled.complete(SOUND).await;
    let other = sampled.complete(Reading { tenant: "other", score: 0.85, ..SOUND }).await;
    sampled.complete(Reading { tenant: "other", score: 0.85, ..SOUND }).await;
    assert_eq!(sampled.reasons(above).await, "false ");
    assert_eq!(sampled.text("SELECT count(*)::text FROM docmill.drawn_document").await, "2");
    // The day's draw of the other tenant; its level is not this tenant's.
    assert_eq!(sampled.reasons(other).await, "true stated_bound");
    let db = sampled.database.db();
    let mut cases = Vec::new();
    for id in [drawn, below] {
        let case = review::load_case(&db, &id.to_string()).await.unwrap();
        let mut told = serde_json::to_value(&case).unwrap();
        for own in ["document_id", "ingestion_id", "version"] {
            told[own] = Value::Null;
        }
        cases.push(told);
    }
    assert_eq!(cases[0], cases[1]);
}

#[tokio::test]
async fn a_level_flags_documents_of_its_own_tenant_kind_and_reader_alone() {
    let sampled = Sampled::with(1e-9, 1).await;
    sampled
        .run(
            "INSERT INTO docmill.certainty_level (tenant, kind, reader, one_in, state, level)
             VALUES ('acme', 'invoice', 'rules', 100, 'shown', 0.9),
                 ('broken', 'invoice', 'rules', 100, 'broken', 1)",
        )
        .await;
    for (reading, expected) in [
        (Reading { score: 0.85, ..SOUND }, "true stated_bound"),
        (SOUND, "false "),
        (Reading { tenant: "other", score: 0.85, ..SOUND }, "false "),
        (Reading { kind: "receipt", score: 0.85, ..SOUND }, "false "),
        (Reading { tenant: "broken", ..SOUND }, "true stated_bound"),
    ] {
        let id = sampled.complete(reading).await;
        assert_eq!(sampled.reasons(id).await, expected, "{} {}", reading.tenant, reading.kind);
    }
    // Where everything is flagged every document is drawn, whatever the share and the day's budget.
    let drawn = "SELECT string_agg(tenant, ' ') FROM docmill.drawn_document";
    assert_eq!(sampled.text(drawn).await, "broken");
}

#[tokio::test]
async fn a_draw_counts_by_the_decision_that_holds_and_an_undone_one_holds_no_more() {
    let sampled = Sampled::with(1.0, 1000).await;
    let (db, kinds) = (sampled.database.db(), KindSet::load(&sampled.config.kinds).unwrap());
    let rules = ReviewConfig::default();
    let by = |why: &str| DecidingReviewer {
        by: AuditNote { operator: "ann".to_owned(), why: why.to_owned() },
        config: &rules,
        kinds: &kinds,
        take_over: false,
        effort: None,
    };
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(sampled.complete(SOUND).await);
    }
    let [accepted, corrected, rejected] = ids.try_into().unwrap();
    assert_eq!(sampled.look(accepted).await, "", "nobody has decided");
    let case = async |id: IngestionId| review::load_case(&db, &id.to_string()).await.unwrap();
    let data = AcceptedData::Document;
    review::accept_document(&db, &case(accepted).await, data, &by("")).await.unwrap();
    let total = BTreeMap::from([("total".to_owned(), "12.00".to_owned())]);
    let correction = DataCorrection::Fields(total);
    review::correct_document(&db, &case(corrected).await, correction, &by("")).await.unwrap();
    review::reject_document(&db, &case(rejected).await, &by("an advertisement")).await.unwrap();
    assert_eq!(sampled.look(accepted).await, "false ");
    assert_eq!(sampled.look(corrected).await, "false total");
    assert!(sampled.look(rejected).await.starts_with("true "));

    sampled.judge().await;
    let early = sampled.bounds(None).await;
    assert_eq!(
        (early[0].decided, early[0].waiting),
        (0, 3),
        "decisions can be undone for a minute"
    );
    let document = case(corrected).await.document_id;
    let note = by("").by;
    docmill_ledger::db::reviews::decisions::undo_decision(&db, document, &note).await.unwrap();
    assert_eq!(sampled.look(corrected).await, "", "the correction is undone");
    sampled.database.advance(Duration::from_secs(120)).await;
    let bound = sampled.bounds(None).await.remove(0);
    assert_eq!((bound.decided, bound.wrong, bound.waiting), (2, 1, 1));
    assert_eq!((bound.state, bound.level), ("unproven", 0.0), "it stays at the gate as it is");
}

#[tokio::test]
async fn a_tenants_decisions_show_its_own_bound_and_break_it_and_no_other_tenants() {
    let sampled = Sampled::with(1e-9, 1).await;
    sampled.decided("acme", 455, "{}").await;
    sampled.decided("other", 100, "{}").await;
    sampled.judge().await;
    let state = |tenant: &str, state| (tenant.to_owned(), state);
    assert_eq!(sampled.states().await, [state("acme", "shown"), state("other", "unproven")]);
    let own = sampled.bounds(Some("other")).await;
    assert_eq!(own.len(), 1);
    assert_eq!(own[0].levels[0].looks_to_show, Some(355), "it says how many are lacking");

    // Drift at one tenant: its documents are flagged, the other's are not.
    sampled.decided("acme", 12, "{total}").await;
    sampled.judge().await;
    assert_eq!(sampled.states().await, [state("acme", "broken"), state("other", "unproven")]);
    let id = sampled.complete(SOUND).await;
    assert_eq!(sampled.reasons(id).await, "true stated_bound");
    let id = sampled.complete(Reading { tenant: "other", ..SOUND }).await;
    assert_eq!(sampled.reasons(id).await, "false ");
    // Decisions before the alarm count no more; right looks heal it.
    let broken = sampled.bounds(Some("acme")).await.remove(0);
    assert_eq!((broken.alarms, broken.at_most), (1, None));
    sampled.decided("acme", 455, "{}").await;
    sampled
        .run("DELETE FROM docmill.drawn_document WHERE changed = '{total}' OR revision IS NULL")
        .await;
    sampled.judge().await;
    assert_eq!(sampled.states().await[0], state("acme", "shown"));
}

#[tokio::test]
async fn no_login_of_a_reviewer_a_producer_or_a_reader_learns_which_documents_were_drawn() {
    let sampled = Sampled::with(1.0, 10).await;
    sampled.complete(SOUND).await;
    for (role, asked, allowed) in [
        ("docmill_operator", "SELECT ingestion_id FROM docmill.drawn_document", false),
        ("docmill_operator", "SELECT document_id FROM docmill.drawn_document", false),
        ("docmill_operator", "SELECT secret FROM docmill.draw_key", false),
        ("docmill_operator", "UPDATE docmill.certainty_level SET level = 0", false),
        ("docmill_operator", "SELECT kind, certainty, changed FROM docmill.drawn_document", true),
        ("docmill_reader", "SELECT kind FROM docmill.drawn_document", false),
        ("docmill_reader", "SELECT * FROM docmill.certainty_level", true),
        ("docmill_producer", "SELECT kind FROM docmill.drawn_document", false),
        ("docmill_producer", "SELECT secret FROM docmill.draw_key", false),
        ("docmill_worker", "UPDATE docmill.drawn_document SET changed = '{}'", false),
    ] {
        let login = sqlx::PgPool::connect(&sampled.database.login(role).await).await.unwrap();
        let answer = login.execute(AssertSqlSafe(asked.to_owned())).await;
        assert_eq!(answer.is_ok(), allowed, "{role}: {asked}: {answer:?}");
    }
}
