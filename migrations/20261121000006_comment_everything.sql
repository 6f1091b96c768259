-- What every table and column means. tests/it/schema.rs fails if one is missing.

COMMENT ON TABLE document IS
    'Bytes in the object store; carries the data of its newest completed ingestion.';
COMMENT ON COLUMN document.id IS
    'Named by ingestion.document_id; of S3 events a UUIDv5 of bucket and key.';
COMMENT ON COLUMN document.file_path IS
    'Where the original lies: a key in the configured bucket, or s3://bucket/key.';
COMMENT ON COLUMN document.structured_data IS
    'The newest completed ingestion''s data, or a person''s correction.';
COMMENT ON COLUMN document.needs_human_review IS 'A person has to look; review_reasons says why.';
COMMENT ON COLUMN document.updated_at IS 'Last change of this row.';
COMMENT ON COLUMN document.original_name IS
    'The name the file had with its sender; for display only.';
COMMENT ON COLUMN document.sha256 IS 'SHA-256 of the original in hex, once known.';
COMMENT ON COLUMN document.size_bytes IS 'Size of the original in bytes, if known.';
COMMENT ON COLUMN document.tenant IS 'On whose behalf; null: nobody in particular.';
COMMENT ON COLUMN document.tags IS 'The producer''s own labels; docmill never reads them.';
COMMENT ON COLUMN document.review_reasons IS
    'Why a person has to look: names of gate rules and reason codes.';
COMMENT ON COLUMN document.completed_ingestion_id IS 'The newest completed ingestion so far.';
COMMENT ON COLUMN document.completed_ingestion_created_at IS
    'created_at of that ingestion, kept here so that the trigger compares under the lock of this row.';
COMMENT ON COLUMN document.corrected_at IS
    'When a person corrected structured_data; from then on it is never overwritten.';
COMMENT ON COLUMN document.corrected_by IS 'Who corrected it.';
COMMENT ON COLUMN document.created_at IS 'When the row was made.';

COMMENT ON TABLE ingestion IS
    'One document''s way to structured data; its id is the body of the queue message.';
COMMENT ON COLUMN ingestion.id IS 'The body of the queue message.';
COMMENT ON COLUMN ingestion.document_id IS 'The document.';
COMMENT ON COLUMN ingestion.status IS
    'in-progress (waiting, claimed or put off), completed, failed or cancelled.';
COMMENT ON COLUMN ingestion.started_at IS
    'When the newest claim began; null: never claimed. Decides nothing: see lease_expires_at.';
COMMENT ON COLUMN ingestion.completed_at IS 'When it ended; null exactly while in-progress.';
COMMENT ON COLUMN ingestion.attempt_count IS
    'Attempts that count, raised at the claim and lowered again when an attempt is given back. All attempts are the rows of attempt.';
COMMENT ON COLUMN ingestion.transcription_file_path IS 'Key of the stored transcript.';
COMMENT ON COLUMN ingestion.transcription_quality_score IS 'The transcript''s quality, 0 to 1.';
COMMENT ON COLUMN ingestion.preprocessed_file_path IS 'Key of the repaired file, if there is one.';
COMMENT ON COLUMN ingestion.structured_data IS
    'The data: whole when completed, partial when the gate refused, else null.';
COMMENT ON COLUMN ingestion.valid_structured_data IS
    'Whether the data passed the gate; false for every failed ingestion.';
COMMENT ON COLUMN ingestion.extraction_input_tokens IS
    'Prompt tokens of the calls behind structured_data.';
COMMENT ON COLUMN ingestion.extraction_output_tokens IS 'Generated tokens of those calls.';
COMMENT ON COLUMN ingestion.extraction_model IS 'The model, if one was called.';
COMMENT ON COLUMN ingestion.created_at IS
    'When the row was made; with id as tie-break it orders a document''s ingestions.';
