-- The whole schema. In a schema that already holds the two tables of the earlier system (its
-- operators set `database.schema = "public"`) they are taken over in place: nothing is renamed, no
-- row is dropped. tests/it/schema.rs fails if a table, view or column has no COMMENT.

-- A session's temporary tables come before every schema that the path does not put them behind:
-- pg_temp last, so that no function below reads a caller's own table of the same name.
DO $$
BEGIN
    PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
END
$$;

-- The one clock that decides ownership. Tests replace it by `clock_timestamp() + interval '…'`
-- or by a fixed time; nothing else may. Written as one expression so that Postgres inlines it.
CREATE OR REPLACE FUNCTION docmill_now() RETURNS timestamptz
LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT clock_timestamp() $$;
COMMENT ON FUNCTION docmill_now() IS
    'The clock of every lease, delay and end. Only tests replace it, to move time.';

-- The tables and columns of the earlier system, created if they are missing. Only these columns are
-- added IF NOT EXISTS: `docmill migrate --adopt` reads from the form which columns are docmill's own.

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

-- The earlier trigger lets a failed or an older ingestion overwrite good data. Every trigger that
-- calls a function of that name is dropped; ours is created below.
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

-- Columns that docmill adds. Every one may be left out by a producer that inserts
-- `(id, document_id)`.

ALTER TABLE document
    ADD COLUMN original_name text,
    ADD COLUMN sha256 text,
    ADD COLUMN size_bytes bigint,
    ADD COLUMN tenant text,
    ADD COLUMN tags jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN review_reasons text[] NOT NULL DEFAULT '{}',
    ADD COLUMN completed_ingestion_id uuid,
    ADD COLUMN completed_ingestion_created_at timestamptz,
    ADD COLUMN corrected_at timestamptz,
    ADD COLUMN corrected_by text,
    ADD COLUMN created_at timestamptz NOT NULL DEFAULT docmill_now();

ALTER TABLE ingestion
    ADD COLUMN created_at timestamptz NOT NULL DEFAULT docmill_now(),
    ADD COLUMN updated_at timestamptz NOT NULL DEFAULT docmill_now(),
    ADD COLUMN kind text,
    ADD COLUMN tenant text,
    ADD COLUMN object_etag text,
    ADD COLUMN object_sequencer text,
    ADD COLUMN object_size bigint,
    ADD COLUMN claim_token uuid,
    ADD COLUMN lease_expires_at timestamptz,
    ADD COLUMN worker text,
    ADD COLUMN stage text,
    ADD COLUMN claims bigint NOT NULL DEFAULT 0,
    ADD COLUMN attempt_limit int NOT NULL DEFAULT 8,
    ADD COLUMN crashes int NOT NULL DEFAULT 0,
    ADD COLUMN next_attempt_at timestamptz,
    ADD COLUMN deferred_since timestamptz,
    ADD COLUMN enqueued_at timestamptz NOT NULL DEFAULT docmill_now(),
    ADD COLUMN resends int NOT NULL DEFAULT 0,
    ADD COLUMN reason text,
    ADD COLUMN detail text,
    ADD COLUMN needs_human_review boolean NOT NULL DEFAULT false,
    ADD COLUMN review_reasons text[] NOT NULL DEFAULT '{}',
    ADD COLUMN reader text,
    ADD COLUMN sha256 text,
    ADD COLUMN pages int,
    ADD COLUMN transcription_identity text,
    ADD COLUMN extraction_output_file_path text,
    ADD COLUMN extraction_identity text,
    ADD COLUMN duplicate_key text,
    ADD COLUMN preprocessed_sha256 text,
    ADD COLUMN priority text NOT NULL DEFAULT 'normal'
        CONSTRAINT ingestion_priority_is_known
        CHECK (priority IN ('critical', 'high', 'normal', 'low', 'background')),
    ADD COLUMN gate_score real
        CONSTRAINT ingestion_gate_score_is_a_share CHECK (gate_score BETWEEN 0 AND 1),
    ADD COLUMN grounded jsonb,
    ADD COLUMN parked_by text,
    ADD COLUMN parked_until timestamptz,
    ADD COLUMN denials int NOT NULL DEFAULT 0,
    ADD COLUMN superseded_by uuid,
    ADD COLUMN extraction_successful boolean,
    ADD COLUMN extraction_confidence text,
    ADD COLUMN missing_fields text[];

-- The reader's own statements in structured_data, as the earlier worker stored them.
CREATE FUNCTION stated_in_data(data jsonb,
    OUT successful boolean, OUT confidence text, OUT missing text[])
LANGUAGE sql IMMUTABLE
AS $$
    SELECT
        CASE WHEN jsonb_typeof(data->'extraction_successful') = 'boolean'
            THEN (data->>'extraction_successful')::boolean END,
        CASE WHEN data->>'confidence' IN ('high', 'medium', 'low') THEN data->>'confidence' END,
        CASE WHEN jsonb_typeof(data->'missing_fields') = 'array' THEN ARRAY(
            SELECT field #>> '{}' FROM jsonb_array_elements(data->'missing_fields') AS field
            WHERE jsonb_typeof(field) = 'string') END
$$;
COMMENT ON FUNCTION stated_in_data(jsonb) IS
    'What the earlier worker''s structured_data says of its reading.';

-- Rows of the earlier system. A running row keeps its started_at for people to see, but has no
-- lease: the first worker that gets its message claims it.
UPDATE ingestion SET
    created_at = COALESCE(started_at, completed_at, created_at),
    attempt_count = COALESCE(attempt_count, 0),
    completed_at = CASE
        WHEN status = 'in-progress' THEN NULL
        ELSE COALESCE(completed_at, started_at, docmill_now()) END,
    valid_structured_data = CASE
        WHEN status = 'completed' THEN COALESCE(valid_structured_data, true)
        WHEN status = 'failed' THEN false
        ELSE valid_structured_data END,
    needs_human_review = status = 'failed'
        OR (status = 'completed' AND valid_structured_data IS FALSE),
    reason = CASE WHEN status = 'failed' THEN 'internal' END,
    detail = CASE WHEN status = 'failed'
        THEN 'failed before this schema was adopted; the reason was not recorded' END;

-- A document carries its newest completed ingestion. A newer failure, which the earlier trigger did
-- not show, calls for review now.
UPDATE document d SET
    completed_ingestion_id = newest.id,
    completed_ingestion_created_at = newest.created_at
FROM (
    SELECT DISTINCT ON (document_id) document_id, id, created_at
    FROM ingestion WHERE status = 'completed'
    ORDER BY document_id, created_at DESC, id DESC
) AS newest
WHERE newest.document_id = d.id;

UPDATE document d SET needs_human_review = true
FROM (
    SELECT DISTINCT ON (document_id) document_id, status
    FROM ingestion ORDER BY document_id, created_at DESC, id DESC
) AS newest
WHERE newest.document_id = d.id AND newest.status = 'failed' AND d.needs_human_review IS NOT TRUE;

UPDATE document SET needs_human_review = false WHERE needs_human_review IS NULL;
UPDATE document SET updated_at = docmill_now() WHERE updated_at IS NULL;

UPDATE ingestion i SET (extraction_successful, extraction_confidence, missing_fields) = (
    SELECT s.successful, s.confidence, s.missing FROM stated_in_data(i.structured_data) s)
WHERE i.structured_data ?| ARRAY['extraction_successful', 'confidence', 'missing_fields'];

ALTER TABLE document
    ALTER COLUMN needs_human_review SET NOT NULL,
    ALTER COLUMN updated_at SET NOT NULL,
    ALTER COLUMN updated_at SET DEFAULT docmill_now(),
    ADD CONSTRAINT document_sha256_is_hex CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    ADD CONSTRAINT document_size_is_not_negative CHECK (size_bytes >= 0),
    ADD CONSTRAINT document_carries_all_or_nothing
        CHECK ((completed_ingestion_id IS NULL) = (completed_ingestion_created_at IS NULL)),
    ADD CONSTRAINT document_correction_has_a_time
        CHECK (corrected_by IS NULL OR corrected_at IS NOT NULL);

ALTER TABLE ingestion
    ALTER COLUMN status SET NOT NULL,
    ALTER COLUMN attempt_count SET NOT NULL,
    ADD CONSTRAINT ingestion_status_is_known
        CHECK (status IN ('in-progress', 'completed', 'failed', 'cancelled')),
    ADD CONSTRAINT ingestion_terminal_has_an_end
        CHECK ((status = 'in-progress') = (completed_at IS NULL)),
    ADD CONSTRAINT ingestion_token_and_lease_together
        CHECK ((claim_token IS NULL) = (lease_expires_at IS NULL)),
    ADD CONSTRAINT ingestion_terminal_has_no_lease
        CHECK (status = 'in-progress' OR lease_expires_at IS NULL),
    ADD CONSTRAINT ingestion_reason_tells_why
        CHECK ((status IN ('failed', 'cancelled')) = (reason IS NOT NULL)),
    ADD CONSTRAINT ingestion_reason_fits_status CHECK (CASE
        WHEN reason IS NULL THEN true
        WHEN reason IN ('superseded', 'cancelled', 'blocked') THEN status = 'cancelled'
        ELSE status = 'failed' AND reason IN ('corrupt', 'encrypted', 'empty', 'unsupported_type',
            'too_large', 'timeout', 'no_text', 'gate_refused', 'cut', 'model_refused', 'crashed',
            'missing', 'internal', 'transient', 'deferred_too_long') END),
    ADD CONSTRAINT ingestion_stage_is_known CHECK (stage IN
        ('claimed', 'fetch', 'transcribe', 'extract', 'gate', 'record')),
    ADD CONSTRAINT ingestion_completed_has_a_verdict
        CHECK (status <> 'completed' OR valid_structured_data IS NOT NULL),
    ADD CONSTRAINT ingestion_failed_is_not_valid
        CHECK (status <> 'failed' OR (valid_structured_data IS FALSE AND needs_human_review)),
    ADD CONSTRAINT ingestion_counts_are_not_negative
        CHECK (attempt_count >= 0 AND claims >= 0 AND crashes >= 0 AND resends >= 0
            AND attempt_limit >= 0),
    ADD CONSTRAINT ingestion_sha256_is_whole CHECK (length(sha256) = 64),
    ADD CONSTRAINT ingestion_extraction_confidence_is_known
        CHECK (extraction_confidence IN ('high', 'medium', 'low'));

-- The earlier system may hold ingestions whose document is gone; only new rows are checked.
DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_constraint WHERE contype = 'f'
        AND conrelid = 'ingestion'::regclass AND confrelid = 'document'::regclass)
    THEN
        ALTER TABLE ingestion ADD CONSTRAINT ingestion_document_id_fkey
            FOREIGN KEY (document_id) REFERENCES document (id) NOT VALID;
    END IF;
END
$$;

-- Renewals must be HOT: room on every page, and no index, nor a predicate of one, on
-- lease_expires_at, next_attempt_at, claim_token, stage, worker or updated_at.
ALTER TABLE ingestion SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE document SET (fillfactor = 85);

