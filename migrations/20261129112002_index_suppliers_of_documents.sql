-- no-transaction
-- Documents by the beginning of their supplier's name.
CREATE INDEX CONCURRENTLY document_by_supplier ON document
    (lower(left(structured_data ->> 'supplier_name', 100)) text_pattern_ops, tenant)
    WHERE lower(left(structured_data ->> 'supplier_name', 100)) IS NOT NULL;
