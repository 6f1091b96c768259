//! Decisions of reviewers, against a real Postgres.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod together;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use docmill_core::config::{KindsConfig, ReviewConfig};
use docmill_core::fault::{Error, Fault};
use docmill_core::model::{DocumentId, IngestionId};
use docmill_gate::kinds::KindSet;
use docmill_ledger::db::operators::AuditNote;
use docmill_operations::review::{
    self, AcceptedData, DataCorrection, DecidingReviewer, DecisionRefusal, ReviewCase,
    ReviewDecision, ReviewFilter, ReviewOrder,
};
use docmill_storage::ObjectStore as _;
use docmill_storage::memory::MemoryStore;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::support::postgres::TestDatabase;

static USUAL: LazyLock<ReviewConfig> = LazyLock::new(ReviewConfig::default);
static KINDS: LazyLock<KindSet> = LazyLock::new(|| KindSet::load(&KindsConfig::default()).unwrap());

/// A database with documents that a gate refused.
struct ReviewDesk {
    database: TestDatabase,
}

/// All fields of an invoice; the total is given, the others are unknown.
fn invoice(total: f64) -> Value {
    json!({
        "supplier_name": null, "supplier_address": null, "supplier_vat_id": null,
        "invoice_number": "7", "invoice_date": null, "due_date": null, "currency": "EUR",
        "line_items": null, "subtotal": null, "vat_amount": null, "total": total
    })
}

impl ReviewDesk {
    async fn open() -> Self {
        Self { database: TestDatabase::create().await }
    }

    async fn run(&self, sql: String) {
        self.database.pool().execute(AssertSqlSafe(sql)).await.unwrap();
    }

    /// A document whose ingestion ended `gate_refused` with this data.
    async fn refused(&self, tenant: &str, data: &Value) -> (DocumentId, IngestionId) {
        let (document, ingestion) = (DocumentId::random(), IngestionId::random());
        self.run(format!(
            "INSERT INTO document (id, file_path, tenant)
                 VALUES ('{document}', 'documents/x.pdf', '{tenant}');
             INSERT INTO ingestion (id, document_id, tenant, kind)
                 VALUES ('{ingestion}', '{document}', '{tenant}', 'invoice')"
        ))
        .await;
        self.end(ingestion, "failed", data).await;
        (document, ingestion)
    }

    /// The ingestion ends with this data, as a worker would write it.
    async fn end(&self, ingestion: IngestionId, status: &str, data: &Value) {
        let failed = status == "failed";
        let reason = if failed { "'gate_refused'" } else { "NULL" };
        let valid = !failed;
        self.run(format!(
            "UPDATE ingestion SET status = '{status}', reason = {reason},
                 completed_at = docmill_now(), valid_structured_data = {valid},
                 needs_human_review = {failed},
                 review_reasons = CASE WHEN {failed} THEN ARRAY['totals'] ELSE '{{}}' END,
                 structured_data = '{data}' WHERE id = '{ingestion}'"
        ))
        .await;
    }

    async fn case(&self, ingestion: IngestionId) -> ReviewCase {
        review::load_case(&self.database.db(), &ingestion.to_string()).await.unwrap()
    }

    async fn waiting(&self, wanted: &ReviewFilter) -> Vec<String> {
        let rows = review::list_reviews(&self.database.db(), wanted, 10, None).await.unwrap();
        rows.into_iter().map(|row| row.document_id.to_string()).collect()
    }

    async fn correct(
        &self,
        case: &ReviewCase,
        correction: DataCorrection,
    ) -> Result<review::RecordedDecision, DecisionRefusal> {
        let db = self.database.db();
        review::correct_document(&db, case, correction, &ann("")).await
    }
}

/// A reviewer under the default rules.
fn ann(why: &str) -> DecidingReviewer<'static> {
    reviewer("ann", &USUAL, why)
}

/// The same for others and by other rules.
fn reviewer<'a>(name: &str, config: &'a ReviewConfig, why: &str) -> DecidingReviewer<'a> {
    let by = AuditNote { operator: name.to_owned(), why: why.to_owned() };
    DecidingReviewer { by, config, kinds: &KINDS, take_over: false, effort: None }
}

fn total(text: &str) -> DataCorrection {
    DataCorrection::Fields(BTreeMap::from([("total".to_owned(), text.to_owned())]))
}

