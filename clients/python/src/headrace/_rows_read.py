"""Reading an answer of rows while they are made: what each line says, without I/O."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import httpx

from headrace import _calls as calls
from headrace import _exchange as exchange
from headrace._amounts import loads
from headrace._codes import api_error
from headrace._errors import (
    ConnectionFailed,
    HeadraceError,
    RateLimited,
    TransportError,
    UnexpectedAnswer,
    WaitTimeout,
    WorkerUnavailable,
)
from headrace._exchange import Deadline, Retries, Tries
from headrace._results import Json

Row = TypeVar("Row")

LINES: Mapping[str, str] = {"Accept": "application/x-ndjson"}

HELD_S = 1.0
"""A connection that was open for so long has not failed when it ends."""

LOST = (TransportError, RateLimited, WorkerUnavailable)
"""After these the lines are asked for again, from where they were."""


class LastLine(Exception):
    """The lines end with an error, which is raised as it is."""

    def __init__(self, error: HeadraceError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(slots=True)
class RowReader(Generic[Row]):
    """Where a reader of lines is, through any number of connections."""

    job_id: str
    parse: Callable[[Any], Row]
    retries: Retries
    deadline: Deadline
    head: Json = field(default_factory=dict)
    """What the answer says before its rows."""
    count: int = 0
    """Rows that were read."""
    is_over: bool = False
    _etag: str | None = None
    _skips_head: bool = True
    _tries: Tries = field(init=False)
    _opened_at: float = -math.inf

    def __post_init__(self) -> None:
        self._tries = Tries(self.retries, self.deadline)

    @property
    def path(self) -> str:
        """What to ask for next."""
        return calls.job_path(self.job_id) + "/result" + (f"?after={self.count - 1}" if self.count else "")

    def headers(self) -> dict[str, str]:
        """With how long the service is to wait for a first row. Raises `WaitTimeout` once there is no time left."""
        if self.deadline.remaining_s == 0:
            raise WaitTimeout(f"job {self.job_id} is not over after {self.count} rows", self.job_id)
        return {**LINES, "Prefer": f"wait={self.deadline.hold_s}"}

    def opened(self, response: httpx.Response) -> bool:
        """Whether an answer below 400 has lines. Raises `LastLine` if they are of another version than those before."""
        if response.status_code == httpx.codes.ACCEPTED:
            return False
        etag = response.headers.get("etag")
        if self._etag is not None and etag != self._etag:
            detail = f"the question was begun again, at another version of the graph, after {self.count} rows"
            raise LastLine(api_error("worker_unavailable", httpx.codes.SERVICE_UNAVAILABLE, detail))
        self._etag, self._opened_at = etag, time.monotonic()
        self._skips_head = self.count == 0
        return True

    def feed(self, line: str) -> Row | None:
        """Take one line: the row that it is; None for the first one and the last. Raises `LastLine` for an error,
        `ConnectionFailed` for a part of a line, and `UnexpectedAnswer`."""
        try:
            body = loads(line)
        except ValueError:
            raise self.cut() from None
        if self._skips_head:
            self._skips_head, self.head = False, body
            return None
        if "row" not in body:
            if error := body.get("error"):
                known = error["code"], error["status"], error["detail"], error.get("rows") or ()
                raise LastLine(api_error(*known, request_id=error.get("request_id"), where=error))
            self.is_over = body.get("done") is True
            return None
        row = exchange.parsed(self.parse, body)
        self.count, self._tries = self.count + 1, Tries(self.retries, self.deadline)
        return row

    def cut(self) -> ConnectionFailed:
        """The lines ended without saying that they are all."""
        return ConnectionFailed(f"the rows of job {self.job_id} broke off after {self.count}")

    def pause_s(self, error: HeadraceError) -> float:
        """How long to wait before the lines are asked for again after this; raises it if that is not worth while."""
        if isinstance(error, UnexpectedAnswer):
            raise error
        if time.monotonic() - self._opened_at >= HELD_S:
            self._tries = Tries(self.retries, self.deadline)
        self._opened_at = math.inf
        pause_s = self._tries.pause_s(error)
        if pause_s is None or self._tries.failures > (self.retries.retry.attempts or math.inf):
            raise error
        return pause_s
