-- no-transaction
-- ingestion_of_tenant begins with the same column.
DROP INDEX CONCURRENTLY IF EXISTS ingestion_by_tenant;
