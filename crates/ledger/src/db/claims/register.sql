-- Registers one version of an object whose document's row is locked. $1 document, $2 ingestion,
-- $3 ETag, $4 size, $5 sequencer. Returns the ingestion that is about this version.
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), standing AS MATERIALIZED (
    SELECT i.id, i.status, i.object_etag FROM ingestion i
    WHERE i.document_id = $1 AND i.reason IS DISTINCT FROM 'superseded'
    ORDER BY i.created_at DESC, i.id DESC LIMIT 1
), repeated AS MATERIALIZED (
    SELECT i.id FROM ingestion i WHERE i.id = $2
), same AS MATERIALIZED (
    SELECT id FROM repeated
    UNION ALL
    SELECT s.id FROM standing s
    WHERE trim(BOTH '"' FROM s.object_etag) = $3 AND (s.status <> 'failed' OR $5::text IS NULL)
      AND NOT EXISTS (SELECT 1 FROM repeated)
), registered AS (
    INSERT INTO ingestion (id, document_id, tenant, object_etag, object_size, object_sequencer,
        created_at, updated_at, enqueued_at)
    SELECT $2, d.id, d.tenant, $3, $4::bigint, $5, c.now, c.now, c.now
    FROM document d CROSS JOIN clock c
    WHERE d.id = $1 AND NOT EXISTS (SELECT 1 FROM same)
    ON CONFLICT (id) DO NOTHING
), older AS MATERIALIZED (
    SELECT i.id, i.claims, i.claim_token, i.worker, i.started_at, i.stage, c.now
    FROM ingestion i CROSS JOIN clock c
    WHERE i.document_id = $1 AND i.status = 'in-progress' AND NOT EXISTS (SELECT 1 FROM same)
      AND (i.lease_expires_at IS NULL OR i.lease_expires_at <= c.now)
      AND (length($5), $5 COLLATE "C") > (length(i.object_sequencer), i.object_sequencer COLLATE "C")
    ORDER BY i.id FOR NO KEY UPDATE OF i SKIP LOCKED
), closed AS (
    INSERT INTO attempt (ingestion_id, claims, token, worker, started_at, ended_at, stage,
        outcome, final, detail)
    SELECT id, claims, claim_token, worker, started_at, now, stage, 'crashed', true,
        'the lease ended without a word of the worker; superseded meanwhile'
    FROM older WHERE claim_token IS NOT NULL
), superseded AS (
    UPDATE ingestion i SET
        status = 'cancelled', reason = 'superseded', superseded_by = $2,
        completed_at = o.now, updated_at = o.now,
        claim_token = NULL, lease_expires_at = NULL, next_attempt_at = NULL, deferred_since = NULL,
        detail = 'a newer version of the object was registered'
    FROM older o WHERE i.id = o.id
)
SELECT COALESCE((SELECT id FROM same), $2) AS "id!"
