-- A worker's death accuses all documents that it had in hand and convicts none: a suspect is claimed
-- alone, and only a death while it is alone counts. The release before reads none of these columns;
-- what it counts in ingestion.crashes convicts nobody here, because it leaves accused_at empty.

ALTER TABLE ingestion
    ADD COLUMN accused_at timestamptz,
    ADD COLUMN alone_claim bigint;
ALTER TABLE attempt
    ADD COLUMN alone boolean NOT NULL DEFAULT false;

COMMENT ON COLUMN ingestion.accused_at IS
    'Since when it is a suspect: the end of the lease of a worker that fell silent with it in hand; null: it is none. Progress clears it.';
COMMENT ON COLUMN ingestion.alone_claim IS
    'The claim (a number of claims) whose worker has nothing else in hand; null: none.';
COMMENT ON COLUMN ingestion.crashes IS
    'Claims since the last reopening or progress that ended without a word, of a worker that had nothing else in hand.';
COMMENT ON COLUMN attempt.alone IS
    'Whether its worker had nothing else in hand. What becomes of such attempts tells a document that kills workers from workers that die.';
