"""Hand documents in to docmill over its interface for programs, and read what came of them.

A refusal is an :class:`ApiProblem` with the service's own code. Calls that the service had no
time for (429, 503) or that did not reach it are repeated; no repetition acts twice.
"""

from .answers import (
    Attempt,
    ChangePage,
    ChangeReceipt,
    DecisionReceipt,
    EndedResult,
    ExportPage,
    ExportedDocument,
    Ingestion,
    IngestionPage,
    IngestionState,
    OpenReview,
    QueuedReview,
    RejectionReceipt,
    ReviewPage,
    UndoReceipt,
    UploadReceipt,
)
from .client import ApiClient, RetryPace
from .failures import ApiFailure, ApiProblem, StillOpen, Unreachable, UnreadableAnswer

__all__ = [
    "ApiClient",
    "ApiFailure",
    "ApiProblem",
    "Attempt",
    "ChangePage",
    "ChangeReceipt",
    "DecisionReceipt",
    "EndedResult",
    "ExportPage",
    "ExportedDocument",
    "Ingestion",
    "IngestionPage",
    "IngestionState",
    "OpenReview",
    "QueuedReview",
    "RejectionReceipt",
    "RetryPace",
    "ReviewPage",
    "StillOpen",
    "UndoReceipt",
    "Unreachable",
    "UnreadableAnswer",
    "UploadReceipt",
]
