-- Answers to requests that a program has named (Idempotency-Key), so that the same request is
-- answered the same, and another one under the same name is refused.

CREATE TABLE idempotency_key (
    visitor text NOT NULL,
    key text NOT NULL CHECK (key <> ''),
    fingerprint text NOT NULL,
    answer jsonb NOT NULL,
    kept_at timestamptz NOT NULL DEFAULT docmill_now(),
    PRIMARY KEY (visitor, key)
);
CREATE INDEX idempotency_key_by_age ON idempotency_key (kept_at);
COMMENT ON TABLE idempotency_key IS
    'Answers to requests that programs have named, kept for a day; ids and states, nothing that a document says.';
COMMENT ON COLUMN idempotency_key.visitor IS 'Name of the token (web.tokens).';
COMMENT ON COLUMN idempotency_key.key IS 'The Idempotency-Key of the request.';
COMMENT ON COLUMN idempotency_key.fingerprint IS 'SHA-256 of what was asked for, its content included.';
COMMENT ON COLUMN idempotency_key.answer IS 'The answer.';
COMMENT ON COLUMN idempotency_key.kept_at IS 'When it was given.';

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT, INSERT ON idempotency_key TO docmill_operator;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT, DELETE ON idempotency_key TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON idempotency_key TO docmill_migrator;
    END IF;
END
$$;
