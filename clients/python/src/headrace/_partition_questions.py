# Made by scripts/synchronous_client.py from _async_partition_questions.py: change that one.
"""The question for parts of about equal weight: it changes nothing."""

from typing import Literal, Unpack, overload

from headrace import _partitions as partitions
from headrace._handle import Handle
from headrace._job import Job
from headrace._mistakes import flag


class PartitionQuestions(Handle):
    """The question for a partition of a graph."""

    @overload
    def partition(
        self,
        k: int,
        *,
        wait: Literal[True] = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[partitions.PartitionOptions],
    ) -> partitions.PartitionResult: ...

    @overload
    def partition(
        self,
        k: int,
        *,
        wait: Literal[False],
        **options: Unpack[partitions.PartitionOptions],
    ) -> Job[partitions.PartitionResult]: ...

    def partition(
        self,
        k: int,
        *,
        wait: bool = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[partitions.PartitionOptions],
    ) -> partitions.PartitionResult | Job[partitions.PartitionResult]:
        """The vertices in k parts of about equal weight, with as little between them as is found in a short time.

        The service keeps the partition, and brings it up to date when it is asked for again: few vertices change their
        parts then. `wait=False` gives a `Job` at once. Raises `InvalidBody`, `UnknownVertex`, `WaitTimeout`, ...
        """
        call = partitions.question(self.name, k, options)
        if not flag(wait, "wait"):
            return self._begin(call, timeout_s, progress)
        return self._solve(call, timeout_s, progress)
