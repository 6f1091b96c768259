-- How urgent an ingestion is, so that a message that is sent again goes to the tier it came from.

ALTER TABLE ingestion ADD COLUMN IF NOT EXISTS priority text NOT NULL DEFAULT 'normal'
    CONSTRAINT ingestion_priority_is_known
    CHECK (priority IN ('critical', 'high', 'normal', 'low', 'background'));
COMMENT ON COLUMN ingestion.priority IS
    'Which tier of the queue its messages go to: critical, high, normal, low or background.';
