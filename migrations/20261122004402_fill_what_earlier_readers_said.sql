-- What the earlier worker wrote into structured_data, in the columns as well. A migration of its own:
-- it reads the whole table, and locks no more than the rows that it writes, which have ended.

ALTER TABLE ingestion VALIDATE CONSTRAINT ingestion_extraction_confidence_is_known;

UPDATE ingestion i SET (extraction_successful, extraction_confidence, missing_fields) = (
    SELECT s.successful, s.confidence, s.missing FROM stated_in_data(i.structured_data) s)
WHERE i.reader IS NULL AND i.structured_data ?| ARRAY[
    'extraction_successful', 'confidence', 'missing_fields'];
