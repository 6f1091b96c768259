-- The effort of a decision, as the page of a review with its script measures it; without script it is unknown.
ALTER TABLE document_revision
    ADD COLUMN seconds_spent integer,
    ADD COLUMN keys_pressed integer,
    ADD CONSTRAINT document_revision_effort_check
        CHECK (seconds_spent BETWEEN 0 AND 86400 AND keys_pressed BETWEEN 0 AND 100000) NOT VALID;
COMMENT ON COLUMN document_revision.seconds_spent IS
    'Seconds from the opening of the page to the decision; null: not measured.';
COMMENT ON COLUMN document_revision.keys_pressed IS
    'How many keys were pressed meanwhile, never which; null: not measured.';