#[tokio::test]
async fn a_correction_is_carried_by_the_document_kept_with_what_was_before_and_never_overwritten() {
    let desk = ReviewDesk::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    let case = desk.case(ingestion).await;
    assert_eq!((case.needs_human_review, &case.document_data), (true, &None));
    let done = desk.correct(&case, total("12.00")).await.unwrap();
    assert_eq!((done.decision, done.data), (ReviewDecision::Corrected, Some(invoice(12.0))));

    let after = desk.case(ingestion).await;
    assert_eq!(after.document_data, Some(invoice(12.0)));
    assert!(!after.needs_human_review && after.review_reasons.is_empty());
    let first = &after.revisions[0];
    assert_eq!((first.reviewer.as_str(), first.decision.as_str()), ("ann", "corrected"));
    assert!(first.changed_fields.contains(&"total".to_owned()), "{first:?}");
    assert_eq!(desk.waiting(&ReviewFilter::default()).await, Vec::<String>::new());

    // A later ingestion reads something else.
    let later = IngestionId::random();
    desk.run(format!(
        "INSERT INTO ingestion (id, document_id, kind) VALUES ('{later}', '{document}', 'invoice')"
    ))
    .await;
    desk.end(later, "completed", &invoice(21.0)).await;
    let again = desk.case(later).await;
    assert_eq!(again.document_data, Some(invoice(12.0)), "a person's word stands");
    assert_eq!(again.review_reasons, ["differs_from_correction"]);
    let db = desk.database.db();
    let newest = review::accept_document(&db, &again, AcceptedData::Newest, &ann("")).await;
    assert_eq!(newest.unwrap().data, Some(invoice(21.0)));
    assert_eq!(desk.case(later).await.revisions.pop().unwrap().changed_fields, ["total"]);
    let kept = "SELECT data_before ->> 'total' || ' ' || (data_after ->> 'total')
        FROM docmill.document_revision ORDER BY id DESC LIMIT 1";
    let kept: String = sqlx::query_scalar(kept).fetch_one(desk.database.pool()).await.unwrap();
    assert_eq!(kept, "12.0 21.0");
}

