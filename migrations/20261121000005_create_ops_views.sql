-- What an operator asks Postgres first. docs/operations.md goes through them.

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
        ELSE format('waits for its message, sent %s s ago%s',
            floor(extract(epoch FROM n.now - i.enqueued_at)),
            CASE WHEN i.resends = 0 THEN '' ELSE format(', resent %s times', i.resends) END)
    END AS explanation,
    i.stage, i.worker, i.attempt_count, i.attempt_limit, i.crashes, i.claims,
    i.created_at, i.enqueued_at, i.started_at, i.lease_expires_at, i.next_attempt_at,
    i.deferred_since, i.resends
FROM ingestion i
LEFT JOIN document d ON d.id = i.document_id
CROSS JOIN LATERAL (SELECT docmill_now() AS now) AS n
LEFT JOIN LATERAL (
    SELECT CASE scope WHEN 'all' THEN 'everything' ELSE scope || ' ' || name END AS what
    FROM pause
    WHERE scope = 'all' OR (scope = 'kind' AND name = i.kind)
       OR (scope = 'tenant' AND name = i.tenant)
    ORDER BY scope LIMIT 1
) AS p ON true
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
WHERE completed_at > docmill_now() - interval '7 days'
GROUP BY 1;
COMMENT ON VIEW ops_throughput IS 'Ends per hour over the last seven days, with tokens.';
