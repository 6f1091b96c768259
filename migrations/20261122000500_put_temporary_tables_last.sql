-- Temporary tables come before every schema that the path does not put them behind. document_tenant()
-- is called by doom_expired() with the owner's rights: a session's own table named "document" must not
-- say whose a document is. Operators read the new tables as they read the others.

DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['document_tenant(uuid)', 'add_to_spending_day()'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', wanted, current_schema());
    END LOOP;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT ON spending_day, doomed_document TO docmill_operator;
    END IF;
END
$$;