CREATE INDEX ingestion_by_document ON ingestion (document_id, created_at DESC, id DESC);
CREATE INDEX ingestion_by_age ON ingestion (created_at DESC, id DESC);
CREATE INDEX ingestion_waiting ON ingestion (enqueued_at) WHERE status = 'in-progress';
CREATE INDEX ingestion_ended ON ingestion (completed_at) WHERE completed_at IS NOT NULL;
CREATE INDEX ingestion_duplicates ON ingestion (duplicate_key) WHERE duplicate_key IS NOT NULL;
CREATE INDEX document_by_sha256 ON document (sha256 text_pattern_ops) WHERE sha256 IS NOT NULL;
CREATE INDEX document_to_review ON document (updated_at) WHERE needs_human_review;
-- Ingestions that may have lost their message, longest silent first. Parked ones are left out, so
-- that no pass scans a long pause.
CREATE INDEX ingestion_sendable ON ingestion (enqueued_at, id)
    WHERE status = 'in-progress' AND parked_by IS NULL AND parked_until IS NULL;
-- The oldest open ingestion.
CREATE INDEX ingestion_open ON ingestion (created_at, id)
    WHERE status = 'in-progress';
-- Parked ingestions by due time.
CREATE INDEX ingestion_parked_until ON ingestion (parked_until)
    WHERE status = 'in-progress' AND parked_until IS NOT NULL;
-- Parked ingestions by pause.
CREATE INDEX ingestion_parked_by ON ingestion (parked_by)
    WHERE status = 'in-progress' AND parked_by IS NOT NULL;
-- A tenant's ingestions, oldest first, page by page.
CREATE INDEX ingestion_of_tenant ON ingestion (tenant, created_at, id)
    WHERE tenant IS NOT NULL;
-- Failures, newest first; also fast for a rare reason.
CREATE INDEX ingestion_failed
    ON ingestion (created_at DESC, id DESC) INCLUDE (reason) WHERE status = 'failed';
-- Other documents with the same original. A hash: paths may be too long for a B-tree.
CREATE INDEX document_by_path ON document USING hash (file_path);
-- A tenant's documents, oldest first, page by page.
CREATE INDEX document_of_tenant ON document (tenant, created_at, id)
    WHERE tenant IS NOT NULL;
-- Documents, newest first: the order of a search for words.
CREATE INDEX document_newest ON document (created_at, id);

COMMENT ON TABLE document IS
    'Bytes in the object store; carries the data of its newest completed ingestion.';
COMMENT ON COLUMN document.id IS
    'Named by ingestion.document_id; of S3 events a UUIDv5 of bucket and key.';
COMMENT ON COLUMN document.file_path IS
    'Where the original lies: a key in the configured bucket, or s3://bucket/key.';
COMMENT ON COLUMN document.structured_data IS
    'The newest completed ingestion''s data, or a person''s correction.';
COMMENT ON COLUMN document.needs_human_review IS 'A person has to look; review_reasons says why.';
COMMENT ON COLUMN document.updated_at IS 'Last change of this row.';
COMMENT ON COLUMN document.original_name IS
    'The name the file had with its sender; for display only.';
COMMENT ON COLUMN document.sha256 IS 'SHA-256 of the original in hex, once known.';
COMMENT ON COLUMN document.size_bytes IS 'Size of the original in bytes, if known.';
COMMENT ON COLUMN document.tenant IS 'On whose behalf; null: nobody in particular.';
COMMENT ON COLUMN document.tags IS 'The producer''s own labels; docmill never reads them.';
COMMENT ON COLUMN document.review_reasons IS
    'Why a person has to look: names of gate rules and reason codes.';
COMMENT ON COLUMN document.completed_ingestion_id IS 'The newest completed ingestion so far.';
COMMENT ON COLUMN document.completed_ingestion_created_at IS
    'created_at of that ingestion, kept here so that the trigger compares under the lock of this row.';
COMMENT ON COLUMN document.corrected_at IS
    'When a person corrected, confirmed or rejected structured_data; from then on it is never overwritten.';
COMMENT ON COLUMN document.corrected_by IS 'Who did.';
COMMENT ON COLUMN document.created_at IS 'When the row was made.';

COMMENT ON TABLE ingestion IS
    'One document''s way to structured data; its id is the body of the queue message.';
COMMENT ON COLUMN ingestion.id IS 'The body of the queue message.';
COMMENT ON COLUMN ingestion.document_id IS 'The document.';
COMMENT ON COLUMN ingestion.status IS
    'in-progress (waiting, claimed or put off), completed, failed or cancelled.';
COMMENT ON COLUMN ingestion.started_at IS
    'When the newest claim began; null: never claimed. Decides nothing: see lease_expires_at.';
COMMENT ON COLUMN ingestion.completed_at IS 'When it ended; null exactly while in-progress.';
COMMENT ON COLUMN ingestion.attempt_count IS
    'Attempts that count, raised at the claim and lowered again when an attempt is given back. All attempts are the rows of attempt.';
COMMENT ON COLUMN ingestion.transcription_file_path IS 'Key of the stored transcript.';
COMMENT ON COLUMN ingestion.transcription_quality_score IS 'The transcript''s quality, 0 to 1.';
COMMENT ON COLUMN ingestion.preprocessed_file_path IS
    'Key of the repaired pages, if a reading came from one: preprocessed.pdf, or an image.';
COMMENT ON COLUMN ingestion.structured_data IS
    'The data: whole when completed, partial when the gate refused, else null.';
COMMENT ON COLUMN ingestion.valid_structured_data IS
    'Whether the data passed the gate; false for every failed ingestion.';
COMMENT ON COLUMN ingestion.extraction_input_tokens IS
    'Prompt tokens of the calls behind structured_data.';
COMMENT ON COLUMN ingestion.extraction_output_tokens IS 'Generated tokens of those calls.';
COMMENT ON COLUMN ingestion.extraction_model IS 'The model, if one was called.';
COMMENT ON COLUMN ingestion.created_at IS
    'When the row was made; with id as tie-break it orders a document''s ingestions.';
COMMENT ON COLUMN ingestion.updated_at IS 'Last write other than a renewal.';
COMMENT ON COLUMN ingestion.kind IS
    'Kind of document, if the producer named one or once it was recognised.';
COMMENT ON COLUMN ingestion.tenant IS 'On whose behalf; null: nobody in particular.';
COMMENT ON COLUMN ingestion.object_etag IS
    'The version of the object that an event named; the fetch must match it.';
COMMENT ON COLUMN ingestion.object_sequencer IS
    'Orders the events of one object: hex without leading zeros, the longer one is the later.';
COMMENT ON COLUMN ingestion.object_size IS 'Bytes of the object, if the event said so.';
COMMENT ON COLUMN ingestion.claim_token IS
    'Proof of the current claim, demanded by each of its writes; null: not claimed.';
COMMENT ON COLUMN ingestion.lease_expires_at IS
    'The claim lasts until then unless renewed; null: not claimed.';
COMMENT ON COLUMN ingestion.worker IS 'Who holds or last held the claim.';
COMMENT ON COLUMN ingestion.stage IS 'How far the newest claim has come; informational.';
COMMENT ON COLUMN ingestion.claims IS 'Number of claims ever; only grows; key of attempt.';
COMMENT ON COLUMN ingestion.attempt_limit IS
    '8, raised by every reopening to attempt_count + 8: used attempts are attempt_count - (attempt_limit - 8).';
COMMENT ON COLUMN ingestion.crashes IS
    'Claims since the last reopening that ended without a word; above 0 the document is a suspect.';
COMMENT ON COLUMN ingestion.next_attempt_at IS 'Not due before; null: due.';
COMMENT ON COLUMN ingestion.deferred_since IS
    'Start of the current streak of deferrals, moved on at each claim by the time in line since it was due; null: none.';
COMMENT ON COLUMN ingestion.enqueued_at IS 'When a message for it was last sent, as far as known.';
COMMENT ON COLUMN ingestion.resends IS 'How often the janitor has sent it again.';
COMMENT ON COLUMN ingestion.reason IS 'Why it failed or was cancelled; null otherwise.';
COMMENT ON COLUMN ingestion.detail IS
    'What an operator reads about the newest end of an attempt; never document content.';
COMMENT ON COLUMN ingestion.needs_human_review IS 'A person has to look at the result.';
COMMENT ON COLUMN ingestion.review_reasons IS 'Why: names of gate rules and reason codes.';
COMMENT ON COLUMN ingestion.reader IS 'Which reader produced the data: einvoice, llm or rules.';
COMMENT ON COLUMN ingestion.sha256 IS 'SHA-256 of the original in hex, once it was read.';
COMMENT ON COLUMN ingestion.pages IS 'Pages read.';
COMMENT ON COLUMN ingestion.transcription_identity IS
    'SHA-256 over everything that determines the transcript; reused only if equal.';
COMMENT ON COLUMN ingestion.extraction_output_file_path IS 'Key of the stored model reply.';
COMMENT ON COLUMN ingestion.extraction_identity IS
    'SHA-256 over everything that determines the reply; reused only if equal.';
COMMENT ON COLUMN ingestion.duplicate_key IS
    'SHA-256 of supplier and invoice number (folded) of a completed invoice, to find it again.';
COMMENT ON COLUMN ingestion.preprocessed_sha256 IS 'SHA-256 of the repaired file, in hex.';
COMMENT ON COLUMN ingestion.priority IS
    'Which tier of the queue its messages go to: critical, high, normal, low or background.';
COMMENT ON COLUMN ingestion.gate_score IS
    'How likely the data is right, 0 to 1, as the gate sees it; null without a verdict.';
COMMENT ON COLUMN ingestion.grounded IS
    'Where on the pages values of structured_data were found: a list of field, page, box, confidence.';
COMMENT ON COLUMN ingestion.parked_by IS
    'The pause (scope:name) that holds it back while it waits without a message; null: none.';
COMMENT ON COLUMN ingestion.parked_until IS
    'When maintenance sends the message of what waits for long; null: it has one.';
COMMENT ON COLUMN ingestion.denials IS
    'How often in a row it was put off for what a person has to mend: each wait is longer.';
COMMENT ON COLUMN ingestion.superseded_by IS
    'Of a superseded ingestion: the one that reads the newer version in its place.';
COMMENT ON COLUMN ingestion.extraction_successful IS
    'Whether the reader says that it could read all that it was asked for. Its word; valid_structured_data is the verdict.';
COMMENT ON COLUMN ingestion.extraction_confidence IS
    'How sure the reader says it is: high, medium or low.';
COMMENT ON COLUMN ingestion.missing_fields IS
    'Fields that the reader says are not on the document.';

-- Attempts and money.

