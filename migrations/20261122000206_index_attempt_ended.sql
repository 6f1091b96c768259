-- no-transaction
-- Old attempts, oldest first. A BRIN index finds them only while rows lie in the order of time, which
-- they do not once deleted ones have made room for new ones.
CREATE INDEX CONCURRENTLY IF NOT EXISTS attempt_ended ON attempt (ended_at);
