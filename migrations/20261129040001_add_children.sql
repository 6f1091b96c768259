-- Documents found in others: attachments of a mail, members of an archive, parts of a file. Each is a
-- document with an ingestion of its own. The release before works on them as on any other document; it
-- makes none. There are no foreign keys: an erasure removes a family's rows in any order.

-- As in the baseline: no function reads a caller's own temporary table of the same name.
DO $$
BEGIN
    PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
END
$$;

ALTER TABLE document
    ADD COLUMN parent_id uuid,
    ADD COLUMN root_id uuid,
    ADD COLUMN position int,
    ADD COLUMN depth int NOT NULL DEFAULT 0,
    ADD COLUMN first_page int,
    ADD COLUMN last_page int;
ALTER TABLE ingestion
    ADD COLUMN parent_id uuid,
    ADD COLUMN root_id uuid,
    ADD COLUMN position int,
    ADD COLUMN children int;

ALTER TABLE document
    ADD CONSTRAINT document_child_has_a_place CHECK ((parent_id IS NULL) = (root_id IS NULL)
        AND (parent_id IS NULL) = (position IS NULL) AND (parent_id IS NULL) = (depth = 0)
        AND position >= 0) NOT VALID,
    ADD CONSTRAINT document_pages_are_a_range
        CHECK ((first_page IS NULL) = (last_page IS NULL) AND first_page >= 1
            AND last_page >= first_page AND (first_page IS NULL OR parent_id IS NOT NULL)) NOT VALID;
ALTER TABLE ingestion
    ADD CONSTRAINT ingestion_child_has_a_place CHECK ((parent_id IS NULL) = (root_id IS NULL)
        AND (parent_id IS NULL) = (position IS NULL) AND position >= 0) NOT VALID,
    ADD CONSTRAINT ingestion_children_are_counted CHECK (children > 0) NOT VALID;

COMMENT ON COLUMN document.parent_id IS 'The document that it was found in; null: it was handed in itself.';
COMMENT ON COLUMN document.root_id IS
    'Of a child: the document at the top, which was handed in itself.';
COMMENT ON COLUMN document.position IS 'Of a child: its place among its parent''s children, from 0.';
COMMENT ON COLUMN document.depth IS 'How many documents it lies in.';
COMMENT ON COLUMN document.first_page IS
    'Of a child cut out of its parent: its first page there, from 1.';
COMMENT ON COLUMN document.last_page IS 'Of a child cut out of its parent: its last page there.';
COMMENT ON COLUMN ingestion.parent_id IS
    'The ingestion that found its document; null: it was handed in itself.';
COMMENT ON COLUMN ingestion.root_id IS 'Of a child: the ingestion at the top of its family.';
COMMENT ON COLUMN ingestion.position IS 'Of a child: its place among its parent''s children, from 0.';
COMMENT ON COLUMN ingestion.children IS
    'How many documents it has found in its own; null: none.';

-- One message for a whole family, once nothing of it is in progress. Its members end under the lock of
-- the topmost document's row: of two that end at the same moment the second sees the first.
CREATE FUNCTION write_webhook_of_family(root uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    top record;
    counted record;
    told jsonb;
BEGIN
    SELECT i.id, i.document_id INTO top FROM ingestion i WHERE i.id = root;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM 1 FROM document d WHERE d.id = top.document_id FOR NO KEY UPDATE;
    IF EXISTS (SELECT 1 FROM ingestion i WHERE i.id = root AND i.status = 'in-progress')
        OR EXISTS (SELECT 1 FROM ingestion i WHERE i.root_id = root AND i.status = 'in-progress')
    THEN
        RETURN;
    END IF;
    SELECT count(*) AS total, count(*) FILTER (WHERE i.status = 'completed') AS completed,
        count(*) FILTER (WHERE i.status = 'failed') AS failed,
        count(*) FILTER (WHERE i.status = 'cancelled') AS cancelled,
        count(*) FILTER (WHERE d.needs_human_review) AS needing_review
    INTO counted
    FROM ingestion i JOIN document d ON d.id = i.document_id WHERE i.root_id = root;
    told := jsonb_build_object('children', to_jsonb(counted));
    PERFORM write_webhook_event('document.' || i.status, top.document_id, root, NULL, told)
    FROM ingestion i WHERE i.id = root;
    IF counted.needing_review > 0
        OR EXISTS (SELECT 1 FROM document d WHERE d.id = top.document_id AND d.needs_human_review)
    THEN
        PERFORM write_webhook_event('document.review_needed', top.document_id, root, NULL,
            told || '{"needs_human_review": true}');
    END IF;
END
$$;
REVOKE ALL ON FUNCTION write_webhook_of_family(uuid) FROM PUBLIC;
COMMENT ON FUNCTION write_webhook_of_family(uuid) IS
    'Tells of the end of an ingestion and of all that was found in its document, once all have ended.';

CREATE OR REPLACE FUNCTION write_webhook_of_end() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM webhook_target) THEN
        RETURN NULL;
    END IF;
    IF NEW.root_id IS NOT NULL OR NEW.children > 0 THEN
        PERFORM write_webhook_of_family(COALESCE(NEW.root_id, NEW.id));
        RETURN NULL;
    END IF;
    PERFORM write_webhook_event('document.' || NEW.status, NEW.document_id, NEW.id, NULL, '{}');
    IF EXISTS (SELECT 1 FROM document d WHERE d.id = NEW.document_id AND d.needs_human_review) THEN
        PERFORM write_webhook_event('document.review_needed', NEW.document_id, NEW.id, NULL, '{}');
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION write_webhook_of_end() IS
    'Tells of the end of an ingestion; of a family once all of it has ended.';

-- A child is past its retention with its topmost document alone, and that one once its whole family is.
CREATE OR REPLACE FUNCTION doom_expired(documents uuid[]) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    locked uuid[];
    members uuid[];
BEGIN
    -- A statement of its own: the next ones see what was committed before these locks were ours.
    locked := ARRAY(
        SELECT d.id FROM document d WHERE d.id = ANY (documents) AND d.root_id IS NULL ORDER BY d.id
        FOR UPDATE SKIP LOCKED);
    members := ARRAY(
        SELECT d.id FROM document d WHERE d.root_id = ANY (locked) ORDER BY d.id FOR UPDATE);
    RETURN QUERY
        WITH expired AS MATERIALIZED (
            SELECT d.id FROM document d JOIN tenant_retention r ON r.tenant = document_tenant(d.id)
            WHERE d.id = ANY (locked)
              AND d.created_at < docmill_now() - make_interval(days => r.days)
              AND NOT EXISTS (SELECT 1 FROM document m JOIN ingestion i ON i.document_id = m.id
                WHERE (m.id = d.id OR m.root_id = d.id)
                  AND (i.completed_at IS NULL
                    OR i.completed_at >= docmill_now() - make_interval(days => r.days))))
        INSERT INTO doomed_document (document_id)
        SELECT e.id FROM expired e
        UNION ALL
        SELECT m.id FROM document m JOIN expired e ON e.id = m.root_id WHERE m.id = ANY (members)
        ON CONFLICT DO NOTHING
        RETURNING document_id;
END
$$;
REVOKE ALL ON FUNCTION doom_expired(uuid[]) FROM PUBLIC;
COMMENT ON FUNCTION doom_expired(uuid[]) IS
    'Marks those of the documents that are past their tenant''s retention, with all that was found in them, and returns them.';
