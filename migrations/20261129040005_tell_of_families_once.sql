-- Of a family whose last members end in one transaction one message is sent, not one for each of them.

-- As in the baseline: no function reads a caller's own temporary table of the same name.
DO $$
BEGIN
    PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
END
$$;

CREATE OR REPLACE FUNCTION write_webhook_of_family(root uuid) RETURNS void
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
    -- Several that end in one statement all find the family closed.
    IF EXISTS (SELECT 1 FROM webhook_delivery w WHERE w.document_id = top.document_id
        AND w.ingestion_id = root AND w.xmin = pg_current_xact_id()::xid)
    THEN
        RETURN;
    END IF;
    SELECT count(*) AS total, count(*) FILTER (WHERE i.status = 'completed') AS completed,
        count(*) FILTER (WHERE i.status = 'failed') AS failed,
        count(*) FILTER (WHERE i.status = 'cancelled') AS cancelled,
        -- The ends of others in this statement are not in their documents yet.
        count(*) FILTER (WHERE i.needs_human_review OR d.needs_human_review) AS needing_review
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
