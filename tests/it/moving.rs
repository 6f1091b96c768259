//! docs/guides/moving.md executed literally, there and back: its statements and commands run over a
//! database as the earlier worker leaves it, with a product's own columns, tables, views and
//! triggers. The earlier worker's statements run beside docmill's.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::process::Output;
use std::time::Duration;

use bytes::Bytes;
use docmill_core::config::DatabaseConfig;
use docmill_core::model::IngestionId;
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::db::migrating::adopting::{EarlierWorkers, MigrationOptions};
use docmill_ledger::db::{Db, SchemaVersion};
use docmill_ledger::{ClaimOutcome, ClaimTerms, Ledger};
use docmill_storage::{GetOptions, GetResult};
use docmill_testkit::models::Script;
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Executor};

use crate::support::documents;
use crate::support::postgres::TestDatabase;
use crate::support::world::World;

/// A product's objects around the earlier worker's tables.
const PRODUCT: &str = "
CREATE TYPE ingestion_status AS ENUM ('in-progress', 'completed', 'failed');
CREATE TYPE attempt AS ENUM ('first', 'second');
CREATE TABLE worker (id serial PRIMARY KEY, name text);
CREATE TABLE pause (id serial PRIMARY KEY);
CREATE TABLE document (id uuid PRIMARY KEY, file_path varchar(500) NOT NULL, structured_data json,
    needs_human_review boolean, updated_at timestamp,
    created_at timestamp NOT NULL DEFAULT now(), size_bytes int, uploaded_by int NOT NULL DEFAULT 7);
CREATE TABLE ingestion (id uuid PRIMARY KEY, document_id uuid NOT NULL REFERENCES document (id),
    status ingestion_status NOT NULL DEFAULT 'in-progress', started_at timestamptz,
    completed_at timestamptz, attempt_count int NOT NULL DEFAULT 0, transcription_file_path text,
    transcription_quality_score numeric(4, 3), preprocessed_file_path text, structured_data jsonb,
    valid_structured_data boolean, extraction_input_tokens int, extraction_output_tokens int,
    extraction_model varchar(100), created_at timestamptz, callback_url text);
CREATE TABLE payment (id serial PRIMARY KEY, document_id uuid NOT NULL REFERENCES document (id));
CREATE TABLE audit (what text);
CREATE VIEW payable AS SELECT p.id, d.file_path FROM payment p JOIN document d ON d.id = p.document_id;
CREATE INDEX ingestion_url ON ingestion (callback_url);
CREATE FUNCTION update_document_from_ingestion() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE document SET structured_data = NEW.structured_data,
        needs_human_review = NOT COALESCE(NEW.valid_structured_data, true), updated_at = now()
    WHERE id = NEW.document_id;
    RETURN NEW; END $$;
CREATE TRIGGER ingestion_done AFTER UPDATE ON ingestion FOR EACH ROW
    EXECUTE FUNCTION update_document_from_ingestion();
CREATE FUNCTION note_upload() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS $$ BEGIN
    INSERT INTO audit VALUES (NEW.file_path); RETURN NEW; END $$;
CREATE TRIGGER uploaded AFTER INSERT ON document FOR EACH ROW EXECUTE FUNCTION note_upload();
INSERT INTO document (id, file_path, created_at, size_bytes) SELECT
    (l || '0000000-0000-0000-0000-000000000000')::uuid, 'documents/' || l || '.pdf',
    '2025-01-02 03:04:05', 4711 FROM unnest('{a,b,c,d,e,f}'::text[]) AS l;
INSERT INTO ingestion (id, document_id, created_at, callback_url, status, started_at, completed_at,
    structured_data)
SELECT (l || '0000000-0000-0000-0000-000000000001')::uuid,
    (l || '0000000-0000-0000-0000-000000000000')::uuid, '2025-01-02 03:04:06Z', 'https://p/' || l,
    (CASE l WHEN 'c' THEN 'completed' ELSE 'in-progress' END)::ingestion_status,
    CASE l WHEN 'b' THEN now() WHEN 'c' THEN now() - interval '1 day' END,
    CASE l WHEN 'c' THEN now() END, CASE l WHEN 'c' THEN '{\"n\": 1, \"extraction_successful\": true, \"confidence\": \"medium\",
        \"missing_fields\": [\"due_date\", 3]}'::jsonb END
