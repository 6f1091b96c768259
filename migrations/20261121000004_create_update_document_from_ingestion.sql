-- What the end of an ingestion does to its document.
--
-- The comparison with what the document already carries stands in the UPDATE itself, on columns
-- of the document's own row: two ingestions of one document that end at the same moment are
-- serialised by that row's lock, and the second sees what the first wrote.
--
--  * completed: the document carries the newest completed ingestion's data. An older one that
--    finishes late changes nothing. If a newer ingestion has failed meanwhile, its call for
--    review stays.
--  * failed: only the review flag, and only if no newer ingestion of the document exists (one
--    that was cancelled does not count). The data stays.
--  * a person's correction (corrected_at) is never overwritten; different data only flags it.

CREATE OR REPLACE FUNCTION update_document_from_ingestion() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
DECLARE
    newer_exists boolean;
    newer_failed boolean;
BEGIN
    SELECT count(*) > 0, COALESCE(bool_or(i.status = 'failed'), false)
    INTO newer_exists, newer_failed
    FROM ingestion i
    WHERE i.document_id = NEW.document_id AND i.status <> 'cancelled'
      AND (i.created_at, i.id) > (NEW.created_at, NEW.id);

    IF NEW.status = 'completed' THEN
        UPDATE document d SET
            structured_data = CASE WHEN d.corrected_at IS NULL
                THEN NEW.structured_data ELSE d.structured_data END,
            needs_human_review = CASE
                WHEN d.corrected_at IS NOT NULL THEN d.needs_human_review
                    OR NEW.structured_data IS DISTINCT FROM d.structured_data
                WHEN newer_failed THEN true
                ELSE NEW.needs_human_review OR NEW.valid_structured_data IS NOT TRUE END,
            review_reasons = CASE
                WHEN d.corrected_at IS NULL AND newer_failed THEN d.review_reasons
                WHEN d.corrected_at IS NULL THEN NEW.review_reasons
                WHEN NEW.structured_data IS DISTINCT FROM d.structured_data
                    AND NOT ('differs_from_correction' = ANY (d.review_reasons))
                    THEN d.review_reasons || 'differs_from_correction'::text
                ELSE d.review_reasons END,
            sha256 = COALESCE(NEW.sha256, d.sha256),
            completed_ingestion_id = NEW.id,
            completed_ingestion_created_at = NEW.created_at,
            updated_at = docmill_now()
        WHERE d.id = NEW.document_id
          AND (d.completed_ingestion_id IS NULL
            OR (NEW.created_at, NEW.id)
                >= (d.completed_ingestion_created_at, d.completed_ingestion_id));
    ELSIF NOT newer_exists THEN
        UPDATE document d SET
            needs_human_review = true,
            review_reasons = CASE WHEN NEW.review_reasons = '{}'
                THEN ARRAY[NEW.reason] ELSE NEW.review_reasons END,
            sha256 = COALESCE(NEW.sha256, d.sha256),
            updated_at = docmill_now()
        WHERE d.id = NEW.document_id;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION update_document_from_ingestion() IS
    'Carries the end of an ingestion into its document; see docs/architecture.md, Record.';

CREATE TRIGGER update_document_from_ingestion
    AFTER UPDATE OF status ON ingestion
    FOR EACH ROW
    WHEN (OLD.status IS DISTINCT FROM NEW.status AND NEW.status IN ('completed', 'failed'))
    EXECUTE FUNCTION update_document_from_ingestion();
