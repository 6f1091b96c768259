-- One more action is recorded, beside those that are allowed already: data of many documents handed out in a file.
DO $$
DECLARE
    known text;
BEGIN
    SELECT string_agg(DISTINCT quote_literal(code), ', ') INTO known FROM (
        SELECT found.code[1] AS code FROM pg_constraint c,
            regexp_matches(pg_get_constraintdef(c.oid), '''([a-z_]+)''', 'g') AS found (code)
        WHERE c.conrelid = 'operator_action'::regclass AND c.conname = 'operator_action_action_check'
        UNION SELECT unnest(ARRAY['export'])) AS codes;
    ALTER TABLE operator_action DROP CONSTRAINT operator_action_action_check;
    EXECUTE 'ALTER TABLE operator_action ADD CONSTRAINT operator_action_action_check
        CHECK (action IN (' || known || ')) NOT VALID';
END
$$;
