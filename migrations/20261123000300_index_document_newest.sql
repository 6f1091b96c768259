-- no-transaction
-- Documents, newest first, piece by piece: a search for words looks through them in that order.
CREATE INDEX CONCURRENTLY IF NOT EXISTS document_newest ON document (created_at, id);