COMMENT ON COLUMN ingestion.updated_at IS 'Last write other than a renewal.';
COMMENT ON COLUMN ingestion.kind IS
    'Kind of document, if the producer named one or once it was recognised.';
COMMENT ON COLUMN ingestion.tenant IS 'On whose behalf; null: nobody in particular.';
COMMENT ON COLUMN ingestion.object_etag IS
    'The version of the object that an event named; the fetch must match it.';
COMMENT ON COLUMN ingestion.object_sequencer IS
    'Orders the events of one object: hex without leading zeros, the longer one is the later.';
COMMENT ON COLUMN ingestion.object_size IS 'Bytes of the object, if the event said so.';
COMMENT ON COLUMN ingestion.claim_token IS
    'Proof of the current claim, demanded by each of its writes; null: not claimed.';
COMMENT ON COLUMN ingestion.lease_expires_at IS
    'The claim lasts until then unless renewed; null: not claimed.';
COMMENT ON COLUMN ingestion.worker IS 'Who holds or last held the claim.';
COMMENT ON COLUMN ingestion.stage IS 'How far the newest claim has come; informational.';
COMMENT ON COLUMN ingestion.claims IS 'Number of claims ever; only grows; key of attempt.';
COMMENT ON COLUMN ingestion.attempt_limit IS
    '8, raised by every reopening to attempt_count + 8: used attempts are attempt_count - (attempt_limit - 8).';
COMMENT ON COLUMN ingestion.crashes IS
    'Claims since the last reopening that ended without a word; above 0 the document is a suspect.';
COMMENT ON COLUMN ingestion.next_attempt_at IS 'Not due before; null: due.';
COMMENT ON COLUMN ingestion.deferred_since IS
    'Start of the current streak of deferrals; null: none.';
COMMENT ON COLUMN ingestion.enqueued_at IS 'When a message for it was last sent, as far as known.';
COMMENT ON COLUMN ingestion.resends IS 'How often the janitor has sent it again.';
COMMENT ON COLUMN ingestion.reason IS 'Why it failed or was cancelled; null otherwise.';
COMMENT ON COLUMN ingestion.detail IS
    'What an operator reads about the newest end of an attempt; never document content.';
COMMENT ON COLUMN ingestion.needs_human_review IS 'A person has to look at the result.';
COMMENT ON COLUMN ingestion.review_reasons IS 'Why: names of gate rules and reason codes.';
COMMENT ON COLUMN ingestion.reader IS 'Which reader produced the data: einvoice, llm or rules.';
COMMENT ON COLUMN ingestion.sha256 IS 'SHA-256 of the original in hex, once it was read.';
COMMENT ON COLUMN ingestion.pages IS 'Pages read.';
COMMENT ON COLUMN ingestion.transcription_identity IS
    'SHA-256 over everything that determines the transcript; reused only if equal.';
COMMENT ON COLUMN ingestion.extraction_output_file_path IS 'Key of the stored model reply.';
COMMENT ON COLUMN ingestion.extraction_identity IS
    'SHA-256 over everything that determines the reply; reused only if equal.';
COMMENT ON COLUMN ingestion.duplicate_key IS
    'SHA-256 of supplier and invoice number (folded) of a completed invoice, to find it again.';

COMMENT ON TABLE attempt IS
    'One claim and how it ended; written when it ends.';
COMMENT ON COLUMN attempt.ingestion_id IS 'The ingestion.';
COMMENT ON COLUMN attempt.claims IS 'ingestion.claims at the claim.';
COMMENT ON COLUMN attempt.token IS 'The claim''s token.';
COMMENT ON COLUMN attempt.worker IS 'Who held it.';
COMMENT ON COLUMN attempt.started_at IS 'When it was claimed.';
COMMENT ON COLUMN attempt.ended_at IS
    'When the end was written; of a crash, when the next claim found it.';
COMMENT ON COLUMN attempt.stage IS 'How far it came.';
COMMENT ON COLUMN attempt.outcome IS
    'completed, a reason code, or the fault that another attempt follows.';
