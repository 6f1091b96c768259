-- What a person has to mend has words of its own: a provider that denies us, a setting that is
-- wrong, an operator's pause. Until now all three were `unavailable`, like an outage.

ALTER TABLE attempt DROP CONSTRAINT attempt_outcome_is_known;
ALTER TABLE attempt ADD CONSTRAINT attempt_outcome_is_known CHECK (outcome IN (
    'completed',
    'corrupt', 'encrypted', 'empty', 'unsupported_type', 'too_large', 'timeout', 'no_text',
    'gate_refused', 'cut', 'model_refused', 'crashed', 'missing', 'internal', 'transient',
    'deferred_too_long', 'superseded', 'cancelled', 'blocked',
    'throttled', 'unavailable', 'denied', 'misconfigured', 'paused', 'over_budget', 'rejected',
    'interrupted')) NOT VALID;
ALTER TABLE attempt VALIDATE CONSTRAINT attempt_outcome_is_known;
