-- The outbox: what others are told of, written in the transaction in which it became true, so that
-- nothing that is recorded can fail to be told, and nothing is told that was not recorded.
--
-- Rows are written by a trigger with its owner's rights: nobody else adds any. Whom to tell stands in
-- webhook_target, where those processes that deliver register the targets of their settings.
--
-- Of one document a target is told in order: a row is `due` only if no older one of the same document
-- and target is open; else it is `waiting`, and whoever ends the older one makes it due. Both do so
-- under the lock of the document's row, so that neither misses the other.

CREATE TABLE webhook_target (
    name text PRIMARY KEY CHECK (name <> ''),
    place text NOT NULL,
    url_hash text NOT NULL,
    events text[] NOT NULL DEFAULT '{}',
    tenant text NOT NULL DEFAULT '',
    registered_at timestamptz NOT NULL DEFAULT docmill_now(),
    seen_at timestamptz NOT NULL DEFAULT docmill_now(),
    disabled_at timestamptz,
    disabled_why text NOT NULL DEFAULT ''
);
COMMENT ON TABLE webhook_target IS
    'Who is told of outcomes and decisions (webhooks.targets), as those who deliver have registered them.';
COMMENT ON COLUMN webhook_target.name IS 'Name in the settings.';
COMMENT ON COLUMN webhook_target.place IS 'Scheme, host and port; neither path nor query, which may be secret.';
COMMENT ON COLUMN webhook_target.url_hash IS 'SHA-256 of the whole address: another address is another chance.';
COMMENT ON COLUMN webhook_target.events IS 'What it is told of; empty: everything.';
COMMENT ON COLUMN webhook_target.tenant IS 'Whose documents alone it is told of; empty: all.';
COMMENT ON COLUMN webhook_target.registered_at IS 'Since when it is told.';
COMMENT ON COLUMN webhook_target.seen_at IS 'When a process that delivers had it in its settings last.';
COMMENT ON COLUMN webhook_target.disabled_at IS 'Since when nothing is sent to it: it has said 410 Gone.';
COMMENT ON COLUMN webhook_target.disabled_why IS 'Why nothing is sent to it.';

CREATE SEQUENCE webhook_event_number;
COMMENT ON SEQUENCE webhook_event_number IS 'Rises from event to event of one document.';

CREATE TABLE webhook_delivery (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    target text NOT NULL,
    document_id uuid NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    ingestion_id uuid,
    revision_id bigint,
    event text NOT NULL,
    event_id uuid NOT NULL,
    event_number bigint NOT NULL,
    occurred_at timestamptz NOT NULL,
    facts jsonb NOT NULL,
    state text NOT NULL CHECK (state IN ('due', 'waiting', 'delivered', 'dead')),
    due_at timestamptz,
    open_since timestamptz NOT NULL,
    lease_token uuid,
    tries int NOT NULL DEFAULT 0,
    last_tried_at timestamptz,
    last_status int,
    last_problem text,
    ended_at timestamptz,
    CHECK ((state = 'due') = (due_at IS NOT NULL)),
    CHECK ((state IN ('delivered', 'dead')) = (ended_at IS NOT NULL))
);
CREATE INDEX webhook_delivery_due ON webhook_delivery (target, due_at, id) WHERE state = 'due';
CREATE INDEX webhook_delivery_open ON webhook_delivery (target, open_since, id)
    WHERE state IN ('due', 'waiting');
CREATE INDEX webhook_delivery_dead ON webhook_delivery (target, ended_at, id) WHERE state = 'dead';
CREATE INDEX webhook_delivery_ended ON webhook_delivery (ended_at) WHERE ended_at IS NOT NULL;
-- Not partial: a document that is erased takes its rows along, ended ones too.
CREATE INDEX webhook_delivery_by_document ON webhook_delivery (document_id, target, id);

COMMENT ON TABLE webhook_delivery IS
    'The outbox of webhooks: one row for each event and target, in the order of events.';
