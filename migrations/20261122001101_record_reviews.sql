-- What people decided about documents: one row per decision, never rewritten.
--
-- The document carries the newest decision (corrected_at, corrected_by, structured_data); what it
-- said before stands here, with who, when and why. A rejected document carries no data.

CREATE TABLE document_revision (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document_id uuid NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    ingestion_id uuid,
    decided_at timestamptz NOT NULL DEFAULT docmill_now(),
    reviewer text NOT NULL CHECK (reviewer <> ''),
    decision text NOT NULL CHECK (decision IN ('accepted', 'corrected', 'rejected')),
    why text NOT NULL DEFAULT '',
    reasons_before text[] NOT NULL,
    data_before jsonb,
    data_after jsonb,
    CHECK (decision = 'rejected' OR data_after IS NOT NULL)
);
CREATE INDEX document_revision_by_document ON document_revision (document_id, id);

COMMENT ON TABLE document_revision IS
    'Decisions of reviewers (docmill review), oldest first; added to, never rewritten.';
COMMENT ON COLUMN document_revision.id IS 'Order of the decisions.';
COMMENT ON COLUMN document_revision.document_id IS 'The document decided about.';
COMMENT ON COLUMN document_revision.ingestion_id IS
    'The newest ingestion of the document at that time.';
COMMENT ON COLUMN document_revision.decided_at IS 'When.';
COMMENT ON COLUMN document_revision.reviewer IS 'Who.';
COMMENT ON COLUMN document_revision.decision IS
    'accepted: the data is right as it is; corrected: data_after is right; rejected: it is no document to be recorded.';
COMMENT ON COLUMN document_revision.why IS 'The reviewer''s words.';
COMMENT ON COLUMN document_revision.reasons_before IS 'Why the document called for review.';
COMMENT ON COLUMN document_revision.data_before IS 'What the document carried.';
COMMENT ON COLUMN document_revision.data_after IS 'What it carries from then on.';
COMMENT ON COLUMN document.corrected_at IS
    'When a person corrected, confirmed or rejected structured_data; from then on it is never overwritten.';
COMMENT ON COLUMN document.corrected_by IS 'Who did.';

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT, INSERT ON document_revision TO docmill_operator;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON document_revision TO docmill_reader;
    END IF;
END
$$;
