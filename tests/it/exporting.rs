//! What `docmill export` lists and writes, against a real Postgres.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::{Command, Stdio};

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

/// Two invoices, one of which UBL cannot carry, of a file with a hostile name.
const INVOICES: &str = r#"
    SET session_replication_role = replica;
    INSERT INTO own_company (tenant, name, vat_ids, set_by)
    VALUES ('acme', 'Backhaus Nord GmbH', '{DE811569869}', 'test');
    INSERT INTO document (id, file_path, original_name, tenant, structured_data)
    SELECT md5('d' || n)::uuid, n || '.pdf', '../../=cmd ' || n || '.pdf', 'acme',
        jsonb_build_object('supplier_name', 'Mühle', 'supplier_vat_id', 'DE123456789',
            'supplier_address', 'Am Bach 3, 80331 München', 'buyer_name', 'Backhaus Nord GmbH',
            'invoice_number', '=1+' || n, 'invoice_date', '2026-11-02', 'currency', 'EUR',
            'subtotal', 20, 'vat_amount', 3.8, 'total', 23.8 + n, 'line_items',
            '[{"description": "Mehl", "quantity": 2, "unit": "kg", "unit_price": 10,
               "tax_rate": 19, "amount": 20}]'::jsonb)
    FROM generate_series(0, 1) n;
    INSERT INTO ingestion (id, document_id, tenant, kind, created_at, status, structured_data,
        valid_structured_data, completed_at)
    SELECT md5('i' || n)::uuid, d.id, 'acme', 'invoice', now(), 'completed', d.structured_data, true,
        now()
    FROM generate_series(0, 1) n JOIN document d ON d.id = md5('d' || n)::uuid;
    SET session_replication_role = DEFAULT"#;

fn export(database: &TestDatabase, arguments: &[&str]) -> (Option<i32>, String) {
    export_from(database, Path::new("nowhere"), arguments)
}

