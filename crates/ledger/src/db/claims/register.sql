-- Registers objects that events named. $1: a JSON array of them.
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), objects AS MATERIALIZED (
    SELECT DISTINCT ON (ingestion) * FROM jsonb_to_recordset($1::jsonb) AS o (
        document uuid, ingestion uuid, file_path text, original_name text, etag text,
        size bigint, sequencer text)
    WHERE NOT EXISTS (SELECT 1 FROM erased_ingestion e WHERE e.id = o.ingestion)
    ORDER BY ingestion
), documents AS (
    INSERT INTO document (id, file_path, original_name, size_bytes, created_at, updated_at)
    SELECT DISTINCT ON (document) document, file_path, original_name, size, c.now, c.now
    FROM objects CROSS JOIN clock c ORDER BY document
    ON CONFLICT (id) DO NOTHING
), judged AS MATERIALIZED (
    SELECT o.*, EXISTS (
        SELECT 1 FROM (
            SELECT i.object_sequencer AS sequencer
            FROM ingestion i WHERE i.document_id = o.document AND i.id <> o.ingestion
            UNION ALL
            SELECT b.sequencer FROM objects b WHERE b.document = o.document
        ) AS known
        WHERE (length(known.sequencer), known.sequencer COLLATE "C")
            > (length(o.sequencer), o.sequencer COLLATE "C")
    ) AS late
    FROM objects o
), registered AS (
    INSERT INTO ingestion (id, document_id, object_etag, object_size, object_sequencer,
        created_at, updated_at, enqueued_at, status, reason, completed_at, detail)
    SELECT ingestion, document, etag, size, sequencer, c.now, c.now, c.now,
        CASE WHEN late THEN 'cancelled' ELSE 'in-progress' END,
        CASE WHEN late THEN 'superseded' END,
        CASE WHEN late THEN c.now END,
        CASE WHEN late THEN 'a newer version of the object was registered before' END
    FROM judged CROSS JOIN clock c ORDER BY ingestion
    ON CONFLICT (id) DO NOTHING
), older AS MATERIALIZED (
    SELECT i.id, i.claims, i.claim_token, i.worker, i.started_at, i.stage, c.now
    FROM ingestion i CROSS JOIN clock c
    WHERE i.document_id IN (SELECT document FROM objects) AND i.status = 'in-progress'
      AND (i.lease_expires_at IS NULL OR i.lease_expires_at <= c.now)
      AND EXISTS (
        SELECT 1 FROM objects o WHERE o.document = i.document_id AND o.ingestion <> i.id
          AND (length(o.sequencer), o.sequencer COLLATE "C")
            > (length(i.object_sequencer), i.object_sequencer COLLATE "C"))
    ORDER BY i.id FOR UPDATE OF i SKIP LOCKED
), closed AS (
    INSERT INTO attempt (ingestion_id, claims, token, worker, started_at, ended_at, stage,
        outcome, final, detail)
    SELECT id, claims, claim_token, worker, started_at, now, stage, 'crashed', true,
        'the lease ended without a word of the worker; superseded meanwhile'
    FROM older WHERE claim_token IS NOT NULL
)
UPDATE ingestion i SET
    status = 'cancelled', reason = 'superseded', completed_at = o.now, updated_at = o.now,
    claim_token = NULL, lease_expires_at = NULL, next_attempt_at = NULL, deferred_since = NULL,
    detail = 'a newer version of the object was registered'
FROM older o WHERE i.id = o.id