COMMENT ON COLUMN webhook_delivery.id IS 'Order of what one target is told of one document.';
COMMENT ON COLUMN webhook_delivery.target IS 'webhook_target.name.';
COMMENT ON COLUMN webhook_delivery.document_id IS 'The document; erased with it.';
COMMENT ON COLUMN webhook_delivery.ingestion_id IS 'The ingestion that ended, or the newest one when a person decided.';
COMMENT ON COLUMN webhook_delivery.revision_id IS 'The decision (document_revision), if it is about one.';
COMMENT ON COLUMN webhook_delivery.event IS 'What happened, e.g. document.completed.';
COMMENT ON COLUMN webhook_delivery.event_id IS 'webhook-id: the same at every try and for every target.';
COMMENT ON COLUMN webhook_delivery.event_number IS 'Rises from event to event of one document.';
COMMENT ON COLUMN webhook_delivery.occurred_at IS 'When it happened.';
COMMENT ON COLUMN webhook_delivery.facts IS 'What is told: ids, outcome, kind; nothing that a document says.';
COMMENT ON COLUMN webhook_delivery.state IS
    'due; waiting: an older one of this document and target is open; delivered; dead: given up.';
COMMENT ON COLUMN webhook_delivery.due_at IS 'When it is tried next; while it is being sent, when its lease ends.';
COMMENT ON COLUMN webhook_delivery.open_since IS 'From when the time counts after which it is given up.';
COMMENT ON COLUMN webhook_delivery.lease_token IS 'Who sends it now; only that one may say how it ended.';
COMMENT ON COLUMN webhook_delivery.tries IS 'Tries that were begun.';
COMMENT ON COLUMN webhook_delivery.last_tried_at IS 'When the last one was begun.';
COMMENT ON COLUMN webhook_delivery.last_status IS 'HTTP status of the last answer.';
COMMENT ON COLUMN webhook_delivery.last_problem IS 'Why the last try failed; never what the target said.';
COMMENT ON COLUMN webhook_delivery.ended_at IS 'When it was delivered or given up.';

ALTER TABLE operator_action DROP CONSTRAINT IF EXISTS operator_action_action_check;
ALTER TABLE operator_action ADD CONSTRAINT operator_action_action_check CHECK (action IN
    ('reopen', 'cancel', 'pause', 'resume', 'block', 'unblock', 'reprioritize', 'erase', 'retain',
     'replay', 'enable'));

-- Temporary tables come before every schema that the path does not put them behind.
DO $$
BEGIN
    PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
END
$$;

