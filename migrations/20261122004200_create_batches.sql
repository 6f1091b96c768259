-- The batch lane: questions to models that may wait are handed to a vendor many at a time, for less.
-- A row per question and a row per batch; what is asked and what is answered lie in the object store.

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
    CONSTRAINT batch_state_is_known CHECK (state IN ('intended', 'submitted', 'ended')),
    CONSTRAINT batch_has_a_handle CHECK (state <> 'submitted' OR handle IS NOT NULL),
    CONSTRAINT batch_end CHECK ((state = 'ended') = (ended_at IS NOT NULL))
);
CREATE INDEX batch_open ON batch (due_at) WHERE state <> 'ended';

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

ALTER TABLE spending
    ADD COLUMN batch_calls bigint NOT NULL DEFAULT 0,
    ADD COLUMN saved_nanos bigint NOT NULL DEFAULT 0,
    ADD COLUMN late_calls bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN spending.batch_calls IS 'Those of the calls that were answered in a batch.';
COMMENT ON COLUMN spending.saved_nanos IS 'What the same calls would have cost more directly.';
COMMENT ON COLUMN spending.late_calls IS
    'Answers of a batch that came after a direct call had taken their place: paid for twice.';

ALTER TABLE attempt DROP CONSTRAINT attempt_outcome_is_known;
ALTER TABLE attempt ADD CONSTRAINT attempt_outcome_is_known CHECK (outcome IN (
    'completed',
    'corrupt', 'encrypted', 'empty', 'unsupported_type', 'too_large', 'timeout', 'no_text',
    'gate_refused', 'cut', 'model_refused', 'crashed', 'missing', 'internal', 'transient',
    'deferred_too_long', 'superseded', 'cancelled', 'blocked',
    'throttled', 'unavailable', 'denied', 'misconfigured', 'paused', 'over_budget', 'batched',
    'rejected', 'interrupted')) NOT VALID;
ALTER TABLE attempt VALIDATE CONSTRAINT attempt_outcome_is_known;

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON batch, batch_request TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT ON batch, batch_request TO docmill_operator;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON batch, batch_request TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON batch, batch_request TO docmill_migrator;
    END IF;
END
$$;
