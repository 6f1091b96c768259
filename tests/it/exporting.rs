//! What `docmill export` lists, against a real Postgres.

use docmill_core::model::IngestionId;
use docmill_operations::inspect::{self, IngestionFilter};
use sqlx::Executor as _;
use time::OffsetDateTime;

use crate::support::postgres::TestDatabase;

/// Of two readings of a document the newer counts, on whichever page of the answer it is. Documents
/// without data, or of another kind or tenant, are excluded.
const DOCUMENTS: &str = "
    SET session_replication_role = replica;
    INSERT INTO document (id, file_path, tenant, structured_data)
    SELECT md5('d' || n)::uuid, n || '.pdf', CASE n WHEN 5 THEN 'rival' ELSE 'acme' END,
        CASE WHEN n <> 3 THEN jsonb_build_object('total', n) END
    FROM generate_series(1, 6) n;
    INSERT INTO ingestion (id, document_id, tenant, kind, created_at)
    SELECT md5('i' || n || ',' || age)::uuid, md5('d' || n)::uuid,
        CASE n WHEN 5 THEN 'rival' ELSE 'acme' END,
        CASE n WHEN 4 THEN 'receipt' ELSE 'invoice' END, now() - age * interval '1 day'
    FROM (VALUES (1, 1), (1, 20), (2, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 40)) AS r (n, age);
    SET session_replication_role = DEFAULT";

#[tokio::test]
async fn a_document_that_was_read_twice_is_exported_once_wherever_the_pages_are_cut() {
    let database = TestDatabase::create().await;
    let mut session = database.pool().acquire().await.unwrap();
    session.execute(DOCUMENTS).await.unwrap();
    drop(session);
    let db = database.db();
    let exported = async |tenant: Option<&str>, since: Option<i64>, limit: u32| {
        let filter = IngestionFilter {
            kind: Some("invoice".to_owned()),
            tenant: tenant.map(str::to_owned),
            since: since.map(|days| OffsetDateTime::now_utc() - time::Duration::days(days)),
            ..IngestionFilter::default()
        };
        let (mut files, mut after) = (Vec::new(), None);
        loop {
            let page = inspect::list_exported_documents(&db, &filter, limit, after).await.unwrap();
            let Some(last) = page.last() else { return files };
            after = Some(IngestionId(last.ingestion_id));
            files.extend(page.into_iter().map(|row| format!("{} {}", row.file_path, row.data)));
        }
    };
    let all = [r#"1.pdf {"total":1}"#, r#"2.pdf {"total":2}"#, r#"5.pdf {"total":5}"#];
    let old = r#"6.pdf {"total":6}"#;
    for limit in [1, 2, 3, 500] {
        assert_eq!(exported(None, None, limit).await, [&all[..], &[old]].concat(), "{limit}");
    }
    assert_eq!(exported(Some("acme"), None, 2).await, [all[0], all[1], old]);
    assert_eq!(exported(None, Some(30), 1).await, all);
}
