//! Suppliers and orders of the ERP, from the file to the record.

use docmill_ledger::db::Db;
use docmill_ledger::db::operators::AuditNote;
use docmill_operations::master_data::{
    self, MasterChangeError, MasterFormat, count_master_data, parse_orders, parse_suppliers,
};

use crate::support::documents;
use crate::support::world::World;

fn by() -> AuditNote {
    AuditNote { operator: "ada".to_owned(), why: "nightly".to_owned() }
}

async fn load_suppliers(
    db: &Db,
    tenant: Option<&str>,
    text: &str,
) -> Result<(), MasterChangeError> {
    let rows = parse_suppliers(text, MasterFormat::Csv)?;
    master_data::replace_suppliers(db, tenant, rows, &by()).await
}

/// The issuer of the invoices of `documents` by its VAT identifier and name.
const NORTHWIND: &str = "number,name,vat_ids\n70012,Northwind Paper Limited,GB 123 456 789\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_matched_with_its_tenants_supplier_and_no_other_tenants() {
    let world = World::new().await;
    let db = world.database.db();
    load_suppliers(&db, None, NORTHWIND).await.unwrap();
    load_suppliers(&db, Some("acme"), "number,name\n1,Northwind Paper Ltd\n").await.unwrap();
    let worker = world.worker().await;
    let id = world.submit("m.pdf", documents::invoice("M-1")).await;
    world.until_empty().await;
    worker.stop().await;
    let found = "master_match #>> '{supplier,number}'";
    assert_eq!(world.column(id, found).await.unwrap(), "70012");
    let evidence = world.column(id, "master_match #> '{supplier,by}'").await.unwrap();
    assert_eq!(evidence, r#"["vat_id", "name"]"#);
    assert_eq!(world.column(id, "review_reasons").await.unwrap(), "{}");
    let story = docmill_operations::inspect::load_histories(&db, &id.to_string()).await.unwrap();
    let shown = story[0].master_match.clone().unwrap();
    assert_eq!(shown["supplier"]["name"], "Northwind Paper Limited");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identifier_of_another_supplier_than_the_name_says_is_told_in_the_record() {
    let world = World::new().await;
    let db = world.database.db();
    let rows = "number,name,vat_ids\n1,Other Ltd,GB123456789\n2,Northwind Paper Ltd,\n";
    load_suppliers(&db, None, rows).await.unwrap();
    let worker = world.worker().await;
    let id = world.submit("m.pdf", documents::invoice("M-2")).await;
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(world.column(id, "master_match #>> '{supplier,number}'").await.unwrap(), "1");
    let against = world.column(id, "master_match #> '{supplier,against}'").await.unwrap();
    assert_eq!(against, r#"["name"]"#);
}

#[tokio::test]
async fn an_upload_replaces_all_or_nothing_and_leaves_other_tenants_alone() {
    let world = World::new().await;
    let db = world.database.db();
    load_suppliers(&db, Some("acme"), "number,name\n1,A\n2,B\n").await.unwrap();
    load_suppliers(&db, None, NORTHWIND).await.unwrap();
    let counts = async |tenant: Option<&str>| {
        let counts = count_master_data(&db, tenant).await.unwrap();
        (counts.suppliers, counts.orders)
    };
    let twice = load_suppliers(&db, Some("acme"), "number,name\n7,A\n7,B\n").await.unwrap_err();
    assert_eq!(twice.to_string(), "line 3: the number is there twice");
    assert_eq!(counts(Some("acme")).await, (2, 0));
    load_suppliers(&db, Some("acme"), "number,name\n7,A\n").await.unwrap();
    let orders = parse_orders("number,supplier,amount\n4500,7,10.5\n", MasterFormat::Csv).unwrap();
    master_data::replace_orders(&db, Some("acme"), orders, &by()).await.unwrap();
    assert_eq!((counts(Some("acme")).await, counts(None).await), ((1, 1), (1, 0)));
    assert_eq!(world.scalar("SELECT count(*)::text FROM docmill.master_supplier_mark").await, "3");
    docmill_ledger::db::operators::erasure::close_tenant(&db, "acme", 0, 0, &by()).await.unwrap();
    assert_eq!((counts(Some("acme")).await, counts(None).await), ((0, 0), (1, 0)));
}
