"""Answers of the service. Fields that a later service adds are ignored; `raw` has the whole answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

from .failures import UnreadableAnswer

JsonObject = Mapping[str, Any]


class IngestionState(str, Enum):
    """Where an ingestion stands."""

    IN_PROGRESS = "in-progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def has_ended(self) -> bool:
        """Whether nothing more happens to it by itself."""
        return self is not IngestionState.IN_PROGRESS


def read_text(row: JsonObject, name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise UnreadableAnswer(f"no text `{name}`")
    return value


def read_optional_text(row: JsonObject, name: str) -> str | None:
    return None if row.get(name) is None else read_text(row, name)


def read_flag(row: JsonObject, name: str) -> bool:
    value = row.get(name)
    if not isinstance(value, bool):
        raise UnreadableAnswer(f"no yes or no `{name}`")
    return value


def read_number(row: JsonObject, name: str) -> int:
    value = row.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnreadableAnswer(f"no number `{name}`")
    return value


def read_texts(row: JsonObject, name: str) -> tuple[str, ...]:
    value = row.get(name)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise UnreadableAnswer(f"no texts `{name}`")
    return tuple(value)


def read_id(row: JsonObject, name: str) -> UUID:
    try:
        return UUID(read_text(row, name))
    except ValueError:
        raise UnreadableAnswer(f"no id `{name}`") from None


def read_optional_id(row: JsonObject, name: str) -> UUID | None:
    return None if row.get(name) is None else read_id(row, name)


def read_time(row: JsonObject, name: str) -> datetime:
    # Python before 3.11 knows neither `Z` nor more than six digits of a second.
    text = read_text(row, name).replace("Z", "+00:00")
    seconds, point, rest = text.partition(".")
    if point:
        digits = len(rest) - len(rest.lstrip("0123456789"))
        text = f"{seconds}.{rest[:digits][:6]:0<6}{rest[digits:]}"
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise UnreadableAnswer(f"no time `{name}`") from None


def read_optional_time(row: JsonObject, name: str) -> datetime | None:
    return None if row.get(name) is None else read_time(row, name)


def read_state(row: JsonObject, name: str) -> IngestionState:
    try:
        return IngestionState(read_text(row, name))
    except ValueError:
        raise UnreadableAnswer(f"no state `{name}`") from None


def read_objects(row: JsonObject, name: str) -> tuple[JsonObject, ...]:
    value = row.get(name)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise UnreadableAnswer(f"no list `{name}`")
    return tuple(value)


@dataclass(frozen=True)
class UploadReceipt:
    """A document that was handed in."""

    #: The document: the same one for the same bytes of a tenant.
    document_id: UUID
    #: The id to wait for and to ask about.
    ingestion_id: UUID
    #: `submitted`, or what else became of it, such as `known`.
    fate: str
    #: Where the ingestion stands.
    status: IngestionState | None

    @classmethod
    def read(cls, row: JsonObject) -> UploadReceipt:
        status = None if row.get("status") is None else read_state(row, "status")
        return cls(read_id(row, "document_id"), read_id(row, "ingestion_id"), read_text(row, "fate"), status)


@dataclass(frozen=True)
class Attempt:
    """One attempt at an ingestion."""

    claims: int
    ended_at: datetime
    outcome: str
    detail: str | None

    @classmethod
    def read(cls, row: JsonObject) -> Attempt:
        return cls(
            read_number(row, "claims"),
            read_time(row, "ended_at"),
            read_text(row, "outcome"),
            read_optional_text(row, "detail"),
        )


@dataclass(frozen=True)
class Ingestion:
    """How an ingestion stands."""

    id: UUID
    document_id: UUID
    status: IngestionState
    #: Why it ended, if not completed; `detail` has it in words.
    reason: str | None
    detail: str | None
    kind: str | None
    tenant: str | None
    original_name: str | None
    created_at: datetime
    completed_at: datetime | None
    #: How often it was begun, as counted against its limit.
    attempt_count: int
    needs_human_review: bool
    review_reasons: tuple[str, ...]
    #: The data read, by the fields of its kind.
    structured_data: Any
    #: Its attempts, oldest first; none in lists.
    attempts: tuple[Attempt, ...]
    #: Everything that the service said of it, as docs/reference/json.md names it.
    raw: JsonObject

    @classmethod
    def read(cls, row: JsonObject) -> Ingestion:
        attempts = read_objects(row, "attempts") if "attempts" in row else ()
        return cls(
            id=read_id(row, "id"),
            document_id=read_id(row, "document_id"),
            status=read_state(row, "status"),
            reason=read_optional_text(row, "reason"),
            detail=read_optional_text(row, "detail"),
            kind=read_optional_text(row, "kind"),
            tenant=read_optional_text(row, "tenant"),
            original_name=read_optional_text(row, "original_name"),
            created_at=read_time(row, "created_at"),
            completed_at=read_optional_time(row, "completed_at"),
            attempt_count=read_number(row, "attempt_count"),
            needs_human_review=read_flag(row, "needs_human_review"),
            review_reasons=read_texts(row, "review_reasons"),
            structured_data=row.get("structured_data"),
            attempts=tuple(Attempt.read(one) for one in attempts),
            raw=row,
        )


@dataclass(frozen=True)
class IngestionPage:
    """A page of ingestions, newest first."""

    items: tuple[Ingestion, ...]
    #: The cursor of the next page; `None` behind the last.
    next_cursor: UUID | None

    @classmethod
    def read(cls, row: JsonObject) -> IngestionPage:
        items = tuple(Ingestion.read(one) for one in read_objects(row, "items"))
        return cls(items, read_optional_id(row, "next_cursor"))


@dataclass(frozen=True)
class EndedResult:
    """The result of an ingestion, and the data of its document."""

    ingestion_id: UUID
    document_id: UUID
    status: IngestionState
    reason: str | None
    #: The data of this ingestion; of a refused one a part, perhaps.
    data: Any
    #: The document's data now: of its newest completed ingestion, or as a person corrected it.
    document_data: Any
    needs_human_review: bool
    review_reasons: tuple[str, ...]

    @classmethod
    def read(cls, row: JsonObject) -> EndedResult:
        return cls(
            ingestion_id=read_id(row, "ingestion_id"),
            document_id=read_id(row, "document_id"),
            status=read_state(row, "status"),
            reason=read_optional_text(row, "reason"),
            data=row.get("data"),
            document_data=row.get("document_data"),
            needs_human_review=read_flag(row, "needs_human_review"),
            review_reasons=read_texts(row, "review_reasons"),
        )


@dataclass(frozen=True)
class ChangeReceipt:
    """The change of an ingestion."""

    ingestion_id: UUID
    #: The change, e.g. `reopened` or `cancelled`.
    change: str
    #: Why nothing was done, for people.
    problem: str | None

    @classmethod
    def read(cls, row: JsonObject) -> ChangeReceipt:
        return cls(read_id(row, "ingestion_id"), read_text(row, "change"), read_optional_text(row, "problem"))


@dataclass(frozen=True)
class ChangePage:
    """The changes of several ingestions."""

    items: tuple[ChangeReceipt, ...]
    #: The cursor of the next request; `None`: no more match.
    next_cursor: UUID | None

    @classmethod
    def read(cls, row: JsonObject) -> ChangePage:
        items = tuple(ChangeReceipt.read(one) for one in read_objects(row, "items"))
        return cls(items, read_optional_id(row, "next_cursor"))


@dataclass(frozen=True)
class ExportedDocument:
    """The data of a document, as a person decided it or else as it was read."""

    ingestion_id: UUID
    document_id: UUID
    needs_human_review: bool
    data: Any
    #: Everything that the service said of it.
    raw: JsonObject

    @classmethod
    def read(cls, row: JsonObject) -> ExportedDocument:
        return cls(
            ingestion_id=read_id(row, "ingestion_id"),
            document_id=read_id(row, "document_id"),
            needs_human_review=read_flag(row, "needs_human_review"),
            data=row.get("data"),
            raw=row,
        )


@dataclass(frozen=True)
class ExportPage:
    """Data of documents, newest first."""

    items: tuple[ExportedDocument, ...]
    #: The cursor of the next page; `None` behind the last.
    next_cursor: UUID | None

    @classmethod
    def read(cls, row: JsonObject) -> ExportPage:
        items = tuple(ExportedDocument.read(one) for one in read_objects(row, "items"))
        return cls(items, read_optional_id(row, "next_cursor"))


@dataclass(frozen=True)
class RejectionReceipt:
    """The rejection of one document of several."""

    document_id: UUID
    #: `rejected`, or `changed`, `held` or `missing`: nothing was written.
    end: str
    #: Until when it can be undone.
    undo_until: datetime | None

    @classmethod
    def read(cls, row: JsonObject) -> RejectionReceipt:
        until = read_optional_time(row, "undo_until")
        return cls(read_id(row, "document_id"), read_text(row, "end"), until)


@dataclass(frozen=True)
class UndoReceipt:
    """The undo of the newest decision about one document of several."""

    document_id: UUID
    #: `undone`, or `nothing`, `others`, `too_late`, `changed` or `missing`: nothing was written.
    end: str

    @classmethod
    def read(cls, row: JsonObject) -> UndoReceipt:
        return cls(read_id(row, "document_id"), read_text(row, "end"))


@dataclass(frozen=True)
class QueuedReview:
    """A document that waits for a person."""

    document_id: UUID
    original_name: str | None
    tenant: str | None
    kind: str | None
    review_reasons: tuple[str, ...]
    #: Since when it waits; also its version.
    since: datetime
    #: Who has it open.
    held_by: str | None

    @classmethod
    def read(cls, row: JsonObject) -> QueuedReview:
        return cls(
            document_id=read_id(row, "document_id"),
            original_name=read_optional_text(row, "original_name"),
            tenant=read_optional_text(row, "tenant"),
            kind=read_optional_text(row, "kind"),
            review_reasons=read_texts(row, "review_reasons"),
            since=read_time(row, "since"),
            held_by=read_optional_text(row, "held_by"),
        )


@dataclass(frozen=True)
class ReviewPage:
    """A page of documents that wait for a person, longest first."""

    items: tuple[QueuedReview, ...]
    #: The cursor of the next page; `None` behind the last.
    next_cursor: UUID | None

    @classmethod
    def read(cls, row: JsonObject) -> ReviewPage:
        items = tuple(QueuedReview.read(one) for one in read_objects(row, "items"))
        return cls(items, read_optional_id(row, "next_cursor"))


@dataclass(frozen=True)
class OpenReview:
    """A document as a reviewer saw it: a decision is about this version of it and no other."""

    document_id: UUID
    ingestion_id: UUID | None
    needs_human_review: bool
    review_reasons: tuple[str, ...]
    #: The document's data.
    document_data: Any
    #: The data of its newest ingestion.
    ingestion_data: Any
    #: The version, as the service names it.
    version: str
    #: Everything that the service said of it.
    raw: JsonObject

    @classmethod
    def read(cls, row: JsonObject, version: str) -> OpenReview:
        return cls(
            document_id=read_id(row, "document_id"),
            ingestion_id=read_optional_id(row, "ingestion_id"),
            needs_human_review=read_flag(row, "needs_human_review"),
            review_reasons=read_texts(row, "review_reasons"),
            document_data=row.get("document_data"),
            ingestion_data=row.get("ingestion_data"),
            version=version,
            raw=row,
        )


@dataclass(frozen=True)
class DecisionReceipt:
    """A decision that was written down, or undone."""

    document_id: UUID
    decision: str
    #: The document's data from now on.
    data: Any
    #: Whether it counts only once a second person has said the same.
    awaits_second: bool
    #: Until when it can be undone.
    undo_until: datetime | None

    @classmethod
    def read(cls, row: JsonObject) -> DecisionReceipt:
        return cls(
            document_id=read_id(row, "document_id"),
            decision=read_text(row, "decision"),
            data=row.get("data"),
            awaits_second=read_flag(row, "awaits_second"),
            undo_until=read_optional_time(row, "undo_until"),
        )
