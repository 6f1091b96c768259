-- no-transaction
-- Documents by their number, whatever its case; of a long one its beginning.
CREATE INDEX CONCURRENTLY document_by_number ON document
    (lower(left(structured_data ->> 'invoice_number', 100)) text_pattern_ops, tenant)
    WHERE lower(left(structured_data ->> 'invoice_number', 100)) IS NOT NULL;
