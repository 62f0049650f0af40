"""One region of a flow state as a preset drains it, with the preset's own working memory and counters."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Array, Topology, residuals
from gpu_engine.cuda.launch.grid import launch_strided
from gpu_engine.cuda.layout import DRAIN_COUNTERS, OUTSIDE, TARGET, WARP


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
        """The reversed rows of a network, from the arcs of its edges and the columns of the records of any state."""
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
class DrainCounters:
    """The counters of one drain, shared by its regions: those of the kernels on the device, those of the host in
    ``host``. ``signal`` int32[1] is a word by which a kernel answers the host."""

    device: Array = field(default_factory=lambda: cupy.zeros(DRAIN_COUNTERS.itemsize, np.uint8))
    signal: Array = field(default_factory=lambda: cupy.zeros(1, np.int32))
    host: Counter[str] = field(default_factory=Counter)

    def read(self) -> dict[str, int]:
        """All counters by name; waits for the kernels."""
        record = self.device.get().view(DRAIN_COUNTERS)[0]
        counted = {name: int(record[name]) for name in DRAIN_COUNTERS.names or ()}
        return {**counted, **{name: self.host[name] for name in ("global_relabels", "rounds", "levels")}}


@dataclass(frozen=True)
class Region:
    """A region during a drain. ``role`` int8[n]: INSIDE, TARGET or OUTSIDE of `gpu_engine.cuda.layout`. In a mirrored
    region deficits move backwards."""

    topology: Topology
    arcs: Array
    excess: Array
    role: Array
    wide: bool
    mirrored: bool
    reversed_rows: ReversedRows | None = None
    """The reversed rows; None for presets that do not work on the reversed CSR."""
    counters: DrainCounters = field(default_factory=DrainCounters)

    @property
    def n(self) -> int:
        """The number of vertices."""
        return self.topology.n

    @property
    def n_arcs(self) -> int:
        """The number of arcs."""
        return self.topology.n_arcs

    @cached_property
    def height(self) -> Array:
        """int32[n]: the labels of the vertices, without meaning before a search has set them."""
        return cupy.empty(self.n, np.int32)

    @cached_property
    def active(self) -> Array:
        """int32[n]: room for a list of active vertices, which `collect` fills."""
        return self.new_list()

    @property
    def records(self) -> tuple[Array, Array]:
        """The arguments RECORDS of presets/common.cuh."""
        return self.topology.row_offsets, self.arcs

    def new_list(self) -> Array:
        """int32[n]: room for a list of vertices, without content."""
        return cupy.empty(self.n, np.int32)

    def without_sinks(self) -> "Region":
        """This region with its sinks outside, for presets that fill the arcs to them beforehand."""
        role = cupy.where(self.role == TARGET, np.int8(OUTSIDE), self.role)
        return replace(self, role=role)

    def mirror(self) -> "Region":
        """This region seen the other way: vertices with excess are targets for vertices with a deficit."""
        return replace(self, mirrored=not self.mirrored)

    def launch(self, name: str, items: int, *more: Any) -> None:
        """Start kernel ``file/name`` with one thread an item on the current stream; ``more`` follows REGION."""
        file, function = name.split("/")
        sign = np.int32(-1 if self.mirrored else 1)
        region = (np.int32(self.n), self.role, self.excess, sign, self.height, self.counters.device)
        arguments = [np.int32(x) if isinstance(x, int) else x for x in more]
        launch_strided(f"presets/{file}.cu", function, items, self.wide, *region, *arguments)

    def launch_warps(self, name: str, items: int, *more: Any) -> None:
        """Start kernel ``file/name`` with one warp an item."""
        self.launch(name, WARP * items, *more)

    def clear_signal(self) -> Array:
        """Set the signal to zero; returns it as an argument for kernels."""
        self.counters.signal.fill(0)
        return self.counters.signal

    def read_signal(self) -> int:
        """The value that the kernels since `clear_signal` have left in the signal; waits for them."""
        return int(self.counters.signal.get()[0])

    def collect(self, file: str) -> int:
        """Gather the active vertices in `active`; returns their number. O(n)."""
        self.launch(f"{file}/collect", self.n, self.active, self.clear_signal())
        return self.read_signal()

    @contextmanager
    def as_reversed_rows(self) -> Iterator[tuple[Array, ...]]:
        """The arguments RCSR of presets/wbpr.cu on a copy of the residuals, which is written back at the end.

        A mirrored region exchanges the directions here, so the layout knows nothing of it.
        """
        rows = self.reversed_rows
        assert rows is not None
        column = residuals(self.arcs, self.wide)
        forward, backward = (rows.backward, rows.forward) if self.mirrored else (rows.forward, rows.backward)
        ahead, against = column[forward], column[backward]
        try:
            yield rows.row_offsets, rows.head, ahead, against, rows.back_offsets, rows.back_head, rows.entry
        finally:
            column[forward], column[backward] = ahead, against
