-- no-transaction
-- A tenant's ingestions, oldest first, page by page.
CREATE INDEX CONCURRENTLY IF NOT EXISTS ingestion_of_tenant ON ingestion (tenant, created_at, id)
    WHERE tenant IS NOT NULL;
