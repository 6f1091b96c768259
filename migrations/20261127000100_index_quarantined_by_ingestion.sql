-- no-transaction
-- What is kept of a message that named one ingestion, by that id. Only what is short enough to be an id
-- and nothing else: a body may be 64 KiB, and no index row may.
CREATE INDEX CONCURRENTLY IF NOT EXISTS quarantined_message_by_ingestion
    ON quarantined_message (lower(trim(body))) WHERE length(body) < 64;
