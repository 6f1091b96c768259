-- What docmill adds to the two tables. Every added column has a default, so that a producer that
-- inserts `(id, document_id)` goes on working.

-- The one clock that decides ownership. Tests replace it by `clock_timestamp() + interval '…'`
-- or by a fixed time; nothing else may. Written as one expression so that Postgres inlines it.
CREATE OR REPLACE FUNCTION docmill_now() RETURNS timestamptz
LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT clock_timestamp() $$;
COMMENT ON FUNCTION docmill_now() IS
    'The clock of every lease, delay and end. Only tests replace it, to move time.';

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
    ADD COLUMN duplicate_key text;

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

-- What the documents carry: the newest completed ingestion. And a failure that the earlier
-- trigger did not show to anybody is shown now.
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
    ADD CONSTRAINT ingestion_sha256_is_whole CHECK (length(sha256) = 64);

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
