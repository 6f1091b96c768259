-- Forgetting what belongs to a tenant: what was erased, so that late messages find out, and for how
-- long each tenant's documents are kept.

CREATE TABLE erased_ingestion (
    id uuid PRIMARY KEY,
    erased_at timestamptz NOT NULL DEFAULT docmill_now()
);
COMMENT ON TABLE erased_ingestion IS
    'Ids of erased ingestions, so that a message that still names one is deleted; nothing else of them is kept.';
COMMENT ON COLUMN erased_ingestion.id IS 'The ingestion''s id, which says nothing about anybody.';
COMMENT ON COLUMN erased_ingestion.erased_at IS 'When; removed with other old rows.';

CREATE TABLE tenant_retention (
    tenant text PRIMARY KEY,
    days int NOT NULL CHECK (days BETWEEN 1 AND 36500),
    set_at timestamptz NOT NULL DEFAULT docmill_now(),
    set_by text NOT NULL DEFAULT ''
);
COMMENT ON TABLE tenant_retention IS
    'For how long a tenant''s documents are kept after they ended; a tenant without a row: for ever.';
COMMENT ON COLUMN tenant_retention.tenant IS 'The tenant, as in document.tenant.';
COMMENT ON COLUMN tenant_retention.days IS 'Days after the end of a document''s newest ingestion.';
COMMENT ON COLUMN tenant_retention.set_at IS 'Since when.';
COMMENT ON COLUMN tenant_retention.set_by IS 'By whom.';

-- Tenants never change while a document is worked on, so these cost renewals nothing.
CREATE INDEX document_by_tenant ON document (tenant) WHERE tenant IS NOT NULL;
CREATE INDEX ingestion_by_tenant ON ingestion (tenant) WHERE tenant IS NOT NULL;

ALTER TABLE operator_action DROP CONSTRAINT IF EXISTS operator_action_action_check;
ALTER TABLE operator_action ADD CONSTRAINT operator_action_action_check CHECK (action IN
    ('reopen', 'cancel', 'pause', 'resume', 'block', 'unblock', 'reprioritize', 'erase', 'retain'));

-- What a worker's janitor may do about retention, which is less than to delete: only documents of a
-- tenant with a retention, and only those past it. Returns the documents that are gone.
CREATE FUNCTION erase_expired(documents uuid[]) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    expired uuid[];
    ingestions uuid[];
BEGIN
    expired := ARRAY(
        SELECT d.id FROM document d JOIN tenant_retention r ON r.tenant = d.tenant
        WHERE d.id = ANY (documents)
          AND d.created_at < docmill_now() - make_interval(days => r.days)
          AND NOT EXISTS (SELECT 1 FROM ingestion i WHERE i.document_id = d.id
            AND (i.completed_at IS NULL
              OR i.completed_at >= docmill_now() - make_interval(days => r.days)))
        ORDER BY d.id FOR UPDATE OF d);
    ingestions := ARRAY(SELECT i.id FROM ingestion i WHERE i.document_id = ANY (expired));
    INSERT INTO erased_ingestion (id) SELECT unnest(ingestions) ON CONFLICT DO NOTHING;
    DELETE FROM operator_action WHERE target = ANY (ingestions::text[]);
    DELETE FROM quarantined_message WHERE lower(trim(body)) = ANY (ingestions::text[]);
    DELETE FROM ingestion WHERE id = ANY (ingestions);
    DELETE FROM document WHERE id = ANY (expired);
    RETURN QUERY SELECT unnest(expired);
END
$$;
REVOKE ALL ON FUNCTION erase_expired(uuid[]) FROM PUBLIC;
COMMENT ON FUNCTION erase_expired(uuid[]) IS
    'Deletes those of the documents that are past their tenant''s retention, with everything about them.';

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT, DELETE ON erased_ingestion TO docmill_worker;
        GRANT SELECT ON tenant_retention TO docmill_worker;
        GRANT EXECUTE ON FUNCTION erase_expired(uuid[]) TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON erased_ingestion, tenant_retention TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON erased_ingestion, tenant_retention TO docmill_migrator;
        GRANT EXECUTE ON FUNCTION erase_expired(uuid[]) TO docmill_migrator;
    END IF;
END
$$;
