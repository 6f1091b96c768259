-- no-transaction
-- Results of one supplier, day and total by tenant: one bill of a supplier to many tenants is one key.
CREATE INDEX CONCURRENTLY ingestion_near_amounts_by_tenant ON ingestion (near_amount, COALESCE(tenant, ''))
    WHERE near_amount IS NOT NULL;
