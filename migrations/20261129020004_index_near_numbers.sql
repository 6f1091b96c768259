-- no-transaction
-- Results of one number, day and total.
CREATE INDEX CONCURRENTLY ingestion_near_numbers ON ingestion (near_number) WHERE near_number IS NOT NULL;
