-- no-transaction
-- Results of one supplier and number by tenant.
CREATE INDEX CONCURRENTLY ingestion_duplicates_by_tenant ON ingestion (duplicate_key, COALESCE(tenant, ''))
    WHERE duplicate_key IS NOT NULL;
