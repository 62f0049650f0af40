"""What every family of requests about one graph stands on."""

from typing import TypeVar

from headrace import _results as results
from headrace._async_caller import AsyncCaller
from headrace._async_job import AsyncJob
from headrace._calls import Call
from headrace._exchange import Deadline
from headrace._mistakes import flag, refuse_beside

T = TypeVar("T")


class AsyncHandle:
    """A graph of the service, by its name, and the way to it."""

    def __init__(self, caller: AsyncCaller, info: results.GraphInfo) -> None:
        self._caller = caller
        self.info = info
        """The graph as of `put_graph`, `AsyncClient.graph` or the last `refresh`."""

    @property
    def name(self) -> str:
        return self.info.name

    async def _begin(self, call: Call[T], timeout_s: float | None, progress: bool) -> AsyncJob[T]:
        refuse_beside("wait=False", timeout_s=timeout_s, progress=progress)
        return AsyncJob(self._caller, await self._caller.submit(call), call.parse)

    async def _solve(self, call: Call[T], timeout_s: float | None, progress: bool) -> T:
        if not flag(progress, "progress"):
            return await self._caller.command(call, timeout_s)
        deadline = Deadline.after(timeout_s)
        job = AsyncJob(self._caller, await self._caller.submit(call, deadline), call.parse)
        return await job._shown(f"solve {self.name}", deadline)
