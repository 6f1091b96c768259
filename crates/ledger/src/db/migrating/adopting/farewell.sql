-- The earlier workers are gone: what they wrote is as anybody's, and what they held is free.
DROP TRIGGER IF EXISTS heed_earlier_worker ON ingestion;
DROP FUNCTION IF EXISTS heed_earlier_worker();
UPDATE ingestion SET claim_token = NULL, lease_expires_at = NULL
WHERE status = 'in-progress' AND worker = 'earlier worker' AND claim_token IS NOT NULL;
