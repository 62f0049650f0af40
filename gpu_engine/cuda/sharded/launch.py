"""kernels/sharded: the kernels over shards that the host queues, and the memory that all of them work in."""

from collections.abc import Sequence
from typing import Any, Final

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.launch.arrays import Array
from gpu_engine.cuda.layout import COUNTED, PIECE_OF_ROW, SHARD, SHARD_UPDATE, TALLY_SLOTS, TILE_OF_ROW
from gpu_engine.cuda.module import kernel
from gpu_engine.cuda.sharded.places import Place
from gpu_engine.cuda.sharded.state import Columns
from gpu_engine.cuda.sharded.topology import Topology
from gpu_engine.types import UnitArray

BLOCK: Final = 256


class Shards:
    """A flow state with working memory: for each shard 4 bytes a vertex of the network, and 20 a vertex of its own."""

    def __init__(self, topology: Topology, columns: Columns) -> None:
        self.topology, self.columns = topology, columns
        self.places = topology.places
        self.items = 0
        """The most items that a shard can have."""
        self._slot = 0
        self._scratch = [self._working_memory(shard, place) for shard, place in enumerate(self.places.all)]
        self._records = [self._record(shard) for shard in range(len(self.places))]
        self._on_devices = {device: self._records_on(device) for device in self.places.devices}

    def _working_memory(self, shard: int, place: Place) -> dict[str, Array]:
        n = self.topology.vertices(shard)
        most_items = n + self.topology.arcs(shard) // PIECE_OF_ROW + 1
        self.items = max(self.items, most_items)
        with place.on():
            return {
                "label": cupy.empty(self.topology.n, np.int32),
                "items": cupy.empty((most_items, 2), np.int32),
                "left": cupy.empty(n, np.int64),
                "lowest": cupy.empty(n, np.int32),
                "tally": cupy.zeros((1 + TALLY_SLOTS, len(COUNTED)), np.int64),
            }

    def _record(self, shard: int) -> NDArray[np.void]:
        record = np.zeros((), SHARD)
        shared = {
            "arcs": self.columns.arcs,
            "capacity": self.topology.capacity,
            "excess": self.columns.excess,
            "role": self.columns.role,
            "source_side": self.columns.source_side,
            "label": [scratch["label"] for scratch in self._scratch],
        }
        for name, arrays in shared.items():
            for other, array in enumerate(arrays):
                record[name][other] = array.data.ptr
        record["row_offsets"] = self.topology.row_offsets[shard].data.ptr
        for name in ("items", "left", "lowest", "tally"):
            record[name] = self._scratch[shard][name].data.ptr
        record["first"][: len(self.places) + 1] = self.topology.first_vertex
        record["own"], record["count"] = shard, len(self.places)
        return record

    def _records_on(self, device: int) -> Array:
        own = [shard for shard, place in enumerate(self.places.all) if place.device == device]
        records = np.stack([self._records[shard] for shard in own])
        with self.places.all[own[0]].on():
            return cupy.asarray(records.view(np.uint8).reshape(len(own), SHARD.itemsize))

    def records_on(self, device: int) -> Array:
        """The `SHARD` records of a device's shards, uint8[shards, size], in its memory."""
        return self._on_devices[device]

    def next_slot(self) -> int:
        """The slot of the tally for the next step."""
        self._slot = (self._slot + 1) % TALLY_SLOTS
        return self._slot

    def over_vertices(self, name: str, *arguments: Any) -> None:
        """Queue a kernel of sharded/drain.cu or sharded/state.cu with a thread for each vertex of each shard."""
        self._launch(name, [self.topology.vertices(shard) for shard in range(len(self.places))], arguments)

    def over_items(self, name: str, *arguments: Any) -> None:
        """Queue a kernel with a tile for each item there may be."""
        self._launch(name, [self.items * TILE_OF_ROW] * len(self.places), arguments)

    def with_own(self, name: str, arguments: Sequence[tuple[Any, ...]], *, items: bool) -> None:
        """Queue a kernel that gets arguments of its own in each shard, by ``items`` or by vertices."""
        for shard, place in enumerate(self.places.all):
            size = self.items * TILE_OF_ROW if items else self.topology.vertices(shard)
            self._launch_one(shard, place, name, size, arguments[shard])

    def zero_flow(self, *, sum_pairs: bool) -> None:
        """Residuals as at zero flow, and pair sums too unless they are there."""
        for shard, place in enumerate(self.places.all):
            n_arcs = self.topology.arcs(shard)
            self._launch_one(shard, place, "zero_flow", n_arcs, (np.int32(n_arcs), np.bool_(sum_pairs)))

    def _launch(self, name: str, sizes: list[int], arguments: tuple[Any, ...]) -> None:
        given = tuple(np.int32(x) if isinstance(x, int) else x for x in arguments)
        for shard, place in enumerate(self.places.all):
            self._launch_one(shard, place, name, sizes[shard], given)

    def _launch_one(self, shard: int, place: Place, name: str, size: int, arguments: tuple[Any, ...]) -> None:
        blocks = max(1, min(place.most_blocks, -(-size // BLOCK)))
        with place.on():
            self._kernel(name, place)((blocks,), (BLOCK,), (self._records[shard], *arguments))

    def _kernel(self, name: str, place: Place) -> Any:
        return kernel(f"sharded/{FILES.get(name, 'drain.cu')}", name, wide=self.topology.wide, device=place.device)

    def tally(self) -> UnitArray:
        """int64[1 + slots, 4]: what all shards have counted. Waits."""
        total = np.zeros((1 + TALLY_SLOTS, len(COUNTED)), np.int64)
        for place, scratch in zip(self.places.all, self._scratch, strict=True):
            with place.on():
                total += scratch["tally"].get()
        return total

    def counted_so_far(self) -> list[int]:
        """The first row of `tally`, while a kernel runs: by copies on streams of their own."""
        total = np.zeros(len(COUNTED), np.int64)
        for place, scratch in zip(self.places.all, self._scratch, strict=True):
            with cupy.cuda.Device(place.device), cupy.cuda.Stream(non_blocking=True) as stream:
                total += scratch["tally"][0].get(stream=stream)
        counted: list[int] = total.tolist()
        return counted

    def clear_tally(self) -> None:
        """Forget what was counted."""
        for place, scratch in zip(self.places.all, self._scratch, strict=True):
            with place.on():
                scratch["tally"].fill(0)

    def update(self, edges: "ChangedEdges", *, first: bool, repaired: bool) -> NDArray[np.void]:
        """Change capacities in the state, and in the topology's columns if it is the ``first`` state; returns a
        `SHARD_UPDATE` record. The first place does it all."""
        self.places.wait()
        place = self.places.all[0]
        with place.on():
            result = cupy.zeros(SHARD_UPDATE.itemsize, np.uint8)
            columns = tuple(cupy.asarray(column) for column in edges.columns)
            k = np.int32(len(columns[0]))
            self._each("change", int(k), (k, *columns, np.bool_(first), np.bool_(repaired), result))
            if repaired:
                self._each("repair", int(k), (k, *columns[:2], result))
                self._each("count_broken_ends", int(k), (k, *columns[:2], result))
            found: NDArray[np.void] = result.get().view(SHARD_UPDATE)[0]
        return found

    def _each(self, name: str, size: int, arguments: tuple[Any, ...]) -> None:
        self._kernel(name, self.places.all[0])((-(-size // BLOCK),), (BLOCK,), (self._records[0], *arguments))


FILES: Final = {
    **dict.fromkeys(("zero_flow", "mark_sources", "saturate", "change", "repair", "count_broken_ends"), "state.cu"),
    **dict.fromkeys(("certify_rows", "certify_vertices"), "certify.cu"),
}
"""The file of each kernel that is not in drain.cu."""


class ChangedEdges:
    """An update by the places of arcs. ``arcs`` int64[k], one for each edge, ``change`` int64[k] the new capacity less
    the old one, ``both`` bool[k] whether it is for both directions."""

    def __init__(self, topology: Topology, arcs: UnitArray, change: UnitArray, both: NDArray[np.bool_]) -> None:
        self.columns = (*topology.places_of(arcs), change, both)
