-- A login that may update ingestions, on a view of the product's own for instance, also ends them: the
-- trigger carries the end into the document with the rights of the owner, as those beside it do.
ALTER FUNCTION update_document_from_ingestion() SECURITY DEFINER;
REVOKE ALL ON FUNCTION update_document_from_ingestion() FROM PUBLIC;
