//! Encrypted PDFs: opened with the password of their row or of their tenant, and no other's.

use sqlx::AssertSqlSafe;

use crate::support::postgres::TestDatabase;
use crate::support::process::Process;
use crate::support::world::{SOON, World, until};

/// `samples/encrypted.pdf` has this one.
pub(crate) const PASSWORD: &str = "a password";

/// Whether one of the passwords is in it; our own words for what is locked happen to hold one.
fn names_a_password(text: &str) -> bool {
    let text = text.replace("a password is needed", "");
    [PASSWORD, "wrong", "of nobody"].iter().any(|password| text.contains(password))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_of_the_row_or_of_the_tenant_opens_a_pdf_and_no_log_has_it() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let locked = std::fs::read(root.join("samples/encrypted.pdf")).unwrap();
    let world = World::new().await;
    let file = world.logs.path().join("passwords.toml");
    let text = format!(
        "[[store.passwords]]\npassword = 'of nobody'\n\
         [[store.passwords]]\ntenant = 'known'\npassword = '{PASSWORD}'\n"
    );
    std::fs::write(&file, text).unwrap();
    let worker = Process::worker_with(&world, &file, &[]);
    #[rustfmt::skip]
    let table: [(&str, &[&str], Option<&str>, bool); 5] = [
        ("none that fits",              &[],                        None,           false),
        ("of another tenant",           &["wrong"],                 Some("other"),  false),
        ("of its tenant",               &[],                        Some("known"),  true),
        ("of its row",                  &[PASSWORD],                None,           true),
        ("of its row, after another",   &["wrong", PASSWORD, "x"],  Some("other"),  true),
    ];
    for (name, given, tenant, opens) in table {
        let id = world.insert("locked.pdf", locked.clone()).await;
        for password in given {
            world
                .execute(&format!(
                    "INSERT INTO docmill.document_password (document_id, password)
                     SELECT document_id, '{password}' FROM docmill.ingestion WHERE id = '{id}'"
                ))
                .await;
        }
        if let Some(tenant) = tenant {
            let sql = format!("UPDATE docmill.ingestion SET tenant = '{tenant}' WHERE id = '{id}'");
            world.execute(&sql).await;
        }
        world.send(id.to_string()).await;
        until(SOON, || async { world.column(id, "completed_at::text").await.is_some() }).await;
        let reason = world.column(id, "reason").await;
        assert_eq!(reason.as_deref() != Some("encrypted"), opens, "{name}: {reason:?}");
        let pages = world.column(id, "pages::text").await;
        assert_eq!(pages.as_deref(), opens.then_some("1"), "{name}");
        let detail = world.column(id, "detail").await.unwrap_or_default();
        assert!(!names_a_password(&detail), "{name}: {detail}");
    }
    let log = worker.log();
    assert!(!names_a_password(&log), "{log}");
}

#[tokio::test]
async fn passwords_are_written_by_producers_read_by_workers_and_gone_with_their_document() {
    let database = TestDatabase::create().await;
    let pool = database.pool();
    let may = |role: &str, what: &str| {
        let sql = format!(
            "SELECT has_any_column_privilege('docmill_{role}', 'docmill.document_password', '{what}')"
        );
        async move { sqlx::query_scalar::<_, bool>(AssertSqlSafe(sql)).fetch_one(pool).await.unwrap() }
    };
    #[rustfmt::skip]
    let table = [
        ("producer", false, true), ("worker", true, false), ("reader", false, false),
        ("operator", false, true),
    ];
    for (role, reads, writes) in table {
        assert_eq!(
            (may(role, "SELECT").await, may(role, "INSERT").await),
            (reads, writes),
            "{role}"
        );
    }
    let left = "WITH d AS (INSERT INTO docmill.document (id, file_path)
            VALUES (gen_random_uuid(), 'documents/x.pdf') RETURNING id)
        INSERT INTO docmill.document_password (document_id, password) SELECT id, 'p' FROM d";
    sqlx::query(left).execute(database.pool()).await.unwrap();
    sqlx::query("DELETE FROM docmill.document").execute(database.pool()).await.unwrap();
    let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM docmill.document_password");
    assert_eq!(count.fetch_one(database.pool()).await.unwrap(), 0);
}
