-- no-transaction
-- The children of an ingestion, one at each position.
CREATE UNIQUE INDEX CONCURRENTLY ingestion_children
    ON ingestion (parent_id, position) WHERE parent_id IS NOT NULL;
