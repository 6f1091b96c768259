-- The tenant of an ingestion is that of its document, and a kind is a name and no path.

-- As in the baseline: no function reads a caller's own temporary table of the same name.
DO $$
BEGIN
    PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
END
$$;

-- After the statement, so that a document and its ingestion may come in one.
CREATE FUNCTION hold_ingestion_to_its_document() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    owner text;
BEGIN
    IF NEW.kind !~ '^[A-Za-z0-9_-]{1,64}$' THEN
        RAISE EXCEPTION 'ingestion %: a kind has 1 to 64 of a-z, A-Z, 0-9, _ and -', NEW.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'ingestion_kind_is_a_name';
    END IF;
    SELECT d.tenant INTO owner FROM document d WHERE d.id = NEW.document_id;
    IF owner IS NOT DISTINCT FROM NEW.tenant THEN
        RETURN NULL;
    END IF;
    IF owner IS NOT NULL AND NEW.tenant IS NULL THEN
        UPDATE ingestion SET tenant = owner WHERE id = NEW.id;
        RETURN NULL;
    END IF;
    -- A document of nobody belongs to its first tenant.
    IF owner IS NOT NULL OR EXISTS (
        SELECT 1 FROM ingestion i WHERE i.document_id = NEW.document_id AND i.id <> NEW.id
          AND i.tenant <> NEW.tenant) THEN
        RAISE EXCEPTION 'ingestion %: its document is of another tenant', NEW.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'ingestion_tenant_is_its_documents';
    END IF;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION hold_ingestion_to_its_document() FROM PUBLIC;
COMMENT ON FUNCTION hold_ingestion_to_its_document() IS
    'Refuses an ingestion whose tenant differs from its document''s, or whose kind is no name.';
CREATE TRIGGER ingestion_of_its_document AFTER INSERT ON ingestion
    FOR EACH ROW EXECUTE FUNCTION hold_ingestion_to_its_document();
CREATE TRIGGER change_of_an_ingestion_of_its_document
    AFTER UPDATE OF tenant, kind, document_id ON ingestion FOR EACH ROW
    WHEN ((OLD.tenant, OLD.kind, OLD.document_id)
        IS DISTINCT FROM (NEW.tenant, NEW.kind, NEW.document_id))
    EXECUTE FUNCTION hold_ingestion_to_its_document();

CREATE FUNCTION hold_document_to_its_ingestions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM ingestion i WHERE i.document_id = NEW.id AND i.tenant <> NEW.tenant) THEN
        RAISE EXCEPTION 'document %: it has ingestions of another tenant', NEW.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'document_tenant_is_its_ingestions';
    END IF;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION hold_document_to_its_ingestions() FROM PUBLIC;
COMMENT ON FUNCTION hold_document_to_its_ingestions() IS
    'Refuses a tenant for a document that has ingestions of another.';
CREATE TRIGGER document_of_its_ingestions AFTER UPDATE OF tenant ON document
    FOR EACH ROW WHEN (NEW.tenant IS DISTINCT FROM OLD.tenant)
    EXECUTE FUNCTION hold_document_to_its_ingestions();

-- An answer that is too old gives way to a new one: an update.
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT UPDATE (fingerprint, answer, kept_at) ON idempotency_key TO docmill_operator;
    END IF;
END
$$;
