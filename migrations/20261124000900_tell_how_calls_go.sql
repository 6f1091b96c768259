-- How each worker's calls to providers go, for whoever looks at the whole service.

ALTER TABLE worker ADD COLUMN lanes jsonb NOT NULL DEFAULT '[]';
COMMENT ON COLUMN worker.lanes IS
    'How its calls to providers go: provider, model, in_flight, waiting, rate, breaker, denied.';
