-- Three roles to be granted to logins: docmill_worker (no DDL), docmill_reader (nothing but
-- SELECT), docmill_migrator (makes and alters). Whoever migrates without the right to create
-- roles gets a notice and a schema that works for the owner alone.

DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['docmill_worker', 'docmill_reader', 'docmill_migrator'] LOOP
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

DO $$
DECLARE
    place text := quote_ident(current_schema());
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %s TO docmill_worker', place);
        GRANT SELECT, INSERT, UPDATE ON document, ingestion, attempt, quarantined_message,
            operator_action, pause, blocked_content, worker, maintenance_lease TO docmill_worker;
        GRANT DELETE ON attempt, quarantined_message, pause, blocked_content, worker,
            maintenance_lease TO docmill_worker;
        GRANT SELECT ON ops_in_flight, ops_failures, ops_review, ops_throughput, _sqlx_migrations
            TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %s TO docmill_reader', place);
        GRANT SELECT ON document, ingestion, attempt, quarantined_message, operator_action, pause,
            blocked_content, worker, maintenance_lease, ops_in_flight, ops_failures, ops_review,
            ops_throughput, _sqlx_migrations TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %s TO docmill_migrator', place);
        EXECUTE format('GRANT ALL ON ALL TABLES IN SCHEMA %s TO docmill_migrator', place);
    END IF;
END
$$;
