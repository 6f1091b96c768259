-- no-transaction
-- The oldest that has not ended, without a look at any that has.
CREATE INDEX CONCURRENTLY IF NOT EXISTS ingestion_open ON ingestion (created_at, id)
    WHERE status = 'in-progress';