CREATE FUNCTION write_webhook_event(
    told text, of_document uuid, of_ingestion uuid, of_revision bigint, more jsonb
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    now timestamptz := docmill_now();
    owner text;
    number bigint;
    event uuid := gen_random_uuid();
    known jsonb;
BEGIN
    -- A statement of its own: the next ones see what was committed while this one waited.
    PERFORM 1 FROM document d WHERE d.id = of_document FOR NO KEY UPDATE;
    SELECT COALESCE(d.tenant, i.tenant), jsonb_build_object('document_id', d.id,
        'ingestion_id', i.id, 'tenant', COALESCE(d.tenant, i.tenant), 'kind', i.kind,
        'status', i.status, 'reason', i.reason, 'needs_human_review', d.needs_human_review,
        'review_reasons', d.review_reasons)
    INTO owner, known
    FROM document d LEFT JOIN ingestion i ON i.id = of_ingestion
    WHERE d.id = of_document;
    IF known IS NULL THEN
        RETURN;
    END IF;
    number := nextval('webhook_event_number');
    INSERT INTO webhook_delivery (target, document_id, ingestion_id, revision_id, event, event_id,
        event_number, occurred_at, facts, state, due_at, open_since)
    SELECT t.name, of_document, of_ingestion, of_revision, told, event, number, now, known || more,
        CASE WHEN o.older THEN 'waiting' ELSE 'due' END, CASE WHEN o.older THEN NULL ELSE now END, now
    FROM webhook_target t
    CROSS JOIN LATERAL (SELECT EXISTS (
        SELECT 1 FROM webhook_delivery e WHERE e.document_id = of_document AND e.target = t.name
          AND e.state IN ('due', 'waiting')) AS older) AS o
    WHERE (t.events = '{}' OR told = ANY (t.events)) AND (t.tenant = '' OR t.tenant = owner)
      -- One that has been in nobody's settings for so long is not coming back.
      AND t.seen_at > now - interval '30 days'
    ORDER BY t.name;
END
$$;
REVOKE ALL ON FUNCTION write_webhook_event(text, uuid, uuid, bigint, jsonb) FROM PUBLIC;
COMMENT ON FUNCTION write_webhook_event(text, uuid, uuid, bigint, jsonb) IS
    'Writes an event of a document for every target that wants it.';

CREATE FUNCTION write_webhook_of_end() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM webhook_target) THEN
        RETURN NULL;
    END IF;
    PERFORM write_webhook_event('document.' || NEW.status, NEW.document_id, NEW.id, NULL, '{}');
    IF EXISTS (SELECT 1 FROM document d WHERE d.id = NEW.document_id AND d.needs_human_review) THEN
        PERFORM write_webhook_event('document.review_needed', NEW.document_id, NEW.id, NULL, '{}');
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION write_webhook_of_end() IS 'Tells of the end of an ingestion.';

-- Named so that it comes after update_document_from_ingestion: triggers run in the order of names.
CREATE TRIGGER write_webhook_of_end
    AFTER UPDATE OF status ON ingestion
    FOR EACH ROW
    WHEN (OLD.status IS DISTINCT FROM NEW.status
        AND NEW.status IN ('completed', 'failed', 'cancelled'))
    EXECUTE FUNCTION write_webhook_of_end();

CREATE FUNCTION write_webhook_of_decision() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM webhook_target) THEN
        PERFORM write_webhook_event('document.' || NEW.decision, NEW.document_id, NEW.ingestion_id,
            NEW.id, jsonb_build_object('needs_human_review', false, 'review_reasons', '[]'::jsonb));
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION write_webhook_of_decision() IS 'Tells of a decision about a document.';

CREATE TRIGGER write_webhook_of_decision
    AFTER INSERT ON document_revision
    FOR EACH ROW EXECUTE FUNCTION write_webhook_of_decision();

-- How a try ended. `wait`: until the next one; what would then be older than `most` is dead. Returns
-- the state from now on; NULL if the lease was lost, and nothing is written.
CREATE FUNCTION settle_webhook_delivery(
    delivery bigint, token uuid, done boolean, wait interval, most interval, answer int, problem text
) RETURNS text
LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
    now timestamptz := docmill_now();
    held record;
    settled text;
BEGIN
    SELECT w.document_id, w.target INTO held FROM webhook_delivery w
    WHERE w.id = delivery AND w.lease_token = token;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM 1 FROM document d WHERE d.id = held.document_id FOR NO KEY UPDATE;
    UPDATE webhook_delivery w SET
        state = s.state, lease_token = NULL, last_status = answer, last_problem = problem,
        due_at = CASE WHEN s.state = 'due' THEN now + wait END,
        ended_at = CASE WHEN s.state <> 'due' THEN now END
    FROM (SELECT CASE WHEN done THEN 'delivered' WHEN o.open_since + most < now + wait THEN 'dead'
            ELSE 'due' END AS state FROM webhook_delivery o WHERE o.id = delivery) AS s
    WHERE w.id = delivery AND w.lease_token = token
    RETURNING w.state INTO settled;
    IF settled IN ('delivered', 'dead') THEN
        PERFORM wake_webhook_delivery(held.document_id, held.target);
    END IF;
    RETURN settled;
