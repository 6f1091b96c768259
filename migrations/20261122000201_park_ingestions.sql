-- What waits for long, or for a person, keeps no message in the queue: the row says so, and
-- maintenance sends a message when it is time. Hidden messages are counted against the queue's limit
-- of messages in flight, and each turn of one costs a receive and rows.
--
-- New columns with constant defaults, functions, triggers, views: nothing is read or rewritten. The
-- indexes are in the next files, built beside the work that goes on.

ALTER TABLE ingestion
    ADD COLUMN IF NOT EXISTS parked_by text,
    ADD COLUMN IF NOT EXISTS parked_until timestamptz,
    ADD COLUMN IF NOT EXISTS denials int NOT NULL DEFAULT 0;
COMMENT ON COLUMN ingestion.parked_by IS
    'The pause (scope:name) that holds it back while it waits without a message; null: none.';
COMMENT ON COLUMN ingestion.parked_until IS
    'When maintenance sends the message of what waits for long; null: it has one.';
COMMENT ON COLUMN ingestion.denials IS
    'How often in a row it was put off for what a person has to mend: each wait is longer.';

CREATE OR REPLACE VIEW ops_in_flight AS
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

CREATE OR REPLACE VIEW ops_throughput AS
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
-- As a value, so that the index serves: a call that may change its answer cannot be looked up.
WHERE completed_at > (SELECT docmill_now()) - interval '7 days'
GROUP BY 1;

-- What a day has cost so far, kept by a trigger so that workers of every release add to it. Sixteen
-- parts: payments of the same moment seldom wait for each other.
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
-- The trigger's lock keeps writers out until the days that may still be asked for are summed up.
INSERT INTO spending_day (day, part, cost_nanos)
SELECT day, 0, sum(cost_nanos) FROM spending
WHERE day >= (docmill_now() AT TIME ZONE 'UTC')::date - 1 GROUP BY day;

-- Retention: what is past it is doomed first; from then on it can be given no new ingestion. Its
-- objects go next, its rows last. What cannot be finished today stays doomed and is tried again.
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
    DELETE FROM quarantined_message WHERE lower(trim(body)) = ANY (ingestions::text[]);
    -- What was paid stays on the books, without a tenant.
    UPDATE spending SET tenant = NULL WHERE ingestion_id = ANY (ingestions);
    DELETE FROM ingestion WHERE id = ANY (ingestions);
    DELETE FROM document WHERE id = ANY (doomed);
    RETURN QUERY SELECT unnest(doomed);
END
$$;
COMMENT ON FUNCTION erase_doomed(uuid[]) IS
    'Deletes those of the documents that are doomed, with everything about them.';

-- Workers of the release before call this one: the same rules, in one step.
CREATE OR REPLACE FUNCTION erase_expired(documents uuid[]) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
    PERFORM doom_expired(documents);
    RETURN QUERY SELECT erase_doomed(documents);
END
$$;

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
COMMENT ON FUNCTION refuse_ingestion_of_doomed_document() IS
    'A document whose objects are being deleted gets no new ingestion, and none is opened again.';
CREATE TRIGGER ingestion_of_a_doomed_document AFTER INSERT ON ingestion
    FOR EACH ROW EXECUTE FUNCTION refuse_ingestion_of_doomed_document();
CREATE TRIGGER reopening_of_a_doomed_document AFTER UPDATE OF status ON ingestion
    FOR EACH ROW WHEN (OLD.status <> 'in-progress' AND NEW.status = 'in-progress')
    EXECUTE FUNCTION refuse_ingestion_of_doomed_document();

-- A session's own temporary tables come last in what runs with the owner's rights.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['doom_expired(uuid[])', 'take_doomed(int)',
        'erase_doomed(uuid[])', 'erase_expired(uuid[])', 'refuse_ingestion_of_doomed_document()']
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', wanted, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', wanted);
    END LOOP;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT, INSERT, UPDATE ON spending_day TO docmill_worker;
        GRANT SELECT ON doomed_document TO docmill_worker;
        GRANT EXECUTE ON FUNCTION doom_expired(uuid[]), take_doomed(int), erase_doomed(uuid[]),
            erase_expired(uuid[]) TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON spending_day, doomed_document TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON spending_day, doomed_document TO docmill_migrator;
        GRANT EXECUTE ON FUNCTION doom_expired(uuid[]), take_doomed(int), erase_doomed(uuid[]),
            erase_expired(uuid[]) TO docmill_migrator;
    END IF;
END
$$;

COMMENT ON COLUMN worker.receipt_sent_at IS 'Of earlier releases; not written any more.';
COMMENT ON COLUMN worker.receipt_noted_at IS 'Of earlier releases; not written any more.';
