-- no-transaction
-- What a pause holds back, by pause.
CREATE INDEX CONCURRENTLY IF NOT EXISTS ingestion_parked_by ON ingestion (parked_by)
    WHERE status = 'in-progress' AND parked_by IS NOT NULL;