CREATE TABLE attempt (
    ingestion_id uuid NOT NULL REFERENCES ingestion (id) ON DELETE CASCADE,
    claims bigint NOT NULL,
    token uuid NOT NULL,
    worker text,
    started_at timestamptz,
    ended_at timestamptz NOT NULL DEFAULT docmill_now(),
    stage text,
    outcome text NOT NULL,
    final boolean NOT NULL DEFAULT false,
    counted boolean NOT NULL DEFAULT true,
    next_attempt_at timestamptz,
    model text,
    input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    detail text,
    PRIMARY KEY (ingestion_id, claims),
    CONSTRAINT attempt_outcome_is_known CHECK (outcome IN (
        'completed',
        'corrupt', 'encrypted', 'empty', 'unsupported_type', 'too_large', 'timeout', 'no_text',
        'gate_refused', 'cut', 'model_refused', 'crashed', 'missing', 'internal', 'transient',
        'deferred_too_long', 'superseded', 'cancelled', 'blocked',
        'throttled', 'unavailable', 'denied', 'misconfigured', 'paused', 'over_budget', 'batched',
        'rejected', 'interrupted')),
    CONSTRAINT attempt_final_is_counted CHECK (counted OR NOT final)
);
-- Old attempts, oldest first. Not BRIN: rows leave the order of time once deleted ones make room.
CREATE INDEX attempt_ended ON attempt (ended_at);
COMMENT ON TABLE attempt IS
    'One claim and how it ended; written when it ends.';
COMMENT ON COLUMN attempt.ingestion_id IS 'The ingestion.';
COMMENT ON COLUMN attempt.claims IS 'ingestion.claims at the claim.';
COMMENT ON COLUMN attempt.token IS 'The claim''s token.';
COMMENT ON COLUMN attempt.worker IS 'Who held it.';
COMMENT ON COLUMN attempt.started_at IS 'When it was claimed.';
COMMENT ON COLUMN attempt.ended_at IS
    'When the end was written; of a crash, when the next claim found it.';
COMMENT ON COLUMN attempt.stage IS 'How far it came.';
COMMENT ON COLUMN attempt.outcome IS
    'completed, a reason code, or the fault that another attempt follows.';
COMMENT ON COLUMN attempt.final IS 'Whether the ingestion ended with it.';
COMMENT ON COLUMN attempt.counted IS 'Whether it counts against the limit, or was given back.';
COMMENT ON COLUMN attempt.next_attempt_at IS 'Not due again before, if another attempt follows.';
COMMENT ON COLUMN attempt.model IS 'The model, if one was called.';
COMMENT ON COLUMN attempt.input_tokens IS 'Prompt tokens spent.';
COMMENT ON COLUMN attempt.output_tokens IS 'Generated tokens spent.';
COMMENT ON COLUMN attempt.detail IS 'What an operator reads; never document content.';

CREATE TABLE spending (
    ingestion_id uuid NOT NULL,
    claims bigint NOT NULL,
    day date NOT NULL,
    provider text NOT NULL,
    model text NOT NULL DEFAULT '',
    document_id uuid NOT NULL,
    tenant text,
    calls bigint NOT NULL DEFAULT 0,
    pages bigint NOT NULL DEFAULT 0,
    input_tokens bigint NOT NULL DEFAULT 0,
    cache_read_tokens bigint NOT NULL DEFAULT 0,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    cost_nanos bigint NOT NULL DEFAULT 0,
    unpriced_calls bigint NOT NULL DEFAULT 0,
    batch_calls bigint NOT NULL DEFAULT 0,
    saved_nanos bigint NOT NULL DEFAULT 0,
    late_calls bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (ingestion_id, claims, day, provider, model)
);
CREATE INDEX spending_by_day ON spending (day) INCLUDE (cost_nanos);
-- A tenant's spending of a day, asked before paid calls (cost.tenant_daily_budget).
CREATE INDEX spending_by_tenant ON spending (tenant, day)
    INCLUDE (cost_nanos) WHERE tenant IS NOT NULL;
COMMENT ON TABLE spending IS
    'What providers were paid: a row per attempt, day, provider and model. Outlives the ingestion.';
COMMENT ON COLUMN spending.ingestion_id IS 'For which ingestion.';
COMMENT ON COLUMN spending.claims IS 'In which attempt: attempt.claims.';
COMMENT ON COLUMN spending.day IS 'On which day, in UTC; days are what budgets are for.';
COMMENT ON COLUMN spending.provider IS 'Who was paid, e.g. openai.';
COMMENT ON COLUMN spending.model IS 'The configured model; of pages the processor or operation.';
COMMENT ON COLUMN spending.document_id IS 'The document.';
COMMENT ON COLUMN spending.tenant IS 'On whose behalf; null: nobody in particular.';
COMMENT ON COLUMN spending.calls IS 'Answered calls.';
COMMENT ON COLUMN spending.pages IS 'Pages read.';
COMMENT ON COLUMN spending.input_tokens IS 'Prompt tokens that no cache held.';
COMMENT ON COLUMN spending.cache_read_tokens IS 'Prompt tokens out of the vendor''s cache.';
COMMENT ON COLUMN spending.cache_write_tokens IS 'Prompt tokens written to the vendor''s cache.';
COMMENT ON COLUMN spending.output_tokens IS 'Generated tokens.';
COMMENT ON COLUMN spending.cost_nanos IS
    'Billionths of cost.currency, by the prices of cost.price on that day.';
COMMENT ON COLUMN spending.unpriced_calls IS
    'Calls or readings for which cost.price had no price: cost_nanos lacks them.';
COMMENT ON COLUMN spending.batch_calls IS 'Those of the calls that were answered in a batch.';
COMMENT ON COLUMN spending.saved_nanos IS 'What the same calls would have cost more directly.';
COMMENT ON COLUMN spending.late_calls IS
    'Answers of a batch that came after a direct call had taken their place: paid for twice.';

-- The cost of a day so far, kept by a trigger. Sixteen parts: payments of the same moment seldom
-- wait for each other.
CREATE TABLE spending_day (
    day date NOT NULL,
    part smallint NOT NULL,
    cost_nanos bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (day, part)
) WITH (fillfactor = 50);
COMMENT ON TABLE spending_day IS
    'The sum of spending.cost_nanos by day, in parts: what every worker asks every few seconds.';
COMMENT ON COLUMN spending_day.day IS 'The day, in UTC.';
COMMENT ON COLUMN spending_day.part IS 'One of sixteen parts, by the ingestion.';
COMMENT ON COLUMN spending_day.cost_nanos IS 'Billionths of cost.currency.';

-- Operating.

CREATE TABLE quarantined_message (
    message_id text PRIMARY KEY,
    body text NOT NULL,
    reason text NOT NULL CHECK (reason IN ('malformed', 'unknown_ingestion', 'unknown_object')),
    receive_count int NOT NULL DEFAULT 1,
    quarantined_at timestamptz NOT NULL DEFAULT docmill_now()
);
-- Quarantined messages by the ingestion that they name. Only bodies short enough to be an id: a body
-- may be 64 KiB, an index row may not.
CREATE INDEX quarantined_message_by_ingestion
    ON quarantined_message (lower(trim(body))) WHERE length(body) < 64;
-- Expired messages.
CREATE INDEX quarantined_message_by_age
    ON quarantined_message (quarantined_at);
COMMENT ON TABLE quarantined_message IS
    'Messages that are not ours, kept for a person.';
COMMENT ON COLUMN quarantined_message.message_id IS 'The queue''s id of the message.';
COMMENT ON COLUMN quarantined_message.body IS 'The body, cut to 64 KiB.';
COMMENT ON COLUMN quarantined_message.reason IS
    'malformed, unknown_ingestion, or unknown_object: an event about what is not in the store.';
COMMENT ON COLUMN quarantined_message.receive_count IS 'How often it was received.';
COMMENT ON COLUMN quarantined_message.quarantined_at IS 'When it was put here.';