COMMENT ON COLUMN attempt.final IS 'Whether the ingestion ended with it.';
COMMENT ON COLUMN attempt.counted IS 'Whether it counts against the limit, or was given back.';
COMMENT ON COLUMN attempt.next_attempt_at IS 'Not due again before, if another attempt follows.';
COMMENT ON COLUMN attempt.model IS 'The model, if one was called.';
COMMENT ON COLUMN attempt.input_tokens IS 'Prompt tokens spent.';
COMMENT ON COLUMN attempt.output_tokens IS 'Generated tokens spent.';
COMMENT ON COLUMN attempt.detail IS 'What an operator reads; never document content.';

COMMENT ON TABLE quarantined_message IS
    'Messages that are not ours, kept for a person.';
COMMENT ON COLUMN quarantined_message.message_id IS 'The queue''s id of the message.';
COMMENT ON COLUMN quarantined_message.body IS 'The body, cut to 64 KiB.';
COMMENT ON COLUMN quarantined_message.reason IS 'malformed or unknown_ingestion.';
COMMENT ON COLUMN quarantined_message.receive_count IS 'How often it was received.';
COMMENT ON COLUMN quarantined_message.quarantined_at IS 'When it was put here.';

COMMENT ON TABLE operator_action IS
    'Who did what, why, and the state before.';
COMMENT ON COLUMN operator_action.id IS 'Order of the actions.';
COMMENT ON COLUMN operator_action.done_at IS 'When.';
COMMENT ON COLUMN operator_action.operator IS 'Who.';
COMMENT ON COLUMN operator_action.action IS 'What.';
COMMENT ON COLUMN operator_action.target IS
    'An ingestion id, a SHA-256, or the scope and name of a pause.';
COMMENT ON COLUMN operator_action.why IS 'The operator''s words.';
COMMENT ON COLUMN operator_action.before IS 'The state before.';

COMMENT ON TABLE pause IS
    'What operators have paused; every worker obeys within seconds.';
COMMENT ON COLUMN pause.scope IS 'all, kind, tenant or provider.';
COMMENT ON COLUMN pause.name IS 'Which one; empty for all.';
COMMENT ON COLUMN pause.paused_at IS 'Since when.';
COMMENT ON COLUMN pause.paused_by IS 'By whom.';
COMMENT ON COLUMN pause.why IS 'The operator''s words.';

COMMENT ON TABLE blocked_content IS
    'Content that is cancelled unread.';
COMMENT ON COLUMN blocked_content.sha256 IS 'SHA-256 of the original, in hex.';
COMMENT ON COLUMN blocked_content.blocked_at IS 'Since when.';
COMMENT ON COLUMN blocked_content.blocked_by IS 'By whom.';
COMMENT ON COLUMN blocked_content.why IS 'The operator''s words.';

COMMENT ON TABLE worker IS
    'Workers that live or lived lately.';
COMMENT ON COLUMN worker.id IS 'Unique per process.';
COMMENT ON COLUMN worker.started_at IS 'When it was first seen.';
COMMENT ON COLUMN worker.seen_at IS 'When it was last seen.';
COMMENT ON COLUMN worker.slots IS 'Jobs it may run at the same time.';
COMMENT ON COLUMN worker.slots_used IS 'Jobs it runs.';
COMMENT ON COLUMN worker.receipt_sent_at IS
    'Send time of the newest message that it received for the first time lately.';
COMMENT ON COLUMN worker.receipt_noted_at IS 'When that was noted.';

COMMENT ON TABLE maintenance_lease IS
    'Who leads a kind of maintenance.';
COMMENT ON COLUMN maintenance_lease.name IS 'The kind of maintenance.';
COMMENT ON COLUMN maintenance_lease.holder IS 'The worker that leads it.';
COMMENT ON COLUMN maintenance_lease.expires_at IS 'Until then, unless renewed.';

