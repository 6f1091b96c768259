-- no-transaction
-- The ingestions of a family.
CREATE INDEX CONCURRENTLY ingestion_by_root ON ingestion (root_id) WHERE root_id IS NOT NULL;
