"""A partition from nothing that is on its way: the device has drawn the graph together, and the host divides the
smallest graph in threads of its own, while the partition at hand is brought up to date."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final, TypeAlias
from weakref import finalize

from gpu_engine.control import Control
from gpu_engine.cuda.launch.arrays import Array
from gpu_engine.cuda.partition.coarsen import Level
from gpu_engine.errors import Cancelled
from gpu_engine.types import VertexArray

TICK_S: Final = 0.02
"""A thread that waits looks this often, in seconds, for a cancel."""

Divide: TypeAlias = Callable[[Control], VertexArray]
"""Gives the vertices of the smallest graph their parts, int32[n]."""


class Attempt:
    """A new partition while it is made. Whoever drops the attempt stops its threads."""

    def __init__(self, group: Array, levels: list[Level], ways: Sequence[Divide]) -> None:
        """``group``, int32[n], has for each vertex of the finest graph, as it was then, its vertex in the next one, and
        -1 for vertices that did not exist. ``levels`` are the graphs between. Each of the ``ways`` divides the last
        one."""
        self.group, self.levels = group, levels
        self.age = 0
        """How many answers were given since the attempt began."""
        control = Control()
        with_threads = ThreadPoolExecutor(len(ways), "partition")
        self._parts = [with_threads.submit(divide, control) for divide in ways]
        with_threads.shutdown(wait=False)
        finalize(self, control.cancel)

    @property
    def nbytes(self) -> int:
        """Bytes that the attempt holds on the device."""
        columns = sum(
            level.rows.nbytes + level.vertex_weight.nbytes + level.there.nbytes + level.group.nbytes
            for level in self.levels
        )
        return int(self.group.nbytes + columns)

    def parts(self, control: Control) -> Iterator[VertexArray]:
        """int32[n] from each of the ways, in their order. Waits; raises `Cancelled`, and what dividing raised."""
        for future in self._parts:
            while not future.done():
                if control.cancelled:
                    raise Cancelled("cancelled while it was partitioned")
                wait([future], TICK_S)
            yield future.result()
