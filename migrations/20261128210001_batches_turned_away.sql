-- Batches that a vendor turned away because too many tokens waited there. An older program writes none.
ALTER TABLE batch ADD COLUMN was_turned_away boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN batch.was_turned_away IS
    'Whether the vendor took none of its questions because its queue was full; they wait for a later, smaller batch.';
