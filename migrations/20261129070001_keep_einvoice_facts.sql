-- Facts of an e-invoice beside its data: the verdict of official rules, and the parts that an answer
-- to its sender names. The release before neither writes nor reads them.

ALTER TABLE ingestion
    ADD COLUMN einvoice_rules jsonb,
    ADD COLUMN einvoice_reference jsonb;

COMMENT ON COLUMN ingestion.einvoice_rules IS
    'Official rules that the e-invoice breaks, and the sets it was checked by; null: it was checked by none.';
COMMENT ON COLUMN ingestion.einvoice_reference IS
    'Number, date, code and parties of the e-invoice, as an answer to its sender names them; null: neither UBL nor CII.';
