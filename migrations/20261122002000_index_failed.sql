-- no-transaction
-- What failed, newest first, also for a rare reason.
CREATE INDEX CONCURRENTLY IF NOT EXISTS ingestion_failed
    ON ingestion (created_at DESC, id DESC) INCLUDE (reason) WHERE status = 'failed';
