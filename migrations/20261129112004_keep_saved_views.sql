-- Views of lists that people save. The release before knows no such table.
CREATE TABLE saved_view (
    owner text NOT NULL CHECK (char_length(owner) BETWEEN 1 AND 400),
    list text NOT NULL CHECK (list IN ('ingestions', 'reviews')),
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 60),
    query text NOT NULL CHECK (octet_length(query) BETWEEN 1 AND 2000),
    saved_at timestamptz NOT NULL DEFAULT docmill_now(),
    PRIMARY KEY (owner, list, name)
);
COMMENT ON TABLE saved_view IS 'Filters of lists under names, of one person each.';
COMMENT ON COLUMN saved_view.owner IS 'Whose, as operator_action has the name.';
COMMENT ON COLUMN saved_view.list IS 'Of which list.';
COMMENT ON COLUMN saved_view.name IS 'The name; saved again under it, the view is replaced.';
COMMENT ON COLUMN saved_view.query IS 'The filters, as the address of the list has them.';
COMMENT ON COLUMN saved_view.saved_at IS 'When it was saved last.';

-- One more action is recorded, beside those that are allowed already.
DO $$
DECLARE
    known text;
BEGIN
    SELECT string_agg(DISTINCT quote_literal(code), ', ') INTO known FROM (
        SELECT found.code[1] AS code FROM pg_constraint c,
            regexp_matches(pg_get_constraintdef(c.oid), '''([a-z_]+)''', 'g') AS found (code)
        WHERE c.conrelid = 'operator_action'::regclass AND c.conname = 'operator_action_action_check'
        UNION SELECT unnest(ARRAY['views'])) AS codes;
    ALTER TABLE operator_action DROP CONSTRAINT operator_action_action_check;
    EXECUTE 'ALTER TABLE operator_action ADD CONSTRAINT operator_action_action_check
        CHECK (action IN (' || known || ')) NOT VALID';
END
$$;

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT, INSERT (owner, list, name, query), UPDATE (query, saved_at), DELETE
            ON saved_view TO docmill_operator;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON saved_view TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON saved_view TO docmill_migrator;
    END IF;
END
$$;
