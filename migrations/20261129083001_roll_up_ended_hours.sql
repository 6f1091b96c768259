-- Ends of ingestions by hour, for the charts of the overview. The release before knows no such table:
-- maintenance of this one fills it, with the hours in which the other ran as well.
CREATE TABLE ended_hour (
    hour timestamptz PRIMARY KEY CHECK (mod(extract(epoch FROM hour)::bigint, 3600) = 0),
    completed bigint NOT NULL CHECK (completed >= 0),
    flagged bigint NOT NULL CHECK (flagged BETWEEN 0 AND completed),
    failed bigint NOT NULL CHECK (failed >= 0),
    cancelled bigint NOT NULL CHECK (cancelled >= 0),
    p50_s double precision CHECK (p50_s >= 0),
    p95_s double precision CHECK (p95_s >= p50_s),
    failures jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(failures) = 'object'),
    cost_nanos bigint NOT NULL,
    CONSTRAINT ended_hour_times_of_ends CHECK ((p50_s IS NULL) = (completed + failed = 0)
        AND (p95_s IS NULL) = (p50_s IS NULL))
);
COMMENT ON TABLE ended_hour IS
    'Ends of ingestions by hour, counted once when the hour is over; it outlives the ingestions.';
COMMENT ON COLUMN ended_hour.hour IS 'Beginning of the hour.';
COMMENT ON COLUMN ended_hour.completed IS 'Ingestions that ended completed.';
COMMENT ON COLUMN ended_hour.flagged IS 'Those of them that a person has to review.';
COMMENT ON COLUMN ended_hour.failed IS 'Ingestions that ended failed.';
COMMENT ON COLUMN ended_hour.cancelled IS 'Ingestions that ended cancelled.';
COMMENT ON COLUMN ended_hour.p50_s IS
    'Median of the seconds from registration or reopening to outcome of those completed or failed; null: none.';
COMMENT ON COLUMN ended_hour.p95_s IS 'The same of 95 %.';
COMMENT ON COLUMN ended_hour.failures IS 'Failures by reason code.';
COMMENT ON COLUMN ended_hour.cost_nanos IS
    'Cost of the attempts that ended in the hour, in billionths of cost.currency.';

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT, INSERT ON ended_hour TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT ON ended_hour TO docmill_operator;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON ended_hour TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON ended_hour TO docmill_migrator;
    END IF;
END
$$;
