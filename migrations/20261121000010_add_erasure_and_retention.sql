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

-- The janitor of a worker carries out what tenant_retention says.
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON erased_ingestion, tenant_retention TO docmill_worker;
        GRANT DELETE ON document, ingestion, operator_action TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON erased_ingestion, tenant_retention TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON erased_ingestion, tenant_retention TO docmill_migrator;
    END IF;
END
$$;
