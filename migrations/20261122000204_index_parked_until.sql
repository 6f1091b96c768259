-- no-transaction
-- What is due to get a message again.
CREATE INDEX CONCURRENTLY IF NOT EXISTS ingestion_parked_until ON ingestion (parked_until)
    WHERE status = 'in-progress' AND parked_until IS NOT NULL;
