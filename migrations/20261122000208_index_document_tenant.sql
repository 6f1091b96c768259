-- no-transaction
-- A tenant's documents, oldest first, page by page.
CREATE INDEX CONCURRENTLY IF NOT EXISTS document_of_tenant ON document (tenant, created_at, id)
    WHERE tenant IS NOT NULL;
