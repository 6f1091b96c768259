-- The last answer of a webhook target, and tests of it. The release before neither writes nor asks for
-- them: its processes send no test.
ALTER TABLE webhook_target
    ADD COLUMN tried_at timestamptz,
    ADD COLUMN answer_status int,
    ADD COLUMN answer_problem text,
    ADD COLUMN answer_ms int CHECK (answer_ms >= 0),
    ADD COLUMN test_id uuid,
    ADD COLUMN test_asked_at timestamptz,
    ADD COLUMN test_ended_at timestamptz,
    ADD COLUMN test_status int,
    ADD COLUMN test_problem text,
    ADD COLUMN test_ms int CHECK (test_ms >= 0);
COMMENT ON COLUMN webhook_target.tried_at IS 'When a message was last sent to it, to the second.';
COMMENT ON COLUMN webhook_target.answer_status IS 'HTTP status of that; null: no answer.';
COMMENT ON COLUMN webhook_target.answer_problem IS 'Why that was not taken; null: it was.';
COMMENT ON COLUMN webhook_target.answer_ms IS 'Milliseconds until its answer.';
COMMENT ON COLUMN webhook_target.test_id IS 'Id of a test that is to be sent; null: there is none.';
COMMENT ON COLUMN webhook_target.test_asked_at IS 'When a test was last asked for.';
COMMENT ON COLUMN webhook_target.test_ended_at IS 'When it was sent; null: no process has sent it.';
COMMENT ON COLUMN webhook_target.test_status IS 'HTTP status of its answer; null: no answer.';
COMMENT ON COLUMN webhook_target.test_problem IS 'Why it was not taken; null: it was.';
COMMENT ON COLUMN webhook_target.test_ms IS 'Milliseconds until its answer.';

-- One more action is recorded, beside those that are allowed already.
DO $$
DECLARE
    known text;
BEGIN
    SELECT string_agg(DISTINCT quote_literal(code), ', ') INTO known FROM (
        SELECT found.code[1] AS code FROM pg_constraint c,
            regexp_matches(pg_get_constraintdef(c.oid), '''([a-z_]+)''', 'g') AS found (code)
        WHERE c.conrelid = 'operator_action'::regclass AND c.conname = 'operator_action_action_check'
        UNION SELECT unnest(ARRAY['test'])) AS codes;
    ALTER TABLE operator_action DROP CONSTRAINT operator_action_action_check;
    EXECUTE 'ALTER TABLE operator_action ADD CONSTRAINT operator_action_action_check
        CHECK (action IN (' || known || ')) NOT VALID';
END
$$;
