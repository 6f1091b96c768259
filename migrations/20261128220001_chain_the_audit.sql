-- The audit names the database login beside the person, and each of its rows is a link of a chain of
-- hashes: a row that is changed or removed shows. The release before writes rows as this one does.

-- As in the baseline: no function reads a caller's own temporary table of the same name.
DO $$
BEGIN
    PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
END
$$;

ALTER TABLE operator_action ADD COLUMN login text;
ALTER TABLE document_revision ADD COLUMN login text;
COMMENT ON COLUMN operator_action.login IS
    'The database login that wrote the row (session_user); null: older than this column.';
COMMENT ON COLUMN document_revision.login IS
    'The database login that wrote the row (session_user); null: older than this column.';

CREATE FUNCTION note_login() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
BEGIN
    NEW.login := session_user;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION note_login() IS 'Writes the database login into a row of the audit.';
CREATE TRIGGER note_login BEFORE INSERT ON operator_action
    FOR EACH ROW EXECUTE FUNCTION note_login();
CREATE TRIGGER note_login BEFORE INSERT ON document_revision
    FOR EACH ROW EXECUTE FUNCTION note_login();

CREATE TABLE audit_link (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source text NOT NULL CHECK (source IN ('operator_action', 'document_revision')),
    row_id bigint NOT NULL,
    digest bytea NOT NULL CHECK (length(digest) = 32),
    before bytea NOT NULL UNIQUE,
    hash bytea NOT NULL CHECK (hash = sha256(before || digest)),
    erased_at timestamptz,
    erased_by text,
    UNIQUE (source, row_id),
    CHECK ((erased_at IS NULL) = (erased_by IS NULL))
);
COMMENT ON TABLE audit_link IS
    'The chain of hashes over operator_action and document_revision, in the order of their commits.';
COMMENT ON COLUMN audit_link.id IS 'Order of the links.';
COMMENT ON COLUMN audit_link.source IS 'The table of the row.';
COMMENT ON COLUMN audit_link.row_id IS 'The id of the row.';
COMMENT ON COLUMN audit_link.digest IS 'SHA-256 of the row, see digest_audit_row.';
COMMENT ON COLUMN audit_link.before IS 'The hash of the link before; empty: it is the first.';
COMMENT ON COLUMN audit_link.hash IS 'SHA-256 of before and digest.';
COMMENT ON COLUMN audit_link.erased_at IS 'When the row was deleted; null: it is there.';
COMMENT ON COLUMN audit_link.erased_by IS 'The database login that deleted it, by retention for instance.';

-- Columns without a value are left out, so that a column added later changes no digest.
CREATE FUNCTION digest_audit_row(of_source text, of_id bigint) RETURNS bytea
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET timezone = 'UTC'
AS $$
DECLARE
    entry jsonb;
BEGIN
    IF of_source = 'operator_action' THEN
        SELECT to_jsonb(a) INTO entry FROM operator_action a WHERE a.id = of_id;
    ELSE
        SELECT to_jsonb(r) INTO entry FROM document_revision r WHERE r.id = of_id;
    END IF;
    IF entry IS NULL THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT sha256(convert_to(jsonb_object_agg(e.key, e.value)::text, 'UTF8'))
        FROM jsonb_each(entry) AS e WHERE e.value <> 'null'::jsonb);
END
$$;
COMMENT ON FUNCTION digest_audit_row(text, bigint) IS
    'SHA-256 of a row of the audit as JSON in UTC; null: there is no such row.';

CREATE FUNCTION link_audit_row(of_source text, of_id bigint) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
    last bytea;
    entry bytea := digest_audit_row(of_source, of_id);
BEGIN
    -- Deleted in the transaction that has written it.
    IF entry IS NULL THEN
        RETURN;
    END IF;
    SELECT l.hash INTO last FROM audit_link l ORDER BY l.id DESC LIMIT 1;
    last := COALESCE(last, ''::bytea);
    INSERT INTO audit_link (source, row_id, digest, before, hash)
    VALUES (of_source, of_id, entry, last, sha256(last || entry));
END
$$;
REVOKE ALL ON FUNCTION link_audit_row(text, bigint) FROM PUBLIC;
COMMENT ON FUNCTION link_audit_row(text, bigint) IS 'Appends a row of the audit to the chain.';

-- At the commit, and no other lock is taken after this one: it cannot be part of a deadlock.
CREATE FUNCTION chain_audit_row() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('docmill.audit_link'), hashtext(TG_TABLE_SCHEMA));
    PERFORM link_audit_row(TG_TABLE_NAME, NEW.id);
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION chain_audit_row() FROM PUBLIC;
COMMENT ON FUNCTION chain_audit_row() IS 'Appends a new row of the audit to the chain as it commits.';
CREATE CONSTRAINT TRIGGER chain_audit_row AFTER INSERT ON operator_action
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION chain_audit_row();
CREATE CONSTRAINT TRIGGER chain_audit_row AFTER INSERT ON document_revision
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION chain_audit_row();

CREATE FUNCTION mark_erased_audit_row() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
    UPDATE audit_link l SET erased_at = docmill_now(), erased_by = session_user
    WHERE l.source = TG_TABLE_NAME AND l.row_id = OLD.id;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION mark_erased_audit_row() FROM PUBLIC;
COMMENT ON FUNCTION mark_erased_audit_row() IS
    'Keeps of a deleted row of the audit its link, when it was deleted and by which login.';
CREATE TRIGGER mark_erased_audit_row AFTER DELETE ON operator_action
    FOR EACH ROW EXECUTE FUNCTION mark_erased_audit_row();
CREATE TRIGGER mark_erased_audit_row AFTER DELETE ON document_revision
    FOR EACH ROW EXECUTE FUNCTION mark_erased_audit_row();

-- Rows that are there already; none is added meanwhile, since the triggers have locked the tables.
DO $$
DECLARE
    entry record;
BEGIN
    FOR entry IN
        SELECT 'operator_action' AS source, a.id, a.done_at AS at FROM operator_action a
        UNION ALL
        SELECT 'document_revision', r.id, r.decided_at FROM document_revision r
        ORDER BY at, source, id
    LOOP
        PERFORM link_audit_row(entry.source, entry.id);
    END LOOP;
END
$$;

DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT r.rolname FROM pg_roles r
        WHERE r.rolname IN ('docmill_operator', 'docmill_reader') LOOP
        EXECUTE format('GRANT SELECT ON audit_link TO %I', name);
    END LOOP;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON audit_link TO docmill_migrator;
    END IF;
END
$$;