FROM unnest('{a,b,c,d,e,f}'::text[]) AS l;
INSERT INTO payment (document_id) VALUES ('c0000000-0000-0000-0000-000000000000');";

/// The earlier worker's own statements, as it sends them.
const CLAIM: &str = "UPDATE ingestion SET started_at = now() WHERE id = $1::uuid
    AND status = 'in-progress' AND (started_at IS NULL OR started_at < now() - interval '5 minutes')
    RETURNING id::text";
const TRANSCRIBED: &str =
    "UPDATE ingestion SET transcription_file_path = 'ingestions/x/transcription-output.edn',
    transcription_quality_score = 0.9 WHERE id = $1::uuid RETURNING id::text";
const COMPLETE: &str =
    "UPDATE ingestion SET status = 'completed', structured_data = '{\"total\": 9,
        \"extraction_successful\": true, \"confidence\": \"low\", \"missing_fields\": []}',
    valid_structured_data = true, extraction_input_tokens = 5, extraction_output_tokens = 6,
    extraction_model = 'theirs', completed_at = now() WHERE id = $1::uuid RETURNING id::text";
const FAIL: &str = "UPDATE ingestion SET attempt_count = attempt_count + 1,
    status = CASE WHEN attempt_count + 1 >= 3 THEN 'failed'::ingestion_status ELSE status::text::ingestion_status END,
    completed_at = CASE WHEN attempt_count + 1 >= 3 THEN now() END
    WHERE id = $1::uuid RETURNING attempt_count || ' ' || status";

struct MovedProduct {
    database: TestDatabase,
    /// The product's sessions and the earlier worker's, as a login with no more than its rights.
    product: PgPool,
}

impl MovedProduct {
    async fn before() -> Self {
        let database = TestDatabase::empty().await;
        let login = format!("orcha_{}", uuid::Uuid::new_v4().simple());
        let mut owner = database.pool().acquire().await.unwrap();
        let product = format!(
            "SET search_path = public; {PRODUCT} CREATE ROLE {login} LOGIN; \
             GRANT SELECT, INSERT, UPDATE ON document, ingestion, payment, audit TO {login}; \
             GRANT USAGE ON SCHEMA public TO {login}"
        );
        run(&mut owner, &product).await;
        drop(owner);
        let url = database.url().replace("postgres@", &format!("{login}@"));
        let product = PgPoolOptions::new().max_connections(1).connect(&url).await.unwrap();
        Self { database, product }
    }

    /// A statement of the earlier worker about the ingestion of that letter; its answer, if any.
    async fn earlier(&self, sql: &'static str, letter: char) -> Option<String> {
        let row = sqlx::query_scalar(sql).bind(id(letter).to_string());
        row.fetch_optional(&self.product).await.unwrap()
    }

