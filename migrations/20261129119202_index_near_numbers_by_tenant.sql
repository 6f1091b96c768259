-- no-transaction
-- Results of one number, day and total by tenant.
CREATE INDEX CONCURRENTLY ingestion_near_numbers_by_tenant ON ingestion (near_number, COALESCE(tenant, ''))
    WHERE near_number IS NOT NULL;
