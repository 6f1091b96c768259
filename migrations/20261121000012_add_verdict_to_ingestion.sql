-- What the gate found out beside its reasons: for ordering reviews, and for showing a reviewer where
-- on the pages a value stands.

ALTER TABLE ingestion
    ADD COLUMN IF NOT EXISTS gate_score real
        CONSTRAINT ingestion_gate_score_is_a_share CHECK (gate_score BETWEEN 0 AND 1),
    ADD COLUMN IF NOT EXISTS grounded jsonb;
COMMENT ON COLUMN ingestion.gate_score IS
    'How likely the data is right, 0 to 1, as the gate sees it; null without a verdict.';
COMMENT ON COLUMN ingestion.grounded IS
    'Where on the pages values of structured_data were found: a list of field, page, box, confidence.';
