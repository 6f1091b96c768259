-- Passwords of encrypted PDFs, as their producers give them. As they are, not sealed: whoever holds a
-- copy of the database holds the documents' data already. In a table of their own, which producers can
-- only add to and nobody but workers reads; gone with the document.

CREATE TABLE document_password (
    document_id uuid NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    password text NOT NULL CHECK (password <> '' AND length(password) <= 127),
    given_at timestamptz NOT NULL DEFAULT docmill_now(),
    PRIMARY KEY (document_id, password)
);
COMMENT ON TABLE document_password IS
    'Passwords that may open a document: added by producers, read by workers alone.';
COMMENT ON COLUMN document_password.document_id IS 'The document.';
COMMENT ON COLUMN document_password.password IS 'The password, as it is typed.';
COMMENT ON COLUMN document_password.given_at IS 'When it was given; the newest is tried first.';

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT ON document_password TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_producer') THEN
        GRANT INSERT (document_id, password) ON document_password TO docmill_producer;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT INSERT (document_id, password), DELETE ON document_password TO docmill_operator;
    END IF;
END
$$;
