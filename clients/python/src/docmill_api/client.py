"""The calls. Blocking, one connection per call; an :class:`ApiClient` may be used by many threads."""

from __future__ import annotations

import http.client
import ipaddress
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any
from urllib.parse import urlencode, urlsplit
from uuid import UUID, uuid4

from .answers import (
    ChangePage,
    ChangeReceipt,
    DecisionReceipt,
    EndedResult,
    ExportPage,
    Ingestion,
    IngestionPage,
    IngestionState,
    JsonObject,
    OpenReview,
    QueuedReview,
    RejectionReceipt,
    ReviewPage,
    UndoReceipt,
    UploadReceipt,
    read_objects,
)
from .failures import ApiFailure, ApiProblem, StillOpen, Unreachable, UnreadableAnswer

#: Longest that the service is asked to wait for the end of an ingestion, in seconds.
MAX_WAIT_SECONDS = 20
#: Pause after the first failure, where the service names none; doubled after each further one.
FIRST_PAUSE = 0.5
#: A longer answer is no transcript of docmill's; bytes.
MAX_ANSWER_BYTES = 256 << 20


@dataclass(frozen=True)
class RetryPace:
    """How often a call is made, and how long a pause may be (seconds). A pause is the service's
    `Retry-After`, or grows from half a second, a quarter of it taken off by chance."""

    tries: int = 5
    longest_pause: float = 60.0

    def next_pause(self, failed: int, told: float | None, chance: float) -> float | None:
        """The pause after so many failed calls; `None` if that was the last."""
        if failed >= self.tries:
            return None
        if told is not None:
            return told if told <= self.longest_pause else None
        doubled = FIRST_PAUSE * 2.0 ** min(failed - 1, 16)
        return min(doubled, self.longest_pause) * (1.0 - chance / 4.0)


@dataclass(frozen=True)
class _Answer:
    headers: Message
    body: bytes


class _FailedTry(Exception):
    """How one sending of a call went wrong, and whether another may fare better."""

    def __init__(self, failure: ApiFailure, may_pass: bool, told: float | None = None) -> None:
        super().__init__()
        self.failure, self.may_pass, self.told = failure, may_pass, told


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token is for this service and no other."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        return None


