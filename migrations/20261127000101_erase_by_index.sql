-- Erasing a document asks for its quarantined messages by index; it read all that are kept, once for
-- every document. One function: moments. What it deletes is what it deleted before.

-- As in the files before: a session's own temporary tables come last.
DO $$
BEGIN
    PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
END
$$;

CREATE OR REPLACE FUNCTION erase_doomed(documents uuid[]) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    doomed uuid[];
    ingestions uuid[];
BEGIN
    doomed := ARRAY(
        SELECT x.document_id FROM doomed_document x WHERE x.document_id = ANY (documents)
        ORDER BY x.document_id FOR UPDATE);
    -- In the order in which every other statement locks them.
    ingestions := ARRAY(
        SELECT i.id FROM ingestion i WHERE i.document_id = ANY (doomed) ORDER BY i.id FOR UPDATE);
    INSERT INTO erased_ingestion (id) SELECT unnest(ingestions) ON CONFLICT DO NOTHING;
    DELETE FROM operator_action WHERE target = ANY (ingestions::text[]);
    -- The length is the index's condition: what is longer names more than an ingestion.
    DELETE FROM quarantined_message
    WHERE length(body) < 64 AND lower(trim(body)) = ANY (ingestions::text[]);
    -- What was paid stays on the books, without a tenant.
    UPDATE spending SET tenant = NULL WHERE ingestion_id = ANY (ingestions);
    DELETE FROM ingestion WHERE id = ANY (ingestions);
    DELETE FROM document WHERE id = ANY (doomed);
    RETURN QUERY SELECT unnest(doomed);
END
$$;
