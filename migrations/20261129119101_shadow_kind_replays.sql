-- A draft that passed its gate reads a share of the documents that people decide from then on. The
-- release before knows no such columns: its processes neither begin a shadow nor go on with one.
ALTER TABLE kind_replay
    ADD COLUMN shadow_share double precision CHECK (shadow_share > 0 AND shadow_share <= 1),
    ADD COLUMN shadow_after bigint,
    ADD COLUMN shadow_at timestamptz,
    ADD COLUMN shadow_report jsonb,
    ADD CONSTRAINT kind_replay_shadow CHECK (shadow_share IS NULL
        OR (state = 'done' AND shadow_after IS NOT NULL AND shadow_at IS NOT NULL));
CREATE INDEX kind_replay_shadowing ON kind_replay (shadow_at) WHERE shadow_share IS NOT NULL;
COMMENT ON COLUMN kind_replay.shadow_share IS
    'Share of the documents decided from then on that the draft reads too; null: none.';
COMMENT ON COLUMN kind_replay.shadow_after IS 'The newest document_revision that was looked at for that.';
COMMENT ON COLUMN kind_replay.shadow_at IS 'When a worker last looked for such decisions.';
COMMENT ON COLUMN kind_replay.shadow_report IS 'The sum of those readings, in the form of report.';

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT UPDATE (shadow_share, shadow_after, shadow_at, shadow_report) ON kind_replay TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT UPDATE (shadow_share, shadow_after, shadow_at, shadow_report) ON kind_replay TO docmill_operator;
    END IF;
END
$$;
