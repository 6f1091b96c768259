-- Reviewers beside each other: who has a document open, decisions that can be undone for a moment, and
-- those that wait for a second person.

CREATE TABLE review_lease (
    document_id uuid PRIMARY KEY REFERENCES document (id) ON DELETE CASCADE,
    reviewer text NOT NULL CHECK (reviewer <> ''),
    page uuid NOT NULL,
    taken_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE review_lease IS
    'Who has a document open to decide about it; gone with the decision, worth nothing after expires_at.';
COMMENT ON COLUMN review_lease.document_id IS 'The document.';
COMMENT ON COLUMN review_lease.reviewer IS 'Who, as document_revision writes it.';
COMMENT ON COLUMN review_lease.page IS
    'The page that was opened last: one that was left before gives nothing back.';
COMMENT ON COLUMN review_lease.taken_at IS 'Since when.';
COMMENT ON COLUMN review_lease.expires_at IS 'Until when, if it is not renewed.';

ALTER TABLE document_revision
    ADD COLUMN awaits_second boolean NOT NULL DEFAULT false,
    ADD COLUMN first_by text,
    ADD COLUMN awaiting_before bigint,
    ADD COLUMN undoes bigint,
    ADD COLUMN undo_until timestamptz,
    ADD COLUMN version_after timestamptz,
    ADD COLUMN needed_before boolean,
    ADD COLUMN corrected_at_before timestamptz,
    ADD COLUMN corrected_by_before text;
ALTER TABLE document_revision DROP CONSTRAINT document_revision_decision_check;
ALTER TABLE document_revision ADD CONSTRAINT document_revision_decision_check
    CHECK (decision IN ('accepted', 'corrected', 'rejected', 'undone'));
ALTER TABLE document_revision DROP CONSTRAINT document_revision_check;
ALTER TABLE document_revision ADD CONSTRAINT document_revision_check
    CHECK (decision IN ('rejected', 'undone') OR data_after IS NOT NULL);
ALTER TABLE document_revision ADD CONSTRAINT document_revision_undoes_check
    CHECK ((decision = 'undone') = (undoes IS NOT NULL));
ALTER TABLE document_revision ADD CONSTRAINT document_revision_first_check
    CHECK (NOT awaits_second OR (first_by IS NULL AND decision IN ('accepted', 'corrected')));
-- Whoever signs in to the pages is `web:` and a name, on the command line the name alone.
ALTER TABLE document_revision ADD CONSTRAINT document_revision_second_check
    CHECK (lower(regexp_replace(first_by, '^web:', '')) <> lower(regexp_replace(reviewer, '^web:', '')));

COMMENT ON COLUMN document_revision.decision IS
    'accepted: the data is right as it is; corrected: data_after is right; rejected: it is no document to be recorded; undone: the decision `undoes` does not hold.';
COMMENT ON COLUMN document_revision.data_after IS
    'What it carries from then on; of a decision that waits for a second person: what it would carry.';
COMMENT ON COLUMN document_revision.awaits_second IS
    'It holds only once a second person has said the same.';
COMMENT ON COLUMN document_revision.first_by IS
    'Of a decision by a second person: who was the first.';
COMMENT ON COLUMN document_revision.awaiting_before IS
    'The decision that waited for a second person when this one was made.';
COMMENT ON COLUMN document_revision.undoes IS 'The decision that is undone by this one.';
COMMENT ON COLUMN document_revision.undo_until IS
    'Until when its reviewer can undo it; nobody else is told of it before.';
COMMENT ON COLUMN document_revision.version_after IS
    'document.updated_at as it left it: something else happened since if that is another.';
COMMENT ON COLUMN document_revision.needed_before IS 'Whether the document called for review.';
COMMENT ON COLUMN document_revision.corrected_at_before IS 'document.corrected_at before.';
COMMENT ON COLUMN document_revision.corrected_by_before IS 'document.corrected_by before.';

ALTER TABLE webhook_delivery ADD COLUMN not_before timestamptz;
COMMENT ON COLUMN webhook_delivery.not_before IS
    'Of a decision that can still be undone: it is not sent before.';

-- Temporary tables come before every schema that the path does not put them behind.
DO $$
BEGIN
    PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
END
$$;

-- A decision is told when it can be undone no more; one that is undone before is told to nobody. What
-- waits for a second person is no decision yet.
CREATE OR REPLACE FUNCTION write_webhook_of_decision() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    now timestamptz := docmill_now();
    undone record;
    told text;
BEGIN
    IF NEW.decision = 'undone' THEN
        PERFORM 1 FROM document d WHERE d.id = NEW.document_id FOR NO KEY UPDATE;
        SELECT r.id, r.reviewer, r.undo_until INTO undone FROM document_revision r
        WHERE r.id = NEW.undoes AND r.document_id = NEW.document_id AND r.decision <> 'undone';
        IF NOT FOUND OR undone.undo_until IS NULL OR undone.undo_until <= now THEN
            RAISE EXCEPTION 'this decision cannot be undone any more' USING ERRCODE = 'DM001';
        END IF;
        DELETE FROM webhook_delivery w
        WHERE w.document_id = NEW.document_id AND w.revision_id = undone.id AND w.tries = 0;
        -- A moment ago, between the look at the clock and here.
        IF EXISTS (SELECT 1 FROM webhook_delivery w
            WHERE w.document_id = NEW.document_id AND w.revision_id = undone.id)
        THEN
            RAISE EXCEPTION 'this decision was told already' USING ERRCODE = 'DM001';
        END IF;
        FOR told IN SELECT DISTINCT w.target FROM webhook_delivery w
            WHERE w.document_id = NEW.document_id AND w.state = 'waiting'
        LOOP
            PERFORM wake_webhook_delivery(NEW.document_id, told);
        END LOOP;
    ELSIF NOT NEW.awaits_second AND EXISTS (SELECT 1 FROM webhook_target) THEN
        PERFORM write_webhook_event('document.' || NEW.decision, NEW.document_id, NEW.ingestion_id,
            NEW.id, jsonb_build_object('needs_human_review', false, 'review_reasons', '[]'::jsonb));
        IF NEW.undo_until > now THEN
            UPDATE webhook_delivery w SET
                not_before = NEW.undo_until,
                due_at = CASE WHEN w.state = 'due' THEN NEW.undo_until END
            WHERE w.document_id = NEW.document_id AND w.revision_id = NEW.id;
        END IF;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION write_webhook_of_decision() IS
    'Tells of a decision about a document, once it can be undone no more.';

CREATE OR REPLACE FUNCTION wake_webhook_delivery(of_document uuid, of_target text) RETURNS void
LANGUAGE sql SET search_path FROM CURRENT
AS $$
    UPDATE webhook_delivery SET state = 'due', due_at = GREATEST(docmill_now(), not_before)
    WHERE state = 'waiting' AND id = (
        SELECT w.id FROM webhook_delivery w
        WHERE w.document_id = of_document AND w.target = of_target AND w.state IN ('due', 'waiting')
        ORDER BY w.document_id, w.target, w.id LIMIT 1)
$$;

CREATE OR REPLACE FUNCTION replay_webhook_delivery(delivery bigint) RETURNS boolean
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
        state = s.state, due_at = CASE WHEN s.state = 'due' THEN GREATEST(now, w.not_before) END,
        open_since = now, ended_at = NULL, lease_token = NULL
    FROM (SELECT CASE WHEN EXISTS (
            SELECT 1 FROM webhook_delivery o
            WHERE o.document_id = held.document_id AND o.target = held.target AND o.id < delivery
              AND o.state IN ('due', 'waiting')) THEN 'waiting' ELSE 'due' END AS state) AS s
    WHERE w.id = delivery AND (w.lease_token IS NULL OR w.due_at <= now)
    RETURNING true INTO replayed;
    RETURN COALESCE(replayed, false);
END
$$;

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON review_lease TO docmill_operator;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON review_lease TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON review_lease TO docmill_migrator;
    END IF;
END
$$;
