-- What a tenant's people confirmed of its suppliers: by which keys the documents of a supplier are
-- found again. The data itself stays in the document, the places of its values in the transcript.
-- The release before writes no rows: a decision or an undo of its makes a row not count any more, as
-- the row names the decision that taught it.

CREATE TABLE supplier_memory (
    document_id uuid PRIMARY KEY REFERENCES document (id) ON DELETE CASCADE,
    ingestion_id uuid NOT NULL,
    tenant text NOT NULL DEFAULT '',
    supplier text NOT NULL CHECK (supplier <> ''),
    keys text[] NOT NULL CHECK (cardinality(keys) BETWEEN 1 AND 16),
    kind text NOT NULL,
    source text NOT NULL CHECK (source IN ('accepted', 'corrected', 'exact')),
    corrected_fields text[] NOT NULL DEFAULT '{}',
    decided_at timestamptz,
    learned_at timestamptz NOT NULL DEFAULT docmill_now(),
    CONSTRAINT supplier_memory_names_its_decision CHECK ((source = 'exact') = (decided_at IS NULL))
);
CREATE INDEX supplier_memory_by_key ON supplier_memory USING gin (keys);
CREATE INDEX supplier_memory_by_supplier ON supplier_memory (tenant, supplier, learned_at);
COMMENT ON TABLE supplier_memory IS
    'Documents of suppliers that a person confirmed or corrected, or whose e-invoice was exact; erased with the document.';
COMMENT ON COLUMN supplier_memory.document_id IS 'The document; its data is what is remembered.';
COMMENT ON COLUMN supplier_memory.ingestion_id IS
    'The ingestion whose transcript shows where the values stand.';
COMMENT ON COLUMN supplier_memory.tenant IS 'The tenant; empty: no tenant.';
COMMENT ON COLUMN supplier_memory.supplier IS
    'Hash of the tenant and the supplier''s VAT id, or else its name.';
COMMENT ON COLUMN supplier_memory.keys IS
    'Hashes of the tenant and each of VAT id, account and folded name.';
COMMENT ON COLUMN supplier_memory.kind IS 'The kind of the document.';
COMMENT ON COLUMN supplier_memory.source IS
    'accepted or corrected by a person, or exact: an e-invoice without any doubt.';
COMMENT ON COLUMN supplier_memory.corrected_fields IS 'Names of the fields that a person corrected.';
COMMENT ON COLUMN supplier_memory.decided_at IS
    'document.corrected_at of the decision: the row counts only while that decision stands.';
COMMENT ON COLUMN supplier_memory.learned_at IS 'When it was learned.';

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON supplier_memory TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON supplier_memory TO docmill_operator;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON supplier_memory TO docmill_migrator;
    END IF;
END
$$;