END
$$;
COMMENT ON FUNCTION settle_webhook_delivery(bigint, uuid, boolean, interval, interval, int, text) IS
    'Writes down how a try to deliver ended, and makes the next of the document due.';

CREATE FUNCTION wake_webhook_delivery(of_document uuid, of_target text) RETURNS void
LANGUAGE sql SET search_path FROM CURRENT
AS $$
    UPDATE webhook_delivery SET state = 'due', due_at = docmill_now()
    WHERE state = 'waiting' AND id = (
        SELECT w.id FROM webhook_delivery w
        WHERE w.document_id = of_document AND w.target = of_target AND w.state IN ('due', 'waiting')
        ORDER BY w.document_id, w.target, w.id LIMIT 1)
$$;
COMMENT ON FUNCTION wake_webhook_delivery(uuid, text) IS
    'Makes the oldest open row of a document and target due. The document''s row is locked.';

-- Once more, whether it was delivered or given up; what waits for its next try is tried at once.
CREATE FUNCTION replay_webhook_delivery(delivery bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
    now timestamptz := docmill_now();
    held record;
    replayed boolean;
BEGIN
    SELECT w.document_id, w.target INTO held FROM webhook_delivery w WHERE w.id = delivery;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM 1 FROM document d WHERE d.id = held.document_id FOR NO KEY UPDATE;
    UPDATE webhook_delivery w SET
        state = s.state, due_at = CASE WHEN s.state = 'due' THEN now END, open_since = now,
        ended_at = NULL, lease_token = NULL
    FROM (SELECT CASE WHEN EXISTS (
            SELECT 1 FROM webhook_delivery o
            WHERE o.document_id = held.document_id AND o.target = held.target AND o.id < delivery
              AND o.state IN ('due', 'waiting')) THEN 'waiting' ELSE 'due' END AS state) AS s
    WHERE w.id = delivery AND (w.lease_token IS NULL OR w.due_at <= now)
    RETURNING true INTO replayed;
    RETURN COALESCE(replayed, false);
END
$$;
COMMENT ON FUNCTION replay_webhook_delivery(bigint) IS
    'Makes a delivery open again; false if it is gone or is being sent now.';

-- Gives up what nobody sends.
CREATE FUNCTION give_up_webhook_delivery(delivery bigint, problem text) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
    now timestamptz := docmill_now();
    held record;
BEGIN
    SELECT w.document_id, w.target INTO held FROM webhook_delivery w WHERE w.id = delivery;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM 1 FROM document d WHERE d.id = held.document_id FOR NO KEY UPDATE;
    UPDATE webhook_delivery w SET
        state = 'dead', due_at = NULL, ended_at = now, lease_token = NULL, last_problem = problem
    WHERE w.id = delivery AND w.state IN ('due', 'waiting')
      AND (w.lease_token IS NULL OR w.due_at <= now);
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM wake_webhook_delivery(held.document_id, held.target);
    RETURN true;
END
$$;
COMMENT ON FUNCTION give_up_webhook_delivery(bigint, text) IS
    'Ends a delivery as dead and makes the next of the document due; false if it is being sent now.';

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_target TO docmill_worker;
        GRANT SELECT, DELETE, UPDATE (state, due_at, open_since, lease_token, tries, last_tried_at,
            last_status, last_problem, ended_at) ON webhook_delivery TO docmill_worker;
        GRANT SELECT ON document_revision TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT, INSERT, UPDATE ON webhook_target TO docmill_operator;
        GRANT SELECT, UPDATE (state, due_at, open_since, lease_token, tries, last_tried_at,
            last_status, last_problem, ended_at) ON webhook_delivery TO docmill_operator;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON webhook_target, webhook_delivery TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON webhook_target, webhook_delivery TO docmill_migrator;
        GRANT ALL ON SEQUENCE webhook_event_number TO docmill_migrator;
    END IF;
END
$$;
