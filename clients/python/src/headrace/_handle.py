# Made by scripts/synchronous_client.py from _async_handle.py: change that one.
"""What every family of requests about one graph stands on."""

from typing import TypeVar

from headrace import _results as results
from headrace._caller import Caller
from headrace._calls import Call
from headrace._exchange import Deadline
from headrace._job import Job
from headrace._mistakes import flag, refuse_beside

T = TypeVar("T")


class Handle:
    """A graph of the service, by its name, and the way to it."""

    def __init__(self, caller: Caller, info: results.GraphInfo) -> None:
        self._caller = caller
        self.info = info
        """The graph as of `put_graph`, `Client.graph` or the last `refresh`."""

    @property
    def name(self) -> str:
        return self.info.name

    def _begin(self, call: Call[T], timeout_s: float | None, progress: bool) -> Job[T]:
        refuse_beside("wait=False", timeout_s=timeout_s, progress=progress)
        return Job(self._caller, self._caller.submit(call), call.parse)

    def _solve(self, call: Call[T], timeout_s: float | None, progress: bool) -> T:
        if not flag(progress, "progress"):
            return self._caller.command(call, timeout_s)
        deadline = Deadline.after(timeout_s)
        job = Job(self._caller, self._caller.submit(call, deadline), call.parse)
        return job._shown(f"solve {self.name}", deadline)
