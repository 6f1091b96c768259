-- Documents drawn for a look, and the level of certainty that follows from the decisions. The release
-- before knows none of it: it draws nothing and flags nothing for a level, and its decisions count.

-- No function below reads a caller's own temporary table of the same name.
DO $$
BEGIN
    PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
END
$$;

CREATE TABLE draw_key (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    secret bytea NOT NULL
);
INSERT INTO draw_key (secret)
VALUES (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
COMMENT ON TABLE draw_key IS
    'The secret that draws are hashed with: a producer that chooses ids cannot choose which are drawn.';
COMMENT ON COLUMN draw_key.one IS 'There is one row.';
COMMENT ON COLUMN draw_key.secret IS '32 bytes; never changed, so that draws can be repeated.';

CREATE TABLE drawn_document (
    ingestion_id uuid PRIMARY KEY REFERENCES ingestion (id) ON DELETE CASCADE,
    number bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    document_id uuid NOT NULL,
    tenant text NOT NULL,
    kind text NOT NULL,
    reader text NOT NULL,
    certainty real NOT NULL CHECK (certainty BETWEEN 0 AND 1),
    drawn_at timestamptz NOT NULL,
    revision bigint,
    decided_at timestamptz,
    rejected boolean,
    changed text[],
    CONSTRAINT drawn_document_decided_whole CHECK ((revision IS NULL) = (decided_at IS NULL)
        AND (revision IS NULL) = (rejected IS NULL) AND (revision IS NULL) = (changed IS NULL))
);
CREATE INDEX drawn_document_of_reader ON drawn_document (kind, tenant, reader, drawn_at);
CREATE INDEX drawn_document_by_document ON drawn_document (document_id);
COMMENT ON TABLE drawn_document IS
    'Unflagged documents that were drawn for a look, and what was decided; nothing that a document says.';
COMMENT ON COLUMN drawn_document.ingestion_id IS 'The completed ingestion.';
COMMENT ON COLUMN drawn_document.number IS 'Order of the draws.';
COMMENT ON COLUMN drawn_document.document_id IS 'Its document.';
COMMENT ON COLUMN drawn_document.tenant IS 'On whose behalf; empty: nobody in particular.';
COMMENT ON COLUMN drawn_document.kind IS 'Its kind.';
COMMENT ON COLUMN drawn_document.reader IS 'Its reader: einvoice, rules, or llm: and the model.';
COMMENT ON COLUMN drawn_document.certainty IS
    'The lesser of the gate''s score and the least certainty of a field, 0 to 1.';
COMMENT ON COLUMN drawn_document.drawn_at IS 'When it was drawn.';
COMMENT ON COLUMN drawn_document.revision IS
    'The newest decision that holds: document_revision.id; null: there is none.';
COMMENT ON COLUMN drawn_document.decided_at IS 'From when the decision cannot be undone.';
COMMENT ON COLUMN drawn_document.rejected IS 'It was no document to be recorded.';
COMMENT ON COLUMN drawn_document.changed IS
    'Names of the fields whose values are others after the decision.';

CREATE TABLE certainty_level (
    tenant text NOT NULL,
    kind text NOT NULL,
    reader text NOT NULL,
    one_in int NOT NULL CHECK (one_in > 1),
    state text NOT NULL DEFAULT 'unproven',
    level real NOT NULL DEFAULT 0 CHECK (level BETWEEN 0 AND 1),
    evidence_after bigint NOT NULL DEFAULT 0,
    since timestamptz NOT NULL DEFAULT docmill_now(),
    judged_at timestamptz NOT NULL DEFAULT docmill_now(),
    alarms int NOT NULL DEFAULT 0,
    due boolean NOT NULL DEFAULT true,
    PRIMARY KEY (tenant, kind, reader),
    CONSTRAINT certainty_level_state_is_known CHECK (state IN ('unproven', 'shown', 'broken'))
);
COMMENT ON TABLE certainty_level IS
    'The level below which unflagged documents are flagged, by tenant, kind and reader.';
COMMENT ON COLUMN certainty_level.tenant IS 'The tenant; empty: nobody in particular.';
COMMENT ON COLUMN certainty_level.kind IS 'The kind.';
COMMENT ON COLUMN certainty_level.reader IS 'The reader, as in drawn_document.';
COMMENT ON COLUMN certainty_level.one_in IS 'The bound: at most 1 in so many is wrong.';
COMMENT ON COLUMN certainty_level.state IS
    'unproven: too few decisions; shown: they show the bound; broken: everything is flagged.';
COMMENT ON COLUMN certainty_level.level IS 'What is less certain is flagged; 1: everything is.';
COMMENT ON COLUMN certainty_level.evidence_after IS
    'Draws up to this number count no more: an alarm was given.';
COMMENT ON COLUMN certainty_level.since IS 'Since when state and level are as they are.';
COMMENT ON COLUMN certainty_level.judged_at IS 'When they were judged last.';
COMMENT ON COLUMN certainty_level.alarms IS 'How often the bound was found broken.';

CREATE INDEX certainty_level_due ON certainty_level (judged_at) WHERE due;
COMMENT ON COLUMN certainty_level.due IS 'A decision came since it was judged.';

-- Carries the decision that holds into the draws of its document, by pages and command line alike.
CREATE FUNCTION note_look() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT
AS $$
BEGIN
    UPDATE drawn_document x SET
        revision = held.id, decided_at = held.decided_at, rejected = held.rejected,
        changed = held.changed
    FROM drawn_document own
    JOIN ingestion i ON i.id = own.ingestion_id
    LEFT JOIN LATERAL (
        SELECT r.id, COALESCE(r.undo_until, r.decided_at) AS decided_at,
            r.decision = 'rejected' AS rejected,
            ARRAY(SELECT COALESCE(b.key, a.key) COLLATE "C"
                FROM jsonb_each(CASE jsonb_typeof(i.structured_data)
                    WHEN 'object' THEN i.structured_data ELSE '{}' END) AS b
                FULL JOIN jsonb_each(CASE jsonb_typeof(r.data_after)
                    WHEN 'object' THEN r.data_after ELSE '{}' END) AS a ON a.key = b.key
                WHERE COALESCE(a.value, 'null') <> COALESCE(b.value, 'null') ORDER BY 1) AS changed
        FROM document_revision r
        WHERE r.document_id = NEW.document_id AND r.decided_at >= own.drawn_at
          AND NOT r.awaits_second AND r.undoes IS NULL
          AND NOT EXISTS (SELECT 1 FROM document_revision u
            WHERE u.document_id = NEW.document_id AND u.undoes = r.id)
        ORDER BY r.id DESC LIMIT 1
    ) AS held ON true
    WHERE own.document_id = NEW.document_id AND x.ingestion_id = own.ingestion_id;
    UPDATE certainty_level l SET due = true
    FROM drawn_document own
    WHERE own.document_id = NEW.document_id AND NOT l.due
      AND l.tenant = own.tenant AND l.kind = own.kind AND l.reader = own.reader;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION note_look() IS
    'Carries a decision into the draws of its document; see docs/explanation/assurance.md.';
REVOKE ALL ON FUNCTION note_look() FROM PUBLIC;
CREATE TRIGGER note_look AFTER INSERT ON document_revision
    FOR EACH ROW EXECUTE FUNCTION note_look();

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT ON draw_key TO docmill_worker;
        GRANT SELECT, INSERT ON drawn_document TO docmill_worker;
        GRANT SELECT, INSERT, UPDATE ON certainty_level TO docmill_worker;
    END IF;
    -- Reviewers decide through this role: it does not read which documents were drawn.
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT (tenant, kind, reader, certainty, number, drawn_at, decided_at,
            rejected, changed) ON drawn_document TO docmill_operator;
        GRANT SELECT ON certainty_level TO docmill_operator;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON certainty_level TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON draw_key, drawn_document, certainty_level TO docmill_migrator;
    END IF;
END
$$;
