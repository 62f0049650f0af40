"""partition/links.cu, partition/coarsen.cu and partition/refine.cu: see there."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Array, as_struct
from gpu_engine.cuda.launch.grid import launch_strided
from gpu_engine.cuda.layout import PARTITION_ARGUMENTS, PARTITION_LANES, PARTITION_SUMS
from gpu_engine.cuda.module import kernel
from gpu_engine.types import UnitArray

LINKS: Final = "partition/links.cu"
COARSEN: Final = "partition/coarsen.cu"

TABLES_BYTES: Final = 48 << 10
"""Shared memory that a block has without asking for more."""

MOST_TILES: Final = 32
"""A block of a refinement has at most so many tiles."""

BINS: Final = 256
SUMS_WORDS: Final = PARTITION_SUMS.itemsize // 8


def scratch_bytes(n_vertices: int, k: int) -> int:
    """Bytes that `Scratch` takes on a device."""
    return 36 * n_vertices + (8 * BINS + 28) * (k + 1)


@dataclass(slots=True)
class Rows:
    """The bucket list of one graph: see `gpu_engine.partition.buckets.Buckets`, of whose arrays it has the most."""

    start: Array
    used: Array
    room: Array
    head: Array
    weight: Array

    @property
    def nbytes(self) -> int:
        return int(sum(a.nbytes for a in (self.start, self.used, self.room, self.head, self.weight)))


class Scratch:
    """Working memory of refinements of graphs with up to so many vertices; at rest between two of them."""

    def __init__(self, n_vertices: int, k: int) -> None:
        self.n_vertices, self.k = n_vertices, k
        by_vertex = dict.fromkeys(("going", "listed", "stamp", "best", "list", "pseudo"), np.int32)
        self.arrays: dict[str, Array] = {name: cupy.zeros(n_vertices, kind) for name, kind in by_vertex.items()}
        self.arrays["gain"], self.arrays["target"] = cupy.zeros(n_vertices, np.int64), cupy.empty(n_vertices, np.int32)
        self.arrays["target"].fill(-1)
        for name, kind in (("total", np.int64), ("left", np.int64), ("threshold", np.uint64), ("open", np.int32)):
            self.arrays[name] = cupy.zeros(k + 1, kind)
        self.arrays["bins"] = cupy.zeros(BINS * k, np.int64)

    @property
    def nbytes(self) -> int:
        return int(sum(array.nbytes for array in self.arrays.values()))


@dataclass(slots=True)
class DeviceBooks:
    """A partition with its sums. ``told`` int64[`SUMS_WORDS` + k + 3] has them behind one another, so that one copy to
    the host is enough: a record `PARTITION_SUMS`, `part_weight`, `missed` and `moved`."""

    part: Array
    vertex_weight: Array
    told: Array

    @property
    def sums(self) -> Array:
        """The record `PARTITION_SUMS`, int64[`SUMS_WORDS`]."""
        return self.told[:SUMS_WORDS]

    @property
    def part_weight(self) -> Array:
        """int64[k + 1]: the weights of the parts and of the pseudo-partition."""
        return self.told[SUMS_WORDS:-2]

    @property
    def missed(self) -> Array:
        """int64[1]: how many links would have a negative weight after a batch."""
        return self.told[-2:-1]

    @property
    def moved(self) -> Array:
        """int64[1]: how many vertices have moved to another part."""
        return self.told[-1:]

    @property
    def nbytes(self) -> int:
        return int(self.part.nbytes + self.vertex_weight.nbytes + self.told.nbytes)


def new_told(k: int) -> Array:
    """`DeviceBooks.told` of a partition into k parts, all zero."""
    return cupy.zeros(SUMS_WORDS + k + 3, np.int64)


@dataclass(frozen=True, slots=True)
class Effort:
    """How long a refinement goes on, and how far it may go through worse partitions."""

    turns: int
    """The number of turns, at most."""
    patience: int
    """The number of turns without a better partition after which it ends."""
    daring: int
    """How many quarters of the links to its own part a vertex may lose by a move."""


class Around(NamedTuple):
    """Vertices on the device, each named once."""

    address: np.uint64
    size: int


def refine(
    rows: Rows, books: DeviceBooks, scratch: Scratch, n: int, limit: int, effort: Effort, touched: Around | None
) -> None:
    """Queue a refinement of the first ``n`` vertices: around those ``touched``, or from all borders. Needs
    `DeviceBooks.part_weight`, and around vertices what is cut; leaves all sums right."""
    k = scratch.k
    books.told[int(touched is not None) : SUMS_WORDS].fill(0)
    graph = {"start": rows.start, "used": rows.used, "room": rows.room, "head": rows.head, "weight": rows.weight}
    book = {"part": books.part, "vertex_weight": books.vertex_weight, "part_weight": books.part_weight}
    arrays = graph | book | scratch.arrays | {"sums": books.sums}
    values: dict[str, int | np.uint64] = {name: array.data.ptr for name, array in arrays.items()}
    values |= {"limit": limit, "n": n, "k": k, "from": touched is None, "pad": 0}
    values |= {"turns": effort.turns, "patience": effort.patience, "daring": effort.daring}
    values["touched"], values["n_touched"] = (values["list"], 0) if touched is None else touched
    arguments = np.array(tuple(values[name] for name in PARTITION_ARGUMENTS.names or ()), PARTITION_ARGUMENTS)
    table = 8 * (k + 1)
    tiles = max(4, min(MOST_TILES, TABLES_BYTES // table // 4 * 4))
    shared = tiles * table
    _refine()((_blocks(tiles, shared),), (PARTITION_LANES * tiles,), (as_struct(arguments),), shared_mem=shared)


def _refine() -> Any:
    return kernel("partition/refine.cu", "refine", wide=True, cooperative=True)


@cache
def _blocks(tiles: int, shared_bytes: int) -> int:
    """How many blocks of so many tiles run at once. An eighth of the device is left to others, as by drains."""
    multiprocessors = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
    of_kernel = _refine().kernel.ptr, PARTITION_LANES * tiles, shared_bytes
    fit = int(cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(*of_kernel))
    return max(1, multiprocessors * 7 // 8) * max(1, min(4, 2 * MOST_TILES // tiles, fit))


def weigh_parts(books: DeviceBooks, n: int, k: int) -> None:
    """Set what parts weigh."""
    books.part_weight.fill(0)
    given = np.int32(n), books.part, books.vertex_weight, np.int32(k), books.part_weight
    kernel(LINKS, "weigh_parts", wide=True)((max(1, min(264, -(-n // 256))),), (256,), given, shared_mem=8 * (k + 1))


def link_weights(edge_arc: Array, reverse_arc: Array, weight: Array) -> Array:
    """int64[arcs]: the weights of all edges of each link, on both of its arcs."""
    total = cupy.zeros(len(reverse_arc), np.int64)
    name = "link_weights_of_ones" if weight.dtype == np.int8 else "link_weights"
    strided(LINKS, name, len(edge_arc), np.int32(len(edge_arc)), edge_arc, reverse_arc, weight, total)
    return total


def strided(file: str, name: str, items: int, *arguments: Any) -> None:
    """Launch a kernel of partitions with a grid-stride loop over the items."""
    launch_strided(file, name, items, True, *arguments)


def by_tile(file: str, name: str, rows: int, *arguments: Any) -> None:
    """Launch a kernel of partitions in which `PARTITION_LANES` threads visit each row."""
    launch_strided(file, name, rows * PARTITION_LANES, True, *arguments)


@dataclass(frozen=True, slots=True)
class Told:
    """The sums of a partition, copied to the host."""

    cut: int
    part_weight: UnitArray
    """int64[k]: the weights of the parts."""
    missed: int
    moved: int


def read(books: DeviceBooks) -> Told:
    """The sums as they are once all queued kernels have ended. Waits for these."""
    told: UnitArray = books.told.get()
    return Told(int(told[0]) // 2, told[SUMS_WORDS:-3].copy(), int(told[-2]), int(told[-1]))
