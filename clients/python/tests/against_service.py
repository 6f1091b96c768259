"""The client against a running service: every call, and how refusals come. Started by docmill's tests
(tests/it/web/clients.rs), which say by the environment where it is and what lies there."""

import os
from pathlib import Path
from uuid import UUID, uuid4

from docmill_api import ApiClient, ApiProblem, IngestionState, StillOpen

client = ApiClient(os.environ["DOCMILL_URL"], os.environ["OPERATOR"])
viewer = ApiClient(os.environ["DOCMILL_URL"], os.environ["VIEWER"])
document, rejected, waiting = (UUID(os.environ[name]) for name in ("DOCUMENT", "REJECTED", "OPEN"))


def refusal(call, *arguments, **named):
    try:
        done = call(*arguments, **named)
    except ApiProblem as problem:
        assert problem.status >= 400 and problem.detail, problem
        return problem.code
    raise AssertionError(f"not refused: {done}")


first = client.list_ingestions(limit=2)
second = client.list_ingestions(limit=2, cursor=first.next_cursor)
assert (len(first.items), len(second.items), second.next_cursor) == (2, 1, None), (first, second)
assert {one.id for one in client.iterate_ingestions()} == {one.id for one in first.items + second.items}
failed = client.list_ingestions(status=IngestionState.FAILED, reason="gate_refused").items
assert len(failed) == 2 and failed[0].review_reasons, failed

try:
    client.wait_for_end(waiting, 0.01)
    raise AssertionError("an open ingestion has ended")
except StillOpen:
    pass
assert client.cancel_ingestion(waiting, "not ours").change == "cancelled"
ended = client.wait_for_end(waiting, 60)
assert ended.status is IngestionState.CANCELLED and ended.status.has_ended, ended
assert client.retry_ingestion(waiting).change == "reopened"
assert refusal(client.load_result, waiting) == "conflict"

(queued,) = client.list_reviews(tenant="acme").items
assert queued.document_id == document and queued.since.tzinfo is not None, queued
seen = client.open_review(document)
assert seen.ingestion_data["total"] == 21.0, seen
done = client.correct_review(seen, {"total": 13.0}, why="by the paper")
assert (done.decision, done.data["total"]) == ("corrected", 13.0), done
assert refusal(client.accept_review, seen) == "version_changed"
assert client.undo_decision(document).decision == "undone"
seen = client.open_review(document)
assert refusal(client.replace_review, seen, {"nonsense": 1}) == "refused"
assert client.accept_review(seen, newest=True).data["total"] == 21.0
listed = client.list_reviews(tenant="rival").items
assert refusal(client.reject_reviews, listed, " ") == "refused"
assert [one.end for one in client.reject_reviews(listed, "a letter")] == ["rejected"]
assert [one.end for one in client.reject_reviews(listed, "a letter")] == ["changed"], "as it was seen"
(undone,) = client.undo_decisions([listed[0].document_id])
assert undone.end == "undone" and [one.end for one in client.undo_decisions([uuid4()])] == ["missing"], undone
listed = client.list_reviews(tenant="rival").items
(again,) = client.reject_reviews(listed, "a letter")
assert again.end == "rejected" and again.undo_until > listed[0].since, again
assert [one.data["total"] for one in client.export_ingestions("invoice", tenant="acme").items] == [21.0]
changed = client.change_ingestions([waiting], "cancel", "not ours")
assert [one.change for one in changed.items] == ["cancelled"] and changed.next_cursor is None, changed
changed = client.change_matching(IngestionState.CANCELLED, "retry", tenant="acme")
assert [one.change for one in changed.items] == ["reopened"], changed

bytes_of_it = Path(os.environ["FILE"]).read_bytes()
receipt = client.submit_document(bytes_of_it, "a é&b.pdf", kind="invoice", tenant="acme", idempotency_key="k")
assert receipt.fate == "submitted" and receipt.status is IngestionState.IN_PROGRESS, receipt
found = client.find_ingestion(receipt.ingestion_id)
assert (found.original_name, found.kind, found.tenant) == ("a é&b.pdf", "invoice", "acme"), found
assert found.raw["stage"] is None and found.attempts == (), found
assert client.submit_document(bytes_of_it, "other.pdf", tenant="acme").fate == "known"
assert refusal(client.submit_document, bytes_of_it, "b.pdf", idempotency_key="k") == "idempotency_key_reused"
assert refusal(client.submit_document, b"no document\0", "a.pdf") == "refused"
assert refusal(client.submit_document, bytes_of_it, "a.pdf", kind="nonsense") == "bad_request"
assert refusal(client.find_ingestion, uuid4()) == "not_found"
assert refusal(client.load_transcript, receipt.ingestion_id) == "conflict"
assert refusal(viewer.retry_ingestion, waiting) == "forbidden"
assert refusal(ApiClient(os.environ["DOCMILL_URL"], "unknown").list_reviews) == "unauthorized"
assert "unknown" not in repr(ApiClient("http://127.0.0.1:1", "unknown")), "a token is shown"