fn export_from(database: &TestDatabase, store: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DOCMILL__")) {
        command.env_remove(name);
    }
    command.env("DOCMILL__STORE__BACKEND", "folder").env("DOCMILL__STORE__PATH", store);
    command.env("DOCMILL__DATABASE__URL", database.url()).arg("export").args(arguments);
    let done = command.stdin(Stdio::null()).output().unwrap();
    let text = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8(text).unwrap())
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_writes_heads_lines_and_ubl_into_its_folder_and_names_what_it_leaves_out() {
    let database = TestDatabase::create().await;
    let mut session = database.pool().acquire().await.unwrap();
    session.execute(INVOICES).await.unwrap();
    drop(session);
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    let (code, text) = export(&database, &["--output", at, "--bom"]);
    assert_eq!((code, text.trim()), (Some(0), "written: 2"));
    let lists = files(folder.path());
    assert!(lists.contains(&"invoice.csv".to_owned()), "{lists:?}");
    for (name, lines) in
        [("invoice.csv", 3), ("invoice-line_items.csv", 3), ("invoice-taxes.csv", 1)]
    {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(text.starts_with("\u{feff}document_id,"), "{name}: {text}");
        assert_eq!(text.lines().count(), lines, "{name}: {text}");
        assert!(!text.contains(",=1+"), "a formula reached {name}");
    }
    let comma_style = ["--separator", "semicolon", "--decimal", "comma", "--lines", "line_items"];
    let (code, text) = export(&database, &comma_style);
    assert_eq!((code, text.contains(';') && text.contains(";\"23,8\"")), (Some(0), true), "{text}");
    let ubl = folder.path().join("ubl");
    let place = ubl.to_str().unwrap();
    let layout = "{tenant}/{name}-{id}";
    let arguments = ["--format", "ubl", "--output", place, "--layout", layout];
    let (code, text) = export(&database, &arguments);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("written: 1") && text.contains("(BT-112)"), "{text}");
    let [written] = &files(&ubl.join("acme"))[..] else { panic!("{:?}", files(&ubl)) };
    assert!(written.starts_with("_cmd_0-") && written.ends_with(".xml"), "{written}");
    let (_, id) = written.split_once('-').unwrap();
    let (code, xml) = export(&database, &[id.trim_end_matches(".xml"), "--format", "ubl"]);
    assert_eq!(
        (code, xml),
        (Some(0), std::fs::read_to_string(ubl.join("acme").join(written)).unwrap())
    );
    for wrong in [
        &["--format", "ubl"][..],
        &["--format", "datev"],
        &["--output", at, "--layout", "../{id}"],
        &["--separator", "pipe"],
    ] {
        assert_eq!(export(&database, wrong).0, Some(2), "{wrong:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_for_datev_has_each_invoice_with_its_original_and_names_the_rest() {
    let database = TestDatabase::create().await;
    let (store, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let originals = [&b"%PDF-1.7 one"[..], b"%PDF-1.7 two", b"only text", b"%PDF-1.7 own"];
    let mut rows = INVOICES.replace("generate_series(0, 1)", "generate_series(0, 5)");
    rows += "; SET session_replication_role = replica";
    for (n, original) in originals.iter().enumerate() {
        std::fs::write(store.path().join(format!("{n}.pdf")), original).unwrap();
        let sha256 = docmill_core::model::digest::sha256_hex(original);
        rows += &format!("; UPDATE ingestion SET sha256 = '{sha256}' WHERE id = md5('i{n}')::uuid");
    }
    // One is an own company's, one of another content than was read, one is gone, one is in doubt.
    rows += "; UPDATE document SET structured_data = structured_data || '{\"supplier_vat_id\": \"DE811569869\"}'
        WHERE id = md5('d3')::uuid;
        UPDATE ingestion SET sha256 = repeat('0', 64) WHERE id IN (md5('i1')::uuid, md5('i4')::uuid);
        UPDATE document SET needs_human_review = true WHERE id = md5('d5')::uuid;
        SET session_replication_role = DEFAULT";
    let mut session = database.pool().acquire().await.unwrap();
    session.execute(sqlx::AssertSqlSafe(rows)).await.unwrap();
    drop(session);
    let at = folder.path().to_str().unwrap();
    let (code, text) = export_from(&database, store.path(), &["--format", "datev", "--output", at]);
    assert_eq!(code, Some(1), "{text}");
    for (problem, times) in [
        ("written: 2", 1),
        ("gone, is another one now", 2),
        ("no PDF, JPEG", 1),
        ("waits for review", 1),
    ] {
        assert_eq!(text.matches(problem).count(), times, "{problem}: {text}");
    }
    let [name] = &files(folder.path())[..] else { panic!("{:?}", files(folder.path())) };
    assert!(name.starts_with("docmill-2") && name.ends_with("-001.zip"), "{name}");
    let file = std::fs::File::open(folder.path().join(name)).unwrap();
    let mut package = zip::ZipArchive::new(file).unwrap();
    let mut names: Vec<String> =
        package.file_names().map(|name| name.unwrap().into_owned()).collect();
    names.sort();
    assert_eq!(names.len(), 5, "{names:?}");
    let mut read = |name: &str| std::io::read_to_string(package.by_name(name).unwrap()).unwrap();
    let described = read("document.xml");
    for (content, number, entry) in [
        ("%PDF-1.7 one", "1+0", "accountsPayableLedger"),
        ("%PDF-1.7 own", "1+3", "accountsReceivableLedger"),
    ] {
        let mut originals = names.iter().filter(|name| name.ends_with(".pdf"));
        let original = originals.find(|name| read(name) == content).unwrap();
        let ledger = original.replace(".pdf", ".xml");
        let written = read(&ledger);
        for part in [format!("<invoiceId>{number}</invoiceId>"), format!("<{entry}>")] {
            assert!(written.contains(&part), "{part}: {written}");
        }
        for part in [format!("\"{entry}\" datafile=\"{ledger}\""), format!("name=\"{original}\"")] {
            assert!(described.contains(&part), "{part}: {described}");
        }
    }
}
