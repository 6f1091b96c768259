-- no-transaction
-- The newest attempts of documents that were worked on alone.
CREATE INDEX CONCURRENTLY attempt_alone ON attempt (ended_at) WHERE alone;
