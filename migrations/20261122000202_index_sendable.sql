-- no-transaction
-- What may have lost its message, longest silent first. Without what is parked: a long pause must not
-- be walked through at every pass.
CREATE INDEX CONCURRENTLY IF NOT EXISTS ingestion_sendable ON ingestion (enqueued_at, id)
    WHERE status = 'in-progress' AND parked_by IS NULL AND parked_until IS NULL;
