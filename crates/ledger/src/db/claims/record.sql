-- Ends ingestions and their attempts. $1: a JSON array of the ends. Returns those that took effect,
-- and those that did not because somebody else has locked the row or its document's, which the end is
-- carried into by a trigger: they are not waited for.
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), ends AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset($1::jsonb) AS e (
        id uuid, token uuid, status text, outcome text, reason text, stage text,
        structured_data jsonb, review boolean, review_reasons text[], reader text, kind text,
        model text, input_tokens bigint, output_tokens bigint, sha256 text, duplicate_key text,
        earlier_duplicate_key text, duplicate_rule text, near_amount uuid, near_number uuid,
        near_rule text, master_match jsonb,
        detail text, certainty real, draw_share float8, draws_per_day bigint, gate_score real,
        grounded jsonb, successful boolean, confidence text,
        missing_fields text[], lesson jsonb, einvoice_rules jsonb, einvoice_reference jsonb,
        hooks jsonb)
    -- All there are: read as one row by the planner (see `claims.rs`).
    WHERE e.id BETWEEN '00000000-0000-0000-0000-000000000000'
        AND 'ffffffff-ffff-ffff-ffff-ffffffffffff'
), meant AS MATERIALIZED (
    -- Of a child also its family's topmost document: under that one's lock a trigger finds out whether this
    -- was the last of the family to end (write_webhook_of_family).
    SELECT DISTINCT v.document_id
    FROM ends e JOIN ingestion i ON i.id = e.id AND i.claim_token = e.token
    LEFT JOIN ingestion r ON r.id = i.root_id
    CROSS JOIN LATERAL (VALUES (i.document_id), (r.document_id)) AS v (document_id)
), documents AS MATERIALIZED (
    SELECT d.id FROM meant m JOIN document d ON d.id = m.document_id
    ORDER BY d.id FOR NO KEY UPDATE OF d SKIP LOCKED
), held AS MATERIALIZED (
    SELECT e.*, i.claims, i.worker, i.started_at, i.document_id, i.tenant, i.alone_claim
    FROM ends e JOIN ingestion i ON i.id = e.id AND i.claim_token = e.token
    LEFT JOIN ingestion r ON r.id = i.root_id
    WHERE (i.document_id IN (SELECT id FROM documents)
        -- The earlier system may hold ingestions whose document is gone.
        OR NOT EXISTS (SELECT 1 FROM document d WHERE d.id = i.document_id))
      AND (r.id IS NULL OR r.document_id IN (SELECT id FROM documents))
    ORDER BY i.id FOR NO KEY UPDATE OF i SKIP LOCKED
), told AS MATERIALIZED (
    -- Whose supplier and number another document has: one that completed since the gate looked, or one
    -- that completes here. Nobody else completes one meanwhile: the keys are locked (see `finish.rs`).
    SELECT h.*, h.duplicate_rule IS NOT NULL AND (
        first_value(h.document_id) OVER (PARTITION BY h.tenant, h.duplicate_key ORDER BY h.id)
            <> h.document_id
        OR EXISTS (
            SELECT 1 FROM ingestion o
            WHERE o.duplicate_key IN (h.duplicate_key, h.earlier_duplicate_key)
              AND o.document_id <> h.document_id
              AND o.status = 'completed' AND COALESCE(o.tenant, '') = COALESCE(h.tenant, '')
            OFFSET 0)) AS repeated,
        -- Whose day and total another one has, and its supplier or number: the same again.
        h.near_rule IS NOT NULL AND (
            h.near_amount IS NOT NULL AND first_value(h.document_id)
                OVER (PARTITION BY h.tenant, h.near_amount ORDER BY h.id) <> h.document_id
            OR h.near_number IS NOT NULL AND first_value(h.document_id)
                OVER (PARTITION BY h.tenant, h.near_number ORDER BY h.id) <> h.document_id
            OR EXISTS (
                SELECT 1 FROM ingestion o
                WHERE o.near_amount = h.near_amount AND o.document_id <> h.document_id
                  AND o.status = 'completed' AND COALESCE(o.tenant, '') = COALESCE(h.tenant, '')
                OFFSET 0)
            OR EXISTS (
                SELECT 1 FROM ingestion o
                WHERE o.near_number = h.near_number AND o.document_id <> h.document_id
                  AND o.status = 'completed' AND COALESCE(o.tenant, '') = COALESCE(h.tenant, '')
                OFFSET 0)) AS near
    FROM held h
), asked AS MATERIALIZED (
    -- Completed documents without a flag, of a kind with a stated bound: below the level of certainty, or
    -- drawn for a look (docs/explanation/assurance.md). Where everything is flagged every one is drawn.
    SELECT t.id, COALESCE(t.tenant, '') AS tenant, t.kind, concat_ws(':', t.reader, t.model) AS reader,
        t.document_id, t.certainty,
        COALESCE(t.certainty < l.level OR l.level >= 1, false) AS below,
        COALESCE(l.level >= 1, false) OR (
            ('x' || substr(encode(sha256(k.secret || uuid_send(t.id)), 'hex'), 1, 8))::bit(32)::bigint
                < t.draw_share * 4294967296
            AND (SELECT count(*) FROM (
                SELECT 1 FROM drawn_document o
                WHERE o.tenant = COALESCE(t.tenant, '') AND o.kind = t.kind
                  AND o.reader = concat_ws(':', t.reader, t.model)
                  AND o.drawn_at >= date_trunc('day', c.now, 'UTC')
                LIMIT t.draws_per_day) AS today) < t.draws_per_day) AS drawn
    FROM told t CROSS JOIN clock c CROSS JOIN draw_key k
    LEFT JOIN certainty_level l ON l.tenant = COALESCE(t.tenant, '') AND l.kind = t.kind
        AND l.reader = concat_ws(':', t.reader, t.model)
    WHERE t.draw_share IS NOT NULL AND t.certainty IS NOT NULL AND t.reader IS NOT NULL
      AND t.kind IS NOT NULL AND t.status = 'completed' AND NOT t.review AND NOT t.repeated
      AND NOT t.near
      -- A document that a person has decided about keeps that.
      AND NOT EXISTS (SELECT 1 FROM document d
        WHERE d.id = t.document_id AND d.corrected_at IS NOT NULL)
), ended AS (
    UPDATE ingestion i SET
        status = e.status, reason = e.reason, completed_at = c.now, updated_at = c.now,
        claim_token = NULL, lease_expires_at = NULL, next_attempt_at = NULL,
        deferred_since = NULL, stage = e.stage, detail = e.detail,
        structured_data = e.structured_data,
        valid_structured_data = CASE e.status
            WHEN 'completed' THEN true WHEN 'failed' THEN false END,
        needs_human_review = e.review OR e.repeated OR e.near OR COALESCE(a.below OR a.drawn, false),
        review_reasons = CASE WHEN e.repeated THEN e.review_reasons || e.duplicate_rule
            WHEN e.near THEN e.review_reasons || e.near_rule
            WHEN a.below OR a.drawn THEN e.review_reasons || 'stated_bound'::text
            ELSE e.review_reasons END,
        reader = e.reader,
        kind = COALESCE(e.kind, i.kind), extraction_model = e.model,
        extraction_input_tokens = e.input_tokens, extraction_output_tokens = e.output_tokens,
        sha256 = COALESCE(e.sha256, i.sha256), duplicate_key = e.duplicate_key,
        near_amount = e.near_amount, near_number = e.near_number,
        master_match = e.master_match,
        gate_score = e.gate_score, grounded = e.grounded,
        extraction_successful = e.successful, extraction_confidence = e.confidence,
        missing_fields = e.missing_fields, einvoice_rules = e.einvoice_rules,
        einvoice_reference = e.einvoice_reference, hooks = e.hooks
    FROM told e LEFT JOIN asked a ON a.id = e.id CROSS JOIN clock c
    WHERE i.id = e.id AND e.token = i.claim_token
    RETURNING e.id, e.token, e.claims, e.worker, e.started_at, c.now, e.stage, e.outcome,
        e.model, e.input_tokens, e.output_tokens, e.detail,
        e.document_id, e.lesson, e.repeated OR e.near AS repeated,
        COALESCE(e.alone_claim = e.claims, false) AS alone
), closed AS (
    INSERT INTO attempt (ingestion_id, claims, token, worker, started_at, ended_at, stage,
        outcome, final, alone, model, input_tokens, output_tokens, detail)
    SELECT id, claims, token, worker, started_at, now, stage,
        outcome, true, alone, model, input_tokens, output_tokens, detail
    FROM ended
), taught AS (
    -- An exact e-invoice teaches, unless a person has decided about its document.
    INSERT INTO supplier_memory AS m (document_id, ingestion_id, tenant, supplier, keys, kind, source,
        learned_at)
    SELECT e.document_id, e.id, e.lesson ->> 'tenant', e.lesson ->> 'supplier',
        ARRAY(SELECT jsonb_array_elements_text(e.lesson -> 'keys')), e.lesson ->> 'kind', 'exact', e.now
    FROM ended e JOIN document d ON d.id = e.document_id
    WHERE e.lesson IS NOT NULL AND NOT e.repeated AND d.corrected_at IS NULL
    ON CONFLICT (document_id) DO UPDATE SET
        ingestion_id = excluded.ingestion_id, tenant = excluded.tenant,
        supplier = excluded.supplier, keys = excluded.keys, kind = excluded.kind,
        learned_at = excluded.learned_at
    WHERE m.source = 'exact'
), worn AS MATERIALIZED (
    -- The oldest of its supplier, as many as `supplier::MAX_DOCUMENTS` leaves; locked rows stay.
    SELECT m.document_id FROM supplier_memory m JOIN (
        SELECT o.document_id FROM ended e CROSS JOIN LATERAL (
            SELECT x.document_id FROM supplier_memory x
            WHERE x.tenant = e.lesson ->> 'tenant' AND x.supplier = e.lesson ->> 'supplier'
              AND x.document_id <> e.document_id
            ORDER BY x.learned_at DESC, x.document_id OFFSET 11) AS o
        WHERE e.lesson IS NOT NULL) AS old USING (document_id)
    FOR UPDATE OF m SKIP LOCKED
), forgotten AS (
    DELETE FROM supplier_memory m USING worn w WHERE m.document_id = w.document_id
), drawn AS (
    INSERT INTO drawn_document (ingestion_id, document_id, tenant, kind, reader, certainty, drawn_at)
    SELECT a.id, a.document_id, a.tenant, a.kind, a.reader, a.certainty, d.now
    FROM asked a JOIN ended d ON d.id = a.id WHERE a.drawn ORDER BY a.id
)
SELECT id AS "id!", token AS "token!", true AS "recorded!" FROM ended
UNION ALL
SELECT e.id, e.token, false FROM ends e
WHERE (e.id, e.token) NOT IN (SELECT d.id, d.token FROM ended d)
  AND EXISTS (SELECT 1 FROM ingestion i WHERE i.id = e.id AND i.claim_token = e.token)