#[tokio::test]
async fn data_that_does_not_fit_its_kind_is_refused_by_place_and_changes_nothing() {
    let desk = ReviewDesk::open().await;
    let (_, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    let case = desk.case(ingestion).await;
    let mut lacking = invoice(1.0);
    lacking.as_object_mut().unwrap().remove("due_date");
    let mut foreign = invoice(1.0);
    foreign["SECRETMARK"] = json!(1);
    let fields = |name: &str, text: &str| {
        DataCorrection::Fields(BTreeMap::from([(name.to_owned(), text.to_owned())]))
    };
    for (correction, said) in [
        (DataCorrection::Whole(json!([])), "does not fit the kind invoice"),
        (DataCorrection::Whole(lacking), "due_date"),
        (DataCorrection::Whole(foreign), "does not fit the kind invoice"),
        (fields("currency", "SECRETMARK"), "/currency"),
        (fields("invoice_date", "the SECRETMARK"), "`invoice_date` is not a date"),
        (fields("line_items", "[{\"SECRETMARK\": 1}]"), "/line_items/0"),
    ] {
        let error = Error::from(desk.correct(&case, correction).await.unwrap_err());
        assert_eq!(error.fault, Fault::Rejected);
        let text = error.to_string();
        assert!(text.contains(said) && !text.contains("SECRETMARK"), "{text}");
    }
    assert_eq!(desk.case(ingestion).await, case);
}

#[tokio::test]
async fn of_two_reviewers_who_saw_the_same_version_one_decides() {
    let desk = ReviewDesk::open().await;
    let (_, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    let case = desk.case(ingestion).await;
    let (one, other) =
        tokio::join!(desk.correct(&case, total("1.00")), desk.correct(&case, total("2.00")));
    let (kept, refused) = if one.is_ok() { (one, other) } else { (other, one) };
    assert!(matches!(refused.unwrap_err(), DecisionRefusal::Changed));
    let after = desk.case(ingestion).await;
    assert_eq!((after.document_data, after.revisions.len()), (kept.unwrap().data, 1));
}

#[tokio::test]
async fn what_is_accepted_was_read_and_what_is_rejected_carries_nothing_and_says_why() {
    let desk = ReviewDesk::open().await;
    let db = desk.database.db();
    let (_, read) = desk.refused("acme", &invoice(21.0)).await;
    let case = desk.case(read).await;
    let done = review::accept_document(&db, &case, AcceptedData::Document, &ann("")).await;
    assert_eq!(done.unwrap().data, Some(invoice(21.0)), "the document carried nothing");

    let (_, unread) = desk.refused("acme", &Value::Null).await;
    desk.run(format!("UPDATE ingestion SET structured_data = NULL WHERE id = '{unread}'")).await;
    let case = desk.case(unread).await;
    let none = review::accept_document(&db, &case, AcceptedData::Document, &ann("")).await;
    assert_eq!(Error::from(none.unwrap_err()).fault, Fault::Rejected);
    let wordless = review::reject_document(&db, &case, &ann(" ")).await;
    assert_eq!(Error::from(wordless.unwrap_err()).fault, Fault::Rejected);
    review::reject_document(&db, &case, &ann("a holiday card")).await.unwrap();
    let after = desk.case(unread).await;
    assert_eq!((after.needs_human_review, after.document_data), (false, None));
    assert_eq!(after.revisions[0].why, "a holiday card");
}

#[tokio::test]
async fn the_largest_amount_comes_first_where_that_is_asked_for() {
    let desk = ReviewDesk::open().await;
    let mut documents = Vec::new();
    for total in [7.5, 900.0, 20.0] {
        documents.push(desk.refused("acme", &invoice(total)).await.0.to_string());
    }
    let (bare, _) = desk.refused("acme", &json!(["no", "fields"])).await;
    let largest = ReviewFilter { order: ReviewOrder::Amount, ..ReviewFilter::default() };
    let [small, large, middle] = documents.try_into().unwrap();
    assert_eq!(desk.waiting(&largest).await, [large, middle, small, bare.to_string()]);
    let rows = review::list_reviews(&desk.database.db(), &largest, 1, None).await.unwrap();
    let shown: Vec<_> = rows.iter().map(|row| (row.amount, row.currency.as_deref())).collect();
    assert_eq!(shown, [(Some(900.0), Some("EUR"))]);
}

#[tokio::test]
async fn the_list_shows_who_waits_longest_first_by_tenant_kind_and_reason_page_by_page() {
    let desk = ReviewDesk::open().await;
    let mut documents = Vec::new();
    for tenant in ["acme", "acme", "other"] {
        documents.push(desk.refused(tenant, &invoice(1.0)).await.0.to_string());
    }
    let of = |tenant: Option<&str>, kind: Option<&str>, reason: Option<&str>| ReviewFilter {
        tenant: tenant.map(str::to_owned),
        kind: kind.map(str::to_owned),
        reason: reason.map(str::to_owned),
        order: ReviewOrder::Age,
        ..ReviewFilter::default()
    };
    for (wanted, expected) in [
        (ReviewFilter::default(), &documents[..]),
        (of(Some("acme"), None, None), &documents[..2]),
        (of(None, Some("invoice"), Some("totals")), &documents[..]),
        (of(None, Some("receipt"), None), &[]),
        (of(None, None, Some("duplicate")), &[]),
    ] {
        assert_eq!(desk.waiting(&wanted).await, expected, "{wanted:?}");
    }
    let db = desk.database.db();
    let everything = ReviewFilter::default();
    let first = review::list_reviews(&db, &everything, 2, None).await.unwrap();
    let after = first.last().map(|row| row.document_id);
    let rest = review::list_reviews(&db, &everything, 2, after).await.unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].document_id.to_string(), documents[2]);
}

#[tokio::test]
async fn a_document_that_is_erased_takes_the_decisions_about_it_along() {
    let desk = ReviewDesk::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    desk.correct(&desk.case(ingestion).await, total("12.00")).await.unwrap();
    desk.run(format!(
        "DELETE FROM ingestion WHERE id = '{ingestion}'; DELETE FROM document WHERE id = '{document}'"
    ))
    .await;
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM document_revision")
        .fetch_one(desk.database.pool())
        .await
        .unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn what_people_decided_is_written_as_truth_and_what_they_rejected_is_not() {
    let desk = ReviewDesk::open().await;
    let store = MemoryStore::default();
    store.put("documents/x.pdf", "%PDF-".into(), &BTreeMap::new()).await.unwrap();
    let (corrected, first) = desk.refused("acme", &invoice(1.0)).await;
    let (_, second) = desk.refused("acme", &invoice(2.0)).await;
    let (_, other) = desk.refused("rival", &invoice(3.0)).await;
    desk.refused("acme", &invoice(4.0)).await;
    for (ingestion, total) in [(first, 10.0), (other, 30.0)] {
        let case = desk.case(ingestion).await;
        desk.correct(&case, DataCorrection::Whole(invoice(total))).await.unwrap();
    }
    let case = desk.case(second).await;
    review::reject_document(&desk.database.db(), &case, &ann("a duplicate")).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let export = review::TruthExport {
        folder: folder.path(),
        tenant: Some("acme"),
        kind: None,
        largest: 1 << 20,
        as_examples: false,
    };
    let done = review::export_truth(&desk.database.db(), &store, export).await.unwrap();
    assert_eq!((done.written, done.left_out), (1, Vec::new()));
    let name = format!("invoice_{corrected}");
    let bytes = std::fs::read(folder.path().join(format!("{name}.pdf"))).unwrap();
    assert_eq!(bytes, b"%PDF-");
    let truth = std::fs::read(folder.path().join("truth").join(format!("{name}.json"))).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&truth).unwrap(), invoice(10.0));
    assert_eq!(std::fs::read_dir(folder.path().join("truth")).unwrap().count(), 1);
}

