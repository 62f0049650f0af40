"""The question for parts of about equal weight: it changes nothing."""

from typing import Literal, Unpack, overload

from headrace import _partitions as partitions
from headrace._async_handle import AsyncHandle
from headrace._async_job import AsyncJob
from headrace._mistakes import flag


class AsyncPartitionQuestions(AsyncHandle):
    """The question for a partition of a graph."""

    @overload
    async def partition(
        self,
        k: int,
        *,
        wait: Literal[True] = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[partitions.PartitionOptions],
    ) -> partitions.PartitionResult: ...

    @overload
    async def partition(
        self,
        k: int,
        *,
        wait: Literal[False],
        **options: Unpack[partitions.PartitionOptions],
    ) -> AsyncJob[partitions.PartitionResult]: ...

    async def partition(
        self,
        k: int,
        *,
        wait: bool = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[partitions.PartitionOptions],
    ) -> partitions.PartitionResult | AsyncJob[partitions.PartitionResult]:
        """The vertices in k parts of about equal weight, with as little between them as is found in a short time.

        The service keeps the partition, and brings it up to date when it is asked for again: few vertices change their
        parts then. `wait=False` gives an `AsyncJob` at once. Raises `InvalidBody`, `UnknownVertex`, `WaitTimeout`, ...
        """
        call = partitions.question(self.name, k, options)
        if not flag(wait, "wait"):
            return await self._begin(call, timeout_s, progress)
        return await self._solve(call, timeout_s, progress)
