-- no-transaction
-- Results of one supplier, day and total.
CREATE INDEX CONCURRENTLY ingestion_near_amounts ON ingestion (near_amount) WHERE near_amount IS NOT NULL;
