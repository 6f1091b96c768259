-- Users of the console, their tokens, and sessions. The release before knows none of them: its processes
-- take the tokens of their settings and keep their own sessions.

CREATE TABLE console_user (
    name text PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9._@+-]{0,99}$'),
    role text NOT NULL CHECK (role IN ('viewer', 'producer', 'reviewer', 'operator', 'administrator')),
    tenant text NOT NULL DEFAULT '' CHECK (char_length(tenant) <= 200),
    highest_priority text NOT NULL DEFAULT 'critical'
        CHECK (highest_priority IN ('critical', 'high', 'normal', 'low', 'background')),
    made_at timestamptz NOT NULL DEFAULT docmill_now(),
    made_by text NOT NULL,
    ended_at timestamptz
);
COMMENT ON TABLE console_user IS
    'Users of the console and of /api/v1, beside web.tokens of the settings. A row stays when its user is ended: no other person gets the name.';
COMMENT ON COLUMN console_user.name IS 'The name in the audit, in lower case.';
COMMENT ON COLUMN console_user.role IS 'viewer, producer, reviewer, operator or administrator.';
COMMENT ON COLUMN console_user.tenant IS 'The only tenant whose documents are seen; empty: all.';
COMMENT ON COLUMN console_user.highest_priority IS 'The most urgent priority of documents handed in.';
COMMENT ON COLUMN console_user.made_at IS 'When it was made.';
COMMENT ON COLUMN console_user.made_by IS 'By whom.';
COMMENT ON COLUMN console_user.ended_at IS 'Since when no token of the user is taken; null: they are.';

CREATE TABLE console_token (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_name text NOT NULL REFERENCES console_user (name),
    label text NOT NULL DEFAULT '' CHECK (char_length(label) <= 200),
    sha256 bytea NOT NULL UNIQUE CHECK (octet_length(sha256) = 32),
    made_at timestamptz NOT NULL DEFAULT docmill_now(),
    made_by text NOT NULL,
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz,
    revoked_by text,
    CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);
CREATE INDEX console_token_by_user ON console_token (user_name, id);
COMMENT ON TABLE console_token IS 'Tokens of users; the token itself is shown once and kept nowhere.';
COMMENT ON COLUMN console_token.id IS 'The number by which it is revoked.';
COMMENT ON COLUMN console_token.user_name IS 'Whose.';
COMMENT ON COLUMN console_token.label IS 'Its purpose, in the words of its maker.';
COMMENT ON COLUMN console_token.sha256 IS 'SHA-256 of the token, which has 256 random bits.';
COMMENT ON COLUMN console_token.made_at IS 'When it was made.';
COMMENT ON COLUMN console_token.made_by IS 'By whom.';
COMMENT ON COLUMN console_token.expires_at IS 'From when it is not taken; null: no end.';
COMMENT ON COLUMN console_token.last_used_at IS 'When it was last used, to the minute.';
COMMENT ON COLUMN console_token.revoked_at IS 'Since when it is not taken; null: it is.';
COMMENT ON COLUMN console_token.revoked_by IS 'Who revoked it.';

CREATE TABLE console_session (
    id_hash bytea PRIMARY KEY CHECK (octet_length(id_hash) = 32),
    token_hash bytea NOT NULL CHECK (octet_length(token_hash) = 32),
    opened_at timestamptz NOT NULL DEFAULT docmill_now(),
    used_at timestamptz NOT NULL DEFAULT docmill_now()
);
CREATE INDEX console_session_by_token ON console_session (token_hash, used_at);
CREATE INDEX console_session_by_age ON console_session (opened_at);
COMMENT ON TABLE console_session IS
    'Sessions of browsers. Rights are those of the token at each request: a session ends with it.';
COMMENT ON COLUMN console_session.id_hash IS 'SHA-256 of the id in the cookie.';
COMMENT ON COLUMN console_session.token_hash IS
    'SHA-256 of the token of the sign-in, of console_token or of the settings.';
COMMENT ON COLUMN console_session.opened_at IS 'When the sign-in was.';
COMMENT ON COLUMN console_session.used_at IS 'When a person last used it, to the minute.';

-- Two more actions are recorded, beside those that are allowed already.
DO $$
DECLARE
    known text;
BEGIN
    SELECT string_agg(DISTINCT quote_literal(code), ', ') INTO known FROM (
        SELECT found.code[1] AS code FROM pg_constraint c,
            regexp_matches(pg_get_constraintdef(c.oid), '''([a-z_]+)''', 'g') AS found (code)
        WHERE c.conrelid = 'operator_action'::regclass AND c.conname = 'operator_action_action_check'
        UNION SELECT unnest(ARRAY['users', 'tokens'])) AS codes;
    ALTER TABLE operator_action DROP CONSTRAINT operator_action_action_check;
    EXECUTE 'ALTER TABLE operator_action ADD CONSTRAINT operator_action_action_check
        CHECK (action IN (' || known || ')) NOT VALID';
END
$$;
COMMENT ON COLUMN operator_action.before IS 'The state before; of users also the rights that were set.';

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT, INSERT (name, role, tenant, highest_priority, made_by),
            UPDATE (role, tenant, highest_priority, ended_at) ON console_user TO docmill_operator;
        GRANT SELECT, INSERT (user_name, label, sha256, made_by, expires_at),
            UPDATE (last_used_at, revoked_at, revoked_by) ON console_token TO docmill_operator;
        GRANT SELECT, INSERT (id_hash, token_hash), DELETE, UPDATE (used_at)
            ON console_session TO docmill_operator;
    END IF;
    -- Sessions are nobody's to read; without the right to keep them a process has its own.
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON console_user, console_token TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON console_user, console_token, console_session TO docmill_migrator;
    END IF;
END
$$;