CREATE TABLE operator_action (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    done_at timestamptz NOT NULL DEFAULT docmill_now(),
    operator text NOT NULL,
    action text NOT NULL CHECK (action IN
        ('reopen', 'cancel', 'pause', 'resume', 'block', 'unblock', 'reprioritize', 'erase',
         'retain', 'replay', 'enable')),
    target text NOT NULL,
    why text NOT NULL DEFAULT '',
    before jsonb NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE operator_action IS
    'Who did what, why, and the state before.';
COMMENT ON COLUMN operator_action.id IS 'Order of the actions.';
COMMENT ON COLUMN operator_action.done_at IS 'When.';
COMMENT ON COLUMN operator_action.operator IS 'Who.';
COMMENT ON COLUMN operator_action.action IS 'What.';
COMMENT ON COLUMN operator_action.target IS
    'An ingestion id, a SHA-256, or the scope and name of a pause.';
COMMENT ON COLUMN operator_action.why IS 'The operator''s words.';
COMMENT ON COLUMN operator_action.before IS 'The state before.';
CREATE INDEX operator_action_by_target ON operator_action (target, id);

CREATE TABLE pause (
    scope text NOT NULL CHECK (scope IN ('all', 'kind', 'tenant', 'provider')),
    name text NOT NULL DEFAULT '',
    paused_at timestamptz NOT NULL DEFAULT docmill_now(),
    paused_by text NOT NULL DEFAULT '',
    why text NOT NULL DEFAULT '',
    PRIMARY KEY (scope, name),
    CONSTRAINT pause_all_has_no_name CHECK ((scope = 'all') = (name = ''))
);
COMMENT ON TABLE pause IS
    'What operators have paused; every worker obeys within seconds.';
COMMENT ON COLUMN pause.scope IS 'all, kind, tenant or provider.';
COMMENT ON COLUMN pause.name IS 'Which one; empty for all.';
COMMENT ON COLUMN pause.paused_at IS 'Since when.';
COMMENT ON COLUMN pause.paused_by IS 'By whom.';
COMMENT ON COLUMN pause.why IS 'The operator''s words.';

CREATE TABLE blocked_content (
    sha256 text PRIMARY KEY CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    blocked_at timestamptz NOT NULL DEFAULT docmill_now(),
    blocked_by text NOT NULL DEFAULT '',
    why text NOT NULL DEFAULT ''
);
COMMENT ON TABLE blocked_content IS
    'Content that is cancelled unread.';
COMMENT ON COLUMN blocked_content.sha256 IS 'SHA-256 of the original, in hex.';
COMMENT ON COLUMN blocked_content.blocked_at IS 'Since when.';
COMMENT ON COLUMN blocked_content.blocked_by IS 'By whom.';
COMMENT ON COLUMN blocked_content.why IS 'The operator''s words.';

CREATE TABLE worker (
    id text PRIMARY KEY,
    started_at timestamptz NOT NULL DEFAULT docmill_now(),
    seen_at timestamptz NOT NULL DEFAULT docmill_now(),
    slots int NOT NULL DEFAULT 0,
    slots_used int NOT NULL DEFAULT 0,
    receipt_sent_at timestamptz,
    receipt_noted_at timestamptz,
    lanes jsonb NOT NULL DEFAULT '[]',
    local_models jsonb
) WITH (fillfactor = 50);
COMMENT ON TABLE worker IS
    'Workers that live or lived lately.';
COMMENT ON COLUMN worker.id IS 'Unique per process.';
COMMENT ON COLUMN worker.started_at IS 'When it was first seen.';
COMMENT ON COLUMN worker.seen_at IS 'When it was last seen.';
COMMENT ON COLUMN worker.slots IS 'Jobs it may run at the same time.';
COMMENT ON COLUMN worker.slots_used IS 'Jobs it runs.';
COMMENT ON COLUMN worker.receipt_sent_at IS 'Of earlier releases; not written any more.';
COMMENT ON COLUMN worker.receipt_noted_at IS 'Of earlier releases; not written any more.';
COMMENT ON COLUMN worker.lanes IS
    'How its calls to providers go: provider, model, in_flight, waiting, rate, breaker, denied.';
COMMENT ON COLUMN worker.local_models IS
    'The models of its machine: machine, read_s, devices (name, total_mib, free_mib, held_mib) and models (model, needs_mib, state, device, running, waiting, oldest_s); null: it schedules none.';

CREATE TABLE maintenance_lease (
    name text PRIMARY KEY,
    holder text NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE maintenance_lease IS
    'Who leads a kind of maintenance.';
COMMENT ON COLUMN maintenance_lease.name IS 'The kind of maintenance.';
COMMENT ON COLUMN maintenance_lease.holder IS 'The worker that leads it.';
COMMENT ON COLUMN maintenance_lease.expires_at IS 'Until then, unless renewed.';

-- Answers to requests that a program has named (Idempotency-Key): the same request is answered the
-- same, another one under the same name is refused.
CREATE TABLE idempotency_key (
    visitor text NOT NULL,
    key text NOT NULL CHECK (key <> ''),
    fingerprint text NOT NULL,
    answer jsonb NOT NULL,
    kept_at timestamptz NOT NULL DEFAULT docmill_now(),
    PRIMARY KEY (visitor, key)
);
CREATE INDEX idempotency_key_by_age ON idempotency_key (kept_at);
COMMENT ON TABLE idempotency_key IS
    'Answers to requests that programs have named, kept for a day; ids and states, nothing that a document says.';
COMMENT ON COLUMN idempotency_key.visitor IS 'Name of the token (web.tokens).';
COMMENT ON COLUMN idempotency_key.key IS 'The Idempotency-Key of the request.';
COMMENT ON COLUMN idempotency_key.fingerprint IS
    'SHA-256 of what was asked for, its content included.';
COMMENT ON COLUMN idempotency_key.answer IS 'The answer.';
COMMENT ON COLUMN idempotency_key.kept_at IS 'When it was given.';

-- Passwords of encrypted PDFs, as their producers give them. In plain text: a copy of the database
-- holds the documents' data already. Producers can only add to it, and only workers read it.
CREATE TABLE document_password (
    document_id uuid NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    password text NOT NULL CHECK (password <> '' AND length(password) <= 127),
    given_at timestamptz NOT NULL DEFAULT docmill_now(),
    PRIMARY KEY (document_id, password)
);
COMMENT ON TABLE document_password IS
    'Passwords that may open a document: added by producers, read by workers alone.';
COMMENT ON COLUMN document_password.document_id IS 'The document.';
COMMENT ON COLUMN document_password.password IS 'The password, as it is typed.';
COMMENT ON COLUMN document_password.given_at IS 'When it was given; the newest is tried first.';

-- Retention and erasure. A document past its retention is doomed first and gets no new ingestion
-- from then on. Its objects go next, its rows last; an interrupted erasure is tried again.

CREATE TABLE tenant_retention (
    tenant text PRIMARY KEY,
    days int NOT NULL CHECK (days BETWEEN 1 AND 36500),
    set_at timestamptz NOT NULL DEFAULT docmill_now(),
    set_by text NOT NULL DEFAULT ''
);
COMMENT ON TABLE tenant_retention IS
    'For how long a tenant''s documents are kept after they ended; a tenant without a row: for ever.';
COMMENT ON COLUMN tenant_retention.tenant IS 'The tenant, as in document.tenant.';
COMMENT ON COLUMN tenant_retention.days IS 'Days after the end of a document''s newest ingestion.';
COMMENT ON COLUMN tenant_retention.set_at IS 'Since when.';
COMMENT ON COLUMN tenant_retention.set_by IS 'By whom.';

CREATE TABLE doomed_document (
    document_id uuid PRIMARY KEY REFERENCES document (id) ON DELETE CASCADE,
    doomed_at timestamptz NOT NULL DEFAULT docmill_now(),
    tried_at timestamptz
);
COMMENT ON TABLE doomed_document IS
    'Documents past their tenant''s retention whose objects are being deleted; their rows go last.';
COMMENT ON COLUMN doomed_document.document_id IS 'The document.';
COMMENT ON COLUMN doomed_document.doomed_at IS 'Since when.';
COMMENT ON COLUMN doomed_document.tried_at IS
    'When its objects were last tried; the one that waits longest comes first.';

CREATE TABLE erased_ingestion (
    id uuid PRIMARY KEY,
    erased_at timestamptz NOT NULL DEFAULT docmill_now()
);
-- Old ids.
CREATE INDEX erased_ingestion_by_age ON erased_ingestion (erased_at);
COMMENT ON TABLE erased_ingestion IS
    'Ids of erased ingestions, so that a message that still names one is deleted; nothing else of them is kept.';
COMMENT ON COLUMN erased_ingestion.id IS 'The ingestion''s id, which says nothing about anybody.';
COMMENT ON COLUMN erased_ingestion.erased_at IS 'When; removed with other old rows.';

-- Reviews. The document carries the newest decision; document_revision keeps every decision and
-- the data before it.

CREATE TABLE document_revision (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document_id uuid NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    ingestion_id uuid,
    decided_at timestamptz NOT NULL DEFAULT docmill_now(),
    reviewer text NOT NULL CHECK (reviewer <> ''),
    decision text NOT NULL CHECK (decision IN ('accepted', 'corrected', 'rejected', 'undone')),
    why text NOT NULL DEFAULT '',
    reasons_before text[] NOT NULL,
    data_before jsonb,
    data_after jsonb,
    awaits_second boolean NOT NULL DEFAULT false,
    first_by text,
    awaiting_before bigint,
    undoes bigint,
    undo_until timestamptz,
    version_after timestamptz,
    needed_before boolean,
    corrected_at_before timestamptz,
    corrected_by_before text,
    CONSTRAINT document_revision_check
        CHECK (decision IN ('rejected', 'undone') OR data_after IS NOT NULL),
    CONSTRAINT document_revision_undoes_check CHECK ((decision = 'undone') = (undoes IS NOT NULL)),
    CONSTRAINT document_revision_first_check
        CHECK (NOT awaits_second OR (first_by IS NULL AND decision IN ('accepted', 'corrected'))),
    -- A reviewer of the web pages is `web:` and a name, on the command line the name alone.
    CONSTRAINT document_revision_second_check CHECK (lower(regexp_replace(first_by, '^web:', ''))
        <> lower(regexp_replace(reviewer, '^web:', '')))
);
CREATE INDEX document_revision_by_document ON document_revision (document_id, id);
COMMENT ON TABLE document_revision IS
    'Decisions of reviewers (docmill review), oldest first; added to, never rewritten.';
COMMENT ON COLUMN document_revision.id IS 'Order of the decisions.';
COMMENT ON COLUMN document_revision.document_id IS 'The document decided about.';
COMMENT ON COLUMN document_revision.ingestion_id IS
    'The newest ingestion of the document at that time.';
COMMENT ON COLUMN document_revision.decided_at IS 'When.';
COMMENT ON COLUMN document_revision.reviewer IS 'Who.';
COMMENT ON COLUMN document_revision.decision IS
    'accepted: the data is right as it is; corrected: data_after is right; rejected: it is no document to be recorded; undone: the decision `undoes` does not hold.';
COMMENT ON COLUMN document_revision.why IS 'The reviewer''s words.';
COMMENT ON COLUMN document_revision.reasons_before IS 'Why the document called for review.';
COMMENT ON COLUMN document_revision.data_before IS 'What the document carried.';
COMMENT ON COLUMN document_revision.data_after IS
    'What it carries from then on; of a decision that waits for a second person: what it would carry.';
COMMENT ON COLUMN document_revision.awaits_second IS
    'It holds only once a second person has said the same.';
COMMENT ON COLUMN document_revision.first_by IS
    'Of a decision by a second person: who was the first.';
COMMENT ON COLUMN document_revision.awaiting_before IS
    'The decision that waited for a second person when this one was made.';
COMMENT ON COLUMN document_revision.undoes IS 'The decision that is undone by this one.';
COMMENT ON COLUMN document_revision.undo_until IS
    'Until when its reviewer can undo it; nobody else is told of it before.';
COMMENT ON COLUMN document_revision.version_after IS
    'document.updated_at as it left it: something else happened since if that is another.';
COMMENT ON COLUMN document_revision.needed_before IS 'Whether the document called for review.';
COMMENT ON COLUMN document_revision.corrected_at_before IS 'document.corrected_at before.';
COMMENT ON COLUMN document_revision.corrected_by_before IS 'document.corrected_by before.';

CREATE TABLE review_lease (
    document_id uuid PRIMARY KEY REFERENCES document (id) ON DELETE CASCADE,
    reviewer text NOT NULL CHECK (reviewer <> ''),
    page uuid NOT NULL,
    taken_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE review_lease IS
    'Who has a document open to decide about it; gone with the decision, worth nothing after expires_at.';
COMMENT ON COLUMN review_lease.document_id IS 'The document.';
COMMENT ON COLUMN review_lease.reviewer IS 'Who, as document_revision writes it.';
COMMENT ON COLUMN review_lease.page IS
    'The page that was opened last: one that was left before gives nothing back.';
COMMENT ON COLUMN review_lease.taken_at IS 'Since when.';
COMMENT ON COLUMN review_lease.expires_at IS 'Until when, if it is not renewed.';

-- Batch lane: questions to models that may wait are handed to a vendor many at a time, for less.
-- A row per question and per batch; questions and answers themselves lie in the object store.

CREATE TABLE batch (
    name text PRIMARY KEY,
    provider text NOT NULL,
    model text NOT NULL,
    place text NOT NULL,
    state text NOT NULL DEFAULT 'intended',
    handle text,
    requests int NOT NULL,
    created_at timestamptz NOT NULL DEFAULT docmill_now(),
    deadline_at timestamptz NOT NULL,
    tried_at timestamptz,
    submitted_at timestamptz,
    cancelled_at timestamptz,
    due_at timestamptz NOT NULL DEFAULT docmill_now(),
    polls int NOT NULL DEFAULT 0,
    ended_at timestamptz,
    detail text,
    input text,
    CONSTRAINT batch_state_is_known CHECK (state IN ('intended', 'submitted', 'ended')),
    CONSTRAINT batch_has_a_handle CHECK (state <> 'submitted' OR handle IS NOT NULL),
    CONSTRAINT batch_end CHECK ((state = 'ended') = (ended_at IS NOT NULL))
);
CREATE INDEX batch_open ON batch (due_at) WHERE state <> 'ended';
COMMENT ON TABLE batch IS 'Batches of questions to models, as they were handed to a vendor.';
COMMENT ON COLUMN batch.name IS 'Ours, known to the vendor: by it the batch is found again.';
COMMENT ON COLUMN batch.provider IS 'Who answers, e.g. openai.';
COMMENT ON COLUMN batch.model IS 'The configured model.';
COMMENT ON COLUMN batch.place IS 'Where that is asked: the address of the settings.';
COMMENT ON COLUMN batch.state IS
    'intended: perhaps not handed in, or its handle not known; submitted: the vendor works; ended.';
COMMENT ON COLUMN batch.handle IS 'The vendor''s name for it.';
COMMENT ON COLUMN batch.requests IS 'How many questions it has.';
COMMENT ON COLUMN batch.created_at IS 'When its questions were put together.';
COMMENT ON COLUMN batch.deadline_at IS 'The deadline of the first question that is due.';
COMMENT ON COLUMN batch.tried_at IS
    'When it was handed in last, whether or not that arrived; null: never. Written before.';
COMMENT ON COLUMN batch.submitted_at IS 'When the vendor was known to have it.';
COMMENT ON COLUMN batch.cancelled_at IS 'When the vendor was asked to cancel it.';
COMMENT ON COLUMN batch.due_at IS 'When it is looked at next.';
COMMENT ON COLUMN batch.polls IS 'How often it was looked at.';
COMMENT ON COLUMN batch.ended_at IS 'When its answers had been taken, or it was given up.';
COMMENT ON COLUMN batch.detail IS 'The last trouble, or how it ended.';
COMMENT ON COLUMN batch.input IS
    'The vendor''s name for the file of questions of the last try to hand it in; null: there is none, or the vendor takes none.';

CREATE TABLE batch_request (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    ingestion_id uuid NOT NULL REFERENCES ingestion (id) ON DELETE CASCADE,
    request text NOT NULL,
    claims bigint NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    place text NOT NULL,
    bytes bigint NOT NULL,
    state text NOT NULL DEFAULT 'queued',
    batch text,
    custom_id text UNIQUE,
    asked_at timestamptz NOT NULL DEFAULT docmill_now(),
    deadline_at timestamptz NOT NULL,
    day date NOT NULL,
    reserved_nanos bigint NOT NULL DEFAULT 0,
    settled_at timestamptz,
    seen_at timestamptz,
    late_at timestamptz,
    detail text,
    CONSTRAINT batch_request_is_asked_once UNIQUE (ingestion_id, request),
    CONSTRAINT batch_request_state_is_known
        CHECK (state IN ('queued', 'sent', 'answered', 'used', 'direct')),
    CONSTRAINT batch_request_sent_in_a_batch CHECK (state <> 'sent' OR batch IS NOT NULL)
);
CREATE INDEX batch_request_queued ON batch_request (provider, model, place, asked_at)
    WHERE state = 'queued';
CREATE INDEX batch_request_waiting ON batch_request (deadline_at) WHERE state IN ('queued', 'sent');
CREATE INDEX batch_request_unseen ON batch_request (settled_at)
    WHERE state IN ('answered', 'direct') AND seen_at IS NULL;
CREATE INDEX batch_request_settled ON batch_request (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX batch_request_of_batch ON batch_request (batch) WHERE batch IS NOT NULL;
COMMENT ON TABLE batch_request IS
    'Questions to models that wait for a batch, or did; removed a week after their end.';
COMMENT ON COLUMN batch_request.id IS 'Its id.';
COMMENT ON COLUMN batch_request.ingestion_id IS 'About which ingestion.';
COMMENT ON COLUMN batch_request.request IS
    'SHA-256 of the reading that it belongs to and of all that is asked.';
COMMENT ON COLUMN batch_request.claims IS 'In which attempt it was asked: attempt.claims.';
COMMENT ON COLUMN batch_request.provider IS 'Who is asked, e.g. openai.';
COMMENT ON COLUMN batch_request.model IS 'The configured model.';
COMMENT ON COLUMN batch_request.place IS 'Where that is asked: the address of the settings.';
COMMENT ON COLUMN batch_request.bytes IS 'Bytes of what is sent.';
COMMENT ON COLUMN batch_request.state IS
    'queued; sent: part of a batch; answered: its answer is stored; used: the answer is among the document''s replies; direct: it is asked by a direct call.';
COMMENT ON COLUMN batch_request.batch IS 'Its batch.';
COMMENT ON COLUMN batch_request.custom_id IS 'What the vendor knows it by.';
COMMENT ON COLUMN batch_request.asked_at IS 'When it was asked.';
COMMENT ON COLUMN batch_request.deadline_at IS 'When the vendor is waited for no longer.';
COMMENT ON COLUMN batch_request.day IS 'On which day (UTC) its cost is written down.';
COMMENT ON COLUMN batch_request.reserved_nanos IS
    'The most that it may cost, counted as spent until the answer says how much it was.';
COMMENT ON COLUMN batch_request.settled_at IS 'When it was answered, or left to a direct call.';
COMMENT ON COLUMN batch_request.seen_at IS 'When an attempt took note of that.';
COMMENT ON COLUMN batch_request.late_at IS
    'When the vendor answered all the same after it had been left to a direct call.';
COMMENT ON COLUMN batch_request.detail IS 'Why it was left to a direct call.';

-- Webhooks: an outbox, written in the transaction of the event itself. Only the triggers below add
-- rows. Deliveries of one document to one target keep their order: a row is `due` only if no older
-- one of the pair is open; else it is `waiting`, and the end of the older one makes it due. Both
-- happen under the lock of the document's row.

CREATE TABLE webhook_target (
    name text PRIMARY KEY CHECK (name <> ''),
    place text NOT NULL,
    url_hash text NOT NULL,
    events text[] NOT NULL DEFAULT '{}',
    tenant text NOT NULL DEFAULT '',
    registered_at timestamptz NOT NULL DEFAULT docmill_now(),
    seen_at timestamptz NOT NULL DEFAULT docmill_now(),
    disabled_at timestamptz,
    disabled_why text NOT NULL DEFAULT ''
);
COMMENT ON TABLE webhook_target IS
    'Who is told of outcomes and decisions (webhooks.targets), as those who deliver have registered them.';
COMMENT ON COLUMN webhook_target.name IS 'Name in the settings.';
COMMENT ON COLUMN webhook_target.place IS
    'Scheme, host and port; neither path nor query, which may be secret.';
COMMENT ON COLUMN webhook_target.url_hash IS
    'SHA-256 of the whole address: another address is another chance.';
COMMENT ON COLUMN webhook_target.events IS 'What it is told of; empty: everything.';
COMMENT ON COLUMN webhook_target.tenant IS 'Whose documents alone it is told of; empty: all.';
COMMENT ON COLUMN webhook_target.registered_at IS 'Since when it is told.';
COMMENT ON COLUMN webhook_target.seen_at IS
    'When a process that delivers had it in its settings last.';
COMMENT ON COLUMN webhook_target.disabled_at IS
    'Since when nothing is sent to it: it has said 410 Gone.';
COMMENT ON COLUMN webhook_target.disabled_why IS 'Why nothing is sent to it.';

CREATE SEQUENCE webhook_event_number;
COMMENT ON SEQUENCE webhook_event_number IS 'Rises from event to event of one document.';

CREATE TABLE webhook_delivery (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    target text NOT NULL,
    document_id uuid NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    ingestion_id uuid,
    revision_id bigint,
    event text NOT NULL,
    event_id uuid NOT NULL,
    event_number bigint NOT NULL,
    occurred_at timestamptz NOT NULL,
    facts jsonb NOT NULL,
    state text NOT NULL CHECK (state IN ('due', 'waiting', 'delivered', 'dead')),
    due_at timestamptz,
    open_since timestamptz NOT NULL,
    lease_token uuid,
    tries int NOT NULL DEFAULT 0,
    last_tried_at timestamptz,
    last_status int,
    last_problem text,
    ended_at timestamptz,
    not_before timestamptz,
    CHECK ((state = 'due') = (due_at IS NOT NULL)),
    CHECK ((state IN ('delivered', 'dead')) = (ended_at IS NOT NULL))
);
CREATE INDEX webhook_delivery_due ON webhook_delivery (target, due_at, id) WHERE state = 'due';
CREATE INDEX webhook_delivery_open ON webhook_delivery (target, open_since, id)
    WHERE state IN ('due', 'waiting');
CREATE INDEX webhook_delivery_dead ON webhook_delivery (target, ended_at, id) WHERE state = 'dead';
CREATE INDEX webhook_delivery_ended ON webhook_delivery (ended_at) WHERE ended_at IS NOT NULL;
-- Not partial: a document that is erased takes its rows along, ended ones too.
CREATE INDEX webhook_delivery_by_document ON webhook_delivery (document_id, target, id);
COMMENT ON TABLE webhook_delivery IS
    'The outbox of webhooks: one row for each event and target, in the order of events.';
COMMENT ON COLUMN webhook_delivery.id IS 'Order of what one target is told of one document.';
COMMENT ON COLUMN webhook_delivery.target IS 'webhook_target.name.';
COMMENT ON COLUMN webhook_delivery.document_id IS 'The document; erased with it.';
COMMENT ON COLUMN webhook_delivery.ingestion_id IS
    'The ingestion that ended, or the newest one when a person decided.';
COMMENT ON COLUMN webhook_delivery.revision_id IS
    'The decision (document_revision), if it is about one.';
COMMENT ON COLUMN webhook_delivery.event IS 'What happened, e.g. document.completed.';
COMMENT ON COLUMN webhook_delivery.event_id IS
    'webhook-id: the same at every try and for every target.';
COMMENT ON COLUMN webhook_delivery.event_number IS 'Rises from event to event of one document.';
COMMENT ON COLUMN webhook_delivery.occurred_at IS 'When it happened.';
COMMENT ON COLUMN webhook_delivery.facts IS
    'What is told: ids, outcome, kind; nothing that a document says.';
COMMENT ON COLUMN webhook_delivery.state IS
    'due; waiting: an older one of this document and target is open; delivered; dead: given up.';
COMMENT ON COLUMN webhook_delivery.due_at IS
    'When it is tried next; while it is being sent, when its lease ends.';
COMMENT ON COLUMN webhook_delivery.open_since IS
    'From when the time counts after which it is given up.';
COMMENT ON COLUMN webhook_delivery.lease_token IS
    'Who sends it now; only that one may say how it ended.';
COMMENT ON COLUMN webhook_delivery.tries IS 'Tries that were begun.';
COMMENT ON COLUMN webhook_delivery.last_tried_at IS 'When the last one was begun.';
COMMENT ON COLUMN webhook_delivery.last_status IS 'HTTP status of the last answer.';
COMMENT ON COLUMN webhook_delivery.last_problem IS
    'Why the last try failed; never what the target said.';
COMMENT ON COLUMN webhook_delivery.ended_at IS 'When it was delivered or given up.';
COMMENT ON COLUMN webhook_delivery.not_before IS
    'Of a decision that can still be undone: it is not sent before.';

-- The end of an ingestion, carried into its document.
--
--  * completed: the document carries the newest completed ingestion's data. An older one that
--    finishes late changes nothing. If a newer ingestion has failed meanwhile, its call for
--    review stays.
--  * failed: only the review flag, and only if no newer ingestion of the document exists (one
--    that was cancelled does not count). The data stays.
--  * cancelled: the data stays. If the newest that is left has failed, its call for review is made
--    now. A superseded ingestion calls for review if its successor is missing or was cancelled
--    itself: no ingestion reads that version.
--  * a person's correction (corrected_at) is never overwritten; different data only flags it.
--
-- OFFSET 0 restricts the search for newer ones to those of the document. Without it the planner may
-- scan all newer ingestions: after thousands of arrivals since the last ANALYZE it estimates one or
-- two, and each end reads them all.
--
-- All comparisons read under the lock of the document's row: of two ingestions of one document that
-- end at the same moment, the second sees the writes of the first.
CREATE OR REPLACE FUNCTION update_document_from_ingestion() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
DECLARE
    newer_exists boolean;
    newer_failed boolean;
    standing record;
    calls text[] := '{}';
BEGIN
    -- A statement of its own: the next one sees what was committed while this one waited.
    PERFORM 1 FROM document d WHERE d.id = NEW.document_id FOR NO KEY UPDATE;

    IF NEW.status = 'cancelled' THEN
        SELECT i.status, i.reason, i.review_reasons INTO standing
        FROM ingestion i
        WHERE i.document_id = NEW.document_id AND i.status <> 'cancelled'
        ORDER BY i.created_at DESC, i.id DESC LIMIT 1;
        IF FOUND AND standing.status = 'failed' THEN
            calls := CASE WHEN standing.review_reasons = '{}'
                THEN ARRAY[standing.reason] ELSE standing.review_reasons END;
        END IF;
        IF NEW.reason = 'superseded' AND EXISTS (
            SELECT 1 FROM ingestion s WHERE s.id = NEW.superseded_by
              AND (s.status <> 'cancelled'
                OR (s.reason = 'superseded' AND s.superseded_by IS NOT NULL)))
        THEN
            NULL; -- handed on
        ELSIF NEW.reason = 'superseded' OR EXISTS (
            SELECT 1 FROM ingestion o WHERE o.document_id = NEW.document_id
              AND o.reason = 'superseded' AND o.superseded_by = NEW.id)
        THEN
            calls := calls || 'superseded'::text;
        END IF;
        IF calls <> '{}' THEN
            UPDATE document d SET
                needs_human_review = true,
                review_reasons = d.review_reasons
                    || ARRAY(SELECT c FROM unnest(calls) AS c WHERE c <> ALL (d.review_reasons)),
                updated_at = docmill_now()
            WHERE d.id = NEW.document_id;
        END IF;
        RETURN NULL;
    END IF;

    SELECT count(*) > 0, COALESCE(bool_or(i.status = 'failed'), false)
    INTO newer_exists, newer_failed
    FROM (
        SELECT o.status, o.created_at, o.id FROM ingestion o
        WHERE o.document_id = NEW.document_id AND o.status <> 'cancelled' OFFSET 0
    ) AS i
    WHERE (i.created_at, i.id) > (NEW.created_at, NEW.id);

    IF NEW.status = 'completed' THEN
        UPDATE document d SET
            structured_data = CASE WHEN d.corrected_at IS NULL
                THEN NEW.structured_data ELSE d.structured_data END,
            needs_human_review = CASE
                WHEN d.corrected_at IS NOT NULL THEN d.needs_human_review
                    OR NEW.structured_data IS DISTINCT FROM d.structured_data
                WHEN newer_failed THEN true
                ELSE NEW.needs_human_review OR NEW.valid_structured_data IS NOT TRUE END,
            review_reasons = CASE
                WHEN d.corrected_at IS NULL AND newer_failed THEN d.review_reasons
                WHEN d.corrected_at IS NULL THEN NEW.review_reasons
                WHEN NEW.structured_data IS DISTINCT FROM d.structured_data
                    AND NOT ('differs_from_correction' = ANY (d.review_reasons))
                    THEN d.review_reasons || 'differs_from_correction'::text
                ELSE d.review_reasons END,
            sha256 = COALESCE(NEW.sha256, d.sha256),
            completed_ingestion_id = NEW.id,
            completed_ingestion_created_at = NEW.created_at,
            updated_at = docmill_now()
        WHERE d.id = NEW.document_id
          AND (d.completed_ingestion_id IS NULL
            OR (NEW.created_at, NEW.id)
                >= (d.completed_ingestion_created_at, d.completed_ingestion_id));
    ELSIF NOT newer_exists THEN
        UPDATE document d SET
            needs_human_review = true,
            review_reasons = CASE WHEN NEW.review_reasons = '{}'
                THEN ARRAY[NEW.reason] ELSE NEW.review_reasons END,
            sha256 = COALESCE(NEW.sha256, d.sha256),
            updated_at = docmill_now()
        WHERE d.id = NEW.document_id;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION update_document_from_ingestion() IS
    'Carries the end of an ingestion into its document; see docs/explanation/architecture.md, Record.';
CREATE TRIGGER update_document_from_ingestion
    AFTER UPDATE OF status ON ingestion
    FOR EACH ROW
    WHEN (OLD.status IS DISTINCT FROM NEW.status
        AND NEW.status IN ('completed', 'failed', 'cancelled'))
    EXECUTE FUNCTION update_document_from_ingestion();

-- Sums of spending.

CREATE FUNCTION add_to_spending_day() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
    added bigint := NEW.cost_nanos - CASE TG_OP WHEN 'UPDATE' THEN OLD.cost_nanos ELSE 0 END;
BEGIN
    IF added <> 0 THEN
        INSERT INTO spending_day AS s (day, part, cost_nanos)
        VALUES (NEW.day, hashtext(NEW.ingestion_id::text) & 15, added)
        ON CONFLICT (day, part) DO UPDATE SET cost_nanos = s.cost_nanos + excluded.cost_nanos;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION add_to_spending_day() IS 'Keeps the sums of spending_day.';
CREATE TRIGGER add_to_spending_day AFTER INSERT OR UPDATE OF cost_nanos ON spending
    FOR EACH ROW EXECUTE FUNCTION add_to_spending_day();

-- Retention.

CREATE FUNCTION document_tenant(wanted uuid) RETURNS text
LANGUAGE sql STABLE SET search_path FROM CURRENT
AS $$
    SELECT COALESCE(d.tenant, (
        SELECT min(i.tenant) FROM ingestion i WHERE i.document_id = d.id
        HAVING bool_and(i.tenant IS NOT NULL) AND min(i.tenant) = max(i.tenant)))
    FROM document d WHERE d.id = wanted
$$;
COMMENT ON FUNCTION document_tenant(uuid) IS
    'Whose a document is: its own tenant, or else that of its ingestions if they are all of one.';

CREATE FUNCTION doom_expired(documents uuid[]) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    locked uuid[];
BEGIN
    -- A statement of its own: the next one sees what was committed before these locks were ours.
    locked := ARRAY(
        SELECT d.id FROM document d WHERE d.id = ANY (documents) ORDER BY d.id
        FOR UPDATE SKIP LOCKED);
    RETURN QUERY
        INSERT INTO doomed_document (document_id)
        SELECT d.id FROM document d JOIN tenant_retention r ON r.tenant = document_tenant(d.id)
        WHERE d.id = ANY (locked)
          AND d.created_at < docmill_now() - make_interval(days => r.days)
          AND NOT EXISTS (SELECT 1 FROM ingestion i WHERE i.document_id = d.id
            AND (i.completed_at IS NULL
              OR i.completed_at >= docmill_now() - make_interval(days => r.days)))
        ON CONFLICT DO NOTHING
        RETURNING document_id;
END
$$;
REVOKE ALL ON FUNCTION doom_expired(uuid[]) FROM PUBLIC;
COMMENT ON FUNCTION doom_expired(uuid[]) IS
    'Marks those of the documents that are past their tenant''s retention, and returns them.';

CREATE FUNCTION take_doomed(most int) RETURNS SETOF uuid
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
    WITH next AS MATERIALIZED (
        SELECT document_id FROM doomed_document
        ORDER BY tried_at NULLS FIRST, document_id LIMIT most FOR UPDATE SKIP LOCKED)
    UPDATE doomed_document d SET tried_at = docmill_now()
    FROM next n WHERE d.document_id = n.document_id
    RETURNING d.document_id
$$;
REVOKE ALL ON FUNCTION take_doomed(int) FROM PUBLIC;
COMMENT ON FUNCTION take_doomed(int) IS
    'The doomed documents whose objects are to be deleted next: those not tried for longest.';

CREATE FUNCTION erase_doomed(documents uuid[]) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    doomed uuid[];
    ingestions uuid[];
BEGIN
    doomed := ARRAY(
        SELECT x.document_id FROM doomed_document x WHERE x.document_id = ANY (documents)
        ORDER BY x.document_id FOR UPDATE);
    -- In the order in which every other statement locks them.
    ingestions := ARRAY(
        SELECT i.id FROM ingestion i WHERE i.document_id = ANY (doomed) ORDER BY i.id FOR UPDATE);
    INSERT INTO erased_ingestion (id) SELECT unnest(ingestions) ON CONFLICT DO NOTHING;
    DELETE FROM operator_action WHERE target = ANY (ingestions::text[]);
    -- The length is the index's condition: what is longer names more than an ingestion.
    DELETE FROM quarantined_message
    WHERE length(body) < 64 AND lower(trim(body)) = ANY (ingestions::text[]);
    -- What was paid stays on the books, without a tenant.
    UPDATE spending SET tenant = NULL WHERE ingestion_id = ANY (ingestions);
    DELETE FROM ingestion WHERE id = ANY (ingestions);
    DELETE FROM document WHERE id = ANY (doomed);
    RETURN QUERY SELECT unnest(doomed);
END
$$;
REVOKE ALL ON FUNCTION erase_doomed(uuid[]) FROM PUBLIC;
COMMENT ON FUNCTION erase_doomed(uuid[]) IS
    'Deletes those of the documents that are doomed, with everything about them.';

CREATE FUNCTION erase_expired(documents uuid[]) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
    PERFORM doom_expired(documents);
    RETURN QUERY SELECT erase_doomed(documents);
END
$$;
REVOKE ALL ON FUNCTION erase_expired(uuid[]) FROM PUBLIC;
COMMENT ON FUNCTION erase_expired(uuid[]) IS
    'Deletes those of the documents that are past their tenant''s retention, with everything about them.';

CREATE FUNCTION refuse_ingestion_of_doomed_document() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
    -- Waits for whoever is about to doom it; the next statement sees whether that was done.
    PERFORM 1 FROM document WHERE id = NEW.document_id FOR KEY SHARE;
    IF EXISTS (SELECT 1 FROM doomed_document WHERE document_id = NEW.document_id) THEN
        RAISE EXCEPTION 'document % is past its tenant''s retention and being erased',
            NEW.document_id USING ERRCODE = 'lock_not_available';
    END IF;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION refuse_ingestion_of_doomed_document() FROM PUBLIC;
COMMENT ON FUNCTION refuse_ingestion_of_doomed_document() IS
    'A document whose objects are being deleted gets no new ingestion, and none is opened again.';
CREATE TRIGGER ingestion_of_a_doomed_document AFTER INSERT ON ingestion
    FOR EACH ROW EXECUTE FUNCTION refuse_ingestion_of_doomed_document();
CREATE TRIGGER reopening_of_a_doomed_document AFTER UPDATE OF status ON ingestion
    FOR EACH ROW WHEN (OLD.status <> 'in-progress' AND NEW.status = 'in-progress')
    EXECUTE FUNCTION refuse_ingestion_of_doomed_document();

-- Webhooks.

CREATE FUNCTION write_webhook_event(
    told text, of_document uuid, of_ingestion uuid, of_revision bigint, more jsonb
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    now timestamptz := docmill_now();
    owner text;
    number bigint;
    event uuid := gen_random_uuid();
    known jsonb;
BEGIN
    -- A statement of its own: the next ones see what was committed while this one waited.
    PERFORM 1 FROM document d WHERE d.id = of_document FOR NO KEY UPDATE;
    SELECT COALESCE(d.tenant, i.tenant), jsonb_build_object('document_id', d.id,
        'ingestion_id', i.id, 'tenant', COALESCE(d.tenant, i.tenant), 'kind', i.kind,
        'status', i.status, 'reason', i.reason, 'needs_human_review', d.needs_human_review,
        'review_reasons', d.review_reasons)
    INTO owner, known
    FROM document d LEFT JOIN ingestion i ON i.id = of_ingestion
    WHERE d.id = of_document;
    IF known IS NULL THEN
        RETURN;
    END IF;
    number := nextval('webhook_event_number');
    INSERT INTO webhook_delivery (target, document_id, ingestion_id, revision_id, event, event_id,
        event_number, occurred_at, facts, state, due_at, open_since)
    SELECT t.name, of_document, of_ingestion, of_revision, told, event, number, now, known || more,
        CASE WHEN o.older THEN 'waiting' ELSE 'due' END, CASE WHEN o.older THEN NULL ELSE now END, now
    FROM webhook_target t
    CROSS JOIN LATERAL (SELECT EXISTS (
        SELECT 1 FROM webhook_delivery e WHERE e.document_id = of_document AND e.target = t.name
          AND e.state IN ('due', 'waiting')) AS older) AS o
    WHERE (t.events = '{}' OR told = ANY (t.events)) AND (t.tenant = '' OR t.tenant = owner)
      -- One that has been in nobody's settings for so long is not coming back.
      AND t.seen_at > now - interval '30 days'
    ORDER BY t.name;
END
$$;
REVOKE ALL ON FUNCTION write_webhook_event(text, uuid, uuid, bigint, jsonb) FROM PUBLIC;
COMMENT ON FUNCTION write_webhook_event(text, uuid, uuid, bigint, jsonb) IS
    'Writes an event of a document for every target that wants it.';

CREATE FUNCTION write_webhook_of_end() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM webhook_target) THEN
        RETURN NULL;
    END IF;
    PERFORM write_webhook_event('document.' || NEW.status, NEW.document_id, NEW.id, NULL, '{}');
    IF EXISTS (SELECT 1 FROM document d WHERE d.id = NEW.document_id AND d.needs_human_review) THEN
        PERFORM write_webhook_event('document.review_needed', NEW.document_id, NEW.id, NULL, '{}');
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION write_webhook_of_end() IS 'Tells of the end of an ingestion.';

-- Triggers run in the order of names: this one after update_document_from_ingestion.
CREATE TRIGGER write_webhook_of_end
    AFTER UPDATE OF status ON ingestion
    FOR EACH ROW
    WHEN (OLD.status IS DISTINCT FROM NEW.status
        AND NEW.status IN ('completed', 'failed', 'cancelled'))
    EXECUTE FUNCTION write_webhook_of_end();

-- A decision is delivered once it can no longer be undone; an undone one never. One that waits for a
-- second person is not delivered yet.
CREATE FUNCTION write_webhook_of_decision() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    now timestamptz := docmill_now();
    undone record;
    told text;
BEGIN
    IF NEW.decision = 'undone' THEN
        PERFORM 1 FROM document d WHERE d.id = NEW.document_id FOR NO KEY UPDATE;
        SELECT r.id, r.reviewer, r.undo_until INTO undone FROM document_revision r
        WHERE r.id = NEW.undoes AND r.document_id = NEW.document_id AND r.decision <> 'undone';
        IF NOT FOUND OR undone.undo_until IS NULL OR undone.undo_until <= now THEN
            RAISE EXCEPTION 'this decision cannot be undone any more' USING ERRCODE = 'DM001';
        END IF;
        DELETE FROM webhook_delivery w
        WHERE w.document_id = NEW.document_id AND w.revision_id = undone.id AND w.tries = 0;
        -- A moment ago, between the look at the clock and here.
        IF EXISTS (SELECT 1 FROM webhook_delivery w
            WHERE w.document_id = NEW.document_id AND w.revision_id = undone.id)
        THEN
            RAISE EXCEPTION 'this decision was told already' USING ERRCODE = 'DM001';
        END IF;
        FOR told IN SELECT DISTINCT w.target FROM webhook_delivery w
            WHERE w.document_id = NEW.document_id AND w.state = 'waiting'
        LOOP
            PERFORM wake_webhook_delivery(NEW.document_id, told);
        END LOOP;
    ELSIF NOT NEW.awaits_second AND EXISTS (SELECT 1 FROM webhook_target) THEN
        PERFORM write_webhook_event('document.' || NEW.decision, NEW.document_id, NEW.ingestion_id,
            NEW.id, jsonb_build_object('needs_human_review', false, 'review_reasons', '[]'::jsonb));
        IF NEW.undo_until > now THEN
            UPDATE webhook_delivery w SET
                not_before = NEW.undo_until,
                due_at = CASE WHEN w.state = 'due' THEN NEW.undo_until END
            WHERE w.document_id = NEW.document_id AND w.revision_id = NEW.id;
        END IF;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION write_webhook_of_decision() IS
    'Tells of a decision about a document, once it can be undone no more.';

CREATE TRIGGER write_webhook_of_decision
    AFTER INSERT ON document_revision
    FOR EACH ROW EXECUTE FUNCTION write_webhook_of_decision();

CREATE FUNCTION wake_webhook_delivery(of_document uuid, of_target text) RETURNS void
LANGUAGE sql SET search_path FROM CURRENT
AS $$
    UPDATE webhook_delivery SET state = 'due', due_at = GREATEST(docmill_now(), not_before)
    WHERE state = 'waiting' AND id = (
        SELECT w.id FROM webhook_delivery w
        WHERE w.document_id = of_document AND w.target = of_target AND w.state IN ('due', 'waiting')
        ORDER BY w.document_id, w.target, w.id LIMIT 1)
$$;
COMMENT ON FUNCTION wake_webhook_delivery(uuid, text) IS
    'Makes the oldest open row of a document and target due. The document''s row is locked.';

-- How a try ended. `wait`: until the next one; a delivery that is then older than `most` is dead.
-- Returns the new state; NULL without any write if the lease was lost.
CREATE FUNCTION settle_webhook_delivery(
    delivery bigint, token uuid, done boolean, wait interval, most interval, answer int, problem text
) RETURNS text
LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
    now timestamptz := docmill_now();
    held record;
    settled text;
BEGIN
    SELECT w.document_id, w.target INTO held FROM webhook_delivery w
    WHERE w.id = delivery AND w.lease_token = token;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM 1 FROM document d WHERE d.id = held.document_id FOR NO KEY UPDATE;
    UPDATE webhook_delivery w SET
        state = s.state, lease_token = NULL, last_status = answer, last_problem = problem,
        due_at = CASE WHEN s.state = 'due' THEN now + wait END,
        ended_at = CASE WHEN s.state <> 'due' THEN now END
    FROM (SELECT CASE WHEN done THEN 'delivered' WHEN o.open_since + most < now + wait THEN 'dead'
            ELSE 'due' END AS state FROM webhook_delivery o WHERE o.id = delivery) AS s
    WHERE w.id = delivery AND w.lease_token = token
    RETURNING w.state INTO settled;
    IF settled IN ('delivered', 'dead') THEN
        PERFORM wake_webhook_delivery(held.document_id, held.target);
    END IF;
    RETURN settled;
END
$$;
COMMENT ON FUNCTION settle_webhook_delivery(bigint, uuid, boolean, interval, interval, int, text) IS
    'Writes down how a try to deliver ended, and makes the next of the document due.';

-- Delivers once more, after a success or a failure; a delivery that waits is tried at once.
CREATE FUNCTION replay_webhook_delivery(delivery bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
    now timestamptz := docmill_now();
    held record;
    replayed boolean;
BEGIN
    SELECT w.document_id, w.target INTO held FROM webhook_delivery w WHERE w.id = delivery;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM 1 FROM document d WHERE d.id = held.document_id FOR NO KEY UPDATE;
    UPDATE webhook_delivery w SET
        state = s.state, due_at = CASE WHEN s.state = 'due' THEN GREATEST(now, w.not_before) END,
        open_since = now, ended_at = NULL, lease_token = NULL
    FROM (SELECT CASE WHEN EXISTS (
            SELECT 1 FROM webhook_delivery o
            WHERE o.document_id = held.document_id AND o.target = held.target AND o.id < delivery
              AND o.state IN ('due', 'waiting')) THEN 'waiting' ELSE 'due' END AS state) AS s
    WHERE w.id = delivery AND (w.lease_token IS NULL OR w.due_at <= now)
    RETURNING true INTO replayed;
    RETURN COALESCE(replayed, false);
END
$$;
COMMENT ON FUNCTION replay_webhook_delivery(bigint) IS
    'Makes a delivery open again; false if it is gone or is being sent now.';

-- Gives up a delivery that is not being sent.
CREATE FUNCTION give_up_webhook_delivery(delivery bigint, problem text) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
    now timestamptz := docmill_now();
    held record;
BEGIN
    SELECT w.document_id, w.target INTO held FROM webhook_delivery w WHERE w.id = delivery;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM 1 FROM document d WHERE d.id = held.document_id FOR NO KEY UPDATE;
    UPDATE webhook_delivery w SET
        state = 'dead', due_at = NULL, ended_at = now, lease_token = NULL, last_problem = problem
    WHERE w.id = delivery AND w.state IN ('due', 'waiting')
      AND (w.lease_token IS NULL OR w.due_at <= now);
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM wake_webhook_delivery(held.document_id, held.target);
    RETURN true;
END
$$;
COMMENT ON FUNCTION give_up_webhook_delivery(bigint, text) IS
    'Ends a delivery as dead and makes the next of the document due; false if it is being sent now.';

-- Views for operators; docs/guides/operations.md goes through them.

CREATE VIEW ops_in_flight AS
SELECT
    i.id AS ingestion_id, i.document_id, d.file_path, i.kind, i.tenant,
    s.state,
    CASE s.state
        WHEN 'leased' THEN format('worker %s works on it (stage %s), lease for another %s s',
            i.worker, COALESCE(i.stage, 'unknown'),
            ceil(extract(epoch FROM i.lease_expires_at - n.now)))
        WHEN 'orphaned' THEN format(
            'worker %s fell silent %s s ago; the next delivery of its message takes over',
            i.worker, floor(extract(epoch FROM n.now - i.lease_expires_at)))
        WHEN 'parked' THEN 'an operator has paused ' || p.what
        WHEN 'deferred' THEN format('next attempt in %s s%s: %s',
            ceil(extract(epoch FROM i.next_attempt_at - n.now)),
            CASE WHEN i.deferred_since IS NULL THEN ''
                ELSE format(', put off for %s s so far',
                    floor(extract(epoch FROM n.now - i.deferred_since))) END,
            COALESCE(i.detail, 'no detail'))
        ELSE CASE WHEN i.parked_by IS NOT NULL OR i.parked_until IS NOT NULL
            THEN 'due: maintenance sends its message at its next pass'
            ELSE format('waits for its message, sent %s s ago%s',
                floor(extract(epoch FROM n.now - i.enqueued_at)),
                CASE WHEN i.resends = 0 THEN ''
                    ELSE format(', resent %s times', i.resends) END) END
    END AS explanation,
    i.stage, i.worker, i.attempt_count, i.attempt_limit, i.crashes, i.claims,
    i.created_at, i.enqueued_at, i.started_at, i.lease_expires_at, i.next_attempt_at,
    i.deferred_since, i.resends, i.parked_by, i.parked_until
FROM ingestion i
LEFT JOIN document d ON d.id = i.document_id
-- OFFSET 0: the clock is asked once and not for every row.
CROSS JOIN (SELECT docmill_now() AS now OFFSET 0) AS n
CROSS JOIN LATERAL (
    SELECT min(CASE scope WHEN 'all' THEN 'everything' ELSE scope || ' ' || name END) AS what
    FROM pause
    WHERE scope = 'all' OR (scope = 'kind' AND name = i.kind)
       OR (scope = 'tenant' AND name = i.tenant) OR scope || ':' || name = i.parked_by
) AS p
CROSS JOIN LATERAL (SELECT CASE
    WHEN i.lease_expires_at > n.now THEN 'leased'
    WHEN i.lease_expires_at IS NOT NULL THEN 'orphaned'
    WHEN p.what IS NOT NULL THEN 'parked'
    WHEN i.next_attempt_at > n.now THEN 'deferred'
    ELSE 'queued' END AS state) AS s
WHERE i.status = 'in-progress';
COMMENT ON VIEW ops_in_flight IS
    'Every ingestion that is not terminal: queued, leased, deferred, parked or orphaned, and why.';

CREATE VIEW ops_failures AS
SELECT
    i.id AS ingestion_id, i.document_id, d.file_path, i.kind, i.tenant, i.reason, i.detail,
    i.stage, i.attempt_count, i.crashes, i.completed_at
FROM ingestion i
LEFT JOIN document d ON d.id = i.document_id
WHERE i.status = 'failed';
COMMENT ON VIEW ops_failures IS
    'Every failed ingestion with its reason; filter by completed_at, which is indexed.';

CREATE VIEW ops_review AS
SELECT
    d.id AS document_id, d.file_path, d.tenant, d.review_reasons,
    d.corrected_at IS NOT NULL AS corrected, d.updated_at AS since,
    newest.id AS newest_ingestion_id, newest.status, newest.reason, newest.detail
FROM document d
LEFT JOIN LATERAL (
    SELECT i.id, i.status, i.reason, i.detail FROM ingestion i
    WHERE i.document_id = d.id AND i.status <> 'cancelled'
    ORDER BY i.created_at DESC, i.id DESC LIMIT 1
) AS newest ON true
WHERE d.needs_human_review;
COMMENT ON VIEW ops_review IS 'Every document that a person has to look at, and why.';

CREATE VIEW ops_throughput AS
SELECT
    date_trunc('hour', completed_at) AS hour,
    count(*) FILTER (WHERE status = 'completed') AS completed,
    count(*) FILTER (WHERE status = 'completed' AND needs_human_review) AS completed_flagged,
    count(*) FILTER (WHERE status = 'failed') AS failed,
    count(*) FILTER (WHERE status = 'cancelled') AS cancelled,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM completed_at - created_at))
        AS median_seconds_to_end,
    sum(attempt_count) AS attempts,
    COALESCE(sum(extraction_input_tokens), 0) AS input_tokens,
    COALESCE(sum(extraction_output_tokens), 0) AS output_tokens
FROM ingestion
-- A subquery, so that the index serves: a volatile call cannot be an index condition.
WHERE completed_at > (SELECT docmill_now()) - interval '7 days'
GROUP BY 1;
COMMENT ON VIEW ops_throughput IS 'Ends per hour over the last seven days, with tokens.';

-- Fields of the data itself win: rows of the earlier worker stay as it wrote them.
CREATE VIEW ingestion_as_before AS
SELECT
    i.id, i.document_id, i.status, i.started_at, i.completed_at, i.attempt_count,
    i.transcription_file_path, i.transcription_quality_score, i.preprocessed_file_path,
    jsonb_strip_nulls(jsonb_build_object('extraction_successful', i.extraction_successful,
        'confidence', i.extraction_confidence, 'missing_fields', i.missing_fields))
        || i.structured_data AS structured_data,
    i.valid_structured_data, i.extraction_input_tokens, i.extraction_output_tokens,
    i.extraction_model
FROM ingestion i;
COMMENT ON VIEW ingestion_as_before IS
    'Ingestions as the earlier worker wrote them: structured_data with extraction_successful, confidence and missing_fields. For reading only.';

CREATE VIEW document_as_before AS
SELECT
    d.id, d.file_path,
    jsonb_strip_nulls(jsonb_build_object('extraction_successful', i.extraction_successful,
        'confidence', i.extraction_confidence, 'missing_fields', i.missing_fields))
        || d.structured_data AS structured_data,
    d.needs_human_review, d.updated_at
FROM document d LEFT JOIN ingestion i ON i.id = d.completed_ingestion_id;
COMMENT ON VIEW document_as_before IS
    'Documents as the earlier worker wrote them: structured_data with extraction_successful, confidence and missing_fields. For reading only.';

-- Roles, to be granted to logins. A login that may not create roles gets a notice, and a schema that
-- works for its owner alone.
--
--  docmill_worker    reads and writes ingestions; reads operators' pauses and blocks. No DDL.
--  docmill_reader    SELECT only.
--  docmill_migrator  creates and alters; the only role that erases for good.
--  docmill_producer  inserts documents and ingestions, a producer's columns only, and reads results.
--  docmill_operator  the commands of docs/guides/operations.md: reopen, cancel, pause, block, correct, hand
--                    in. The record of these actions can be added to, not rewritten.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['docmill_worker', 'docmill_reader', 'docmill_migrator',
        'docmill_producer', 'docmill_operator']
    LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            EXCEPTION
                WHEN insufficient_privilege THEN
                    RAISE NOTICE 'role % was not created: % may not create roles', wanted, current_user;
                WHEN duplicate_object OR unique_violation THEN
                    NULL; -- another database of this server was migrated at the same moment
            END;
        END IF;
        IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = wanted) THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), wanted);
        END IF;
    END LOOP;

    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT, INSERT, UPDATE ON document, ingestion, spending, spending_day
            TO docmill_worker;
        GRANT SELECT, INSERT, UPDATE, DELETE ON attempt, quarantined_message, worker,
            maintenance_lease, batch, batch_request, webhook_target TO docmill_worker;
        GRANT SELECT, DELETE ON erased_ingestion, idempotency_key TO docmill_worker;
        GRANT SELECT, DELETE, UPDATE (state, due_at, open_since, lease_token, tries, last_tried_at,
            last_status, last_problem, ended_at) ON webhook_delivery TO docmill_worker;
        GRANT SELECT ON operator_action, pause, blocked_content, tenant_retention, doomed_document,
            document_revision, document_password, ops_in_flight, ops_failures, ops_review,
            ops_throughput, _sqlx_migrations TO docmill_worker;
        GRANT EXECUTE ON FUNCTION doom_expired(uuid[]), take_doomed(int), erase_doomed(uuid[]),
            erase_expired(uuid[]) TO docmill_worker;
    END IF;

    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON document, ingestion, attempt, spending, spending_day, quarantined_message,
            operator_action, pause, blocked_content, worker, maintenance_lease, tenant_retention,
            doomed_document, erased_ingestion, document_revision, review_lease, batch,
            batch_request, webhook_target, webhook_delivery, ops_in_flight, ops_failures,
            ops_review, ops_throughput, ingestion_as_before, document_as_before, _sqlx_migrations
            TO docmill_reader;
    END IF;

    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        EXECUTE format('GRANT CREATE ON SCHEMA %I TO docmill_migrator', current_schema());
        GRANT ALL ON document, ingestion, attempt, spending, spending_day, quarantined_message,
            operator_action, pause, blocked_content, worker, maintenance_lease, tenant_retention,
            doomed_document, erased_ingestion, review_lease, batch, batch_request, webhook_target,
            webhook_delivery, idempotency_key, ops_in_flight, ops_failures, ops_review,
            ops_throughput, _sqlx_migrations TO docmill_migrator;
        GRANT ALL ON SEQUENCE webhook_event_number TO docmill_migrator;
        GRANT EXECUTE ON FUNCTION doom_expired(uuid[]), take_doomed(int), erase_doomed(uuid[]),
            erase_expired(uuid[]) TO docmill_migrator;
    END IF;

    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_producer') THEN
        GRANT INSERT (id, file_path, original_name, size_bytes, tenant, tags),
            SELECT (id, structured_data, needs_human_review, review_reasons, corrected_at)
            ON document TO docmill_producer;
        GRANT INSERT (id, document_id, kind, tenant, priority),
            SELECT (id, document_id, created_at, completed_at, status, reason,
                valid_structured_data, needs_human_review, review_reasons, structured_data,
                extraction_successful, extraction_confidence, missing_fields)
            ON ingestion TO docmill_producer;
        GRANT INSERT (document_id, password) ON document_password TO docmill_producer;
        GRANT SELECT ON ingestion_as_before, document_as_before TO docmill_producer;
    END IF;

    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT, INSERT, UPDATE ON document, ingestion, webhook_target TO docmill_operator;
        GRANT SELECT, INSERT ON attempt, operator_action, document_revision, idempotency_key
            TO docmill_operator;
        GRANT SELECT, INSERT, UPDATE, DELETE ON pause, blocked_content, review_lease
            TO docmill_operator;
        GRANT INSERT (document_id, password), DELETE ON document_password TO docmill_operator;
        GRANT SELECT, UPDATE (state, due_at, open_since, lease_token, tries, last_tried_at,
            last_status, last_problem, ended_at) ON webhook_delivery TO docmill_operator;
        GRANT SELECT ON spending, spending_day, quarantined_message, worker, maintenance_lease,
            tenant_retention, doomed_document, erased_ingestion, batch, batch_request,
            ops_in_flight, ops_failures, ops_review, ops_throughput, ingestion_as_before,
            document_as_before, _sqlx_migrations TO docmill_operator;
    END IF;
END
$$;
