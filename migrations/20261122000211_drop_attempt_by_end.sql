-- no-transaction
-- attempt_ended serves instead.
DROP INDEX CONCURRENTLY IF EXISTS attempt_by_end;