class ApiClient:
    """A service of docmill, and the token that it knows its caller by.

    `address` is where the pages of `docmill web` are, e.g. `https://ops.example.com/docmill`;
    `timeout` is for each step of a call (connect, send, read), in seconds.
    """

    def __init__(
        self, address: str, token: str, *, pace: RetryPace | None = None, timeout: float = 35.0
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the address is no http or https address")
        if not token or not token.isascii() or not token.isprintable():
            raise ValueError("the token has characters that cannot be sent")
        self._base = address.rstrip("/") + "/api/v1"
        self._token = token
        self._pace = pace or RetryPace()
        self._timeout = timeout
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if _is_loopback(parts.hostname):
            # A proxy would look for it on its own machine.
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def __repr__(self) -> str:
        return f"ApiClient({self._base!r})"

    def submit_document(
        self,
        document: bytes,
        name: str,
        *,
        kind: str | None = None,
        tenant: str | None = None,
        priority: str | None = None,
        idempotency_key: str | None = None,
    ) -> UploadReceipt:
        """Hands a document in. The same bytes of a tenant are one document: handed in again, its
        receipt names the ingestion that is there. The same request under an `idempotency_key` (1 to
        200 plain signs) is answered the same for a day; without one it is made for this call."""
        asked = {"name": name, "kind": kind, "tenant": tenant, "priority": priority}
        headers = {
            "Idempotency-Key": idempotency_key or str(uuid4()),
            "Content-Type": "application/octet-stream",
        }
        return UploadReceipt.read(self._ask("POST", "/documents", asked, document, headers))

    def find_ingestion(self, id: UUID) -> Ingestion:
        """How an ingestion stands; of a document's id, its newest."""
        return Ingestion.read(self._ask("GET", f"/ingestions/{id}"))

    def wait_for_end(self, id: UUID, within: float) -> Ingestion:
        """Waits until an ingestion has ended; `StillOpen` after so many seconds. It goes on."""
        until = time.monotonic() + within
        while True:
            left = max(0.0, until - time.monotonic())
            # Whole seconds, rounded up: less than one would be asked for over and over.
            wait = min(int(-(-left // 1)), MAX_WAIT_SECONDS)
            found = Ingestion.read(self._ask("GET", f"/ingestions/{id}", {"wait": str(wait)}))
            if found.status.has_ended:
                return found
            if left == 0.0:
                raise StillOpen(f"ingestion {id} has not ended within {within} s")

    def load_result(self, id: UUID) -> EndedResult:
        """Loads the result of an ended ingestion."""
        return EndedResult.read(self._ask("GET", f"/ingestions/{id}/result"))

    def load_transcript(self, id: UUID) -> JsonObject:
        """The text of an ingestion's pages with boxes and confidences (docs/reference/transcripts.md)."""
        return self._ask("GET", f"/ingestions/{id}/transcript")

    def list_ingestions(
        self,
        *,
        status: IngestionState | None = None,
        reason: str | None = None,
        kind: str | None = None,
        tenant: str | None = None,
        since: str | None = None,
        cursor: UUID | None = None,
        limit: int | None = None,
    ) -> IngestionPage:
        """A page of ingestions, newest first; `since` is a time such as `2h`."""
        asked = {
            "status": None if status is None else status.value,
            "reason": reason,
            "kind": kind,
            "tenant": tenant,
            "since": since,
            "cursor": None if cursor is None else str(cursor),
            "limit": None if limit is None else str(limit),
        }
        return IngestionPage.read(self._ask("GET", "/ingestions", asked))

    def iterate_ingestions(
        self,
        *,
        status: IngestionState | None = None,
        reason: str | None = None,
        kind: str | None = None,
        tenant: str | None = None,
        since: str | None = None,
    ) -> Iterator[Ingestion]:
        """Every ingestion, page by page as they are asked for."""
        cursor: UUID | None = None
        while True:
            page = self.list_ingestions(
                status=status, reason=reason, kind=kind, tenant=tenant, since=since, cursor=cursor
            )
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def retry_ingestion(self, id: UUID, why: str = "") -> ChangeReceipt:
        """Works on an ingestion once more."""
        return ChangeReceipt.read(self._post(f"/ingestions/{id}/retry", {"why": why}))

    def cancel_ingestion(self, id: UUID, why: str = "") -> ChangeReceipt:
        """Withdraws an ingestion that has not ended."""
        return ChangeReceipt.read(self._post(f"/ingestions/{id}/cancel", {"why": why}))

    def change_ingestions(self, ids: Sequence[UUID], change: str, why: str = "") -> ChangePage:
        """Changes up to 500 ingestions: `retry`, `cancel` or a priority."""
        body = {"change": change, "ids": [str(id) for id in ids], "why": why}
        return ChangePage.read(self._post("/ingestions/change", body))

    def change_matching(
        self,
        status: IngestionState,
        change: str,
        *,
        reason: str | None = None,
        kind: str | None = None,
        tenant: str | None = None,
        since: str | None = None,
        cursor: UUID | None = None,
        why: str = "",
    ) -> ChangePage:
        """The same of the 500 newest that match; the next with `next_cursor` as `cursor`."""
        named = {"status": status.value, "reason": reason, "kind": kind, "tenant": tenant, "since": since}
        body: dict[str, Any] = {"change": change, "why": why}
        body["filter"] = {name: value for name, value in named.items() if value is not None}
        body["cursor"] = None if cursor is None else str(cursor)
        return ChangePage.read(self._post("/ingestions/change", body))

    def export_ingestions(
        self,
        kind: str,
        *,
        status: IngestionState | None = None,
        tenant: str | None = None,
        since: str | None = None,
        cursor: UUID | None = None,
    ) -> ExportPage:
        """The data of up to 500 documents of a kind, as people decided it or else as it was read."""
        asked = {
            "form": "json",
            "kind": kind,
            "status": None if status is None else status.value,
            "tenant": tenant,
            "since": since,
            "cursor": None if cursor is None else str(cursor),
        }
        return ExportPage.read(self._ask("GET", "/ingestions/export", asked))

    def list_reviews(
        self,
        *,
        reason: str | None = None,
        kind: str | None = None,
        tenant: str | None = None,
        cursor: UUID | None = None,
        limit: int | None = None,
    ) -> ReviewPage:
        """A page of what waits for a person, longest first."""
        asked = {
            "reason": reason,
            "kind": kind,
            "tenant": tenant,
            "cursor": None if cursor is None else str(cursor),
            "limit": None if limit is None else str(limit),
        }
        return ReviewPage.read(self._ask("GET", "/reviews", asked))

    def open_review(self, document_id: UUID) -> OpenReview:
        """A document as a reviewer sees it, in the version that a decision is then about."""
        answer = self._send("GET", f"/reviews/{document_id}", {}, None, {})
        version = answer.headers.get("ETag")
        if version is None:
            raise UnreadableAnswer("a review without its version")
        return OpenReview.read(_read_json(answer.body), version)

    def accept_review(
        self, review: OpenReview, *, newest: bool = False, why: str = "", take_over: bool = False
    ) -> DecisionReceipt:
        """Confirms the document's data; with `newest` those of its newest ingestion.

        `version_changed`: somebody was faster, or this very call had been done before its answer was
        lost: open it again. The same for the other decisions."""
        return self._decide(review, {"decision": "accepted", "newest": newest}, why, take_over)

    def correct_review(
        self, review: OpenReview, fields: Mapping[str, Any], *, why: str = "", take_over: bool = False
    ) -> DecisionReceipt:
        """These fields are right so, `None` for none; the others stay."""
        return self._decide(review, {"decision": "corrected", "fields": dict(fields)}, why, take_over)

    def replace_review(
        self, review: OpenReview, data: Mapping[str, Any], *, why: str = "", take_over: bool = False
    ) -> DecisionReceipt:
        """This is the whole data."""
        return self._decide(review, {"decision": "corrected", "data": dict(data)}, why, take_over)

    def reject_review(
        self, review: OpenReview, why: str, *, take_over: bool = False
    ) -> DecisionReceipt:
        """The document is of no use."""
        return self._decide(review, {"decision": "rejected"}, why, take_over)

    def reject_reviews(self, listed: Sequence[QueuedReview], why: str) -> tuple[RejectionReceipt, ...]:
        """Rejects up to 200 documents as they were listed; what changed since is left as it is."""
        seen = [{"document_id": str(one.document_id), "version": one.since.isoformat()} for one in listed]
        done = self._post("/reviews/reject", {"documents": seen, "why": why})
        return tuple(RejectionReceipt.read(one) for one in read_objects(done, "items"))

    def undo_decision(self, document_id: UUID) -> DecisionReceipt:
        """Takes back what this token decided last about a document, while that can be undone."""
        return DecisionReceipt.read(self._post(f"/reviews/{document_id}/undo", {}))

    def undo_decisions(self, documents: Sequence[UUID], why: str = "") -> tuple[UndoReceipt, ...]:
        """Takes back what this token decided last about up to 200 documents, e.g. one rejection of
        them all; what changed since is left as it is."""
        done = self._post("/reviews/undo", {"documents": [str(one) for one in documents], "why": why})
        return tuple(UndoReceipt.read(one) for one in read_objects(done, "items"))

    def _decide(
        self, review: OpenReview, choice: dict[str, Any], why: str, take_over: bool
    ) -> DecisionReceipt:
        body = choice | {"why": why, "take_over": take_over}
        path = f"/reviews/{review.document_id}/decision"
        return DecisionReceipt.read(self._post(path, body, {"If-Match": review.version}))

    def _post(
        self, path: str, body: JsonObject, headers: Mapping[str, str] | None = None
    ) -> JsonObject:
        more = {"Content-Type": "application/json"} | dict(headers or {})
        return self._ask("POST", path, {}, json.dumps(body).encode(), more)

    def _ask(
        self,
        method: str,
        path: str,
        asked: Mapping[str, str | None] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        return _read_json(self._send(method, path, asked or {}, body, headers or {}).body)

    def _send(
        self,
        method: str,
        path: str,
        asked: Mapping[str, str | None],
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> _Answer:
        """Sends a call until it is answered, or the pace says that it was the last time."""
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        url = self._base + path + (f"?{query}" if query else "")
        whole = {"Authorization": f"Bearer {self._token}", "User-Agent": "docmill-api/0.1.0", **headers}
        failed = 0
        while True:
            request = urllib.request.Request(url, data=body, headers=whole, method=method)
            try:
                return self._send_once(request)
            except _FailedTry as tried:
                failed += 1
                pause = self._pace.next_pause(failed, tried.told, random.random())
                if pause is None or not tried.may_pass:
                    raise tried.failure from tried.__cause__
            time.sleep(pause)

    def _send_once(self, request: urllib.request.Request) -> _Answer:
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return _Answer(response.headers, _read_capped(response))
        except urllib.error.HTTPError as refused:
            with refused:
                told = _read_pause(refused.headers.get("Retry-After"))
                raise _FailedTry(_read_problem(refused), refused.code in (429, 503), told) from None
        except (OSError, http.client.HTTPException) as error:
            raise _FailedTry(Unreachable(f"the service does not answer: {error}"), True) from error


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read_pause(header: str | None) -> float | None:
    """The pause that a `Retry-After` names in seconds; its other form, a date, docmill never sends."""
    text = (header or "").strip()
    return float(text) if text.isascii() and text.isdigit() else None


def _read_capped(response: IO[bytes]) -> bytes:
    body = response.read(MAX_ANSWER_BYTES + 1)
    if len(body) > MAX_ANSWER_BYTES:
        raise _FailedTry(UnreadableAnswer("an answer that is too long"), False)
    return body


def _read_problem(refused: urllib.error.HTTPError) -> ApiFailure:
    try:
        problem = json.loads(refused.read(1 << 20))
        return ApiProblem(int(problem["status"]), str(problem["code"]), str(problem["detail"]))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return UnreadableAnswer(f"status {refused.code}")


def _read_json(body: bytes) -> JsonObject:
    try:
        value = json.loads(body)
    except ValueError:
        raise UnreadableAnswer("no JSON") from None
    if not isinstance(value, dict):
        raise UnreadableAnswer("no object")
    return value
