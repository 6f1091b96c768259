-- no-transaction
-- Documents by their total. A number of more digits than an amount has is left out: an index refuses long rows.
CREATE INDEX CONCURRENTLY document_by_total ON document
    ((CASE WHEN jsonb_typeof(structured_data -> 'total') = 'number'
        AND length(structured_data ->> 'total') <= 30
        THEN (structured_data ->> 'total')::numeric END), tenant)
    WHERE CASE WHEN jsonb_typeof(structured_data -> 'total') = 'number'
        AND length(structured_data ->> 'total') <= 30
        THEN (structured_data ->> 'total')::numeric END IS NOT NULL;
