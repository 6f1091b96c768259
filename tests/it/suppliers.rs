//! The memory of suppliers and the account guard, from message to row, and as attacks: another tenant's
//! memory, a hostile e-invoice, a decision that no longer stands, an erased document.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use docmill_core::config::{KindsConfig, ReviewConfig};
use docmill_core::model::IngestionId;
use docmill_gate::kinds::KindSet;
use docmill_ledger::db::operators::AuditNote;
use docmill_operations::erase::{self, ErasureBackends};
use docmill_operations::review::{self, AcceptedData, DataCorrection, DecidingReviewer};
use docmill_operations::suppliers::{self, SupplierChoice};
use rust_decimal::Decimal;

use crate::support::documents;
use crate::support::world::World;

const OWN: &str = "GB29NWBK60161331926819";
const HOSTILE: &str = "GB94BARC10201530093459";

static KINDS: LazyLock<KindSet> = LazyLock::new(|| KindSet::load(&KindsConfig::default()).unwrap());
static USUAL: LazyLock<ReviewConfig> = LazyLock::new(ReviewConfig::default);
static FOUR_EYES: LazyLock<ReviewConfig> = LazyLock::new(|| {
    let limits = BTreeMap::from([("*".to_owned(), Decimal::from(1_000_000))]);
    ReviewConfig { four_eyes_above: limits, ..ReviewConfig::default() }
});

fn note(name: &str) -> AuditNote {
    AuditNote { operator: name.to_owned(), why: "because".to_owned() }
}

fn reviewer<'a>(name: &str, config: &'a ReviewConfig) -> DecidingReviewer<'a> {
    // As people on the pages: on the command line one database login is one person.
    DecidingReviewer {
        by: note(&format!("web:{name}")),
        config,
        kinds: &KINDS,
        take_over: false,
        effort: None,
    }
}

/// An e-invoice of Northwind Paper with this account.
fn einvoice(number: &str, account: &str) -> Vec<u8> {
    let means = format!(
        "</ram:InvoiceCurrencyCode><ram:SpecifiedTradeSettlementPaymentMeans>\
         <ram:TypeCode>58</ram:TypeCode><ram:PayeePartyCreditorFinancialAccount>\
         <ram:IBANID>{account}</ram:IBANID></ram:PayeePartyCreditorFinancialAccount>\
         </ram:SpecifiedTradeSettlementPaymentMeans>"
    );
    let whole = documents::cii(number).replace("</ram:InvoiceCurrencyCode>", &means);
    // A day of its own: the same total again on the same day is a near duplicate.
    let day = number.bytes().fold(0, |sum, byte| (sum + u32::from(byte)) % 15) + 10;
    whole.replacen("20260314", &format!("202603{day}"), 1).into_bytes()
}

/// An invoice whose number stands beside words that no vocabulary has.
fn odd_invoice(number: &str, total: [&str; 3]) -> Vec<u8> {
    let number = format!("Our reference file {number}");
    let [net, tax, total] = total;
    documents::pdf(&[
        (60.0, 60.0, "Northwind Paper Ltd"),
        (60.0, 76.0, "12 Mill Lane, Leeds LS1 4AB"),
        (60.0, 92.0, "VAT no. GB123456789"),
        (60.0, 140.0, "INVOICE"),
        (60.0, 164.0, &number),
        (60.0, 180.0, "Invoice date: 2026-03-14"),
        (60.0, 240.0, "Description"),
        (300.0, 240.0, "Quantity"),
        (380.0, 240.0, "Unit price"),
        (480.0, 240.0, "Amount"),
        (60.0, 258.0, "Copy paper A4, box"),
        (300.0, 258.0, "1"),
        (380.0, 258.0, net),
        (480.0, 258.0, net),
        (380.0, 300.0, "Subtotal GBP"),
        (480.0, 300.0, net),
        (380.0, 316.0, "VAT 20%"),
        (480.0, 316.0, tax),
        (380.0, 332.0, "Total GBP"),
        (480.0, 332.0, total),
    ])
}

/// Hands a document in for a tenant, and waits for its end.
async fn read(world: &World, tenant: &str, name: &str, bytes: Vec<u8>) -> IngestionId {
    let id = world.insert(name, bytes).await;
    world
        .execute(&format!("UPDATE docmill.ingestion SET tenant = '{tenant}' WHERE id = '{id}'"))
        .await;
    world.send(id.to_string()).await;
    world.until_empty().await;
    id
}

async fn reasons(world: &World, id: IngestionId) -> String {
    assert_eq!(world.column(id, "status").await.unwrap(), "completed");
    world.column(id, "review_reasons").await.unwrap()
}

