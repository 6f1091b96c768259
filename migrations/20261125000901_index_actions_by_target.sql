-- no-transaction
-- What operators did about one ingestion, newest first.
CREATE INDEX CONCURRENTLY IF NOT EXISTS operator_action_by_target
    ON operator_action (target, id DESC);
