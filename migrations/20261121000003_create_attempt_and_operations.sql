-- The history of attempts, and the tables of operating.

CREATE TABLE attempt (
    ingestion_id uuid NOT NULL REFERENCES ingestion (id) ON DELETE CASCADE,
    claims bigint NOT NULL,
    token uuid NOT NULL,
    worker text,
    started_at timestamptz,
    ended_at timestamptz NOT NULL DEFAULT docmill_now(),
    stage text,
    outcome text NOT NULL,
    final boolean NOT NULL DEFAULT false,
    counted boolean NOT NULL DEFAULT true,
    next_attempt_at timestamptz,
    model text,
    input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    detail text,
    PRIMARY KEY (ingestion_id, claims),
    CONSTRAINT attempt_outcome_is_known CHECK (outcome IN (
        'completed',
        'corrupt', 'encrypted', 'empty', 'unsupported_type', 'too_large', 'timeout', 'no_text',
        'gate_refused', 'cut', 'model_refused', 'crashed', 'missing', 'internal', 'transient',
        'deferred_too_long', 'superseded', 'cancelled', 'blocked',
        'throttled', 'unavailable', 'rejected', 'interrupted')),
    CONSTRAINT attempt_final_is_counted CHECK (counted OR NOT final)
);
CREATE INDEX attempt_by_end ON attempt USING brin (ended_at);

CREATE TABLE quarantined_message (
    message_id text PRIMARY KEY,
    body text NOT NULL,
    reason text NOT NULL CHECK (reason IN ('malformed', 'unknown_ingestion')),
    receive_count int NOT NULL DEFAULT 1,
    quarantined_at timestamptz NOT NULL DEFAULT docmill_now()
);

CREATE TABLE operator_action (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    done_at timestamptz NOT NULL DEFAULT docmill_now(),
    operator text NOT NULL,
    action text NOT NULL CHECK (action IN
        ('reopen', 'cancel', 'pause', 'resume', 'block', 'unblock', 'reprioritize')),
    target text NOT NULL,
    why text NOT NULL DEFAULT '',
    before jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX operator_action_by_target ON operator_action (target, id);

CREATE TABLE pause (
    scope text NOT NULL CHECK (scope IN ('all', 'kind', 'tenant', 'provider')),
    name text NOT NULL DEFAULT '',
    paused_at timestamptz NOT NULL DEFAULT docmill_now(),
    paused_by text NOT NULL DEFAULT '',
    why text NOT NULL DEFAULT '',
    PRIMARY KEY (scope, name),
    CONSTRAINT pause_all_has_no_name CHECK ((scope = 'all') = (name = ''))
);

CREATE TABLE blocked_content (
    sha256 text PRIMARY KEY CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    blocked_at timestamptz NOT NULL DEFAULT docmill_now(),
    blocked_by text NOT NULL DEFAULT '',
    why text NOT NULL DEFAULT ''
);

CREATE TABLE worker (
    id text PRIMARY KEY,
    started_at timestamptz NOT NULL DEFAULT docmill_now(),
    seen_at timestamptz NOT NULL DEFAULT docmill_now(),
    slots int NOT NULL DEFAULT 0,
    slots_used int NOT NULL DEFAULT 0,
    receipt_sent_at timestamptz,
    receipt_noted_at timestamptz
) WITH (fillfactor = 50);

CREATE TABLE maintenance_lease (
    name text PRIMARY KEY,
    holder text NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 50);
