-- Keys of near duplicates. The release before writes none: its results are found by supplier and number alone.
ALTER TABLE ingestion
    ADD COLUMN near_amount uuid,
    ADD COLUMN near_number uuid,
    ADD COLUMN master_match jsonb;
COMMENT ON COLUMN ingestion.near_amount IS
    'Key of supplier, day of issue and total of a completed result; null: one of them is unknown.';
COMMENT ON COLUMN ingestion.near_number IS
    'Key of number, day of issue and total of a completed result; null: one of them is unknown.';
COMMENT ON COLUMN ingestion.master_match IS
    'Supplier and order of the master data that the result belongs to, with the evidence.';
