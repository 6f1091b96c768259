-- Values that a reviewer typed and has not decided about, and documents set aside for a day. The
-- release before knows neither table: its decisions leave such rows behind, which the next decision
-- or the document's erasure removes; a draft of an older version is never put into a form.

CREATE TABLE review_draft (
    document_id uuid NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    reviewer text NOT NULL CHECK (reviewer <> ''),
    version timestamptz NOT NULL,
    form text NOT NULL CHECK (octet_length(form) <= 524288),
    saved_at timestamptz NOT NULL DEFAULT docmill_now(),
    PRIMARY KEY (document_id, reviewer)
);
COMMENT ON TABLE review_draft IS
    'Typed values of a review without a decision, of one reviewer; gone with the next decision about the document.';
COMMENT ON COLUMN review_draft.document_id IS 'The document.';
COMMENT ON COLUMN review_draft.reviewer IS 'Who typed it, as document_revision writes it.';
COMMENT ON COLUMN review_draft.version IS 'document.updated_at of the document that was shown.';
COMMENT ON COLUMN review_draft.form IS
    'Names and values of the form, as a browser sends them, without its secret.';
COMMENT ON COLUMN review_draft.saved_at IS 'When it was saved last.';

CREATE TABLE review_later (
    document_id uuid NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    reviewer text NOT NULL CHECK (reviewer <> ''),
    until timestamptz NOT NULL,
    PRIMARY KEY (document_id, reviewer)
);
CREATE INDEX review_later_by_reviewer ON review_later (reviewer, until);
COMMENT ON TABLE review_later IS
    'Documents that a reviewer has set aside: that reviewer is not led to them before until.';
COMMENT ON COLUMN review_later.document_id IS 'The document.';
COMMENT ON COLUMN review_later.reviewer IS 'Who, as document_revision writes it.';
COMMENT ON COLUMN review_later.until IS 'Until when.';

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON review_draft, review_later TO docmill_operator;
    END IF;
    -- A draft is its reviewer's alone.
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON review_later TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON review_draft, review_later TO docmill_migrator;
    END IF;
END
$$;
