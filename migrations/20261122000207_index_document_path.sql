-- no-transaction
-- Whether another document refers to the same original. A hash: paths may be longer than a B-tree takes.
CREATE INDEX CONCURRENTLY IF NOT EXISTS document_by_path ON document USING hash (file_path);
