-- The end of an ingestion finds what is newer of its document without a walk through everything that is
-- newer. One function: moments. What it writes is what it wrote before.

-- As in the files before: a session's own temporary tables come last.
DO $$
BEGIN
    PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
END
$$;

-- What the end of an ingestion does to its document.
--
--  * completed: the document carries the newest completed ingestion's data. An older one that
--    finishes late changes nothing. If a newer ingestion has failed meanwhile, its call for
--    review stays.
--  * failed: only the review flag, and only if no newer ingestion of the document exists (one
--    that was cancelled does not count). The data stays.
--  * cancelled: the data stays. If the newest that is left has failed, its call for review is made
--    now; it was not while this one was to come. What was superseded calls for review if the one
--    that was to take its place does not exist or was cancelled itself: nobody reads that version.
--  * a person's correction (corrected_at) is never overwritten; different data only flags it.
--
-- OFFSET 0: the newer ones are looked for among those of the document alone. Left to itself the planner
-- may look among all that are newer, of whatever document: of thousands that came within a second, since
-- the last ANALYZE, it takes a row or two to be newer, and each end reads through all of them.
--
-- Everything that is compared is read under the lock of the document's row: of two ingestions of one
-- document that end at the same moment, the second sees what the first wrote.
CREATE OR REPLACE FUNCTION update_document_from_ingestion() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
DECLARE
    newer_exists boolean;
    newer_failed boolean;
    standing record;
    calls text[] := '{}';
BEGIN
    -- A statement of its own: the next one sees what was committed while this one waited.
    PERFORM 1 FROM document d WHERE d.id = NEW.document_id FOR NO KEY UPDATE;

    IF NEW.status = 'cancelled' THEN
        SELECT i.status, i.reason, i.review_reasons INTO standing
        FROM ingestion i
        WHERE i.document_id = NEW.document_id AND i.status <> 'cancelled'
        ORDER BY i.created_at DESC, i.id DESC LIMIT 1;
        IF FOUND AND standing.status = 'failed' THEN
            calls := CASE WHEN standing.review_reasons = '{}'
                THEN ARRAY[standing.reason] ELSE standing.review_reasons END;
        END IF;
        IF NEW.reason = 'superseded' AND EXISTS (
            SELECT 1 FROM ingestion s WHERE s.id = NEW.superseded_by
              AND (s.status <> 'cancelled'
                OR (s.reason = 'superseded' AND s.superseded_by IS NOT NULL)))
        THEN
            NULL; -- handed on
        ELSIF NEW.reason = 'superseded' OR EXISTS (
            SELECT 1 FROM ingestion o WHERE o.document_id = NEW.document_id
              AND o.reason = 'superseded' AND o.superseded_by = NEW.id)
        THEN
            calls := calls || 'superseded'::text;
        END IF;
        IF calls <> '{}' THEN
            UPDATE document d SET
                needs_human_review = true,
                review_reasons = d.review_reasons
                    || ARRAY(SELECT c FROM unnest(calls) AS c WHERE c <> ALL (d.review_reasons)),
                updated_at = docmill_now()
            WHERE d.id = NEW.document_id;
        END IF;
        RETURN NULL;
    END IF;

    SELECT count(*) > 0, COALESCE(bool_or(i.status = 'failed'), false)
    INTO newer_exists, newer_failed
    FROM (
        SELECT o.status, o.created_at, o.id FROM ingestion o
        WHERE o.document_id = NEW.document_id AND o.status <> 'cancelled' OFFSET 0
    ) AS i
    WHERE (i.created_at, i.id) > (NEW.created_at, NEW.id);

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
