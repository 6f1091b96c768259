-- Claims a batch. $1 ids, $2 a token for each, $3 worker, $4 lease in seconds, $5 crash limit, $6
-- seconds that are near enough to being due, $7 what the asker has in hand beside each: 0 other work,
-- 1 suspects only, 2 nothing. One row per id, in the order asked.
--
-- A suspect is not claimed beside other work. A claim that ended without a word counts as a
-- crash only if it was made alone, and if three of four others that were worked on alone survived it:
-- of the newest eight documents within an hour (`decide::LoneEnds`). With a limit of 0 every one counts.
--
-- A row that already has the token it is asked for (`again`) is a claim whose answer was lost: it is
-- answered once more and counted no second time. What somebody else has locked is not waited for.
--
-- Every id lies between the first and the last there is: the planner takes the range for one row, finds
-- each row by its index, and keeps one plan however many are asked for (see `claims.rs`).
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now, set_config('synchronous_commit', 'off', true) AS fast
), asked AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $7::int[])
        WITH ORDINALITY AS a (id, token, company, place)
    WHERE a.id BETWEEN '00000000-0000-0000-0000-000000000000'
        AND 'ffffffff-ffff-ffff-ffff-ffffffffffff'
), held AS MATERIALIZED (
    SELECT i.id, i.status, i.lease_expires_at, i.next_attempt_at, i.claims, i.claim_token, i.worker,
        i.started_at, i.stage, i.deferred_since, i.accused_at,
        COALESCE(i.alone_claim = i.claims, false) AS was_alone,
        i.accused_at IS NOT NULL OR i.crashes > 0 AS accused,
        -- What a release before this one has counted convicts nobody.
        CASE WHEN i.accused_at IS NULL THEN 0 ELSE i.crashes END AS crashes,
        COALESCE(i.claim_token = a.token, false) AS again,
        i.lease_expires_at IS NOT NULL AND i.claim_token IS DISTINCT FROM a.token AS silent,
        a.token, a.company, a.place
    FROM asked a JOIN ingestion i ON i.id = a.id ORDER BY i.id FOR NO KEY UPDATE OF i SKIP LOCKED
), decided AS MATERIALIZED (
    SELECT h.*, c.now, j.counts,
        CASE
            WHEN h.status <> 'in-progress' THEN 'terminal'
            WHEN h.again THEN 'claimed'
            WHEN h.lease_expires_at > c.now THEN 'busy'
            WHEN h.crashes + j.counts::int >= greatest($5, 1) THEN 'exhausted'
            WHEN h.next_attempt_at > c.now + make_interval(secs => $6) THEN 'not due'
            WHEN (h.accused OR h.silent) AND h.company = 0 THEN 'suspect'
            ELSE 'claimed'
        END AS answer
    FROM held h CROSS JOIN clock c CROSS JOIN LATERAL (
        SELECT CASE WHEN NOT h.silent THEN false WHEN $5 = 0 THEN true WHEN h.was_alone THEN (
            SELECT count(*) >= 4 * count(*) FILTER (WHERE n.outcome = 'crashed')
            FROM (
                -- Of each document the newest end: two that kill by turns count once each.
                SELECT l.outcome FROM (
                    SELECT DISTINCT ON (r.ingestion_id) r.* FROM (
                        SELECT o.ingestion_id, o.claims, o.ended_at, o.outcome FROM attempt o
                        WHERE o.alone AND o.ended_at > c.now - interval '1 hour'
                            AND o.ingestion_id <> h.id
                        ORDER BY o.ended_at DESC, o.ingestion_id, o.claims DESC LIMIT 256
                    ) AS r ORDER BY r.ingestion_id, r.ended_at DESC, r.claims DESC
                ) AS l ORDER BY l.ended_at DESC, l.ingestion_id LIMIT 8
            ) AS n
        ) ELSE false END AS counts
        OFFSET 0
    ) AS j
), closed AS (
    INSERT INTO attempt (ingestion_id, claims, token, worker, started_at, ended_at, stage,
        outcome, final, counted, alone, detail)
    SELECT id, claims, claim_token, worker, started_at, now, stage,
        'crashed', answer = 'exhausted', counts OR answer = 'exhausted', was_alone,
        'the lease ended without a word of the worker'
    FROM decided WHERE answer IN ('claimed', 'exhausted') AND silent
), given_up AS (
    UPDATE ingestion i SET
        status = 'failed', reason = 'crashed', completed_at = d.now, updated_at = d.now,
        crashes = d.crashes + d.counts::int,
        claim_token = NULL, lease_expires_at = NULL, next_attempt_at = NULL,
        parked_by = NULL, parked_until = NULL,
        deferred_since = NULL, valid_structured_data = false, needs_human_review = true,
        review_reasons = ARRAY['crashed'],
        detail = format('workers died on it alone %s times', d.crashes + d.counts::int)
    FROM decided d WHERE i.id = d.id AND d.answer = 'exhausted'
), taken AS (
    UPDATE ingestion i SET
        claim_token = d.token, lease_expires_at = d.now + make_interval(secs => $4),
        worker = $3, stage = 'claimed', updated_at = d.now, next_attempt_at = NULL,
        parked_by = NULL, parked_until = NULL,
        started_at = CASE WHEN d.again THEN i.started_at ELSE d.now END,
        claims = i.claims + (NOT d.again)::int,
        alone_claim = CASE WHEN d.again THEN i.alone_claim WHEN d.company = 2 THEN i.claims + 1 END,
        -- An attempt that ended without a word is given back unless it counts as a crash.
        attempt_count = greatest(
            i.attempt_count + (NOT d.again)::int - (d.silent AND NOT d.counts)::int, 0),
        crashes = d.crashes + d.counts::int,
        accused_at = CASE WHEN d.accused OR d.silent THEN
            COALESCE(i.accused_at, CASE WHEN d.silent THEN i.lease_expires_at END, d.now) END,
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
    t.attempt_limit AS "attempt_limit!", t.accused_at IS NOT NULL AS "suspect!",
    extract(epoch FROM t.now - t.deferred_since)::float8 AS deferred_seconds,
    t.kind AS "kind?", t.tenant AS "tenant?",
    t.transcription_file_path AS "transcription_file_path?",
    t.transcription_identity AS "transcription_identity?",
    t.extraction_output_file_path AS "extraction_output_file_path?",
    t.extraction_identity AS "extraction_identity?",
    t.document_id AS "document_id!", COALESCE(o.file_path, '') AS "file_path!",
    o.original_name AS "original_name?", t.object_etag AS "object_etag?",
    COALESCE(o.depth, 0) AS "depth!", o.first_page AS "first_page?", o.last_page AS "last_page?",
    t.place AS "place!",
    t.now AS "answered_at!", t.created_at AS "created_at!", t.priority AS "priority!"
FROM taken t LEFT JOIN document o ON o.id = t.document_id
UNION ALL
SELECT
    d.id, d.token, d.answer, d.status,
    extract(epoch FROM CASE d.answer
        WHEN 'busy' THEN d.lease_expires_at - d.now
        WHEN 'suspect' THEN d.now - COALESCE(d.accused_at, d.lease_expires_at, d.now)
        WHEN 'not due' THEN d.next_attempt_at - d.now END)::float8,
    0, 0, 0, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, d.id, '', NULL, NULL, 0, NULL, NULL,
    d.place,
    d.now, d.now, ''
FROM decided d WHERE d.answer <> 'claimed'
UNION ALL
SELECT
    a.id, a.token, CASE
        WHEN EXISTS (SELECT 1 FROM ingestion i WHERE i.id = a.id) THEN 'locked'
        WHEN EXISTS (SELECT 1 FROM erased_ingestion e WHERE e.id = a.id) THEN 'erased'
        ELSE 'unknown' END,
    NULL, NULL, 0, 0, 0, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, a.id, '', NULL, NULL, 0,
    NULL, NULL, a.place, c.now, c.now, ''
FROM asked a CROSS JOIN clock c WHERE a.id NOT IN (SELECT h.id FROM held h)
ORDER BY "place!"
