-- The two tables of the earlier system, made if they are not there. In a schema that already
-- holds them (operators of the earlier system set `database.schema = "public"`) they are taken
-- over in place: nothing is renamed, no row is dropped. Everything else comes in later files.

CREATE TABLE IF NOT EXISTS document (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    file_path text NOT NULL
);

ALTER TABLE document ADD COLUMN IF NOT EXISTS structured_data jsonb;
ALTER TABLE document ADD COLUMN IF NOT EXISTS needs_human_review boolean DEFAULT false;
ALTER TABLE document ADD COLUMN IF NOT EXISTS updated_at timestamptz DEFAULT now();

CREATE TABLE IF NOT EXISTS ingestion (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    document_id uuid NOT NULL
);

ALTER TABLE ingestion ADD COLUMN IF NOT EXISTS status text DEFAULT 'in-progress';
ALTER TABLE ingestion ADD COLUMN IF NOT EXISTS started_at timestamptz;
ALTER TABLE ingestion ADD COLUMN IF NOT EXISTS completed_at timestamptz;
ALTER TABLE ingestion ADD COLUMN IF NOT EXISTS attempt_count int DEFAULT 0;
ALTER TABLE ingestion ADD COLUMN IF NOT EXISTS transcription_file_path text;
ALTER TABLE ingestion ADD COLUMN IF NOT EXISTS transcription_quality_score double precision;
ALTER TABLE ingestion ADD COLUMN IF NOT EXISTS preprocessed_file_path text;
ALTER TABLE ingestion ADD COLUMN IF NOT EXISTS structured_data jsonb;
ALTER TABLE ingestion ADD COLUMN IF NOT EXISTS valid_structured_data boolean;
ALTER TABLE ingestion ADD COLUMN IF NOT EXISTS extraction_input_tokens bigint;
ALTER TABLE ingestion ADD COLUMN IF NOT EXISTS extraction_output_tokens bigint;
ALTER TABLE ingestion ADD COLUMN IF NOT EXISTS extraction_model text;

-- The earlier trigger lets a failed or an older ingestion overwrite good data. Whatever trigger
-- calls a function of its name goes; ours comes with the file about the record.
DO $$
DECLARE
    old record;
BEGIN
    FOR old IN
        SELECT t.tgname
        FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
        WHERE t.tgrelid = 'ingestion'::regclass AND NOT t.tgisinternal
          AND p.proname = 'update_document_from_ingestion'
    LOOP
        EXECUTE format('DROP TRIGGER %I ON ingestion', old.tgname);
    END LOOP;
END
$$;

-- Types that the earlier system may have chosen otherwise (an enum, json, int, numeric, real).
-- Only what differs is altered, so that nothing is rewritten without need.
DO $$
DECLARE
    wanted record;
BEGIN
    FOR wanted IN
        SELECT w.tab, w.col, w.typ
        FROM (VALUES
            ('ingestion', 'status', 'text'),
            ('ingestion', 'started_at', 'timestamp with time zone'),
            ('ingestion', 'completed_at', 'timestamp with time zone'),
            ('ingestion', 'attempt_count', 'integer'),
            ('ingestion', 'transcription_quality_score', 'double precision'),
            ('ingestion', 'structured_data', 'jsonb'),
            ('ingestion', 'extraction_input_tokens', 'bigint'),
            ('ingestion', 'extraction_output_tokens', 'bigint'),
            ('document', 'structured_data', 'jsonb'),
            ('document', 'updated_at', 'timestamp with time zone')
        ) AS w(tab, col, typ)
        JOIN pg_attribute a ON a.attrelid = w.tab::regclass AND a.attname = w.col
        WHERE format_type(a.atttypid, a.atttypmod) <> w.typ
    LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I DROP DEFAULT', wanted.tab, wanted.col);
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I TYPE %s USING %I::text::%s',
            wanted.tab, wanted.col, wanted.typ, wanted.col, wanted.typ);
    END LOOP;
END
$$;

ALTER TABLE ingestion ALTER COLUMN status SET DEFAULT 'in-progress';
ALTER TABLE ingestion ALTER COLUMN attempt_count SET DEFAULT 0;
ALTER TABLE document ALTER COLUMN needs_human_review SET DEFAULT false;
ALTER TABLE document ALTER COLUMN updated_at SET DEFAULT now();
