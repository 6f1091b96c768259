-- The models that share the memory of a worker's machine, for whoever looks at the whole service.

ALTER TABLE worker ADD COLUMN local_models jsonb;
COMMENT ON COLUMN worker.local_models IS
    'The models of its machine: machine, read_s, devices (name, total_mib, free_mib, held_mib) and models (model, needs_mib, state, device, running, waiting, oldest_s); null: it schedules none.';
