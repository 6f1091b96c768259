-- no-transaction
-- Old ids of what was erased.
CREATE INDEX CONCURRENTLY IF NOT EXISTS erased_ingestion_by_age ON erased_ingestion (erased_at);
