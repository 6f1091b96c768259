-- no-transaction
-- What is kept of messages for longer than it is to be, without a walk through all that is kept.
CREATE INDEX CONCURRENTLY IF NOT EXISTS quarantined_message_by_age
    ON quarantined_message (quarantined_at);
