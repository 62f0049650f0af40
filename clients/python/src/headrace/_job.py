# Made by scripts/synchronous_client.py from _async_job.py: change that one.
"""`Job`: the handle to work that goes on in the service."""

from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, Generic, TypeVar

import httpx

from headrace import _calls as calls
from headrace import _exchange as exchange
from headrace import _records as records
from headrace import _results as results
from headrace._caller import Caller
from headrace._connecting import translated
from headrace._errors import ConnectionFailed, HeadraceError
from headrace._exchange import Deadline
from headrace._progress import job_bar
from headrace._sse import EventReader
from headrace._stream import Stream

T = TypeVar("T")


class Job(Generic[T]):
    """Work that goes on in the service. `wait` gives what the waiting call would have returned."""

    def __init__(self, caller: Caller, info: records.JobInfo, parse: Callable[[Any], T]) -> None:
        self._caller = caller
        self._parse = parse
        self.info = info
        """The job as last heard of; `refresh` asks again."""

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.info.kind} of {self.info.graph}: {self.info.status}>"

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def progress(self) -> results.Json:
        """The solver's counters as last heard of."""
        return self.info.progress

    def refresh(self) -> records.JobInfo:
        """Ask how the job stands."""
        self.info = self._caller.ask(calls.job(self.id))
        return self.info

    def wait(self, timeout_s: float | None = None) -> T:
        """The result as soon as it is there. Raises the job's error, or `WaitTimeout`; the job then goes on."""
        steps = exchange.follow(self.id, self._parse, self._caller.retries, Deadline.after(timeout_s))
        return self._caller.drive(steps)

    def cancel(self) -> bool:
        """Stop it. True: in time, nothing of it is or will be applied, and `wait` raises `Cancelled`; a question that
        was answered just then keeps its answer. False: it has committed, or is over, and goes on to its result."""
        self.info = self._caller.ask(calls.cancel_job(self.id))
        return self.info.cancelling or self.info.status == "cancelled"

    def events(self, timeout_s: float | None = None) -> "JobEvents":
        """Its events as they happen; the last one is named `done`. Raises `ConnectionFailed` when cut off."""
        return JobEvents(JobFollower(self._caller, self.id, Deadline.after(timeout_s)))

    def _shown(self, title: str, deadline: Deadline) -> T:
        """`wait`, with a line on the terminal of how far it is."""
        with job_bar(title) as show, suppress(HeadraceError):  # `wait` has the last word
            for event in self.events(deadline.remaining_s):
                show(event.data if event.name == "progress" else {})
        return self.wait(deadline.remaining_s)


class JobFollower:
    """One connection to the events of a job."""

    def __init__(self, caller: Caller, job_id: str, deadline: Deadline) -> None:
        self._caller = caller
        self._job_id = job_id
        self._deadline = deadline
        self._reader = EventReader()
        self._stack = ExitStack()
        self.is_over = False
        self.response: httpx.Response | None = None

    def read(self) -> records.JobEvent | None:
        if self.response is None:
            path, headers = calls.job_path(self._job_id) + "/events", {"Accept": "text/event-stream"}
            response = self._stack.enter_context(self._caller.streamed(path, self._deadline, headers))
            self._lines, self.response = response.iter_lines(), response
        if not self.is_over:
            with translated():
                for line in self._lines:
                    if (event := self._reader.feed(line)) is not None:
                        self.is_over |= event.name == "done"
                        return event
        if self.is_over:
            return None
        self.is_over = True
        raise ConnectionFailed(f"the events of job {self._job_id} broke off")

    def end(self) -> None:
        self._stack.close()


class JobEvents(Stream[records.JobEvent]):
    """The events of a job: an iterator, which ends behind `done`."""

    close = Stream.close
