"""Why a call has no answer."""

from __future__ import annotations


class ApiFailure(Exception):
    """Base of every failure of a call."""


class ApiProblem(ApiFailure):
    """The service refused; also after the last repetition of what it had no time for."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"{code} ({status}): {detail}")
        #: The status of the answer, 400 and above.
        self.status = status
        #: A stable word, as docs/guides/clients.md lists them.
        self.code = code
        #: An explanation for people. Never content of a document.
        self.detail = detail


class Unreachable(ApiFailure):
    """No answer came, or not all of it. Whether it was done is not known; to ask again is safe."""


class UnreadableAnswer(ApiFailure):
    """Something answered that is not docmill, or of another version."""


class StillOpen(ApiFailure):
    """The ingestion has not ended within the time that was given; it goes on."""
