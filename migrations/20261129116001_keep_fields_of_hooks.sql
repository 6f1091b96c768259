-- Fields that hooks have added to an ingestion, beside its data. The release before neither writes nor reads
-- them.

ALTER TABLE ingestion ADD COLUMN hooks jsonb;

COMMENT ON COLUMN ingestion.hooks IS
    'Fields that hooks have added, by the names of the hooks; null: none has.';