#[tokio::test]
async fn an_export_stays_in_its_folder_whatever_a_row_calls_its_kind_and_its_file() {
    let desk = ReviewDesk::open().await;
    let store = MemoryStore::default();
    store.put("documents/x.sh", "#!/bin/sh\n%PDF-1.7".into(), &BTreeMap::new()).await.unwrap();
    let (document, ingestion) = desk.refused("acme", &invoice(1.0)).await;
    let case = desk.case(ingestion).await;
    desk.correct(&case, DataCorrection::Whole(invoice(2.0))).await.unwrap();
    // As an earlier schema took it: today's refuses the name.
    desk.run(format!(
        "SET session_replication_role = replica;
         UPDATE document SET file_path = 'documents/x.sh' WHERE id = '{document}';
         UPDATE ingestion SET kind = '../../outside/profile' WHERE id = '{ingestion}';
         SET session_replication_role = DEFAULT"
    ))
    .await;
    let around = tempfile::tempdir().unwrap();
    let folder = around.path().join("deep/down");
    for as_examples in [false, true] {
        let export = review::TruthExport {
            folder: &folder,
            tenant: None,
            kind: None,
            largest: 1 << 20,
            as_examples,
        };
        review::export_truth(&desk.database.db(), &store, export).await.unwrap();
    }
    let names = |folder: &std::path::Path| {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(around.path()), ["deep"]);
    assert_eq!(names(&folder), [format!("generic_{document}.pdf"), "truth".to_owned()]);
}

#[tokio::test]
async fn what_people_decided_is_written_as_examples_of_the_kind_where_there_is_a_transcript() {
    let desk = ReviewDesk::open().await;
    let store = MemoryStore::default();
    let mut documents = Vec::new();
    for total in [1.0, 2.0] {
        let (document, ingestion) = desk.refused("acme", &invoice(total)).await;
        let case = desk.case(ingestion).await;
        desk.correct(&case, DataCorrection::Whole(invoice(10.0 * total))).await.unwrap();
        documents.push((document, ingestion));
    }
    let [(read, ingestion), (unread, _)] = documents.try_into().unwrap();
    let word =
        json!({ "text": "ZIMMER", "box": { "x": 1, "y": 1, "w": 9, "h": 9 }, "confidence": 1 });
    let page = json!({ "number": 1, "source": "native", "width": 100, "height": 100, "quality": 1,
        "lines": [{ "words": [word.clone(), word] }] });
    let transcript = json!({ "format": 1, "sha256": "0".repeat(64), "provider": "t", "quality": 1,
        "pages": [page.clone(), page] });
    store.put("transcript", transcript.to_string().into(), &BTreeMap::new()).await.unwrap();
    let sql = format!(
        "UPDATE ingestion SET transcription_file_path = 'transcript' WHERE id = '{ingestion}'"
    );
    desk.database.pool().execute(AssertSqlSafe(sql)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let export = review::TruthExport {
        folder: folder.path(),
        tenant: None,
        kind: None,
        largest: 1 << 20,
        as_examples: true,
    };
    let done = review::export_truth(&desk.database.db(), &store, export).await.unwrap();
    assert_eq!((done.written, done.left_out), (1, vec![unread.0]));
    let file = |ending: &str| {
        std::fs::read_to_string(folder.path().join(format!("invoice/examples/{read}.{ending}")))
    };
    assert_eq!(file("txt").unwrap(), "ZIMMER ZIMMER\n\nZIMMER ZIMMER\n");
    assert_eq!(serde_json::from_str::<Value>(&file("json").unwrap()).unwrap(), invoice(10.0));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "and nothing else");
}
