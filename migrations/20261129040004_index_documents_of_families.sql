-- no-transaction
-- The documents of a family.
CREATE INDEX CONCURRENTLY document_by_root ON document (root_id) WHERE root_id IS NOT NULL;
