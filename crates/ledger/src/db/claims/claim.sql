-- Claims a batch. $1 ids, $2 a token for each, $3 worker, $4 lease in seconds, $5 crash limit, $6
-- seconds that are near enough to being due. One row per id, in the order asked.
--
-- A row that already has the token it is asked for (`again`) is a claim whose answer was lost: it is
-- answered once more and counted no second time. What somebody else has locked is not waited for.
--
-- Every id lies between the first and the last there is: the planner takes the range for one row, finds
-- each row by its index, and keeps one plan however many are asked for (see `claims.rs`).
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now, set_config('synchronous_commit', 'off', true) AS fast
), asked AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS a (id, token, place)
    WHERE a.id BETWEEN '00000000-0000-0000-0000-000000000000'
        AND 'ffffffff-ffff-ffff-ffff-ffffffffffff'
), held AS MATERIALIZED (
    SELECT i.id, i.status, i.lease_expires_at, i.next_attempt_at, i.crashes, i.claims,
        i.claim_token, i.worker, i.started_at, i.stage, i.deferred_since, a.token, a.place
    FROM asked a JOIN ingestion i ON i.id = a.id ORDER BY i.id FOR UPDATE OF i SKIP LOCKED
), decided AS MATERIALIZED (
    SELECT h.*, c.now,
        COALESCE(h.claim_token = h.token, false) AS again,
        h.lease_expires_at IS NOT NULL AND h.claim_token IS DISTINCT FROM h.token AS silent,
        CASE
            WHEN h.status <> 'in-progress' THEN 'terminal'
            WHEN h.claim_token = h.token THEN 'claimed'
            WHEN h.lease_expires_at > c.now THEN 'busy'
            WHEN h.crashes + (h.lease_expires_at IS NOT NULL)::int >= $5 THEN 'exhausted'
            WHEN h.next_attempt_at > c.now + make_interval(secs => $6) THEN 'not due'
            ELSE 'claimed'
        END AS answer
    FROM held h CROSS JOIN clock c
), closed AS (
    INSERT INTO attempt (ingestion_id, claims, token, worker, started_at, ended_at, stage,
        outcome, final, detail)
    SELECT id, claims, claim_token, worker, started_at, now, stage,
        'crashed', answer = 'exhausted', 'the lease ended without a word of the worker'
    FROM decided WHERE answer IN ('claimed', 'exhausted') AND silent
), given_up AS (
    UPDATE ingestion i SET
        status = 'failed', reason = 'crashed', completed_at = d.now, updated_at = d.now,
        crashes = d.crashes + d.silent::int,
        claim_token = NULL, lease_expires_at = NULL, next_attempt_at = NULL,
        parked_by = NULL, parked_until = NULL,
        deferred_since = NULL, valid_structured_data = false, needs_human_review = true,
        review_reasons = ARRAY['crashed'],
        detail = format('workers died on it %s times', d.crashes + d.silent::int)
    FROM decided d WHERE i.id = d.id AND d.answer = 'exhausted'
), taken AS (
    UPDATE ingestion i SET
        claim_token = d.token, lease_expires_at = d.now + make_interval(secs => $4),
        worker = $3, stage = 'claimed', updated_at = d.now, next_attempt_at = NULL,
        parked_by = NULL, parked_until = NULL,
        started_at = CASE WHEN d.again THEN i.started_at ELSE d.now END,
        claims = i.claims + (NOT d.again)::int,
        attempt_count = i.attempt_count + (NOT d.again)::int,
        crashes = d.crashes + d.silent::int,
        -- The time that it stood in line since it was due is no part of a streak of deferrals.
        deferred_since = d.deferred_since + GREATEST(
            d.now - COALESCE(d.next_attempt_at, d.lease_expires_at, d.now), interval '0')
    FROM decided d
    WHERE i.id = d.id AND d.answer = 'claimed'
    RETURNING i.*, d.token, d.place, d.now
)
SELECT
    t.id AS "id!", t.token AS "token!", 'claimed' AS "answer!", t.status AS "status?",
    NULL::float8 AS wait_seconds,
    t.claims AS "claims!", t.attempt_count AS "attempt_count!",
    t.attempt_limit AS "attempt_limit!", t.crashes AS "crashes!",
    extract(epoch FROM t.now - t.deferred_since)::float8 AS deferred_seconds,
    t.kind AS "kind?", t.tenant AS "tenant?",
    t.transcription_file_path AS "transcription_file_path?",
    t.transcription_identity AS "transcription_identity?",
    t.extraction_output_file_path AS "extraction_output_file_path?",
    t.extraction_identity AS "extraction_identity?",
    t.document_id AS "document_id!", COALESCE(o.file_path, '') AS "file_path!",
    o.original_name AS "original_name?", t.object_etag AS "object_etag?", t.place AS "place!",
    t.now AS "answered_at!", t.created_at AS "created_at!", t.priority AS "priority!"
FROM taken t LEFT JOIN document o ON o.id = t.document_id
UNION ALL
SELECT
    d.id, d.token, d.answer, d.status,
    extract(epoch FROM CASE d.answer
        WHEN 'busy' THEN d.lease_expires_at - d.now
        WHEN 'not due' THEN d.next_attempt_at - d.now END)::float8,
    0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, d.id, '', NULL, NULL, d.place,
    d.now, d.now, ''
FROM decided d WHERE d.answer <> 'claimed'
UNION ALL
SELECT
    a.id, a.token, CASE
        WHEN EXISTS (SELECT 1 FROM ingestion i WHERE i.id = a.id) THEN 'locked'
        WHEN EXISTS (SELECT 1 FROM erased_ingestion e WHERE e.id = a.id) THEN 'erased'
        ELSE 'unknown' END,
    NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, a.id, '', NULL, NULL, a.place,
    c.now, c.now, ''
FROM asked a CROSS JOIN clock c WHERE a.id NOT IN (SELECT h.id FROM held h)
ORDER BY "place!"
