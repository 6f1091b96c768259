-- The file of a batch's questions at the vendor's, while it is not known whether the batch was made of
-- it: removed before the batch is handed in again, so that the earlier try cannot make a second one.

ALTER TABLE batch ADD COLUMN input text;
COMMENT ON COLUMN batch.input IS
    'The vendor''s name for the file of questions of the last try to hand it in; null: there is none, or the vendor takes none.';
