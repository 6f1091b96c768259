-- no-transaction
-- Every search for ingestions without a message leaves parked ones out: ingestion_sendable serves it.
DROP INDEX CONCURRENTLY IF EXISTS ingestion_waiting;
