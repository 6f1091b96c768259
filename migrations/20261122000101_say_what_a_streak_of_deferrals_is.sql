-- The time that an ingestion stands in line is no part of its streak of deferrals any more; nor is
-- a pause, a refused key or a spent budget, which end it.

COMMENT ON COLUMN ingestion.deferred_since IS
    'Start of the current streak of deferrals, moved on at each claim by the time in line since it was due; null: none.';