async fn remembered(world: &World, tenant: &str) -> String {
    let sql = "SELECT count(*)::text FROM docmill.supplier_memory WHERE tenant";
    world.scalar(&format!("{sql} = '{tenant}'")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_einvoice_under_a_known_vat_id_is_flagged_and_teaches_nothing() {
    let world = World::new().await;
    let worker = world.worker().await;
    let first = read(&world, "a", "1.xml", einvoice("E-1", OWN)).await;
    assert_eq!(
        (reasons(&world, first).await, remembered(&world, "a").await),
        ("{}".into(), "1".into())
    );
    let hostile = String::from_utf8(einvoice("E-2", HOSTILE)).unwrap();
    let hostile = hostile.replace("Northwind Paper Ltd", "Southwind Supplies Ltd");
    let second = read(&world, "a", "2.xml", hostile.into_bytes()).await;
    assert_eq!(reasons(&world, second).await, "{account_changed:iban}");
    assert_eq!(remembered(&world, "a").await, "1", "it teaches nothing");
    let third = read(&world, "a", "3.xml", einvoice("E-3", OWN)).await;
    assert_eq!(
        (reasons(&world, third).await, remembered(&world, "a").await),
        ("{}".into(), "2".into())
    );

    // The memory of another tenant: nothing is known there, and nothing flows back.
    let other = read(&world, "b", "4.xml", einvoice("E-4", HOSTILE)).await;
    assert_eq!(reasons(&world, other).await, "{}");
    let back = read(&world, "b", "5.xml", einvoice("E-5", OWN)).await;
    assert_eq!(reasons(&world, back).await, "{account_changed:iban}");
    let own = read(&world, "a", "6.xml", einvoice("E-6", OWN)).await;
    assert_eq!(reasons(&world, own).await, "{}");

    // Erased with its tenant, and with nobody else's.
    let parts = world.parts().await;
    let backends =
        ErasureBackends { db: &parts.db, store: parts.store.as_ref(), queue: parts.queue.as_ref() };
    erase::erase_tenant(backends, "a", Duration::ZERO, &note("ada")).await.unwrap();
    assert_eq!(
        (remembered(&world, "a").await, remembered(&world, "b").await),
        ("0".into(), "1".into())
    );
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_account_needs_two_people_where_four_eyes_are_on_and_is_learned_then() {
    let world = World::new().await;
    let worker = world.worker().await;
    let db = world.database.db();
    read(&world, "a", "1.xml", einvoice("E-1", OWN)).await;
    let changed = read(&world, "a", "2.xml", einvoice("E-2", HOSTILE)).await;
    let case = || async { review::load_case(&db, &changed.to_string()).await.unwrap() };
    let known = review::find_known_accounts(&db, &case().await, &KINDS).await.unwrap();
    assert_eq!(known.iter().map(|it| it.account.as_str()).collect::<Vec<_>>(), [OWN]);

    let decide = |name: &'static str, config: &'static ReviewConfig| {
        let (db, case) = (&db, case());
        async move {
            let (case, by) = (case.await, reviewer(name, config));
            review::accept_document(db, &case, AcceptedData::Document, &by).await.unwrap()
        }
    };
    assert!(decide("ann", &FOUR_EYES).await.awaits_second);
    assert_eq!(remembered(&world, "a").await, "1", "one person's word is not yet one");
    assert!(!decide("bob", &FOUR_EYES).await.awaits_second);
    assert_eq!(remembered(&world, "a").await, "2");
    let next = read(&world, "a", "3.xml", einvoice("E-3", HOSTILE)).await;
    assert_eq!(reasons(&world, next).await, "{}", "the change is confirmed");

    // The wrong confirmation of one document ends with its correction to what was right.
    let case = case().await;
    let fields = BTreeMap::from([("iban".to_owned(), OWN.to_owned())]);
    let by = reviewer("ann", &USUAL);
    review::correct_document(&db, &case, DataCorrection::Fields(fields), &by).await.unwrap();
    let corrected =
        "SELECT corrected_fields::text FROM docmill.supplier_memory WHERE source = 'corrected'";
    assert_eq!(world.scalar(corrected).await, "{iban}");
    let again = read(&world, "a", "4.xml", einvoice("E-4", HOSTILE)).await;
    assert_eq!(reasons(&world, again).await, "{account_changed:iban}");

    // An undone decision teaches nothing any more.
    review::undo_decision(&db, case.document_id, &by.by).await.unwrap();
    let standing = docmill_ledger::supplier::SupplierProperty::VatId;
    let key = docmill_ledger::supplier::supplier_key("a", standing, "GB123456789").unwrap();
    let keys = [key];
    let found = docmill_ledger::db::suppliers::find_remembered(&db, Some("a"), &keys);
    let sources: Vec<_> = found.await.unwrap().into_iter().map(|it| it.source.code()).collect();
    assert_eq!(sources, ["exact", "exact"]);

    let choice =
        SupplierChoice { name: Some("NORTHWIND PAPER".into()), ..SupplierChoice::default() };
    for (tenant, gone) in [("b", 0), ("a", 3), ("a", 0)] {
        let done = suppliers::forget_suppliers(&db, Some(tenant), &choice, &note("ada")).await;
        assert_eq!(done.unwrap(), gone, "{tenant}");
    }
    let audit = "SELECT count(*)::text FROM docmill.operator_action WHERE target LIKE 'memory:%'";
    assert_eq!(world.scalar(audit).await, "3");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_beside_unknown_words_is_read_once_it_was_corrected_once() {
    let world = World::new().await;
    let worker = world.worker().await;
    let db = world.database.db();
    let first =
        read(&world, "a", "1.pdf", odd_invoice("NW-77", ["100.00", "20.00", "120.00"])).await;
    let case = review::load_case(&db, &first.to_string()).await.unwrap();
    let fields = [("invoice_number", "NW-77"), ("supplier_vat_id", "GB123456789")];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let by = reviewer("ann", &USUAL);
    review::correct_document(&db, &case, DataCorrection::Fields(fields), &by).await.unwrap();

    let second = odd_invoice("NW-78", ["150.00", "30.00", "180.00"]);
    let data = async |tenant: &str, bytes: &[u8]| {
        let id = read(&world, tenant, &format!("{tenant}.pdf"), bytes.to_vec()).await;
        let number = format!(
            "SELECT structured_data ->> 'invoice_number' FROM docmill.ingestion WHERE id = '{id}'"
        );
        (world.scalar(&number).await, world.column(id, "status").await.unwrap())
    };
    assert_eq!(data("a", &second).await, ("NW-78".into(), "completed".into()));
    let (number, _) = data("b", &second).await;
    assert_ne!(number, "NW-78", "another tenant knows nothing of it");
    worker.stop().await;
}
