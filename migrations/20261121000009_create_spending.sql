-- What providers were paid, written as it is spent, and the word for an attempt that was put off
-- because a day's budget is.

CREATE TABLE spending (
    ingestion_id uuid NOT NULL,
    claims bigint NOT NULL,
    day date NOT NULL,
    provider text NOT NULL,
    model text NOT NULL DEFAULT '',
    document_id uuid NOT NULL,
    tenant text,
    calls bigint NOT NULL DEFAULT 0,
    pages bigint NOT NULL DEFAULT 0,
    input_tokens bigint NOT NULL DEFAULT 0,
    cache_read_tokens bigint NOT NULL DEFAULT 0,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    cost_nanos bigint NOT NULL DEFAULT 0,
    unpriced_calls bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (ingestion_id, claims, day, provider, model)
);
CREATE INDEX spending_by_day ON spending (day) INCLUDE (cost_nanos);

COMMENT ON TABLE spending IS
    'What providers were paid: a row per attempt, day, provider and model. Outlives the ingestion.';
COMMENT ON COLUMN spending.ingestion_id IS 'For which ingestion.';
COMMENT ON COLUMN spending.claims IS 'In which attempt: attempt.claims.';
COMMENT ON COLUMN spending.day IS 'On which day, in UTC; days are what budgets are for.';
COMMENT ON COLUMN spending.provider IS 'Who was paid, e.g. openai.';
COMMENT ON COLUMN spending.model IS 'The configured model; of pages the processor or operation.';
COMMENT ON COLUMN spending.document_id IS 'The document.';
COMMENT ON COLUMN spending.tenant IS 'On whose behalf; null: nobody in particular.';
COMMENT ON COLUMN spending.calls IS 'Answered calls.';
COMMENT ON COLUMN spending.pages IS 'Pages read.';
COMMENT ON COLUMN spending.input_tokens IS 'Prompt tokens that no cache held.';
COMMENT ON COLUMN spending.cache_read_tokens IS 'Prompt tokens out of the vendor''s cache.';
COMMENT ON COLUMN spending.cache_write_tokens IS 'Prompt tokens written to the vendor''s cache.';
COMMENT ON COLUMN spending.output_tokens IS 'Generated tokens.';
COMMENT ON COLUMN spending.cost_nanos IS
    'Billionths of cost.currency, by the prices of cost.price on that day.';
COMMENT ON COLUMN spending.unpriced_calls IS
    'Calls or readings for which cost.price had no price: cost_nanos lacks them.';

ALTER TABLE attempt DROP CONSTRAINT attempt_outcome_is_known;
ALTER TABLE attempt ADD CONSTRAINT attempt_outcome_is_known CHECK (outcome IN (
    'completed',
    'corrupt', 'encrypted', 'empty', 'unsupported_type', 'too_large', 'timeout', 'no_text',
    'gate_refused', 'cut', 'model_refused', 'crashed', 'missing', 'internal', 'transient',
    'deferred_too_long', 'superseded', 'cancelled', 'blocked',
    'throttled', 'unavailable', 'over_budget', 'rejected', 'interrupted')) NOT VALID;
ALTER TABLE attempt VALIDATE CONSTRAINT attempt_outcome_is_known;

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT, INSERT, UPDATE ON spending TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON spending TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON spending TO docmill_migrator;
    END IF;
END
$$;
