-- Drafts of kinds and their replays over decided documents. The release before knows no such table: its
-- processes neither ask for a replay nor run one.
CREATE TABLE kind_replay (
    id uuid PRIMARY KEY,
    tenant text NOT NULL DEFAULT '' CHECK (char_length(tenant) <= 200),
    kind text NOT NULL CHECK (kind ~ '^[A-Za-z0-9_-]{1,64}$'),
    version text NOT NULL CHECK (version ~ '^[0-9a-f]{64}$'),
    files jsonb NOT NULL
        CHECK (jsonb_typeof(files) = 'object' AND octet_length(files::text) <= 2097152),
    max_documents int NOT NULL CHECK (max_documents BETWEEN 1 AND 10000),
    max_worse double precision NOT NULL CHECK (max_worse >= 0 AND max_worse < 1),
    max_cost_nanos bigint NOT NULL CHECK (max_cost_nanos >= 0),
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    asked_at timestamptz NOT NULL DEFAULT docmill_now(),
    asked_by text NOT NULL CHECK (asked_by <> ''),
    worker text,
    lease_until timestamptz,
    started_at timestamptz,
    ended_at timestamptz,
    problem text CHECK (char_length(problem) <= 10000),
    report jsonb,
    CONSTRAINT kind_replay_running CHECK ((state = 'running') = (lease_until IS NOT NULL)
        AND (state = 'waiting') = (started_at IS NULL)),
    CONSTRAINT kind_replay_ended CHECK ((state IN ('done', 'failed')) = (ended_at IS NOT NULL)
        AND (state = 'done') = (report IS NOT NULL) AND (state = 'failed') = (problem IS NOT NULL))
);
CREATE INDEX kind_replay_by_kind ON kind_replay (kind, asked_at DESC);
CREATE INDEX kind_replay_open ON kind_replay (asked_at) WHERE state IN ('waiting', 'running');
COMMENT ON TABLE kind_replay IS
    'Drafts of kinds, each with its replay over decided documents; of a tenant and kind the newest ten.';
COMMENT ON COLUMN kind_replay.id IS 'Its id.';
COMMENT ON COLUMN kind_replay.tenant IS
    'Whose draft, and whose documents are replayed; empty: of all tenants.';
COMMENT ON COLUMN kind_replay.kind IS 'Name of the kind.';
COMMENT ON COLUMN kind_replay.version IS 'SHA-256 over the files, as ingestion_identity has it of a kind.';
COMMENT ON COLUMN kind_replay.files IS 'The files of the kind, by their paths within its folder.';
COMMENT ON COLUMN kind_replay.max_documents IS 'At most so many documents, the newest decisions first.';
COMMENT ON COLUMN kind_replay.max_worse IS
    'The gate: at most this share of documents gets worse, with a certainty of 95 %.';
COMMENT ON COLUMN kind_replay.max_cost_nanos IS
    'No further document is begun once so much is spent, in billionths of cost.currency.';
COMMENT ON COLUMN kind_replay.state IS 'waiting, running, done or failed.';
COMMENT ON COLUMN kind_replay.asked_at IS 'When it was asked for.';
COMMENT ON COLUMN kind_replay.asked_by IS 'By whom.';
COMMENT ON COLUMN kind_replay.worker IS 'The worker that runs it, or ran it.';
COMMENT ON COLUMN kind_replay.lease_until IS 'Until when that worker is waited for; null: it does not run.';
COMMENT ON COLUMN kind_replay.started_at IS 'When a worker began it.';
COMMENT ON COLUMN kind_replay.ended_at IS 'When it ended.';
COMMENT ON COLUMN kind_replay.problem IS 'Why it failed.';
COMMENT ON COLUMN kind_replay.report IS
    'The result, as docmill replay --json prints it: ids of documents and names of fields, no values.';

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT ON kind_replay TO docmill_worker;
        GRANT UPDATE (state, worker, lease_until, started_at, ended_at, problem, report)
            ON kind_replay TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT, INSERT, DELETE ON kind_replay TO docmill_operator;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON kind_replay TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON kind_replay TO docmill_migrator;
    END IF;
END
$$;

-- One more action is recorded, beside those that are allowed already.
DO $$
DECLARE
    known text;
BEGIN
    SELECT string_agg(DISTINCT quote_literal(code), ', ') INTO known FROM (
        SELECT found.code[1] AS code FROM pg_constraint c,
            regexp_matches(pg_get_constraintdef(c.oid), '''([a-z_]+)''', 'g') AS found (code)
        WHERE c.conrelid = 'operator_action'::regclass AND c.conname = 'operator_action_action_check'
        UNION SELECT unnest(ARRAY['replay_kind'])) AS codes;
    ALTER TABLE operator_action DROP CONSTRAINT operator_action_action_check;
    EXECUTE 'ALTER TABLE operator_action ADD CONSTRAINT operator_action_action_check
        CHECK (action IN (' || known || ')) NOT VALID';
END
$$;
