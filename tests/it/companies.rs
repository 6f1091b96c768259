//! Own companies of tenants, from the operator's file to the verdict.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use docmill_core::model::{DocumentId, IngestionId};
use docmill_ledger::db::operators::AuditNote;
use docmill_operations::companies::{self, parse_companies};

use crate::support::documents;
use crate::support::world::World;

/// The issuer of the invoices of `documents`, as if it were one of our own.
const FILE: &str = "[[company]]\nname = \"Northwind Paper Ltd\"\nvat_ids = [\"GB123456789\"]\n";

fn by() -> AuditNote {
    AuditNote { operator: "ada".to_owned(), why: "set up".to_owned() }
}

async fn hand_in(world: &World, tenant: Option<&str>, number: &str) -> IngestionId {
    let id = world.insert(&format!("{number}.pdf"), documents::invoice(number)).await;
    if let Some(tenant) = tenant {
        for table in ["ingestion", "document"] {
            let document = world.column(id, "document_id").await.unwrap();
            let of = if table == "document" { document } else { id.to_string() };
            let sql = format!("UPDATE docmill.{table} SET tenant = '{tenant}' WHERE id = '{of}'");
            world.execute(&sql).await;
        }
    }
    world.send(id.to_string()).await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_company_is_not_the_supplier_of_its_tenants_documents_and_of_no_others() {
    let world = World::new().await;
    let db = world.database.db();
    let own = parse_companies(FILE).unwrap();
    companies::replace_companies(&db, Some("acme"), &own, &by()).await.unwrap();
    let worker = world.worker().await;
    let ours = hand_in(&world, Some("acme"), "C-1").await;
    let theirs = hand_in(&world, Some("rival"), "C-2").await;
    let nobodys = hand_in(&world, None, "C-3").await;
    world.until_empty().await;
    worker.stop().await;
    let supplier = "structured_data ->> 'supplier_name'";
    for id in [theirs, nobodys] {
        assert_eq!(world.column(id, supplier).await.unwrap(), "Northwind Paper Ltd");
        assert_eq!(world.column(id, "review_reasons").await.unwrap(), "{}");
    }
    assert_ne!(world.column(ours, supplier).await.as_deref(), Some("Northwind Paper Ltd"));
    let buyer = "structured_data ->> 'buyer_vat_id'";
    assert_eq!(world.column(ours, buyer).await.as_deref(), Some("GB123456789"));
    assert_eq!(world.column(ours, "needs_human_review").await.unwrap(), "true");
}

#[tokio::test(flavor = "multi_thread")]
async fn erasing_a_tenant_forgets_its_companies_and_what_the_audit_says_of_them() {
    let world = World::new().await;
    let db = world.database.db();
    let own = parse_companies(FILE).unwrap();
    for tenant in [Some("acme"), Some("rival"), None] {
        companies::replace_companies(&db, tenant, &own, &by()).await.unwrap();
    }
    let document = DocumentId::random();
    world.insert_rows(document, IngestionId::random(), "documents/x").await;
    world
        .execute(
            "INSERT INTO docmill.kind_replay (id, tenant, kind, version, files, max_documents,
                 max_worse, max_cost_nanos, asked_by)
             SELECT gen_random_uuid(), tenant, 'invoice', repeat('0', 64), '{}', 1, 0, 0, 'ann'
             FROM unnest(ARRAY['acme', 'rival']) AS tenant",
        )
        .await;
    docmill_ledger::db::operators::erasure::close_tenant(&db, "acme", 0, 0, &by()).await.unwrap();
    let left = "SELECT string_agg(tenant, ',' ORDER BY tenant) FROM docmill.own_company";
    assert_eq!(world.scalar(left).await, ",rival");
    let drafts = "SELECT string_agg(tenant, ',') FROM docmill.kind_replay";
    assert_eq!(world.scalar(drafts).await, "rival");
    let audit =
        "SELECT string_agg(action, ',') FROM docmill.operator_action WHERE target = 'tenant:acme'";
    assert_eq!(world.scalar(audit).await, "erase");
}
