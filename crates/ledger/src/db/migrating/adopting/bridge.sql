-- While workers of the earlier system and ours work side by side. Ours say so in every session
-- (docmill.session); what anybody else writes into the columns that the earlier worker writes is
-- heeded as the earlier worker's word:
--
--  * a claim that it may have becomes a claim of ours for fifteen minutes, so that we stay away;
--  * an end is completed by what our constraints ask for, and noted as an attempt;
--  * what we hold, or have ended, is left as it is: its UPDATE finds no row.
--
-- Made by `docmill migrate` when it adopts, gone with `docmill migrate --earlier-workers gone`.
CREATE OR REPLACE FUNCTION heed_earlier_worker() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
AS $$
DECLARE
    now timestamptz := docmill_now();
    theirs boolean := OLD.worker IS NOT DISTINCT FROM 'earlier worker';
    ended text;
BEGIN
    IF OLD.status <> 'in-progress' THEN
        IF NEW.status <> 'in-progress' THEN
            -- An end that comes too late.
            RETURN NULL;
        END IF;
        -- Opened again by hand.
        NEW.reason := NULL;
        NEW.detail := NULL;
        NEW.completed_at := NULL;
        NEW.stage := NULL;
        NEW.crashes := 0;
        NEW.attempt_limit := NEW.attempt_count + 8;
        NEW.next_attempt_at := NULL;
        NEW.deferred_since := NULL;
        NEW.enqueued_at := now;
        NEW.updated_at := now;
        RETURN NEW;
    END IF;
    IF OLD.lease_expires_at > now AND NOT theirs THEN
        RETURN NULL;
    END IF;
    NEW.updated_at := now;

    IF NEW.status = 'in-progress' AND NEW.started_at IS DISTINCT FROM OLD.started_at
        AND NEW.started_at IS NOT NULL
    THEN
        IF OLD.claim_token IS NOT NULL THEN
            INSERT INTO attempt (ingestion_id, claims, token, worker, started_at, ended_at, stage,
                outcome, detail)
            VALUES (OLD.id, OLD.claims, OLD.claim_token, OLD.worker, OLD.started_at, now, OLD.stage,
                'crashed', 'the lease ended without a word of the worker')
            ON CONFLICT DO NOTHING;
            NEW.crashes := OLD.crashes + 1;
        END IF;
        NEW.claim_token := gen_random_uuid();
        NEW.lease_expires_at := now + interval '15 minutes';
        NEW.worker := 'earlier worker';
        NEW.stage := 'claimed';
        NEW.claims := OLD.claims + 1;
        NEW.next_attempt_at := NULL;
        NEW.parked_by := NULL;
        NEW.parked_until := NULL;
        RETURN NEW;
    END IF;

    IF NEW.status = 'in-progress' AND NEW.attempt_count <= OLD.attempt_count THEN
        -- A step in between: the path of its transcript, say.
        RETURN NEW;
    END IF;

    ended := CASE NEW.status WHEN 'completed' THEN 'completed' WHEN 'failed' THEN 'internal'
        WHEN 'cancelled' THEN 'cancelled' ELSE 'transient' END;
    INSERT INTO attempt (ingestion_id, claims, token, worker, started_at, ended_at, stage, outcome,
        final, model, input_tokens, output_tokens, detail)
    VALUES (OLD.id, OLD.claims, COALESCE(OLD.claim_token, gen_random_uuid()), 'earlier worker',
        OLD.started_at, now, OLD.stage, ended, NEW.status <> 'in-progress', NEW.extraction_model,
        COALESCE(NEW.extraction_input_tokens, 0), COALESCE(NEW.extraction_output_tokens, 0),
        'as the earlier worker said')
    ON CONFLICT DO NOTHING;
    NEW.claim_token := NULL;
    NEW.lease_expires_at := NULL;
    IF NEW.status = 'in-progress' THEN
        RETURN NEW;
    END IF;
    NEW.completed_at := COALESCE(NEW.completed_at, now);
    SELECT s.successful, s.confidence, s.missing
    INTO NEW.extraction_successful, NEW.extraction_confidence, NEW.missing_fields
    FROM stated_in_data(NEW.structured_data) s;
    NEW.next_attempt_at := NULL;
    NEW.parked_by := NULL;
    NEW.parked_until := NULL;
    NEW.reason := CASE NEW.status WHEN 'failed' THEN 'internal' WHEN 'cancelled' THEN 'cancelled' END;
    NEW.detail := CASE WHEN NEW.status = 'failed'
        THEN format('the earlier worker gave up after %s attempts', NEW.attempt_count) END;
    NEW.valid_structured_data := CASE NEW.status WHEN 'failed' THEN false
        WHEN 'completed' THEN COALESCE(NEW.valid_structured_data, true)
        ELSE NEW.valid_structured_data END;
    NEW.needs_human_review := NEW.status = 'failed'
        OR (NEW.status = 'completed' AND NOT NEW.valid_structured_data);
    NEW.review_reasons := CASE WHEN NEW.status = 'failed' THEN ARRAY['internal']
        WHEN NEW.needs_human_review THEN ARRAY['gate_refused'] ELSE '{}' END;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION heed_earlier_worker() IS
    'While workers of the earlier system run beside ours: see docs/guides/moving.md.';
REVOKE ALL ON FUNCTION heed_earlier_worker() FROM PUBLIC;

DROP TRIGGER IF EXISTS heed_earlier_worker ON ingestion;
CREATE TRIGGER heed_earlier_worker BEFORE UPDATE ON ingestion FOR EACH ROW
    WHEN (current_setting('docmill.session', true) IS DISTINCT FROM 'yes'
        AND (OLD.status, OLD.started_at, OLD.completed_at, OLD.attempt_count,
            OLD.transcription_file_path, OLD.transcription_quality_score,
            OLD.preprocessed_file_path)
        IS DISTINCT FROM (NEW.status, NEW.started_at, NEW.completed_at, NEW.attempt_count,
            NEW.transcription_file_path, NEW.transcription_quality_score,
            NEW.preprocessed_file_path))
    EXECUTE FUNCTION heed_earlier_worker();

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION heed_earlier_worker() SET search_path = %I, pg_temp',
        current_schema());
END
$$;

-- What they began lately they may still have in hand.
UPDATE ingestion SET
    claim_token = gen_random_uuid(), lease_expires_at = started_at + interval '15 minutes',
    worker = 'earlier worker', stage = 'claimed', claims = claims + 1
WHERE status = 'in-progress' AND claim_token IS NULL
    AND started_at > docmill_now() - interval '15 minutes' AND claims = 0;
