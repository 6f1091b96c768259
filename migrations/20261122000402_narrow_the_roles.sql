-- Who may do what: two more roles, to be granted to logins like the others, and less for workers.
--
--  docmill_producer  inserts documents and ingestions, the columns that are a producer's to say, and
--                    reads results. It changes nothing that is there.
--  docmill_operator  what the commands of docs/operations.md do: reopen, cancel, pause, block,
--                    correct, hand in. What operators did can be added to, not rewritten.
--  docmill_worker    reads what operators have paused and blocked, and no longer changes it.
--
-- Erasing for good stays with docmill_migrator, and with erase_expired() what is past a retention.

DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['docmill_producer', 'docmill_operator'] LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            EXCEPTION
                WHEN insufficient_privilege THEN
                    RAISE NOTICE 'role % was not created: % may not create roles', wanted, current_user;
                WHEN duplicate_object OR unique_violation THEN
                    NULL; -- another database of this server was migrated at the same moment
            END;
        END IF;
    END LOOP;
END
$$;

-- Temporary tables come before every schema that the path does not put them behind.
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION erase_expired(uuid[]) SET search_path = %I, pg_temp',
        current_schema());
END
$$;

DO $$
DECLARE
    place text := quote_ident(current_schema());
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        REVOKE INSERT, UPDATE, DELETE ON operator_action, pause, blocked_content FROM docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_producer') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %s TO docmill_producer', place);
        GRANT INSERT (id, file_path, original_name, size_bytes, tenant, tags),
            SELECT (id, structured_data, needs_human_review, review_reasons, corrected_at)
            ON document TO docmill_producer;
        GRANT INSERT (id, document_id, kind, tenant, priority),
            SELECT (id, document_id, created_at, completed_at, status, reason,
                valid_structured_data, needs_human_review, review_reasons, structured_data)
            ON ingestion TO docmill_producer;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %s TO docmill_operator', place);
        GRANT SELECT ON document, ingestion, attempt, quarantined_message, operator_action, pause,
            blocked_content, worker, maintenance_lease, spending, erased_ingestion,
            tenant_retention, ops_in_flight, ops_failures, ops_review, ops_throughput,
            _sqlx_migrations TO docmill_operator;
        GRANT INSERT, UPDATE ON document, ingestion TO docmill_operator;
        GRANT INSERT ON attempt, operator_action TO docmill_operator;
        GRANT INSERT, UPDATE, DELETE ON pause, blocked_content TO docmill_operator;
    END IF;
END
$$;
