-- no-transaction
-- Its statements, those of the release before too, are answered by the index by tenant.
DROP INDEX CONCURRENTLY IF EXISTS ingestion_near_amounts;