    async fn ask<T>(&self, sql: &'static str) -> T
    where
        T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
    {
        sqlx::query_scalar(sql).fetch_one(self.database.pool()).await.unwrap()
    }

    async fn follow(&self, block: &CommandBlock) {
        match block {
            CommandBlock::Statement(sql) => {
                let mut owner = self.database.pool().acquire().await.unwrap();
                run(&mut owner, sql).await;
            }
            CommandBlock::Command(line) => {
                let output = self.command(line).await;
                assert!(
                    output.status.success(),
                    "{line}: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
    }

    async fn command(&self, line: &str) -> Output {
        let mut words = line.split_whitespace();
        assert_eq!(words.next(), Some("docmill"));
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_docmill"));
        command.args(words).env("DOCMILL__DATABASE__URL", self.database.url());
        command.output().await.unwrap()
    }

    async fn claim(&self, letter: char) -> ClaimOutcome {
        let db = Db::connect(&self.database.config()).await.unwrap();
        let terms =
            ClaimTerms { worker: "w".to_owned(), lease: Duration::from_secs(60), crash_limit: 3 };
        PostgresLedger::new(db).claim(&[id(letter)], &terms).await.unwrap().remove(0)
    }
}

async fn run(connection: &mut PgConnection, sql: &str) {
    connection.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await.unwrap();
}

fn id(letter: char) -> IngestionId {
    format!("{letter}0000000-0000-0000-0000-000000000001").parse().unwrap()
}

/// The page's steps, in order.
#[derive(Debug)]
enum CommandBlock {
    Statement(String),
    Command(String),
}

fn page_blocks() -> Vec<CommandBlock> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guides/moving.md");
    let page = std::fs::read_to_string(path).unwrap();
    page.split("\n```")
        .filter_map(|part| {
            let (kind, text) = part.split_once('\n')?;
            match kind {
                "sql" | "sql back" => Some(CommandBlock::Statement(text.to_owned())),
                "sh" => Some(CommandBlock::Command(text.trim().to_owned())),
                _ => None,
            }
        })
        .collect()
}

#[tokio::test]
async fn the_page_leads_there_and_back_word_by_word() {
    let world = MovedProduct::before().await;
    let blocks = page_blocks();
    let [note, rehearse, migrate, look, gone, stay, back] = blocks.as_slice() else {
        panic!("the page has other steps than this test: {blocks:#?}")
    };
    assert!(matches!(back, CommandBlock::Statement(sql) if sql.contains("DROP SCHEMA docmill")));
    world.follow(note).await;
    world.follow(rehearse).await;
    let schemas = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('docmill')";
    assert_eq!(world.ask::<i64>(schemas).await, 0, "a rehearsal leaves nothing");
    // Of two that the earlier worker has in its hands when the migration comes.
    assert!(world.earlier(CLAIM, 'a').await.is_some());
    world.follow(migrate).await;
    world.follow(look).await;

    check_what_was_kept(&world).await;
    check_side_by_side(&world).await;

    world.follow(gone).await;
    let claimed = world.claim('d').await;
    assert!(matches!(claimed, ClaimOutcome::Claimed(_)), "free at once: {claimed:?}");
    world.follow(stay).await;
    let reopened = "UPDATE ingestion SET status = 'in-progress', started_at = NULL,
        completed_at = NULL, attempt_count = 0 WHERE id = $1::uuid RETURNING id::text";
    assert!(world.earlier(reopened, 'e').await.is_some(), "opened again by the product");
    assert!(world.earlier(CLAIM, 'e').await.is_some());
    complete_by_a_later_login(&world).await;

    world.follow(back).await;
    check_as_before(&world).await;
}

/// A login that was granted the views after the adoption, and has no right in docmill's schema.
async fn complete_by_a_later_login(world: &MovedProduct) {
    let role = format!("later_{}", uuid::Uuid::new_v4().simple());
    let complete = COMPLETE.replace("$1", "'e0000000-0000-0000-0000-000000000001'");
    let mut owner = world.database.pool().acquire().await.unwrap();
    run(
        &mut owner,
        &format!(
            "CREATE ROLE {role}; GRANT USAGE ON SCHEMA public TO {role};
             GRANT SELECT, UPDATE ON public.ingestion TO {role};
             SET search_path = public; SET ROLE {role}; {complete}; RESET ROLE; RESET search_path;
             REVOKE ALL ON public.ingestion FROM {role}; REVOKE ALL ON SCHEMA public FROM {role};
             DROP ROLE {role}"
        ),
    )
    .await;
    let data =
        "SELECT structured_data->>'total' FROM public.document WHERE left(id::text, 1) = 'e'";
    assert_eq!(world.ask::<String>(data).await, "9", "carried into the document");
}

async fn check_what_was_kept(world: &MovedProduct) {
    let db = Db::connect(&world.database.config()).await.unwrap();
    assert_eq!(db.schema_version().await.unwrap(), SchemaVersion::Current);
    let kept =
        "SELECT count(*) FROM docmill.document d JOIN docmill.ingestion i ON i.document_id = d.id
        WHERE d.created_at = '2025-01-02 03:04:05Z' AND d.size_bytes = 4711 AND d.uploaded_by = 7
          AND i.created_at = '2025-01-02 03:04:06Z' AND i.callback_url LIKE 'https://p/%'";
    assert_eq!(world.ask::<i64>(kept).await, 6);
    assert_eq!(
        world.ask::<String>("SELECT file_path FROM public.payable").await,
        "documents/c.pdf"
    );
    assert_eq!(world.ask::<i64>("SELECT count(*) FROM public.worker").await, 0);
    // A producer goes on, with its own columns, and its trigger fires.
    sqlx::raw_sql(
        "INSERT INTO document (id, file_path, uploaded_by) VALUES
             ('90000000-0000-0000-0000-000000000000', 'documents/9.pdf', 8);
         INSERT INTO ingestion (id, document_id) VALUES
             ('90000000-0000-0000-0000-000000000001', '90000000-0000-0000-0000-000000000000')",
    )
    .execute(&world.product)
    .await
    .unwrap();
    assert_eq!(world.ask::<i64>("SELECT count(*) FROM public.audit").await, 7);
    assert!(matches!(world.claim('9').await, ClaimOutcome::Claimed(_)));
}

async fn check_side_by_side(world: &MovedProduct) {
    // Ingestions in progress at the earlier workers stay theirs until they end.
    for letter in ['a', 'b'] {
        let answer = world.claim(letter).await;
        assert!(matches!(answer, ClaimOutcome::Busy(_)), "{letter}: {answer:?}");
        assert!(world.earlier(TRANSCRIBED, letter).await.is_some());
        assert!(world.earlier(COMPLETE, letter).await.is_some());
        assert!(matches!(world.claim(letter).await, ClaimOutcome::Terminal(_)));
    }
    let data =
        "SELECT structured_data->>'total' FROM public.document WHERE left(id::text, 1) = 'a'";
    assert_eq!(world.ask::<String>(data).await, "9");
    // Their notes on a reading are in their data, before and now, and in the columns.
    let said =
        "SELECT string_agg(left(id::text, 1) || extraction_successful || extraction_confidence
            || array_to_string(missing_fields, '+'), ' ' ORDER BY id)
        FROM docmill.ingestion WHERE status = 'completed'";
    assert_eq!(world.ask::<String>(said).await, "atruelow btruelow ctruemediumdue_date");
    let same =
        "SELECT count(*) FROM docmill.ingestion i JOIN docmill.ingestion_as_before b USING (id)
        WHERE i.status = 'completed' AND b.structured_data = i.structured_data";
    assert_eq!(world.ask::<i64>(same).await, 3);
    // A claim of theirs keeps ours away.
    assert!(world.earlier(CLAIM, 'd').await.is_some());
    assert!(matches!(world.claim('d').await, ClaimOutcome::Busy(_)));
    // Three failures end a row as docmill's rules want it, and call for a person.
    for count in ["1 in-progress", "2 in-progress", "3 failed"] {
        assert_eq!(world.earlier(FAIL, 'e').await.as_deref(), Some(count));
    }
    let review = "SELECT needs_human_review FROM public.document WHERE left(id::text, 1) = 'e'";
    assert!(world.ask::<bool>(review).await);
    // docmill's claims are not theirs, however old, nor is their end.
    assert!(matches!(world.claim('f').await, ClaimOutcome::Claimed(_)));
    let long_ago = "SET docmill.session = 'yes';
        UPDATE docmill.ingestion SET started_at = now() - interval '1 hour'
        WHERE id = 'f0000000-0000-0000-0000-000000000001'; RESET docmill.session";
    sqlx::raw_sql(long_ago).execute(world.database.pool()).await.unwrap();
    assert_eq!(world.earlier(CLAIM, 'f').await, None);
    assert_eq!(world.earlier(COMPLETE, 'f').await, None);
    let held = "SELECT status FROM docmill.ingestion WHERE left(id::text, 1) = 'f'";
    assert_eq!(world.ask::<String>(held).await, "in-progress");
}

async fn check_as_before(world: &MovedProduct) {
    let columns = "SELECT string_agg(column_name, ' ' ORDER BY ordinal_position)
        FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'ingestion'";
    assert_eq!(
        world.ask::<String>(columns).await,
        "id document_id status started_at completed_at attempt_count transcription_file_path \
         transcription_quality_score preprocessed_file_path structured_data valid_structured_data \
         extraction_input_tokens extraction_output_tokens extraction_model created_at callback_url"
    );
    let triggers = "SELECT string_agg(tgname::text, ' ' ORDER BY tgname) FROM pg_trigger
        WHERE tgrelid IN ('public.ingestion'::regclass, 'public.document'::regclass)
          AND NOT tgisinternal";
    assert_eq!(world.ask::<String>(triggers).await, "ingestion_done uploaded");
    let checks = "SELECT count(*) FROM pg_constraint WHERE contype = 'c'
        AND conrelid IN ('public.ingestion'::regclass, 'public.document'::regclass)";
    assert_eq!(world.ask::<i64>(checks).await, 0);
    // The earlier worker goes on by itself, its own trigger carries.
    sqlx::raw_sql("UPDATE ingestion SET started_at = NULL WHERE left(id::text, 1) = 'f'")
        .execute(&world.product)
        .await
        .unwrap();
    assert!(world.earlier(CLAIM, 'f').await.is_some());
    assert!(world.earlier(COMPLETE, 'f').await.is_some());
    let data =
        "SELECT structured_data->>'total' FROM public.document WHERE left(id::text, 1) = 'f'";
    assert_eq!(world.ask::<String>(data).await, "9");
}

/// Migrates a product's database after a change; the text of the refusal.
async fn refusal(change: &str, schema: &str, from: Option<&str>) -> String {
    let world = MovedProduct::before().await;
    let mut owner = world.database.pool().acquire().await.unwrap();
    run(&mut owner, &format!("SET search_path = public; {change}")).await;
    let state = "SELECT md5(string_agg(x, '' ORDER BY x)) FROM (
        SELECT relname::text || relnamespace || relkind::text AS x FROM pg_class WHERE relnamespace > 10000
            OR relnamespace = 'public'::regnamespace
        UNION ALL SELECT attrelid::text || attname::text || atttypid FROM pg_attribute
            WHERE attrelid::regclass::text LIKE '%ingestion' AND attnum > 0) s";
    let before: String = world.ask(state).await;
    let config = DatabaseConfig { schema: schema.to_owned(), ..world.database.config() };
    let db = Db::connect(&config).await.unwrap();
    let options =
        MigrationOptions { adopt_from: from.map(str::to_owned), ..MigrationOptions::default() };
    let said = db.migrate_with(&options).await.unwrap_err().to_string();
    assert_eq!(world.ask::<String>(state).await, before, "{said}");
    assert!(said.contains("nothing was changed"), "{said}");
    said
}

#[tokio::test]
async fn an_unadoptable_schema_is_refused_unchanged_with_instructions() {
    let said = refusal("", "public", None).await;
    for word in ["the table `worker`", "the type `attempt`", "the table `pause`", "--adopt public"]
    {
        assert!(said.contains(word), "{word}: {said}");
    }
    let said = refusal(
        "ALTER TABLE ingestion ADD COLUMN reason text; ALTER TABLE document ADD COLUMN tags text[];
         ALTER TABLE ingestion ALTER COLUMN status DROP NOT NULL;
         UPDATE ingestion SET status = NULL WHERE left(id::text, 1) = 'a';
         CREATE TRIGGER loose AFTER UPDATE ON ingestion FOR EACH ROW EXECUTE FUNCTION note_upload();
         ALTER FUNCTION note_upload() RESET search_path;
         CREATE INDEX open_ones ON ingestion (created_at) WHERE status = 'in-progress';
         ALTER TABLE ingestion ADD CONSTRAINT known CHECK (status <> 'failed' OR attempt_count >= 0)",
        "docmill",
        Some("public"),
    )
    .await;
    for word in [
        "ALTER TABLE public.ingestion RENAME COLUMN reason TO product_reason",
        "public.document.tags is of type text[]",
        "1 rows of public.ingestion have a status other than",
        "ALTER FUNCTION public.note_upload() SET search_path = public",
        "DROP INDEX public.open_ones; after the migration make it again: CREATE INDEX open_ones",
        "WHERE (status = 'in-progress'::text)",
        "ALTER TABLE public.ingestion DROP CONSTRAINT known",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let said = refusal(
        "CREATE VIEW board AS SELECT id FROM ingestion WHERE status = 'failed'",
        "docmill",
        Some("public"),
    )
    .await;
    assert!(said.contains("board") && said.contains("make it again"), "{said}");
}

#[tokio::test]
async fn tables_that_have_columns_of_ours_are_adopted_where_they_are() {
    let world = MovedProduct::before().await;
    let mut owner = world.database.pool().acquire().await.unwrap();
    run(&mut owner, "SET search_path = public; DROP TABLE worker, pause; DROP TYPE attempt").await;
    let config = DatabaseConfig { schema: "public".to_owned(), ..world.database.config() };
    let db = Db::connect(&config).await.unwrap();
    let earlier_workers = Some(EarlierWorkers::Gone);
    let options = MigrationOptions { earlier_workers, ..MigrationOptions::default() };
    db.migrate_with(&options).await.unwrap();
    assert_eq!(db.schema_version().await.unwrap(), SchemaVersion::Current);
    let kept =
        "SELECT count(*) FROM public.ingestion i JOIN public.document d ON d.id = i.document_id
        WHERE i.created_at = '2025-01-02 03:04:06Z' AND d.size_bytes = 4711";
    assert_eq!(world.ask::<i64>(kept).await, 6);
    let free = "SELECT count(*) FROM public.ingestion WHERE claim_token IS NOT NULL";
    assert_eq!(world.ask::<i64>(free).await, 0);
    // Again, and nothing happens.
    db.migrate_with(&options).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_row_is_extracted_from_the_earlier_transcript_and_not_read_again() {
    let world = World::with_model(Script::default()).await;
    let bytes = documents::invoice("PAGE-1");
    let text = "Northwind Paper Ltd\\nTax ID: GB123456789\\nINVOICE\\nInvoice number: EDN-1\\n\
        Invoice date: 2026-03-14\\nTotal: 120.00 GBP";
    let usable = format!("{{:text \"{text}\" :quality-score 0.91 :page-count 1}}");
    // Named by the row, and what becomes of it.
    let table = [
        (usable.as_str(), true, "EDN-1", "0.91"),
        (usable.as_str(), false, "PAGE-1", "1"),
        ("{:text \"cut", true, "PAGE-1", "1"),
    ];
    for (edn, is_wished, number, quality) in table {
        let id = world.insert("a.pdf", bytes.clone()).await;
        let key = format!("ingestions/{id}/transcription-output.edn");
        world.store.put(&key, Bytes::from(edn.to_owned()), &BTreeMap::new()).await.unwrap();
        world
            .execute(&format!(
                "UPDATE docmill.ingestion SET transcription_file_path = '{key}' WHERE id = '{id}'"
            ))
            .await;
        let worker = world
            .worker_with(|config| {
                config.ocr.earlier_transcripts = is_wished;
                config.ocr.write_edn = true;
            })
            .await;
        world.send(id.to_string()).await;
        world.until(id, "(completed_at IS NOT NULL)", "true").await;
        worker.stop().await;
        let read = world.column(id, "structured_data->>'invoice_number'").await;
        assert_eq!(read.as_deref(), Some(number), "{edn}");
        let score = "round(transcription_quality_score::numeric, 2)::float8::text";
        assert_eq!(world.column(id, score).await.as_deref(), Some(quality), "{edn}");
        let path = world.column(id, "transcription_file_path").await.unwrap();
        assert!(path.ends_with("/transcription-output.json"), "{path}");
        // The earlier worker's own stays; where the pages were read, theirs is there for others.
        let what = GetOptions { at_most: 1 << 20, if_match: None };
        let GetResult::Found(there) = world.store.get(&key, what).await.unwrap() else {
            panic!("{key} is gone")
        };
        let there = String::from_utf8(there.bytes.to_vec()).unwrap();
        assert_eq!(there == edn, number == "EDN-1", "{there}");
        assert!(there.contains(number), "{there}");
    }
}

/// Whether a file below one of these folders has this text.
fn any_source_has(folders: &[&str], text: &str) -> bool {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open: Vec<_> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(place) = open.pop() {
        if place.is_dir() {
            open.extend(std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()));
        } else if place.extension().is_some_and(|it| it == "rs")
            && std::fs::read_to_string(&place).unwrap().contains(text)
        {
            return true;
        }
    }
    false
}

#[test]
fn every_row_of_earlier_behaviour_names_an_existing_test() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page =
        std::fs::read_to_string(root.join("docs/lab/2026-11-29-earlier-systems.md")).unwrap();
    let (_, table) = page.split_once("# Earlier behaviour, row by row").unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| 00")).collect();
    assert!(rows.len() >= 40, "{} rows", rows.len());
    for row in rows {
        let held_by = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let mut named = held_by.split('`').skip(1).step_by(2).peekable();
        assert!(named.peek().is_some() || held_by.contains(".md"), "nothing holds this: {row}");
        for name in named {
            let is_file = name.contains('/');
            let is_there = match is_file {
                true => root.join(name).exists(),
                false => any_source_has(&["tests", "src", "crates"], &format!("fn {name}(")),
            };
            assert!(is_there, "there is no {name}: {row}");
        }
    }
}
