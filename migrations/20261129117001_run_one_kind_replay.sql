-- One replay of a kind runs at a time, held by Postgres: two workers that claim at once see nothing of
-- each other. The worker of the release before gets an error in its log, and asks again.
UPDATE kind_replay SET state = 'failed', ended_at = docmill_now(), lease_until = NULL,
    problem = 'Another one ran at the same time. Ask for it again.'
WHERE state = 'running' AND id <> (SELECT id FROM kind_replay WHERE state = 'running'
    ORDER BY started_at DESC, id LIMIT 1);
CREATE UNIQUE INDEX kind_replay_running ON kind_replay ((true)) WHERE state = 'running';

-- Replays pay models too. Their rows are beside those of the attempts: they count in the day, and not in
-- the budget of the document.
COMMENT ON COLUMN spending.claims IS 'In which attempt: attempt.claims; 0: in a replay of a kind.';
