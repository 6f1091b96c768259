-- The path has been there since the earlier system; the content behind it is told by its hash.

ALTER TABLE ingestion ADD COLUMN IF NOT EXISTS preprocessed_sha256 text;
COMMENT ON COLUMN ingestion.preprocessed_file_path IS
    'Key of the repaired pages, if a reading came from one: preprocessed.pdf, or an image.';
COMMENT ON COLUMN ingestion.preprocessed_sha256 IS 'SHA-256 of the repaired file, in hex.';
