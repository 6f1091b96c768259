-- no-transaction
-- document_of_tenant begins with the same column.
DROP INDEX CONCURRENTLY IF EXISTS document_by_tenant;
