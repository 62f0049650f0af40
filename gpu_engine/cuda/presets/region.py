"""What a preset works on: one region of a flow state, with the preset's own working memory and tallies."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import cupy
import numpy as np

from gpu_engine.cuda.launch import BLOCK, MAX_BLOCKS, Array, Topology, residual
from gpu_engine.cuda.module import kernel
from gpu_engine.networks.free import SINK

TALLIES: Final = ("pushes", "relabels", "arcs_scanned")
"""What kernels count, in the order of `Tally` in presets/common.cuh."""

WARP: Final = 32
AWAY: Final = 2
"""Outside the region; see arc.cuh."""


@dataclass(frozen=True, slots=True)
class ReversedRows:
    """Where the entries of WBPR's reversed CSR come from; index arrays of a network, 24 bytes a link in all.

    A link's forward arc is one that carries an edge, of two such the first. ``forward``, ``backward`` int32[links].
    """

    forward: Array
    backward: Array
    row_offsets: Array
    head: Array
    back_offsets: Array
    back_head: Array
    entry: Array

    @classmethod
    def of(cls, topology: Topology, edge_arc: Array, heads: Array, reverse: Array) -> "ReversedRows":
        """From the edges' arcs and the columns of any state's records."""
        carries = cupy.zeros(topology.n_arcs, np.bool_)
        carries[edge_arc[edge_arc >= 0]] = True
        arc = cupy.arange(topology.n_arcs, dtype=np.int32)
        forward = arc[carries & (~carries[reverse] | (arc < reverse))]
        backward = reverse[forward]
        tail, head = heads[backward], heads[forward]
        entry = cupy.argsort(head).astype(np.int32)
        starts = cupy.arange(topology.n + 1, dtype=np.int32)
        row_offsets = cupy.searchsorted(tail, starts).astype(np.int32)  # arcs are sorted by tail
        back_offsets = cupy.searchsorted(head[entry], starts).astype(np.int32)
        return cls(forward, backward, row_offsets, head, back_offsets, tail[entry], entry)


@dataclass(slots=True)
class Work:
    """Shared by the sides of one drain. ``tally`` int64[3], ``signal`` int32[1]: what a kernel tells the host."""

    tally: Array = field(default_factory=lambda: cupy.zeros(len(TALLIES), np.int64))
    signal: Array = field(default_factory=lambda: cupy.zeros(1, np.int32))
    done: Counter[str] = field(default_factory=Counter)

    def counters(self) -> dict[str, int]:
        counted = dict(zip(TALLIES, (int(x) for x in self.tally.get()), strict=True))
        return {**counted, **{name: self.done[name] for name in ("global_relabels", "rounds", "levels")}}


@dataclass(frozen=True)
class Side:
    """A region during a drain. ``role`` int8[n]: 0 ordinary, 1 target, 2 outside. A mirrored side moves deficits
    backwards."""

    topology: Topology
    arcs: Array
    excess: Array
    role: Array
    wide: bool
    mirrored: bool
    reversed_rows: ReversedRows | None = None
    """Of presets that want it."""
    work: Work = field(default_factory=Work)

    @property
    def n(self) -> int:
        return self.topology.n

    @property
    def n_arcs(self) -> int:
        return self.topology.n_arcs

    @cached_property
    def height(self) -> Array:
        return cupy.empty(self.n, np.int32)

    @cached_property
    def active(self) -> Array:
        return self.new_list()

    @property
    def records(self) -> tuple[Array, Array]:
        """The arguments RECORDS of presets/common.cuh."""
        return self.topology.row_offsets, self.arcs

    def new_list(self) -> Array:
        return cupy.empty(self.n, np.int32)

    def without_sinks(self) -> "Side":
        """The side with its sinks outside, for presets that fill the arcs to them beforehand."""
        role = cupy.where(self.role == SINK, np.int8(AWAY), self.role)
        return replace(self, role=role)

    def mirror(self) -> "Side":
        """The same vertices seen the other way: what holds excess is a target for what lacks it."""
        return replace(self, mirrored=not self.mirrored)

    def launch(self, name: str, items: int, *more: Any) -> None:
        """Start kernel ``file/name`` with one thread an item on the current stream; ``more`` follows REGION."""
        file, function = name.split("/")
        sign = np.int32(-1 if self.mirrored else 1)
        region = (np.int32(self.n), self.role, self.excess, sign, self.height, self.work.tally)
        arguments = [np.int32(x) if isinstance(x, int) else x for x in more]
        blocks = max(1, min(MAX_BLOCKS, -(-items // BLOCK)))
        kernel(f"presets/{file}.cu", function, wide=self.wide)((blocks,), (BLOCK,), (*region, *arguments))

    def launch_warps(self, name: str, items: int, *more: Any) -> None:
        """The same with one warp an item."""
        self.launch(name, WARP * items, *more)

    def clear(self) -> Array:
        self.work.signal.fill(0)
        return self.work.signal

    def told(self) -> int:
        """What the kernels since `clear` have left in the signal; waits for them."""
        return int(self.work.signal.get()[0])

    def collect(self, file: str) -> int:
        """Gather the active vertices in `active`; returns their number. O(n)."""
        self.launch(f"{file}/collect", self.n, self.active, self.clear())
        return self.told()

    @contextmanager
    def as_reversed_rows(self) -> Iterator[tuple[Array, ...]]:
        """The arguments RCSR of presets/wbpr.cu on a copy of the residuals, which is written back at the end.

        A mirrored side exchanges the directions here, so the layout knows nothing of it.
        """
        rows = self.reversed_rows
        assert rows is not None
        column = residual(self.arcs, self.wide)
        forward, backward = (rows.backward, rows.forward) if self.mirrored else (rows.forward, rows.backward)
        ahead, against = column[forward], column[backward]
        try:
            yield rows.row_offsets, rows.head, ahead, against, rows.back_offsets, rows.back_head, rows.entry
        finally:
            column[forward], column[backward] = ahead, against
