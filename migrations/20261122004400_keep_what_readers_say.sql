-- What the reader says of its own reading, as columns; and both tables in the earlier system's form,
-- where it is part of structured_data.

ALTER TABLE ingestion
    ADD COLUMN extraction_successful boolean,
    ADD COLUMN extraction_confidence text,
    ADD COLUMN missing_fields text[];
-- Held from now on; the rows that are there are looked at by another migration, which locks nobody out.
ALTER TABLE ingestion ADD CONSTRAINT ingestion_extraction_confidence_is_known
    CHECK (extraction_confidence IN ('high', 'medium', 'low')) NOT VALID;
COMMENT ON COLUMN ingestion.extraction_successful IS
    'Whether the reader says that it could read all that it was asked for. Its word; valid_structured_data is the verdict.';
COMMENT ON COLUMN ingestion.extraction_confidence IS
    'How sure the reader says it is: high, medium or low.';
COMMENT ON COLUMN ingestion.missing_fields IS
    'Fields that the reader says are not on the document.';

-- What the earlier worker wrote into structured_data.
CREATE FUNCTION stated_in_data(data jsonb,
    OUT successful boolean, OUT confidence text, OUT missing text[])
LANGUAGE sql IMMUTABLE
AS $$
    SELECT
        CASE WHEN jsonb_typeof(data->'extraction_successful') = 'boolean'
            THEN (data->>'extraction_successful')::boolean END,
        CASE WHEN data->>'confidence' IN ('high', 'medium', 'low') THEN data->>'confidence' END,
        CASE WHEN jsonb_typeof(data->'missing_fields') = 'array' THEN ARRAY(
            SELECT field #>> '{}' FROM jsonb_array_elements(data->'missing_fields') AS field
            WHERE jsonb_typeof(field) = 'string') END
$$;
COMMENT ON FUNCTION stated_in_data(jsonb) IS
    'What the earlier worker''s structured_data says of its reading.';

-- Fields of the data itself win: what the earlier worker wrote is as it wrote it.
CREATE VIEW ingestion_as_before AS
SELECT
    i.id, i.document_id, i.status, i.started_at, i.completed_at, i.attempt_count,
    i.transcription_file_path, i.transcription_quality_score, i.preprocessed_file_path,
    jsonb_strip_nulls(jsonb_build_object('extraction_successful', i.extraction_successful,
        'confidence', i.extraction_confidence, 'missing_fields', i.missing_fields))
        || i.structured_data AS structured_data,
    i.valid_structured_data, i.extraction_input_tokens, i.extraction_output_tokens,
    i.extraction_model
FROM ingestion i;
COMMENT ON VIEW ingestion_as_before IS
    'Ingestions as the earlier worker wrote them: structured_data with extraction_successful, confidence and missing_fields. For reading only.';

CREATE VIEW document_as_before AS
SELECT
    d.id, d.file_path,
    jsonb_strip_nulls(jsonb_build_object('extraction_successful', i.extraction_successful,
        'confidence', i.extraction_confidence, 'missing_fields', i.missing_fields))
        || d.structured_data AS structured_data,
    d.needs_human_review, d.updated_at
FROM document d LEFT JOIN ingestion i ON i.id = d.completed_ingestion_id;
COMMENT ON VIEW document_as_before IS
    'Documents as the earlier worker wrote them: structured_data with extraction_successful, confidence and missing_fields. For reading only.';

DO $$
DECLARE
    reading text;
BEGIN
    FOREACH reading IN ARRAY ARRAY['docmill_reader', 'docmill_operator', 'docmill_producer'] LOOP
        IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = reading) THEN
            EXECUTE format('GRANT SELECT ON ingestion_as_before, document_as_before TO %I', reading);
        END IF;
    END LOOP;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_producer') THEN
        GRANT SELECT (extraction_successful, extraction_confidence, missing_fields)
            ON ingestion TO docmill_producer;
    END IF;
END
$$;
